"""The game of the paper's Algorithm 1, as a solver."""

from dataclasses import dataclass

from sfumato.data.categories import CategoricalData
from sfumato.errors import ProblemError, arg
from sfumato.solver.game.settings import GameSettings
from sfumato.solver.outcome import Conditions, Outcome
from sfumato.solver.problem import Problem


@dataclass(frozen=True)
class Game(GameSettings):
    """Generator against classifier: the paper's two nets and payoff, with a faster recipe.

    `Game.paper` is the paper's own, by experiment.  The payoff that is learned by is not the
    leakage: that (lower is more private) is measured afterwards, as for every solver.

    >>> Game().rounds, Game.paper(1).rounds
    (20, 150)
    """

    name = "game"
    resumable = True

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """Play; choose the best round by validation data; bring it within the budget on the
        training data."""
        if isinstance(problem.samples, CategoricalData):
            raise ProblemError(
                f"{problem.samples.name} holds categories; the game learns on places: use the exact"
                " solver"
            )
        if problem.reports != 1:
            raise ProblemError(
                f"the game is played for one report; for {arg('reports')} {problem.reports} use the"
                " codebook or the exact solver"
            )
        problem.check_feasible()
        from sfumato.solver.game.training import GameTraining  # JAX: only where it learns

        return GameTraining(self, problem, how.seed).run(how)
