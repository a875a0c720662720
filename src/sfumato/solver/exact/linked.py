"""The mechanism for n linked reports of one user: the laws that make overlaps large, of which the
one with the largest Bayes error of n reports is taken.

B_n is no concave function of the mechanism.  Its bound sum over pairs of sqrt(pp') rho^n is convex
in the overlaps, so that putting its tangent in its place and solving again never lowers it: each
solve is a weighted sum of overlaps, which is concave.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sfumato.data.joint import Joint
from sfumato.measure.linked import overlaps, pairs_of
from sfumato.measure.repeated import linked_bayes_error
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import Optimum, generate_columns, silent
from sfumato.solver.exact.task import Task

_TANGENTS = 5


def best_for(
    task: Task,
    count: int,
    least: Optimum,
    *,
    gap: float,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> Optimum:
    """The law with the largest Bayes error of `count` reports among the one for a single report,
    `least` (of the largest least overlap), and those that tangents lead to from each."""
    single = replace(task, linked=None)
    alone = generate_columns(single, gap=gap, first_reports=least.reports, deadline=deadline)
    tried = [least, alone]
    for start in (least, alone):
        law = start
        for _ in range(_TANGENTS):
            if deadline.passed:
                break
            weights = _tangent(task, law, count)
            tangent = replace(task, linked=weights[None, :])
            law = generate_columns(tangent, gap=gap, first_reports=law.reports, deadline=deadline)
            tried.append(law)
    errors = [linked_bayes_error(_seen(task, law), (count,))[0].value for law in tried]
    best = int(np.argmax(errors))
    progress(f"{len(tried)} laws for {count} reports: Bayes error {errors[best]:.4f}")
    return tried[best]


def _seen(task: Task, law: Optimum) -> Joint:
    """P(secret, report)."""
    table = task.joint @ law.mechanism
    numbers = np.column_stack([law.reports, law.reports]).astype(float)
    return Joint(table / table.sum(), places=numbers)


def _tangent(task: Task, law: Optimum, count: int) -> np.ndarray:
    """Weights of the pairs: the slopes of sqrt(pp') rho^n at this law, scaled to sum to 1."""
    first, second = pairs_of(task.prior)
    alike = overlaps(_seen(task, law))[first, second]
    weights = np.sqrt(task.prior[first] * task.prior[second]) * (alike / alike.max()) ** (count - 1)
    return np.asarray(weights / weights.sum())
