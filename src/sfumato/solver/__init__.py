"""Problems and solvers."""

from sfumato.solver.baselines import Coin, Laplace
from sfumato.solver.codebook import Codebook
from sfumato.solver.exact.solver import Exact
from sfumato.solver.game import Game
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Solver

SOLVERS: dict[str, type] = {
    "codebook": Codebook,
    "exact": Exact,
    "game": Game,
    "coin": Coin,
    "laplace": Laplace,
}
DEFAULT = "codebook"
RESUMABLE = (Codebook, Game)  # learn round by round: progress, checkpoints


__all__ = [
    "DEFAULT",
    "RESUMABLE",
    "SOLVERS",
    "Codebook",
    "Coin",
    "Exact",
    "Game",
    "Laplace",
    "Problem",
    "Solver",
]
