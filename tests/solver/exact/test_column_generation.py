"""The optimum on arrays, against the full linear program, a general convex solver, closed forms and
the checker."""

import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.errors import ProblemError
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact.column_generation import generate_columns, measured_leakage
from sfumato.solver.feasible import InfeasibleBudget
from tests.solver.exact.programs import checked, full_program, random_problem, scattered, task_of


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
@pytest.mark.parametrize("seed", range(50))
def test_optimum_equals_the_full_program(seed: int, pricing: bool) -> None:
    _, joint, loss, options = random_problem(seed)
    best = generate_columns(
        task_of(joint, loss, **options),
        gap=1e-7,
        first_reports=np.array([0]),
        all_at_once=not pricing,
    )
    assert best.leakage == pytest.approx(full_program(joint, loss, **options), abs=1e-6)
    assert best.gap <= 1e-6
    law, own = best.mechanism, loss[:, best.reports]
    assert np.all(law >= 0) and np.allclose(law.sum(axis=1), 1, atol=1e-13)
    mean = (law * own).sum(axis=1)
    if "max_loss" in options:
        assert joint.sum(axis=0) @ mean <= options["max_loss"] * (1 + 1e-12)
    if "user_max_loss" in options:
        assert np.all(joint @ mean / joint.sum(axis=1) <= options["user_max_loss"] * (1 + 1e-12))
    if "cap" in options:
        assert own[law > 0].max() <= options["cap"] * (1 + 1e-12)
    assert checked(joint, loss, best, **options) == pytest.approx(best.bound, abs=1e-9)


def test_two_people_swap_with_chance_two_fifths() -> None:
    loss = np.array([[0.0, 100.0], [100.0, 0.0]])
    best = generate_columns(task_of(np.eye(2) / 2, loss, max_loss=40.0), gap=1e-11)
    assert 1 - best.leakage == pytest.approx(0.4, abs=1e-9)
    assert 1 - best.bound == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
@pytest.mark.parametrize(("size", "seed"), [(2, 0), (2, 1), (2, 2), (3, 3), (3, 4), (3, 5)])
def test_information_equals_a_general_solver(size: int, seed: int, pricing: bool) -> None:
    rng = np.random.default_rng(seed)
    joint = rng.exponential(size=(size, size)) + 2 * np.eye(size)
    joint /= joint.sum()
    loss = rng.random((size, size)) * (1 - np.eye(size)) * 10
    limit = 0.3 * float(joint.sum(axis=0) @ loss.mean(axis=1))
    task = task_of(joint, loss, max_loss=limit, information=True)
    rows = {"type": "eq", "fun": lambda m: m.reshape(size, size).sum(axis=1) - 1}
    spent = {
        "type": "ineq",
        "fun": lambda m: limit - joint.sum(axis=0) @ (m.reshape(size, size) * loss).sum(axis=1),
    }
    answers = []
    for _ in range(3):
        got = minimize(
            lambda m: measured_leakage(task, np.maximum(m, 1e-15).reshape(size, size)),
            rng.dirichlet(np.ones(size), size=size).ravel(),
            bounds=[(0, 1)] * size**2,
            constraints=[rows, spent],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 2000},
        )
        if got.success:
            answers.append(got.fun)
    best = generate_columns(task, gap=1e-7, first_reports=np.array([0]), all_at_once=not pricing)
    assert best.gap <= 1e-6
    assert best.leakage == pytest.approx(min(answers), abs=1e-6)
    assert checked(joint, loss, best, max_loss=limit, information=True) == pytest.approx(
        best.bound, abs=1e-9
    )


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
def test_information_stays_finite_where_the_cap_hides_a_secret_from_a_report(pricing: bool) -> None:
    """The end reports are within the cap of one secret only: the posterior of the other is 0
    there."""
    truths, reports = np.arange(8.0), np.arange(8.0)
    loss = np.abs(truths[:, None] - reports)
    joint = np.zeros((2, 8))
    joint[(truths > 3.5).astype(int), np.arange(8)] = 1 / 8
    best = generate_columns(
        task_of(joint, loss, cap=2.0, information=True),
        gap=1e-6,
        first_reports=np.array([0, 3, 7]),
        all_at_once=not pricing,
    )
    assert best.gap <= 1e-6
    assert checked(joint, loss, best, cap=2.0, information=True) == pytest.approx(
        best.bound, abs=1e-9
    )
    assert 0 < best.leakage < np.log(2)


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_a_budget_at_its_smallest_value_is_proven_too(
    seed: int, information: bool, pricing: bool
) -> None:
    rng, joint, loss, _ = random_problem(seed)
    loss = np.round(loss)  # ties: several nearest reports
    least = loss.min(axis=1)
    options: dict[str, Any] = {"information": information}
    if seed % 2:
        options["max_loss"] = float(joint.sum(axis=0) @ least)
    else:  # one user without room, the others with
        options["user_max_loss"] = joint @ least / joint.sum(axis=1)
        options["user_max_loss"][1:] += rng.random(len(joint) - 1)
    best = generate_columns(
        task_of(joint, loss, **options),
        gap=1e-6,
        first_reports=np.array([0]),
        all_at_once=not pricing,
    )
    assert best.gap <= 1e-5
    assert checked(joint, loss, best, **options) == pytest.approx(best.bound, abs=1e-7)
    if not information:
        del options["information"]
        assert best.leakage == pytest.approx(full_program(joint, loss, **options), abs=1e-5)


