"""The paper's Alice-and-Bob game, played by the payoffs of the code: two users, two places 100 m
apart.

The generator swaps the two places with chance p.  Each round the classifier becomes the exact
posterior and the generator takes the best p in steps of a hundredth, staying where it is when
nothing is better.  Paper: section 4, "the mutual information".

python -m paper.runs.alice_and_bob
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS
from paper.tables import run_module, say
from sfumato.files import write_json
from sfumato.solver.game import CrossEntropy, MutualInformation

APART_M = 100
STEPS = 100  # reports of each user, so that p is a whole number of them


def success(targets: Any, log_predictions: Any) -> Any:
    """Chance that a guess drawn from the classifier is right: the payoff that the paper warns
    of."""
    return (targets * np.exp(log_predictions)).sum() / targets.shape[0]


PAYOFFS: dict[str, Callable[[Any, Any], Any]] = {
    "success probability": success,
    "cross entropy": CrossEntropy(),
    "mutual information": MutualInformation(),
}


def play(payoff: Callable[[Any, Any], Any], *, max_loss_m: float, rounds: int = 10) -> list[float]:
    """The chance to swap, at first and after each round."""
    swapped, history = 0, [0.0]
    for _ in range(rounds):
        values = [
            _value(payoff, choice, against=swapped / STEPS)
            for choice in range(int(min(max_loss_m / APART_M, 1) * STEPS) + 1)
        ]
        if values[swapped] > min(values) + 1e-6:
            swapped = int(np.argmin(values))
        history.append(swapped / STEPS)
    return history


def _value(payoff: Callable[[Any, Any], Any], swapped: int, *, against: float) -> float:
    """The payoff when `swapped` of each user's reports are swapped and the classifier knows the
    chance `against`."""
    user = np.repeat([0, 1], STEPS)
    place = np.where(np.tile(np.arange(STEPS) < swapped, 2), 1 - user, user)
    with np.errstate(divide="ignore"):
        posterior = np.log(
            np.array([[1 - against, against], [against, 1 - against]])
        )  # one row per place, one column per user
    return float(payoff(np.eye(2)[user], posterior[place]))


def run() -> dict[str, Any]:
    """Both of the budgets that matter: one that allows every p, one below a half."""
    budgets = {
        f"{budget} m": {name: play(payoff, max_loss_m=budget) for name, payoff in PAYOFFS.items()}
        for budget in (100, 40)
    }
    return {"apart_m": APART_M, "chance_to_swap": budgets}


def main(folder: Path = RESULTS) -> None:
    document = run()
    write_json(folder / "alice_and_bob.json", document)
    for budget, games in document["chance_to_swap"].items():
        for name, history in games.items():
            say(f"Alice and Bob, budget {budget}, {name}: {history}")


if __name__ == "__main__":
    run_module(__doc__, main)
