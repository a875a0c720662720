"""The game of the paper's Algorithm 1, as a solver."""

from dataclasses import dataclass

from sfumato.arguments import guided_class
from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError, arg
from sfumato.memory import Expected, check_fits
from sfumato.solver.game.settings import GameSettings
from sfumato.solver.outcome import Conditions, Outcome, Solving
from sfumato.solver.problem import Problem

# Fitted to runs on one core (`python -m benchmarks foretold`): seconds of the start and of
# compiling, per report that the classifier learns from, per report of a step of the generator, and
# for both per user, who has an output of the classifier.
_START_S, _CLASSIFIED_S, _GENERATED_S, _USER_S = 12.0, 1.5e-6, 3e-6, 4.5e-8
_START_BYTES, _CHECKIN_BYTES, _USER_BYTES = 600e6, 1000, 500e3
_MOST_USERS = 1_000  # with more a round, which is never left halfway, takes minutes


@guided_class()
@dataclass(frozen=True)
class Game(GameSettings, Solving):
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
        self._check(problem)
        problem.check_feasible()
        from sfumato.solver.game.training import GameTraining  # JAX: only where it learns

        return GameTraining(self, problem, how.seed).run(how)

    def expected(self, problem: Problem) -> Expected:
        """What all rounds on all lattices take."""
        self._check(problem)
        assert isinstance(problem.samples, Samples)
        checkins, users = len(problem.samples), len(problem.samples.secrets)
        steps = max(1, -(-checkins // self.generator.batch))
        steps *= self.generator.epochs_of(steps)
        classified = self.classifier.epochs * max(self.classifier.reports, checkins)
        generated = steps * self.generator.batch * self.generator.seeds
        turn = _CLASSIFIED_S * classified + _GENERATED_S * generated
        turn += _USER_S * users * (classified + generated)
        turns = len(self.lattices) * self.rounds * self.turns
        size = _START_BYTES + _CHECKIN_BYTES * checkins + _USER_BYTES * users
        check_fits(
            size,
            what=f"the game with {checkins:,} check-ins",
            advice=f"keep fewer users ({arg('top_users')}), or take the codebook",
        )
        return Expected(_START_S + turns * turn, size)

    def _check(self, problem: Problem) -> None:
        """Refuse at once what no game can give."""
        if isinstance(problem.samples, CategoricalData):
            raise ProblemError(
                f"{problem.samples.name} holds categories; the game learns on places: use the exact"
                " solver"
            )
        if len(problem.samples.secrets) > _MOST_USERS:
            raise ProblemError(
                f"the game takes at most {_MOST_USERS:,} users, each an output of its classifier;"
                f" got {len(problem.samples.secrets):,}: keep fewer with {arg('top_users')}, or"
                " take the codebook"
            )
        fewest = min(count for count in problem.samples.counts if count)
        if not round(self.validation * fewest) >= 1:
            raise ProblemError(
                f"a validation share of {self.validation:g} leaves a user with {fewest} check-ins"
                " without any; raise it or keep only users with more"
            )
        if problem.reports != 1:
            raise ProblemError(
                f"the game is played for one report; for {arg('reports')} {problem.reports} use the"
                " codebook or the exact solver"
            )
