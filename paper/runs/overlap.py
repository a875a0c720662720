"""How much the filter against overlap matters, which the paper does not describe: other weights,
ten draws of the check-ins.

A check-in in a 500 m cell where another of the six users is more at home is drawn with weight 0.15
in our reading; weight 1 is plain random choice.  Each draw: the error without noise, the coin in
experiments 3 and 4, planar Laplace in experiment 4; for some draws planar Laplace in experiment 3
and the proven optimum in experiment 4.

python -m paper.runs.overlap [--again]
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

from paper.experiments import CELLS, EXPERIMENTS, RESULTS, SPLITS, gowalla, grid, part
from paper.runs.learned import figures
from paper.tables import fill, run_module, saved, say
from sfumato.data.samples import Split
from sfumato.data.synthetic import PAPER_REGION
from sfumato.measure.estimate import estimate_bayes_error
from sfumato.measure.exact import bayes_error
from sfumato.solver import Coin, Exact, Problem
from sfumato.study.solve import solve

WEIGHTS = (0.05, 0.15, 0.5, 1.0)
DRAWS = tuple(range(10))
DEEP = DRAWS[
    :2
]  # draws on which also planar Laplace of experiment 3 and the optimum of experiment 4 are computed
_EXACT = Exact(plane=False)
SETTINGS = repr(_EXACT)


def _noiseless(data: Split, split: str, cells: int) -> float:
    samples = part(data, split)
    return estimate_bayes_error(
        samples.secret, samples.truth, grid(cells), secrets=len(samples.secrets), hits=1
    ).value


def draw(weight: float, seed: int) -> dict[str, Any]:
    """Everything that is said of one draw; all but the error without noise is computed from
    laws."""
    clock = time.process_time()
    data = gowalla(seed, overlap_weight=weight)
    row: dict[str, Any] = {"weight": weight, "seed": seed, "settings": SETTINGS}
    row["none"] = {
        split: {str(cells): _noiseless(data, split, cells) for cells in CELLS} for split in SPLITS
    }
    for experiment in EXPERIMENTS[2:]:
        problem = Problem(
            data.train, max_loss=experiment.max_loss_m, region=PAPER_REGION, cells=max(CELLS)
        )
        coin = solve(problem, Coin()).mechanism
        found: dict[str, Any] = {
            "coin": {split: figures(coin, part(data, split))["bayes_error"] for split in SPLITS}
        }
        if experiment.number == 4 or seed in DEEP:
            laws = {
                split: experiment.laplace.law(part(data, split).joint(), grid=grid(max(CELLS)))
                for split in SPLITS
            }
            found["laplace"] = {
                split: bayes_error(law.joint) for split, law in laws.items() if law is not None
            }
        if experiment.number == 4 and seed in DEEP:
            certificate = solve(problem, _EXACT).certificate
            assert certificate is not None
            found["nobody_above"] = {"train": 1 - certificate.bound(problem).grid}
        row[str(experiment.number)] = found
    seconds = time.process_time() - clock
    say(
        f"weight {weight}, draw {seed}: without noise {row['none']['train']['13']:.3f} at 13 cells,"
        f" {seconds:.0f} s"
    )
    return {**row, "seconds": seconds}


def main(folder: Path = RESULTS, seeds: tuple[int, ...] = DRAWS, *, again: bool = False) -> None:
    """What the folder does not hold yet."""
    path = folder / "overlap.json"
    todo = {(weight, seed): partial(draw, weight, seed) for seed in seeds for weight in WEIGHTS}
    fill(
        path,
        "python -m paper.runs.overlap",
        todo,
        saved(path, SETTINGS, "weight", "seed", again=again),
    )


if __name__ == "__main__":
    run_module(__doc__, main, again=True)
