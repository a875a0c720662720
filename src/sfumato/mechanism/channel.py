"""A finite channel: a stochastic matrix from given truths to given reports."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import Rows

_SAME_M = 1e-6  # truths this close are the same place


@dataclass(frozen=True, eq=False)
class Channel(Mechanism):
    """P(report | truth) as a matrix: a row a truth, a column a report; each row sums to 1.

    `truths` and `reports` are places in metres.  A truth that is not in the list is refused, or, with
    `nearest`, answered as the nearest one that is: its expected loss is then at most that truth's plus
    the distance between the two.

    >>> swap = Channel(truths=[[0, 0], [100, 0]], reports=[[0, 0], [100, 0]], matrix=[[0.6, 0.4], [0.4, 0.6]])
    >>> swap.matrix.shape
    (2, 2)
    """

    truths: np.ndarray
    reports: np.ndarray
    matrix: sparse.csr_matrix
    nearest: bool = False
    kind = "channel"

    def __post_init__(self) -> None:
        truths, reports = (np.array(places, dtype=float).reshape(-1, 2) for places in (self.truths, self.reports))
        matrix = sparse.csr_matrix(self.matrix, dtype=float)
        if matrix.shape != (len(truths), len(reports)) or not matrix.shape[0] or not matrix.shape[1]:
            raise MechanismError(f"{len(truths)} truths and {len(reports)} reports need a matrix of that shape; got {matrix.shape}")
        if not (np.all(np.isfinite(truths)) and np.all(np.isfinite(reports))):
            raise MechanismError("the places of a channel must be finite numbers of metres")
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        if not (np.all(matrix.data >= 0) and np.all(np.abs(sums - 1) <= 1e-9)):
            worst = int(np.argmax(np.abs(sums - 1)))
            raise MechanismError(f"each row of a channel holds probabilities that sum to 1; row {worst} sums to {sums[worst]:.9g}")
        matrix.eliminate_zeros()
        object.__setattr__(self, "truths", truths)
        object.__setattr__(self, "reports", reports)
        object.__setattr__(self, "matrix", matrix)
        heights = np.cumsum(matrix.data) - np.repeat(
            np.concatenate([[0.0], np.cumsum(matrix.data)])[matrix.indptr[:-1]], np.diff(matrix.indptr)
        )
        object.__setattr__(self, "_heights", heights + np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * 2.0)
        object.__setattr__(self, "_tree", cKDTree(truths))

    @classmethod
    def identity(cls, places: np.ndarray) -> "Channel":
        """Each place reported as itself."""
        places = np.asarray(places, dtype=float)
        return cls(truths=places, reports=places, matrix=sparse.identity(len(places), format="csr"))

    def _row_of(self, truth: np.ndarray) -> np.ndarray:
        distance, row = self._tree.query(truth)  # type: ignore[attr-defined]
        if not self.nearest and not np.all(distance <= _SAME_M):
            raise MechanismError(
                f"{int((distance > _SAME_M).sum())} truth(s) are not among the {len(self.truths)} that this channel knows; "
                "give it truths from its own list"
            )
        return row

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        row = self._row_of(truth)
        # Cumulated chances of row r are stored shifted by 2r, so one sorted search serves all rows.
        heights: np.ndarray = self._heights  # type: ignore[attr-defined]
        entry = np.searchsorted(heights, row * 2.0 + chance[:, 0], side="right")
        entry = np.minimum(entry, self.matrix.indptr[row + 1] - 1)
        return self.reports[self.matrix.indices[entry]]

    def _rows(self, truth: np.ndarray) -> Rows:
        return Rows(self.matrix[self._row_of(truth)], self.reports)

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "nearest": np.array(self.nearest),
            "truths": self.truths,
            "reports": self.reports,
            "data": self.matrix.data,
            "indices": self.matrix.indices,
            "indptr": self.matrix.indptr,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Channel":
        shape = (len(arrays["truths"]), len(arrays["reports"]))
        matrix = sparse.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        return cls(truths=arrays["truths"], reports=arrays["reports"], matrix=matrix, nearest=bool(arrays["nearest"]))
