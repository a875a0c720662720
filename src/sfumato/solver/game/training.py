"""A game on one problem, from the first round to the mechanism that is released."""

from functools import cached_property
from math import cos, pi
from typing import Any, NamedTuple

import numpy as np

from sfumato.data.samples import Samples
from sfumato.mechanism.base import Mechanism
from sfumato.nets import Net, glorot_net
from sfumato.solver.game.candidate import Candidate
from sfumato.solver.game.frame import frame_of, wide_cells
from sfumato.solver.game.pretrain import imitate_laplace
from sfumato.solver.game.settings import GameSettings
from sfumato.solver.game.train import ADAM, Players, TrainingData, play_round
from sfumato.solver.learner import Clock, History, Round, train
from sfumato.solver.outcome import Conditions, Ended, Ending, Outcome, Played
from sfumato.solver.problem import Problem


class State(NamedTuple):
    """The players on each lattice; the best generator so far, its score, lattice and round."""

    players: tuple[Players, ...]
    best: Net
    score: float
    lattice: int
    round: int


class GameTraining:
    """One game for each lattice, round by round side by side: a `Training` of the learner's
    loop."""

    def __init__(self, game: GameSettings, problem: Problem, seed: int) -> None:
        assert isinstance(problem.samples, Samples)
        self.game, self.problem, self.seed = game, problem, seed
        self.learning, self.validation = problem.samples.carve(game.validation, seed=seed)
        widths = (
            wide_cells(share, max_loss=problem.average_budget, cell_m=problem.grid.cell_m)
            for share in game.lattices
        )
        self.cells = tuple(dict.fromkeys(widths))
        self.data = [self._data(cells) for cells in self.cells]

    def run(self, how: Conditions) -> Outcome:
        """Algorithm 1 of the paper, for each lattice; then the best round, within the budget."""
        trained = train(
            self, deadline=how.deadline, progress=how.progress, checkpoint=how.checkpoint
        )
        state, history = trained.state, trained.history
        candidate = self.candidate(state.best, state.lattice)
        if self.game.calibrate:
            candidate = candidate.calibrated()
        width = self.cells[state.lattice] * self.problem.grid.cell_m
        facts = Played(
            rounds=len(history) // len(self.cells),
            all_rounds=self.game.rounds,
            released_round=state.round,
            lattice_m=width,
            by_validation=self.game.best,
            keep=candidate.net.keep,
        )
        ending = Ending(trained.ended, facts, resumable=trained.ended is not Ended.FINISHED)
        lines = tuple(line for line in history if line["lattice_m"] == width)
        return Outcome(candidate.mechanism, ending, lines)

    def next_round(self, state: State, history: History, clock: Clock) -> Round[State] | Ended:
        """One round on every lattice; what was best before stays so unless validation data says
        otherwise."""
        index = len(history) // len(self.cells)
        if index >= self.game.rounds:
            return Ended.FINISHED
        took = clock.took[-1] if clock.took else 0.0
        if history and clock.deadline.left <= took:  # another is begun only if it fits
            return Ended.TIME_LIMIT
        players, lines = list(state.players), []
        for number in range(len(self.cells)):
            players[number], line, mechanism = self._round(index, number, players[number])
            lines.append((line, mechanism))
            if line["score"] > state.score or not self.game.best:
                best = players[number].generator
                state = State(state.players, best, line["score"], number, index)
        return Round(state._replace(players=tuple(players)), lines)

    def _round(
        self, index: int, number: int, players: Players
    ) -> tuple[Players, dict[str, Any], Mechanism]:
        """One round on one lattice, its line of history and the mechanism as it is then."""
        game = self.game
        fade = 0.5 * (1 + cos(pi * index / game.rounds)) if game.generator.fade else 1.0
        random = np.random.default_rng((self.seed, 1, number, index))
        base = self.first_players.classifier
        players, notes = play_round(
            game, self.problem.loss, random, players, base, self.data[number], fade
        )
        candidate = self.candidate(players.generator, number)
        hidden, score = candidate.score(self.validation)
        line = {"round": index, "lattice_m": self.cells[number] * self.problem.grid.cell_m}
        line |= {name: float(value) for name, value in notes.items()}
        line |= {"validation_bayes_error": hidden, "score": score}
        return players, line, candidate.mechanism

    def candidate(self, generator: Net, number: int) -> Candidate:
        """A generator as it would be released from one of the lattices."""
        return Candidate.of(
            generator,
            self.data[number].frame,
            cells=self.cells[number],
            problem=self.problem,
            learning=self.learning,
            levels=self.game.generator.levels,
        )

    def _data(self, cells: int) -> TrainingData:
        frame = frame_of(
            self.learning.truth, self.problem.grid, cells=cells, region_m=self.game.region_m
        )
        (truth, user), (held_truth, held_user) = (
            (frame.scale(part.truth).astype(np.float32), part.secret.astype(np.int32))
            for part in (self.learning, self.validation)
        )
        budget = np.float32(self.problem.average_budget)
        return TrainingData(truth, user, held_truth, held_user, frame, budget)

    @cached_property
    def first_players(self) -> Players:
        """Glorot's start for both nets; the generator then imitates planar Laplace noise that
        spends the budget."""
        game, data = self.game, self.data[0]
        random = np.random.default_rng((self.seed, 0))

        def draw(reach: float, shape: tuple[int, int]) -> np.ndarray:
            return random.uniform(-reach, reach, shape).astype(np.float32)

        generator = glorot_net((3, *game.generator.hidden, 2), draw)
        users = len(self.learning.secrets)
        classifier = glorot_net((2, *game.classifier.hidden, users), draw)
        start_loss = data.max_loss if game.start.loss_m is None else game.start.loss_m
        mean_loss = float(start_loss / data.frame.unit)
        if game.start.steps:
            generator = imitate_laplace(
                random, generator, data.truth, game.start, mean_loss=mean_loss
            )
        moments = ADAM.init(generator), ADAM.init(classifier)
        return Players(generator, moments[0], np.float32(1.0), classifier, moments[1])

    def first(self) -> State:
        """The same start for every lattice."""
        first = self.first_players
        return State((first,) * len(self.cells), first.generator, -1.0, 0, -1)

    def identity(self) -> str:
        problem = self.problem
        return (
            f"{self.game!r} {self.seed} {problem.average_budget!r} {problem.loss.__name__}"
            f" {problem.grid.as_dict()} {problem.samples.hash}"
        )
