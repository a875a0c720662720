"""The codebook solver on small data: budgets, limits, resuming, and what it proves."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.objective import Gain, Information
from sfumato.measure.worst import geo_indistinguishability
from sfumato.mechanism.loss import squared
from sfumato.solver import Codebook, Coin, Problem
from sfumato.solver.outcome import Ended
from sfumato.study.solution import Solution
from sfumato.study.solve import solve as solve_and_prove

solve = partial(solve_and_prove, proof="none")

SMALL = Codebook(
    made_for="these",
    places=24,
    steps=200,
    hidden=(32,),
    waves=8,
    wave_scale=4.0,
    resampled_share=0.7,
    distillation=0.0,
)


@pytest.fixture(scope="module")
def samples() -> Samples:
    data = four_corners(seed=0).train
    rows = np.concatenate([np.flatnonzero(data.secret == user)[:40] for user in range(4)])
    return data.take(rows)


@pytest.fixture(scope="module")
def problem(samples: Samples) -> Problem:
    return Problem(samples, max_loss=173)


@pytest.fixture(scope="module")
def solution(problem: Problem) -> Solution:
    return solve(problem, SMALL, seed=0, proof="full")


def test_it_holds_the_budget_on_the_grid_and_hides_more_than_noise_free(
    problem: Problem, solution: Solution
) -> None:
    assert 0.98 * 173 < solution.loss <= 173
    assert problem.names_cells(solution.measured.joint)
    assert solution.measured.bayes_error.value > 0.5
    assert solution.history[-1]["done"] == pytest.approx(1)


def test_its_certificate_is_above_no_mechanism(problem: Problem, solution: Solution) -> None:
    assert solution.certificate is not None
    bound = solution.certificate.bound(problem)
    assert bound.grid <= solution.leakage + 1e-9
    coin = solve(problem, Coin(), seed=0)
    assert bound.plane is not None
    assert bound.plane <= coin.leakage


def test_the_same_seed_gives_the_same_mechanism(problem: Problem, solution: Solution) -> None:
    again = solve(problem, SMALL, seed=0)
    for name, array in solution.mechanism.arrays().items():
        np.testing.assert_array_equal(array, again.mechanism.arrays()[name])


def test_stopped_and_resumed_it_is_the_undisturbed_one(
    problem: Problem, solution: Solution, tmp_path: object
) -> None:
    checkpoint = tmp_path / "checkpoint.npz"  # type: ignore[operator]

    class Enough(Exception):
        pass

    def stop(line: dict) -> None:
        if line.get("round") == 7:
            raise Enough

    with pytest.raises(Enough):
        solve(problem, SMALL, seed=0, progress=stop, checkpoint=checkpoint)
    rounds: list[int] = []
    again = solve(
        problem,
        SMALL,
        seed=0,
        progress=lambda line: rounds.extend([line["round"]] if "round" in line else []),
        checkpoint=checkpoint,
    )
    assert rounds[0] == 8
    for name, array in solution.mechanism.arrays().items():
        np.testing.assert_array_equal(array, again.mechanism.arrays()[name])


def test_information_as_objective_leaks_fewer_bits(problem: Problem, solution: Solution) -> None:
    found = solve(replace(problem, objective=Information()), SMALL, seed=0)
    assert mutual_information(found.measured.joint) < 0.8 * mutual_information(
        solution.measured.joint
    )
    assert found.loss <= 173


def test_a_gain_of_its_own_lowers_that_gain(problem: Problem, solution: Solution) -> None:
    twice = Gain("two-guesses")
    found = solve(replace(problem, objective=twice), SMALL, seed=0)
    assert twice.leakage(found.measured.joint) < twice.leakage(solution.measured.joint) + 0.01


def test_budgets_per_user_and_the_cap_hold(samples: Samples) -> None:
    budgets = {"blue": 100.0, "red": 150.0, "green": 200.0, "yellow": 200.0}
    problem = Problem(samples, user_max_loss=budgets, max_distance=400)
    found = solve(problem, SMALL, seed=1)
    law = found.mechanism.law(problem.joint)
    assert law is not None
    assert np.all(law.loss_of <= np.array([budgets[name] for name in samples.secrets]) * (1 + 1e-9))
    reports = found.mechanism.sample(np.repeat(samples.truth, 50, axis=0), seed=1)
    assert np.linalg.norm(reports - np.repeat(samples.truth, 50, axis=0), axis=1).max() <= 400


def test_a_budget_below_the_codebook_is_kept_by_reporting_the_own_cell(samples: Samples) -> None:
    found = solve(Problem(samples, max_loss=12), SMALL, seed=0)
    assert found.loss <= 12
    assert any("reported" in warning for warning in found.warnings)


def test_worst_case_limits_hold_on_the_finished_law(problem: Problem, solution: Solution) -> None:
    assert solution.measured.worst_report > 0.5
    found = solve(problem, replace(SMALL, max_posterior=0.5), seed=0)
    assert found.measured.worst_report <= 0.5
    assert found.loss <= 173
    assert "cost" in found.status


def test_geo_indistinguishability_holds_at_the_points(problem: Problem) -> None:
    found = solve(problem, replace(SMALL, geo_epsilon=0.03), seed=0)
    assert geo_indistinguishability(
        found.mechanism.rows(problem.places).matrix, problem.places
    ) <= 0.03 * (1 + 1e-9)
    assert found.loss <= 173
    assert bayes_error(found.measured.joint) > 0.2


def test_limits_that_cannot_be_kept_are_named(problem: Problem) -> None:
    with pytest.raises(ProblemError, match=r"cannot all be kept|no mechanism of this codebook"):
        solve(replace(problem, max_loss=30), replace(SMALL, max_posterior=0.5), seed=0)


def test_a_time_limit_ends_early_with_the_budget_held(problem: Problem) -> None:
    found = solve(problem, SMALL, seed=0, time_limit=0.01)
    assert found.loss <= 173
    assert found.ending.ended is Ended.TIME_LIMIT and "Time limit" in found.status


@pytest.mark.parametrize(
    "wrong",
    [
        {"places": 1},
        {"resampled_share": 1.5},
        {"max_posterior": 0.0},
        {"geo_epsilon": -1.0},
        {"hidden": ()},
        {"made_for": "me"},
        {"confidence": 1.0},
        {"confidence": 0.95, "made_for": "these"},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(ProblemError):
        Codebook(**wrong)


@pytest.mark.parametrize("cap", [None, 100.0])
def test_places_that_nobody_reaches_do_not_break_learning(cap: float | None) -> None:
    """Two check-ins far apart: most places have no mass, and their slopes must stay finite."""
    samples = Samples(
        secret=np.array([0, 1]), truth=np.array([[0.0, 0.0], [2000.0, 0.0]]), secrets=("ann", "bob")
    )
    found = solve(Problem(samples, max_loss=90, max_distance=cap), SMALL, seed=0)
    assert found.loss <= 90


def test_what_no_learning_can_give_is_refused_at_once(problem: Problem) -> None:
    with pytest.raises(ProblemError, match="known without any report"):
        solve(problem, replace(SMALL, max_posterior=0.2), seed=0)
    with pytest.raises(ProblemError, match="half the diagonal"):
        solve(replace(problem, max_distance=15.0, cell_m=25.0), SMALL, seed=0)
    with pytest.raises(ProblemError, match="only where the loss is the distance"):
        solve(replace(problem, max_loss=3e4, max_distance=4e4, loss=squared), SMALL, seed=0)
