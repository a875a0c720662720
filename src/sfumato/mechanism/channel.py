"""A finite channel: a stochastic matrix from given truths to given reports."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportRows
from sfumato.mechanism.loss import euclidean

_FARTHEST_M = 1e12  # beyond it distances may overflow
SAME_M = 1e-6  # truths this close are the same place
_BLOCK = 2048  # new truths answered at a time: a dense row each


@dataclass(frozen=True, eq=False)
class Average:
    """How new truths are answered: the mean of the known truths' rows, by weights that fall with
    the distance (`weights` times a Gaussian of deviation `bandwidth_m`), times exp(-tilt * d) at a
    report d metres off.

    A wide bandwidth forgets which truth was the nearest, and so whose; the tilt brings the loss
    back.  `weights` has a number above 0 for each known truth, how often it was seen.
    """

    bandwidth_m: float
    tilt: float
    weights: np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=float).ravel()
        if not (
            0 < self.bandwidth_m < _FARTHEST_M
            and np.isfinite(self.tilt)
            and np.all(np.isfinite(weights) & (weights > 0))
        ):
            raise MechanismError(
                "an average over truths has a bandwidth and weights above 0; got"
                f" {self.bandwidth_m} m and {len(weights)} weights"
            )
        object.__setattr__(self, "weights", weights)

    def share(self, square: np.ndarray) -> np.ndarray:
        """The share of each known truth's row, from squared distances (new truths, known ones)."""
        height = np.log(self.weights) - square / (2 * self.bandwidth_m**2)
        share = np.exp(height - height.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def tilted(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Rows with nearer reports made likelier."""
        height = np.log(rows, out=np.full(rows.shape, -np.inf), where=rows > 0)
        height -= self.tilt * distance
        height -= height.max(axis=1, keepdims=True)
        tilted = np.exp(height)
        return np.asarray(tilted / tilted.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Channel(Mechanism):
    """P(report | truth) as a matrix: one row per truth, one column per report; rows sum to 1.

    `truths` and `reports` are places in metres.  A truth that is not in the list is answered by the
    average of the rows of truths near it (`average`), by the row of the nearest one (`nearest`), or
    refused.  `max_distance` is a cap that holds for such truths too.

    >>> places = [[0, 0], [100, 0]]
    >>> swap = Channel(truths=places, reports=places, matrix=[[0.6, 0.4], [0.4, 0.6]])
    >>> swap.matrix.shape
    (2, 2)
    """

    truths: np.ndarray = field(repr=False)
    reports: np.ndarray = field(repr=False)
    matrix: sparse.csr_matrix = field(repr=False)
    nearest: bool = False
    max_distance: float | None = None
    average: Average | None = None
    kind = "channel"
    not_places = ("average", "weights")

    def __post_init__(self) -> None:
        truths, reports = (
            np.array(places, dtype=float).reshape(-1, 2) for places in (self.truths, self.reports)
        )
        matrix = sparse.csr_matrix(self.matrix, dtype=float)
        if (
            matrix.shape != (len(truths), len(reports))
            or not matrix.shape[0]
            or not matrix.shape[1]
        ):
            raise MechanismError(
                f"{len(truths)} truths and {len(reports)} reports need a matrix of that shape; got"
                f" {matrix.shape}"
            )
        if not np.all(np.abs(np.vstack([truths, reports])) < _FARTHEST_M):
            raise MechanismError("the places of a channel must be finite numbers of metres")
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        if not (np.all(matrix.data >= 0) and np.all(np.abs(sums - 1) <= 1e-9)):
            worst = int(np.argmax(np.abs(sums - 1)))
            raise MechanismError(
                f"each row of a channel holds probabilities that sum to 1; row {worst} sums to"
                f" {sums[worst]:.9g}"
            )
        matrix.eliminate_zeros()
        object.__setattr__(self, "truths", truths)
        object.__setattr__(self, "reports", reports)
        object.__setattr__(self, "matrix", matrix)
        if self.average is not None and len(self.average.weights) != len(truths):
            raise MechanismError(
                f"{len(truths)} truths need as many weights; got {len(self.average.weights)}"
            )

    @cached_property
    def _heights(self) -> np.ndarray:
        """Cumulated chances of all rows, those of row r shifted by 2r: one sorted search serves
        all."""
        ends, each = np.cumsum(self.matrix.data), np.diff(self.matrix.indptr)
        before = np.concatenate([[0.0], ends])[self.matrix.indptr[:-1]]
        return ends - np.repeat(before, each) + np.repeat(np.arange(len(each)), each) * 2.0

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.truths)

    @classmethod
    def identity(cls, places: np.ndarray) -> "Channel":
        """Each place reported as itself."""
        places = np.asarray(places, dtype=float)
        return cls(truths=places, reports=places, matrix=sparse.identity(len(places), format="csr"))

    def knows(self, truth: np.ndarray) -> np.ndarray:
        """Which truths are in the list."""
        return np.asarray(self._tree.query(truth)[0] <= SAME_M)

    @property
    def answers_new(self) -> bool:
        """Whether truths that are not in the list are answered."""
        return self.nearest or self.average is not None

    def _row_of(self, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest row to each truth, and whether it is the truth's own."""
        distance, row = self._tree.query(truth)
        known = distance <= SAME_M
        if not (self.answers_new or known.all()):
            raise MechanismError(
                f"{int((~known).sum())} truth(s) are not among the {len(self.truths)} that this"
                " channel knows; give it truths from its own list"
            )
        return row, known

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        row, known = self._row_of(truth)
        entry = np.searchsorted(self._heights, row * 2.0 + chance[:, 0], side="right")
        entry = np.minimum(entry, self.matrix.indptr[row + 1] - 1)
        reports = self.reports[self.matrix.indices[entry]]
        new = np.flatnonzero(~known)
        for start in range(0, len(new), _BLOCK):
            some = new[start : start + _BLOCK]
            law = np.cumsum(self._new_rows(truth[some]), axis=1)
            passed = (law <= chance[some, :1]).sum(axis=1)
            reports[some] = self.reports[np.minimum(passed, len(self.reports) - 1)]
        return reports

    def rows(self, truth: np.ndarray) -> ReportRows:
        row, known = self._row_of(truth)
        if known.all():
            return ReportRows(self.matrix[row], self.reports)
        return self.extended(truth).rows(truth)

    def extended(self, truth: np.ndarray) -> "Channel":
        """The channel at other truths, by the rule for those that are not in the list."""
        places = np.unique(truth, axis=0)
        row, known = self._row_of(places)
        parts = [
            sparse.csr_matrix(self._new_rows(places[start : start + _BLOCK]))
            for start in range(0, len(places), _BLOCK)
        ]
        keep = sparse.diags(known.astype(float))
        new = sparse.diags((~known).astype(float))
        return Channel(places, self.reports, keep @ self.matrix[row] + new @ sparse.vstack(parts))

    def _new_rows(self, places: np.ndarray) -> np.ndarray:
        """Rows of truths that are not in the list."""
        distance = cdist(places, self.reports)
        closest = distance.min(axis=1)
        allowed = np.ones(distance.shape, dtype=bool)
        if self.max_distance is not None:
            allowed = distance <= self.max_distance * (1 + 1e-12)
            far = int((~allowed.any(axis=1)).sum())
            if far:
                raise MechanismError(
                    f"{far} truth(s) have no report within {self.max_distance:g} m; this channel"
                    " cannot answer them"
                )
        if self.average is None:
            row = self._tree.query(places)[1]
            law, wanted = np.asarray(self.matrix[row].todense()), self._losses[row]
        else:
            share = self.average.share(cdist(places, self.truths, "sqeuclidean"))
            law = self.average.tilted(np.asarray(share @ self.matrix), distance)
            wanted = np.full(len(places), self._losses.max())
        law = np.where(allowed, law, 0.0)
        # What lies beyond the cap goes to the nearest report, and just so much more of the rest
        # that the expected distance is no more than wanted, where the nearest report allows it.
        moved = 1 - law.sum(axis=1)
        cost = (law * distance).sum(axis=1) + moved * closest
        room = cost - closest
        more = np.divide(cost - wanted, room, out=np.zeros(len(places)), where=room > 1e-9)
        law *= 1 - np.clip(more, 0.0, 1.0)[:, None]
        # rounding can take what is left below 0
        law[np.arange(len(places)), distance.argmin(axis=1)] += np.maximum(0.0, 1 - law.sum(axis=1))
        return np.asarray(law / law.sum(axis=1, keepdims=True))

    @cached_property
    def _losses(self) -> np.ndarray:
        """The expected distance of each known truth's report, in metres."""
        flat = self.matrix.tocoo()
        off = euclidean(self.truths[flat.row], self.reports[flat.col])
        return np.bincount(flat.row, weights=flat.data * off, minlength=len(self.truths))

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "nearest": np.array(self.nearest),
            "max_distance": np.array(
                [] if self.max_distance is None else [self.max_distance], dtype=float
            ),
            "truths": self.truths,
            "reports": self.reports,
            "data": self.matrix.data,
            "indices": self.matrix.indices,
            "indptr": self.matrix.indptr,
            "average": np.array(
                [] if self.average is None else [self.average.bandwidth_m, self.average.tilt],
                dtype=float,
            ),
            "weights": np.array([] if self.average is None else self.average.weights, dtype=float),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Channel":
        shape = (len(arrays["truths"]), len(arrays["reports"]))
        matrix = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape
        )
        matrix.check_format(full_check=True)  # else a false index is read from any place of memory
        cap = float(arrays["max_distance"][0]) if len(arrays["max_distance"]) else None
        rule, weights = (arrays[name].astype(float) for name in ("average", "weights"))
        average = Average(float(rule[0]), float(rule[1]), weights) if len(rule) else None
        return cls(
            arrays["truths"],
            arrays["reports"],
            matrix,
            nearest=bool(arrays["nearest"]),
            max_distance=cap,
            average=average,
        )
