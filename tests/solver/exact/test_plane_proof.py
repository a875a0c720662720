"""Proofs for the whole plane: near the grid's, and the checker agrees."""

import pytest

from sfumato.data.grid import Grid
from sfumato.measure.bound import Claim, bound_plane
from sfumato.measure.cells import Cells
from sfumato.solver.exact.column_generation import generate_columns
from sfumato.solver.exact.plane_proof import OnCells, split_to_keep, split_until, values_off_grid
from tests.solver.exact.programs import scattered, task_of

GRID = Grid(side_m=100.0, cells=10, centre=(50.0, 50.0))


@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_splitting_cells_brings_the_plane_near_the_grid_and_the_checker_agrees(
    information: bool,
) -> None:
    joint, truths, centres, loss = scattered(12, 3, 10)
    task = task_of(joint, loss, max_loss=25.0, information=information)
    best = generate_columns(task, gap=1e-6)
    claim = Claim(joint, "information" if information else "bayes", max_loss=25.0)
    rough = bound_plane(claim, best.scores, best.multipliers, truths, Cells.over(GRID, centres))
    on_cells = OnCells(task, truths, best.multipliers)
    cells = Cells.over(GRID, centres)
    proof = split_until(on_cells, cells, best.scores, goal=best.bound - 0.01)
    fine = bound_plane(claim, proof.scores, proof.multipliers, truths, proof.cells)
    assert fine == pytest.approx(proof.bound, abs=1e-9)
    assert rough <= fine <= best.bound
    assert fine >= best.bound - 0.03


@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_values_that_fit_the_plane_prove_more_than_the_grids_own(information: bool) -> None:
    joint, truths, centres, loss = scattered(12, 3, 10)
    task = task_of(joint, loss, max_loss=12.0, information=information)
    best = generate_columns(task, gap=1e-6)
    blind = 0.0 if information else 1 / 3
    claim = Claim(joint, "information" if information else "bayes", max_loss=12.0)
    values, multipliers, bound = values_off_grid(task, truths, centres, best.reports, gap=1e-4)
    assert (
        best.leakage > blind and bound <= best.leakage
    )  # more reports to choose from than the grid has
    cells = Cells.over(GRID, centres)
    proof = split_to_keep(OnCells(task, truths, multipliers), cells, values, slack=0.01)
    checked_bound = bound_plane(claim, proof.scores, proof.multipliers, truths, proof.cells)
    assert proof.bound <= checked_bound + 1e-9
    assert bound - 0.01 - 1e-9 <= checked_bound <= bound + 1e-4
    on_grid = OnCells(task, truths, best.multipliers)
    before = split_until(on_grid, cells, best.scores, goal=best.bound - 0.01)
    assert checked_bound > before.bound
