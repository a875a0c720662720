"""Scores of linked reports where no law reports yet: likelihoods of the users, as roots t with
s(x) = sum_x' m(x,x') (1 - t(x') / t(x)) / 2p(x), that give each truth what it needs."""

import numpy as np

from sfumato.solver.exact.task import Shares

_ROUNDING = 1e-9  # of the weights, that likelihoods may fall short by more
_SHARPNESS = 10.0 ** np.arange(1, 6)  # of the smoothed least surplus, in turn
_STEPS = 4  # of Newton's at each
_MIX = 1e-11  # of the largest likelihood in each


def weight_table(pair_weights: np.ndarray, users: int) -> np.ndarray:
    """Weights of pairs as a symmetric table, users x users."""
    table = np.zeros((users, users))
    table[np.triu_indices(users, 1)] = pair_weights
    return table + table.T


def linked_scores(weights: np.ndarray, prior: np.ndarray, roots: Shares) -> Shares:
    """The scores of likelihoods, given as their roots: sum_x' m (1 - t(x')/t(x)) / 2p(x)."""
    return (weights.sum(axis=1) - roots @ weights / roots) / (2 * prior)


def shared_likelihoods(
    weights: np.ndarray,
    prior: np.ndarray,
    rows: np.ndarray,
    asked: np.ndarray,
    start: Shares,
) -> Shares:
    """Likelihoods whose scores give groups of truths what they ask, or are short of it by little:
    from `start`, Newton's steps on the smoothed least surplus, which is concave in log t.

    rows: P(.|w) of each group.  asked: reports x groups.
    """
    users, logs = len(prior), 0.5 * np.log(start)
    own = np.arange(users)

    def surplus(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each group has over what it asks, and m(x,y) t(y) / t(x) / 2p(x)."""
        spent = weights * np.exp(logs[:, None, :] - logs[:, :, None]) / (2 * prior)[:, None]
        return (weights.sum(axis=1) / (2 * prior) - spent.sum(axis=2)) @ rows.T - asked, spent

    def height(over: np.ndarray, sharpness: float) -> np.ndarray:
        least = over.min(axis=1)
        return least - np.log(np.exp(sharpness * (least[:, None] - over)).sum(axis=1)) / sharpness

    for sharpness in _SHARPNESS:
        for _ in range(_STEPS):
            over, spent = surplus(logs)
            share = np.exp(sharpness * (over.min(axis=1, keepdims=True) - over))
            share /= share.sum(axis=1, keepdims=True)
            slopes = -spent  # of each score by each log
            slopes[:, own, own] += spent.sum(axis=2)
            by_group = rows @ slopes
            mean = np.einsum("zg,zgx->zx", share, by_group)
            flow = (share @ rows)[:, :, None] * spent
            flow = flow + flow.transpose(0, 2, 1)
            bend = -flow
            bend[:, own, own] += flow.sum(axis=2)
            spread = by_group * np.sqrt(share)[:, :, None]
            spread = spread.transpose(0, 2, 1) @ spread - mean[:, :, None] * mean[:, None, :]
            bend += sharpness * spread + 1.0 / users  # logs are free up to a constant
            bend[:, own, own] += 1e-9
            move = np.linalg.solve(bend, mean[:, :, None])[:, :, 0]
            before, length = height(over, sharpness), np.ones(len(logs))
            for _ in range(12):
                tried = logs + np.clip(length[:, None] * move, -3, 3)
                worse = height(surplus(tried)[0], sharpness) < before
                if not worse.any():
                    break
                length = np.where(worse, 0.4 * length, length)
            logs = np.where(worse[:, None], logs, tried)
    likelihoods = np.exp(2 * (logs - logs.max(axis=1, keepdims=True)))
    return np.asarray(likelihoods / likelihoods.sum(axis=1, keepdims=True))


def likelihoods_for(weights: np.ndarray, prior: np.ndarray, asked: Shares) -> Shares:
    """Likelihoods whose scores are `asked` at least, or short of it by as little for all users.

    With a = sum m - 2p asked the roots t must have  m t <= a t,  so they exist iff the largest
    eigenvalue of m between the inverse roots of a is at most 1; t is then its vector.  With all
    users short by e, a grows by 2pe: the least e is minus the smallest eigenvalue of a - m between
    the inverse roots of 2p.
    """
    room = weights.sum(axis=1) - 2 * prior * asked
    room = np.where(np.isfinite(room), room, room[np.isfinite(room)].max(initial=1.0) * 1e3)
    scale, own = 1 / np.sqrt(2 * prior), np.arange(len(prior))
    spare = np.tile(-scale[:, None] * weights * scale, (len(room), 1, 1))
    spare[:, own, own] += room * scale**2
    low = np.maximum(-np.min(room / (2 * prior), axis=1), 0.0)  # a must stay above 0
    short = np.maximum(-np.linalg.eigvalsh(spare)[:, 0], low) + _ROUNDING * weights.sum()
    inverse = 1 / np.sqrt(np.maximum(room + 2 * prior * short[:, None], 1e-12))
    basis = np.linalg.eigh(inverse[:, :, None] * weights * inverse[:, None, :])[1]
    likelihood = (inverse * np.abs(basis[:, :, -1])) ** 2
    likelihood = np.maximum(likelihood, _MIX * likelihood.max(axis=1, keepdims=True))
    return likelihood / likelihood.sum(axis=1, keepdims=True)
