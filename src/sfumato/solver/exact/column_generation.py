"""Exact optimum over many reports: solve over a few, price all, add those that pay, stop at a
proven gap."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.interior_point import Restricted, solve_restricted
from sfumato.solver.exact.leakage_curves import (
    Information,
    Vulnerability,
    information,
    vulnerability,
)
from sfumato.solver.exact.linked_point import distances, solve_linked
from sfumato.solver.exact.pricing import Budgets, price, price_tight
from sfumato.solver.exact.task import Task, nearest_reports, repaired

_FEW_PAIRS = 100_000  # pairs (truth, report) that one interior-point run takes without pricing
# the same where most truths are shared and reports are no more than truths: most are then used
_MOST_PAIRS = 10_000_000
_FEW_REPORTS = 100  # nearest reports join the first round where they are no more than this


def silent(line: str) -> None:
    """Progress that nobody listens to."""


@dataclass(frozen=True)
class Scored:
    """Scores (all reports x guesses), multipliers (one per budget) and weights of pairs, which
    prove `bound`: no law on the task's reports within its budgets leaks less.  `leakage` is that
    of the best law known."""

    bound: float
    leakage: float
    scores: np.ndarray
    multipliers: np.ndarray
    pair_weights: np.ndarray | None = None


OnProof = Callable[[Scored], None]  # called with each better proof


def unheard(proof: Scored) -> None:
    """Proofs that nobody waits for."""


@dataclass(frozen=True)
class Optimum:
    """A mechanism, its measured figures and the proof.

    mechanism: truths x len(reports), rows sum to 1, the law over `reports` (indices into the task's
    reports).
    scores: all reports x guesses, a probability vector each (information: the posterior c, not its
    logarithm).
    multipliers: one per budget, in the order total, then secrets.
    pair_weights: of linked reports, one per pair of secrets.
    leakage: of this very law. bound: no law on the task's reports within its budgets leaks less.
    """

    mechanism: np.ndarray
    reports: np.ndarray
    scores: np.ndarray
    multipliers: np.ndarray
    leakage: float
    bound: float
    loss: float
    rounds: int
    pairs_touched: int
    pair_weights: np.ndarray | None = None

    @property
    def gap(self) -> float:
        """How far the leakage may be above the least possible."""
        return self.leakage - self.bound


def generate_columns(
    task: Task,
    *,
    gap: float,
    first_reports: np.ndarray | None = None,
    all_at_once: bool = True,
    deadline: Deadline = NEVER,
    max_rounds: int = 40,
    progress: Callable[[str], None] = silent,
    on_proof: OnProof = unheard,
) -> Optimum:
    """The least leakage within the budgets, up to `gap`.

    Main arguments:
      gap: stop once the leakage is proven to be at most this much above the least.
    Other arguments:
      first_reports: indices to begin with, such as a coarse subgrid or those of a neighbouring
      optimum; default every k-th.
      all_at_once: begin with all reports where they are few.
      deadline: after it the best law so far and its proof come back, whatever their gap.
      progress: is called with one line per round.
      on_proof: is called with each better proof, once it holds for all reports.
    Raises InfeasibleBudget with the smallest feasible budget.
    """
    least, where = nearest_reports(task)
    task.check_feasible(least)
    curve = partial(Information, prior=task.prior) if task.information else Vulnerability
    budgets = Budgets.of(task, least)
    active = _first(task, first_reports, budgets, where, all_at_once)
    everything = len(active) == task.report_count
    touched, dropped = np.zeros((2, task.report_count), dtype=bool)
    best: tuple[float, np.ndarray, np.ndarray, float] | None = None
    proof = _proof_without_reports(task, budgets)
    goal = 0.9 * gap if everything else max(0.6 * gap, 0.02)
    for round_number in range(1, max_rounds + 1):
        loss = task.loss_of(active)
        allowed = budgets.allowed(loss)
        if allowed is not None:  # reports that no truth may make
            usable = allowed.any(axis=0)
            active, loss, allowed = active[usable], loss[:, usable], allowed[:, usable]
        problem = Restricted(task.weights, loss, budgets.charges, budgets.limits, allowed)
        if task.linked is None:
            point = solve_restricted(problem, curve=curve, gap=goal, deadline=deadline)
        else:
            point = solve_linked(problem, task.linked, gap=goal, deadline=deadline)
            task = replace(task, pair_weights=point.pair_weights)
        law = repaired(point.mechanism, loss, budgets.charges, budgets.limits)
        leakage = measured_leakage(task, law)
        touched[active] = True
        if best is None or leakage < best[0]:
            best = (leakage, law, active, float(task.truth_mass @ np.sum(law * loss, axis=1)))
        priced = price(task, point.shares, point.multipliers, active, budgets, deadline=deadline)
        if priced is None:
            break  # out of time
        shares, bound, wanted = priced
        if bound > proof[0]:
            proof = bound, shares, point.multipliers, task.pair_weights
            if not budgets.tight.any():
                whole = budgets.all_multipliers(point.multipliers)
                on_proof(Scored(bound, best[0], shares, whole, task.pair_weights))
        progress(
            f"round {round_number}: {len(active)} reports, {point.steps} steps, leakage"
            f" {leakage:.6f}, own gap {point.leakage - point.bound:.1e}, bound {bound:.6f}"
        )
        missing = best[0] - proof[0]
        if missing <= gap or everything or deadline.passed:
            break
        goal = max(min(goal, 0.15 * missing), 0.6 * gap)
        # dropped at most once, and only early: without mass it may still pin the scores
        if missing > 8 * gap:
            idle = active[task.truth_mass @ law < 0.3 / len(active)]
            idle = idle[~dropped[idle]]
            dropped[idle] = True
            active = np.setdiff1d(active, idle)
        active = np.union1d(active, wanted)
        if not budgets.roomy(task, active):
            active = np.union1d(active, where)
    assert best is not None
    bound, shares, live_multipliers, pair_weights = proof
    multipliers = budgets.all_multipliers(live_multipliers)
    if budgets.tight.any():
        weighed = replace(task, pair_weights=pair_weights)
        bound, multipliers = price_tight(weighed, shares, multipliers, budgets)
    leakage, law, active, mean_loss = best
    used = law.sum(axis=0) > 0
    return Optimum(
        *(law[:, used], active[used], shares, multipliers, leakage, bound, mean_loss),
        rounds=round_number,
        pairs_touched=task.joint.shape[1] * int(touched.sum()),
        pair_weights=pair_weights,
    )


def _proof_without_reports(
    task: Task, budgets: Budgets
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray | None]:
    """What holds before any work: the adversary guesses without looking, whatever the report and
    the loss."""
    pair_weights = None
    if task.information:
        share, bound = task.prior, 0.0
    elif task.linked is not None:
        secrets = len(task.joint)
        share, bound, pair_weights = np.full(secrets, 1 / secrets), 0.0, task.linked[0]
    else:
        blind = task.weights.sum(axis=0)
        share, bound = np.eye(len(blind))[blind.argmax()], float(blind.max())
    shares = np.tile(share, (task.report_count, 1))
    return bound, shares, np.zeros(len(budgets.limits)), pair_weights


def _first(
    task: Task,
    first_reports: np.ndarray | None,
    budgets: Budgets,
    where: np.ndarray,
    all_at_once: bool,
) -> np.ndarray:
    """Reports of the first round: all if they are few, else the ones asked for and, where room is
    short, the nearest ones."""
    truths = task.joint.shape[1]
    shared = float(task.truth_mass[np.sum(task.joint > 0, axis=0) > 1].sum())
    most_used = task.report_count <= truths and shared > 0.5
    if all_at_once and truths * task.report_count <= (_MOST_PAIRS if most_used else _FEW_PAIRS):
        return np.arange(task.report_count)
    if first_reports is None:
        first_reports = np.arange(0, task.report_count, max(1, task.report_count // 150))
    active = np.unique(first_reports)
    if len(np.unique(where)) <= _FEW_REPORTS or not budgets.roomy(task, active):
        active = np.union1d(active, where)
    return active


def measured_leakage(task: Task, law: np.ndarray) -> float:
    """Leakage of the law as it will be sampled: vulnerability, I(X;Z) in nats, or the largest
    weighted sum of 1 - overlap."""
    joint_zx = law.T @ task.weights
    if task.linked is not None:
        return float((task.linked @ distances(joint_zx)).max())
    return information(joint_zx, task.prior) if task.information else vulnerability(joint_zx)
