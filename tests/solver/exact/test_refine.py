"""From coarse to fine: equal to the direct solve and to the full program, proven by the checker,
budgets of every kind kept."""

import itertools
import time
from typing import Any

import numpy as np
import pytest

from benchmarks.exact_tasks import common, distances
from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.measure.bound import Claim, bound_grid
from sfumato.mechanism.loss import euclidean
from sfumato.solver import Exact, Problem
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import refine
from sfumato.solver.exact.column_generation import Optimum, generate_columns, measured_leakage
from sfumato.solver.exact.refine import (
    Pairs,
    Places,
    interpolated,
    merged,
    solve_on_cells,
    solve_pairs,
    worth_merging,
)
from sfumato.solver.exact.task import Task
from sfumato.study.solve import solve


def unit_cells(n: int, **options: Any) -> tuple[Task, Places, np.ndarray]:
    """T(n) as a task, with its places and losses."""
    joint, truths, reports, max_loss = common(n)
    loss = distances(truths, reports)
    options.setdefault("max_loss", max_loss)
    return (
        Task(joint, lambda chosen: loss[:, chosen], len(reports), **options),
        Places(truths, reports, (0.0, 0.0), 1.0, euclidean),
        loss,
    )


def checked(task: Task, loss: np.ndarray, best: Optimum) -> float:
    claim = Claim(
        task.joint,
        "bayes" if task.gains is None else "gain",
        task.gains,
        task.max_loss,
        task.user_max_loss,
        task.cap,
    )
    return bound_grid(claim, best.scores, best.multipliers, lambda chosen: loss[:, chosen])


@pytest.mark.parametrize("n", [9, 12])
def test_refining_gives_the_direct_optimum_within_its_gap(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        refine, "_DIRECT", 2000
    )  # T(9) is merged once, to 5 x 5 blocks with thin ones at the edge; T(12) twice
    task, places, loss = unit_cells(n)
    assert worth_merging(task, places)
    best, direct = solve_on_cells(task, places, gap=1e-4), generate_columns(task, gap=1e-6)
    assert best.gap <= 1e-4
    assert direct.bound - 1e-9 <= best.leakage <= direct.leakage + 1e-4
    assert checked(task, loss, best) == pytest.approx(best.bound, abs=1e-9)
    assert np.allclose(best.mechanism.sum(axis=1), 1, atol=1e-13) and np.all(best.mechanism >= 0)
    assert measured_leakage(task, best.mechanism) == pytest.approx(best.leakage, abs=1e-12)
    assert task.truth_mass @ (best.mechanism * loss[:, best.reports]).sum(
        axis=1
    ) <= task.max_loss * (1 + 1e-12)
    assert best.pairs_touched < loss.size


@pytest.mark.parametrize(
    "options",
    [
        {"max_loss": None, "user_max_loss": np.array([1.5, 1.0, 2.0, 1.5])},
        {"cap": 3.0},
        {"max_loss": None, "cap": 2.5},
        {
            "gains": np.array(
                [[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.7, 0.7], [-0.5, 0.5, 0.5, -0.5]]
            )
        },
    ],
    ids=["per user", "average and cap", "cap alone", "gains"],
)
def test_refining_keeps_budgets_of_every_kind(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refine, "_DIRECT", 2000)
    task, places, loss = unit_cells(10, **options)
    best, direct = solve_on_cells(task, places, gap=1e-3), generate_columns(task, gap=1e-5)
    assert best.gap <= 1e-3
    assert direct.bound - 1e-9 <= best.leakage <= direct.leakage + 1e-3
    assert checked(task, loss, best) == pytest.approx(best.bound, abs=1e-9)
    own = loss[:, best.reports]
    charges, limits = task.budgets()
    assert np.all(charges.T @ (best.mechanism * own).sum(axis=1) <= limits * (1 + 1e-12))
    if task.cap is not None:
        assert own[best.mechanism > 0].max() <= task.cap


def test_the_coarse_scores_already_prove_a_close_bound() -> None:
    """Piecewise constant scores would lose some 0.03 here; linear ones lose a fraction of it."""
    task, places, loss = unit_cells(16)
    coarse_task, coarse_places = merged(task, places)
    coarse = generate_columns(coarse_task, gap=1e-4)
    fine = generate_columns(task, gap=1e-4)
    shares = interpolated(coarse.scores, places, coarse_places)
    assert np.allclose(shares.sum(axis=1), 1) and np.all(shares >= 0)
    bound = bound_grid(
        Claim(task.joint, max_loss=task.max_loss),
        shares,
        coarse.multipliers,
        lambda chosen: loss[:, chosen],
    )
    assert fine.bound - 0.015 <= bound <= fine.leakage


