"""A region cut into square tiles by where people are, and the weights that blend neighbours."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from sfumato.data.grid import Region
from sfumato.errors import MechanismError, ProblemError, arg

_DEEPEST = 20  # times that a square is quartered, at most
_FARTHEST_M = 1e9
_LEAST_OVERLAP_M = 1e-3  # less is lost in the rounding of places
NARROWEST = 2.0  # overlaps that the side of a tile holds, at least


@dataclass(frozen=True, eq=False)
class Tiling:
    """Squares that cover a region once: the region quartered, some quarters quartered again.

    `squares` holds level, column and row of each: the square of level n is one of 2^n by 2^n.
    Near an edge the tiles on both sides take part, each by the chance that the point, moved by up
    to `overlap_m` metres across and up, equally likely everywhere, falls into it.  These weights
    sum to 1 at every point and change evenly across an edge; beyond the region's own edge its
    outer tiles go on.

    >>> region = Region(centre=(0.0, 0.0), side_m=800.0)
    >>> tiling = Tiling(region, np.array([[1, c, r] for r in (0, 1) for c in (0, 1)]), 50.0)
    >>> tiling.locate(np.array([[-200.0, -200.0], [200.0, -1.0], [-900.0, 900.0]])).tolist()
    [0, 1, 2]
    >>> tiling.weights(np.array([[25.0, -300.0]])).toarray().tolist()
    [[0.25, 0.75, 0.0, 0.0]]
    """

    region: Region
    squares: np.ndarray = field(repr=False)
    overlap_m: float = 0.0

    def __post_init__(self) -> None:
        squares = np.asarray(self.squares)
        if not (squares.ndim == 2 and squares.shape[1] == 3 and len(squares)):
            raise MechanismError(f"tiles are level, column and row; got shape {squares.shape}")
        squares = squares.astype(np.int64)
        level, place = squares[:, 0], squares[:, 1:]
        if not (level.min() >= 0 and level.max() <= _DEEPEST and place.min() >= 0):
            raise MechanismError(f"the level of a tile is 0 to {_DEEPEST}; got {level.max()}")
        if np.any(place >> level[:, None]):  # beyond its region it would stand for one within
            raise MechanismError("the tiles do not cover their region once; got one outside it")
        start = _interleaved(place << (level.max() - level)[:, None])
        order = np.argsort(start, kind="stable")
        size = 4 ** (level.max() - level[order])
        if not np.array_equal(start[order], np.cumsum(size) - size) or size.sum() != 4 ** int(
            level.max()
        ):
            raise MechanismError("the tiles do not cover their region once; expected its quarters")
        if not max(*map(abs, self.region.centre), self.region.side_m) <= _FARTHEST_M:
            raise MechanismError(
                f"the tiles lie within {_FARTHEST_M:g} m, as edges beyond are rounded; got others"
            )
        object.__setattr__(self, "squares", squares[order])
        object.__setattr__(self, "_start", start[order])
        narrow = self.sides_m.min()
        if not (
            self.overlap_m == 0
            or (self.overlap_m >= _LEAST_OVERLAP_M and 2 * self.overlap_m <= narrow)
        ):
            raise ProblemError(
                f"{arg('overlap')} is 0 m, or {_LEAST_OVERLAP_M:g} m to half the side of the"
                f" smallest tile, {narrow / 2:g} m; got {self.overlap_m}"
            )

    @classmethod
    def of(
        cls,
        region: Region,
        points: np.ndarray,
        secret: np.ndarray,
        *,
        users_per_tile: int,
        overlap_m: float,
        widest_m: float = np.inf,
    ) -> "Tiling":
        """Quarter a square as long as more than `users_per_tile` users were there, or it is wider
        than `widest_m`; but no tile is narrower than two overlaps.

        >>> region, points = Region((0.0, 0.0), 800.0), np.array([[-300.0, 0.0], [300.0, 0.0]])
        >>> len(Tiling.of(region, points, np.array([0, 1]), users_per_tile=1, overlap_m=10.0))
        4
        """
        if not users_per_tile >= 1:
            raise ProblemError(f"{arg('users_per_tile')} is at least 1; got {users_per_tile}")
        corner = np.array(region.centre) - region.side_m / 2
        done: list[tuple[int, int, int]] = []
        open_squares = [(0, 0, 0, np.arange(len(points)))]
        while open_squares:
            level, column, row, inside = open_squares.pop()
            side = region.side_m / 2**level
            half = side / 2
            crowded = len(np.unique(secret[inside])) > users_per_tile
            narrow = half < NARROWEST * overlap_m or level == _DEEPEST
            if narrow or not (crowded or side > widest_m):
                done.append((level, column, row))
                continue
            middle = corner + (np.array([column, row]) + 0.5) * side
            right, upper = (points[inside] >= middle).T
            for up in (0, 1):
                for across in (0, 1):
                    quarter = inside[(right == across) & (upper == up)]
                    square = (level + 1, 2 * column + across, 2 * row + up)
                    open_squares.append((*square, quarter))
        return cls(region, np.array(done), overlap_m)

    def __len__(self) -> int:
        return len(self.squares)

    @property
    def sides_m(self) -> np.ndarray:
        """The side of each tile."""
        return self.region.side_m / 2.0 ** self.squares[:, 0]

    @cached_property
    def corners(self) -> np.ndarray:
        """The lower left corner of each tile."""
        corner = np.array(self.region.centre) - self.region.side_m / 2
        return corner + self.squares[:, 1:] * self.sides_m[:, None]

    @property
    def middles(self) -> np.ndarray:
        """The middle of each tile."""
        return self.corners + self.sides_m[:, None] / 2

    def locate(self, points: np.ndarray) -> np.ndarray:
        """The number of the tile that each point lies in, by a search among the sorted tiles: a
        thousand times as many take ten steps more."""
        cells = 2 ** int(self.squares[:, 0].max())
        corner = np.array(self.region.centre) - self.region.side_m / 2
        index = np.floor((points - corner) * (cells / self.region.side_m))
        code = _interleaved(np.clip(index, 0, cells - 1).astype(np.int64))
        start: np.ndarray = self._start  # type: ignore[attr-defined]
        return np.searchsorted(start, code, side="right") - 1

    def weights(self, points: np.ndarray) -> sparse.csr_matrix:
        """The share of each tile at each point, shape (points, tiles)."""
        count = len(points)
        each = np.repeat(np.arange(count), 4)
        # no tile is narrower than the square about the point: each that it meets holds a corner
        signs = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]]) * self.overlap_m
        tile = self.locate((points[:, None, :] + signs).reshape(-1, 2))
        table = tile.reshape(count, 4)
        alike = (table[:, :, None] == table[:, None, :]).sum(axis=2).ravel()
        share = self.share(tile, points[each]) / alike
        matrix = sparse.csr_matrix((share, (each, tile)), shape=(count, len(self)))
        matrix.eliminate_zeros()
        return matrix

    def share(self, tile: np.ndarray | int, points: np.ndarray) -> np.ndarray:
        """The weight of one tile at each point, or of a tile of its own for each."""
        if not self.overlap_m:
            return (self.locate(points) == tile).astype(float)
        corner = np.array(self.region.centre) - self.region.side_m / 2
        level, place = self.squares[tile][..., :1], self.squares[tile][..., 1:]
        side = self.region.side_m / 2.0**level  # edges as neighbours have them, to the last digit
        low = np.where(place == 0, -np.inf, corner + place * side)
        high = np.where(place == 2**level - 1, np.inf, corner + (place + 1) * side)
        met = np.minimum(self.overlap_m, points - low) + np.minimum(self.overlap_m, high - points)
        return np.asarray(np.prod(np.maximum(met, 0.0) / (2 * self.overlap_m), axis=-1))


def _interleaved(place: np.ndarray) -> np.ndarray:
    """Column and row as one number, bit by bit: the tiles of one square are a run of it."""
    code = np.zeros(len(place), dtype=np.int64)
    for bit in range(_DEEPEST):
        for axis in (0, 1):
            code |= ((place[:, axis] >> bit) & 1) << (2 * bit + axis)
    return code
