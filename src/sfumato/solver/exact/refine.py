"""From coarse to fine, where truths fill cells: merge cells two by two, solve, and carry the answer
to the fine cells.

The scores of the optimum vary slowly from cell to cell, so the coarse ones, interpolated, already
prove a bound close to the best. They also say which pairs of truth and report can matter: those
whose cost is near the truth's least. A linear program over these few pairs gives the law and each
truth's value, from which every report is priced again; where the gap is still too wide, more pairs
join. Every bound is taken over all pairs and every leakage is measured on the law itself, so what
the merging does to places and losses can cost time, never truth.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import Optimum, generate_columns, silent
from sfumato.solver.exact.grid_proof import GridProof
from sfumato.solver.exact.pairs_program import Pairs, leakage_of, repaired_pairs, solve_pairs
from sfumato.solver.exact.pricing import Budgets
from sfumato.solver.exact.task import Task, nearest_reports

_DIRECT = 100_000  # pairs up to which one interior-point run over all reports is quicker
_PAIRS_A_TRUTH = 30  # in the first program
_GROW = 1.5  # from round to round
_COARSE_SHARE = 0.4  # of the gap asked for, left to the coarse solve
_MAX_ROUNDS = 12


@dataclass(frozen=True)
class Places:
    """Where truths and reports lie (n x 2), the lattice of the reports' cells (a corner, a side),
    and the loss between places."""

    truths: np.ndarray
    reports: np.ndarray
    corner: tuple[float, float]
    cell: float
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def blocks(self, points: np.ndarray) -> np.ndarray:
        """Column and row of the two by two block of cells that each point lies in."""
        return np.floor((points - np.array(self.corner)) / (2 * self.cell) + 1e-9).astype(int)


def solve_on_cells(
    task: Task,
    places: Places,
    *,
    gap: float,
    first_reports: np.ndarray | None = None,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> Optimum:
    """The least leakage within the budgets, up to `gap`: from coarse to fine where that pays, else
    by column generation."""
    if worth_merging(task, places):
        coarse_task, coarse_places = merged(task, places)
        if _room(task) and _room(coarse_task):
            coarse = solve_on_cells(
                coarse_task,
                coarse_places,
                gap=_COARSE_SHARE * gap,
                deadline=deadline.share(0.5),
                progress=progress,
            )
            return refined(
                task, places, coarse, coarse_places, gap=gap, deadline=deadline, progress=progress
            )
    return generate_columns(
        task, gap=gap, first_reports=first_reports, deadline=deadline, progress=progress
    )


def worth_merging(task: Task, places: Places) -> bool:
    """Whether the pairs are many, most truths are shared, and truths fill the cells so that blocks
    are at most half as many."""
    truths = task.joint.shape[1]
    if task.information or truths * task.report_count <= _DIRECT or task.report_count > 2 * truths:
        return False
    shared = float(task.truth_mass[np.sum(task.joint > 0, axis=0) > 1].sum())
    return shared > 0.5 and len(np.unique(places.blocks(places.truths), axis=0)) <= truths / 2


def _room(task: Task) -> bool:
    """Whether every budget can be kept with something to spare."""
    least, _ = nearest_reports(task)
    charges, limits = task.budgets()
    fits = task.cap is None or bool(least.max() <= task.cap)
    return (
        fits
        and bool(np.all(charges.T @ least < 0.99 * limits))
        and not Budgets.of(task, least).tight.any()
    )


def refined(
    task: Task,
    places: Places,
    coarse: Optimum,
    coarse_places: Places,
    *,
    gap: float,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> Optimum:
    """The optimum from that of the merged problem."""
    least, where = nearest_reports(task)
    budgets = Budgets.of(task, least)
    scores = interpolated(coarse.scores, places, coarse_places)
    proof = GridProof(task, budgets, scores, coarse.multipliers).scaled()
    best: tuple[float, Pairs, np.ndarray] | None = None
    kept = Pairs(np.arange(len(where)), where, least)
    nearest_keys, touched = _key(kept, task.report_count), 0
    for round_number in range(1, _MAX_ROUNDS + 1):
        pairs = _joined(
            proof.cheapest_pairs(_PAIRS_A_TRUTH * _GROW ** (round_number - 1)),
            kept,
            task.report_count,
        )
        nearest = np.searchsorted(_key(pairs, task.report_count), nearest_keys)
        answer = solve_pairs(task, pairs, deadline=deadline)
        if answer is None and best is not None:
            break  # out of time
        law = repaired_pairs(
            task, pairs, np.zeros(len(pairs)) if answer is None else answer.law, nearest
        )
        leakage = leakage_of(task, pairs, law)
        if best is None or leakage < best[0]:
            best = leakage, pairs, law
        if answer is None:
            break
        touched = max(touched, len(pairs))
        if best[0] - proof.bound > gap and not deadline.passed:
            proof = proof.towards(
                GridProof.fitted(task, budgets, answer.values, answer.multipliers)
            )
        progress(
            f"{len(where)} truths, round {round_number}: {len(pairs)} pairs, leakage {best[0]:.6f},"
            f" bound {proof.bound:.6f}"
        )
        if best[0] - proof.bound <= gap or deadline.passed:
            break
        used = law > 0
        used[nearest] = True
        kept = Pairs(pairs.truth[used], pairs.report[used], pairs.loss[used])
    assert best is not None
    leakage, pairs, law = best
    used, column = np.unique(pairs.report[law > 0], return_inverse=True)
    mechanism = np.zeros((len(task.weights), len(used)))
    mechanism[pairs.truth[law > 0], column] = law[law > 0]
    mean_loss = float(np.sum(task.truth_mass[pairs.truth] * law * pairs.loss))
    return Optimum(
        mechanism, used, proof.shares, proof.multipliers, leakage, proof.bound, mean_loss,
        round_number + coarse.rounds, touched + coarse.pairs_touched,
    )  # fmt: skip


def merged(task: Task, places: Places) -> tuple[Task, Places]:
    """The problem on blocks of two by two cells: truths at the middle of their mass, reports at the
    middle of their cells."""
    truth = np.unique(places.blocks(places.truths), axis=0, return_inverse=True)[1].ravel()
    report = np.unique(places.blocks(places.reports), axis=0, return_inverse=True)[1].ravel()
    joint = np.stack([np.bincount(truth, row) for row in task.joint])
    mass = task.truth_mass
    middles = (
        np.stack([np.bincount(truth, mass * axis) for axis in places.truths.T], axis=1)
        / np.bincount(truth, mass)[:, None]
    )
    reports = (
        np.stack([np.bincount(report, axis) for axis in places.reports.T], axis=1)
        / np.bincount(report)[:, None]
    )

    def loss_of(chosen: np.ndarray) -> np.ndarray:
        return places.loss(middles[:, None, :], reports[None, chosen, :])

    cap = None if task.cap is None else task.cap + 2 * places.cell
    coarse = replace(
        task, joint=joint / joint.sum(), loss_of=loss_of, report_count=len(reports), cap=cap
    )
    return coarse, Places(middles, reports, places.corner, 2 * places.cell, places.loss)


def interpolated(shares: np.ndarray, places: Places, coarse: Places) -> np.ndarray:
    """Shares of the fine reports, linear between the middles of the blocks; mixtures of shares are
    shares."""
    at = (
        places.reports - np.array(places.corner)
    ) / coarse.cell - 0.5  # whole numbers at the middles of blocks
    block_of = np.unique(places.blocks(places.reports), axis=0)
    low, high = block_of.min(axis=0), block_of.max(axis=0)
    known = np.full(high - low + 3, -1)  # with a border of absent blocks all round
    known[tuple((block_of - low + 1).T)] = np.arange(len(block_of))
    total, weight = np.zeros((len(at), shares.shape[1])), np.zeros(len(at))
    for step in ((0, 0), (0, 1), (1, 0), (1, 1)):
        block = np.floor(at + 1e-9).astype(int) + step
        found = known[tuple(np.clip(block - low + 1, 0, high - low + 2).T)]
        near = np.where(found >= 0, np.prod(np.maximum(1 - np.abs(at - block), 0.0), axis=1), 0.0)
        total += near[:, None] * shares[found]
        weight += near
    return total / weight[:, None]


def _key(pairs: Pairs, reports: int) -> np.ndarray:
    return pairs.truth * reports + pairs.report


def _joined(first: Pairs, second: Pairs, reports: int) -> Pairs:
    """The pairs of both, each once, sorted by truth, then report."""
    _, at = np.unique(
        np.concatenate([_key(first, reports), _key(second, reports)]), return_index=True
    )
    both = [
        np.concatenate([a, b])[at]
        for a, b in (
            (first.truth, second.truth),
            (first.report, second.report),
            (first.loss, second.loss),
        )
    ]
    return Pairs(*both)
