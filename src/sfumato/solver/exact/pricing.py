"""What reports are worth: costs, the scores that make a report useless to every truth, and the
bound over all reports.

A report z is worth nothing to the optimum if some scores s_z make every truth's cost at z at least
that truth's value u_w. If each truth has one owner x the least such scores are
s(x) = max over truths of x of [ v_w - lambda d(w,z) ]_+  (information: c(x) = p(x) max exp(...)),
and they exist iff they sum to at most 1. Shared truths need a tiny program per report
(least_scores).
"""

from dataclasses import dataclass

import numpy as np

from sfumato.solver.exact.least_scores import least_scores
from sfumato.solver.exact.task import Task

_BATCH = (100, 400)  # reports added per round, at least and at most; between them 1 % of all
# of the prior in each posterior: keeps its logarithm finite and costs at most this much of the
# bound
_MIX = 1e-11


@dataclass(frozen=True)
class Budgets:
    """The budgets that leave room, and the truths that the others bind to their nearest report."""

    least: np.ndarray  # least loss of each truth
    charges: np.ndarray  # truths x live budgets
    limits: np.ndarray
    live: np.ndarray  # which budgets leave room
    tight: np.ndarray  # which truths have no choice

    @classmethod
    def of(cls, task: Task, least: np.ndarray) -> "Budgets":
        charges, limits = task.budgets()
        floor = charges.T @ least
        live = limits - floor > 1e-9 * np.maximum(floor, 1e-3 * charges.sum(axis=0))
        return cls(
            least, charges[:, live], limits[live], live, np.any(charges[:, ~live] > 0, axis=1)
        )

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
        return bool(
            np.all(
                self.limits - self.charges.T @ near
                >= 0.5 * (self.limits - self.charges.T @ self.least)
            )
        )


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
    values, needed = np.full(len(tight_charge), np.inf), 0.0
    for final in (False, True):
        for indices in task.chunks():
            loss = task.loss_of(indices)
            cost = cost_of(task, shares[indices], loss, charges @ multipliers, None)
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
            needed = max(
                needed,
                float(
                    np.max(
                        short / (tight_charge[rows] * (loss[rows, columns] - budgets.least[rows])),
                        initial=0.0,
                    )
                ),
            )
    best = (-np.inf, multipliers)
    for size in needed * 10.0 ** np.arange(0, -7, -1):
        trial = multipliers.copy()
        trial[~budgets.live] = size
        best = max(best, (whole_bound(task, shares, trial), trial), key=lambda one: one[0])
    return best


def whole_bound(task: Task, shares: np.ndarray, multipliers: np.ndarray) -> float:
    """The bound that shares and multipliers prove over all reports."""
    charges, limits = task.budgets()
    floor = np.full(len(charges), np.inf)
    for indices in task.chunks():
        loss = task.loss_of(indices)
        allowed = None if task.cap is None else loss <= task.cap * (1 + 1e-12)
        floor = np.minimum(
            floor, cost_of(task, shares[indices], loss, charges @ multipliers, allowed).min(axis=1)
        )
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


def price(
    task: Task, own: np.ndarray, multipliers: np.ndarray, active: np.ndarray, budgets: Budgets
) -> tuple[np.ndarray, float, np.ndarray]:
    """Shares at every report, the bound they prove, and the reports most worth adding.

    own: shares at the `active` reports.  multipliers: one per live budget.
    """
    mass = task.truth_mass
    price_of_loss = budgets.charges @ multipliers
    shares = np.empty((task.report_count, task.weights.shape[1]))
    own = _positive(task, own)
    shares[active] = own
    loss = task.loss_of(active)
    values = cost_of(task, own, loss, price_of_loss, budgets.allowed(task, loss)).min(axis=1)
    is_active = np.zeros(task.report_count, dtype=bool)
    is_active[active] = True
    floor, worst = values.copy(), np.zeros(task.report_count)
    for indices in task.chunks(1_000_000):
        indices = indices[~is_active[indices]]
        if not len(indices):
            continue
        loss = task.loss_of(indices)
        allowed = budgets.allowed(task, loss)
        found = scores_for(task, needs(task, values, price_of_loss, loss, budgets))
        cost = cost_of(task, found, loss, price_of_loss, allowed)
        shares[indices] = found
        worst[indices] = np.max((values[:, None] - cost) / mass[:, None], axis=0)
        floor = np.minimum(floor, cost.min(axis=1))
    wanted = _spread(task, worst, float(np.sum(price_of_loss)))
    return shares, float(floor.sum() - multipliers @ budgets.limits), wanted


def needs(
    task: Task, values: np.ndarray, price_of_loss: np.ndarray, loss: np.ndarray, budgets: Budgets
) -> np.ndarray:
    """What the scores at each report must give each truth so that it keeps its value; -inf where
    the pair is barred."""
    need = (values[:, None] - price_of_loss[:, None] * loss) / task.truth_mass[:, None]
    allowed = budgets.allowed(task, loss)
    if allowed is not None:
        need[~allowed] = -np.inf
    return need


def scores_for(task: Task, need: np.ndarray) -> np.ndarray:
    """Shares that meet the needs, reports x guesses: the one-owner formula, and a tiny program
    where it fails."""
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


def cost_of(
    task: Task,
    shares: np.ndarray,
    loss: np.ndarray,
    price_of_loss: np.ndarray,
    allowed: np.ndarray | None,
) -> np.ndarray:
    """sum_x p(x,w) s_z(x) + price times loss, truths x reports; infinite where not allowed."""
    cost = task.weights @ (np.log(shares / task.prior) if task.information else shares).T
    cost += price_of_loss[:, None] * loss
    if allowed is not None:
        cost[~allowed] = np.inf
    return cost
