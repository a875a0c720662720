"""Squares of one quadtree as whole numbers, and whether they cover the convex hull of points.

A root square (corner, side) is quartered again and again; a cell is its level, column and row, and
is the square

    corner + side / 2^level * ( [column, column + 1] x [row, row + 1] ).

Corner and side are floats read as the rational numbers that they are, and side / 2^level is exact,
so a cell is known without rounding.  `covers_hull` decides in whole numbers: no tolerance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.data.grid import Grid
from sfumato.errors import SfumatoError

MOST_LEVELS = 30  # twice this number of bits fits a whole number of 64
_MOST_M = 1e15  # beyond it metres are no longer whole steps of a float
_LEAST_M = 1e-6
# The root is at most this many times as wide as the truths, or as a kilometre where they are
# narrower: the region of a problem may be much larger than its data, and a file may not choose it.
_MOST_TIMES, _LEAST_EXTENT_M = 1024, 1000.0
_UNIT = 2.0**-53
_Point = tuple[int, int]


class CertificateError(SfumatoError):
    """The certificate proves nothing, with the reason."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of the quadtree under one root square; `index` holds level, column, row, one row per
    cell."""

    corner: tuple[float, float]
    side_m: float
    index: np.ndarray

    def __repr__(self) -> str:
        return f"<Cells: {len(self)} under a square of {self.side_m:.4g} m>"

    def __post_init__(self) -> None:
        index = np.asarray(self.index)
        if index.ndim != 2 or index.shape[1:] != (3,) or index.dtype.kind != "i":
            raise CertificateError(
                "cells are whole numbers, a level, a column and a row each; got"
                f" {index.dtype} of shape {index.shape}"
            )
        inside = all(abs(at) <= _MOST_M for at in self.corner)
        if not (_LEAST_M <= self.side_m <= _MOST_M and inside):
            raise CertificateError(
                f"the root of the cells is a square of {_LEAST_M:g} to {_MOST_M:g} m; got another"
            )
        index = index.astype(np.int64)
        level, place = index[:, 0], index[:, 1:]
        if not (
            np.all((level >= 0) & (level <= MOST_LEVELS))
            and np.all(place >= 0)
            and np.all(place < (1 << np.clip(level, 0, MOST_LEVELS))[:, None])
        ):
            raise CertificateError(
                f"a cell is a level of 0 to {MOST_LEVELS} and a column and a row below 2^level;"
                " got another"
            )
        index.flags.writeable = False
        object.__setattr__(self, "index", index)

    @classmethod
    def over(cls, grid: Grid, centres_m: np.ndarray) -> "Cells":
        """The cells of a grid over a region whose middles are given.

        The root is wider than the region by a few units in the last place, so that a point at the
        region's edge, which is rounded, lies within the cells.
        """
        count = grid.cells_per_side
        assert count is not None
        side = count * grid.cell_m
        wider = 2.0**-48 * (side + max(map(abs, grid.origin)))
        level = max(0, (count - 1).bit_length())
        index = grid.index(np.asarray(centres_m, dtype=float))
        return cls(
            (grid.origin[0] - wider, grid.origin[1] - wider),
            (side + 4 * wider) / count * 2.0**level,
            np.column_stack([np.full(len(index), level), index]),
        )

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, chosen: slice | np.ndarray) -> "Cells":
        return Cells(self.corner, self.side_m, self.index[chosen])

    @property
    def sides_m(self) -> np.ndarray:
        """The side of each cell, exact."""
        return np.ldexp(self.side_m, -self.index[:, 0])

    @property
    def centres_m(self) -> np.ndarray:
        """The middle of each cell, rounded."""
        return np.array(self.corner) + (self.index[:, 1:] + 0.5) * self.sides_m[:, None]

    def holding(self, points_m: np.ndarray) -> np.ndarray:
        """The number of the cell that holds each point, or -1; rounded, so not for proofs."""
        numbers = np.full(len(points_m), -1)
        for level in np.unique(self.index[:, 0]).tolist():
            place = np.floor((points_m - np.array(self.corner)) / np.ldexp(self.side_m, -level))
            inside = np.all((place >= 0) & (place < 2**level), axis=1)
            own = np.flatnonzero(self.index[:, 0] == level)
            names = self.index[own, 1] << MOST_LEVELS | self.index[own, 2]
            order = np.argsort(names)
            asked = place[inside].astype(np.int64)
            wanted = asked[:, 0] << MOST_LEVELS | asked[:, 1]
            at = np.minimum(np.searchsorted(names[order], wanted), len(own) - 1)
            hit = names[order][at] == wanted
            numbers[np.flatnonzero(inside)[hit]] = own[order][at][hit]
        return numbers

    def quartered(self) -> "Cells":
        """The four quarters of each cell."""
        level, column, row = self.index.T
        parts = [
            np.column_stack([level + 1, 2 * column + right, 2 * row + up])
            for right in (0, 1)
            for up in (0, 1)
        ]
        return Cells(self.corner, self.side_m, np.stack(parts, axis=1).reshape(-1, 3))

    def joined(self, other: "Cells") -> "Cells":
        """These cells and those of another list under the same root."""
        assert (self.corner, self.side_m) == (other.corner, other.side_m)
        return Cells(self.corner, self.side_m, np.concatenate([self.index, other.index]))

    def least_distance(self, truths_m: np.ndarray) -> np.ndarray:
        """From each truth to the nearest point of each cell, truths x cells, rounded down.

        A side of a cell is off by at most 2u(|corner| + 2 side) and its difference to a truth
        within the root by as much again; twice that is taken off.  Root and squares lose less than
        4u of the rest, and 8u are taken off.
        """
        room = 16 * _UNIT * (max(map(abs, self.corner)) + self.side_m)
        step = self.sides_m
        total = 0.0
        for axis in (0, 1):
            low = self.corner[axis] + self.index[:, 1 + axis] * step
            truth = truths_m[:, axis, None]
            away = np.maximum(np.maximum(low - truth, truth - (low + step)) - room, 0.0)
            total = total + away * away
        return np.sqrt(total) * (1 - 8 * _UNIT)


def widest_root_m(truths_m: np.ndarray) -> float:
    """The widest root that a proof about these truths may have."""
    return _MOST_TIMES * max(_LEAST_EXTENT_M, float(np.ptp(truths_m, axis=0).max()))


def covers_hull(truths_m: np.ndarray, cells: Cells) -> bool:
    """Whether no two cells overlap and all of them cover the convex hull of the truths.

    The cells and the largest squares of the quadtree that hold none of them tile the root.  So the
    hull is covered if it lies in the root and each of those squares misses it.
    """
    if not len(cells) or _overlap(cells):
        return False
    frame = _Frame.of(cells, truths_m)
    if not frame.root_holds_hull:
        return False
    for gaps in _gaps(cells):
        unsure = gaps[~_surely_outside(cells, gaps, frame)]
        if not all(frame.misses(level, column, row) for level, column, row in unsure.tolist()):
            return False
    return True


def _overlap(cells: Cells) -> bool:
    """Whether two cells share more than an edge: along the Z-curve a cell is an interval."""
    start = _starts(cells)
    order = np.argsort(start, kind="stable")
    long = np.int64(1) << 2 * (MOST_LEVELS - cells.index[order, 0])
    return bool(np.any((start[order] + long)[:-1] > start[order][1:]))


def _gaps(cells: Cells) -> Iterator[np.ndarray]:
    """The largest squares of the quadtree that hold no cell, as level, column, row; level by level
    from the root, so that a false cover is found before many are listed."""
    start, level = _starts(cells), cells.index[:, 0]
    parents = np.zeros(1, dtype=np.int64)  # the squares above that are no cells and hold some
    for depth in range(1, int(level.max()) + 1):
        deep = level >= depth
        filled = np.unique(start[deep] >> 2 * (MOST_LEVELS - depth))
        children = ((parents << 2)[:, None] + np.arange(4)).ravel()
        empty = np.setdiff1d(children, filled, assume_unique=True)
        yield np.column_stack([np.full(len(empty), depth), _taken_apart(empty, depth)])
        parents = np.unique(start[level > depth] >> 2 * (MOST_LEVELS - depth))


def _starts(cells: Cells) -> np.ndarray:
    """Where each cell begins along the Z-curve of the last level."""
    return _interleaved(cells.index) << 2 * (MOST_LEVELS - cells.index[:, 0])


def _interleaved(index: np.ndarray) -> np.ndarray:
    """The bits of column and row in turn: the square's number along the Z-curve of its level."""
    code = np.zeros(len(index), dtype=np.int64)
    for bit in range(MOST_LEVELS):
        code |= ((index[:, 1] >> bit & 1) << 2 * bit + 1) | ((index[:, 2] >> bit & 1) << 2 * bit)
    return code


