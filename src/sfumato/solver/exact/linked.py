"""The mechanism for n linked reports of one user: the laws that make overlaps large, of which the
one with the largest Bayes error of n reports is taken.

B_n is no concave function of the mechanism.  Its bound sum over pairs of sqrt(pp') rho^n is convex
in the overlaps, so that putting its tangent in its place and solving again never lowers it: each
solve is a weighted sum of overlaps, which is concave.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sfumato.data.joint import Joint
from sfumato.measure.linked import overlaps, pairs_of
from sfumato.measure.repeated import linked_bayes_error
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import Optimum, generate_columns, silent
from sfumato.solver.exact.endless import OneLaw
from sfumato.solver.exact.task import Task

_TANGENTS = 4
_SETTLED = 0.02  # change of the weights, which sum to 1, below which a law would be the same


def best_for(
    task: Task,
    count: int,
    least: Optimum,
    *,
    gap: float,
    alone: bool = True,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> Optimum:
    """Of the laws that `laws_for` finds, the one with the largest Bayes error of `count` reports;
    without `alone` no tangents are taken from the law for a single report."""
    starts = [least]
    if alone:
        single = replace(task, linked=None)
        starts.append(
            generate_columns(single, gap=gap, first_reports=least.reports, deadline=deadline)
        )
    tried = laws_for(task, (count,), starts, gap=gap, deadline=deadline, progress=progress)
    errors = [linked_bayes_error(joint_of(task, law), (count,))[0].value for law in tried]
    best = int(np.argmax(errors))
    progress(f"{len(tried)} laws for {count} reports: Bayes error {errors[best]:.4f}")
    return tried[best]


def laws_for(
    task: Task,
    counts: Sequence[int],
    starts: Sequence[Optimum],
    *,
    gap: float,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> list[Optimum]:
    """The starts, and the laws that tangents lead to from each, for each number of reports.

    Two starts are added: all pairs alike, and users matched two by two, each with one who is easily
    made alike: within a small budget B_n is largest where everybody has a double.
    """
    tried = list(starts)
    first, second = pairs_of(task.prior)
    weights = np.sqrt(task.prior[first] * task.prior[second])
    for matched in (False, True):
        if counts and not deadline.passed:
            if matched:
                weights = _matching(weights, overlaps(joint_of(task, tried[-1])))
            even = replace(task, linked=weights[None, :] / weights.sum())
            tried.append(
                generate_columns(even, gap=gap, first_reports=starts[0].reports, deadline=deadline)
            )
    starts = tuple(tried)
    for number, start in enumerate(starts, 1):
        for count in counts:
            progress(f"laws for {count} reports, from start {number} of {len(starts)}")
            chain, weights = [start], np.zeros(len(first))
            while len(chain) <= _TANGENTS and not deadline.passed:
                weights, before = _tangent(task, chain[-1], count), weights
                if np.abs(weights - before).sum() < _SETTLED:
                    break
                tangent = replace(task, linked=weights[None, :])
                chain.append(
                    generate_columns(
                        tangent, gap=gap, first_reports=chain[-1].reports, deadline=deadline
                    )
                )
            tried += chain[1:2] + chain[2:][-1:]  # those between are like the last
    return tried


def joint_of(task: Task, law: Optimum | OneLaw) -> Joint:
    """P(secret, report)."""
    table = task.joint @ law.mechanism
    numbers = np.column_stack([law.reports, law.reports]).astype(float)
    return Joint(table / table.sum(), places=numbers)


def _matching(weights: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """The weights of pairs that match users two by two, the most alike first; 0 for the others.
    Where the users are odd, the last one joins who is most like it."""
    first, second = np.triu_indices(len(alike), 1)
    order = np.argsort(-alike[first, second], kind="stable")
    free, kept = np.ones(len(alike), dtype=bool), np.zeros_like(weights)
    for pair in order:
        if free[first[pair]] and free[second[pair]]:
            free[[first[pair], second[pair]]] = False
            kept[pair] = weights[pair]
    for user in np.flatnonzero(free):
        pair = next(pair for pair in order if user in (first[pair], second[pair]))
        kept[pair] = weights[pair]
    return kept


def _tangent(task: Task, law: Optimum, count: int) -> np.ndarray:
    """Weights of the pairs: the slopes of sqrt(pp') rho^n at this law, scaled to sum to 1."""
    first, second = pairs_of(task.prior)
    alike = overlaps(joint_of(task, law))[first, second]
    weights = np.sqrt(task.prior[first] * task.prior[second]) * (alike / alike.max()) ** (count - 1)
    return np.asarray(weights / weights.sum())
