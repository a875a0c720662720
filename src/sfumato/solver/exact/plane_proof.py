"""A proof for the whole plane from the proof on a grid: split the cells where the bound is attained.

Scores are constant on cells and the loss runs to the nearest point of a cell, so the bound is looser than the grid's
by what half a cell is worth. Cells that some truth finds cheapest are quartered, and each part gets the best scores
for the truths' present values; the rest stay large.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.solver.exact.column_generation import scores_for, silent
from sfumato.solver.exact.task import Task

_MOST_PAIRS = 30_000_000  # truths times cells


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
    away = np.maximum(np.abs(truths_m[:, None, :] - centres_m) - half_sides_m[:, None], 0.0)
    return np.sqrt(away[..., 0] ** 2 + away[..., 1] ** 2)


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
    costs = _costs(task, truths_m, centres, halves, scores, prices)
    for round_number in range(max_rounds + 1):
        least = costs.min(axis=1)
        bound = float(least.sum() - multipliers @ limits)
        progress(f"round {round_number}: {len(centres)} cells, smallest {2 * halves.min():g} m, plane bound {bound:.6f}")
        if best is None or bound > best.bound:
            best = PlaneProof(centres, halves, scores, multipliers, bound)
        if bound >= goal or round_number == max_rounds:
            break
        # what each truth should be able to keep: its value plus what is still missing, spread by mass
        wish = least + mass * max(goal - bound, 0.0)
        split = np.any(costs < wish[:, None], axis=0)
        if len(truths_m) * (len(centres) + 3 * int(split.sum())) > _MOST_PAIRS:
            break  # on a coarse grid the plane's optimum lies far below the grid's, and splitting would not end
        quarter = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])
        new_centres = (centres[split][:, None, :] + halves[split][:, None, None] * quarter).reshape(-1, 2)
        new_halves = np.repeat(halves[split] / 2, 4)
        need = (wish[:, None] - prices[:, None] * nearest_point_loss(truths_m, new_centres, new_halves)) / mass[:, None]
        new_scores = np.concatenate([scores_for(task, need[:, k : k + 4000]) for k in range(0, len(new_centres), 4000)])
        centres = np.concatenate([centres[~split], new_centres])
        halves = np.concatenate([halves[~split], new_halves])
        scores = np.concatenate([scores[~split], new_scores])
        costs = np.concatenate([costs[:, ~split], _costs(task, truths_m, new_centres, new_halves, new_scores, prices)], axis=1)
    assert best is not None
    return best


def _costs(task: Task, truths_m: np.ndarray, centres: np.ndarray, halves: np.ndarray, scores: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """sum_x p(x,w) s(x) + price times loss, truths x cells; infinite beyond the cap."""
    if task.information:
        scores = np.log(scores / task.prior)
    costs = task.weights @ scores.T + prices[:, None] * nearest_point_loss(truths_m, centres, halves)
    if task.cap is not None:
        costs[nearest_point_loss(truths_m, centres, halves) > task.cap * (1 + 1e-12)] = np.inf
    return costs
