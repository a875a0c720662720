"""Three users on a square, and what a solution promises and proves."""

from typing import Any

import numpy as np

from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.solver import Exact, Problem
from sfumato.study.solution import Solution

GRID_ONLY = Exact(plane=False)


def three_users(seed: int = 0, points: int = 6) -> Samples:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [200.0, 0.0], [100.0, 170.0]])
    secret = np.repeat(np.arange(3), points)
    return Samples(
        secret,
        np.round(centres[secret] + rng.normal(0, 40, (3 * points, 2)), 1),
        ("anna", "ben", "cleo"),
    )


DATA = three_users()

SQUARE = Region((100.0, 80.0), 600.0)


def on_square(**options: Any) -> Problem:
    return Problem(DATA, **{"region": SQUARE, "cell_m": 60.0, **options})


def law_of(solution: Solution) -> Any:
    found = solution.mechanism.law(solution.problem.joint, loss=solution.problem.loss)
    assert found is not None
    return found


def proved(solution: Solution) -> float:
    assert solution.certificate is not None
    return solution.certificate.bound(solution.problem).grid
