"""The adversary that counts: who was seen most in this cell."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.adversary.base import Adversary, Attacker
from sfumato.data.grid import Grid


@dataclass(frozen=True)
class Cells(Adversary):
    """Counts the reports of each secret in each cell; a cell never seen is answered as the nearest
    seen.

    >>> attacker = Cells(Grid(cell_m=50)).fit(np.array([0, 0, 1]), np.zeros((3, 2)), secrets=2)
    >>> attacker.posterior(np.zeros((1, 2))).round(2).tolist()
    [[0.67, 0.33]]
    """

    grid: Grid

    def fit(
        self, secret: np.ndarray, reports: np.ndarray, *, secrets: int, seed: int = 0
    ) -> "CellsAttacker":
        index, row = np.unique(self.grid.index(reports), axis=0, return_inverse=True)
        row = row.ravel()
        share = 1 / np.bincount(row)[row]
        seen = sparse.csr_matrix((share, (row, secret)), shape=(len(index), secrets))
        return CellsAttacker(self.grid, cKDTree(self.grid.centre_of(index)), seen)


@dataclass(frozen=True, eq=False)
class CellsAttacker(Attacker):
    """Frequencies of secrets in the cells seen, sparse: of many secrets few were in a cell."""

    grid: Grid
    tree: cKDTree = field(repr=False)
    frequencies: sparse.csr_matrix = field(repr=False)

    def posterior(self, reports: np.ndarray) -> np.ndarray:
        nearest = self.tree.query(self.grid.snap(reports))[1]
        return np.asarray(self.frequencies[nearest].toarray())
