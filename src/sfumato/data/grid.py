"""The plane as cells."""

from dataclasses import asdict, dataclass, field

import numpy as np

from sfumato.arguments import guided_class
from sfumato.errors import ProblemError, arg

STICKY_CELL_M = 25.0  # truths in one such cell have one kept report


def check_sticky_cell(cell_m: float) -> None:
    """Refuse a side that is none of a cell within which a report is kept."""
    if not 0 < cell_m < float("inf"):
        raise ProblemError(
            f"the cell within which a report is kept must be above 0 metres; got {cell_m}"
        )


@dataclass(frozen=True)
class Region:
    """A square of the plane: its centre and its side, in metres.

    >>> Region(centre=(0.0, 0.0), side_m=6500.0).contains(np.array([[3000.0, 0.0], [4000.0, 0.0]]))
    array([ True, False])
    """

    centre: tuple[float, float] = field(repr=False)  # it may come from the data
    side_m: float

    def __post_init__(self) -> None:
        if not (self.side_m > 0 and np.isfinite(self.side_m)):
            raise ProblemError(f"the side of a region must be above 0 metres; got {self.side_m}")
        if np.shape(self.centre) != (2,) or not np.all(np.isfinite(self.centre)):
            raise ProblemError(
                f"the centre of a region must be two finite numbers of metres; got {self.centre}"
            )

    @classmethod
    def around(cls, points: np.ndarray, *, margin_m: float = 0.0) -> "Region":
        """The smallest square about the bounding box of points, widened by a margin on every
        side."""
        low, high = points.min(axis=0), points.max(axis=0)
        centre = (low + high) / 2
        side = float((high - low).max()) + 2 * margin_m
        return cls(centre=(float(centre[0]), float(centre[1])), side_m=max(side, 1.0))

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Which points lie in the square, edges included."""
        x, y = (np.abs(points[..., axis] - self.centre[axis]) <= self.side_m / 2 for axis in (0, 1))
        return np.asarray(x & y)

    def clamp(self, points: np.ndarray) -> np.ndarray:
        """The nearest point of the square."""
        centre = np.array(self.centre)
        return np.clip(points, centre - self.side_m / 2, centre + self.side_m / 2)


@guided_class(cell="cell_m", side="side_m")
@dataclass(frozen=True, init=False, repr=False)
class Grid:
    """Square cells of the plane, named by their side or by how many cover a region.

    `Grid(cell_m=25)` is an endless lattice with a cell's corner at the origin (or at `corner`);
    `Grid(side_m=6500, cells=260)` the
    paper's grid, centred; `Grid.over(region, cell_m=25)` is centred on a region.  The lattice goes
    on beyond the region: a report outside falls in a cell of its own, and can be counted.

    >>> Grid(side_m=6500, cells=260).cell_m
    25.0
    """

    cell_m: float
    origin: tuple[float, float]
    region: Region | None

    def __init__(
        self,
        *,
        cell_m: float | None = None,
        side_m: float | None = None,
        cells: int | None = None,
        centre: tuple[float, float] | None = None,
        corner: tuple[float, float] | None = None,
    ) -> None:
        if side_m is None and cells is None:
            if cell_m is None:
                raise ProblemError(
                    f"a grid needs {arg('cell_m')}, or {arg('side_m')} with {arg('cells')}; got"
                    " neither"
                )
            if centre is not None:
                raise ProblemError(
                    f"an endless grid has no middle; name a corner of its cells as {arg('corner')}"
                )
            region, origin = None, (0.0, 0.0) if corner is None else corner
        elif side_m is not None and cells is not None and cell_m is None:
            if not (isinstance(cells, (int, np.integer)) and cells >= 1):
                raise ProblemError(
                    f"{arg('cells')} must be a whole number of at least 1 per side; got {cells}"
                )
            if corner is not None:
                raise ProblemError(
                    f"a grid over a region is placed by its middle; name it as {arg('centre')}"
                )
            x, y = (0.0, 0.0) if centre is None else centre
            region = Region(centre=(float(x), float(y)), side_m=float(side_m))
            cell_m = region.side_m / cells
            origin = (region.centre[0] - region.side_m / 2, region.centre[1] - region.side_m / 2)
        else:
            raise ProblemError(
                f"name a grid by {arg('cell_m')} alone, or by {arg('side_m')} and {arg('cells')}"
                " together"
            )
        if not (cell_m > 0 and np.isfinite(cell_m)):
            raise ProblemError(f"the side of a cell must be above 0 metres; got {cell_m}")
        object.__setattr__(self, "cell_m", float(cell_m))
        object.__setattr__(self, "origin", (float(origin[0]), float(origin[1])))
        object.__setattr__(self, "region", region)

    @classmethod
    def over(
        cls, region: Region, *, cell_m: float | None = None, cells: int | None = None
    ) -> "Grid":
        """Cells over a region, centred on it; with `cell_m`, as many as cover it."""
        if (cell_m is None) == (cells is None):
            raise ProblemError(
                "name a grid by its cell side or by its number of cells, not by both or neither"
            )
        if cells is not None:
            return cls(side_m=region.side_m, cells=cells, centre=region.centre)
        assert cell_m is not None
        if not (cell_m > 0 and np.isfinite(cell_m)):
            raise ProblemError(f"the side of a cell must be above 0 metres; got {cell_m}")
        count = max(1, int(np.ceil(region.side_m / cell_m - 1e-9)))
        return cls(side_m=count * cell_m, cells=count, centre=region.centre)

    @property
    def cells_per_side(self) -> int | None:
        """How many cells lie along a side of the region; None for an endless lattice."""
        return None if self.region is None else round(self.region.side_m / self.cell_m)

    def index(self, points: np.ndarray) -> np.ndarray:
        """Column and row of the cell of each point, shape (n, 2), whole numbers of any sign."""
        return np.floor((points - np.array(self.origin)) / self.cell_m).astype(np.int64)

    def centre_of(self, index: np.ndarray) -> np.ndarray:
        """The middle of cells, in metres."""
        return (index + 0.5) * self.cell_m + np.array(self.origin)

    def snap(self, points: np.ndarray) -> np.ndarray:
        """The middle of the cell that each point lies in."""
        return self.centre_of(self.index(points))

    def centres(self) -> np.ndarray:
        """The middles of all cells of the region, column by column, shape (cells^2, 2)."""
        if self.cells_per_side is None:
            raise ProblemError(
                "an endless grid has no list of cells; lay it over a region with Grid.over"
            )
        axis = np.arange(self.cells_per_side)
        columns, rows = np.meshgrid(axis, axis, indexing="ij")
        return self.centre_of(np.stack([columns.ravel(), rows.ravel()], axis=1))

    def as_dict(self) -> dict[str, object]:
        """What a run file records."""
        return {
            "cell_m": self.cell_m,
            "origin": list(self.origin),
            "region": None if self.region is None else asdict(self.region),
        }

    @classmethod
    def from_dict(cls, record: dict) -> "Grid":
        """Read back what `as_dict` wrote."""
        region = record["region"]
        if region is None:
            return cls(cell_m=record["cell_m"], corner=tuple(record["origin"]))
        return cls(
            side_m=region["side_m"],
            cells=round(region["side_m"] / record["cell_m"]),
            centre=tuple(region["centre"]),
        )

    def as_array(self) -> np.ndarray:
        """What a mechanism file records: the cell's side and the origin, or the cell's side and the
        region's centre and side."""
        where = self.origin if self.region is None else (*self.region.centre, self.region.side_m)
        return np.array([self.cell_m, *where], dtype=float)

    @classmethod
    def from_array(cls, array: np.ndarray) -> "Grid":
        """Read back what `as_array` wrote."""
        cell_m, x, y, *side = (float(number) for number in array)
        if not (cell_m > 1e-6 and all(abs(number) < 1e9 for number in (cell_m, x, y, *side))):
            raise ProblemError("the cells of a grid are between 1e-6 m and 1e9 m; got others")
        if not side:
            return cls(cell_m=cell_m, corner=(x, y))
        return cls(side_m=side[0], cells=round(side[0] / cell_m), centre=(x, y))

    def __repr__(self) -> str:
        if self.region is None:
            return f"Grid(cell_m={self.cell_m:g})"
        return f"Grid(side_m={self.region.side_m:g}, cells={self.cells_per_side})"
