"""A proof for the whole plane from the proof on a grid: split the cells where the bound is
attained.

Scores are constant on cells and the loss runs to the nearest point of a cell, so the bound is
looser than the grid's by what half a cell is worth. Cells that some truth finds cheapest are
quartered, and each part gets the best scores for the truths' present values; the rest stay large.

The grid's values need not fit the plane: a report at a truth's own place costs it nothing, and no
cell's middle is there. `values_off_grid` solves over the middles and the truths' places together;
its values do fit, and `split_to_keep` finds cells and scores in which every truth keeps its value
less a given slack.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from sfumato.measure.cells import Cells
from sfumato.mechanism.loss import euclidean
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import generate_columns, silent
from sfumato.solver.exact.pricing import cost_of, scores_for
from sfumato.solver.exact.task import Task

_MOST_PAIRS = 150_000_000  # truths times cells
_MOST_CELLS = 100_000
_MOST_SEEN = (500_000_000, 250_000)  # the same where each cell is looked at once only: pairs, cells
# a round that gains less than this share of what is missing is the last: finer cells cannot mend
# the grid's prices
_STALLED = 0.35
_FIRST_TRUTHS = 150  # places of truths that the solve off the grid begins with
_PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class PlaneProof:
    """Cells, their shares and the bound that the solver expects the checker to find."""

    cells: Cells
    scores: np.ndarray
    multipliers: np.ndarray
    bound: float


def split_until(
    task: Task,
    truths_m: np.ndarray,
    cells: Cells,
    scores: np.ndarray,
    multipliers: np.ndarray,
    *,
    goal: float,
    max_rounds: int = 8,
    progress: Callable[[str], None] = silent,
) -> PlaneProof:
    """Quarter cells until the plane's bound is at least `goal`, the rounds are over or the cells
    are too many.

    task: as for the grid. scores, multipliers: of the grid's optimum, one row per cell.
    """
    charges, limits = task.budgets()
    prices = charges @ multipliers
    scores = np.array(scores)
    mass = task.truth_mass
    best: PlaneProof | None = None
    for round_number in range(max_rounds + 1):
        least = np.full(len(truths_m), np.inf)
        for part in _parts(truths_m, cells):
            np.minimum(
                least,
                _costs(task, truths_m, cells[part], scores[part], prices).min(axis=1),
                out=least,
            )
        bound = float(least.sum() - multipliers @ limits)
        progress(
            f"round {round_number}: {len(cells)} cells, smallest {cells.sides_m.min():g} m, plane"
            f" bound {bound:.6f}"
        )
        gained = np.inf if best is None else bound - best.bound
        if best is None or bound > best.bound:
            best = PlaneProof(cells, scores, multipliers, bound)
        if bound >= goal or round_number == max_rounds or gained < _STALLED * (goal - bound):
            break
        # what each truth should be able to keep: its value plus what is still missing, spread by
        # mass
        wish = least + mass * max(goal - bound, 0.0)
        split = np.concatenate(
            [
                np.any(
                    _costs(task, truths_m, cells[part], scores[part], prices) < wish[:, None],
                    axis=0,
                )
                for part in _parts(truths_m, cells)
            ]
        )
        count = len(cells) + 3 * int(split.sum())
        if count > _MOST_CELLS or len(truths_m) * count > _MOST_PAIRS:
            # on a coarse grid the plane's optimum lies far below the grid's, and splitting would
            # not end
            break
        quarters = cells[split].quartered()
        new_scores = [
            scores_for(
                task,
                (wish[:, None] - prices[:, None] * quarters[part].least_distance(truths_m))
                / mass[:, None],
            )
            for part in _parts(truths_m, quarters)
        ]
        cells = cells[~split].joined(quarters)
        scores = np.concatenate([scores[~split], *new_scores])
    assert best is not None
    return best


def values_off_grid(
    task: Task,
    truths_m: np.ndarray,
    centres_m: np.ndarray,
    first: np.ndarray,
    *,
    gap: float,
    deadline: Deadline = NEVER,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Each truth's least cost, the multipliers and the bound of the optimum over the middles of the
    cells and the truths' own places.

    first: the reports of the grid's optimum, to begin with. Without a cap only: with one, reports
    at its rim matter as well.
    """
    places = np.concatenate([centres_m, truths_m])

    def loss_of(chosen: np.ndarray) -> np.ndarray:
        return euclidean(truths_m[:, None, :], places[None, chosen, :])

    both = replace(task, loss_of=loss_of, report_count=len(places))
    some = len(centres_m) + np.arange(0, len(truths_m), max(1, len(truths_m) // _FIRST_TRUTHS))
    start = np.concatenate([first, some])
    found = generate_columns(both, gap=gap, first_reports=start, deadline=deadline)
    prices, values = task.budgets()[0] @ found.multipliers, np.full(len(truths_m), np.inf)
    for chosen in both.chunks():
        np.minimum(
            values,
            cost_of(task, found.scores[chosen], loss_of(chosen), prices, None).min(axis=1),
            out=values,
        )
    return values, found.multipliers, float(values.sum() - found.multipliers @ task.budgets()[1])


def split_to_keep(
    task: Task,
    truths_m: np.ndarray,
    cells: Cells,
    values: np.ndarray,
    multipliers: np.ndarray,
    *,
    slack: float,
    max_rounds: int = 8,
    progress: Callable[[str], None] = silent,
) -> PlaneProof:
    """Quarter cells until in each of them some scores leave every truth its value less `slack` of
    its mass.

    A cell that does is done with. What is left when the rounds are over or the cells too many
    lowers the bound.
    """
    charges, limits = task.budgets()
    prices, mass = charges @ multipliers, task.truth_mass
    wish = values - slack * mass
    floor = wish.copy()
    done: list[tuple[Cells, np.ndarray]] = []
    seen = 0
    for round_number in range(max_rounds + 1):
        seen += len(cells)
        last = (
            round_number == max_rounds
            or len(truths_m) * seen > _MOST_SEEN[0]
            or seen > _MOST_SEEN[1]
        )
        short = np.zeros(len(cells), dtype=bool)
        for part in _parts(truths_m, cells):
            loss = cells[part].least_distance(truths_m)
            scores = scores_for(task, (wish[:, None] - prices[:, None] * loss) / mass[:, None])
            cost = cost_of(task, scores, loss, prices, None)
            short[part] = np.any(cost < wish[:, None] - 1e-12 * mass[:, None], axis=0)
            kept = np.ones(len(scores), dtype=bool) if last else ~short[part]
            done.append((cells[part][kept], scores[kept]))
            np.minimum(floor, cost[:, kept].min(axis=1, initial=np.inf), out=floor)
        progress(
            f"round {round_number}: {len(cells)} cells of {cells.sides_m.min():g} m,"
            f" {int(short.sum())} to split"
        )
        if last or not short.any():
            break
        cells = cells[short].quartered()
    whole = reduce(Cells.joined, (part for part, _ in done))
    scores = np.concatenate([part for _, part in done])
    return PlaneProof(whole, scores, multipliers, float(floor.sum() - multipliers @ limits))


def _parts(truths_m: np.ndarray, cells: Cells) -> list[slice]:
    """Cells in pieces, so that a table of truths and cells stays near 16 MB."""
    step = max(1, _PAIRS_AT_ONCE // len(truths_m))
    return [slice(start, start + step) for start in range(0, len(cells), step)]


def _costs(
    task: Task,
    truths_m: np.ndarray,
    cells: Cells,
    scores: np.ndarray,
    prices: np.ndarray,
) -> np.ndarray:
    """sum_x p(x,w) s(x) + price times loss, truths x cells; infinite beyond the cap."""
    loss = cells.least_distance(truths_m)
    return cost_of(
        task, scores, loss, prices, None if task.cap is None else loss <= task.cap * (1 + 1e-12)
    )
