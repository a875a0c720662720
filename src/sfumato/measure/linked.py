"""Linked reports: how alike the laws of two users' reports are, and what that says of the Bayes
error when n reports of one user are seen together.

User x reports with the law q_x = sum_w p(w|x) M(.|w).  The overlap of two users,
rho(x,x') = sum_z sqrt(q_x(z) q_x'(z)), is 1 where no number of reports tells them apart and 0 where
one report does; it is multiplied by itself with every further report.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np

from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.estimate import Estimate

ENDLESS: Final = "endless"
Reports = int | Literal["endless"]  # seen together
_SAME = 1e-9  # 1 - overlap of laws that count as one
Pairs = tuple[np.ndarray, np.ndarray]  # the first and the second user of each pair
PerUserPair = Annotated[np.ndarray, "users users"]


@dataclass(frozen=True)
class Linked:
    """What is left of a user when `reports` reports are seen together: the Bayes error, and the
    least overlap of two users per report.  Higher is more private, both."""

    reports: Reports
    bayes_error: Estimate
    overlap: float


def pairs_of(prior: np.ndarray) -> Pairs:
    """All pairs of users who occur, each once."""
    present = np.flatnonzero(prior > 0)
    first, second = np.triu_indices(len(present), 1)
    return present[first], present[second]


def overlaps(joint: Joint) -> PerUserPair:
    """rho(x,x') = sum_z sqrt(q_x(z) q_x'(z)) of all pairs, from P(secret, report).

    A number from 0 to 1; higher is more private.  Exact.  Users who never occur overlap with none.

    >>> overlaps(Joint(np.array([[0.5, 0.0], [0.25, 0.25]]))).round(3).tolist()
    [[1.0, 0.707], [0.707, 1.0]]
    """
    prior = joint.prior[:, None]
    roots = np.sqrt(np.divide(joint.table, prior, out=np.zeros_like(joint.table), where=prior > 0))
    return np.minimum(roots @ roots.T, 1.0)


def least_overlap(joint: Joint) -> float:
    """The overlap of the two users who are told apart most easily: -ln of it is the rate per
    report.  Higher is more private; 1 where no number of reports tells anything.

    >>> least_overlap(Joint.uniform(secrets=3, places=2))
    1.0
    """
    return float(np.min(overlaps(joint)[pairs_of(joint.prior)], initial=1.0))


def endless_linked_error(joint: Joint) -> float:
    """The Bayes error in the limit of many linked reports, from P(secret, report).

    1 - sum over groups of users with one law of their largest share.  Exact, up to laws whose
    overlap is above 1 - 1e-9, which count as one: telling them apart takes a hundred million
    reports.

    >>> endless_linked_error(Joint(np.array([[0.2, 0.2], [0.1, 0.1], [0.4, 0.0]])))
    0.2
    """
    prior, same = joint.prior, overlaps(joint) > 1 - _SAME
    left, right = set(np.flatnonzero(prior > 0).tolist()), 0.0
    while left:
        group = set(np.flatnonzero(same[min(left)]).tolist()) & left
        right += float(prior[list(group)].max())
        left -= group
    return max(0.0, round(1 - right, 12))


def linked_leakage(joint: Joint, count: int) -> float:
    """What `count` linked reports tell, by overlaps: 1 - sum over pairs of sqrt(pp') rho^n, divided
    by what that sum is where no report tells anything.  From 0 to 1; lower is more private.

    >>> linked_leakage(Joint.uniform(secrets=3, places=2), 10) < 1e-12
    True
    """
    prior = joint.prior
    first, second = pairs_of(prior)
    weights = np.sqrt(prior[first] * prior[second])
    return 1 - float(weights @ overlaps(joint)[first, second] ** count / weights.sum())


def linked_bounds(joint: Joint, count: int) -> tuple[float, float]:
    """What overlaps alone say of the Bayes error of `count` linked reports: at least, at most.

    For every pair  (p+p')/2 (1 - sqrt(1 - 4pp'/(p+p')^2 rho^2n)) <= B_n,  and
    B_n <= sum over pairs of sqrt(pp') rho^n.  A blind guess is wrong no more often than 1 - max p.

    >>> [round(bound, 3) for bound in linked_bounds(Joint(np.eye(2) / 2), 1)]
    [0.0, 0.0]
    """
    if not count >= 1:
        raise ProblemError(f"linked reports are at least 1; got {count}")
    prior = joint.prior
    first, second = pairs_of(prior)
    alike = overlaps(joint)[first, second] ** count
    both, product = prior[first] + prior[second], prior[first] * prior[second]
    apart = np.sqrt(np.maximum(1 - 4 * product / both**2 * alike**2, 0.0))
    low = float(np.max(both / 2 * (1 - apart), initial=0.0))
    high = float(np.sqrt(product) @ alike)
    return low, max(low, min(high, 1 - float(prior.max())))


def overlap_at_least(
    joint: Joint, counts: np.ndarray, *, delta: float, within: float = 0.0
) -> float:
    """What the least overlap of two users is at least in the population, with confidence
    1 - `delta`, from P(secret, report) of samples, `counts` of each user, whose rows are off by at
    most `within`.

    Let rho be the overlap of the two users who overlap least in the population, with n and n'
    samples, and t = sqrt(q'/q) of their laws.  The overlap of the samples is at most
    G = (mean of t over reports of the one + mean of 1/t over reports of the other) / 2.  The mean
    of G is rho, its variance at most (1 - rho^2)(1/n + 1/n') / 4, because the mean of t^2 is at
    most 1; Cantelli's inequality bounds what chance adds.

    >>> alike = Joint.uniform(secrets=2, places=1)
    >>> round(overlap_at_least(alike, np.array([400, 400]), delta=0.05), 2)
    0.95
    """
    few = np.sort(counts[counts > 0])[:2]
    size = (1 / delta - 1) * float((1 / few).sum()) / 4
    overlap = least_overlap(joint) - 2 * (2 * within) ** 0.5
    least = (overlap - (size * max(1 + size - overlap**2, 0.0)) ** 0.5) / (1 + size)
    return max(0.0, least)