def test_merging_keeps_mass_places_and_distances() -> None:
    task, places, _ = unit_cells(8)
    coarse, blocks = merged(task, places)
    assert coarse.joint.shape == (4, 16) and coarse.report_count == 16
    assert coarse.joint.sum(axis=1) == pytest.approx(task.joint.sum(axis=1))
    assert blocks.reports == pytest.approx(2 * common(4)[1])
    assert task.truth_mass @ places.truths == pytest.approx(coarse.truth_mass @ blocks.truths)


def test_what_cannot_be_merged_goes_to_column_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refine, "_DIRECT", 100)
    task, places, _ = unit_cells(6)
    assert worth_merging(task, places)
    assert not worth_merging(
        Task(task.joint, task.loss_of, task.report_count, max_loss=1.0, information=True), places
    )
    alone = np.zeros_like(task.joint)
    alone[np.arange(36) % 4, np.arange(36)] = 1 / 36
    assert not worth_merging(Task(alone, task.loss_of, task.report_count, max_loss=1.0), places)
    tight = Task(
        task.joint, task.loss_of, task.report_count, max_loss=0.0
    )  # the truth itself is all that it allows
    assert solve_on_cells(tight, places, gap=1e-6).leakage == pytest.approx(
        task.joint.max(axis=0).sum()
    )


def test_a_time_limit_gives_the_best_so_far_with_a_proof() -> None:
    task, places, loss = unit_cells(20)
    start = time.monotonic()
    best = solve_on_cells(task, places, gap=1e-12, deadline=Deadline.after(0.05))
    assert time.monotonic() - start < 15  # a program over some pairs may be under way
    assert best.gap > 1e-12
    assert task.truth_mass @ (best.mechanism * loss[:, best.reports]).sum(
        axis=1
    ) <= task.max_loss * (1 + 1e-12)
    assert checked(task, loss, best) == pytest.approx(best.bound, abs=1e-9)


class _PassesAtLook(Deadline):
    """Passed from the given look at the clock on."""

    def __init__(self, look: int) -> None:
        super().__init__()
        object.__setattr__(self, "looks", itertools.count(1))
        object.__setattr__(self, "look", look)

    @property
    def left(self) -> float:
        return 60.0 if next(self.looks) < self.look else -1e-3


def test_time_may_run_out_while_the_program_is_written() -> None:
    task, _, loss = unit_cells(4)
    truth, report = np.indices(loss.shape).reshape(2, -1)
    pairs = Pairs(truth, report, loss.ravel())
    assert solve_pairs(task, pairs, deadline=_PassesAtLook(2)) is None
    assert solve_pairs(task, pairs, deadline=_PassesAtLook(3)) is not None


def test_samples_that_fill_their_cells_are_refined_through_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    secret = np.repeat([0, 1], 4000)
    truth = np.round(rng.normal(size=(8000, 2)) * 40 + np.where(secret == 0, -30, 30)[:, None], -1)
    truth = np.clip(truth, -60, 60)
    problem = Problem(
        Samples(secret=secret, truth=truth, secrets=("a", "b"), name="filled"),
        max_loss=30.0,
        region=Region((0.0, 0.0), 130.0),
        cell_m=10.0,
    )
    direct = solve(problem, Exact(gap=1e-3, plane=False))
    monkeypatch.setattr(refine, "_DIRECT", 2000)
    found = solve(problem, Exact(gap=1e-3, plane=False))
    assert any("pairs" in str(line.get("progress")) for line in found.history)
    assert not any("pairs" in str(line.get("progress")) for line in direct.history)
    assert found.certificate is not None
    assert found.leakage - found.certificate.bound(problem).grid <= 1e-3
    assert found.leakage == pytest.approx(direct.leakage, abs=1e-3)


@pytest.mark.slow
def test_fifty_by_fifty_is_proven_to_half_a_per_cent() -> None:
    task, places, loss = unit_cells(50)
    best = solve_on_cells(task, places, gap=0.005)
    assert best.leakage - checked(task, loss, best) <= 0.005
