"""The ceiling on test data: the best that a mechanism made for the test points themselves could do
within the same budget.

Nobody is above the error of a blind guess.  Where the coin, made for the test points, does not
reach that, the exact solver gives the best on the paper's 260 x 260 grid, with proof.

python -m paper.runs.optimum_test [--again]
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, NUMBERS, RESULTS, SEEDS, load, part
from paper.runs.learned import figures
from paper.tables import fill, run_module, saved, say
from sfumato.data.synthetic import PAPER_REGION
from sfumato.solver import Coin, Exact, Problem
from sfumato.study.solve import solve

_CELLS = 260
_EXACT = Exact(plane=False)
SETTINGS = repr(_EXACT)


def solve_one(number: int, seed: int) -> dict[str, Any]:
    """What is proved for the test points of one draw."""
    experiment = EXPERIMENTS[number - 1]
    samples = part(load(experiment.data, seed), "test")
    problem = Problem(samples, max_loss=experiment.max_loss_m, region=PAPER_REGION, cells=_CELLS)
    clock = time.process_time()
    coin = figures(solve(problem, Coin()).mechanism, samples)
    row = {
        "experiment": number,
        "seed": seed,
        "max_loss_m": experiment.max_loss_m,
        "blind": 1 - float(problem.joint.prior.max()),
    }
    row |= {
        "coin_loss_m": coin["loss_m"],
        "coin_bayes_error": coin["bayes_error"],
        "nobody_above": row["blind"],
    }
    if coin["bayes_error"] < row["blind"] - 1e-9:
        found = solve(problem, _EXACT)
        assert found.certificate is not None
        row |= {
            "reached": 1 - found.leakage,
            "nobody_above": 1 - found.certificate.bound(problem).grid,
            "loss_m": found.loss,
        }
    say(f"test data, experiment {number}, seed {seed}: nobody above {row['nobody_above']:.4f}")
    return {**row, "settings": SETTINGS, "seconds": time.process_time() - clock}


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = SEEDS,
    experiments: tuple[int, ...] = NUMBERS,
    *,
    again: bool = False,
) -> None:
    """What the folder does not hold yet."""
    path = folder / "optimum_test.json"
    todo = {
        (number, seed): partial(solve_one, number, seed) for number in experiments for seed in seeds
    }
    fill(
        path,
        "python -m paper.runs.optimum_test",
        todo,
        saved(path, SETTINGS, "experiment", "seed", again=again),
    )


if __name__ == "__main__":
    run_module(__doc__, main, again=True)
