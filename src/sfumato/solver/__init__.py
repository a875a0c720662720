"""Problems and solvers."""

from difflib import get_close_matches
from typing import Any

from sfumato.errors import ProblemError
from sfumato.solver.approximate import Android, Snap, WebKit
from sfumato.solver.baselines import Coin, Laplace
from sfumato.solver.codebook import Codebook
from sfumato.solver.exact import Exact
from sfumato.solver.game import Game
from sfumato.solver.outcome import Solver
from sfumato.solver.problem import Problem

SOLVERS: dict[str, type[Any]] = {
    solver.name: solver for solver in (Codebook, Exact, Game, Coin, Laplace, Snap, Android, WebKit)
}
"""Every solver, by its name on the command line and on the page: to add one, add a line."""
DEFAULT = "codebook"
"""The solver that runs where none is named."""


def as_solver(given: Solver | type[Solver] | str) -> Solver:
    """A solver as it is; one with its usual settings for a class or for a name.

    >>> as_solver("coin"), as_solver(Laplace).name
    (Coin(), 'laplace')
    """
    if isinstance(given, str):
        if given not in SOLVERS:
            near = get_close_matches(given.lower(), SOLVERS, n=1)
            meant = f" (did you mean '{near[0]}'?)" if near else ""
            raise ProblemError(
                f"there is no solver '{given}'{meant}; expected one of {', '.join(SOLVERS)}"
            )
        given = SOLVERS[given]
    solver = given() if isinstance(given, type) else given
    if not callable(getattr(solver, "solve", None)):
        raise ProblemError(
            f"expected a solver such as sf.Coin(), or its name; got {type(solver).__name__}"
        )
    return solver


__all__ = [
    "DEFAULT",
    "SOLVERS",
    "Android",
    "Codebook",
    "Coin",
    "Exact",
    "Game",
    "Laplace",
    "Problem",
    "Snap",
    "Solver",
    "WebKit",
    "as_solver",
]
