"""What a net with a one-dimensional seed hides from an adversary who looks closer: its Bayes error
by the side of the cells.

The net is that of one round of `Game.paper(2)` with 300 classifier epochs, test points of seed 0;
its law is known (its seed takes 256 values).  Each truth's reports lie on a curve of their own;
wide cells merge the curves, narrow ones tell them apart.

python -m paper.runs.precision
"""

from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, load, part
from paper.runs.game_run import net_of
from paper.tables import run_module, say
from sfumato.data.grid import Grid
from sfumato.files import write_json
from sfumato.measure.exact import bayes_error
from sfumato.mechanism.law import merge_on_grid
from sfumato.solver import Game, Problem
from sfumato.study.solve import solve

SIDES_M = (100.0, 25.0, 5.0, 1.0, 0.1)


def run() -> dict[str, Any]:
    """The error on cells of each side, and on the reports themselves."""
    experiment = EXPERIMENTS[1]
    data = load(experiment.data, 0)
    game = Game.paper(2).changed(rounds=1, classifier_epochs=300)
    net = net_of(solve(Problem(data.train, max_loss=experiment.max_loss_m), game, seed=0).mechanism)
    law = net.law(part(data, "test").joint())
    assert law is not None
    errors = {
        f"{side:g}": bayes_error(merge_on_grid(law, Grid(cell_m=side)).joint) for side in SIDES_M
    }
    return {
        "seed": 0,
        "loss_m": law.loss,
        "bayes_error_by_cell_m": errors,
        "bayes_error": bayes_error(law.joint),
    }


def main(folder: Path = RESULTS) -> None:
    document = run()
    write_json(folder / "precision.json", document)
    say(
        f"Bayes error by cell side, m: {document['bayes_error_by_cell_m']}; on the reports"
        f" themselves {document['bayes_error']:.4f}"
    )


if __name__ == "__main__":
    run_module(__doc__, main)
