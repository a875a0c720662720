"""A certificate for a problem that somebody else solves: the exact solver's prices, on all truths
or on a fair draw of them."""

import time
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial import cKDTree

from sfumato.data.samples import Samples
from sfumato.measure.bound import bound_grid
from sfumato.measure.certificate import Certificate, Proof, claim_of
from sfumato.mechanism.law import euclidean
from sfumato.solver.exact.solver import best_within, plane_proof, task_of
from sfumato.solver.problem import Problem

_GAP = 2e-3
_TRUTHS = 2500  # up to so many the program is solved on all of them


def certificate_for(problem: Problem, *, seed: int, time_limit: float | None) -> Certificate | None:
    """The bound that the exact solver proves in the time; None where there is no time at all."""
    if time_limit is not None and time_limit <= 0:
        return None
    if len(problem.places) > _TRUTHS:
        return _from_a_draw(problem, seed=seed, time_limit=time_limit)
    begin = time.perf_counter()
    task = task_of(problem)
    optimum = best_within(problem, task, gap=_GAP, time_limit=time_limit)
    left = None if time_limit is None else time_limit - (time.perf_counter() - begin)
    on_plane = (
        plane_proof(problem, task, optimum)
        if problem.loss is euclidean and (left is None or left > 0)
        else None
    )
    return Certificate.of(
        problem, Proof(problem.reports, optimum.scores, optimum.multipliers), on_plane
    )


def _from_a_draw(problem: Problem, *, seed: int, time_limit: float | None) -> Certificate:
    """Scores of a smaller program are scores all the same: the bound for all truths is worked out
    with them, at its best price."""
    assert isinstance(problem.samples, Samples)
    random = np.random.default_rng((seed, 4))
    each = max(1, _TRUTHS // 2 // len(problem.samples.secrets))
    rows = np.concatenate(
        [
            random.permutation(np.flatnonzero(problem.samples.secret == user))[:each]
            for user in range(len(problem.samples.secrets))
        ]
    )
    small = replace(problem, samples=problem.samples.take(np.sort(rows)))
    optimum = best_within(small, task_of(small), gap=4 * _GAP, time_limit=time_limit)
    shares = optimum.scores[cKDTree(small.reports).query(problem.reports)[1]]
    claim = claim_of(problem)

    def bound(factor: float) -> float:
        def loss(chosen: np.ndarray) -> np.ndarray:
            return problem.loss(problem.places[:, None, :], problem.reports[None, chosen, :])

        return bound_grid(claim, shares, optimum.multipliers * factor, loss)

    found = minimize_scalar(
        lambda factor: -bound(factor), bounds=(0.8, 1.2), method="bounded", options={"maxiter": 6}
    )
    return Certificate.of(
        problem, Proof(problem.reports, shares, optimum.multipliers * float(found.x))
    )
