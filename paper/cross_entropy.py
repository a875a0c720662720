"""Cross entropy as payoff, experiments 1 and 2: what each new classifier and B(X|Z) do over 40 rounds.

The paper says that the new classifier's accuracy stays 1 and the Bayes error 0 after each round.  Mutual information with the
same settings stands beside it.  The classifier is trained for 150 epochs a round in place of 3000 (deviation 27).

python -m paper.cross_entropy
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, load
from paper.tables import say
from sfumato.files import write_json
from sfumato.solver import Game, Problem, solve
from sfumato.solver.game import CrossEntropy, MutualInformation

ROUNDS = 40
EPOCHS = 150
PAYOFFS = {"cross entropy": CrossEntropy(), "mutual information": MutualInformation()}


def curves(number: int, payoff: CrossEntropy | MutualInformation, *, rounds: int = ROUNDS, seed: int = 0) -> list[dict[str, Any]]:
    """Accuracy of each round's classifier, trained from its base weights, and the validation Bayes error after the round."""
    experiment = EXPERIMENTS[number - 1]
    game = replace(Game.paper(number), payoff=payoff, rounds=rounds, classifier_epochs=EPOCHS, generator_epochs=30, generator_batch=512)
    found = solve(Problem(load(experiment.data, seed).train, max_loss=experiment.max_loss_m), game, seed=seed)
    keys = ("round", "payoff", "loss", "accuracy_train", "accuracy_validation", "validation_bayes_error")
    return [{key: line[key] for key in keys} for line in found.history]


def main(folder: Path = RESULTS, *, rounds: int = ROUNDS) -> None:
    document: dict[str, Any] = {"rounds": rounds, "classifier_epochs": EPOCHS, "seed": 0, "experiments": {"1": {}, "2": {}}}
    for name, payoff in PAYOFFS.items():
        for number in (1, 2):
            lines = curves(number, payoff, rounds=rounds)
            document["experiments"][str(number)][name] = lines
            write_json(folder / "cross_entropy.json", document)
            last = lines[rounds // 2 :]
            accuracy, error = ([line[key] for line in last] for key in ("accuracy_validation", "validation_bayes_error"))
            say(f"experiment {number}, {name}: over the last {len(last)} rounds accuracy {min(accuracy):.2f} to {max(accuracy):.2f}, "
                f"Bayes error {min(error):.2f} to {max(error):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
