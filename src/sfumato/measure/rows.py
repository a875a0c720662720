"""What each truth sends: the rows of a mechanism's law, one at a time, so that large laws need
little memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.law import Rows
from sfumato.mechanism.wrap import Snapped

_TAIL = 1e-6  # of planar Laplace, beyond the window of cells
_WITHIN = (
    5e-6  # how far a row of planar Laplace is off, in total variation: tail and series together
)
_MOST_CELLS = 2e7  # of one row
_MOST_ENTRIES = 4e7  # of a table that is held


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
        if len(before.secrets) * len(self.places) > _MOST_ENTRIES:
            raise ProblemError(
                f"{len(before.secrets)} users and {len(self.places)} reports make a table that is"
                " too large; expected larger cells",
                hint="--cell-m 100",
            )
        table = np.zeros((len(before.secrets), len(self.places)))
        for truth in range(self.count):
            columns, chances = self.row(truth)
            for secret in np.flatnonzero(before.table[:, truth]):
                table[secret, columns] += before.table[secret, truth] * chances
        return Joint(table / table.sum(), places=self.places, secrets=before.secrets)


def sent(
    mechanism: Mechanism, truths: np.ndarray, *, grid: Grid | None = None
) -> RowsOnDemand | None:
    """The rows of a mechanism at given truths: on its own reports, or merged into the cells of
    `grid`.

    None when the law is not known (or needs a grid and got none).
    """
    rows = mechanism.rows(truths)
    if rows is not None:
        return on_demand(rows if grid is None else Rows(rows.matrix, grid.snap(rows.places)))
    if isinstance(mechanism, Snapped) and isinstance(mechanism.inner, PlanarLaplace):
        return _sent_by_laplace(mechanism.inner, truths, mechanism.grid, seen_on=grid)
    if isinstance(mechanism, PlanarLaplace) and grid is not None:
        return _sent_by_laplace(mechanism, truths, grid, seen_on=None)
    return None


def on_demand(rows: Rows) -> RowsOnDemand:
    """From a sparse matrix, each report place once."""
    merged = rows.distinct()
    matrix = merged.matrix
    matrix.eliminate_zeros()

    def row(number: int) -> tuple[np.ndarray, np.ndarray]:
        entries = slice(matrix.indptr[number], matrix.indptr[number + 1])
        return matrix.indices[entries], matrix.data[entries]

    return RowsOnDemand(matrix.shape[0], merged.places, row)


def sent_by_secrets(joint: Joint) -> RowsOnDemand:
    """P(report | secret) of a table P(secret, report): each secret in the place of a truth."""
    assert joint.places is not None
    prior = joint.prior

    def row(number: int) -> tuple[np.ndarray, np.ndarray]:
        columns = np.flatnonzero(joint.table[number])
        return columns, joint.table[number, columns] / (prior[number] or 1.0)

    return RowsOnDemand(len(prior), joint.places, row)


def _sent_by_laplace(
    noise: PlanarLaplace, truths: np.ndarray, grid: Grid, *, seen_on: Grid | None
) -> RowsOnDemand:
    """One window of cells for all truths, so that cutting the tails off cannot tell one truth from
    another."""
    reach = float(noise.radius(np.array(1 - _TAIL))) + grid.cell_m
    low = grid.index(truths.min(axis=0) - reach)
    shape = grid.index(truths.max(axis=0) + reach) - low + 1
    if float(shape[0]) * float(shape[1]) > _MOST_CELLS:
        raise ProblemError(
            f"the noise spreads over {shape[0]} x {shape[1]} cells of {grid.cell_m:g} m; expected"
            " larger cells"
        )
    index = np.stack(np.unravel_index(np.arange(shape.prod()), tuple(shape)), axis=1) + low
    places = grid.centre_of(index)
    column = None
    if seen_on is not None:
        cells, column = np.unique(seen_on.index(places), axis=0, return_inverse=True)
        places, column = seen_on.centre_of(cells), column.ravel()
    every = np.arange(len(places))

    def row(number: int) -> tuple[np.ndarray, np.ndarray]:
        window = noise._cells(truths[number], grid, low, shape)[0].ravel()
        return every, (
            window if column is None else np.bincount(column, weights=window, minlength=len(places))
        )

    held = len(truths) * len(places) <= _MOST_ENTRIES  # each row is asked for a few times
    return RowsOnDemand(len(truths), places, lru_cache(maxsize=None)(row) if held else row, _WITHIN)
