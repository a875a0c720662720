"""The game from the first round to the mechanism that is released."""

import time
from collections.abc import Callable
from functools import cached_property
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.files import array_hash
from sfumato.nets import Net
from sfumato.solver.game import checkpoint as files
from sfumato.solver.game.candidate import Candidate
from sfumato.solver.game.frame import frame_of, wide_cells
from sfumato.solver.game.rounds import Players, Scene, first_players, play_round
from sfumato.solver.game.settings import Game
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Outcome

Line = dict[str, Any]  # one round on one lattice, for the history
Best = tuple[
    Net, dict[str, Any]
]  # the generator of the best round so far; its score, lattice and round


class Match:
    """One game for each lattice, round by round side by side, on one problem."""

    def __init__(self, game: Game, problem: Problem, seed: int) -> None:
        assert isinstance(problem.samples, Samples)
        self.game, self.problem, self.seed = game, problem, seed
        self.learning, self.held = problem.samples.carve(game.validation, seed=seed)
        if not len(np.unique(self.held.secret)) == len(np.unique(problem.samples.secret)):
            raise ProblemError(
                f"a validation share of {game.validation:g} leaves a user without check-ins; raise"
                " it or bring more data"
            )
        widths = (
            wide_cells(share, max_loss=problem.average_budget, cell_m=problem.grid.cell_m)
            for share in game.lattices
        )
        self.cells = tuple(dict.fromkeys(widths))
        self.scenes = [self._scene(cells) for cells in self.cells]

    def play(
        self,
        *,
        time_limit: float | None,
        progress: Callable[[dict[str, Any]], None] | None,
        checkpoint: Path | None,
    ) -> Outcome:
        """Algorithm 1 of the paper, for each lattice; then the best round, within the budget."""
        begin = time.perf_counter()
        players, best, history = self._first_or_saved(checkpoint)
        base = [one.classifier for one in self.first]
        stopped = "Played all rounds"
        took = 0.0  # seconds of the last round: another is begun only if it fits
        for index in range(len(history) // len(self.cells), self.game.rounds):
            start = time.perf_counter()
            if time_limit is not None and history and start - begin + took >= time_limit:
                stopped = f"Time limit: {index} of {self.game.rounds} rounds"
                break
            try:
                players, best, history = self._side_by_side(index, players, base, best, history)
                took = time.perf_counter() - start
                if checkpoint is not None:
                    files.save(
                        checkpoint,
                        (players, best[0]),
                        of=self._name(),
                        notes={"best": best[1], "history": history},
                    )
                if progress is not None:
                    for number, line in enumerate(history[-len(self.cells) :]):
                        progress(
                            {
                                **line,
                                "mechanism": (
                                    self._candidate(players[number].generator, number).mechanism
                                ),
                            }
                        )
            except KeyboardInterrupt:
                if not history:
                    raise
                stopped = (
                    f"Stopped by hand: {len(history) // len(self.cells)} of {self.game.rounds}"
                    " rounds"
                )
                break
        return self._release(best[0], best[1], history, stopped)

    def _side_by_side(
        self, index: int, players: list[Players], base: list[Net], best: Best, history: list[Line]
    ) -> tuple[list[Players], Best, list[Line]]:
        """One round on every lattice; what was best before stays so unless validation data says
        otherwise."""
        played = [
            self._round(index, number, players[number], base[number])
            for number in range(len(self.cells))
        ]
        for number, (one, line) in enumerate(played):
            if line["score"] > best[1]["score"] or not self.game.best:
                best = (one.generator, {"score": line["score"], "lattice": number, "round": index})
        return [one for one, _ in played], best, [*history, *(line for _, line in played)]

    def _round(
        self, index: int, number: int, players: Players, base: Net
    ) -> tuple[Players, dict[str, Any]]:
        """One round on one lattice, and its line of history."""
        fade = 0.5 * (1 + cos(pi * index / self.game.rounds)) if self.game.fade else 1.0
        random = np.random.default_rng((self.seed, 1, number, index))
        players, notes = play_round(
            self.game, self.problem.loss, random, players, base, self.scenes[number], fade
        )
        hidden, score = self._candidate(players.generator, number).score(self.held)
        line = {"round": index, "lattice_m": self.cells[number] * self.problem.grid.cell_m}
        line |= {name: float(value) for name, value in notes.items()}
        return players, line | {"validation_bayes_error": hidden, "score": score}

    def _release(
        self, generator: Net, best: dict[str, Any], history: list[dict[str, Any]], stopped: str
    ) -> Outcome:
        number = best["lattice"]
        candidate = self._candidate(generator, number)
        if self.game.calibrate:
            candidate = candidate.calibrated()
        width = self.cells[number] * self.problem.grid.cell_m
        why = "was the best on validation data" if self.game.best else "is the last"
        status = f"{stopped}; round {best['round']} on a lattice of {width:g} m {why}."
        if candidate.net.keep > 0:
            status += (
                f"  The truth's cell is reported {candidate.net.keep:.2%} of the time to keep the"
                " budget."
            )
        return Outcome(
            candidate.mechanism,
            status,
            tuple(line for line in history if line["lattice_m"] == width),
        )

    def _candidate(self, generator: Net, number: int) -> Candidate:
        return Candidate.of(
            generator,
            self.scenes[number].frame,
            cells=self.cells[number],
            problem=self.problem,
            learning=self.learning,
            levels=self.game.levels,
        )

    def _scene(self, cells: int) -> Scene:
        frame = frame_of(
            self.learning.truth, self.problem.grid, cells=cells, region_m=self.game.region_m
        )
        parts = (self.learning, self.held)
        points = [frame.scale(part.truth).astype(np.float32) for part in parts]
        users = [part.secret.astype(np.int32) for part in parts]
        return Scene(
            points[0], users[0], points[1], users[1], frame, np.float32(self.problem.average_budget)
        )

    @cached_property
    def first(self) -> list[Players]:
        """The same start for every lattice."""
        random = np.random.default_rng((self.seed, 0))
        first = first_players(self.game, self.scenes[0], random, users=len(self.learning.secrets))
        return [first] * len(self.cells)

    def _first_or_saved(self, checkpoint: Path | None) -> tuple[list[Players], Best, list[Line]]:
        players = self.first
        best = players[0].generator
        if checkpoint is None or not checkpoint.exists():
            return players, (best, {"score": -1.0, "lattice": 0, "round": -1}), []
        (players, best), notes = files.load(checkpoint, (players, best), of=self._name())
        return players, (best, notes["best"]), notes["history"]

    def _name(self) -> str:
        """What a checkpoint must agree with to be gone on from."""
        problem = self.problem
        words = (
            f"{self.game!r} {self.seed} {problem.average_budget!r} {problem.loss.__name__}"
            f" {problem.grid.as_dict()}"
        )
        return array_hash(np.frombuffer(f"{words} {problem.samples.hash}".encode(), dtype=np.uint8))
