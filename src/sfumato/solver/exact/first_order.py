"""A proof where users are many: mirror ascent on the scores of an adversary.

For any scores s_b, a probability vector over users for each report b, and any price l of the loss,

    bound(s, l) = sum_w min_b [ sum_x p(x,w) s_b(x) + l p(w) d(w,b) ] - l L

(`sfumato.measure.bound`).  It is concave in both.  The reports are those of the grid where users
times reports are few enough to be kept in a file; else cells of the plane, small where people are,
with d the distance to the nearest point of the cell, which is looser.
The minimum is smoothed: a truth chooses its cells by a softmax of their costs, which is a law, and
the slope of the bound in the scores is P(user, cell) of that law.  The scores move along it on the
simplex (exponentiated steps) and the price by what the law spends; means of the iterates are tried
as well.  Every bound is worked out with the plain minimum, so that what is proved does not hang on
how far the ascent has come.

A step takes two products of the sparse table P(user, truth) with users x cells or truths x cells
numbers, a few thousand truths at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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

STEPS, QUICK_STEPS = 240, 80
_MOST_CELLS = 4000
_MOST_SHARES = 12_000_000  # users times cells: 96 MB in the file
_WIDEST = 0.25  # of the budget: the side of a cell where nobody is
_STEP = 0.3  # of the scores' logarithms, per largest posterior
_PRICE_STEP = 0.3
_SMOOTH = 0.15, 0.015  # width of the softmax, from first to last, of the first law's vulnerability
_NARROWER = 0.98  # per step
_EVERY = 20  # steps between two trials of the mean
_ANEW = 60  # steps after which the mean begins again
_PRICES = 0.8, 0.9, 1.0, 1.1, 1.25  # tried with a mean
_AT_ONCE = 2_000_000  # truths times reports
_MOST_PAIRS = 200_000_000  # truths times reports, for a proof on the grid
_LEAST = 1e-12


def adapted_cells(
    truths_m: np.ndarray, mass: np.ndarray, *, widest_m: float, finest_m: float, most: int
) -> Cells:
    """Squares of a quadtree that cover the hull of the truths, as long as there are at most `most`:
    none wider than `widest_m`, and smaller ones where people are, by mass times side, down to
    `finest_m`."""
    low, high = truths_m.min(axis=0), truths_m.max(axis=0)
    side = float((high - low).max()) + 4 * finest_m
    corner = (low + high) / 2 - side / 2
    cells = Cells((float(corner[0]), float(corner[1])), side, np.zeros((1, 3), dtype=np.int64))
    while cells.sides_m[0] > widest_m:
        finer = cells.quartered()
        finer = finer[meets_hull(finer.centres_m, float(finer.sides_m[0]) / 2, truths_m)]
        if len(finer) > most:
            break
        cells = finer
    while len(cells) + 3 <= most:
        weight = np.bincount(cells.holding(truths_m), mass, minlength=len(cells)) * cells.sides_m
        weight[cells.sides_m / 2 < finest_m] = 0.0
        count = min((most - len(cells)) // 3, max(1, len(cells) // 8), int((weight > 0).sum()))
        if not count:
            break
        split = np.zeros(len(cells), dtype=bool)
        split[np.argsort(-weight)[:count]] = True
        quarters = cells[split].quartered()
        inside = meets_hull(quarters.centres_m, quarters.sides_m / 2, truths_m)
        cells = cells[~split].joined(quarters[inside])
    return cells


@dataclass(frozen=True, eq=False)
class Ascent:
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
        """Truths in pieces, with their losses at every report, float32."""
        step = max(1, _AT_ONCE // self.reports)
        for start in range(0, self.joint.shape[1], step):
            part = slice(start, start + step)
            yield part, self.losses(part).astype(np.float32)

    def bounds(self, scores: np.ndarray, prices: np.ndarray) -> np.ndarray:
        """The bound with each of several prices."""
        total = -prices * self.budget
        for part, distance in self.parts():
            cost = self._given_truth[part] @ scores
            for number, price in enumerate(prices):
                least = (cost + np.float32(price) * distance).min(axis=1)
                total[number] += float(self.mass[part] @ least)
        return total

    def step(
        self, scores: np.ndarray, price: float, width: float
    ) -> tuple[np.ndarray, float, float]:
        """P(user, report) of the law that chooses reports by a softmax of that width, what it
        spends, and the bound at these scores."""
        table = np.zeros_like(scores)
        spent, bound = 0.0, -price * self.budget
        for part, distance in self.parts():
            law = self._given_truth[part] @ scores
            law += np.float32(price) * distance
            least = law.min(axis=1, keepdims=True)
            bound += float(self.mass[part] @ least[:, 0])
            law -= least
            law *= np.float32(-1 / width)
            np.exp(law, out=law)
            law /= law.sum(axis=1, keepdims=True)
            spent += float(self.mass[part] @ np.einsum("wb,wb->w", law, distance))
            table += self._pairs[:, part] @ law
        return table, spent, bound

    def first_law(self) -> np.ndarray:
        """P(user, report) of noise about as wide as the budget."""
        table = np.zeros((self.joint.shape[0], self.reports), np.float32)
        for part, distance in self.parts():
            law = np.exp(distance * np.float32(-2 / self.budget))
            law /= law.sum(axis=1, keepdims=True)
            table += self._pairs[:, part] @ law
        return table


def first_order_certificate(
    problem: Problem,
    *,
    steps: int = STEPS,
    known: Joint | None = None,
    deadline: Deadline = NEVER,
    found: Heard | None = None,
) -> Certificate | None:
    """The best bound of the ascent, for the Bayes objective and an average budget; None for others,
    and where there is no time for one step.

    `known`, P(user, report) of a mechanism that was found, is where the ascent starts: what an
    adversary who knows it guesses.  `found` is called with each better certificate, its bound and
    the least leakage known.
    """
    if problem.max_loss is None or problem.objective.scores != "bayes":
        return None
    budget, on = problem.max_loss, _reports_of(problem)
    ascent = Ascent(problem.joint, on.losses, len(on), budget)
    table = ascent.first_law()
    if known is not None:
        table = _started(table, on, known)
    scale = float(table.max(axis=0).sum())
    least = scale if known is None else problem.objective.leakage(known)
    logs = np.log(np.maximum(table / np.maximum(table.sum(axis=0), _LEAST), _LEAST))
    scores = _simplex(logs)
    price = 0.5 * scale / budget
    mean, mean_price, weight = np.zeros_like(scores), 0.0, 0.0
    best: Certificate | None = None
    proved = -np.inf

    def tried(tested: np.ndarray, price: float, bound: float) -> None:
        nonlocal best, proved
        if bound > proved:
            proved = bound
            best = on.certificate(problem, tested, price)
            if found is not None:
                found(best, bound, least)

    for number in range(steps):
        if deadline.passed:
            break
        width = scale * max(_SMOOTH[0] * _NARROWER**number, _SMOOTH[1])
        table, spent, bound = ascent.step(scores, price, width)
        if bound > proved and number % _EVERY == 0:
            tried(scores, price, bound)
        posterior = table / np.maximum(table.sum(axis=0), _LEAST)
        posterior /= np.maximum(posterior.max(axis=0), _LEAST)
        logs += np.float32(_STEP / (1 + number / 20) ** 0.5) * posterior
        scores = _simplex(logs)
        change = float(np.clip(spent / budget - 1, -1, 1))
        price *= float(np.exp(_PRICE_STEP / (1 + number / 10) ** 0.5 * change))
        if number % _ANEW == 0:
            mean, mean_price, weight = np.zeros_like(scores), 0.0, 0.0
        mean += np.float32(number + 1) * scores
        mean_price, weight = mean_price + (number + 1) * price, weight + number + 1
        if number % _EVERY == _EVERY - 1:
            prices = mean_price / weight * np.array(_PRICES)
            bounds = ascent.bounds(mean / np.float32(weight), prices)
            at = int(bounds.argmax())
            tried(mean / np.float32(weight), float(prices[at]), float(bounds[at]))
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
    cells = adapted_cells(
        problem.places,
        problem.joint.place_probability,
        widest_m=problem.scale_m * _WIDEST,
        finest_m=problem.grid.cell_m,
        most=most,
    )
    return OnPlane(cells, problem.places)


def _shares(scores: np.ndarray) -> np.ndarray:
    shares = np.asarray(scores.T, dtype=float)
    return shares / shares.sum(axis=1, keepdims=True)