def _taken_apart(code: np.ndarray, level: int) -> np.ndarray:
    """Column and row from the number along the Z-curve."""
    place = np.zeros((len(code), 2), dtype=np.int64)
    for bit in range(level):
        place[:, 0] |= (code >> 2 * bit + 1 & 1) << bit
        place[:, 1] |= (code >> 2 * bit & 1) << bit
    return place


@dataclass(frozen=True, eq=False)
class _Frame:
    """Root and hull in whole numbers of one unit, a power of 2 of a metre that all coordinates are
    multiples of."""

    bits: int
    corner: _Point
    step: int  # the side of a cell of the last level
    box: tuple[_Point, _Point]
    edges: list[tuple[_Point, _Point]]
    flat: bool

    @classmethod
    def of(cls, cells: Cells, truths_m: np.ndarray) -> "_Frame":
        numbers = [*cells.corner, cells.side_m, *np.unique(truths_m).tolist()]
        if not np.all(np.abs(numbers) <= _MOST_M):
            raise CertificateError(f"truths lie within {_MOST_M:g} m of the origin; got another")
        bits = max(number.as_integer_ratio()[1].bit_length() for number in numbers) + MOST_LEVELS

        def whole(number: float) -> int:
            above, below = number.as_integer_ratio()
            return (above << bits) // below

        points = sorted({(whole(x), whole(y)) for x, y in truths_m.tolist()})
        hull = _hull(points)
        low, high = (
            (pick(p[0] for p in points), pick(p[1] for p in points)) for pick in (min, max)
        )
        return cls(
            bits,
            (whole(cells.corner[0]), whole(cells.corner[1])),
            whole(cells.side_m) >> MOST_LEVELS,
            (low, high),
            list(zip(hull, hull[1:] + hull[:1], strict=True)) if len(hull) > 1 else [],
            len(hull) < 3,
        )

    @property
    def root_holds_hull(self) -> bool:
        low, high = self.box
        return all(
            self.corner[axis] <= low[axis]
            and high[axis] <= self.corner[axis] + (self.step << MOST_LEVELS)
            for axis in (0, 1)
        )

    def misses(self, level: int, column: int, row: int) -> bool:
        """Whether a line along an edge of the hull or a side of its box parts the square from the
        hull.

        They may touch: the other squares are closed and cover all inner points of the hull, so they
        cover its edge too.  A flat hull has no inner points, and may not touch.
        """
        width = self.step << (MOST_LEVELS - level)
        low = (self.corner[0] + column * width, self.corner[1] + row * width)
        apart = 1 if self.flat else 0
        for axis in (0, 1):
            if low[axis] - self.box[1][axis] >= apart:
                return True
            if self.box[0][axis] - (low[axis] + width) >= apart:
                return True
        corners = [
            (low[0] + right * width, low[1] + up * width) for right in (0, 1) for up in (0, 1)
        ]
        return any(max(_left_of(a, b, at) for at in corners) <= -apart for a, b in self.edges)


