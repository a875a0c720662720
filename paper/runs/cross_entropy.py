"""Cross entropy as payoff, experiments 1 and 2: what each new classifier and B(X|Z) do over 40
rounds.

The paper says that the new classifier's accuracy stays 1 and the Bayes error 0 after each round.
Mutual information with the same settings stands beside it, for seed 0.  The classifier is trained
for fewer epochs a round than the paper's 3000 (deviation 27).

python -m paper.runs.cross_entropy [--epochs 300] [--again]
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, load, part
from paper.runs.game_run import LINE, net_of
from paper.tables import arguments, say
from sfumato.files import read_json, write_json
from sfumato.solver import Game, Problem
from sfumato.solver.game import CrossEntropy, MutualInformation
from sfumato.study.solve import solve

ROUNDS = 40
EPOCHS = 300
SEED, FURTHER = 0, (1, 2)  # the figures and mutual information are of the first
SHOWN = (30, 31, 40)  # rounds in the figure, counted from 1
PAYOFFS = {"cross entropy": CrossEntropy(), "mutual information": MutualInformation()}


def play(
    number: int,
    payoff: CrossEntropy | MutualInformation,
    *,
    rounds: int,
    epochs: int,
    seed: int = SEED,
) -> dict[str, Any]:
    """Accuracy of each round's classifier, trained from its base weights; the validation Bayes
    error after the round; some reports."""
    experiment = EXPERIMENTS[number - 1]
    data = load(experiment.data, seed)
    game = Game.paper(number).changed(payoff=payoff, rounds=rounds, classifier_epochs=epochs)
    reports: dict[str, Any] = {}

    def keep(line: dict[str, Any]) -> None:
        if line["round"] + 1 in SHOWN:
            net = replace(net_of(line["mechanism"]), levels=None)
            reports[str(line["round"] + 1)] = (
                net.sample(part(data, "test").truth, seed=seed).round(1).tolist()
            )

    found = solve(
        Problem(data.train, max_loss=experiment.max_loss_m), game, seed=seed, progress=keep
    )
    return {
        "history": [{key: line[key] for key in LINE} for line in found.history],
        "reports_m": reports,
    }


def main(
    folder: Path = RESULTS, *, rounds: int = ROUNDS, epochs: int = EPOCHS, again: bool = False
) -> None:
    path = folder / "cross_entropy.json"
    document: dict[str, Any] = {
        "rounds": rounds,
        "classifier_epochs": epochs,
        "seed": SEED,
        "experiments": {"1": {}, "2": {}},
    }
    if path.exists() and not again:
        known = read_json(path, what="the curves of cross entropy")
        document = (
            known
            if all(known[key] == document[key] for key in ("rounds", "classifier_epochs", "seed"))
            else document
        )
    for name, payoff in PAYOFFS.items():
        for number in (1, 2):
            games = document["experiments"][str(number)]
            if name not in games:
                games[name] = play(number, payoff, rounds=rounds, epochs=epochs)
                write_json(path, document)
                _tell(f"experiment {number}, {name}", games[name]["history"])
    for seed in FURTHER:
        for number in (1, 2):
            further = document.setdefault("further", {}).setdefault(str(number), {})
            if str(seed) not in further:
                further[str(seed)] = play(
                    number, CrossEntropy(), rounds=rounds, epochs=epochs, seed=seed
                )["history"]
                write_json(path, document)
                _tell(f"experiment {number}, cross entropy, seed {seed}", further[str(seed)])


def _tell(name: str, history: list[dict[str, Any]]) -> None:
    last = history[len(history) // 2 :]
    accuracy, error = (
        [line[key] for line in last] for key in ("accuracy_validation", "validation_bayes_error")
    )
    say(
        f"{name}: over the last {len(last)} rounds accuracy {min(accuracy):.2f} to"
        f" {max(accuracy):.2f}, Bayes error {min(error):.2f} to {max(error):.2f}"
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--epochs", type=int, default=EPOCHS, help="of each classifier (the paper: 3000)"
    )
    parser.add_argument(
        "--again", action="store_true", help="play again what an earlier run has saved"
    )
    chosen = parser.parse_args()
    main(epochs=chosen.epochs, again=chosen.again)
