"""The paper's side claims on experiment 2, and the readings of what it does not print: one thing
changed at a time.

Everything but the named change is `Game.paper(n)` with 300 of the 3000 classifier epochs.  Kept are
the means over the last ten rounds: the Bayes error of the reports of validation points (their law
on 25 m cells), the loss, the accuracy of each round's classifier; and the best score of any round,
which is that error after calibration to the budget.

python -m paper.runs.ablation [--seeds 0 1 2] [--again]
"""

from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, SEEDS, load
from paper.tables import arguments, say
from sfumato.files import read_json, write_json
from sfumato.solver import Game, Problem
from sfumato.solver.game import MutualInformation, Softplus
from sfumato.study.solve import solve

EPOCHS, ROUNDS, LAST = 300, 25, 10
ALL = 1728  # training points less validation
_START_M = Game.paper(2).start.loss_m or 0.0
CLAIMS: dict[str, dict[str, Any]] = {
    "base": {},
    "C goes on from the last round": {"classifier_restart": False},
    "C: 30 epochs": {"classifier_epochs": 30},
    "C: 30 epochs, goes on from the last round": {
        "classifier_epochs": 30,
        "classifier_restart": False,
    },
    "C on mutual information": {"classifier_payoff": MutualInformation()},
    "G_0 with a quarter of the noise": {"start_loss_m": _START_M / 4},
    "G_0 with twice the noise": {"start_loss_m": _START_M * 2},
    "G in batches of 32, as many steps": {"generator_batch": 32, "generator_epochs": 2},
    "G in one batch of all, as many steps": {"generator_batch": ALL, "generator_epochs": 120},
    "G's Adam goes on from the last round": {"generator_restart_adam": False},
    "C: 3000 epochs": {"classifier_epochs": 3000},
}
UNITS_M = {
    "a twentieth of the budget": None,
    "a kilometre": 1000.0,
    "half the side of the square": 3250.0,
}
_MEANS = ("validation_bayes_error", "loss", "accuracy_train", "accuracy_validation")


def games() -> dict[str, tuple[int, Game, int]]:
    """Name: (experiment, game, seeds).  The readings have one seed."""
    found: dict[str, tuple[int, Game, int]] = {}
    for name, change in CLAIMS.items():
        game = Game.paper(2).changed(**{"classifier_epochs": EPOCHS, **change})
        found[name] = (2, game, len(SEEDS))
    for number in (2, 1):
        base = Game.paper(number).changed(classifier_epochs=EPOCHS, rounds=ROUNDS)
        if number == 1:
            found["softplus of metres, experiment 1"] = (
                number,
                base,
                1,
            )  # in experiment 2 it is the base above
        for name, unit_m in UNITS_M.items():
            share = 0.05 if unit_m is None else unit_m / EXPERIMENTS[number - 1].max_loss_m
            found[f"softplus in units of {name}, experiment {number}"] = (
                number,
                replace(base, budget=Softplus(unit=share)),
                1,
            )
    return found


def play(number: int, game: Game, seed: int) -> dict[str, Any]:
    """Means over the last rounds of one game, and its best score."""
    experiment = EXPERIMENTS[number - 1]
    found = solve(
        Problem(load(experiment.data, seed).train, max_loss=experiment.max_loss_m), game, seed=seed
    )
    means = {key: mean(line[key] for line in found.history[-LAST:]) for key in _MEANS}
    return {
        "seed": seed,
        "seconds": found.seconds,
        **means,
        "best_score": max(line["score"] for line in found.history),
    }


def told(folder: Path, game: Game, seed: int) -> dict[str, Any] | None:
    """The same from the table of experiment 2, where that very game was played for it."""
    path = folder / "paper_2.json"
    document = read_json(path, what="a table of the game") if path.exists() else {}
    if document.get("settings") != repr(game):
        return None
    for run in document["runs"]:
        if run["seed"] == seed:
            means = {key: mean(line[key] for line in run["history"][-LAST:]) for key in _MEANS}
            best = max(
                line["validation_bayes_error"]
                for line in run["history"]
                if line["loss"] <= document["max_loss_m"]
            )
            return {"seed": seed, "seconds": run["seconds"], **means, "best_score": best}
    return None


def main(folder: Path = RESULTS, seeds: tuple[int, ...] = SEEDS, *, again: bool = False) -> None:
    path = folder / "ablation.json"
    done = read_json(path, what="the ablation table")["runs"] if path.exists() and not again else {}
    todo = games()
    for name, (number, game, count) in todo.items():
        known = done.get(name, {"settings": repr(game), "runs": []})
        runs = known["runs"] if known["settings"] == repr(game) else []
        for seed in (seed for seed in seeds[:count] if seed not in [run["seed"] for run in runs]):
            runs = [*runs, told(folder, game, seed) or play(number, game, seed)]
            done[name] = {"experiment": number, "settings": repr(game), "runs": runs}
            write_json(
                path,
                {
                    "rounds": ROUNDS,
                    "last": LAST,
                    "runs": {key: done[key] for key in todo if key in done},
                },
            )
            say(
                f"{name}, seed {seed}: Bayes error {runs[-1]['validation_bayes_error']:.3f}, loss"
                f" {runs[-1]['loss']:.1f} m"
            )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument(
        "--again", action="store_true", help="play again what an earlier run has saved"
    )
    chosen = parser.parse_args()
    main(seeds=tuple(chosen.seeds), again=chosen.again)
