"""What a codebook can be taught: the best law on its places, by the exact solver."""

from dataclasses import replace

import numpy as np

from sfumato.solver.exact.column_generation import solve as generate_columns
from sfumato.solver.exact.solver import task_of
from sfumato.solver.exact.task import InfeasibleBudget
from sfumato.solver.problem import Problem

MOST_TRUTHS = 2500  # beyond them the program grows too large for a lesson
_GAP = 1e-3


def best_law(
    problem: Problem, places: np.ndarray, *, time_limit: float | None = None
) -> np.ndarray | None:
    """P(place | truth) of least leakage within the budgets, shape (truths, places); places that
    coincide share evenly.

    None where no law on these places keeps the budgets.
    """
    distinct, number = np.unique(places, axis=0, return_inverse=True)
    number = number.ravel()

    def loss_of(chosen: np.ndarray) -> np.ndarray:
        return problem.loss(problem.places[:, None, :], distinct[None, chosen, :])

    task = replace(task_of(problem), loss_of=loss_of, report_count=len(distinct))
    try:
        found = generate_columns(task, gap=_GAP, time_limit=time_limit)
    except InfeasibleBudget:
        return None
    law = np.zeros((len(problem.places), len(distinct)))
    law[:, found.reports] = found.mechanism
    return law[:, number] / np.bincount(number)[number]
