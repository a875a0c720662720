"""The Bayes error of the data without noise, which the cells alone cause; ours beside theirs.

python -m paper.runs.no_noise
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paper.experiments import RESULTS, SEEDS, grid, load, part
from paper.printed import targets
from paper.tables import compared, finished, run_module, say
from sfumato.files import write_json
from sfumato.measure.estimate import estimate_bayes_error


def error(data: str, split: str, cells: int, seed: int) -> float:
    """The paper's estimate on the truths themselves: one hit a point, no noise."""
    samples = part(load(data, seed), split)
    return estimate_bayes_error(
        samples.secret, samples.truth, grid(cells), secrets=len(samples.secrets), hits=1
    ).value


def run(
    seeds: tuple[int, ...] = SEEDS,
    data: tuple[str, ...] = ("synthetic", "gowalla"),
    *,
    progress: Callable[[str], None] = say,
) -> dict[str, Any]:
    """All rows, with the median over seeds, the lowest and the highest."""
    progress(f"no noise: {' and '.join(data)}")
    rows = [
        compared(row, [error(row.experiment, row.split, row.cells, seed) for seed in seeds])
        for row in targets("none")
        if row.experiment in data
    ]
    return {"seeds": list(seeds), "rows": rows}


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = SEEDS,
    data: tuple[str, ...] = ("synthetic", "gowalla"),
) -> None:
    document = run(seeds, data)
    write_json(folder / "no_noise.json", document)
    say(finished("no noise", document["rows"]))


if __name__ == "__main__":
    run_module(__doc__, main)
