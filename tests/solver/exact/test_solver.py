"""The exact solver as a user meets it: problems in, channels with proofs out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError, SfumatoError
from sfumato.measure.exact import bayes_error
from sfumato.measure.judge import judge
from sfumato.measure.objective import Bayes, Gain, Information, Objective
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.loss import euclidean
from sfumato.solver import Coin, Exact, Laplace, Problem
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact.solver import _from_a_draw, certificate_for, verify
from sfumato.study.solve import solve
from tests.solver.three_users import DATA, GRID_ONLY, law_of, on_square, proved, three_users

TWO = Samples(np.array([0, 1]), np.array([[0.0, 0.0], [100.0, 0.0]]), secrets=("alice", "bob"))


def two_people(**options: Any) -> Problem:
    """Reports at the two people's own places, and at two more that help nobody."""
    return Problem(
        TWO, region=Region((50.0, 50.0), 200.0), cell_m=100.0, **options
    )  # middles at (0 or 100, 0 or 100)


@pytest.mark.parametrize("budget", [10.0, 25.0, 40.0, 49.0])
def test_two_people_a_hundred_metres_apart_reach_the_closed_form(budget: float) -> None:
    """The paper's first example: swap with chance L/100, Bayes error L/100."""
    solution = solve(two_people(max_loss=budget), Exact(gap=1e-10, plane=False))
    assert 1 - solution.leakage == pytest.approx(budget / 100, abs=1e-9)
    assert 1 - proved(solution) == pytest.approx(budget / 100, abs=1e-9)
    assert solution.loss <= budget * (1 + 1e-9)


def test_two_people_with_budgets_of_their_own() -> None:
    """Only Alice may move, by 30 m on average: she hides behind Bob 3 times in 10, and he never
    moves: error 0.15."""
    solution = solve(
        two_people(user_max_loss={"alice": 30.0, "bob": 1e-6}), Exact(gap=1e-9, plane=False)
    )
    assert 1 - solution.leakage == pytest.approx(0.15, abs=1e-6)
    losses = law_of(solution).loss_of
    assert losses[0] <= 30 * (1 + 1e-9) and losses[1] <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize(
    "objective",
    [Bayes(), Information(), Gain("two-guesses"), Gain("target:ben")],
    ids=lambda one: one.name,
)
@pytest.mark.parametrize(
    "budgets",
    [
        {"max_loss": 70.0},
        {"user_max_loss": {"anna": 90.0, "ben": 50.0, "cleo": 70.0}},
        {"max_distance": 130.0},
        {"max_loss": 70.0, "max_distance": 130.0},
        {
            "max_loss": 70.0,
            "user_max_loss": {"anna": 90.0, "ben": 50.0, "cleo": 100.0},
            "max_distance": 130.0,
        },
    ],
    ids=["average", "per user", "cap", "average and cap", "all"],
)
def test_every_budget_is_kept_by_the_law_that_is_sampled(
    budgets: dict[str, Any], objective: Objective
) -> None:
    problem = on_square(**budgets, objective=objective)
    solution = solve(problem, GRID_ONLY)
    law = law_of(solution)
    if problem.max_loss is not None:
        assert law.loss <= problem.max_loss * (1 + 1e-9)
    if problem.user_limits is not None:
        assert np.all(law.loss_of <= problem.user_limits * (1 + 1e-9))
    reports = np.concatenate(
        [solution.mechanism.sample(DATA.truth, seed=seed) for seed in range(30)]
    )
    if problem.max_distance is not None:
        assert euclidean(np.tile(DATA.truth, (30, 1)), reports).max() <= problem.max_distance * (
            1 + 1e-9
        )
    assert np.allclose(problem.grid.snap(reports), reports)
    assert -1e-9 <= solution.leakage - proved(solution) <= 2e-3
    assert solution.leakage == pytest.approx(objective.leakage(law.joint), abs=1e-12)


def test_a_budget_more_never_lowers_the_leakage() -> None:
    free = solve(on_square(max_loss=70.0), GRID_ONLY)
    for more in ({"max_distance": 100.0}, {"user_max_loss": dict.fromkeys(DATA.secrets, 70.0)}):
        assert solve(on_square(max_loss=70.0, **more), GRID_ONLY).leakage >= proved(free) - 1e-12


@pytest.mark.parametrize("solver", [Coin(), Laplace()], ids=["coin", "laplace"])
@pytest.mark.parametrize("budget", [60.0, 110.0])
def test_no_baseline_on_the_grid_goes_below_what_is_proved(
    solver: Coin | Laplace, budget: float
) -> None:
    problem = on_square(max_loss=budget, cell_m=40.0)
    exact = solve(problem, GRID_ONLY)
    assert solve(problem, solver).leakage > proved(exact)


@pytest.mark.parametrize(
    ("budgets", "names"),
    [
        ({"max_loss": 5.0}, r"can stay within 5 m: the smallest possible loss is (\S+) m"),
        ({"max_distance": 12.0}, r"the smallest possible cap is (\S+) m"),
        (
            {"user_max_loss": {"anna": 90.0, "ben": 2.0, "cleo": 70.0}},
            r"keep user ben within 2 m: the smallest possible budget is (\S+) m",
        ),
    ],
)
def test_an_infeasible_budget_is_named_with_the_smallest_feasible_one(
    budgets: dict[str, Any], names: str
) -> None:
    with pytest.raises(ProblemError, match=names):
        solve(on_square(**budgets), GRID_ONLY)


