"""What a codebook's net is taught: the optimal law on its places, by the exact solver."""

import numpy as np

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact import best_for, generate_columns, program_of
from sfumato.solver.feasible import InfeasibleBudget
from sfumato.solver.problem import Problem

MOST_TRUTHS = 2500  # beyond them the program grows too large
_GAP = 1e-3


def optimal_law(
    problem: Problem, places: np.ndarray, *, deadline: Deadline = NEVER
) -> np.ndarray | None:
    """P(place | truth) of least leakage within the budgets, shape (truths, places); places that
    coincide share evenly.

    None where no law on these places keeps the budgets.
    """
    distinct, number = np.unique(places, axis=0, return_inverse=True)
    number = number.ravel()
    try:
        task = program_of(problem, distinct)
        optimum = generate_columns(task, gap=_GAP, deadline=deadline)
        if problem.several is not None:
            optimum = best_for(
                task, problem.several, optimum, gap=_GAP, alone=False, deadline=deadline
            )
    except InfeasibleBudget:
        return None
    law = np.zeros((len(problem.places), len(distinct)))
    law[:, optimum.reports] = optimum.mechanism
    return law[:, number] / np.bincount(number)[number]
