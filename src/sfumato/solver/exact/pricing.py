"""What reports are worth: costs, the scores that make a report useless to every truth, and the
bound over all reports.

A report z is worth nothing to the optimum if some scores s_z make every truth's cost at z at least
that truth's value u_w. If each truth has one owner x the least such scores are
s(x) = max over truths of x of [ v_w - lambda d(w,z) ]_+  (information: c(x) = p(x) max exp(...)),
and they exist iff they sum to at most 1. Shared truths need a tiny convex program per report, many
at once (`least_scores`; for linked reports `linked_pricing`): given what each truth needs at z,
find scores with P(.|w) . s_z >= need(w,z) - theta  for all w and the least theta. theta <= 0 proves
that z cannot help.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.linked_pricing import (
    likelihoods_for,
    linked_scores,
    shared_likelihoods,
    weight_table,
)
from sfumato.solver.exact.task import Charges, Limits, PerPair, PerTruth, Shares, Task, Weights

_BATCH = (100, 400)  # reports added per round, at least and at most; between them 1 % of all
# of the prior in each posterior: keeps its logarithm finite and costs at most this much of the
# bound
_MIX = 1e-11
_PRECISION = 1e-5  # theta is found to about this; what is missed only loosens the bound

Allowed = Callable[[np.ndarray], np.ndarray | None]  # a loss table -> which pairs, None for all


@dataclass(frozen=True)
class Budgets:
    """The budgets that leave room, and the truths that the others bind to their nearest report."""

    least: PerTruth  # its least loss
    charges: Charges  # of the budgets that leave room
    limits: Limits
    live: np.ndarray  # which budgets leave room
    tight: PerTruth  # which truths have no choice
    cap: float | None

    @classmethod
    def of(cls, task: Task, least: np.ndarray) -> "Budgets":
        charges, limits = task.budgets()
        floor = charges.T @ least
        live = limits - floor > 1e-9 * np.maximum(floor, 1e-3 * charges.sum(axis=0))
        tight = np.any(charges[:, ~live] > 0, axis=1)
        return cls(least, charges[:, live], limits[live], live, tight, task.cap)

    def all_multipliers(self, live: np.ndarray) -> np.ndarray:
        """One per budget, from those of the budgets that leave room."""
        multipliers = np.zeros(len(self.live))
        multipliers[self.live] = live
        return multipliers

    def allowed(self, loss: PerPair) -> PerPair | None:
        """Pairs that the cap and the tight budgets leave; None when all are."""
        allowed = None
        if self.cap is not None:
            allowed = loss <= np.maximum(self.cap, self.least)[:, None] * (1 + 1e-12)
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
        room = self.limits - self.charges.T @ self.least
        return bool(np.all(self.limits - self.charges.T @ near >= 0.5 * room))


def price_tight(
    task: Task, shares: np.ndarray, multipliers: np.ndarray, budgets: Budgets
) -> tuple[float, np.ndarray]:
    """Bound and multipliers that hold without binding truths to their nearest report.

    A budget at its smallest feasible value has no largest multiplier that helps: the bound grows
    with it until every other report is too dear, and rounding grows too. The best of a few sizes is
    taken.
    """
    charges = task.budgets()[0]
    tight_charge = charges[:, ~budgets.live].sum(axis=1)
    prices = charges @ multipliers
    values, needed = least_costs(task, shares, prices, budgets.allowed), 0.0
    for _, loss, cost in costs(task, shares, prices, task.within_cap):
        allowed = budgets.allowed(loss)
        assert allowed is not None
        rows, columns = np.nonzero(~allowed & budgets.tight[:, None] & np.isfinite(cost))
        dearer = tight_charge[rows] * (loss[rows, columns] - budgets.least[rows])
        short = (values[rows] - cost[rows, columns]) / dearer
        needed = max(needed, float(np.max(short, initial=0.0)))
    best = (-np.inf, multipliers)
    for size in needed * 10.0 ** np.arange(0, -7, -1):
        trial = multipliers.copy()
        trial[~budgets.live] = size
        best = max(
            best, (whole_bound(task, shares, trial), trial), key=lambda candidate: candidate[0]
        )
    return best


def whole_bound(task: Task, shares: Shares, multipliers: Limits) -> float:
    """The bound that shares and multipliers prove over all reports."""
    charges, limits = task.budgets()
    floor = least_costs(task, shares, charges @ multipliers, task.within_cap)
    return float(floor.sum() - multipliers @ limits)


def costs(
    task: Task, shares: Shares, prices: PerTruth, allowed: Allowed, size_limit: int = 4_000_000
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Reports in pieces, with the loss and the cost of every truth at them."""
    for indices in task.chunks(size_limit):
        loss = task.loss_of(indices)
        yield indices, loss, cost_of(task, shares[indices], loss, prices, allowed(loss))


def least_costs(
    task: Task, shares: Shares, prices: PerTruth, allowed: Allowed, size_limit: int = 4_000_000
) -> np.ndarray:
    """The least cost of each truth over all reports."""
    floor = np.full(len(prices), np.inf)
    for _, _, cost in costs(task, shares, prices, allowed, size_limit):
        np.minimum(floor, cost.min(axis=1), out=floor)
    return floor


