"""The Bayes error of 1.2 million hits on 260 x 260 cells: sfumato against a plain NumPy histogramdd
for each user.

python -m benchmarks.grid_estimator
"""

import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from sfumato.data.grid import Grid
from sfumato.data.synthetic import PAPER_REGION, four_corners
from sfumato.measure.estimate import count_hits, estimate_bayes_error
from sfumato.mechanism.laplace import PlanarLaplace

HITS = 500
CELLS = 260
REPEATS = 9
AT_LEAST = 1.0


def hits(count: int = HITS) -> tuple[np.ndarray, np.ndarray]:
    """Secrets and reports: `count` of each of the 2400 points of four corners, experiment 1's
    noise."""
    data = four_corners(seed=0).all
    return np.tile(data.secret, count), PlanarLaplace(np.log(2) / 100).sample(
        np.tile(data.truth, (count, 1)), seed=0
    )


def histogram_error(secret: np.ndarray, reports: np.ndarray) -> float:
    """The same estimate by a dense histogram for each user; hits outside the region are lost."""
    edges = np.linspace(-PAPER_REGION.side_m / 2, PAPER_REGION.side_m / 2, CELLS + 1)
    table = np.stack(
        [np.histogramdd(reports[secret == user], bins=[edges, edges])[0] for user in range(4)]
    )
    return float(1 - table.max(axis=0).sum() / table.sum())


def uniform_histogram_error(secret: np.ndarray, reports: np.ndarray) -> float:
    """The same with the number of bins and their range, NumPy's form for even bins."""
    half = PAPER_REGION.side_m / 2
    box = [(-half, half), (-half, half)]
    table = np.stack(
        [np.histogramdd(reports[secret == user], bins=CELLS, range=box)[0] for user in range(4)]
    )
    return float(1 - table.max(axis=0).sum() / table.sum())


def run() -> dict[str, Any]:
    """Processor seconds of all in turn, and the ratios of the medians to the faster histogram."""
    secret, reports = hits()
    grid = Grid.over(PAPER_REGION, cells=CELLS)
    work: dict[str, Callable[[], Any]] = {
        "count_hits": lambda: count_hits(secret, reports, grid, secrets=4),
        "estimate_bayes_error": lambda: (
            estimate_bayes_error(secret, reports, grid, secrets=4).value
        ),
        "histogramdd_edges": lambda: histogram_error(secret, reports),
        "histogramdd_range": lambda: uniform_histogram_error(secret, reports),
    }
    answers = {name: task() for name, task in work.items()}
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(REPEATS):
        for name, task in work.items():
            start = time.process_time()
            task()
            seconds[name].append(time.process_time() - start)
    middle = {name: median(values) for name, values in seconds.items()}
    plain = min(middle["histogramdd_edges"], middle["histogramdd_range"])
    return {
        "name": "grid estimator against NumPy histogramdd",
        "command": "python -m benchmarks.grid_estimator",
        "hits": len(secret),
        "cells_per_side": CELLS,
        "repeats": REPEATS,
        "processor_seconds": middle,
        "ours_bayes_error": answers["estimate_bayes_error"],
        "theirs_bayes_error": answers["histogramdd_edges"],
        "ratio": plain / middle["estimate_bayes_error"],
        "ratio_count_hits": plain / middle["count_hits"],
        "at_least": AT_LEAST,
        "met": plain / middle["estimate_bayes_error"] >= AT_LEAST,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
