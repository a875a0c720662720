"""Adversaries that count: who was seen most in this cell, who sent the k reports nearest to this
one."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.adversary.base import Adversary, Attacker, counted
from sfumato.data.grid import Grid
from sfumato.errors import ProblemError

_SAME = 1e-9  # relative difference below which two distances are equal
_CHUNK = 50_000


@dataclass(frozen=True)
class Neighbours(Adversary):
    """k nearest neighbours; all reports at the distance of the k-th count, so ties are not broken
    by chance.

    On snapped reports many neighbours are equally near: places are kept once, with their counts.

    >>> reports = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]])
    >>> attacker = Neighbours(k=2).fit(np.array([0, 0, 1]), reports, secrets=2)
    >>> attacker.guess(np.array([[0.5, 0.0]])).tolist()
    [0]
    """

    k: int = 25

    def __post_init__(self) -> None:
        if not self.k >= 1:
            raise ProblemError(f"k must be at least 1 neighbour; got {self.k}")

    def fit(
        self, secret: np.ndarray, reports: np.ndarray, *, secrets: int, seed: int = 0
    ) -> "NeighboursAttacker":
        places, counts = counted(reports, secret, secrets=secrets)
        return NeighboursAttacker(min(self.k, len(reports)), cKDTree(places), counts.astype(float))


@dataclass(frozen=True, eq=False)
class NeighboursAttacker(Attacker):
    """Places seen, with how often each secret was seen there."""

    k: int
    tree: cKDTree = field(repr=False)
    counts: np.ndarray = field(repr=False)

    def posterior(self, reports: np.ndarray) -> np.ndarray:
        places, back = np.unique(reports, axis=0, return_inverse=True)
        parts = [
            self._votes(places[start : start + _CHUNK]) for start in range(0, len(places), _CHUNK)
        ]
        votes = np.concatenate(parts)
        return (votes / votes.sum(axis=1, keepdims=True))[back.ravel()]

    def _votes(self, places: np.ndarray) -> np.ndarray:
        """Counts of the secrets among the k nearest reports and all that are as near as the
        k-th."""
        wanted = min(self.k + 8, self.tree.n)
        while True:
            distance, near = self.tree.query(places, k=[*range(1, wanted + 1)])
            total = np.cumsum(self.counts.sum(axis=1)[near], axis=1)
            last = np.argmax(total >= self.k, axis=1)
            reach = distance[np.arange(len(places)), last] * (1 + _SAME)
            if wanted == self.tree.n or np.all(distance[:, -1] > reach):
                break
            wanted = min(2 * wanted, self.tree.n)
        counted = distance <= reach[:, None]
        return np.einsum("pk,pks->ps", counted, self.counts[near])


def bayes_error_bound(error: float, *, secrets: int) -> float:
    """The least Bayes error that a nearest-neighbour error allows in the limit of many reports.

    R* >= (m-1)/m (1 - sqrt(1 - m/(m-1) R)) for the single nearest neighbour.  Cover and Hart
    (1967). With finitely many reports it is a guide, not a proof.

    >>> round(bayes_error_bound(0.75, secrets=4), 2)
    0.75
    """
    most = (secrets - 1) / secrets
    return float(most * (1 - np.sqrt(max(0.0, 1 - min(error, most) / most))))


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
        frequencies = sparse.csr_matrix((share, (row, secret)), shape=(len(index), secrets))
        return CellsAttacker(self.grid, cKDTree(self.grid.centre_of(index)), frequencies)


@dataclass(frozen=True, eq=False)
class CellsAttacker(Attacker):
    """Frequencies of secrets in the cells seen, sparse: of many secrets few were in a cell."""

    grid: Grid
    tree: cKDTree = field(repr=False)
    frequencies: sparse.csr_matrix = field(repr=False)

    def posterior(self, reports: np.ndarray) -> np.ndarray:
        nearest = self.tree.query(self.grid.snap(reports))[1]
        return np.asarray(self.frequencies[nearest].toarray())
