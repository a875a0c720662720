"""The exact problem as arrays: joint table, losses in chunks, budgets, and laws brought within
them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sfumato.errors import ProblemError
from sfumato.solver.feasible import check_feasible

TINY = 1e-11  # a chance below it is left out of a law

# Arrays by their shapes; tests check them at every call.
PerTruth = Annotated[np.ndarray, "truths"]
PerPair = Annotated[np.ndarray, "truths reports"]
Weights = Annotated[np.ndarray, "truths guesses"]
Shares = Annotated[np.ndarray, "reports guesses"]
Charges = Annotated[np.ndarray, "truths budgets"]
Limits = Annotated[np.ndarray, "budgets"]


@dataclass(frozen=True)
class Task:
    """Leak least about the secret within the loss budgets.

    Main arguments:
      joint: P(secret, truth), secrets x truths, sums to 1, every truth has mass.
      loss_of: report indices -> loss table, truths x len(indices); metres or the user's own unit.
      report_count: how many reports there are.
    Other arguments (at least one budget or the cap):
      max_loss: average loss allowed over everybody.
      user_max_loss: average loss allowed to each secret, given that secret; one per secret.
      cap: no report with a larger loss than this is ever made.
      gains: g(guess, secret); None means one guess per secret, right or wrong.
      information: minimise I(X;Z) in nats in place of the vulnerability.
      linked: minimise the largest of these weighted sums of 1 - overlap, sums x pairs of secrets.
      pair_weights: of the pairs, for scores of linked reports; a proof has them, a question does
      not.
    """

    joint: Annotated[np.ndarray, "secrets truths"]
    loss_of: Callable[[np.ndarray], np.ndarray]
    report_count: int
    max_loss: float | None = None
    user_max_loss: np.ndarray | None = None
    cap: float | None = None
    gains: np.ndarray | None = None
    information: bool = False
    linked: np.ndarray | None = None
    pair_weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not np.all(self.joint.sum(axis=0) > 0) or not np.all(self.joint.sum(axis=1) > 0):
            raise ProblemError(
                "every truth and every secret needs some probability; drop the empty ones"
            )

    @property
    def prior(self) -> np.ndarray:
        """P(secret)."""
        return self.joint.sum(axis=1)

    @property
    def truth_mass(self) -> np.ndarray:
        """P(truth)."""
        return self.joint.sum(axis=0)

    @property
    def weights(self) -> Weights:
        """G(w, guess) = sum_x p(x,w) g(guess,x), truths x guesses."""
        return (
            self.joint.T.copy() if self.gains is None else self.joint.T @ np.asarray(self.gains).T
        )

    def budgets(self) -> tuple[Charges, Limits]:
        """Charges (truths x budgets) and limits: sum over w of charge times expected loss <=
        limit."""
        charges: list[np.ndarray] = []
        limits: list[float] = []
        if self.max_loss is not None:
            charges.append(self.truth_mass)
            limits.append(self.max_loss)
        if self.user_max_loss is not None:
            charges.extend(self.joint)
            limits.extend(self.prior * np.asarray(self.user_max_loss))
        truths = self.joint.shape[1]
        return np.array(charges).reshape(-1, truths).T, np.array(limits, dtype=float)

    def user_charges(self) -> np.ndarray:
        """What each budget charges each secret for a unit of its loss, budgets x secrets."""
        average = [] if self.max_loss is None else [self.prior]
        own = [] if self.user_max_loss is None else list(np.diag(self.prior))
        return np.reshape([*average, *own], (-1, len(self.joint)))

    def within_cap(self, loss: np.ndarray) -> np.ndarray | None:
        """Which pairs of a loss table the cap allows; None when all are."""
        return None if self.cap is None else loss <= self.cap * (1 + 1e-12)

    def check_feasible(self, least: np.ndarray) -> None:
        """Raise InfeasibleBudget where the nearest reports, with the losses `least`, break a
        budget."""
        check_feasible(
            self.joint,
            least,
            max_loss=self.max_loss,
            user_max_loss=self.user_max_loss,
            cap=self.cap,
        )

    def chunks(self, size_limit: int = 4_000_000) -> Iterator[np.ndarray]:
        """Report indices in pieces, so that a loss table stays near 32 MB."""
        step = max(1, size_limit // self.joint.shape[1])
        for start in range(0, self.report_count, step):
            yield np.arange(start, min(start + step, self.report_count))


def nearest_reports(task: Task) -> tuple[PerTruth, PerTruth]:
    """For each truth, the least loss that any report gives it, and that report."""
    truths = task.joint.shape[1]
    least, where = np.full(truths, np.inf), np.zeros(truths, dtype=int)
    for indices in task.chunks():
        loss = task.loss_of(indices)
        if not np.all(loss >= 0):
            raise ProblemError("losses must be numbers, at least 0")
        best = loss.argmin(axis=1)
        value = loss[np.arange(truths), best]
        better = value < least
        least[better], where[better] = value[better], indices[best[better]]
    return least, where


def mixing_share(spent: Limits, floor: Limits, limits: Limits) -> float:
    """The least share of the nearest reports, which spend `floor`, that brings what a law spends
    within every limit."""
    late = spent > limits
    if not late.any():
        return 0.0
    over = (spent - limits)[late] / np.maximum(spent - floor, 1e-300)[late]
    return min(1.0, float(over.max()) * (1 + 1e-12) + 1e-15)


def repaired(law: PerPair, loss: PerPair, charges: Charges, limits: Limits) -> PerPair:
    """The law with rows that sum to 1 and every budget kept, by mixing in as little of the nearest
    reports as needed."""
    nearest = np.zeros_like(loss)
    nearest[np.arange(len(loss)), loss.argmin(axis=1)] = 1.0
    law = np.where(law > TINY, law, 0.0)
    law /= law.sum(axis=1, keepdims=True)
    spent = charges.T @ np.sum(law * loss, axis=1)
    share = mixing_share(spent, charges.T @ np.sum(nearest * loss, axis=1), limits)
    return (1 - share) * law + share * nearest if share > 0 else law
