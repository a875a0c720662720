"""What reports cost, summed as they are drawn, and whether that is over the budget by more than
chance explains.

Rows that repeat a kept report share one draw, so rows are not independent.  Sums are therefore kept
in groups by the draw: rows of one draw always fall into one group, and what groups differ by shows
how far the mean may be off, however often a draw was repeated.  Groups hold no place and no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from sfumato.mechanism.loss import LOSSES

CONFIDENCE = 0.9999
SLACK = 0.02  # of the budget: what rounding, cells of kept reports and calibration may add
_GROUPS = 1024
_USER_GROUPS = 128
_BITS = 2.0**53


@dataclass(frozen=True)
class Budget:
    """What reports may cost on average: of all, and of single users.

    `loss_function` names the loss.  `within` is how far off the run's expected loss may be, by its
    own interval.
    """

    max_loss: float | None = None
    user_max_loss: Mapping[str, float] = field(default_factory=dict)
    loss_function: str = "euclidean"
    within: float = 0.0

    @property
    def known(self) -> bool:
        """Whether the loss can be worked out from truth and report."""
        return self.loss_function in LOSSES

    @property
    def unit(self) -> str:
        """Behind a loss; metres where the run's own is not known."""
        return LOSSES[self.loss_function].unit if self.known else "m"

    def costs(self, distance: np.ndarray) -> np.ndarray:
        """Losses of reports at these distances in metres."""
        power = LOSSES[self.loss_function].power if self.known else 1
        return distance if power in (None, 1) else distance**power

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "user_max_loss": dict(self.user_max_loss)}


@dataclass
class Spent:
    """Rows and losses in groups by draw."""

    rows: np.ndarray
    losses: np.ndarray

    @classmethod
    def none(cls, groups: int) -> "Spent":
        return cls(np.zeros(groups), np.zeros(groups))

    def add(self, draw: np.ndarray, cost: np.ndarray) -> None:
        """Take rows in; `draw` is a whole number that rows of the same draw share."""
        group = draw & (len(self.rows) - 1)  # the groups are a power of two
        self.rows += np.bincount(group, minlength=len(self.rows))
        self.losses += np.bincount(group, weights=cost, minlength=len(self.rows))

    def join(self, other: "Spent") -> None:
        """Take another's sums in."""
        self.rows, self.losses = self.rows + other.rows, self.losses + other.losses

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.rows.sum())

    @property
    def mean(self) -> float:
        """Loss per row."""
        return float(self.losses.sum() / self.rows.sum())

    def least(self, confidence: float) -> float:
        """What the expected loss is at least, with this confidence.

        A Student interval over the groups.  It is lowered by the share of draws that may cost
        nothing although none of those here did: with few draws, or with a coin that seldom reports
        the truth, equal losses do not mean that there are no others.
        """
        used = int((self.rows > 0).sum())
        if used < 2:
            return 0.0
        miss, mean = 1 - confidence, self.mean
        apart = self.losses - mean * self.rows
        error = float(np.sqrt((apart @ apart) * used / (used - 1)) / self.rows.sum())
        unseen = min(1.0, -float(np.log(miss)) / used)
        return max(0.0, mean * (1 - unseen) - float(-stdtrit(used - 1, miss)) * error)


@dataclass
class Ledger:
    """Losses of a table: of all rows, and of users with budgets of their own, by number."""

    whole: Spent = field(default_factory=lambda: Spent.none(_GROUPS))
    users: dict[int, Spent] = field(default_factory=dict)

    def add(self, draw: np.ndarray, cost: np.ndarray, user: np.ndarray | None = None) -> None:
        """Take rows in; `user` is the number of each row's user among those with budgets, or -1."""
        self.whole.add(draw, cost)
        if user is None:
            return
        named = user >= 0
        numbers, place = np.unique(user[named], return_inverse=True)
        cell = place.ravel() * _USER_GROUPS + draw[named] % _USER_GROUPS
        size = len(numbers) * _USER_GROUPS
        rows = np.bincount(cell, minlength=size).reshape(-1, _USER_GROUPS)
        losses = np.bincount(cell, weights=cost[named], minlength=size).reshape(-1, _USER_GROUPS)
        for at, number in enumerate(numbers.tolist()):
            self._of(number).join(Spent(rows[at].astype(float), losses[at]))

    def _of(self, number: int) -> Spent:
        return self.users.setdefault(number, Spent.none(_USER_GROUPS))

    def join(self, other: "Ledger") -> None:
        """Take another part's losses in."""
        self.whole.join(other.whole)
        for number, spent in other.users.items():
            self._of(number).join(spent)

    def against(self, budget: Budget) -> "Overspent":
        """Where the losses are over the budgets by more than chance and slack explain."""
        if not budget.known:
            return Overspent(passed=False, whole=False, users=0)
        confidence = 1 - (1 - CONFIDENCE) / (1 + len(self.users))
        limits = list(budget.user_max_loss.values())
        least = self.whole.least(confidence)
        limit = np.inf if budget.max_loss is None else budget.max_loss
        return Overspent(
            passed=least > limit,
            whole=least > limit + _slack(limit, budget.within),
            users=sum(
                spent.least(confidence) > limits[number] + _slack(limits[number], budget.within)
                for number, spent in self.users.items()
            ),
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "whole": _lists(self.whole),
            "users": {str(number): _lists(spent) for number, spent in self.users.items()},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Ledger":
        """Build what `as_dict` took apart."""
        return cls(
            _spent(stored["whole"]),
            {int(number): _spent(lists) for number, lists in stored["users"].items()},
        )


@dataclass(frozen=True)
class Overspent:
    """`passed`: the expected loss is over the budget, by however little; `whole`: by more than is
    let pass; `users`: how many users are over budgets of their own by more than is let pass."""

    passed: bool
    whole: bool
    users: int

    def __bool__(self) -> bool:
        return self.whole or self.users > 0


def draws_of(chance: np.ndarray) -> np.ndarray:
    """A whole number for each row that rows of the same draw share: the last bits of its first
    random number, which decide no report.  Rows that need no chance have one of their own."""
    if not chance.shape[1]:
        return np.arange(len(chance))
    return (chance[:, 0] * _BITS).astype(np.int64)


def _slack(limit: float, within: float) -> float:
    return max(SLACK * limit, within)


def _lists(spent: Spent) -> list[list[float]]:
    return [spent.rows.tolist(), spent.losses.tolist()]


def _spent(lists: list[list[float]]) -> Spent:
    return Spent(*(np.array(values, dtype=float) for values in lists))
