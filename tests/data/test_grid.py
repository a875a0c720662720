"""Regions and grids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.grid import Grid, Region
from sfumato.errors import ProblemError

metres = st.floats(-1e5, 1e5)
sides = st.floats(0.5, 5000)


@given(x=metres, y=metres, cell=sides, at=st.tuples(metres, metres))
def test_snapping_moves_a_point_by_at_most_half_a_diagonal_and_only_once(
    x: float, y: float, cell: float, at: tuple[float, float]
) -> None:
    grid = Grid(cell_m=cell, corner=at)
    once = grid.snap(np.array([[x, y]]))
    assert np.abs(once - [x, y]).max() <= cell / 2 + 1e-9
    assert np.array_equal(grid.snap(once), once)


@given(side=sides, cells=st.integers(1, 60), at=st.tuples(metres, metres))
def test_every_middle_of_a_grid_lies_in_its_region_and_in_its_own_cell(
    side: float, cells: int, at: tuple[float, float]
) -> None:
    grid = Grid(side_m=side, cells=cells, centre=at)
    middles = grid.centres()
    assert len(np.unique(grid.index(middles), axis=0)) == len(middles) == cells**2
    assert grid.region is not None and grid.region.contains(middles).all()
    assert middles.mean(axis=0) == pytest.approx(np.array(at), abs=1e-6)


def test_the_papers_grid_has_25_m_cells_and_a_corner_at_minus_3250() -> None:
    grid = Grid(side_m=6500, cells=260)
    assert grid.cell_m == 25 and grid.origin == (-3250, -3250) and grid.cells_per_side == 260


def test_cells_are_closed_below_and_open_above() -> None:
    assert Grid(cell_m=10).index(np.array([[0.0, 10.0], [-0.001, 9.999]])).tolist() == [
        [0, 1],
        [-1, 0],
    ]


def test_a_report_outside_the_region_has_a_cell_of_its_own() -> None:
    grid = Grid(side_m=100, cells=4)
    assert grid.index(np.array([[-60.0, 60.0]])).tolist() == [[-1, 4]]


@pytest.mark.parametrize(
    ("side", "cell", "expected"), [(100, 25, 4), (100, 30, 4), (90, 30, 3), (10, 25, 1)]
)
def test_a_grid_over_a_region_covers_it_with_as_few_cells_as_it_takes(
    side: float, cell: float, expected: int
) -> None:
    grid = Grid.over(Region(centre=(7, -3), side_m=side), cell_m=cell)
    assert grid.cells_per_side == expected and grid.cell_m == cell
    assert grid.region is not None and grid.region.centre == (7, -3) and grid.region.side_m >= side


def test_a_grid_reads_back_what_it_wrote() -> None:
    for grid in (
        Grid(cell_m=25),
        Grid(cell_m=2.5, corner=(3, 4)),
        Grid(side_m=6500, cells=13, centre=(1.5, -2)),
    ):
        assert Grid.from_dict(grid.as_dict()) == grid and hash(
            Grid.from_dict(grid.as_dict())
        ) == hash(grid)
    assert Grid(cell_m=25) != Grid(cell_m=50)


def test_a_grid_does_not_change() -> None:
    with pytest.raises(AttributeError, match="cannot assign"):
        Grid(cell_m=25).cell_m = 50  # type: ignore[misc]


@pytest.mark.parametrize("cell", [0, -1, float("nan"), float("inf")])
def test_a_cell_without_a_side_is_refused(cell: float) -> None:
    with pytest.raises(ProblemError, match="side of a cell must be above 0 metres"):
        Grid(cell_m=cell)
    with pytest.raises(ProblemError, match="side of a cell must be above 0 metres"):
        Grid.over(Region((0, 0), 100), cell_m=cell)


def test_a_grid_named_twice_or_not_at_all_is_refused() -> None:
    with pytest.raises(ProblemError, match="got neither"):
        Grid()
    for names in ({"cell_m": 25, "side_m": 100}, {"cell_m": 25, "cells": 4}, {"side_m": 100}):
        with pytest.raises(ProblemError, match="by cell_m alone, or by side_m and cells together"):
            Grid(**names)
    with pytest.raises(ProblemError, match="not by both or neither"):
        Grid.over(Region((0, 0), 100), cell_m=25, cells=4)
    with pytest.raises(ProblemError, match="whole number of at least 1"):
        Grid(side_m=100, cells=0)


def test_an_endless_grid_has_no_list_of_cells() -> None:
    with pytest.raises(ProblemError, match="an endless grid has no list of cells"):
        Grid(cell_m=25).centres()


@pytest.mark.parametrize("side", [0, -5, float("nan"), float("inf")])
def test_a_region_without_a_side_is_refused(side: float) -> None:
    with pytest.raises(ProblemError, match="side of a region must be above 0 metres"):
        Region(centre=(0, 0), side_m=side)


def test_a_region_around_points_is_their_square_widened_by_the_margin() -> None:
    region = Region.around(np.array([[0.0, 0.0], [100.0, 40.0]]), margin_m=10)
    assert region.centre == (50, 20) and region.side_m == 120


@given(x=metres, y=metres, side=sides)
def test_clamping_gives_the_nearest_point_of_the_region(x: float, y: float, side: float) -> None:
    region = Region(centre=(10, -20), side_m=side)
    point = np.array([[x, y]])
    moved = region.clamp(point)
    assert Region(centre=(10, -20), side_m=side * (1 + 1e-9)).contains(moved).all()
    if region.contains(point).all():
        assert np.array_equal(moved, point)
    edge = np.clip(
        np.stack(np.meshgrid(*2 * [np.linspace(-0.5, 0.5, 9)]), axis=-1).reshape(-1, 2), -0.5, 0.5
    ) * side + [10, -20]
    assert np.linalg.norm(moved - point) <= np.linalg.norm(edge - point, axis=1).min() + 1e-6
