"""Time to the highest validation level that both `Game()` and `Game.paper(2)` reach, experiment 2,
both from the Laplace start.

Only the rounds are timed, in processor seconds on one core, without compiling, imitating planar
Laplace and judging. A round's level is the Bayes error of its best generator so far
on the validation points, after calibration to the budget.

python -m benchmarks.game_level
"""

import json
import os
import sys
import time
from typing import Any

import numpy as np

SEED = 0
MAX_LOSS_M = 173
AT_LEAST = 15.0


def climb(game: Any, *, enough: float) -> tuple[list[float], list[float]]:
    """Processor seconds after each round, and the best level so far; ends where `enough` is
    reached."""
    import jax

    from sfumato.data.synthetic import four_corners
    from sfumato.solver import Problem
    from sfumato.solver.game.train import play_round
    from sfumato.solver.game.training import GameTraining

    match = GameTraining(game, Problem(four_corners(SEED).train, max_loss=MAX_LOSS_M), SEED)
    first = [match.first_players] * len(match.cells)

    def play(players: list[Any], index: int) -> list[Any]:
        """One round on every lattice, as the solver plays it."""
        fade = 0.5 * (1 + np.cos(np.pi * index / game.rounds)) if game.generator.fade else 1.0
        played = [
            play_round(
                game,
                match.problem.loss,
                np.random.default_rng((SEED, 1, number, index)),
                players[number],
                match.first_players.classifier,
                match.data[number],
                float(fade),
            )[0]
            for number in range(len(match.cells))
        ]
        jax.block_until_ready(played)
        return played

    play(first, 0)  # compiles
    players, clock, best = first, 0.0, 0.0
    seconds, levels = [], []
    for index in range(game.rounds):
        start = time.process_time()
        players = play(players, index)
        clock += time.process_time() - start
        scores = [
            match.candidate(one.generator, number).score(match.validation)[1]
            for number, one in enumerate(players)
        ]
        best = max(best, *scores)
        seconds.append(clock)
        levels.append(best)
        print(f"round {index + 1}: {clock:.1f} s, level {best:.3f}", file=sys.stderr, flush=True)
        if best >= enough:
            break
    return seconds, levels


def run() -> dict[str, Any]:
    """Both climbs, the highest level that both reach, and the ratio of the times to it."""
    from sfumato.solver import Game

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    slow = climb(Game.paper(2), enough=1.0)  # to its end
    climbs = {"paper": slow, "game": climb(Game(), enough=slow[1][-1])}
    os.sched_setaffinity(0, cores)
    level = min(levels[-1] for _, levels in climbs.values())
    times = {
        name: next(at for at, reached in zip(*both, strict=True) if reached >= level)
        for name, both in climbs.items()
    }
    ratio = times["paper"] / times["game"]
    return {
        "name": "time to the level that Game() and Game.paper(2) both reach",
        "command": "python -m benchmarks.game_level",
        "seed": SEED,
        "level": level,
        "seconds": times,
        "climbs": {
            name: {"seconds": at, "levels": levels} for name, (at, levels) in climbs.items()
        },
        "ratio": ratio,
        "at_least": AT_LEAST,
        "met": ratio >= AT_LEAST,
    }


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print(json.dumps(run(), indent=2))
