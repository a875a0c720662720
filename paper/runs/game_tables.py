"""The learned columns of the paper's tables, by `Game()` and by the paper's own recipe, beside the
coin and planar Laplace.

Seeds that the JSON of an earlier run already holds, with the same settings, are not played again; a
stopped game is resumed.

python -m paper.runs.game_tables [--experiments 1 2] [--recipe game|paper] [--seeds 0 1 2]
[--classifier-epochs N] [--seconds S] [--again]
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, ROOT, SEEDS, Experiment
from paper.printed import targets
from paper.runs.game_run import FINEST, one_run
from paper.tables import arguments, compared, say
from sfumato.files import read_json, write_json
from sfumato.solver import Game
from sfumato.solver.outcome import Ended


def rows_of(experiment: Experiment, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The median over seeds beside each printed figure of the learned mechanism."""
    wanted = [
        target for target in targets("learned") if target.experiment == str(experiment.number)
    ]
    return [
        compared(
            row,
            [run["estimates"][row.split][f"{row.cells} cells, {row.hits} hits"] for run in runs],
        )
        for row in wanted
    ]


def whole(run: dict[str, Any]) -> bool:
    """Whether a run was played to the end."""
    return run.get("ended", Ended.FINISHED.value) == Ended.FINISHED.value


def earlier(path: Path, game: Game) -> list[dict[str, Any]]:
    """Runs that an earlier call saved with the same settings, played to the end."""
    if not path.exists():
        return []
    document = read_json(path, what="a table of the game")
    return (
        [run for run in document["runs"] if whole(run)]
        if document.get("settings") == repr(game)
        else []
    )


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = SEEDS,
    *,
    experiments: tuple[int, ...] = (1, 2, 3, 4),
    recipe: str = "game",
    classifier_epochs: int | None = None,
    seconds: float | None = None,
    again: bool = False,
) -> None:
    for experiment in (EXPERIMENTS[number - 1] for number in experiments):
        game = Game() if recipe == "game" else Game.paper(experiment.number)
        if classifier_epochs is not None:
            game = game.changed(classifier_epochs=classifier_epochs)
        path = folder / f"{recipe}_{experiment.number}.json"
        runs = [run for run in earlier(path, game) if not (again and run["seed"] in seeds)]
        for seed in (seed for seed in seeds if seed not in [run["seed"] for run in runs]):
            kept = (
                ROOT
                / "runs"
                / "paper"
                / f"{recipe}_{experiment.number}_{game.classifier.epochs}_{seed}.npz"
            )
            kept.parent.mkdir(parents=True, exist_ok=True)
            run = one_run(experiment, game, seed, kept=kept, seconds=seconds)
            if whole(run):
                kept.unlink(missing_ok=True)
            runs = sorted([*runs, run], key=lambda run: run["seed"])
            document: dict[str, Any] = {
                "experiment": experiment.number,
                "recipe": recipe,
                "max_loss_m": experiment.max_loss_m,
            }
            document |= {"seeds": [run["seed"] for run in runs], "settings": repr(game)}
            document |= (
                {} if classifier_epochs is None else {"classifier_epochs": classifier_epochs}
            )
            write_json(path, {**document, "runs": runs, "rows": rows_of(experiment, runs)})
        errors, right = (
            [run["estimates"]["test"][FINEST] for run in runs],
            [run["classifier"]["test"][0] for run in runs],
        )
        say(
            f"experiment {experiment.number}, {recipe}: Bayes error {median(errors):.3f},"
            f" fresh classifier {median(right):.3f},"
            f" seeds {', '.join(str(run['seed']) for run in runs)}"
        )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--experiments", type=int, nargs="+", default=[1, 2], choices=(1, 2, 3, 4))
    parser.add_argument("--recipe", choices=("game", "paper"), default="game")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument(
        "--classifier-epochs",
        type=int,
        help="stop each classifier after N epochs (the paper's recipe has 3000)",
    )
    parser.add_argument(
        "--seconds", type=float, help="stop each game after N seconds, at the end of a round"
    )
    parser.add_argument(
        "--again", action="store_true", help="play again what an earlier run has saved"
    )
    chosen = parser.parse_args()
    main(
        seeds=tuple(chosen.seeds),
        experiments=tuple(chosen.experiments),
        recipe=chosen.recipe,
        classifier_epochs=chosen.classifier_epochs,
        seconds=chosen.seconds,
        again=chosen.again,
    )