def test_infeasible_budgets_name_the_smallest_feasible_one() -> None:
    loss = np.array([[3.0, 5.0], [6.0, 4.0]])
    joint = np.eye(2) / 2
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"max_loss": 3.0}, "3.5"),
        ({"cap": 3.5}, "4"),
        (
            {"user_max_loss": np.array([3.0, 3.9])},
            "user 1 within 3.9: the smallest possible budget is 4",
        ),
    ]
    for options, smallest in wrong:
        with pytest.raises(InfeasibleBudget, match=smallest):
            generate_columns(task_of(joint, loss, **options), gap=1e-3)
    tight = generate_columns(task_of(joint, loss, max_loss=3.5), gap=1e-3)
    assert tight.leakage == pytest.approx(1.0) and tight.loss == pytest.approx(3.5)
    assert checked(joint, loss, tight, max_loss=3.5) == pytest.approx(1.0, abs=1e-3)


def test_a_secret_or_truth_without_probability_is_refused() -> None:
    for joint in (np.array([[1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 0.0]])):
        with pytest.raises(ProblemError, match="drop the empty ones"):
            task_of(joint=joint, loss=1 - np.eye(2))


def test_a_time_limit_gives_the_best_so_far_with_a_proof() -> None:
    joint, _, _, loss = scattered(300, 4, 40)
    start = time.monotonic()
    best = generate_columns(
        task_of(joint, loss, max_loss=15.0), gap=1e-9, deadline=Deadline.after(0.5)
    )
    assert time.monotonic() - start < 20  # one step and one pricing pass may be under way
    assert best.gap > 1e-9
    assert joint.sum(axis=0) @ (best.mechanism * loss[:, best.reports]).sum(axis=1) <= 15.0 * (
        1 + 1e-12
    )
    assert checked(joint, loss, best, max_loss=15.0) == pytest.approx(best.bound, abs=1e-9)


def test_reports_of_a_neighbouring_optimum_save_rounds() -> None:
    joint, _, _, loss = scattered(40, 4, 30)
    near = generate_columns(
        task_of(joint, loss, max_loss=20.0),
        gap=1e-4,
        first_reports=np.arange(0, 900, 90),
        all_at_once=False,
    )
    cold = generate_columns(
        task_of(joint, loss, max_loss=20.5),
        gap=1e-4,
        first_reports=np.arange(0, 900, 90),
        all_at_once=False,
    )
    warm = generate_columns(
        task_of(joint, loss, max_loss=20.5), gap=1e-4, first_reports=near.reports, all_at_once=False
    )
    assert warm.gap <= 1e-4 and cold.gap <= 1e-4
    assert warm.rounds <= cold.rounds
