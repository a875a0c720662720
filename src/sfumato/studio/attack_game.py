"""Twenty rounds: a report is shown, the person guesses who sent it.  The senders stay here until
they are guessed."""

import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.studio.preview import ReportTable

ROUNDS = 20
_TIE = 0.005  # beliefs as close as this look the same


@dataclass
class AttackGame:
    """A game against one run, on its training data, for which its Bayes error holds."""

    run: str
    senders: list[int]
    reports: np.ndarray
    beliefs: np.ndarray
    users: tuple[str, ...]
    best_share: float
    guesses: list[int] = field(default_factory=list)

    @classmethod
    def deal(cls, run: str, table: ReportTable, samples: Samples) -> "AttackGame":
        """Draw senders and reports with secure chance."""
        rows = np.array([secrets.randbelow(len(samples)) for _ in range(ROUNDS)])
        reports = table.mechanism.sample(samples.truth[rows])
        best = float((table.posterior.max(axis=0) * table.chance).sum())
        senders = [int(number) for number in samples.secret[rows]]
        return cls(run, senders, reports, table.belief(reports), samples.secrets, best)

    def guess(self, user: Any) -> dict[str, Any]:
        """Take a guess and say how it was."""
        if len(self.guesses) >= ROUNDS:
            raise ProblemError("this game is over; begin another")
        if user not in self.users:
            raise ProblemError("guess one of the users of this data")
        at = len(self.guesses)
        self.guesses.append(self.users.index(user))
        return {
            "right": self.guesses[at] == self.senders[at],
            "sender": self.users[self.senders[at]],
            "belief": self.beliefs[at],
            "best_guesses": [
                self.users[int(number)]
                for number in np.flatnonzero(self.beliefs[at] >= self.beliefs[at].max() - _TIE)
            ],
            **self.state(),
        }

    def state(self) -> dict[str, Any]:
        """The round that is open and the score so far; nothing about senders not yet guessed."""
        at = len(self.guesses)
        known = self.senders[:at]
        best = self.beliefs[:at].argmax(axis=1) if at else np.array([])
        return {
            "run": self.run,
            "round": at,
            "rounds": ROUNDS,
            "report": None if at >= ROUNDS else self.reports[at],
            "score": sum(mine == sender for mine, sender in zip(self.guesses, known, strict=True)),
            "best_score": int(
                sum(int(guess) == sender for guess, sender in zip(best, known, strict=True))
            ),
            "best_expected": self.best_share * ROUNDS,
            "best_share": self.best_share,
        }
