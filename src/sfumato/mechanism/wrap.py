"""Mechanisms about mechanisms: snap to a grid, clamp to a region, remap to the place that costs
least."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.plane import Plane
from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism, inner_arrays, inner_mechanism
from sfumato.mechanism.law import (
    ChancesByDistance,
    Law,
    ReportChances,
    ReportRows,
    Window,
    merge_on_grid,
    merged_places,
)
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.mechanism.rows import RowsOnDemand


@dataclass(frozen=True, eq=False)
class Wrapped(Mechanism):
    """Moves the reports of an inner mechanism and never looks at the truth.  A subclass writes
    `_move`."""

    inner: Mechanism

    @abstractmethod
    def _move(self, reports: np.ndarray) -> np.ndarray:
        """Where each report goes, shape (n, 2)."""

    @property
    def draws(self) -> int:  # type: ignore[override]
        return self.inner.draws

    @property
    def plane(self) -> Plane | None:
        return self._plane or self.inner.plane

    @property
    def lists_truths(self) -> bool:  # type: ignore[override]
        return self.inner.lists_truths

    def places_in_file(self) -> np.ndarray:
        return np.vstack([super().places_in_file(), self.inner.places_in_file()])

    @property
    def geo_epsilon(self) -> float | None:
        # what is done to a report afterwards cannot tell truths apart better
        return self.inner.geo_epsilon

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        return self._move(self.inner.report(truth, chance))

    def rows(self, truth: np.ndarray) -> ReportRows | None:
        rows = self.inner.rows(truth)
        return None if rows is None else ReportRows(rows.matrix, self._move(rows.places))


@dataclass(frozen=True, eq=False)
class Snapped(Wrapped):
    """Reports the middle of the cell that the inner report falls in.

    What is released is a cell, so the leakage measured on cells is the leakage, not a flattering
    picture of it.

    >>> from sfumato.mechanism.simple import Identity
    >>> Snapped(Identity(), Grid(cell_m=50)).sample([80.0, 10.0]).tolist()
    [75.0, 25.0]
    """

    grid: Grid
    kind = "snapped"

    def _move(self, reports: np.ndarray) -> np.ndarray:
        return self.grid.snap(reports)

    def rows(self, truth: np.ndarray) -> ReportRows | None:
        rows = self.inner.rows(truth)
        if rows is None:
            return None
        cells, column = _different(self.grid.index(rows.places))
        flat = rows.matrix.tocoo()
        matrix = sparse.csr_matrix(
            (flat.data, (flat.row, column[flat.col])), shape=(len(truth), len(cells))
        )
        return ReportRows(matrix, self.grid.centre_of(cells))

    def rows_on(self, truth: np.ndarray, grid: Grid | None = None) -> RowsOnDemand | None:
        rows = super().rows_on(truth, grid)
        if rows is not None:
            return rows
        cells = self.inner.rows_on(truth, self.grid)
        return cells if cells is None or grid is None else cells.merged(grid)

    def chances_at(self, truth: np.ndarray) -> ReportChances | None:
        listed = super().chances_at(truth)
        nobody = np.empty((0, 2))
        if listed is not None or self.inner.chances_of_cells(truth, nobody, 1.0) is None:
            return listed

        def chances(reports: np.ndarray) -> np.ndarray:
            table = self.inner.chances_of_cells(truth, reports, self.grid.cell_m)
            assert table is not None
            return table

        return ChancesByDistance(chances)

    def window(self, joint: Joint, grid: Grid | None = None) -> Window | None:
        return self.inner.window(joint, self.grid)

    def law(self, joint: Joint, *, grid: Grid | None = None, loss: Loss = euclidean) -> Law | None:
        law = self.inner.law_of_cells(joint, self.grid, loss=loss) or super().law(joint, loss=loss)
        if law is None:
            return None
        return replace(law, cell_m=self.grid.cell_m) if grid is None else merge_on_grid(law, grid)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"grid": self.grid.as_array(), **inner_arrays(self.inner)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Snapped":
        return cls(inner=inner_mechanism(arrays), grid=Grid.from_array(arrays["grid"]))


def _different(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows of different cells, and which of them each is: by one whole number per cell,
    which is far faster than by rows; by rows where cells are so small that it would overflow."""
    low, high = (pick(axis=0, initial=0).astype(object) for pick in (index.min, index.max))
    across, span = high - low + 1  # Python's whole numbers
    if across * span >= 2**62:
        cells, column = np.unique(index, axis=0, return_inverse=True)
        return cells, column.ravel()
    first = low.astype(np.int64)
    key, column = np.unique((index - first) @ np.array([span, 1]), return_inverse=True)
    return np.stack([key // span, key % span], axis=1) + first, column


@dataclass(frozen=True, eq=False)
class Clamped(Wrapped):
    """Moves a report that falls outside a region to the nearest point of it.

    >>> from sfumato.mechanism.simple import Identity
    >>> Clamped(Identity(), Region(centre=(0.0, 0.0), side_m=100.0)).sample([80.0, 0.0]).tolist()
    [50.0, 0.0]
    """

    region: Region
    kind = "clamped"

    def _move(self, reports: np.ndarray) -> np.ndarray:
        return self.region.clamp(reports)

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "region": np.array([*self.region.centre, self.region.side_m]),
            **inner_arrays(self.inner),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Clamped":
        x, y, side = (float(number) for number in arrays["region"])
        return cls(inner=inner_mechanism(arrays), region=Region(centre=(x, y), side_m=side))


@dataclass(frozen=True, eq=False)
class Remapped(Wrapped):
    """Replaces each report by a better one: a table from places to places.

    `Remapped.bayesian(inner, joint)` sends each report z to the place that costs least on average
    given z and the prior.  It sees only the report, so it can never leak more, and it never costs
    more. A report that is not in the table goes the way of the nearest one that is.

    >>> from sfumato.mechanism.simple import Identity
    >>> moved = Remapped(Identity(), seen=np.array([[0.0, 0.0]]), better=np.array([[10.0, 0.0]]))
    >>> moved.sample([0.0, 0.0]).tolist()
    [10.0, 0.0]
    """

    seen: np.ndarray = field(repr=False)
    better: np.ndarray = field(repr=False)
    kind = "remapped"
    lists_truths = True  # of its candidates some are truths

    def __post_init__(self) -> None:
        if len(self.seen) != len(self.better) or not len(self.seen):
            raise MechanismError(
                f"a remap needs one new place per report; got {len(self.seen)} reports and"
                f" {len(self.better)} places"
            )

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.seen)

    @classmethod
    def bayesian(
        cls, inner: Mechanism, joint: Joint, *, loss: Loss = euclidean, grid: Grid | None = None
    ) -> "Remapped":
        """Remap each report of a mechanism with a finite law to its cheapest place among truths and
        reports.

        With `grid`, the new places are cell middles of that grid, so that a snapped mechanism stays
        snapped.
        """
        assert joint.places is not None
        rows = inner.rows(joint.places)
        if rows is None:
            raise MechanismError(
                "a remap needs a mechanism with finitely many reports per truth (a channel, a coin,"
                " these snapped or clamped)"
            )
        reports, merge = merged_places(rows.places)  # columns at one place are one report
        weight = np.asarray((rows.matrix @ merge).T.multiply(joint.place_probability).todense())
        candidates = np.unique(np.vstack([joint.places, reports]), axis=0)
        if grid is not None:
            candidates = np.unique(grid.snap(candidates), axis=0)
        cost = weight @ loss(joint.places[:, None, :], candidates[None, :, :])
        return cls(inner=inner, seen=reports, better=candidates[np.argmin(cost, axis=1)])

    def _move(self, reports: np.ndarray) -> np.ndarray:
        return self.better[self._tree.query(reports)[1]]

    def arrays(self) -> dict[str, np.ndarray]:
        return {"seen": self.seen, "better": self.better, **inner_arrays(self.inner)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Remapped":
        reports, better = (arrays[name].astype(float) for name in ("seen", "better"))
        if (
            reports.ndim != 2
            or reports.shape[1] != 2
            or reports.shape != better.shape
            or not len(reports)
        ):
            raise MechanismError(
                "a remap needs one new place per old place; got arrays of other shapes"
            )
        return cls(inner=inner_mechanism(arrays), seen=reports, better=better)
