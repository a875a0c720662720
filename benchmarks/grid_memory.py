"""The memory that the grid estimator takes: by the number of hits, and by the number of empty
cells.

python -m benchmarks.grid_memory
"""

import json
import tracemalloc
from typing import Any

import numpy as np

from benchmarks.grid_estimator import hits
from sfumato.data.grid import Grid
from sfumato.data.synthetic import PAPER_REGION
from sfumato.measure.estimate import estimate_bayes_error

_OFTEN = (125, 250, 500, 1000)  # reports of each of 2400 points
_CELLS = (260, 2_600, 26_000, 260_000)
AT_MOST_GROWTH = 1.1
AT_MOST_BYTES = 64  # per hit, on any grid


def peak_bytes(secret: np.ndarray, reports: np.ndarray, cells: int) -> int:
    """The most that was allocated at once beyond the hits themselves."""
    grid = Grid.over(PAPER_REGION, cells=cells)
    tracemalloc.start()
    estimate_bayes_error(secret, reports, grid, secrets=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def run() -> dict[str, Any]:
    """Bytes per hit as hits grow on one grid; bytes as the same occupied cells stand among ever more
    empty ones."""
    by_hits = {}
    for often in _OFTEN:
        secret, reports = hits(often)
        by_hits[len(secret)] = peak_bytes(secret, reports, _CELLS[0]) / len(secret)
    secret, reports = hits(500)
    places = Grid.over(PAPER_REGION, cells=_CELLS[0]).snap(
        reports
    )  # finer grids add empty cells and no occupied ones
    by_cells = {cells: peak_bytes(secret, places, cells) / len(secret) for cells in _CELLS}
    growth = max(by_hits.values()) / min(by_hits.values())
    # A coarse grid is counted in a table, a fine one by sorting; among fine ones only the empty
    # cells differ.
    fine = [by_cells[cells] for cells in _CELLS[1:]]
    empty = max(fine) / min(fine)
    most = max([*by_hits.values(), *by_cells.values()])
    return {
        "name": "memory of the grid estimator",
        "command": "python -m benchmarks.grid_memory",
        "bytes_per_hit_by_hits": {str(count): value for count, value in by_hits.items()},
        "bytes_per_hit_by_cells_per_side": {str(cells): value for cells, value in by_cells.items()},
        "growth_per_hit": growth,
        "growth_with_empty_cells": empty,
        "most_bytes_per_hit": most,
        "at_most_growth": AT_MOST_GROWTH,
        "at_most_bytes": AT_MOST_BYTES,
        "met": growth <= AT_MOST_GROWTH and empty <= AT_MOST_GROWTH and most <= AT_MOST_BYTES,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
