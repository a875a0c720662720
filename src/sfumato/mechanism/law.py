"""The law of a mechanism on given data: P(secret, report) and the loss, with no sampling."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint, product
from sfumato.mechanism.loss import Loss

_TRUTHS_AT_ONCE = 512  # where users are many, or truths
TRUTHS_WHOLE = 2_048  # up to which the rows of few users are all held
_DENSE_SHARE = 0.1  # of the chances above 0 from which on a law is worked out as a whole table


@dataclass(frozen=True, eq=False)
class ReportRows:
    """P(report | truth): a sparse row-stochastic matrix and the places of its columns.

    >>> rows = ReportRows(sparse.csr_matrix([[0.5, 0.5]]), np.array([[0.0, 0.0], [0.0, 0.0]]))
    >>> rows.distinct().matrix.toarray().tolist()
    [[1.0]]
    """

    matrix: sparse.csr_matrix = field(repr=False)
    places: np.ndarray = field(repr=False)

    def losses(self, truth: np.ndarray, loss: Loss) -> np.ndarray:
        """The expected loss of each row, where `truth` holds the truths of the rows."""
        flat = self.matrix.tocoo()
        cost = loss(truth[flat.row], self.places[flat.col]) * flat.data
        return np.bincount(flat.row, weights=cost, minlength=self.matrix.shape[0])

    def distinct(self) -> "ReportRows":
        """The same law with each report place listed once."""
        places, merge = merged_places(self.places)
        return ReportRows(sparse.csr_matrix(self.matrix @ merge), places)


@dataclass(frozen=True)
class Window:
    """The cells that noise is integrated over for a law, and how many numbers that sums in all."""

    cells: float
    terms: float


class ReportChances(Protocol):
    """P(report | truth) at some truths."""

    def of(self, reports: np.ndarray) -> np.ndarray:
        """The chance of each report at each truth, shape (truths, reports)."""

    def after(self, table: np.ndarray, reports: np.ndarray) -> np.ndarray:
        """P(report | user) from P(truth | user): `table @ of(reports)`, shape (users, reports)."""

    def possible(self, reports: np.ndarray) -> np.ndarray:
        """Which reports at least one of the truths can send."""


@dataclass(frozen=True, eq=False)
class ListedChances:
    """Of a mechanism that lists its reports: a report is one of them if it lies within a
    millimetre.

    >>> rows = ReportRows(sparse.csr_matrix([[0.3, 0.7]]), np.array([[0.0, 0.0], [9.0, 0.0]]))
    >>> ListedChances.of_rows(rows).of(np.array([[9.0, 0.0], [5.0, 0.0]])).tolist()
    [[0.7, 0.0]]
    """

    matrix: sparse.csc_matrix = field(repr=False)
    column: Mapping[tuple[int, int], int] = field(repr=False)

    @classmethod
    def of_rows(cls, rows: ReportRows) -> "ListedChances":
        """From the rows of a law."""
        merged = ReportRows(rows.matrix, np.round(rows.places, 3)).distinct()
        return cls(
            merged.matrix.tocsc(),
            {key: at for at, key in enumerate(millimetres(merged.places))},
        )

    def of(self, reports: np.ndarray) -> np.ndarray:
        """The chance of each report at each truth; 0 for reports that are none of the list."""
        columns = self._columns(reports)
        chances = np.zeros((self.matrix.shape[0], len(reports)))
        known = np.flatnonzero(columns >= 0)
        chances[:, known] = self.matrix[:, columns[known]].toarray()
        return chances

    def after(self, table: np.ndarray, reports: np.ndarray) -> np.ndarray:
        """P(report | user) from P(truth | user), by the chances that are not 0 alone."""
        columns = self._columns(reports)
        chances = np.zeros((len(table), len(reports)))
        known = np.flatnonzero(columns >= 0)
        chances[:, known] = (self.matrix[:, columns[known]].T @ table.T).T
        return chances

    def possible(self, reports: np.ndarray) -> np.ndarray:
        columns = self._columns(reports)
        total = np.append(np.asarray(self.matrix.sum(axis=0)).ravel(), 0.0)
        return np.asarray(total[columns] > 0)

    def _columns(self, reports: np.ndarray) -> np.ndarray:
        return np.array([self.column.get(key, -1) for key in millimetres(reports)], dtype=np.int64)


def millimetres(places: np.ndarray) -> list[tuple[int, int]]:
    """Places as whole millimetres: places this close are one.

    >>> millimetres(np.array([[1.0, -0.0004]]))
    [(1000, 0)]
    """
    whole = np.round(places * 1000).astype(np.int64)
    return list(zip(whole[:, 0].tolist(), whole[:, 1].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class ChancesByDistance:
    """Of a mechanism whose chances are computed report by report: every report is possible."""

    chances: Callable[[np.ndarray], np.ndarray] = field(repr=False)

    def of(self, reports: np.ndarray) -> np.ndarray:
        return self.chances(reports)

    def after(self, table: np.ndarray, reports: np.ndarray) -> np.ndarray:
        """P(report | user) from P(truth | user), in single precision."""
        return np.asarray(table.astype(np.float32) @ self.chances(reports), dtype=float)

    def possible(self, reports: np.ndarray) -> np.ndarray:
        return np.ones(len(reports), dtype=bool)


def merged_places(places: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix]:
    """Each place once, and the 0-1 matrix that adds columns at the same place together."""
    once, column = np.unique(places, axis=0, return_inverse=True)
    return once, _onto(column.ravel(), len(once))


@dataclass(frozen=True, eq=False)
class Law:
    """P(secret, report), the expected loss, and what was left out.

    `loss_of` is the expected loss of each secret.  `missing` bounds the probability that was left
    out of the table (the far tails of an endless law); the table is scaled to sum to 1, so a
    probability read off it is off by at most that.  `cell_m` is the side of the cells that reports
    were merged into, None for the mechanism's own reports.  `loss_deviation` is the standard
    deviation of the expected loss from truth to truth; `most_loss` the largest loss that can occur,
    infinite where there is no largest or it is not known.

    >>> from sfumato.mechanism.loss import euclidean
    >>> joint = Joint(np.eye(2) / 2, places=np.array([[0.0, 0.0], [100.0, 0.0]]))
    >>> rows = ReportRows(sparse.csr_matrix([[0.5, 0.5], [0.0, 1.0]]), joint.places)
    >>> law = Law.of_rows(joint, rows, loss=euclidean)
    >>> law.loss, law.loss_deviation
    (25.0, 25.0)
    """

    joint: Joint
    loss: float
    loss_of: np.ndarray = field(repr=False)
    cell_m: float | None = None
    missing: float = 0.0
    loss_deviation: float = 0.0
    most_loss: float = np.inf

    @classmethod
    def of_rows(cls, joint: Joint, rows: ReportRows, *, loss: Loss) -> "Law":
        """Push P(secret, truth) through finitely many reports, listing each report place once."""
        assert joint.places is not None
        cost_of_truth, most_loss = _costs(rows, joint.places, joint.place_probability, loss)
        merged = rows.distinct()
        return cls(
            joint=Joint(joint.times(merged.matrix), places=merged.places, secrets=joint.secrets),
            loss=float(joint.place_probability @ cost_of_truth),
            loss_of=_per_secret(joint, cost_of_truth),
            loss_deviation=deviation(cost_of_truth, joint.place_probability),
            most_loss=most_loss,
        )

    @classmethod
    def of_mechanism(
        cls, joint: Joint, rows_of: Callable[[np.ndarray], ReportRows | None], *, loss: Loss
    ) -> "Law | None":
        """The same for rows that are worked out where they are needed; some truths at a time where
        users or truths are many, so that nothing of the size of truths times reports is held.  None
        where `rows_of` knows no law."""
        assert joint.places is not None
        if joint.sparse is None and len(joint.places) <= TRUTHS_WHOLE:
            rows = rows_of(joint.places)
            return None if rows is None else cls.of_rows(joint, rows, loss=loss)
        by_truth = joint.table if joint.sparse is None else joint.sparse.tocsc()
        mass, truths = joint.place_probability, joint.places
        cost_of_truth, most_loss = np.zeros(len(truths)), 0.0
        table: Any = None
        places = np.empty((0, 2))
        for start in range(0, len(truths), _TRUTHS_AT_ONCE):
            part = slice(start, start + _TRUTHS_AT_ONCE)
            rows = rows_of(truths[part])
            if rows is None:
                return None
            cost_of_truth[part], most = _costs(rows, truths[part], mass[part], loss)
            most_loss = max(most_loss, most)
            full = rows.matrix.nnz > _DENSE_SHARE * rows.matrix.shape[0] * rows.matrix.shape[1]
            made = product(by_truth[:, part], rows.matrix.toarray() if full else rows.matrix)
            table, places = _joined(table, places, made, rows.places)
        return cls(
            joint=Joint(table, places=places, secrets=joint.secrets),
            loss=float(mass @ cost_of_truth),
            loss_of=_per_secret(joint, cost_of_truth),
            loss_deviation=deviation(cost_of_truth, mass),
            most_loss=most_loss,
        )

    def outside(self, region: Region | None) -> float:
        """The chance that a report falls outside a region."""
        if region is None or self.joint.places is None:
            return 0.0
        return float(self.joint.place_probability[~region.contains(self.joint.places)].sum())


def _costs(
    rows: ReportRows, truths: np.ndarray, mass: np.ndarray, loss: Loss
) -> tuple[np.ndarray, float]:
    """The expected loss at each truth, and the largest that can occur at one that does."""
    flat = rows.matrix.tocoo()
    each = loss(truths[flat.row], rows.places[flat.col])
    occurs = (flat.data > 0) & (mass[flat.row] > 0)
    most = float(np.max(each, initial=0.0, where=occurs))
    return np.bincount(flat.row, weights=each * flat.data, minlength=len(truths)), most


def blended(parts: Sequence[tuple[float, Law]]) -> Law:
    """The law of answering by one of several laws of the same secrets, with a chance for each.

    `loss_deviation` is at most this much: truths that several laws answer count once for each.
    """
    table: Any = None
    places = np.empty((0, 2))
    secrets = parts[0][1].joint.secrets
    cost_of, prior = np.zeros(len(secrets)), np.zeros(len(secrets))
    for mass, law in parts:
        joint = law.joint
        assert joint.places is not None
        made = mass * joint.matrix
        table, places = _joined(table, places, made, joint.places)
        cost_of += mass * joint.prior * law.loss_of
        prior += mass * joint.prior
    masses, losses = (
        np.array(numbers) for numbers in zip(*((m, p.loss) for m, p in parts), strict=True)
    )
    spread = [mass * law.loss_deviation**2 for mass, law in parts]
    return Law(
        joint=Joint(table, places=places, secrets=secrets),
        loss=float(masses @ losses),
        loss_of=np.divide(cost_of, prior, out=np.zeros_like(prior), where=prior > 0),
        cell_m=parts[0][1].cell_m,
        missing=sum(mass * law.missing for mass, law in parts),
        loss_deviation=float(np.sqrt(sum(spread) + deviation(losses, masses) ** 2)),
        most_loss=max(law.most_loss for _, law in parts),
    )


def _joined(
    table: Any, places: np.ndarray, other: Any, others: np.ndarray
) -> tuple[Any, np.ndarray]:
    """The sum of two tables of secrets and places, each place listed once; sparse where one is."""
    both = np.vstack([places, others])
    once, column = np.unique(both, axis=0, return_inverse=True)
    column = column.ravel()
    first, second = column[: len(places)], column[len(places) :]
    if sparse.issparse(other) or sparse.issparse(table):
        parts = [
            sparse.csr_matrix(summand) @ _onto(to, len(once))
            for summand, to in ((table, first), (other, second))
            if summand is not None
        ]
        return sum(parts[1:], parts[0]), once
    whole = table
    if table is None or len(once) > len(places):
        whole = np.zeros((other.shape[0], len(once)))
        if table is not None:
            whole[:, first] = table
    np.add.at(whole.T, second, other.T)
    return whole, once


def _onto(column: np.ndarray, columns: int) -> sparse.csr_matrix:
    """The 0-1 matrix that moves each column to its new place."""
    shape = (len(column), columns)
    return sparse.csr_matrix((np.ones(len(column)), (np.arange(len(column)), column)), shape=shape)


def deviation(values: np.ndarray, weights: np.ndarray) -> float:
    """The standard deviation of values with weights that sum to 1."""
    return float(np.sqrt(weights @ (values - weights @ values) ** 2))


def _per_secret(joint: Joint, cost_of_truth: np.ndarray) -> np.ndarray:
    prior = joint.prior
    cost = joint.mean_of(cost_of_truth)
    return np.divide(cost, prior, out=np.zeros_like(prior), where=prior > 0)


def merge_on_grid(law: Law, grid: Grid) -> Law:
    """The same law seen through the cells of a grid.  Merging can only raise the Bayes error."""
    assert law.joint.places is not None
    index, column = np.unique(grid.index(law.joint.places), axis=0, return_inverse=True)
    places = grid.centre_of(index)
    if law.joint.sparse is None:
        table: Any = np.zeros((law.joint.shape[0], len(index)))
        np.add.at(table.T, column.ravel(), law.joint.table.T)
    else:
        table = law.joint.times(_onto(column.ravel(), len(index)))
    joint = Joint(table, places=places, secrets=law.joint.secrets)
    return replace(law, joint=joint, cell_m=grid.cell_m)
