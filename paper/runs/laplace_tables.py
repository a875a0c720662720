"""The planar Laplace columns of the paper's tables (experiments 1 to 4), ours beside theirs.

python -m paper.runs.laplace_tables
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import (
    CELLS,
    EXPERIMENTS,
    HITS,
    NUMBERS,
    RESULTS,
    SEEDS,
    SPLITS,
    Experiment,
    by_cells_and_hits,
    grid,
    load,
    part,
    reports,
)
from paper.printed import printed_loss, targets
from paper.tables import compared, finished, run_module, say
from sfumato.files import write_json
from sfumato.measure.exact import bayes_error
from sfumato.mechanism.law import merge_on_grid
from sfumato.mechanism.loss import euclidean

Key = tuple[str, str, int, int]


def estimates(
    experiment: Experiment, split: str, seed: int, *, hits: tuple[int, ...] = HITS
) -> tuple[dict[Key, float], float, float]:
    """The paper's estimate for each grid and number of hits, the loss over all reports, the loss
    over one report a point.

    The seed draws the data and the noise; fewer hits are the first reports of each point.
    """
    samples = part(load(experiment.data, seed), split)
    secret, truth, report = reports(samples, experiment.laplace, max(hits), seed)
    errors = by_cells_and_hits(samples, secret, report, hits)
    named = {(str(experiment.number), split, *key): value for key, value in errors.items()}
    loss = euclidean(truth, report)
    return named, float(loss.mean()), float(loss[: len(samples)].mean())


def exact(experiment: Experiment, split: str, seed: int) -> dict[int, float]:
    """The Bayes error on each grid from the law of planar Laplace, with no hits; the coarse cells
    are unions of the fine."""
    samples = part(load(experiment.data, seed), split)
    law = experiment.laplace.law(samples.joint(), grid=grid(max(CELLS)))
    assert law is not None
    return {
        cells: bayes_error((law if cells == max(CELLS) else merge_on_grid(law, grid(cells))).joint)
        for cells in CELLS
    }


def run(
    seeds: tuple[int, ...] = SEEDS,
    experiments: tuple[int, ...] = NUMBERS,
    *,
    progress: Callable[[str], None] = say,
) -> dict[str, Any]:
    """All rows, with the median over seeds, the lowest and the highest."""
    by_seed: dict[Key, list[float]] = defaultdict(list)
    exact_by_seed: dict[Key, list[float]] = defaultdict(list)
    losses = []
    for experiment in (EXPERIMENTS[number - 1] for number in experiments):
        for split in SPLITS:
            measured = []
            for seed in seeds:
                progress(f"planar Laplace: experiment {experiment.number}, {split}, seed {seed}")
                found, *loss = estimates(experiment, split, seed)
                measured.append(loss)
                law = exact(experiment, split, seed)
                for key, value in found.items():
                    by_seed[key].append(value)
                    exact_by_seed[key].append(law[key[2]])
            theirs = printed_loss(experiment.number, split, "laplace")
            losses.append(
                {
                    "experiment": experiment.number,
                    "split": split,
                    "expected_m": experiment.laplace.expected_loss,
                    "ours_m": median(loss for loss, _ in measured),
                    "ours_one_report_m": [loss for _, loss in measured],
                    # The length of planar Laplace noise has standard deviation sqrt(2)/epsilon.
                    "one_report_error_m": (
                        2**0.5
                        / experiment.epsilon
                        / len(part(load(experiment.data, 0), split)) ** 0.5
                    ),
                    "theirs_m": theirs,
                }
            )
    rows = []
    for target in targets("laplace"):
        key = (target.experiment, target.split, target.cells, target.hits)
        if key in by_seed:
            rows.append(compared(target, by_seed[key], exact=median(exact_by_seed[key])))
    return {"seeds": list(seeds), "rows": rows, "losses": losses}


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = SEEDS,
    experiments: tuple[int, ...] = NUMBERS,
) -> None:
    document = run(seeds, experiments)
    write_json(folder / "laplace.json", document)
    say(finished("planar Laplace", document["rows"]))


if __name__ == "__main__":
    run_module(__doc__, main)
