"""The contract of adversaries: learn from reports, then guess who sent others."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sfumato.errors import ProblemError

_AT_ONCE = 2_000_000  # reports times secrets of a posterior that is held


class Adversary(ABC):
    """Settings of an attack; `fit` gives the trained attacker.

    >>> from sfumato.adversary.counting import Neighbours
    >>> isinstance(Neighbours(k=5), Adversary)
    True
    """

    @abstractmethod
    def fit(
        self, secret: np.ndarray, reports: np.ndarray, *, secrets: int, seed: int = 0
    ) -> "Attacker":
        """Learn from reports whose senders are known."""


class Attacker(ABC):
    """An adversary that has learnt.

    >>> from sfumato.adversary.counting import Neighbours
    >>> reports = np.array([[0.0, 0.0], [100.0, 0.0]])
    >>> Neighbours(k=1).fit(np.array([0, 1]), reports, secrets=2).guess(reports).tolist()
    [0, 1]
    """

    @abstractmethod
    def posterior(self, reports: np.ndarray) -> np.ndarray:
        """P(guess | report): one row per report, one column per secret; rows sum to 1."""

    def guess(self, reports: np.ndarray) -> np.ndarray:
        """The most likely secret for each report (the first of equals)."""
        return np.argmax(self.posterior(reports), axis=1)


@dataclass(frozen=True)
class Score:
    """How often the guesses were right: accuracy, and F1 averaged over the secrets."""

    accuracy: float
    f1: float


def score(attacker: Attacker, secret: np.ndarray, reports: np.ndarray, *, secrets: int) -> Score:
    """Accuracy and macro F1 of an attacker's guesses.

    Equal best guesses count in shares, so that an attacker who knows nothing scores 1/secrets.
    F1 of a secret is 2 right / (2 right + wrong + missed); 0 where it was never guessed nor sent.

    >>> from sfumato.adversary.counting import Neighbours
    >>> secret, reports = np.array([0, 1]), np.array([[0.0, 0.0], [100.0, 0.0]])
    >>> score(Neighbours(k=1).fit(secret, reports, secrets=2), secret, reports, secrets=2)
    Score(accuracy=1.0, f1=1.0)
    """
    if not len(secret):
        raise ProblemError("no reports to score; expected at least one")
    right, guessed = np.zeros(secrets), np.zeros(secrets)
    sent = np.bincount(secret, minlength=secrets)
    step = max(1, _AT_ONCE // secrets)
    for start in range(0, len(secret), step):
        posterior = attacker.posterior(reports[start : start + step])
        best = posterior >= posterior.max(axis=1, keepdims=True) * (1 - 1e-9)
        share = best / best.sum(axis=1, keepdims=True)
        who = secret[start : start + step]
        right += np.bincount(who, share[np.arange(len(who)), who], minlength=secrets)
        guessed += share.sum(axis=0)
    f1 = np.divide(2 * right, sent + guessed, out=np.zeros(secrets), where=sent + guessed > 0)
    return Score(accuracy=float(right.sum() / len(secret)), f1=float(f1.mean()))


def counted(
    places: np.ndarray, secret: np.ndarray, *, secrets: int
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct places, and how often each secret was seen at each: shape (places, secrets)."""
    distinct, row = np.unique(places, axis=0, return_inverse=True)
    counts = np.bincount(row.ravel() * secrets + secret, minlength=len(distinct) * secrets)
    return distinct, counts.reshape(len(distinct), secrets)
