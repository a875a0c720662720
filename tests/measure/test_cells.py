"""Cells of a quadtree: what they cover is decided without rounding."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.grid import Grid
from sfumato.measure.cells import MOST_LEVELS, Cells, CertificateError, covers_hull

ROOT = ((0.0, 0.0), 64.0)


def tiling(rng: np.random.Generator, levels: int) -> Cells:
    """The root square, some of its parts quartered."""
    cells = Cells(*ROOT, np.array([[0, 0, 0]]))
    for _ in range(levels):
        split = rng.random(len(cells)) < 0.6
        cells = cells[~split].joined(cells[split].quartered())
    return cells


def meets(cell: list[int], points: np.ndarray) -> bool:
    """Whether a closed cell holds one of the points."""
    level, column, row = cell
    side = 64.0 / 2**level
    low = np.array([column, row]) * side
    return bool(np.any(np.all((points >= low) & (points <= low + side), axis=1)))


@given(seed=st.integers(0, 10**6))
def test_cells_cover_unless_one_that_the_hull_enters_is_missing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = tiling(rng, 4)
    truths = rng.random((rng.integers(1, 6), 2)) * 64
    assert covers_hull(truths, cells)
    mixed = rng.dirichlet(np.ones(len(truths)), 3000) @ truths  # points of the hull
    for gone in range(len(cells)):
        rest = cells[np.delete(np.arange(len(cells)), gone)]
        if meets(cells.index[gone].tolist(), np.vstack([truths, mixed])):
            assert not covers_hull(truths, rest)


def test_cells_that_the_hull_does_not_enter_may_be_missing() -> None:
    triangle = np.array([[0.0, 0.0], [64.0, 0.0], [0.0, 64.0]])
    cells = Cells(*ROOT, np.array([[3, i, j] for i in range(8) for j in range(8)]))
    needed = cells.index[:, 1:].sum(axis=1) < 8  # the others touch the long side at most
    assert covers_hull(triangle, cells[needed])
    for gone in np.flatnonzero(needed):
        assert not covers_hull(triangle, cells[np.flatnonzero(needed & (np.arange(64) != gone))])
    segment = np.array([[64.0, 0.0], [0.0, 64.0]])  # a flat hull may not touch a gap
    assert not covers_hull(segment, cells[np.flatnonzero(needed & (cells.index[:, 1] != 3))])


def test_a_gap_of_one_unit_in_the_last_place_is_seen() -> None:
    cells = Cells(*ROOT, np.array([[1, i, j] for i in (0, 1) for j in (0, 1)]))
    inside = np.array([[0.0, 0.0], [64.0, 64.0]])
    assert covers_hull(inside, cells)
    for beyond in (np.nextafter(64.0, 65.0), 64.0 + 1e-9):
        assert not covers_hull(np.array([[0.0, 0.0], [64.0, beyond]]), cells)
    assert not covers_hull(np.array([[-5e-324, 0.0], [64.0, 64.0]]), cells)
    left = cells[np.array([True, True, False, False])]
    assert covers_hull(np.array([[1.0, 1.0], [32.0, 9.0], [3.0, 50.0]]), left)
    assert not covers_hull(
        np.array([[1.0, 1.0], [np.nextafter(32.0, 33.0), 9.0], [3.0, 50.0]]), left
    )


def test_cells_that_overlap_are_refused() -> None:
    cells = Cells(*ROOT, np.array([[1, i, j] for i in (0, 1) for j in (0, 1)]))
    truths = np.array([[1.0, 1.0], [60.0, 50.0]])
    assert not covers_hull(truths, cells.joined(cells[:1]))
    assert not covers_hull(truths, cells.joined(cells[:1].quartered()))
    assert not covers_hull(truths, cells[np.zeros(4, dtype=bool)])


@pytest.mark.parametrize(
    "index",
    [
        [[-1, 0, 0]],
        [[MOST_LEVELS + 1, 0, 0]],
        [[2, 4, 0]],
        [[2, 0, -1]],
        [[2**62, 0, 0]],
        [[2, 2**62, 0]],
        [[1, 0]],
        [[1.0, 0.0, 0.0]],
    ],
)
def test_what_is_no_cell_is_refused(index: list[list[float]]) -> None:
    with pytest.raises(CertificateError):
        Cells(*ROOT, np.array(index))


@pytest.mark.parametrize(
    "root", [((0.0, 0.0), 1e16), ((0.0, np.nan), 1.0), ((np.inf, 0.0), 1.0), ((0.0, 0.0), -1.0)]
)
def test_what_is_no_root_is_refused(root: tuple[tuple[float, float], float]) -> None:
    with pytest.raises(CertificateError, match="root"):
        Cells(*root, np.array([[0, 0, 0]]))


@given(seed=st.integers(0, 10**6))
def test_distances_are_rounded_down_and_by_little(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corner = (float(rng.normal(0, 1e5)), float(rng.normal(0, 1e5)))
    side = float(rng.exponential(3000))
    level = rng.integers(0, 12, 5)
    cells = Cells(
        corner, side, np.column_stack([level, rng.integers(0, 2**level), rng.integers(0, 2**level)])
    )
    truths = np.array(corner) + rng.random((4, 2)) * side
    found = cells.least_distance(truths)
    for row, truth in enumerate(truths.tolist()):
        for column, (depth, *place) in enumerate(cells.index.tolist()):
            square = Fraction(0)
            for axis in (0, 1):
                width = Fraction(side) / 2**depth
                low = Fraction(corner[axis]) + place[axis] * width
                at = Fraction(truth[axis])
                square += max(low - at, at - low - width, Fraction(0)) ** 2
            value = Fraction(float(found[row, column]))
            assert value**2 <= square and (value + Fraction(1, 10**8)) ** 2 >= square


def test_a_point_at_the_edge_of_the_region_lies_within_its_cells() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        centre = (float(rng.normal(0, 1e4)), float(rng.normal(0, 1e4)))
        grid = Grid(
            side_m=float(rng.exponential(5000)), cells=int(rng.integers(1, 40)), centre=centre
        )
        assert grid.region is not None
        half = grid.region.side_m / 2
        truths = np.array(centre) + half * np.array([[-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
        assert covers_hull(truths, Cells.over(grid, grid.centres()))
