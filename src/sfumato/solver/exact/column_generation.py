"""Exact optimum over many reports: solve over a few, price all, add those that pay, stop at a proven gap.

A report z is worth nothing to the optimum if some scores s_z make every truth's cost at z at least
that truth's value u_w. If each truth has one owner x the least such scores are
s(x) = max over truths of x of [ v_w - lambda d(w,z) ]_+  (information: c(x) = p(x) max exp(...)),
and they exist iff they sum to at most 1. Shared truths need a tiny program per report (least_scores).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.solver.exact.interior_point import Point, Restricted, solve_restricted
from sfumato.solver.exact.least_scores import least_scores
from sfumato.solver.exact.task import Task, check_feasible, nearest_reports, within_budgets

_ALL_AT_ONCE = 100_000  # pairs (truth, report) that one interior-point run takes without pricing
_MOST_PAIRS = 10_000_000  # the same where most truths are shared and reports are no more than truths: most are then used
_BATCH = (100, 400)  # reports added per round, at least and at most; between them 1 % of all
_MIX = 1e-11  # of the prior in each posterior: keeps its logarithm finite and costs at most this much of the bound


def silent(line: str) -> None:
    """Progress that nobody listens to."""


@dataclass(frozen=True)
class Optimum:
    """A mechanism, its measured figures and the proof.

    mechanism: truths x len(reports), rows sum to 1, the law over `reports` (indices into the task's reports).
    scores: all reports x guesses, a probability vector each (information: the posterior c, not its logarithm).
    multipliers: one per budget, in the order total, then secrets.
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

    @property
    def gap(self) -> float:
        """How far the leakage may be above the least possible."""
        return self.leakage - self.bound


def solve(
    task: Task,
    *,
    gap: float,
    first_reports: np.ndarray | None = None,
    time_limit: float | None = None,
    max_rounds: int = 40,
    progress: Callable[[str], None] = silent,
) -> Optimum:
    """The least leakage within the budgets, up to `gap`.

    Main arguments:
      gap: stop once the leakage is proven to be at most this much above the least.
    Other arguments:
      first_reports: indices to begin with, such as a coarse subgrid or those of a neighbouring optimum; default every k-th.
      time_limit: seconds, after which the best law so far and its proof come back, whatever their gap.
      progress: is told one line per round.
    Raises InfeasibleBudget with the smallest feasible budget.
    """
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    least, where = nearest_reports(task)
    check_feasible(task, least)
    budgets = _Budgets.of(task, least)
    truths = task.joint.shape[1]
    active = _first(task, first_reports, budgets, where)
    everything = len(active) == task.report_count
    touched, dropped = np.zeros((2, task.report_count), dtype=bool)
    best: tuple[float, np.ndarray, np.ndarray, float] | None = None
    proof = _proof_without_reports(task, budgets)
    goal = 0.9 * gap if everything else max(0.6 * gap, 0.02)
    for round_number in range(1, max_rounds + 1):
        loss = task.loss_of(active)
        allowed = budgets.allowed(task, loss)
        if allowed is not None:  # reports that no truth may make
            usable = allowed.any(axis=0)
            active, loss, allowed = active[usable], loss[:, usable], allowed[:, usable]
        problem = Restricted(task.weights, loss, budgets.charges, budgets.limits, allowed)
        point = solve_restricted(problem, prior=task.prior if task.information else None, gap=goal, deadline=deadline)
        nearest_law = np.zeros_like(loss)
        nearest_law[np.arange(truths), loss.argmin(axis=1)] = 1.0
        law = within_budgets(point.mechanism, loss, nearest_law, budgets.charges, budgets.limits)
        leakage = measured_leakage(task, law)
        shares, bound, wanted = price(task, point, active, budgets)
        touched[active] = True
        if best is None or leakage < best[0]:
            best = (leakage, law, active, float(task.truth_mass @ np.sum(law * loss, axis=1)))
        if bound > proof[0]:
            proof = bound, shares, point.multipliers
        progress(
            f"round {round_number}: {len(active)} reports, {point.steps} steps, leakage {leakage:.6f}, "
            f"own gap {point.leakage - point.bound:.1e}, bound {bound:.6f}"
        )
        missing = best[0] - proof[0]
        if missing <= gap or everything or time.monotonic() > deadline:
            break
        goal = max(min(goal, 0.15 * missing), 0.6 * gap)
        if missing > 8 * gap:  # a report is dropped at most once, and only early: without mass it may still pin the scores
            idle = active[task.truth_mass @ law < 0.3 / len(active)]
            idle = idle[~dropped[idle]]
            dropped[idle] = True
            active = np.setdiff1d(active, idle)
        active = np.union1d(active, wanted)
        if not budgets.roomy(task, active):
            active = np.union1d(active, where)
    assert best is not None
    bound, shares, live_multipliers = proof
    multipliers = np.zeros(len(budgets.live))
    multipliers[budgets.live] = live_multipliers
    if budgets.tight.any():
        bound, multipliers = _price_tight(task, shares, multipliers, budgets)
    leakage, law, active, mean_loss = best
    used = law.sum(axis=0) > 0
    return Optimum(law[:, used], active[used], shares, multipliers, leakage, bound, mean_loss, round_number, truths * int(touched.sum()))


def _proof_without_reports(task: Task, budgets: "_Budgets") -> tuple[float, np.ndarray, np.ndarray]:
    """What holds before any work: the adversary guesses without looking, whatever the report and the loss."""
    if task.information:
        share, bound = task.prior, 0.0
    else:
        blind = task.weights.sum(axis=0)
        share, bound = np.eye(len(blind))[blind.argmax()], float(blind.max())
    return bound, np.tile(share, (task.report_count, 1)), np.zeros(len(budgets.limits))


def _first(task: Task, first_reports: np.ndarray | None, budgets: "_Budgets", where: np.ndarray) -> np.ndarray:
    """Reports of the first round: all if they are few, else the ones asked for and, where room is short, the nearest ones."""
    truths = task.joint.shape[1]
    shared = float(task.truth_mass[np.sum(task.joint > 0, axis=0) > 1].sum())
    most_used = task.report_count <= truths and shared > 0.5
    few = _MOST_PAIRS if _ALL_AT_ONCE and most_used else _ALL_AT_ONCE
    if truths * task.report_count <= few:
        return np.arange(task.report_count)
    if first_reports is None:
        first_reports = np.arange(0, task.report_count, max(1, task.report_count // 150))
    active = np.unique(first_reports)
    if len(np.unique(where)) <= _BATCH[0] or not budgets.roomy(task, active):
        active = np.union1d(active, where)
    return active


@dataclass(frozen=True)
class _Budgets:
    """The budgets that leave room, and the truths that the others bind to their nearest report."""

    least: np.ndarray  # least loss of each truth
    charges: np.ndarray  # truths x live budgets
    limits: np.ndarray
    live: np.ndarray  # which budgets leave room
    tight: np.ndarray  # which truths have no choice

    @classmethod
    def of(cls, task: Task, least: np.ndarray) -> "_Budgets":
        charges, limits = task.budgets()
        floor = charges.T @ least
        live = limits - floor > 1e-9 * np.maximum(floor, 1e-3 * charges.sum(axis=0))
        return cls(least, charges[:, live], limits[live], live, np.any(charges[:, ~live] > 0, axis=1))

    def allowed(self, task: Task, loss: np.ndarray) -> np.ndarray | None:
        """Pairs that the cap and the tight budgets leave; None when all are."""
        allowed = None
        if task.cap is not None:
            allowed = loss <= np.maximum(task.cap, self.least)[:, None] * (1 + 1e-12)
        if self.tight.any():
            nearest = loss <= (self.least * (1 + 1e-9) + 1e-12)[:, None]
            allowed = np.where(self.tight[:, None], nearest, True if allowed is None else allowed)
        return allowed

    def roomy(self, task: Task, active: np.ndarray) -> bool:
        """Whether these reports alone leave at least half of the room that all reports leave."""
        if self.tight.any():
            return False
        near = task.loss_of(active).min(axis=1)
        if task.cap is not None and not np.all(near <= task.cap):
            return False
        return bool(np.all(self.limits - self.charges.T @ near >= 0.5 * (self.limits - self.charges.T @ self.least)))


def _price_tight(task: Task, shares: np.ndarray, multipliers: np.ndarray, budgets: _Budgets) -> tuple[float, np.ndarray]:
    """Bound and multipliers that hold without binding truths to their nearest report.

    A budget at its smallest feasible value has no largest multiplier that helps: the bound grows with it until every
    other report is too dear, and rounding grows too. The best of a few sizes is taken.
    """
    charges = task.budgets()[0]
    tight_charge = charges[:, ~budgets.live].sum(axis=1)
    values, needed = np.full(len(tight_charge), np.inf), 0.0
    for final in (False, True):
        for indices in task.chunks():
            loss = task.loss_of(indices)
            cost = _cost(task, shares[indices], loss, charges @ multipliers, None)
            allowed = budgets.allowed(task, loss)
            assert allowed is not None
            if not final:
                values = np.minimum(values, np.where(allowed, cost, np.inf).min(axis=1))
                continue
            barred = ~allowed & budgets.tight[:, None]
            if task.cap is not None:
                barred &= loss <= task.cap * (1 + 1e-12)
            rows, columns = np.nonzero(barred)
            short = values[rows] - cost[rows, columns]
            needed = max(needed, float(np.max(short / (tight_charge[rows] * (loss[rows, columns] - budgets.least[rows])), initial=0.0)))
    best = (-np.inf, multipliers)
    for size in needed * 10.0 ** np.arange(0, -7, -1):
        trial = multipliers.copy()
        trial[~budgets.live] = size
        best = max(best, (_whole_bound(task, shares, trial), trial), key=lambda one: one[0])
    return best


def _whole_bound(task: Task, shares: np.ndarray, multipliers: np.ndarray) -> float:
    """The bound that shares and multipliers prove over all reports."""
    charges, limits = task.budgets()
    floor = np.full(len(charges), np.inf)
    for indices in task.chunks():
        loss = task.loss_of(indices)
        allowed = None if task.cap is None else loss <= task.cap * (1 + 1e-12)
        floor = np.minimum(floor, _cost(task, shares[indices], loss, charges @ multipliers, allowed).min(axis=1))
    return float(floor.sum() - multipliers @ limits)


def _spread(task: Task, worst: np.ndarray, price_of_loss: float) -> np.ndarray:
    """Reports that miss most, no two closer (in loss) than what the miss is worth."""
    batch = int(np.clip(task.report_count // 100, *_BATCH))
    candidates = np.argsort(-worst)[:4000]
    candidates = candidates[worst[candidates] > 1e-7]
    truths = np.linspace(0, task.joint.shape[1] - 1, 12).astype(int)
    seen = task.loss_of(candidates)[truths]
    free = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    for k in range(len(candidates)):
        if free[k]:
            chosen.append(int(candidates[k]))
            if len(chosen) == batch:
                break
            apart = np.abs(seen - seen[:, [k]]).max(axis=0)
            free &= apart >= 3.0 * worst[candidates[k]] / max(price_of_loss, 1e-12)
    return np.array(chosen, dtype=int)


def measured_leakage(task: Task, law: np.ndarray) -> float:
    """Leakage of the law as it will be sampled: vulnerability, or I(X;Z) in nats."""
    joint_zx = law.T @ task.weights
    if not task.information:
        return float(joint_zx.max(axis=1).sum())
    joint_zx = joint_zx[joint_zx.sum(axis=1) > 0]
    ratio = joint_zx / (joint_zx.sum(axis=1, keepdims=True) * task.prior)
    return float(np.sum(joint_zx * np.log(np.where(joint_zx > 0, ratio, 1.0))))


def price(task: Task, point: Point, active: np.ndarray, budgets: _Budgets) -> tuple[np.ndarray, float, np.ndarray]:
    """Shares at every report, the bound they prove, and the reports most worth adding."""
    mass = task.truth_mass
    price_of_loss = budgets.charges @ point.multipliers
    shares = np.empty((task.report_count, task.weights.shape[1]))
    own = _positive(task, point.shares)
    shares[active] = own
    loss = task.loss_of(active)
    values = _cost(task, own, loss, price_of_loss, budgets.allowed(task, loss)).min(axis=1)
    is_active = np.zeros(task.report_count, dtype=bool)
    is_active[active] = True
    floor, worst = values.copy(), np.zeros(task.report_count)
    for indices in task.chunks(1_000_000):
        indices = indices[~is_active[indices]]
        if not len(indices):
            continue
        loss = task.loss_of(indices)
        allowed = budgets.allowed(task, loss)
        need = (values[:, None] - price_of_loss[:, None] * loss) / mass[:, None]
        if allowed is not None:
            need[~allowed] = -np.inf
        found = scores_for(task, need)
        cost = _cost(task, found, loss, price_of_loss, allowed)
        shares[indices] = found
        worst[indices] = np.max((values[:, None] - cost) / mass[:, None], axis=0)
        floor = np.minimum(floor, cost.min(axis=1))
    wanted = _spread(task, worst, float(np.sum(price_of_loss)))
    return shares, float(floor.sum() - point.multipliers @ budgets.limits), wanted


def scores_for(task: Task, need: np.ndarray) -> np.ndarray:
    """Shares that meet the needs, reports x guesses: the one-owner formula, and a tiny program where it fails."""
    conditional = task.weights / task.truth_mass[:, None]
    prior = task.prior if task.information else None
    if task.gains is not None:
        return least_scores(conditional, need)
    asked = np.stack([need[row > 0].max(axis=0) for row in task.joint], axis=1)
    asked = task.prior * np.exp(asked) if task.information else np.maximum(asked, 0.0)
    total = asked.sum(axis=1, keepdims=True)
    spare = np.maximum(1 - total, 0.0)
    found = (asked + spare * task.prior) / (total + spare)
    hard = np.flatnonzero(total[:, 0] > 1 + 1e-9)
    if len(hard):
        found[hard] = least_scores(conditional, need[:, hard], prior)
    return _positive(task, found)


def _positive(task: Task, shares: np.ndarray) -> np.ndarray:
    """For information, posteriors without zeros; other shares as they are."""
    return (1 - _MIX) * shares + _MIX * task.prior if task.information else shares


def _cost(task: Task, shares: np.ndarray, loss: np.ndarray, price_of_loss: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """sum_x p(x,w) s_z(x) + price times loss, truths x reports; infinite where not allowed."""
    cost = task.weights @ (np.log(shares / task.prior) if task.information else shares).T
    cost += price_of_loss[:, None] * loss
    if allowed is not None:
        cost[~allowed] = np.inf
    return cost
