"""What 20 check-ins a user can say of a mechanism: experiment 4 on 24 draws of the check-ins that
chose nothing, and on seeds 0, 1, 2.

Each draw: the codebook's Bayes error on its training data, on 200 times 20 check-ins a user *out of
the training data*, and on the 20 a user of the test data, all exact.  The second is what test data
of this size would give if they held no new place.  Besides, the recipe "resampled" learned from
training and test data together: what it would have if nothing in the test data were new to it.

python -m paper.runs.draws [--again]
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import CELLS, EXPERIMENTS, RESULTS, SEEDS, load, part
from paper.runs.learned import RECIPES, figures, settings
from paper.tables import fill, run_module, saved, say
from sfumato.data.samples import Samples
from sfumato.data.synthetic import PAPER_REGION
from sfumato.measure.exact import bayes_error
from sfumato.mechanism.base import Mechanism
from sfumato.solver import Problem
from sfumato.study.solve import solve

DRAWS = (*SEEDS, *range(20, 44))
SETTINGS = repr({recipe: settings(recipe, 4) for recipe in RECIPES})
TOLD = "resampled, told the test data"  # no mechanism to compare with: a limit
KINDS = (*RECIPES, TOLD)
_TIMES = 200


def on_few(mechanism: Mechanism, samples: Samples, each: int, *, seed: int) -> list[float]:
    """The Bayes error on n check-ins of each user, drawn without putting back, again and
    again."""
    random = np.random.default_rng((seed, 20))
    found = []
    for _ in range(_TIMES):
        rows = [
            random.permutation(np.flatnonzero(samples.secret == user))[:each]
            for user in range(len(samples.secrets))
        ]
        law = mechanism.law(samples.take(np.concatenate(rows)).joint())
        assert law is not None
        found.append(bayes_error(law.joint))
    return found


def draw(kind: str, seed: int) -> dict[str, Any]:
    """One recipe on one draw."""
    experiment = EXPERIMENTS[3]
    data = load(experiment.data, seed)
    train, test = part(data, "train"), part(data, "test")
    learned_from = data.all if kind == TOLD else train
    problem = Problem(
        learned_from, max_loss=experiment.max_loss_m, region=PAPER_REGION, cells=max(CELLS)
    )
    recipe = settings("resampled" if kind == TOLD else kind, experiment.number)
    mechanism = solve(problem, recipe, seed=seed).mechanism
    few = on_few(mechanism, train, int(test.counts.max()), seed=seed)
    home, abroad = figures(mechanism, train), figures(mechanism, test)
    say(
        f"{kind}, draw {seed}: train {home['bayes_error']:.3f}, few of it {np.mean(few):.3f}, test"
        f" {abroad['bayes_error']:.3f}"
    )
    row = {"recipe": kind, "seed": seed, "settings": SETTINGS, "train": home, "test": abroad}
    return {**row, "few_mean": float(np.mean(few)), "few_deviation": float(np.std(few, ddof=1))}


def main(folder: Path = RESULTS, draws: tuple[int, ...] = DRAWS, *, again: bool = False) -> None:
    """What the folder does not hold yet."""
    path = folder / "draws.json"
    todo = {(kind, seed): partial(draw, kind, seed) for kind in KINDS for seed in draws}
    fill(
        path,
        "python -m paper.runs.draws",
        todo,
        saved(path, SETTINGS, "recipe", "seed", again=again),
    )


if __name__ == "__main__":
    run_module(__doc__, main, again=True)
