"""The linear program over chosen pairs of truth and report, and the law that comes out of it."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csc_array

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.task import TINY, Task, mixing_share


@dataclass(frozen=True)
class Pairs:
    """Some pairs (truth, report) with their losses: `truth` and `report` are indices, sorted by
    truth."""

    truth: np.ndarray
    report: np.ndarray
    loss: np.ndarray

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True)
class Answer:
    """A law over the pairs as the program left it, the value of each truth and the multiplier of
    each budget."""

    law: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray


def solve_pairs(task: Task, pairs: Pairs, *, deadline: Deadline = NEVER) -> Answer | None:
    """Least vulnerability of a law that makes only these pairs, by HiGHS; None if the time was too
    short."""
    if deadline.passed:
        return None
    weights = task.weights
    truths, guesses = weights.shape
    charges, limits = task.budgets()
    named, report = np.unique(pairs.report, return_inverse=True)
    count, columns = len(pairs), len(pairs) + len(named)
    each = np.arange(count)
    tops = np.arange(len(named) * guesses)
    rows, across, values = [tops], [count + tops // guesses], [-np.ones(len(tops))]
    for guess in range(guesses):
        rows, across, values = (
            [*rows, report * guesses + guess],
            [*across, each],
            [*values, weights[pairs.truth, guess]],
        )
    for k, charge in enumerate(charges.T):
        rows, across = [*rows, np.full(count, len(tops) + k)], [*across, each]
        values = [*values, charge[pairs.truth] * pairs.loss]
    below = csc_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(across))),
        shape=(len(tops) + len(limits), columns),
    )
    sums = csc_array((np.ones(count), (pairs.truth, each)), shape=(truths, columns))
    lowest = np.where(np.arange(columns) < count, 0.0, -np.inf if np.any(weights < 0) else 0.0)
    found = linprog(
        np.repeat([0.0, 1.0], [count, len(named)]),
        A_ub=below,
        b_ub=np.concatenate([np.zeros(len(tops)), limits]),
        A_eq=sums,
        b_eq=np.ones(truths),
        bounds=np.stack([lowest, np.full(columns, np.inf)], axis=1),
        method="highs-ipm",
        options={"time_limit": min(deadline.left, 1e7)},
    )
    if found.x is None or found.status != 0:
        return None
    return Answer(
        np.maximum(found.x[:count], 0.0),
        found.eqlin.marginals,
        np.maximum(-found.ineqlin.marginals[len(tops) :], 0.0),
    )


def repaired_pairs(task: Task, pairs: Pairs, law: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """`task.repaired` for a law over pairs, where rows may also be empty.

    nearest: the place of each truth's nearest report in the list of pairs.
    """
    charges, limits = task.budgets()
    law = np.where(law > TINY, law, 0.0)
    law[nearest] += np.bincount(pairs.truth, law) == 0
    law = law / np.bincount(pairs.truth, law)[pairs.truth]
    spent = charges.T @ np.bincount(pairs.truth, law * pairs.loss)
    share = mixing_share(spent, charges.T @ pairs.loss[nearest], limits)
    if share > 0:
        law = (1 - share) * law
        law[nearest] += share
    return law


def leakage_of(task: Task, pairs: Pairs, law: np.ndarray) -> float:
    """The vulnerability of the law over the pairs."""
    table = coo_array(
        (law, (pairs.report, pairs.truth)), shape=(task.report_count, len(task.weights))
    )
    return float((table.tocsr() @ task.weights).max(axis=1).sum())
