"""A finite channel: a stochastic matrix from given truths to given reports."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportRows
from sfumato.mechanism.loss import euclidean

_SAME_M = 1e-6  # truths this close are the same place


@dataclass(frozen=True, eq=False)
class Channel(Mechanism):
    """P(report | truth) as a matrix: a row a truth, a column a report; each row sums to 1.

    `truths` and `reports` are places in metres.  A truth that is not in the list is refused, or,
    with `nearest`, answered as the nearest one that is, with just so much of its own nearest report
    mixed in that its expected distance is no more than that truth's (where its nearest report
    allows it). `max_distance` is a cap that holds for such truths too: what lies beyond goes to the
    nearest report.

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
    kind = "channel"

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
        if not (np.all(np.isfinite(truths)) and np.all(np.isfinite(reports))):
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
        heights = np.cumsum(matrix.data) - np.repeat(
            np.concatenate([[0.0], np.cumsum(matrix.data)])[matrix.indptr[:-1]],
            np.diff(matrix.indptr),
        )
        object.__setattr__(
            self,
            "_heights",
            heights + np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * 2.0,
        )
        object.__setattr__(self, "_tree", cKDTree(truths))

    @classmethod
    def identity(cls, places: np.ndarray) -> "Channel":
        """Each place reported as itself."""
        places = np.asarray(places, dtype=float)
        return cls(truths=places, reports=places, matrix=sparse.identity(len(places), format="csr"))

    def _row_of(self, truth: np.ndarray) -> tuple[np.ndarray, bool]:
        """The row that answers each truth, and whether all of them are in the list."""
        distance, row = self._tree.query(truth)  # type: ignore[attr-defined]
        unseen = int((distance > _SAME_M).sum())
        if unseen and not self.nearest:
            raise MechanismError(
                f"{unseen} truth(s) are not among the {len(self.truths)} that this channel knows;"
                " give it truths from its own list"
            )
        return row, not unseen

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        row, known = self._row_of(truth)
        if not known:
            return self.extended(truth)._report(truth, chance)
        # Cumulated chances of row r are stored shifted by 2r, so one sorted search serves all rows.
        heights: np.ndarray = self._heights  # type: ignore[attr-defined]
        entry = np.searchsorted(heights, row * 2.0 + chance[:, 0], side="right")
        entry = np.minimum(entry, self.matrix.indptr[row + 1] - 1)
        return self.reports[self.matrix.indices[entry]]

    def rows(self, truth: np.ndarray) -> ReportRows:
        row, known = self._row_of(truth)
        if not known:
            return self.extended(truth).rows(truth)
        return ReportRows(self.matrix[row], self.reports)

    def extended(self, truth: np.ndarray) -> "Channel":
        """The channel at other truths, by the rule for truths that are not in the list."""
        places = np.unique(truth, axis=0)
        row = self._tree.query(places)[1]  # type: ignore[attr-defined]
        flat = self.matrix[row].tocoo()
        distance = euclidean(places[flat.row], self.reports[flat.col])
        closest, report = cKDTree(self.reports).query(places)
        chance = (
            flat.data
            if self.max_distance is None
            else np.where(distance <= self.max_distance * (1 + 1e-12), flat.data, 0.0)
        )
        if self.max_distance is not None and not np.all(closest <= self.max_distance * (1 + 1e-12)):
            far = int((closest > self.max_distance).sum())
            raise MechanismError(
                f"{far} truth(s) have no report within {self.max_distance:g} m; this channel cannot"
                " answer them"
            )
        count = len(places)
        moved = 1 - np.bincount(flat.row, weights=chance, minlength=count)
        cost = np.bincount(flat.row, weights=chance * distance, minlength=count) + moved * closest
        own = euclidean(self.truths[row[flat.row]], self.reports[flat.col])
        wanted = np.bincount(flat.row, weights=flat.data * own, minlength=count)
        room = cost - closest
        share = np.clip(
            np.divide(cost - wanted, room, out=np.zeros(count), where=room > 1e-9), 0.0, 1.0
        )
        kept = sparse.csr_matrix(
            (chance * (1 - share[flat.row]), (flat.row, flat.col)), shape=flat.shape
        )
        left = np.maximum(
            0.0, 1 - np.asarray(kept.sum(axis=1)).ravel()
        )  # rounding can take it below 0
        near = sparse.csr_matrix((left, (np.arange(count), report)), shape=flat.shape)
        return Channel(places, self.reports, kept + near)

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
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Channel":
        shape = (len(arrays["truths"]), len(arrays["reports"]))
        matrix = sparse.csr_matrix(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape
        )
        matrix.check_format(full_check=True)  # else a false index is read from any place of memory
        cap = float(arrays["max_distance"][0]) if len(arrays["max_distance"]) else None
        return cls(
            arrays["truths"],
            arrays["reports"],
            matrix,
            nearest=bool(arrays["nearest"]),
            max_distance=cap,
        )
