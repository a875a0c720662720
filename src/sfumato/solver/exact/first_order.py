"""A proof, and a law, where users are many: a damped primal-dual method.

For any scores s_b, a probability vector over users for each report b, and any price l of the loss,

    bound(s, l) = sum_w min_b [ sum_x p(x,w) s_b(x) + l p(w) d(w,b) ] - l L

(`sfumato.measure.bound`).  It is concave in both.  The reports are those of the grid where users
times reports are few enough to be kept in a file; else cells of the plane, small where people are,
with d the distance to the nearest point of the cell, which is looser.

A law and the scores move in turn by exponentiated steps: the law away from what costs it most, by
the scores extrapolated from the last two, the scores towards the users whom it shows (the method of
Chambolle and Pock with entropies as distances).  Both are damped, which keeps them from circling
about each other: they tend to the saddle point of a smoothed game, smoothed less and less.
A law is a softmax of sums of past costs, and these are linear in the scores, so that it is never
held: users x reports numbers say what it is, and it is worked out a few thousand truths at a time.
Every bound is worked out with the plain minimum, so that what is proved does not hang on how far
the method has come.  A step takes two products of the sparse table P(user, truth) with users x
reports or truths x reports numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.data.joint import Joint
from sfumato.measure.cells import Cells
from sfumato.measure.certificate import Certificate, PlaneProof, Proof
from sfumato.mechanism.loss import traits_of
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.problem import Problem, meets_hull

Heard = Callable[[Certificate, float, float], None]

STEPS, QUICK_STEPS = 400, 120
_MOST_CELLS = 4000
_MOST_SHARES = 24_000_000  # users times cells: 192 MB in the file
_FIRST_CELLS = 1 / 4  # of them, before they are split where reports fall
_FINER = 0.35, 0.7  # shares of the steps after which they are
_STEP = 0.7  # of the logarithms, per leakage of the law and per largest posterior of the scores
_PRICE_STEP = 0.05
_STEEPER, _STEEPEST = 0.002, 100.0  # first share that is added to a slope; times a slope, at most
_DAMPING = 0.1, 0.012  # of a step's logarithms, from first to last
_DAMPED_BY = 0.8  # share of the steps
_EVERY = 20  # steps between two trials of a bound
_TIMED = 3  # steps that tell how many fit into the time
_TIME_FOR_STEPS = 0.5  # of the time left; later steps are on more cells, and bounds take time too
_PRICES = 0.9, 1.0, 1.1  # tried with the scores
_AT_ONCE = 2_000_000  # truths times reports
_MOST_KEPT = 50_000_000  # truths times reports whose losses are kept: 200 MB
_MOST_PAIRS = 50_000_000  # truths times reports, for a proof on the grid
_LEAST = 1e-12


def coarse_cells(truths_m: np.ndarray, mass: np.ndarray, *, finest_m: float, most: int) -> Cells:
    """Squares of a quadtree that cover the hull of the truths, small where people are, by mass
    times side, down to `finest_m`; about `most` of them."""
    low, high = truths_m.min(axis=0), truths_m.max(axis=0)
    side = float((high - low).max()) + 4 * finest_m
    corner = (low + high) / 2 - side / 2
    cells = Cells((float(corner[0]), float(corner[1])), side, np.zeros((1, 3), dtype=np.int64))
    while len(cells) + 3 <= most:
        share = np.bincount(cells.holding(truths_m), mass, minlength=len(cells))
        finer = split(cells, share, truths_m, finest_m=finest_m, most=min(most, 2 * len(cells) + 3))
        if len(finer) == len(cells):
            break
        cells = finer
    return cells


def split(
    cells: Cells, share: np.ndarray, truths_m: np.ndarray, *, finest_m: float, most: int
) -> Cells:
    """Cells with those quartered that have the largest share times side, none below `finest_m`, as
    long as there are at most `most`."""
    weight = share * cells.sides_m
    weight[cells.sides_m / 2 < finest_m] = 0.0
    count = min((most - len(cells)) // 3, int((weight > 0).sum()))
    if count <= 0:
        return cells
    chosen = np.zeros(len(cells), dtype=bool)
    chosen[np.argsort(-weight)[:count]] = True
    quarters = cells[chosen].quartered()
    inside = meets_hull(quarters.centres_m, quarters.sides_m / 2, truths_m)
    return cells[~chosen].joined(quarters[inside])


class SoftLaw(NamedTuple):
    """P(report | truth) ~ exp(-sum_x P(x | truth) pull(x, report) - slope loss(truth, report))."""

    pull: np.ndarray
    slope: float


class Position(NamedTuple):
    """Where both players are: a law, and logarithms of scores with a price; scores and price of now
    and of one step ago; P(user, report) of the law, the least leakage so far and the loss spent."""

    law: SoftLaw
    logs: np.ndarray
    scores: np.ndarray
    price: float
    former: np.ndarray
    former_price: float
    table: np.ndarray
    leakage: float
    spent: float

    def spread(self, parents: np.ndarray) -> "Position":
        """The same on other reports, each with what the one that it is a part of had."""
        position = self._replace(
            law=self.law._replace(pull=self.law.pull[:, parents]),
            logs=self.logs[:, parents],
            scores=self.scores[:, parents],
            former=self.former[:, parents],
        )
        share = np.bincount(parents, minlength=self.table.shape[1])[parents]
        return position._replace(table=self.table[:, parents] / share.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Game:
    """The tables of a problem, and passes over them; `losses` gives the loss of some truths at
    every report."""

    joint: Joint
    losses: Callable[[slice], np.ndarray]
    reports: int
    budget: float

    @cached_property
    def mass(self) -> np.ndarray:
        """P(truth)."""
        return self.joint.place_probability

    @cached_property
    def _pairs(self) -> sparse.csc_matrix:
        secret, place, weight = self.joint.pairs
        return sparse.csc_matrix((weight.astype(np.float32), (secret, place)), self.joint.shape)

    @cached_property
    def _given_truth(self) -> sparse.csr_matrix:
        """P(user | truth), truths x users."""
        scale = sparse.diags((1 / self.mass).astype(np.float32))
        return sparse.csr_matrix(scale @ self._pairs.T)

    def parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Truths in pieces, with their losses at every report, float32, kept where they are few."""
        step = max(1, _AT_ONCE // self.reports)
        for start in range(0, self.joint.shape[1], step):
            part = slice(start, start + step)
            known = self._kept.get(start)
            distance = self.losses(part).astype(np.float32) if known is None else known
            if self.joint.shape[1] * self.reports <= _MOST_KEPT:
                self._kept[start] = distance
            yield part, distance

    @cached_property
    def _kept(self) -> dict[int, np.ndarray]:
        return {}

    def bounds(self, scores: np.ndarray, prices: np.ndarray) -> np.ndarray:
        """The bound with each of several prices."""
        total = -prices * self.budget
        for part, distance in self.parts():
            cost = self._given_truth[part] @ scores
            for number, price in enumerate(prices):
                least = (cost + np.float32(price) * distance).min(axis=1)
                total[number] += float(self.mass[part] @ least)
        return total

    def chances(self, law: SoftLaw) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """P(report | truth) of some truths at a time, with their losses."""
        for part, distance in self.parts():
            rows = self._given_truth[part] @ law.pull
            rows += np.float32(law.slope) * distance
            rows -= rows.min(axis=1, keepdims=True)
            np.negative(rows, out=rows)
            np.exp(rows, out=rows)
            rows /= rows.sum(axis=1, keepdims=True)
            yield part, rows, distance

    def through(self, law: SoftLaw) -> tuple[np.ndarray, float]:
        """P(user, report) of a law, and what it spends."""
        table, spent = np.zeros_like(law.pull), 0.0
        for part, rows, distance in self.chances(law):
            spent += float(self.mass[part] @ np.einsum("wb,wb->w", rows, distance))
            table += self._pairs[:, part] @ rows
        return table, spent

    def noise(self) -> SoftLaw:
        """Noise about as wide as the budget."""
        users = self.joint.shape[0]
        return SoftLaw(np.zeros((users, self.reports), np.float32), 2 / self.budget)

    def start(self, table: np.ndarray) -> Position:
        """Noise, and what an adversary guesses who knows P(user, report)."""
        logs = np.log(np.maximum(table / np.maximum(table.sum(axis=0), _LEAST), _LEAST))
        scores, leakage = _simplex(logs), float(table.max(axis=0).sum())
        price = 0.5 * leakage / self.budget
        law = self.noise()
        return Position(law, logs, scores, price, scores, price, table, leakage, self.budget)

    def step(self, at: Position, done: float) -> Position:
        """One step of the law and one of the scores, when a share of the steps is done."""
        low, high = _DAMPING
        damped = np.float32(1 + _STEP * low * (high / low) ** min(1.0, done / _DAMPED_BY))
        step = _STEP / at.leakage
        pull = 2 * at.scores
        pull -= at.former
        pull *= np.float32(step)
        pull += at.law.pull
        pull /= damped
        slope = (at.law.slope + step * (2 * at.price - at.former_price)) / float(damped)
        law = SoftLaw(pull, slope)
        table, spent = self.through(law)
        largest = table.max(axis=0)
        logs = table * (np.float32(_STEP) / np.maximum(largest, _LEAST))
        logs += at.logs
        logs /= damped
        change = float(np.clip(spent / self.budget - 1, -1, 1))
        price = at.price * float(np.exp(_PRICE_STEP * change))
        leakage = min(at.leakage, float(largest.sum()))
        scores = _simplex(logs)
        return Position(law, logs, scores, price, at.scores, at.price, table, leakage, spent)


def least_leaking(
    game: Game, *, deadline: Deadline = NEVER, tell: Callable[[float], None] = lambda done: None
) -> SoftLaw:
    """The law that the game comes to, a little steeper where that is needed for the budget; `tell`
    is called with the share of the steps that is done."""
    at = game.start(game.through(game.noise())[0])
    for number in range(STEPS):
        tell(number / STEPS)
        at = game.step(at, number / STEPS)
        if deadline.passed:
            break
    return _within_budget(game, at.law)


def _within_budget(game: Game, law: SoftLaw) -> SoftLaw:
    """The law, steeper by ever larger steps until it keeps the budget, or far steeper."""
    steepest, share = _STEEPEST * law.slope, _STEEPER
    while game.through(law)[1] > game.budget and law.slope < steepest:
        law = law._replace(slope=law.slope * (1 + share))
        share *= 2
    return law


def first_order_certificate(
    problem: Problem,
    *,
    steps: int = STEPS,
    known: Joint | None = None,
    deadline: Deadline = NEVER,
    on_proof: Heard | None = None,
) -> Certificate | None:
    """The best bound on the way, for the Bayes objective and an average budget; None for others,
    and where there is no time for one step.

    `known`, P(user, report) of a mechanism that was found, is where the scores start: what an
    adversary who knows it guesses.  `on_proof` is called with each better certificate, its bound
    and the least leakage known.
    """
    if problem.max_loss is None or problem.objective.scores != "bayes":
        return None
    if deadline.passed:
        return None
    on = _reports_of(problem)
    game = Game(problem.joint, on.losses, len(on), problem.max_loss)
    table, _ = game.through(game.noise())
    if known is not None:
        table = _started(table, on, known)
    least = float(table.max(axis=0).sum()) if known is None else problem.objective.leakage(known)
    at = game.start(table)
    best, proved, number, left = None, -np.inf, 0, deadline.left
    blind = float(problem.joint.prior.max())  # what any mechanism leaks
    while number < steps:
        number += 1
        at = game.step(at, number / steps)
        if number == _TIMED and deadline.limited:  # the steps grow sharper: the last must be taken
            step_s = (left - deadline.left) / number
            steps = min(steps, number + int(_TIME_FOR_STEPS * max(0.0, deadline.left) / step_s))
        last = number == steps or deadline.passed
        if last or number % _EVERY == 0:
            prices = at.price * np.array(_PRICES)
            bounds = game.bounds(at.scores, prices)
            chosen = int(bounds.argmax())
            if bounds[chosen] > proved:
                proved = float(bounds[chosen])
                best = on.certificate(problem, at.scores, float(prices[chosen]))
                if on_proof is not None:
                    on_proof(best, max(proved, blind), least)
        if last:
            break
        if isinstance(on, OnPlane) and number in (round(share * steps) for share in _FINER):
            finer = on.finer(at.table.sum(axis=0))
            at = at.spread(on.holding(finer.cells.centres_m))
            on = finer
            game = Game(problem.joint, on.losses, len(on), problem.max_loss)
    return best


def _started(table: np.ndarray, on: "OnGrid | OnPlane", known: Joint) -> np.ndarray:
    """P(user, report) where the reports of a known mechanism fall, half and half with noise."""
    assert known.places is not None
    at = on.holding(known.places)
    inside = at >= 0
    merge = sparse.csr_matrix(
        (np.ones(int(inside.sum()), np.float32), (np.flatnonzero(inside), at[inside])),
        shape=(known.shape[1], len(on)),
    )
    moved: Any = known.table.astype(np.float32) if known.sparse is None else known.sparse
    return np.asarray(0.5 * table + 0.5 * (sparse.csr_matrix(moved) @ merge).toarray(), np.float32)


def _simplex(logs: np.ndarray) -> np.ndarray:
    """Probability vectors, one per column, from logarithms, which are shifted in place."""
    logs -= logs.max(axis=0)
    scores = np.exp(logs)
    scores /= scores.sum(axis=0)
    return scores


@dataclass(frozen=True, eq=False)
class OnGrid:
    """The reports of the problem's grid."""

    problem: Problem

    def __len__(self) -> int:
        return len(self.problem.report_places)

    def losses(self, part: slice) -> np.ndarray:
        """Of some truths at every report."""
        reports = self.problem.report_places
        return self.problem.loss(self.problem.places[part][:, None, :], reports[None, :, :])

    def holding(self, places: np.ndarray) -> np.ndarray:
        """The report that stands for each place."""
        return np.asarray(cKDTree(self.problem.report_places).query(places)[1])

    def certificate(self, problem: Problem, scores: np.ndarray, price: float) -> Certificate:
        """The scores as a proof on the grid."""
        return Certificate.of(
            problem, Proof(problem.report_places, _shares(scores), np.array([price]))
        )


@dataclass(frozen=True, eq=False)
class OnPlane:
    """Cells of the plane."""

    cells: Cells
    truths_m: np.ndarray
    finest_m: float
    most: int

    def finer(self, share: np.ndarray) -> "OnPlane":
        """The same with cells split where reports fall, by P(cell) times side."""
        most = min(self.most, 2 * len(self))
        finest = self.finest_m
        cells = split(self.cells, share, self.truths_m, finest_m=finest, most=most)
        return replace(self, cells=cells)

    def __len__(self) -> int:
        return len(self.cells)

    def losses(self, part: slice) -> np.ndarray:
        """Of some truths at the nearest point of every cell."""
        return self.cells.least_distance(self.truths_m[part])

    def holding(self, places: np.ndarray) -> np.ndarray:
        """The cell that holds each place, or -1."""
        return self.cells.holding(places)

    def certificate(self, problem: Problem, scores: np.ndarray, price: float) -> Certificate:
        """The scores as a proof for the plane, which holds on the grid as well; the proof on the
        grid is the blind guess."""
        prior = problem.joint.prior
        blind = np.zeros((1, len(prior)))
        blind[0, prior.argmax()] = 1.0
        on_grid = Proof(problem.places[:1], blind, np.zeros(1))
        on_plane = PlaneProof(self.cells, _shares(scores), np.array([price]))
        return Certificate.of(problem, on_grid, on_plane)


def _reports_of(problem: Problem) -> OnGrid | OnPlane:
    users, truths = problem.joint.shape
    reports = len(problem.report_places)
    few = reports * users <= _MOST_SHARES and reports * truths <= _MOST_PAIRS
    if few or not traits_of(problem.loss).is_distance:
        return OnGrid(problem)
    most = max(64, min(_MOST_CELLS, _MOST_SHARES // users))
    finest = problem.grid.cell_m
    cells = coarse_cells(
        problem.places,
        problem.joint.place_probability,
        finest_m=finest,
        most=round(_FIRST_CELLS * most),
    )
    return OnPlane(cells, problem.places, finest, most)


def _shares(scores: np.ndarray) -> np.ndarray:
    shares = np.asarray(scores.T, dtype=float)
    return shares / shares.sum(axis=1, keepdims=True)
