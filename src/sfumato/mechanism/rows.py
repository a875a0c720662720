"""The rows of a mechanism's law one at a time, so that large laws need little memory."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import ProblemError, arg
from sfumato.mechanism.law import ReportRows

MOST_ENTRIES = 4e7  # of a table that is held


@dataclass(frozen=True, eq=False)
class RowsOnDemand:
    """P(report | truth) at `count` truths: `row(number)` gives the columns that a truth can send,
    and their chances.

    `places` are the reports, each once; `within` bounds what each row is off by, in total
    variation.
    """

    count: int
    places: np.ndarray = field(repr=False)
    row: Callable[[int], tuple[np.ndarray, np.ndarray]] = field(repr=False)
    within: float = 0.0

    def joint(self, before: Joint) -> Joint:
        """P(secret, report) after P(secret, truth)."""
        if len(before.secrets) * len(self.places) > MOST_ENTRIES:
            raise ProblemError(
                f"{len(before.secrets)} users and {len(self.places)} reports make a table that is"
                " too large; expected larger cells",
                hint=f"set {arg('cell_m')} to 100",
            )
        table = np.zeros((len(before.secrets), len(self.places)))
        for truth in range(self.count):
            columns, chances = self.row(truth)
            for secret in np.flatnonzero(before.table[:, truth]):
                table[secret, columns] += before.table[secret, truth] * chances
        return Joint(table / table.sum(), places=self.places, secrets=before.secrets)

    def merged(self, grid: Grid) -> "RowsOnDemand":
        """The same rows seen through the cells of a grid."""
        cells, column = np.unique(grid.index(self.places), axis=0, return_inverse=True)
        column = column.ravel()
        every = np.arange(len(cells))

        def row(number: int) -> tuple[np.ndarray, np.ndarray]:
            columns, chances = self.row(number)
            return every, np.bincount(column[columns], weights=chances, minlength=len(cells))

        return RowsOnDemand(self.count, grid.centre_of(cells), row, self.within)


def on_demand(rows: ReportRows) -> RowsOnDemand:
    """From a sparse matrix, each report place once."""
    merged = rows.distinct()
    matrix = merged.matrix
    matrix.eliminate_zeros()

    def row(number: int) -> tuple[np.ndarray, np.ndarray]:
        entries = slice(matrix.indptr[number], matrix.indptr[number + 1])
        return matrix.indices[entries], matrix.data[entries]

    return RowsOnDemand(matrix.shape[0], merged.places, row)


def rows_of_secrets(joint: Joint) -> RowsOnDemand:
    """P(report | secret) of a table P(secret, report): each secret in the place of a truth."""
    assert joint.places is not None
    prior = joint.prior

    def row(number: int) -> tuple[np.ndarray, np.ndarray]:
        columns = np.flatnonzero(joint.table[number])
        return columns, joint.table[number, columns] / (prior[number] or 1.0)

    return RowsOnDemand(len(prior), joint.places, row)
