"""From coarse to fine, where truths fill cells: merge cells two by two, solve, and carry the answer
to the fine cells.

The scores of the optimum vary slowly from cell to cell, so the coarse ones, interpolated, already
prove a bound close to the best. They also say which pairs of truth and report can matter: those
whose cost is near the truth's least. A linear program over these few pairs gives the law and each
truth's value, from which every report is priced again; where the gap is still too wide, more pairs
join. Every bound is taken over all pairs and every leakage is measured on the law itself, so what
the merging does to places and losses can cost time, never truth.

Two halves take turns: `solve_pairs`, the law over few pairs, and `GridProof`, the proof over all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csc_array

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import (
    OnProof,
    Optimum,
    Scored,
    generate_columns,
    silent,
    unheard,
)
from sfumato.solver.exact.pricing import Allowed, Budgets, costs, least_costs, needs, scores_for
from sfumato.solver.exact.task import TINY, Task, mixing_share, nearest_reports

_DIRECT = 100_000  # pairs up to which one interior-point run over all reports is quicker
_PAIRS_A_TRUTH = 30  # in the first program
_GROW = 1.5  # from round to round
_COARSE_SHARE = 0.4  # of the gap asked for, left to the coarse solve
_MAX_ROUNDS = 12
_PAIRS_AT_ONCE = 1_000_000  # whose costs are held in memory
_TIE = 1e-9  # of the loss: among pairs that cost the same the nearer ones come first


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
    on_proof: OnProof = unheard,
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
                *(task, places, coarse, coarse_places),
                gap=gap,
                deadline=deadline,
                progress=progress,
                on_proof=on_proof,
            )
    return generate_columns(
        task,
        gap=gap,
        first_reports=first_reports,
        deadline=deadline,
        progress=progress,
        on_proof=on_proof,
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
    if task.cap is not None and not least.max() <= task.cap:
        return False
    spare = bool(np.all(charges.T @ least < 0.99 * limits))
    return spare and not Budgets.of(task, least).tight.any()


def refined(
    task: Task,
    places: Places,
    coarse: Optimum,
    coarse_places: Places,
    *,
    gap: float,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
    on_proof: OnProof = unheard,
) -> Optimum:
    """The optimum from that of the merged problem."""
    least, where = nearest_reports(task)
    budgets = Budgets.of(task, least)
    scores = interpolated(coarse.scores, places, coarse_places)
    proof = GridProof(task, budgets, scores, coarse.multipliers).scaled()
    best: tuple[float, Pairs, np.ndarray] | None = None
    kept = Pairs(np.arange(len(where)), where, least)
    nearest_keys, touched = kept.keys(task.report_count), 0
    for round_number in range(1, _MAX_ROUNDS + 1):
        cheapest = proof.cheapest_pairs(_PAIRS_A_TRUTH * _GROW ** (round_number - 1))
        pairs = cheapest.joined(kept, task.report_count)
        nearest = np.searchsorted(pairs.keys(task.report_count), nearest_keys)
        answer = solve_pairs(task, pairs, deadline=deadline)
        if answer is None and best is not None:
            break  # out of time
        law = np.zeros(len(pairs)) if answer is None else answer.law
        law = repaired_pairs(task, pairs, law, nearest)
        leakage = leakage_of(task, pairs, law)
        if best is None or leakage < best[0]:
            best = leakage, pairs, law
        if answer is None:
            break
        touched = max(touched, len(pairs))
        if best[0] - proof.bound > gap and not deadline.passed:
            fitted = GridProof.fitted(task, budgets, answer.values, answer.multipliers)
            proof = proof.towards(fitted)
        progress(
            f"{len(where)} truths, round {round_number}: {len(pairs)} pairs, leakage {best[0]:.6f},"
            f" bound {proof.bound:.6f}"
        )
        on_proof(Scored(proof.bound, best[0], proof.shares, proof.multipliers))
        if best[0] - proof.bound <= gap or deadline.passed:
            break
        used = law > 0
        used[nearest] = True
        kept = pairs.where(used)
    assert best is not None
    leakage, pairs, law = best
    used, column = np.unique(pairs.report[law > 0], return_inverse=True)
    mechanism = np.zeros((len(task.weights), len(used)))
    mechanism[pairs.truth[law > 0], column] = law[law > 0]
    mean_loss = float(np.sum(task.truth_mass[pairs.truth] * law * pairs.loss))
    return Optimum(
        *(mechanism, used, proof.shares, proof.multipliers, leakage, proof.bound, mean_loss),
        rounds=round_number + coarse.rounds,
        pairs_touched=touched + coarse.pairs_touched,
    )


def merged(task: Task, places: Places) -> tuple[Task, Places]:
    """The problem on blocks of two by two cells: truths at the middle of their mass, reports at the
    middle of their cells."""
    truth = np.unique(places.blocks(places.truths), axis=0, return_inverse=True)[1].ravel()
    report = np.unique(places.blocks(places.reports), axis=0, return_inverse=True)[1].ravel()
    joint = np.stack([np.bincount(truth, row) for row in task.joint])
    mass = task.truth_mass
    weighted = np.stack([np.bincount(truth, mass * axis) for axis in places.truths.T], axis=1)
    middles = weighted / np.bincount(truth, mass)[:, None]
    summed = np.stack([np.bincount(report, axis) for axis in places.reports.T], axis=1)
    reports = summed / np.bincount(report)[:, None]

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
    # whole numbers at the middles of blocks
    at = (places.reports - np.array(places.corner)) / coarse.cell - 0.5
    block_of = np.unique(places.blocks(places.reports), axis=0)
    low, high = block_of.min(axis=0), block_of.max(axis=0)
    known = np.full(high - low + 3, -1)  # with a border of absent blocks all round
    known[tuple((block_of - low + 1).T)] = np.arange(len(block_of))
    total, weight = np.zeros((len(at), shares.shape[1])), np.zeros(len(at))
    for step in ((0, 0), (0, 1), (1, 0), (1, 1)):
        block = np.floor(at + 1e-9).astype(int) + step
        block_number = known[tuple(np.clip(block - low + 1, 0, high - low + 2).T)]
        near = np.where(
            block_number >= 0, np.prod(np.maximum(1 - np.abs(at - block), 0.0), axis=1), 0.0
        )
        total += near[:, None] * shares[block_number]
        weight += near
    return total / weight[:, None]


@dataclass(frozen=True)
class Pairs:
    """Some pairs (truth, report) with their losses: `truth` and `report` are indices, sorted by
    truth."""

    truth: np.ndarray
    report: np.ndarray
    loss: np.ndarray

    def __len__(self) -> int:
        return len(self.truth)

    def keys(self, reports: int) -> np.ndarray:
        """A number for each pair, the same for the same pair of any list."""
        return self.truth * reports + self.report

    def where(self, chosen: np.ndarray) -> "Pairs":
        """Some of the pairs, by their places in the list."""
        return Pairs(self.truth[chosen], self.report[chosen], self.loss[chosen])

    def joined(self, other: "Pairs", reports: int) -> "Pairs":
        """The pairs of both, each once, sorted by truth, then report."""
        both = Pairs(
            np.concatenate([self.truth, other.truth]),
            np.concatenate([self.report, other.report]),
            np.concatenate([self.loss, other.loss]),
        )
        return both.where(np.unique(both.keys(reports), return_index=True)[1])


@dataclass(frozen=True)
class Answer:
    """A law over the pairs as the program left it, the value of each truth and the multiplier of
    each budget."""

    law: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray


def solve_pairs(task: Task, pairs: Pairs, *, deadline: Deadline = NEVER) -> Answer | None:
    """Least vulnerability of a law that makes only these pairs, by HiGHS; None if the time was too
    short."""
    if deadline.passed:
        return None
    from scipy.optimize import linprog  # 12 MB: only where it is used

    weights = task.weights
    truths, guesses = weights.shape
    charges, limits = task.budgets()
    named, report = np.unique(pairs.report, return_inverse=True)
    count, columns = len(pairs), len(pairs) + len(named)
    each = np.arange(count)
    tops = np.arange(len(named) * guesses)
    blocks = [(tops, count + tops // guesses, -np.ones(len(tops)))]  # rows, columns, values
    for guess in range(guesses):
        blocks.append((report * guesses + guess, each, weights[pairs.truth, guess]))
    for k, charge in enumerate(charges.T):
        blocks.append((np.full(count, len(tops) + k), each, charge[pairs.truth] * pairs.loss))
    rows, across, values = (np.concatenate(part) for part in zip(*blocks, strict=True))
    below = csc_array((values, (rows, across)), shape=(len(tops) + len(limits), columns))
    sums = csc_array((np.ones(count), (pairs.truth, each)), shape=(truths, columns))
    lowest = np.where(np.arange(columns) < count, 0.0, -np.inf if np.any(weights < 0) else 0.0)
    seconds = deadline.left
    if seconds <= 0:  # the lines above took the rest; HiGHS refuses a negative limit
        return None
    optimum = linprog(
        np.repeat([0.0, 1.0], [count, len(named)]),
        A_ub=below,
        b_ub=np.concatenate([np.zeros(len(tops)), limits]),
        A_eq=sums,
        b_eq=np.ones(truths),
        bounds=np.stack([lowest, np.full(columns, np.inf)], axis=1),
        method="highs-ipm",
        options={"time_limit": min(seconds, 1e7)},
    )
    if optimum.x is None or optimum.status != 0:
        return None
    return Answer(
        np.maximum(optimum.x[:count], 0.0),
        optimum.eqlin.marginals,
        np.maximum(-optimum.ineqlin.marginals[len(tops) :], 0.0),
    )


def repaired_pairs(task: Task, pairs: Pairs, law: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """`task.repaired` for a law over pairs, where rows may also be empty.

    nearest: the place of each truth's nearest report in the list of pairs.
    """
    charges, limits = task.budgets()
    law = np.where(law > TINY, law, 0.0)
    law[nearest] += np.bincount(pairs.truth, law) == 0
    law = law / np.bincount(pairs.truth, law)[pairs.truth]
    spent = charges.T @ np.bincount(pairs.truth, law * pairs.loss)
    share = mixing_share(spent, charges.T @ pairs.loss[nearest], limits)
    if share > 0:
        law = (1 - share) * law
        law[nearest] += share
    return law


def leakage_of(task: Task, pairs: Pairs, law: np.ndarray) -> float:
    """The vulnerability of the law over the pairs."""
    table = coo_array(
        (law, (pairs.report, pairs.truth)), shape=(task.report_count, len(task.weights))
    )
    return float((table.tocsr() @ task.weights).max(axis=1).sum())


@dataclass(frozen=True)
class GridProof:
    """Scores and multipliers, with each truth's least cost over all reports and the bound that they
    prove."""

    task: Task
    budgets: Budgets
    shares: np.ndarray
    multipliers: np.ndarray

    @classmethod
    def fitted(
        cls, task: Task, budgets: Budgets, values: np.ndarray, multipliers: np.ndarray
    ) -> "GridProof":
        """At every report the scores that let the truths keep their values, as far as that can
        be."""
        prices = budgets.charges @ multipliers
        shares = [
            scores_for(task, needs(task, values, prices, task.loss_of(indices), budgets))
            for indices in task.chunks(_PAIRS_AT_ONCE)
        ]
        return cls(task, budgets, np.concatenate(shares), multipliers)

    @cached_property
    def floor(self) -> np.ndarray:
        """The least cost of each truth."""
        return least_costs(*self._priced)

    @cached_property
    def bound(self) -> float:
        """No law within the budgets leaks less."""
        return float(self.floor.sum() - self.multipliers @ self.budgets.limits)

    @property
    def _priced(self) -> tuple[Task, np.ndarray, np.ndarray, Allowed, int]:
        """What costs are computed from, and how many pairs at once."""
        prices = self.budgets.charges @ self.multipliers
        return self.task, self.shares, prices, self.budgets.allowed, _PAIRS_AT_ONCE

    def scaled(self) -> "GridProof":
        """The same scores with the multipliers scaled for the best bound."""
        return _best_along(
            lambda share: GridProof(
                self.task, self.budgets, self.shares, (0.8 + 0.4 * share) * self.multipliers
            ),
            [self],
        )

    def towards(self, other: "GridProof") -> "GridProof":
        """The best mixture of this proof and another."""

        def mixed(share: float) -> GridProof:
            both = (
                (1 - share) * self.shares + share * other.shares,
                (1 - share) * self.multipliers + share * other.multipliers,
            )
            return GridProof(self.task, self.budgets, *both)

        return _best_along(mixed, [self, other])

    def cheapest_pairs(self, per_truth: float) -> Pairs:
        """Pairs whose cost for the truth, given it, is nearest to its least: about `per_truth` for
        each truth, more where many are close."""
        mass = self.task.truth_mass

        def over(cost: np.ndarray, loss: np.ndarray) -> np.ndarray:
            return (cost - self.floor[:, None]) / mass[:, None] + _TIE * loss

        some = np.unique(np.linspace(0, len(mass) - 1, 400).astype(int))
        sample = np.concatenate(
            [over(cost, loss)[some] for _, loss, cost in costs(*self._priced)], axis=1
        )
        sample = sample[np.isfinite(sample)]  # without barred pairs
        wanted = min(int(per_truth * len(some)), len(sample) - 1)
        width = float(np.partition(sample, wanted)[wanted])
        parts = []
        for indices, loss, cost in costs(*self._priced):
            truth, column = np.nonzero(over(cost, loss) <= width)
            parts.append((truth, indices[column], loss[truth, column]))
        truth, report, loss = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Pairs(truth, report, loss)


def _best_along(at: Callable[[float], GridProof], known: list[GridProof]) -> GridProof:
    """The best bound on a segment, by golden section: the bound is concave along it."""
    ratio = (5**0.5 - 1) / 2
    low, high = 0.0, 1.0
    left, right = at(1 - ratio), at(ratio)
    tried = [*known, left, right]
    for _ in range(8):
        if left.bound < right.bound:
            low, left = low + (1 - ratio) * (high - low), right
            right = at(low + ratio * (high - low))
        else:
            high, right = low + ratio * (high - low), left
            left = at(low + (1 - ratio) * (high - low))
        tried += [left, right]
    return max(tried, key=lambda proof: proof.bound)
