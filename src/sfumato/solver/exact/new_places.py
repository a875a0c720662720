"""How an optimal channel answers places that it has no row for: chosen by leaving out each of those
that it has."""

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from sfumato.data.joint import Joint
from sfumato.mechanism.channel import Average, Channel
from sfumato.solver.problem import Problem

_WIDTHS = 2.0 ** np.arange(10)  # times the usual distance between neighbours
_NEARLY = 0.05  # of the leakage: the widest bandwidth that is so near the best is taken
_MOST_TILT = 0.1  # per metre, either way
_HALVINGS = 30
_MOST_PLACES = 2000  # left out one at a time


def average_for(problem: Problem, channel: Channel) -> Average | None:
    """The average over near truths that leaks least at truths left out, with its loss there within
    the budgets; None where there is one truth alone.

    Each truth is answered from all others.  Between bandwidths whose leakage is within 5 % the
    widest is taken: rows were chosen together, so what is left out is not forgotten, and a narrow
    bandwidth looks better than it is.
    """
    truths, table = channel.truths, problem.joint.table
    if len(truths) < 2:
        return None
    weights = table.sum(axis=0)
    some = np.linspace(0, len(truths) - 1, min(len(truths), _MOST_PLACES)).astype(int)
    near = float(np.median(cKDTree(truths).query(truths, k=2)[0][:, 1]))
    wide = float(np.ptp(truths, axis=0).max())
    square = cdist(truths[some], truths, "sqeuclidean")
    square[np.arange(len(some)), some] = np.inf
    distance = cdist(truths[some], channel.reports)
    cost = problem.loss(truths[some][:, None, :], channel.reports[None, :, :])
    shares = table[:, some] / table[:, some].sum()
    limits = _limits(problem, channel)
    tried: list[tuple[float, Average]] = []
    for bandwidth in near * _WIDTHS:
        if tried and bandwidth > wide:
            break
        average = Average(float(bandwidth), 0.0, weights)
        rows = np.asarray(average.share(square) @ channel.matrix)
        low, high = -_MOST_TILT, _MOST_TILT
        for _ in range(_HALVINGS):
            average = replace(average, tilt=(low + high) / 2)
            loss = (average.tilted(rows, distance) * cost).sum(axis=1)
            low, high = (
                (low, average.tilt) if _within(loss, shares, limits) else (average.tilt, high)
            )
        average = replace(average, tilt=high)
        law = Joint(shares @ average.tilted(rows, distance), secrets=problem.joint.secrets)
        tried.append((problem.objective.leakage(law), average))
    least = min(leakage for leakage, _ in tried)
    return [average for leakage, average in tried if leakage <= least * (1 + _NEARLY)][-1]


def _within(loss: np.ndarray, shares: np.ndarray, limits: np.ndarray) -> bool:
    """Whether losses at truths are within the limits, of all and of each user."""
    prior = shares.sum(axis=1)
    mine = np.divide(shares @ loss, prior, out=np.zeros(len(prior)), where=prior > 0)
    return bool(shares.sum(axis=0) @ loss <= limits[0] and np.all(mine <= limits[1:]))


def _limits(problem: Problem, channel: Channel) -> np.ndarray:
    """What all, and each user, may lose on average; where nothing was asked, what the channel
    loses."""
    law = channel.law(problem.joint, loss=problem.loss)
    assert law is not None
    whole = law.loss if problem.max_loss is None else problem.max_loss
    if problem.user_limits is not None and problem.max_loss is None:
        whole = np.inf
    users = (
        np.full(len(law.loss_of), np.inf) if problem.user_limits is None else problem.user_limits
    )
    return np.concatenate([[whole], users])
