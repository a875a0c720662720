"""From an adversary to a certificate: what a trained guess is worth as a proof."""

import numpy as np

from sfumato.adversary.base import Attacker
from sfumato.measure.bound import bound_grid
from sfumato.measure.certificate import Certificate, Proof, claim_of
from sfumato.measure.objective import Information
from sfumato.solver.exact import task_of
from sfumato.solver.problem import Problem

_SHARPNESS = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
_SMOOTHING = (0.0, 0.1, 0.3)


def certificate_from_attacker(problem: Problem, attacker: Attacker) -> Certificate:
    """The best certificate that an adversary's posterior gives: tempered, smoothed towards the
    prior, the best price.

    For the Bayes and information objectives with one average budget; never worth less than a blind
    guess. It is a valid proof, and usually a weak one: away from the mechanism's own reports the
    posterior is arbitrary, and the bound finds the worst place.  A large gap from it says nothing
    about the mechanism; the exact solver's certificate does.
    """
    budget, information = problem.average_budget, isinstance(problem.objective, Information)
    claim, loss_of = claim_of(problem), task_of(problem).loss_of
    reports, prior = problem.report_places, problem.joint.prior
    posterior = attacker.posterior(reports)
    blind = prior if information else np.eye(len(prior))[prior.argmax()]
    worth = 0.0 if information else float(prior.max())
    best = (worth, np.tile(blind, (len(reports), 1)), 0.0)
    from scipy.optimize import minimize_scalar  # 12 MB: only where it is used

    for sharpness in _SHARPNESS:
        tempered = posterior**sharpness
        tempered /= tempered.sum(axis=1, keepdims=True)
        for smoothing in _SMOOTHING:
            shares = (1 - smoothing) * tempered + smoothing * prior
            if information:
                shares = (1 - 1e-6) * shares + 1e-6 * prior

            def lost(price: float, shares: np.ndarray = shares) -> float:
                return -bound_grid(claim, shares, np.array([price]), loss_of)

            minimum = minimize_scalar(
                lost, bounds=(0.0, 4 / budget), method="bounded", options={"maxiter": 25}
            )
            if -minimum.fun > best[0]:
                best = (-float(minimum.fun), shares, float(minimum.x))
    return Certificate.of(problem, Proof(reports, best[1], np.array([best[2]])))
