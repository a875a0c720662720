"""The question turned round: the least average loss that allows a wanted Bayes error."""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import ProblemError
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import generate_columns, measured_leakage
from sfumato.solver.exact.task import Task, nearest_reports
from sfumato.solver.feasible import InfeasibleBudget

_MAX_ROUNDS = 30


@dataclass(frozen=True)
class SmallestLoss:
    """A law that has the wanted leakage, its loss, and the loss that no such law can go below."""

    mechanism: np.ndarray
    reports: np.ndarray
    loss: float
    loss_bound: float
    leakage: float


def min_loss_given_max_leakage(
    task: Task, leakage: float, *, tolerance: float = 1e-3, deadline: Deadline = NEVER
) -> SmallestLoss:
    """Least average loss of a mechanism that leaks at most `leakage` (Bayes error b: leakage 1 -
    b).

    task: its max_loss is ignored; a cap stays; it has no budgets per secret.
    tolerance: loss - loss_bound at the end, relative to the loss. At the very least leakage that
    exists the question is ill posed (a hair of leakage moves the loss a lot): the two may then stay
    further apart.
    deadline: after it the best so far comes back, with the two as far apart as they are.

    The least leakage is convex in the budget. Each solve at budget L gives a tangent, bound -
    lambda (L' - L), hence a loss that nobody can go below; mixing two laws on either side gives one
    that is reached.
    """
    gap = max(1e-7, 1e-2 * tolerance)
    where = nearest_reports(task)[1]
    low = _law_of(task, np.unique(where), np.searchsorted(np.unique(where), where))
    if low.leakage <= leakage:
        return replace(low, loss_bound=low.loss)
    high = _least_leaking(task, gap, deadline)
    if high.leakage > leakage + 1e-12:
        if deadline.passed:
            raise ProblemError(
                "the time limit was too short to find a mechanism within the cap that leaks"
                f" {leakage:g}; allow more time"
            )
        raise InfeasibleBudget(
            f"a Bayes error of {1 - leakage:.9g} cannot be reached; the largest possible is"
            f" {1 - high.leakage:.9g}: ask for less"
        )
    mixed = _mix(task, low, high, leakage)
    bound, budget = low.loss, mixed.loss
    tried: set[float] = set()
    for _ in range(_MAX_ROUNDS):
        if deadline.passed:
            break
        tried.add(budget)
        optimum = generate_columns(replace(task, max_loss=budget), gap=gap, deadline=deadline)
        price = float(optimum.multipliers[0])
        if price > 0:
            bound = max(bound, budget + (optimum.bound - leakage) / price)
        law = SmallestLoss(optimum.mechanism, optimum.reports, optimum.loss, 0.0, optimum.leakage)
        if law.leakage <= leakage and law.loss <= high.loss:
            high = law
        elif law.leakage > leakage:
            low = law
        other = high if low.leakage <= leakage else _mix(task, low, high, leakage)
        mixed = min(mixed, other, high, key=lambda candidate: candidate.loss)
        if mixed.loss - bound <= tolerance * mixed.loss:
            break
        untried = [trial for trial in (bound, 0.5 * (bound + mixed.loss)) if trial not in tried]
        if not untried:
            break
        budget = untried[0]
    return replace(mixed, loss_bound=bound)


def _law_of(task: Task, reports: np.ndarray, choice: np.ndarray) -> SmallestLoss:
    """The law that always makes the report chosen for the truth."""
    mechanism = np.zeros((task.joint.shape[1], len(reports)))
    mechanism[np.arange(len(mechanism)), choice] = 1.0
    return _measure(task, mechanism, reports)


def _measure(task: Task, mechanism: np.ndarray, reports: np.ndarray) -> SmallestLoss:
    """The law with its loss and leakage."""
    loss = float(task.truth_mass @ np.sum(mechanism * task.loss_of(reports), axis=1))
    return SmallestLoss(mechanism, reports, loss, 0.0, measured_leakage(task, mechanism))


def _least_leaking(task: Task, gap: float, deadline: Deadline) -> SmallestLoss:
    """The cheapest single report; under a cap, the least leakage that the cap allows."""
    best, cheapest, top = 0, np.inf, 0.0
    for indices in task.chunks():
        losses = task.loss_of(indices)
        mean = task.truth_mass @ losses
        top = max(top, float(losses.max()))
        if mean.min() < cheapest:
            cheapest, best = float(mean.min()), int(indices[mean.argmin()])
    if task.cap is None:
        return _law_of(task, np.array([best]), np.zeros(task.joint.shape[1], dtype=int))
    optimum = generate_columns(replace(task, max_loss=top + 1.0), gap=gap, deadline=deadline)
    return _measure(task, optimum.mechanism, optimum.reports)


def _mix(task: Task, low: SmallestLoss, high: SmallestLoss, leakage: float) -> SmallestLoss:
    """The mixture of a law that leaks too much and one that does not, leaking at most `leakage`."""
    share = (leakage - high.leakage) / (low.leakage - high.leakage)
    reports = np.union1d(low.reports, high.reports)
    mechanism = np.zeros((len(low.mechanism), len(reports)))
    mechanism[:, np.searchsorted(reports, low.reports)] += share * low.mechanism
    mechanism[:, np.searchsorted(reports, high.reports)] += (1 - share) * high.mechanism
    return _measure(task, mechanism, reports)
