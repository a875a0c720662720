"""Worst cases: what an average hides."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.exact import best_guess_shares, best_guess_shares_of

EXPOSED = 0.9


def worst_report(joint: Joint) -> float:
    """The largest posterior that any report that can happen gives to any secret: max_{x,z} P(x|z).

    Unit: probability.  Lower is more private; 1 means that some report gives somebody away.

    >>> worst_report(Joint(np.array([[0.25, 0.25], [0.5, 0.0]])))
    1.0
    """
    return float(_highest(joint).max())


def exposed(joint: Joint, *, above: float = EXPOSED) -> float:
    """Share of reports that leave one secret above 90 % posterior.  Unit: probability.  Lower is
    more private.

    >>> exposed(Joint(np.array([[0.25, 0.25], [0.5, 0.0]])))
    0.25
    """
    return float(joint.place_probability[_highest(joint) > above].sum())


def _highest(joint: Joint) -> np.ndarray:
    """The largest posterior at each place."""
    if joint.sparse is None:
        return np.asarray(joint.posterior.max(axis=0))
    total = joint.place_probability
    most = joint.sparse.max(axis=0).toarray().ravel()
    return np.divide(most, total, out=np.zeros_like(most), where=total > 0)


def error_per_secret(joint: Joint) -> np.ndarray:
    """For each secret, the chance that the best guess misses it: 1 - sum_z P(z|x) [x is the guess
    at z].

    Ties between guesses are split evenly, so a perfect mixture treats all alike.  The average over
    the prior is the Bayes error.
    """
    if joint.sparse is None:
        caught = (best_guess_shares(joint.table) * joint.table).sum(axis=1)
    else:
        pairs = joint.pairs
        shares = best_guess_shares_of(pairs, joint.shape[1])
        caught = np.bincount(pairs.secret, shares * pairs.weight, minlength=joint.shape[0])
    return 1 - np.divide(caught, joint.prior, out=np.zeros_like(caught), where=joint.prior > 0)


def exposed_per_secret(joint: Joint) -> np.ndarray:
    """For each secret, the chance that its report leaves it above 90 % posterior."""
    if joint.sparse is None:
        mass = (joint.table * (joint.posterior > EXPOSED)).sum(axis=1)
    else:
        secret, place, weight = joint.pairs
        sure = weight > EXPOSED * joint.place_probability[place]
        mass = np.bincount(secret, weight * sure, minlength=joint.shape[0])
    return np.divide(mass, joint.prior, out=np.zeros_like(mass), where=joint.prior > 0)


def geo_indistinguishability(matrix: Any, truths: np.ndarray) -> float:
    """The smallest epsilon with M(z|w) <= exp(epsilon d(w,w')) M(z|w') for all truths and reports.

    Unit: per metre.  Lower is more private.  Infinite where one truth can send a report that
    another cannot.  Exact for the finite channel given, at the truths given.

    >>> matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> truths = np.array([[0.0, 0.0], [100.0, 0.0]])
    >>> round(geo_indistinguishability(matrix, truths), 4)  # ln 3 per 100 m
    0.011
    """
    matrix = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=float)
    if matrix.shape[0] != len(truths):
        raise ProblemError(
            f"{matrix.shape[0]} rows but {len(truths)} truths; expected one truth per row"
        )
    if len(truths) < 2:
        return 0.0
    possible = matrix > 0
    if np.any(possible != possible[0]):
        return float("inf")
    logs = np.log(matrix[:, possible[0]])
    ratio = pdist(logs, metric="chebyshev")
    distance = pdist(np.asarray(truths, dtype=float))
    apart = distance > 0
    if np.any(ratio[~apart] > 0):
        return float("inf")
    return float(np.max(ratio[apart] / distance[apart], initial=0.0))
