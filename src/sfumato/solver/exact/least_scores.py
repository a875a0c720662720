"""The best scores at reports nobody uses yet: a tiny convex program per report, many at once.

Given what each truth needs at z, find scores with  P(.|w) . s_z >= need(w,z) - theta  for all w and
the least theta. theta <= 0 proves that z cannot help. Truths with the same P(.|w) count once, by
their largest need.
"""

import numpy as np

_PRECISION = 1e-5  # theta is found to about this; what is missed only loosens the bound


def group_truths(conditional: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of P(.|w) and each truth's row."""
    rows, member = np.unique(np.round(conditional, 12), axis=0, return_inverse=True)
    return rows, member.ravel()


def least_scores(
    conditional: np.ndarray, need: np.ndarray, prior: np.ndarray | None = None
) -> np.ndarray:
    """Scores, reports x guesses: mixture weights; with `prior`, the c of scores log(c / prior).

    conditional: truths x guesses, G(w,a) / p(w).  need: truths x reports, -inf where a pair is
    barred.
    """
    rows, member = group_truths(conditional)
    order = np.argsort(member, kind="stable")
    starts = np.flatnonzero(np.diff(member[order], prepend=-1))
    asked = np.maximum.reduceat(need[order], starts, axis=0).T  # reports x groups
    asked = np.where(np.isneginf(asked), -1e6, asked)
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
    slope = rows[None, :, :] if prior is None else rows[None, :, :] / scores[:, None, :]
    pull = slope * inverse[:, :, None]
    system = np.zeros((reports, guesses + 2, guesses + 2))
    system[:, :guesses, :guesses] = pull.transpose(0, 2, 1) @ pull
    diagonal = 1.0 / scores**2
    if prior is not None:
        diagonal = diagonal + (inverse @ rows) / scores**2
    system[:, np.arange(guesses), np.arange(guesses)] += diagonal
    cross = np.einsum("zga,zg->za", pull, inverse)
    system[:, :guesses, guesses] = system[:, guesses, :guesses] = cross
    system[:, guesses, guesses] = np.sum(inverse**2, axis=1)
    system[:, :guesses, guesses + 1] = system[:, guesses + 1, :guesses] = 1.0
    right = np.zeros((reports, guesses + 2))
    right[:, :guesses] = pull.sum(axis=1) + 1.0 / scores
    right[:, guesses] = inverse.sum(axis=1) - weight
    right[:, guesses + 1] = 1.0 - scores.sum(axis=1)
    move = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    change, theta_change = move[:, :guesses], move[:, guesses]
    step = np.minimum(1.0, 0.9 / np.maximum(np.max(-change / scores, axis=1), 1e-9))
    for _ in range(40):  # slack is concave in the scores: halve until inside
        ahead = scores + step[:, None] * change
        bad = np.any(
            (theta + step * theta_change)[:, None] - asked + _value(ahead, rows, prior)
            <= 0.05 * slack,
            axis=1,
        )
        if not bad.any():
            break
        step = np.where(bad, 0.6 * step, step)
    else:
        step = np.where(bad, 0.0, step)
    return scores + step[:, None] * change, theta + step * theta_change
