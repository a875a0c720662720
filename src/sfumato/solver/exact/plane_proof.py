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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from sfumato.measure.cells import Cells
from sfumato.mechanism.loss import euclidean
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import generate_columns
from sfumato.solver.exact.pricing import cost_of, least_costs, scores_for
from sfumato.solver.exact.task import PerPair, Shares, Task

_MAX_ROUNDS = 8  # of splitting
_MOST_PAIRS = 150_000_000  # truths times cells
_MOST_CELLS = 100_000
_MOST_SEEN = (500_000_000, 250_000)  # the same where each cell is looked at once only: pairs, cells
# a round that gains less than this share of what is missing is the last: finer cells cannot mend
# the grid's prices
_STALLED = 0.35
_FIRST_TRUTHS = 150  # places of truths that the solve off the grid begins with
_PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class SplitCells:
    """Cells, their shares and the bound that the solver expects the checker to find."""

    cells: Cells
    scores: np.ndarray
    multipliers: np.ndarray
    bound: float


@dataclass(frozen=True)
class OnCells:
    """A task whose reports are cells: where the truths lie, the multipliers of the budgets, and how
    scores are found that give the truths what they need; work on it ends in OutOfTime at the
    deadline."""

    task: Task
    truths_m: np.ndarray
    multipliers: np.ndarray
    scores_for: Callable[[Task, PerPair], Shares] = scores_for
    deadline: Deadline = NEVER

    @cached_property
    def _prices(self) -> np.ndarray:
        return self.task.budgets()[0] @ self.multipliers

    def parts(self, cells: Cells) -> Iterator[tuple[slice, np.ndarray]]:
        """Cells in pieces with every truth's loss at them: a table of truths and cells stays near
        16 MB."""
        step = max(1, _PAIRS_AT_ONCE // len(self.truths_m))
        for start in range(0, len(cells), step):
            self.deadline.check()
            part = slice(start, start + step)
            yield part, cells[part].least_distance(self.truths_m)

    def cost(self, scores: np.ndarray, loss: np.ndarray) -> np.ndarray:
        """sum_x p(x,w) s(x) + price times loss, truths x cells; infinite beyond the cap."""
        return cost_of(self.task, scores, loss, self._prices, self.task.within_cap(loss))

    def scores_to_keep(self, values: np.ndarray, loss: np.ndarray) -> np.ndarray:
        """Scores of cells that let the truths keep their values, as far as that can be."""
        mass = self.task.truth_mass
        need = (values[:, None] - self._prices[:, None] * loss) / mass[:, None]
        return self.scores_for(self.task, need)

    def bound(self, floor: np.ndarray) -> float:
        """What is proved where no truth pays less than `floor`."""
        return float(floor.sum() - self.multipliers @ self.task.budgets()[1])


def split_until(problem: OnCells, cells: Cells, scores: np.ndarray, *, goal: float) -> SplitCells:
    """Quarter cells until the plane's bound is at least `goal`, the rounds are over or the cells
    are too many.

    scores: of the grid's optimum, one row per cell.
    """
    truths, mass = len(problem.truths_m), problem.task.truth_mass
    scores = np.array(scores)
    best: SplitCells | None = None
    for round_number in range(_MAX_ROUNDS + 1):
        least = np.full(truths, np.inf)
        for part, loss in problem.parts(cells):
            np.minimum(least, problem.cost(scores[part], loss).min(axis=1), out=least)
        bound = problem.bound(least)
        gained = np.inf if best is None else bound - best.bound
        if best is None or bound > best.bound:
            best = SplitCells(cells, scores, problem.multipliers, bound)
        if bound >= goal or round_number == _MAX_ROUNDS or gained < _STALLED * (goal - bound):
            break
        # what each truth should be able to keep: its value plus what is still missing, spread by
        # mass
        wish = least + mass * max(goal - bound, 0.0)
        split = np.concatenate(
            [
                np.any(problem.cost(scores[part], loss) < wish[:, None], axis=0)
                for part, loss in problem.parts(cells)
            ]
        )
        count = len(cells) + 3 * int(split.sum())
        if count > _MOST_CELLS or truths * count > _MOST_PAIRS:
            # on a coarse grid the plane's optimum lies far below the grid's, and splitting would
            # not end
            break
        quarters = cells[split].quartered()
        new_scores = [problem.scores_to_keep(wish, loss) for _, loss in problem.parts(quarters)]
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
    optimum = generate_columns(both, gap=gap, first_reports=start, deadline=deadline)
    charges, limits = task.budgets()
    values = least_costs(both, optimum.scores, charges @ optimum.multipliers, both.within_cap)
    return values, optimum.multipliers, float(values.sum() - optimum.multipliers @ limits)


def split_to_keep(
    problem: OnCells, cells: Cells, values: np.ndarray, *, slack: float
) -> SplitCells:
    """Quarter cells until in each of them some scores leave every truth its value less `slack` of
    its mass.

    A cell that does is done with. What is left when the rounds are over or the cells too many
    lowers the bound.
    """
    truths, mass = len(problem.truths_m), problem.task.truth_mass
    wish = values - slack * mass
    floor = wish.copy()
    done: list[tuple[Cells, np.ndarray]] = []
    examined = 0
    for round_number in range(_MAX_ROUNDS + 1):
        examined += len(cells)
        last = (
            round_number == _MAX_ROUNDS
            or truths * examined > _MOST_SEEN[0]
            or examined > _MOST_SEEN[1]
        )
        short = np.zeros(len(cells), dtype=bool)
        for part, loss in problem.parts(cells):
            scores = problem.scores_to_keep(wish, loss)
            cost = problem.cost(scores, loss)
            short[part] = np.any(cost < wish[:, None] - 1e-12 * mass[:, None], axis=0)
            kept = np.ones(len(scores), dtype=bool) if last else ~short[part]
            done.append((cells[part][kept], scores[kept]))
            np.minimum(floor, cost[:, kept].min(axis=1, initial=np.inf), out=floor)
        if last or not short.any():
            break
        cells = cells[short].quartered()
    whole = reduce(Cells.joined, (part for part, _ in done))
    scores = np.concatenate([part for _, part in done])
    return SplitCells(whole, scores, problem.multipliers, problem.bound(floor))
