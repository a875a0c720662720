"""The exact solver on arrays, against the full linear program, a general convex solver, closed forms and the checker."""

import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from sfumato.errors import ProblemError
from sfumato.measure.bound import Claim, bound_grid, bound_plane
from sfumato.solver.exact import column_generation
from sfumato.solver.exact.column_generation import Optimum, measured_leakage, solve
from sfumato.solver.exact.plane_proof import split_to_keep, split_until, values_off_grid
from sfumato.solver.exact.smallest_loss import min_loss_given_max_leakage
from sfumato.solver.exact.task import InfeasibleBudget, Task


def full_program(
    joint: np.ndarray,
    loss: np.ndarray,
    max_loss: float | None = None,
    user_max_loss: np.ndarray | None = None,
    cap: float | None = None,
    gains: np.ndarray | None = None,
) -> float:
    """The whole linear program, one variable per pair, by HiGHS."""
    weights = joint.T if gains is None else joint.T @ gains.T
    truths, reports = loss.shape
    size = truths * reports + reports
    rows, limits = [], []
    for z in range(reports):
        for guess in range(weights.shape[1]):
            row = np.zeros(size)
            row[z : truths * reports : reports] = weights[:, guess]
            row[truths * reports + z] = -1
            rows.append(row)
            limits.append(0.0)
    charges = [] if max_loss is None else [(joint.sum(axis=0), max_loss)]
    if user_max_loss is not None:
        charges += [(joint[x], joint[x].sum() * user_max_loss[x]) for x in range(len(joint))]
    for charge, limit in charges:
        rows.append(np.concatenate([(charge[:, None] * loss).ravel(), np.zeros(reports)]))
        limits.append(limit)
    equal = np.zeros((truths, size))
    for w in range(truths):
        equal[w, w * reports : (w + 1) * reports] = 1
    top = np.where(loss.ravel() <= (np.inf if cap is None else cap), None, 0.0)
    bounds = [(0, one) for one in top] + [(None, None)] * reports
    goal = np.r_[np.zeros(truths * reports), np.ones(reports)]
    answer = linprog(goal, np.array(rows), limits, equal, np.ones(truths), bounds=bounds, method="highs")
    assert answer.status == 0
    return float(answer.fun)


def random_problem(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, dict[str, Any]]:
    """Shared and owned truths, unequal priors, distances and arbitrary losses, budgets of every kind, gains: by turns."""
    rng = np.random.default_rng(seed)
    secrets, truths, reports = rng.integers(2, 5), rng.integers(3, 9), rng.integers(3, 9)
    joint = rng.exponential(size=(secrets, truths))
    if seed % 2:
        joint *= rng.random(joint.shape) < 0.5
        joint[rng.integers(secrets, size=truths), np.arange(truths)] += 0.3
        joint[np.arange(secrets), rng.integers(truths, size=secrets)] += 0.2
    joint /= joint.sum()
    if seed % 3 == 0:
        loss = rng.random((truths, reports)) * 10
    else:
        loss = np.linalg.norm(rng.random((truths, 1, 2)) * 10 - rng.random((1, reports, 2)) * 10, axis=2)
    options: dict[str, Any] = {}
    least = loss.min(axis=1)
    spread = loss.mean(axis=1) - least
    if seed % 5 in (0, 1, 2):
        options["max_loss"] = float(joint.sum(axis=0) @ (least + rng.random() * spread))
    if seed % 5 in (2, 3):
        options["user_max_loss"] = (joint @ (least + rng.random() * spread)) / joint.sum(axis=1)
    if seed % 5 in (1, 4):
        options["cap"] = float(max(least.max(), np.quantile(loss, 0.7)))
    if seed % 7 == 0:
        options["gains"] = rng.normal(size=(rng.integers(2, 6), secrets))
    return rng, joint, loss, options


def task_of(joint: np.ndarray, loss: np.ndarray, **options: Any) -> Task:
    return Task(joint, lambda i: loss[:, i], loss.shape[1], **options)