def _surely_outside(cells: Cells, gaps: np.ndarray, frame: _Frame) -> np.ndarray:
    """Which squares floating point parts from the hull by far more than its rounding; the others
    are for whole numbers."""
    size = max(map(abs, cells.corner)) + cells.side_m
    low = np.array(cells.corner) + gaps[:, 1:] * np.ldexp(cells.side_m, -gaps[:, :1])
    high = low + np.ldexp(cells.side_m, -gaps[:, :1])
    box = np.array(frame.box, dtype=object) / (1 << frame.bits)
    box = box.astype(float)
    room = 64 * _UNIT * size
    outside = np.any((low > box[1] + room) | (high < box[0] - room), axis=1)
    for edge in frame.edges:
        (ax, ay), (bx, by) = (
            (point[0] / (1 << frame.bits), point[1] / (1 << frame.bits)) for point in edge
        )
        left = np.flatnonzero(~outside)
        along, up = bx - ax, by - ay
        # the corner of the square that lies farthest to the left of the edge
        x = np.where(up > 0, low[left, 0], high[left, 0])
        y = np.where(along > 0, high[left, 1], low[left, 1])
        outside[left] = along * (y - ay) - up * (x - ax) < -room * size
    return outside


def _hull(ordered: list[_Point]) -> list[_Point]:
    """The corners of the convex hull, counter-clockwise (Andrew's monotone chain); two where all
    points lie on a line."""
    corners: list[_Point] = []
    for sequence in (ordered, ordered[::-1]):
        chain: list[_Point] = []
        for point in sequence:
            while len(chain) > 1 and _left_of(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        corners.extend(chain[:-1])
    return corners or ordered


def _left_of(first: _Point, second: _Point, point: _Point) -> int:
    """Above 0 where the point lies to the left of the way from the first to the second."""
    return (second[0] - first[0]) * (point[1] - first[1]) - (second[1] - first[1]) * (
        point[0] - first[0]
    )
