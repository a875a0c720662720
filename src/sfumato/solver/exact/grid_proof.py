"""Scores and multipliers over all reports: the bound they prove, how to better them, and which
pairs they leave in play."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.solver.exact.pairs_program import Pairs
from sfumato.solver.exact.pricing import Budgets, cost_of, needs, scores_for
from sfumato.solver.exact.task import Task

_TIE = 1e-9  # of the loss: among pairs that cost the same the nearer ones come first


@dataclass(frozen=True)
class GridProof:
    """Scores and multipliers, with each truth's least cost over all reports and the bound that they
    prove."""

    task: Task
    budgets: Budgets
    shares: np.ndarray
    multipliers: np.ndarray

    @classmethod
    def fitted(
        cls, task: Task, budgets: Budgets, values: np.ndarray, multipliers: np.ndarray
    ) -> "GridProof":
        """At every report the scores that let the truths keep their values, as far as that can
        be."""
        prices = budgets.charges @ multipliers
        shares = [
            scores_for(task, needs(task, values, prices, task.loss_of(one), budgets))
            for one in task.chunks(1_000_000)
        ]
        return cls(task, budgets, np.concatenate(shares), multipliers)

    @cached_property
    def floor(self) -> np.ndarray:
        """The least cost of each truth."""
        floor = np.full(len(self.task.weights), np.inf)
        for _, cost, _ in self._costs():
            np.minimum(floor, cost.min(axis=1), out=floor)
        return floor

    @cached_property
    def bound(self) -> float:
        """No law within the budgets leaks less."""
        return float(self.floor.sum() - self.multipliers @ self.budgets.limits)

    def _costs(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Reports in pieces, with the cost and the loss of every truth at them."""
        prices = self.budgets.charges @ self.multipliers
        for indices in self.task.chunks(1_000_000):
            loss = self.task.loss_of(indices)
            yield (
                indices,
                cost_of(
                    self.task,
                    self.shares[indices],
                    loss,
                    prices,
                    self.budgets.allowed(self.task, loss),
                ),
                loss,
            )

    def scaled(self) -> "GridProof":
        """The same scores with the multipliers scaled for the best bound."""
        return _best_along(
            lambda share: GridProof(
                self.task, self.budgets, self.shares, (0.8 + 0.4 * share) * self.multipliers
            ),
            [self],
        )

    def towards(self, other: "GridProof") -> "GridProof":
        """The best mixture of this proof and another."""

        def mixed(share: float) -> GridProof:
            both = (
                (1 - share) * self.shares + share * other.shares,
                (1 - share) * self.multipliers + share * other.multipliers,
            )
            return GridProof(self.task, self.budgets, *both)

        return _best_along(mixed, [self, other])

    def cheapest_pairs(self, a_truth: float) -> Pairs:
        """Pairs whose cost for the truth, given it, is nearest to its least: about so many a truth,
        more where many are close."""
        mass = self.task.truth_mass

        def over(cost: np.ndarray, loss: np.ndarray) -> np.ndarray:
            return (cost - self.floor[:, None]) / mass[:, None] + _TIE * loss

        some = np.unique(np.linspace(0, len(mass) - 1, 400).astype(int))
        seen = np.concatenate([over(cost, loss)[some] for _, cost, loss in self._costs()], axis=1)
        seen = seen[np.isfinite(seen)]  # without barred pairs
        wanted = min(int(a_truth * len(some)), len(seen) - 1)
        width = float(np.partition(seen, wanted)[wanted])
        parts = []
        for indices, cost, loss in self._costs():
            truth, column = np.nonzero(over(cost, loss) <= width)
            parts.append((truth, indices[column], loss[truth, column]))
        truth, report, loss = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Pairs(truth, report, loss)


def _best_along(at: Callable[[float], GridProof], known: list[GridProof]) -> GridProof:
    """The best bound on a segment, by golden section: the bound is concave along it."""
    ratio = (5**0.5 - 1) / 2
    low, high = 0.0, 1.0
    left, right = at(1 - ratio), at(ratio)
    tried = [*known, left, right]
    for _ in range(8):
        if left.bound < right.bound:
            low, left = low + (1 - ratio) * (high - low), right
            right = at(low + ratio * (high - low))
            tried.append(right)
        else:
            high, right = low + ratio * (high - low), left
            left = at(low + (1 - ratio) * (high - low))
            tried.append(left)
    return max(tried, key=lambda one: one.bound)
