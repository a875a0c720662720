"""The learned columns of the paper's tables, by `Game()` and by the paper's own recipe, beside the coin and planar Laplace.

python -m paper.game_tables [--experiments 1 2] [--recipe game|paper] [--seconds S] [--classifier-epochs N] [--seeds 0 1 2]
"""

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from paper.experiments import CELLS, EXPERIMENTS, HITS, RESULTS, SEEDS, SPLITS, Experiment, grid, load, part, reports
from paper.printed import targets
from paper.tables import compared, say
from sfumato.adversary.base import score
from sfumato.adversary.neural import Neural
from sfumato.data.samples import Samples, Split
from sfumato.files import write_json
from sfumato.measure.estimate import estimate_bayes_error
from sfumato.measure.judge import judge
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import euclidean
from sfumato.solver import Coin, Game, Laplace, Problem, Solution, solve

ADVERSARY = Neural(epochs=100, batch=512)
COPIES = 10  # reports of each point for the fresh classifier


def estimates(mechanism: Mechanism, samples: Samples, seed: int) -> tuple[dict[str, float], float]:
    """The paper's estimate for each grid and number of hits, and the loss over all reports."""
    secret, truth, report = reports(samples, mechanism, max(HITS), seed)
    found = {}
    for cells in CELLS:
        for hits in HITS:
            rows = slice(0, hits * len(samples))
            value = estimate_bayes_error(secret[rows], report[rows], grid(cells), secrets=len(samples.secrets), hits=hits).value
            found[f"{cells} cells, {hits} hits"] = value
    return found, float(euclidean(truth, report).mean())


def classified(mechanism: Mechanism, data: Split, *, validation: float, seed: int) -> dict[str, list[float]]:
    """Accuracy and F1 of a fresh classifier on training, validation and test data; it learns from the training part alone."""
    learning, held = data.train.carve(validation, seed=seed)
    assert data.test is not None
    drawn = {name: reports(samples, mechanism, COPIES, seed + number) for number, (name, samples) in
             enumerate((("training", learning), ("validation", held), ("test", data.test)))}  # fmt: skip
    users = len(learning.secrets)
    attacker = ADVERSARY.fit(drawn["training"][0], drawn["training"][2], secrets=users, seed=seed)
    scores = {name: score(attacker, secret, report, secrets=users) for name, (secret, _, report) in drawn.items()}
    return {name: [one.accuracy, one.f1] for name, one in scores.items()}


def beside(solution: Solution, data: Split) -> dict[str, float]:
    """Bayes error and information on test data at the paper's finest cells, with no sampling, and the loss."""
    assert data.test is not None
    found = judge(solution.mechanism, data.test, grid=grid(max(CELLS)))
    return {
        "loss_m": found.loss.value,
        "training_loss_m": solution.loss,
        "bayes_error": found.bayes_error.value,
        "information_bits": found.information_bits.value,
    }


def one_run(experiment: Experiment, game: Game, seed: int, *, seconds: float | None) -> dict[str, Any]:
    """Everything that is said of one game; the seed draws the data, the game and the noise."""
    data = load(experiment.data, seed)
    problem = Problem(data.train, max_loss=experiment.max_loss_m)
    learned = solve(problem, game, seed=seed, time_limit=seconds)
    measured = {split: estimates(learned.mechanism, part(data, split), seed) for split in SPLITS}
    return {
        "seed": seed,
        "status": learned.status,
        "seconds": learned.seconds,
        "rounds": len(learned.history),
        "estimates": {split: values for split, (values, _) in measured.items()},
        "sampled_loss_m": {split: loss for split, (_, loss) in measured.items()},
        "classifier": classified(learned.mechanism, data, validation=game.validation, seed=seed),
        "history": [{key: line[key] for key in ("round", "payoff", "loss", "validation_bayes_error")} for line in learned.history],
        "game": beside(learned, data),
        "coin": beside(solve(problem, Coin(), seed=seed), data),
        "laplace": beside(solve(problem, Laplace(), seed=seed), data),
    }


def rows_of(experiment: Experiment, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The median over seeds beside each printed figure of the learned mechanism."""
    wanted = [target for target in targets("learned") if target.experiment == str(experiment.number)]
    return [compared(row, [run["estimates"][row.split][f"{row.cells} cells, {row.hits} hits"] for run in runs]) for row in wanted]


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = SEEDS,
    *,
    experiments: tuple[int, ...] = (1, 2),
    recipe: str = "game",
    seconds: float | None = None,
    classifier_epochs: int | None = None,
) -> None:
    for experiment in (EXPERIMENTS[number - 1] for number in experiments):
        game = Game() if recipe == "game" else Game.paper(experiment.number)
        if classifier_epochs is not None:
            game = replace(game, classifier_epochs=classifier_epochs)
        runs = []
        for seed in seeds:
            runs.append(one_run(experiment, game, seed, seconds=seconds))
            found = runs[-1]["estimates"]["test"]["260 cells, 500 hits"]
            say(f"experiment {experiment.number}, {recipe}, seed {seed}: Bayes error {found:.3f}, {runs[-1]['status']}")
        limit = {key: value for key, value in (("seconds", seconds), ("classifier_epochs", classifier_epochs)) if value is not None}
        document = {"experiment": experiment.number, "recipe": recipe, "max_loss_m": experiment.max_loss_m, "seeds": list(seeds), **limit}
        write_json(folder / f"{recipe}_{experiment.number}.json", {**document, "runs": runs, "rows": rows_of(experiment, runs)})
        errors = [run["estimates"]["test"]["260 cells, 500 hits"] for run in runs]
        right = [run["classifier"]["test"][0] for run in runs]
        say(f"experiment {experiment.number}, {recipe}: median Bayes error {median(errors):.3f}, fresh classifier {np.median(right):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, nargs="+", default=[1, 2], choices=(1, 2, 3, 4))
    parser.add_argument("--recipe", choices=("game", "paper"), default="game")
    parser.add_argument("--seconds", type=float, help="stop each game after so many seconds, at the end of a round")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--classifier-epochs", type=int, help="stop each classifier after so many epochs (the paper's recipe has 3000)")
    chosen = parser.parse_args()
    main(
        seeds=tuple(chosen.seeds),
        experiments=tuple(chosen.experiments),
        recipe=chosen.recipe,
        seconds=chosen.seconds,
        classifier_epochs=chosen.classifier_epochs,
    )