def spread_out(task: Task, worst: np.ndarray, price_of_loss: float) -> np.ndarray:
    """Reports that miss most, no two closer (in loss) than what the miss is worth."""
    batch = int(np.clip(task.report_count // 100, *_BATCH))
    candidates = np.argsort(-worst)[:4000]
    candidates = candidates[worst[candidates] > 1e-7]
    truths = np.linspace(0, task.joint.shape[1] - 1, 12).astype(int)
    losses = task.loss_of(candidates)[truths]
    free = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    for k in range(len(candidates)):
        if free[k]:
            chosen.append(int(candidates[k]))
            if len(chosen) == batch:
                break
            apart = np.abs(losses - losses[:, [k]]).max(axis=0)
            free &= apart >= 3.0 * worst[candidates[k]] / max(price_of_loss, 1e-12)
    return np.array(chosen, dtype=int)


def price(
    task: Task,
    own: np.ndarray,
    multipliers: np.ndarray,
    active: np.ndarray,
    budgets: Budgets,
    *,
    deadline: Deadline = NEVER,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Shares at every report, the bound they prove, and the reports most worth adding; None where
    the time was too short.

    own: shares at the `active` reports.  multipliers: one per live budget.
    """
    mass = task.truth_mass
    price_of_loss = budgets.charges @ multipliers
    shares = np.empty((task.report_count, task.weights.shape[1]))
    own = _positive(task, own)
    shares[active] = own
    loss = task.loss_of(active)
    values = cost_of(task, own, loss, price_of_loss, budgets.allowed(loss)).min(axis=1)
    is_active = np.zeros(task.report_count, dtype=bool)
    is_active[active] = True
    floor, worst = values.copy(), np.zeros(task.report_count)
    for indices in task.chunks(1_000_000):
        indices = indices[~is_active[indices]]
        if not len(indices):
            continue
        if deadline.passed:
            return None
        loss = task.loss_of(indices)
        allowed = budgets.allowed(loss)
        scores = scores_for(task, needs(task, values, price_of_loss, loss, budgets))
        cost = cost_of(task, scores, loss, price_of_loss, allowed)
        shares[indices] = scores
        worst[indices] = np.max((values[:, None] - cost) / mass[:, None], axis=0)
        floor = np.minimum(floor, cost.min(axis=1))
    wanted = spread_out(task, worst, float(np.sum(price_of_loss)))
    return shares, float(floor.sum() - multipliers @ budgets.limits), wanted


def needs(
    task: Task, values: PerTruth, price_of_loss: PerTruth, loss: PerPair, budgets: Budgets
) -> PerPair:
    """What the scores at each report must give each truth so that it keeps its value; -inf where
    the pair is barred."""
    need = (values[:, None] - price_of_loss[:, None] * loss) / task.truth_mass[:, None]
    allowed = budgets.allowed(loss)
    if allowed is not None:
        need[~allowed] = -np.inf
    return need


def scores_for(task: Task, need: PerPair) -> Shares:
    """Shares that meet the needs, reports x guesses: the one-owner formula, and a tiny program
    where it fails."""
    conditional = task.weights / task.truth_mass[:, None]
    prior = task.prior if task.information else None
    if task.gains is not None:
        return least_scores(conditional, need)
    asked = np.stack([need[row > 0].max(axis=0) for row in task.joint], axis=1)
    if task.pair_weights is not None:
        weights = weight_table(task.pair_weights, len(task.joint))
        shares = likelihoods_for(weights, task.prior, asked)
        scores = linked_scores(weights, task.prior, np.sqrt(shares))
        hard = np.flatnonzero(np.max(asked - scores, axis=1) > _PRECISION)
        if len(hard) and np.any(np.sum(task.joint > 0, axis=0) > 1):
            rows, groups = grouped(conditional, need[:, hard])
            shares[hard] = shared_likelihoods(weights, task.prior, rows, groups, shares[hard])
        return _positive(task, shares)
    asked = task.prior * np.exp(asked) if task.information else np.maximum(asked, 0.0)
    total = asked.sum(axis=1, keepdims=True)
    spare = np.maximum(1 - total, 0.0)
    shares = (asked + spare * task.prior) / (total + spare)
    hard = np.flatnonzero(total[:, 0] > 1 + 1e-9)
    if len(hard):
        shares[hard] = least_scores(conditional, need[:, hard], prior)
    return _positive(task, shares)


def _positive(task: Task, shares: np.ndarray) -> np.ndarray:
    """For information and linked reports, shares without zeros; others as they are."""
    if task.pair_weights is not None:
        return np.maximum(shares, _MIX * shares.max(axis=1, keepdims=True))
    return (1 - _MIX) * shares + _MIX * task.prior if task.information else shares


def cost_of(
    task: Task, shares: Shares, loss: PerPair, price_of_loss: PerTruth, allowed: PerPair | None
) -> PerPair:
    """sum_x p(x,w) s_z(x) + price times loss, truths x reports; infinite where not allowed."""
    scores = np.log(shares / task.prior) if task.information else shares
    if task.pair_weights is not None:
        scores = linked_scores(
            weight_table(task.pair_weights, len(task.joint)), task.prior, np.sqrt(shares)
        )
    cost = task.weights @ scores.T
    cost += price_of_loss[:, None] * loss
    if allowed is not None:
        cost[~allowed] = np.inf
    return cost


def least_scores(conditional: Weights, need: PerPair, prior: np.ndarray | None = None) -> Shares:
    """Scores, reports x guesses: mixture weights; with `prior`, the c of scores log(c / prior).

    conditional: truths x guesses, G(w,a) / p(w).  need: truths x reports, -inf where a pair is
    barred.  Truths with the same P(.|w) count once, by their largest need.
    """
    rows, asked = grouped(conditional, need)
    reports, guesses = len(asked), rows.shape[1]
    scores = np.tile(np.full(guesses, 1.0 / guesses) if prior is None else prior, (reports, 1))
    theta = np.max(asked - _value(scores, rows, prior), axis=1) + 1.0
    weight = 4.0
    limit = (len(rows) + guesses) / _PRECISION
    while weight < limit:
        weight = min(weight * 6.0, limit)
        for _ in range(4):
            scores, theta = _newton(scores, theta, rows, asked, prior, weight)
    return scores / scores.sum(axis=1, keepdims=True)


def grouped(conditional: Weights, need: PerPair) -> tuple[np.ndarray, np.ndarray]:
    """Truths with the same P(.|w) as one group: their P(.|w), and their largest need at each
    report, reports x groups."""
    rows, member = np.unique(np.round(conditional, 12), axis=0, return_inverse=True)
    member = member.ravel()
    order = np.argsort(member, kind="stable")
    starts = np.flatnonzero(np.diff(member[order], prepend=-1))
    asked = np.maximum.reduceat(need[order], starts, axis=0).T
    return rows, np.where(np.isneginf(asked), -1e6, asked)


def _value(scores: np.ndarray, rows: np.ndarray, prior: np.ndarray | None) -> np.ndarray:
    """What the scores give each group of truths, reports x groups."""
    return scores @ rows.T if prior is None else np.log(scores / prior) @ rows.T


def _newton(
    scores: np.ndarray,
    theta: np.ndarray,
    rows: np.ndarray,
    asked: np.ndarray,
    prior: np.ndarray | None,
    weight: float,
) -> tuple[np.ndarray, np.ndarray]:
    """One damped Newton step on weight * theta - sum log(slack) - sum log(scores), with scores
    summing to 1."""
    reports, guesses = scores.shape
    slack = theta[:, None] - asked + _value(scores, rows, prior)
    inverse = 1.0 / slack
    square = inverse**2
    # sums over the groups as matrix products: nothing of size reports x groups x guesses is made
    pull, cross = inverse @ rows, square @ rows
    first, second = np.triu_indices(guesses)
    bend = square @ (rows[:, first] * rows[:, second])
    diagonal = 1.0 / scores**2
    if prior is not None:  # of log(scores), whose slope is 1 / scores
        diagonal = diagonal + pull / scores**2
        pull, cross = pull / scores, cross / scores
        bend = bend / (scores[:, first] * scores[:, second])
    system = np.zeros((reports, guesses + 2, guesses + 2))
    system[:, first, second] = system[:, second, first] = bend
    system[:, np.arange(guesses), np.arange(guesses)] += diagonal
    system[:, :guesses, guesses] = system[:, guesses, :guesses] = cross
    system[:, guesses, guesses] = square.sum(axis=1)
    system[:, :guesses, guesses + 1] = system[:, guesses + 1, :guesses] = 1.0
    right = np.zeros((reports, guesses + 2))
    right[:, :guesses] = pull + 1.0 / scores
    right[:, guesses] = inverse.sum(axis=1) - weight
    right[:, guesses + 1] = 1.0 - scores.sum(axis=1)
    move = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    change, theta_change = move[:, :guesses], move[:, guesses]
    step = np.minimum(1.0, 0.9 / np.maximum(np.max(-change / scores, axis=1), 1e-9))
    if prior is None:  # slack is linear in the scores: how fast it shrinks says where it ends
        shrinks = np.max((-theta_change[:, None] - change @ rows.T) * inverse, axis=1)
    for _ in range(40):  # slack is concave in the scores: reduce until inside
        if prior is None:
            bad = step * shrinks >= 0.95
        else:
            ahead = theta + step * theta_change, scores + step[:, None] * change
            left = ahead[0][:, None] - asked + _value(ahead[1], rows, prior)
            bad = np.any(left <= 0.05 * slack, axis=1)
        if not bad.any():
            break
        step = np.where(bad, 0.6 * step, step)
    else:
        step = np.where(bad, 0.0, step)
    return scores + step[:, None] * change, theta + step * theta_change
