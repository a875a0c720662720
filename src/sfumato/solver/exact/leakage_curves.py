"""The two leakages as the interior-point solver sees them: scores, curvature and their own
slacks."""

import numpy as np

_TO_BOUNDARY = 0.95  # share of the way to the nearest wall that a step may go


def vulnerability(joint_zx: np.ndarray) -> float:
    """Sum over reports of the largest entry of J, reports x guesses."""
    return float(joint_zx.max(axis=1).sum())


def information(joint_zx: np.ndarray, prior: np.ndarray) -> float:
    """I(X;Z) in nats of P(report, secret)."""
    joint_zx = joint_zx[joint_zx.sum(axis=1) > 0]
    ratio = joint_zx / (joint_zx.sum(axis=1, keepdims=True) * prior)
    return float(np.sum(joint_zx * np.log(np.where(joint_zx > 0, ratio, 1.0))))


class Vulnerability:
    """F(J) = max_a J(a): slacks r = t - J >= 0 against scores s >= 0 that sum to 1."""

    curved = False

    def __init__(self, joint_zx: np.ndarray, barrier: float) -> None:
        reports, guesses = joint_zx.shape
        top = joint_zx.max(axis=1, keepdims=True) + guesses * barrier
        self.slack = top - joint_zx
        self.scores = np.full((reports, guesses), 1.0 / guesses)
        self._aim = np.zeros(1)
        self.pairs = self.slack.size

    def complementarity(self) -> float:
        return float(np.sum(self.slack * self.scores))

    def factor(self, curvature: np.ndarray) -> np.ndarray:
        """F with F F' = the map from column pressure to change of scores, per report."""
        guesses = self.scores.shape[1]
        full = curvature.copy()
        full[:, np.arange(guesses), np.arange(guesses)] += self.slack / self.scores
        size = 1.0 / np.sqrt(np.einsum("zaa->za", full))
        edge = size[:, :, None] * orthogonal_to(size)
        lower = np.linalg.cholesky(edge.transpose(0, 2, 1) @ full @ edge)
        return edge @ np.linalg.inv(lower).transpose(0, 2, 1)

    def pressure(self, target: float, correction: np.ndarray | float) -> np.ndarray | float:
        """What the products of slacks and scores press on the scores."""
        self._aim = target - self.slack * self.scores - correction
        return self._aim / self.scores

    def direction(self, change: np.ndarray) -> np.ndarray:
        """Change of slack that goes with a change of scores."""
        return self._aim / self.scores - self.slack / self.scores * change

    def longest(self, change: np.ndarray, slack_change: np.ndarray) -> tuple[float, float]:
        return longest_step(self.slack, slack_change), longest_step(self.scores, change)

    def move(self, joint_zx: np.ndarray, scores: np.ndarray, slack: np.ndarray) -> None:
        """To the law's new table, and to new scores and slacks up to rounding."""
        self.scores = scores / scores.sum(axis=1, keepdims=True)
        top = (slack + joint_zx).mean(axis=1, keepdims=True)  # remove the drift of rounding
        self.slack = np.maximum(top - joint_zx, 1e-3 * slack)

    @property
    def shares(self) -> np.ndarray:
        """The scores as probability vectors, reports x guesses."""
        return self.scores

    def leakage(self, joint_zx: np.ndarray) -> float:
        return vulnerability(joint_zx)


class Information:
    """F(J) = sum_a J(a) log( J(a) / (p(a) J) ): the scores are its gradient."""

    curved = True
    pairs = 0
    slack = np.zeros(1)  # none of its own

    def __init__(self, joint_zx: np.ndarray, barrier: float, *, prior: np.ndarray) -> None:
        self._prior = prior
        self._see(joint_zx)

    def _see(self, joint_zx: np.ndarray) -> None:
        self._joint = joint_zx
        share = joint_zx / joint_zx.sum(axis=1, keepdims=True)
        self.shares = share
        self.scores = np.where(
            share > 0, np.log(np.where(share > 0, share, 1.0) / self._prior), 0.0
        )

    def complementarity(self) -> float:
        return 0.0

    def factor(self, curvature: np.ndarray) -> np.ndarray:
        guesses = self.scores.shape[1]
        inverse_root = np.where(
            self._joint > 0, 1 / np.sqrt(np.where(self._joint > 0, self._joint, 1)), 0.0
        )
        edge = inverse_root[:, :, None] * orthogonal_to(np.sqrt(self.shares))
        inner = edge.transpose(0, 2, 1) @ curvature @ edge + np.eye(guesses - 1)
        lower = np.linalg.cholesky(inner)
        return edge @ np.linalg.inv(lower).transpose(0, 2, 1)

    def pressure(self, target: float, correction: np.ndarray | float) -> np.ndarray | float:
        return 0.0

    def direction(self, change: np.ndarray) -> np.ndarray:
        return np.zeros(1)

    def longest(self, change: np.ndarray, slack_change: np.ndarray) -> tuple[float, float]:
        return 1.0, 1.0

    def move(self, joint_zx: np.ndarray, scores: np.ndarray, slack: np.ndarray) -> None:
        self._see(joint_zx)

    def leakage(self, joint_zx: np.ndarray) -> float:
        return information(joint_zx, self._prior)


def orthogonal_to(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis of what is orthogonal to each non-negative row, by a mirror."""
    mirror = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    mirror[:, 0] += 1.0
    mirror /= np.linalg.norm(mirror, axis=1, keepdims=True)
    return np.eye(vectors.shape[1])[:, 1:] - 2 * mirror[:, :, None] * mirror[:, None, 1:]


def longest_step(value: np.ndarray, change: np.ndarray) -> float:
    """Largest step in [0, 1] that keeps value + step * change at or above 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # 0/0, a barred pair, is skipped
        worst = -np.fmin.reduce(change / value, axis=None, initial=0.0)
    return min(1.0, _TO_BOUNDARY / worst) if worst > 0 else 1.0
