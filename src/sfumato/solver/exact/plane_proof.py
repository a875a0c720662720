"""A proof for the whole plane from the proof on a grid: split the cells where the bound is attained.

Scores are constant on cells and the loss runs to the nearest point of a cell, so the bound is looser than the grid's
by what half a cell is worth. Cells that some truth finds cheapest are quartered, and each part gets the best scores
for the truths' present values; the rest stay large.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.solver.exact.column_generation import silent
from sfumato.solver.exact.pricing import scores_for
from sfumato.solver.exact.task import Task

_MOST_PAIRS = 150_000_000  # truths times cells
_MOST_CELLS = 100_000
_STALLED = 0.35  # a round that gains less than this share of what is missing is the last: finer cells cannot mend the grid's prices
_PAIRS_AT_ONCE = 2_000_000
_QUARTERS = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])


@dataclass(frozen=True)
class PlaneProof:
    """Cells (centres, half sides in metres), their shares and the bound that the solver expects the checker to find."""

    centres_m: np.ndarray
    half_sides_m: np.ndarray
    scores: np.ndarray
    multipliers: np.ndarray
    bound: float


def nearest_point_loss(truths_m: np.ndarray, centres_m: np.ndarray, half_sides_m: np.ndarray) -> np.ndarray:
    """Distance from each truth to the nearest point of each cell, truths x cells."""
    across, up = (np.maximum(np.abs(truths_m[:, None, axis] - centres_m[:, axis]) - half_sides_m, 0.0) for axis in (0, 1))
    return np.hypot(across, up)


def split_until(
    task: Task,
    truths_m: np.ndarray,
    centres_m: np.ndarray,
    half_sides_m: ArrayLike,
    scores: np.ndarray,
    multipliers: np.ndarray,
    *,
    goal: float,
    max_rounds: int = 8,
    progress: Callable[[str], None] = silent,
) -> PlaneProof:
    """Quarter cells until the plane's bound is at least `goal`, the rounds are over or the cells are too many.

    task: as for the grid. scores, multipliers: of the grid's optimum, one row per cell.
    """
    charges, limits = task.budgets()
    prices = charges @ multipliers
    centres, halves, scores = np.array(centres_m), np.broadcast_to(half_sides_m, len(centres_m)).copy(), np.array(scores)
    mass = task.truth_mass
    best: PlaneProof | None = None
    for round_number in range(max_rounds + 1):
        least = np.full(len(truths_m), np.inf)
        for part in _parts(truths_m, centres):
            np.minimum(least, _costs(task, truths_m, centres[part], halves[part], scores[part], prices).min(axis=1), out=least)
        bound = float(least.sum() - multipliers @ limits)
        progress(f"round {round_number}: {len(centres)} cells, smallest {2 * halves.min():g} m, plane bound {bound:.6f}")
        gained = np.inf if best is None else bound - best.bound
        if best is None or bound > best.bound:
            best = PlaneProof(centres, halves, scores, multipliers, bound)
        if bound >= goal or round_number == max_rounds or gained < _STALLED * (goal - bound):
            break
        # what each truth should be able to keep: its value plus what is still missing, spread by mass
        wish = least + mass * max(goal - bound, 0.0)
        split = np.concatenate(
            [
                np.any(_costs(task, truths_m, centres[part], halves[part], scores[part], prices) < wish[:, None], axis=0)
                for part in _parts(truths_m, centres)
            ]
        )
        cells = len(centres) + 3 * int(split.sum())
        if cells > _MOST_CELLS or len(truths_m) * cells > _MOST_PAIRS:
            break  # on a coarse grid the plane's optimum lies far below the grid's, and splitting would not end
        new_centres = (centres[split][:, None, :] + halves[split][:, None, None] * _QUARTERS).reshape(-1, 2)
        new_halves = np.repeat(halves[split] / 2, 4)
        new_scores = [
            scores_for(
                task, (wish[:, None] - prices[:, None] * nearest_point_loss(truths_m, new_centres[part], new_halves[part])) / mass[:, None]
            )
            for part in _parts(truths_m, new_centres)
        ]
        centres = np.concatenate([centres[~split], new_centres])
        halves = np.concatenate([halves[~split], new_halves])
        scores = np.concatenate([scores[~split], *new_scores])
    assert best is not None
    return best


def _parts(truths_m: np.ndarray, centres: np.ndarray) -> list[slice]:
    """Cells in pieces, so that a table of truths and cells stays near 16 MB."""
    step = max(1, _PAIRS_AT_ONCE // len(truths_m))
    return [slice(start, start + step) for start in range(0, len(centres), step)]


def _costs(task: Task, truths_m: np.ndarray, centres: np.ndarray, halves: np.ndarray, scores: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """sum_x p(x,w) s(x) + price times loss, truths x cells; infinite beyond the cap."""
    if task.information:
        scores = np.log(scores / task.prior)
    costs = task.weights @ scores.T + prices[:, None] * nearest_point_loss(truths_m, centres, halves)
    if task.cap is not None:
        costs[nearest_point_loss(truths_m, centres, halves) > task.cap * (1 + 1e-12)] = np.inf
    return costs
