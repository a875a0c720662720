"""Problems and solvers."""

from typing import Any

from sfumato.solver.baselines import Coin, Laplace
from sfumato.solver.codebook import Codebook
from sfumato.solver.exact import Exact
from sfumato.solver.game import Game
from sfumato.solver.outcome import Solver
from sfumato.solver.problem import Problem

# Every solver, by its name on the command line and on the page: to add one, add a line.
SOLVERS: dict[str, type[Any]] = {
    solver.name: solver for solver in (Codebook, Exact, Game, Coin, Laplace)
}
DEFAULT = "codebook"

__all__ = [
    "DEFAULT",
    "SOLVERS",
    "Codebook",
    "Coin",
    "Exact",
    "Game",
    "Laplace",
    "Problem",
    "Solver",
]