def test_the_smallest_feasible_budget_is_feasible_and_a_little_less_is_not() -> None:
    smallest = on_square(max_loss=500.0).smallest_loss
    solution = solve(on_square(max_loss=smallest * (1 + 1e-6)), GRID_ONLY)
    assert solution.loss <= smallest * (1 + 2e-6)
    with pytest.raises(ProblemError, match="smallest possible loss"):
        solve(on_square(max_loss=smallest * (1 - 1e-6)), GRID_ONLY)


@pytest.mark.parametrize("wanted", [0.2, 0.45])
def test_the_smallest_loss_for_a_bayes_error_is_the_question_turned_round(wanted: float) -> None:
    solution = solve(on_square(min_bayes_error=wanted), Exact(gap=1e-3))
    assert bayes_error(law_of(solution).joint) >= wanted - 1e-9
    assert "no mechanism on this grid reaches it below" in solution.status
    assert solve(on_square(max_loss=solution.loss * 1.001), GRID_ONLY).leakage <= 1 - wanted + 2e-3
    assert proved(solve(on_square(max_loss=solution.loss * 0.98), GRID_ONLY)) > 1 - wanted


def test_a_bayes_error_asked_for_goes_with_no_budget_and_no_other_objective() -> None:
    with pytest.raises(ProblemError, match="does not go with max_loss"):
        on_square(min_bayes_error=0.4, max_loss=60.0)
    with pytest.raises(ProblemError, match="objective bayes; got information"):
        on_square(min_bayes_error=0.4, objective=Information())
    with pytest.raises(ProblemError, match="between 0 and 1"):
        on_square(min_bayes_error=1.0)
    with pytest.raises(SfumatoError, match=r"largest possible is 0\.66"):
        solve(
            on_square(min_bayes_error=0.7), GRID_ONLY
        )  # three equal users: nobody can do better than 2/3


def test_by_the_rule_of_the_nearest_place_unseen_truths_cost_no_more_than_it() -> None:
    """The documented rule: no dearer than the nearest known truth, unless even the nearest report
    is further away."""
    problem = on_square(max_loss=70.0, max_distance=150.0)
    found = solve(problem, GRID_ONLY).mechanism
    assert isinstance(found, Channel) and found.average is not None
    channel = replace(found, nearest=True, average=None)
    held = np.clip(three_users(seed=9, points=20).truth, -150, 330)
    rows = channel.rows(held)
    distance = euclidean(held[:, None, :], rows.places[None, :, :])
    chance = np.asarray(rows.matrix.todense())
    assert np.allclose(chance.sum(axis=1), 1)
    assert distance[chance > 0].max() <= 150 * (1 + 1e-9)
    known = np.linalg.norm(held[:, None] - channel.truths, axis=2).argmin(axis=1)
    own = np.sum(
        np.asarray(channel.matrix.todense())
        * euclidean(channel.truths[:, None, :], channel.reports[None, :, :]),
        axis=1,
    )
    assert np.all(
        np.sum(chance * distance, axis=1) <= np.maximum(own[known], distance.min(axis=1)) + 1e-9
    )
    test = judge(channel, Samples(np.repeat(np.arange(3), 20), held, DATA.secrets), fitted_on=DATA)
    assert test.loss.kind == "exact" and test.loss.value <= own.max()


def test_known_truths_are_answered_by_their_own_row() -> None:
    channel = solve(on_square(max_loss=70.0), GRID_ONLY).mechanism
    assert isinstance(channel, Channel)
    rows = channel.rows(channel.truths)
    assert np.array_equal(np.asarray(rows.matrix.todense()), np.asarray(channel.matrix.todense()))


def test_a_law_that_does_not_hold_what_it_claims_is_refused() -> None:
    problem = on_square(
        max_loss=70.0, user_max_loss={"anna": 90.0, "ben": 60.0, "cleo": 100.0}, max_distance=150.0
    )
    solution = solve(problem, GRID_ONLY)
    channel = solution.mechanism
    assert isinstance(channel, Channel)
    verify(problem, channel, claimed=solution.leakage)
    with pytest.raises(
        SfumatoError, match="does not have the figures that it claims: the leakage is"
    ):
        verify(problem, channel, claimed=solution.leakage - 1e-6)
    away = Channel(channel.truths, np.array([[400.0, 400.0]]), np.ones((len(channel.truths), 1)))
    with pytest.raises(
        SfumatoError,
        match=r"the loss is .* over 70; a user's budget is exceeded; a report costs .* over 150",
    ):
        verify(problem, away, claimed=1 / 3)


def test_a_proof_of_drawn_truths_without_time_is_none_and_with_time_says_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sfumato.solver.exact.solver._PROOF_TRUTHS", 1)
    problem = two_people(max_loss=25.0)
    found = certificate_for(problem, seed=0)
    assert found is not None and found.bound(problem).grid > 0.5 + 0.2
    assert _from_a_draw(problem, seed=0, deadline=Deadline(0.0)) is None