def checked(joint: np.ndarray, loss: np.ndarray, best: Optimum, **options: Any) -> float:
    """The bound as the independent checker finds it."""
    if options.pop("information", False):
        options["objective"] = "information"
    elif "gains" in options:
        options["objective"] = "gain"
    return bound_grid(Claim(joint, **options), best.scores, best.multipliers, lambda i: loss[:, i])


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
@pytest.mark.parametrize("seed", range(50))
def test_optimum_equals_the_full_program(seed: int, pricing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, joint, loss, options = random_problem(seed)
    if pricing:
        monkeypatch.setattr(column_generation, "_ALL_AT_ONCE", 0)
    best = solve(task_of(joint, loss, **options), gap=1e-7, first_reports=np.array([0]))
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
    best = solve(task_of(np.eye(2) / 2, loss, max_loss=40.0), gap=1e-11)
    assert 1 - best.leakage == pytest.approx(0.4, abs=1e-9)
    assert 1 - best.bound == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
@pytest.mark.parametrize(("size", "seed"), [(2, 0), (2, 1), (2, 2), (3, 3), (3, 4), (3, 5)])
def test_information_equals_a_general_solver(size: int, seed: int, pricing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    joint = rng.exponential(size=(size, size)) + 2 * np.eye(size)
    joint /= joint.sum()
    loss = rng.random((size, size)) * (1 - np.eye(size)) * 10
    limit = 0.3 * float(joint.sum(axis=0) @ loss.mean(axis=1))
    task = task_of(joint, loss, max_loss=limit, information=True)
    rows = {"type": "eq", "fun": lambda m: m.reshape(size, size).sum(axis=1) - 1}
    spent = {"type": "ineq", "fun": lambda m: limit - joint.sum(axis=0) @ (m.reshape(size, size) * loss).sum(axis=1)}
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
    if pricing:
        monkeypatch.setattr(column_generation, "_ALL_AT_ONCE", 0)
    best = solve(task, gap=1e-7, first_reports=np.array([0]))
    assert best.gap <= 1e-6
    assert best.leakage == pytest.approx(min(answers), abs=1e-6)
    assert checked(joint, loss, best, max_loss=limit, information=True) == pytest.approx(best.bound, abs=1e-9)


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
def test_information_stays_finite_where_the_cap_hides_a_secret_from_a_report(pricing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end reports are within the cap of one secret only: the posterior of the other is 0 there."""
    truths, reports = np.arange(8.0), np.arange(8.0)
    loss = np.abs(truths[:, None] - reports)
    joint = np.zeros((2, 8))
    joint[(truths > 3.5).astype(int), np.arange(8)] = 1 / 8
    if pricing:
        monkeypatch.setattr(column_generation, "_ALL_AT_ONCE", 0)
    best = solve(task_of(joint, loss, cap=2.0, information=True), gap=1e-6, first_reports=np.array([0, 3, 7]))
    assert best.gap <= 1e-6
    assert checked(joint, loss, best, cap=2.0, information=True) == pytest.approx(best.bound, abs=1e-9)
    assert 0 < best.leakage < np.log(2)


@pytest.mark.parametrize("pricing", [False, True], ids=["all at once", "priced"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_a_budget_at_its_smallest_value_is_proven_too(seed: int, information: bool, pricing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, joint, loss, _ = random_problem(seed)
    loss = np.round(loss)  # ties: several nearest reports
    least = loss.min(axis=1)
    options: dict[str, Any] = {"information": information}
    if seed % 2:
        options["max_loss"] = float(joint.sum(axis=0) @ least)
    else:  # one user without room, the others with
        options["user_max_loss"] = joint @ least / joint.sum(axis=1)
        options["user_max_loss"][1:] += rng.random(len(joint) - 1)
    if pricing:
        monkeypatch.setattr(column_generation, "_ALL_AT_ONCE", 0)
    best = solve(task_of(joint, loss, **options), gap=1e-6, first_reports=np.array([0]))
    assert best.gap <= 1e-5
    assert checked(joint, loss, best, **options) == pytest.approx(best.bound, abs=1e-7)
    if not information:
        del options["information"]
        assert best.leakage == pytest.approx(full_program(joint, loss, **options), abs=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_smallest_loss_undoes_the_optimum(seed: int) -> None:
    _, joint, loss, _ = random_problem(6 * seed + 1)
    nearest = np.eye(loss.shape[1])[loss.argmin(axis=1)]
    task = task_of(joint, loss)
    aim = 0.5 * (measured_leakage(task, nearest) + joint.sum(axis=1).max())
    back = min_loss_given_max_leakage(task, aim, tolerance=1e-4)
    assert back.leakage <= aim + 1e-12
    assert back.loss_bound <= back.loss <= back.loss_bound * (1 + 1e-4) + 1e-9
    less = back.loss_bound * (1 - 1e-6)
    if less > joint.sum(axis=0) @ loss.min(axis=1):
        assert full_program(joint, loss, max_loss=less) >= aim - 1e-9  # with less loss nobody leaks as little


def test_the_smallest_loss_stops_at_its_time_limit_with_what_it_has() -> None:
    joint, _, _, loss = scattered(200, 4, 25)
    task = task_of(joint, loss)
    start = time.monotonic()
    short = min_loss_given_max_leakage(task, 0.5, tolerance=1e-9, time_limit=0.2)
    assert time.monotonic() - start < 20  # one step and one pricing pass may be under way
    assert short.leakage <= 0.5 + 1e-12
    assert short.loss_bound < short.loss * (1 - 1e-9)
    with pytest.raises(ProblemError, match="too short"):
        min_loss_given_max_leakage(task_of(joint, loss, cap=60.0), 0.26, time_limit=1e-3)


def test_infeasible_budgets_name_the_smallest_feasible_one() -> None:
    loss = np.array([[3.0, 5.0], [6.0, 4.0]])
    joint = np.eye(2) / 2
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"max_loss": 3.0}, "3.5"),
        ({"cap": 3.5}, "4"),
        ({"user_max_loss": np.array([3.0, 3.9])}, "1 \\(3.9; smallest feasible 4"),
    ]
    for options, smallest in wrong:
        with pytest.raises(InfeasibleBudget, match=smallest):
            solve(task_of(joint, loss, **options), gap=1e-3)
    tight = solve(task_of(joint, loss, max_loss=3.5), gap=1e-3)
    assert tight.leakage == pytest.approx(1.0) and tight.loss == pytest.approx(3.5)
    assert checked(joint, loss, tight, max_loss=3.5) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"max_loss": np.nan},
        {"cap": -1.0},
        {"user_max_loss": np.array([1.0])},
        {"information": True, "gains": np.eye(2)},
        {"joint": np.eye(2)},
        {"joint": np.array([[1.0, 0.0]])},
    ],
)
def test_a_task_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        task_of(**{"joint": np.eye(2) / 2, "loss": 1 - np.eye(2), **options})


def scattered(count: int, secrets: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Truths of a few secrets on a square of 100 m, and cells over it."""
    truths = np.random.default_rng(0).random((count, 2)) * 100
    joint = np.zeros((secrets, count))
    joint[np.arange(count) % secrets, np.arange(count)] = 1 / count
    axis = (np.arange(cells) + 0.5) * 100 / cells
    centres = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return joint, truths, centres, np.linalg.norm(truths[:, None] - centres, axis=2)


@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_splitting_cells_brings_the_plane_near_the_grid_and_the_checker_agrees(information: bool) -> None:
    joint, truths, centres, loss = scattered(12, 3, 10)
    task = task_of(joint, loss, max_loss=25.0, information=information)
    best = solve(task, gap=1e-6)
    claim = Claim(joint, "information" if information else "bayes", max_loss=25.0)
    rough = bound_plane(claim, best.scores, best.multipliers, truths, centres, 5.0)
    proof = split_until(task, truths, centres, 5.0, best.scores, best.multipliers, goal=best.bound - 0.01)
    fine = bound_plane(claim, proof.scores, proof.multipliers, truths, proof.centres_m, proof.half_sides_m)
    assert fine == pytest.approx(proof.bound, abs=1e-9)
    assert rough <= fine <= best.bound
    assert fine >= best.bound - 0.03


@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_values_that_fit_the_plane_prove_more_than_the_grids_own(information: bool) -> None:
    joint, truths, centres, loss = scattered(12, 3, 10)
    task = task_of(joint, loss, max_loss=12.0, information=information)
    best = solve(task, gap=1e-6)
    blind = 0.0 if information else 1 / 3
    claim = Claim(joint, "information" if information else "bayes", max_loss=12.0)
    values, multipliers, bound = values_off_grid(task, truths, centres, best.reports, gap=1e-4)
    assert best.leakage > blind and bound <= best.leakage  # more reports to choose from than the grid has
    proof = split_to_keep(task, truths, centres, 5.0, values, multipliers, slack=0.01, max_rounds=6)
    checked_bound = bound_plane(claim, proof.scores, proof.multipliers, truths, proof.centres_m, proof.half_sides_m)
    assert proof.bound <= checked_bound + 1e-9
    assert bound - 0.01 - 1e-9 <= checked_bound <= bound + 1e-4
    before = split_until(task, truths, centres, 5.0, best.scores, best.multipliers, goal=best.bound - 0.01)
    assert checked_bound > before.bound


def test_a_time_limit_gives_the_best_so_far_with_a_proof() -> None:
    joint, _, _, loss = scattered(300, 4, 40)
    start = time.monotonic()
    best = solve(task_of(joint, loss, max_loss=15.0), gap=1e-9, time_limit=0.5)
    assert time.monotonic() - start < 20  # one step and one pricing pass may be under way
    assert best.gap > 1e-9
    assert joint.sum(axis=0) @ (best.mechanism * loss[:, best.reports]).sum(axis=1) <= 15.0 * (1 + 1e-12)
    assert checked(joint, loss, best, max_loss=15.0) == pytest.approx(best.bound, abs=1e-9)


def test_reports_of_a_neighbouring_optimum_save_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_generation, "_ALL_AT_ONCE", 0)
    joint, _, _, loss = scattered(40, 4, 30)
    near = solve(task_of(joint, loss, max_loss=20.0), gap=1e-4, first_reports=np.arange(0, 900, 90))
    cold = solve(task_of(joint, loss, max_loss=20.5), gap=1e-4, first_reports=np.arange(0, 900, 90))
    warm = solve(task_of(joint, loss, max_loss=20.5), gap=1e-4, first_reports=near.reports)
    assert warm.gap <= 1e-4 and cold.gap <= 1e-4
    assert warm.rounds <= cold.rounds
