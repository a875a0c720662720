"""Distillation: the optimal law on a codebook's places, and a net that is taught it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.solver import Codebook, Exact, Problem
from sfumato.solver.codebook.training import optimal_law
from sfumato.study.solution import Solution
from sfumato.study.solve import solve as solve_and_prove

solve = partial(solve_and_prove, proof="none")

ALONE = Codebook(
    made_for="these",
    places=24,
    steps=400,
    hidden=(32,),
    waves=16,
    distillation=0.0,
)
TAUGHT = replace(ALONE, distillation=0.5)


@pytest.fixture(scope="module")
def problem() -> Problem:
    data: Samples = four_corners(seed=0).train
    return Problem(
        data.take(np.concatenate([np.flatnonzero(data.secret == user)[:20] for user in range(4)])),
        max_loss=173,
        cell_m=100,
    )


@pytest.fixture(scope="module")
def taught(problem: Problem) -> Solution:
    return solve(problem, TAUGHT, seed=0)


def test_on_all_cells_it_is_the_exact_optimum(problem: Problem) -> None:
    law = optimal_law(problem, problem.report_places)
    assert law is not None
    np.testing.assert_allclose(law.sum(axis=1), 1)
    best = solve(problem, Exact(plane=False))
    leaked = float((problem.joint.table @ law).max(axis=0).sum())
    assert leaked == pytest.approx(best.leakage, abs=2e-3)


def test_places_that_coincide_share_evenly(problem: Problem) -> None:
    law = optimal_law(problem, np.vstack([problem.report_places, problem.report_places[:5]]))
    assert law is not None
    np.testing.assert_allclose(law[:, :5], law[:, -5:])
    np.testing.assert_allclose(law.sum(axis=1), 1)


def test_no_law_where_the_places_are_too_far(problem: Problem) -> None:
    assert optimal_law(problem, np.array([[9000.0, 9000.0], [9100.0, 9000.0]])) is None


def test_a_taught_net_leaks_less_within_the_budget(problem: Problem, taught: Solution) -> None:
    alone = solve(problem, ALONE, seed=0)
    assert taught.leakage < alone.leakage - 0.005
    assert taught.loss <= 173


def test_stopped_within_the_distillation_and_resumed_it_is_the_undisturbed_one(
    problem: Problem, taught: Solution, tmp_path: Path
) -> None:
    class Enough(Exception):
        pass

    def stop(line: dict) -> None:
        if line["round"] == 14:
            raise Enough

    with pytest.raises(Enough):
        solve(problem, TAUGHT, seed=0, progress=stop, checkpoint=tmp_path / "kept.npz")
    again = solve(problem, TAUGHT, seed=0, checkpoint=tmp_path / "kept.npz")
    for name, array in taught.mechanism.arrays().items():
        np.testing.assert_array_equal(array, again.mechanism.arrays()[name])


def test_without_time_there_is_no_distillation_and_a_resumed_run_has_it(
    problem: Problem, tmp_path: Path
) -> None:
    found = solve(problem, TAUGHT, seed=0, time_limit=0.01, checkpoint=tmp_path / "kept.npz")
    assert found.ending.resumable and "without distillation" in found.status
    assert found.loss <= 173
    done = [
        line["done"]
        for line in solve(problem, TAUGHT, seed=0, checkpoint=tmp_path / "kept.npz").history
    ]
    assert done == sorted(done) and done[-1] == pytest.approx(1) and len(done) > len(found.history)


def test_distillation_without_a_law_to_teach_says_so(problem: Problem) -> None:
    tight = Problem(problem.samples, max_loss=60, cell_m=100)
    assert (
        "no law on these places keeps the budgets"
        in solve(tight, replace(TAUGHT, places=2), seed=0).status
    )


def test_distillation_knows_no_worst_case_limits() -> None:
    with pytest.raises(ProblemError, match="does not go with worst-case limits"):
        Codebook(distillation=0.4, max_posterior=0.8)
    with pytest.raises(ProblemError, match="below 1"):
        Codebook(distillation=1.0)
