"""Interior-point solver for the two optimum problems, over a given list of reports.

The program: choose a mechanism M(z|w) that leaks least within linear loss budgets,

    min  sum_z F( J(.,z) )     J(a,z) = sum_w G(w,a) M(z|w)
    s.t. sum_z M(z|w) = 1,     sum_{w,z} C(w,k) d(w,z) M(z|w) <= L_k,     M >= 0,

with F the largest entry of the column (vulnerability) or its share of I(X;Z) in nats.
Newton's system has one dense block of size truths + budgets: at each report everything else is a
matrix of size "guesses", so a step over a million (w,z) pairs costs a few matrix products. Every
iterate keeps the budgets. Barred pairs (a hard cap) stay at law 0 with reduced cost 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.leakage_curves import Information, Vulnerability, longest_step
from sfumato.solver.exact.newton_system import Pieces, paired, smaller_side
from sfumato.solver.exact.task import Charges, Limits, PerPair, PerTruth, Shares, Weights

# extra solves per factorisation that pull outliers back to the central path (Gondzio 1996)
_CORRECTORS = 3
_START_ROUNDS = 200
_MAX_STEPS = 400
_IN_CACHE = 16_384  # pairs worked on at a time, so that what a step makes stays in the cache

Curve = Callable[[np.ndarray, float], Vulnerability | Information]  # of P(report, secret), barrier


@dataclass(frozen=True)
class Restricted:
    """The program over some reports, as arrays.

    weights: G, truths x guesses.  loss: d, truths x reports.  charges: C, truths x budgets.
    limits: L, one per budget.  allowed: truths x reports, or None when every pair is.
    """

    weights: Weights
    loss: PerPair
    charges: Charges
    limits: Limits
    allowed: PerPair | None = None


@dataclass(frozen=True)
class Point:
    """What the solver found: a law, its prices and the two sides of the gap over the reports
    given."""

    mechanism: PerPair
    shares: Shares  # probability vectors: the scores, or the posteriors of information
    multipliers: Limits
    leakage: float
    bound: float
    steps: int
    pair_weights: np.ndarray | None = None  # of linked reports


def solve_restricted(
    problem: Restricted,
    *,
    curve: Curve = Vulnerability,
    gap: float = 1e-9,
    deadline: Deadline = NEVER,
) -> Point:
    """Least leakage over the reports given, for one of the two leakage curves.

    Stops once leakage - bound <= gap, when rounding stops progress, or at the deadline; the point
    says which gap was reached.
    """
    return follow(_State(problem, curve), gap=gap, max_steps=_MAX_STEPS, deadline=deadline)


class Iterate(Protocol):
    """A point on the central path, and how to continue from it."""

    pairs: int  # products that are 0 at the optimum

    @property
    def curved(self) -> bool:
        """Whether the scores are the gradient of the leakage at the law."""

    def measure(self) -> tuple[float, float]:
        """Leakage and bound."""

    def point(self, leakage: float, bound: float, steps: int) -> Point:
        """What is kept of it."""

    def complementarity(self) -> float:
        """The sum of the products."""

    def advance(self, target: float) -> float:
        """Move towards products equal to `target`; returns how long the step was."""


def follow(state: Iterate, *, gap: float, max_steps: int, deadline: Deadline) -> Point:
    """Along the central path until the gap is closed, rounding stops progress or time is up."""
    best: Point | None = None
    stalled, share = 0, 0.5
    for step in range(max_steps):
        leakage, bound = state.measure()
        stalled += 1
        if best is None or leakage - bound < best.leakage - best.bound:
            best, stalled = state.point(leakage, bound, step), 0
        if best.leakage - best.bound <= gap or stalled > 25 or deadline.passed:
            break
        together = state.complementarity()
        if state.curved and leakage - bound > 3 * together:
            share = 0.9  # the scores have run ahead of the reduced costs: let them meet first
        try:
            short = state.advance(share * together / state.pairs)
        except np.linalg.LinAlgError:
            break
        share *= 0.5 if short > 0.7 else 1.0 if short > 0.3 else 1.5 if short > 0.1 else 3.0
        share = min(0.9, max(0.05, share))
    assert best is not None
    return best


def central_start(problem: Restricted) -> tuple[PerPair, float, PerTruth]:
    """A law strictly inside the budgets, M = 1 / (k c(w) (d - d_min + width_w)), with k and the
    gaps k c width.

    Reduced costs k c (d - d_min + width) then make every product the same: a point on the central
    path.
    """
    over = loss = problem.loss
    if problem.allowed is not None:
        over, loss = np.where(problem.allowed, loss, np.inf), np.where(problem.allowed, loss, 0.0)
    least = over.min(axis=1)
    over = over - least[:, None]
    if not problem.charges.shape[1]:
        law = np.isfinite(over) / np.isfinite(over).sum(axis=1, keepdims=True)
        return law, 0.0, 1.0 / law.max(axis=1)
    charge = problem.charges.sum(axis=1)
    floor = problem.charges.T @ least
    room = problem.limits - floor
    free = charge == 0  # truths that no live budget touches
    charge = np.where(free, charge[~free].min(initial=1.0), charge)
    sharpness = over.shape[1] / charge.mean() / float(np.min(room / problem.charges.sum(axis=0)))
    for _ in range(_START_ROUNDS):
        aim = 1.0 / (sharpness * charge)
        width = aim
        for _ in range(8):  # Newton on the concave function 1 / sum_z 1/(over + width)
            inverse = 1.0 / (over + width[:, None])
            total = inverse.sum(axis=1)
            width = width + (aim - 1.0 / total) * total**2 / np.einsum("wz,wz->w", inverse, inverse)
        law = 1.0 / (over + width[:, None])
        law /= law.sum(axis=1, keepdims=True)
        if np.all(problem.charges.T @ np.einsum("wz,wz->w", law, loss) - floor <= 0.7 * room):
            return law, sharpness, sharpness * charge * width
        sharpness *= 2.0
    raise ArithmeticError("no mechanism lies strictly inside the budgets")


class Laws:
    """What every iterate asks of a law: what it spends, and which reports a cap bars."""

    charges: np.ndarray
    loss: np.ndarray
    barred: np.ndarray | None

    def _bar(self, allowed: np.ndarray | None) -> int:
        """Note which pairs are barred; gives how many."""
        self.barred = None if allowed is None or allowed.all() else ~allowed
        return 0 if self.barred is None else int(self.barred.sum())

    def _begin(self, problem: Restricted) -> tuple[float, PerTruth]:
        """Take the budgets and the central start; gives what each product is there, and the gaps
        of the truths."""
        self.charges, self.limits, self.loss = problem.charges, problem.limits, problem.loss
        barred = self._bar(problem.allowed)
        if self.barred is not None:
            self.loss = np.where(self.barred, 0.0, problem.loss)
        self.law, sharpness, gaps = central_start(problem)
        self.joint_zx = self.law.T @ problem.weights
        barrier = float(self.joint_zx.max())
        self.multipliers = np.full(len(self.limits), sharpness * barrier)
        self.spare = self.limits - self._spent(self.law)
        self.pairs = self.law.size - barred + len(self.limits)
        return barrier, gaps

    def _spent(self, law: np.ndarray) -> np.ndarray:
        return self.charges.T @ np.einsum("wz,wz->w", law, self.loss)

    def _blank(self, table: np.ndarray, value: float = 0.0) -> np.ndarray:
        if self.barred is not None:
            table[self.barred] = value
        return table


class _Move(NamedTuple):
    """Changes of everything that an iterate holds."""

    law: np.ndarray
    reduced: np.ndarray
    slack: np.ndarray
    scores: np.ndarray
    spare: np.ndarray
    multipliers: np.ndarray
    values: np.ndarray


class _Bends(NamedTuple):
    """Corrections of the products law x reduced, slack x scores, spare x multipliers."""

    law: np.ndarray
    slack: np.ndarray
    spare: np.ndarray


class _State(Laws):
    """The iterate, and Newton's system at it."""

    def __init__(self, problem: Restricted, curve: Curve) -> None:
        self.weights = problem.weights
        barrier, gaps = self._begin(problem)
        self.leak = curve(self.joint_zx, barrier)
        cost = self._cost()
        self.values = cost.min(axis=1) - barrier * gaps
        self.reduced = self._blank(cost - self.values[:, None], 1.0)
        self.drift: np.ndarray | None = None
        self.pairs += self.leak.pairs
        step = max(1, _IN_CACHE // self.law.shape[1])
        self._blocks = [slice(start, start + step) for start in range(0, len(self.law), step)]

    @property
    def curved(self) -> bool:
        return self.leak.curved

    def point(self, leakage: float, bound: float, steps: int) -> Point:
        return Point(self.law, self.leak.shares, self.multipliers, leakage, bound, steps)

    def _cost(self) -> np.ndarray:
        """G s + C lambda d, truths x reports; infinite at barred pairs."""
        cost = self.weights @ self.leak.scores.T
        cost += (self.charges @ self.multipliers)[:, None] * self.loss
        return self._blank(cost, np.inf)

    def measure(self) -> tuple[float, float]:
        """Leakage and bound of the iterate. Where the scores are curved, notes how far the reduced
        costs lag behind."""
        leakage = self.leak.leakage(self.joint_zx)
        if not self.leak.curved:
            reduced = self.reduced
            if self.barred is not None:
                reduced = np.where(self.barred, np.inf, reduced)
            floor = np.sum(self.values + reduced.min(axis=1))
            return leakage, float(floor - self.multipliers @ self.limits)
        cost = self._cost()
        bound = float(cost.min(axis=1).sum() - self.multipliers @ self.limits)
        cost -= self.values[:, None]
        cost -= self.reduced
        self.drift = self._blank(cost)
        return leakage, bound

    def complementarity(self) -> float:
        pairs = float(np.einsum("wz,wz->", self.law, self.reduced))
        return pairs + self.leak.complementarity() + float(self.spare @ self.multipliers)

    def factor(self) -> None:
        """Factors of the dense block and, per report, of the scores."""
        self.ratio = self.law / self.reduced
        self.small = self.leak.factor(paired(self.weights, self.ratio))
        corner = self.spare / self.multipliers
        self.dense = smaller_side(
            Pieces(self.ratio, self.loss, self.weights, self.small, self.charges, corner)
        )

    def _direction(self, target: float, bends: _Bends) -> _Move:
        """Newton's direction towards products equal to `target` minus the bends."""
        truths, guesses = self.weights.shape
        law, reduced = np.empty_like(self.law), np.empty_like(self.law)
        push, rows, spent = np.zeros((law.shape[1], guesses)), np.empty(truths), np.empty(truths)
        for block in self._blocks:  # what each pair aims at, kept in `law`
            wanted = target - bends.law[block] if bends.law.ndim == 2 else target
            aim = np.divide(wanted, self.reduced[block], out=law[block])
            aim -= self.law[block]
            if self.drift is not None:
                aim -= self.ratio[block] * self.drift[block]
            if self.barred is not None:
                aim[self.barred[block]] = 0.0
            push += aim.T @ self.weights[block]
            rows[block] = aim.sum(axis=1)
            spent[block] = np.einsum("wz,wz->w", aim, self.loss[block])
        spare_aim = target - self.spare * self.multipliers - bends.spare
        bent = self._through(push + self.leak.pressure(target, bends.slack))
        for block in self._blocks:
            weights, ratio = self.weights[block], self.ratio[block]
            rows[block] -= np.einsum("wa,wa->w", weights, ratio @ bent)
            spent[block] -= np.einsum("wa,wa->w", weights, (ratio * self.loss[block]) @ bent)
        right = -self.charges.T @ spent - spare_aim / self.multipliers
        right += self.limits - self._spent(self.law) - self.spare
        right = np.concatenate([-rows - (self.law.sum(axis=1) - 1.0), right])
        values, multipliers = np.split(self.dense.solve(right), [truths])
        price = self.charges @ multipliers
        push = np.zeros_like(push)
        for block in self._blocks:
            lift = np.multiply(price[block, None], self.loss[block], out=reduced[block])
            lift += values[block, None]
            push += (self.ratio[block] * lift).T @ self.weights[block]
        scores = bent + self._through(push)
        for block in self._blocks:
            change = np.subtract(self.weights[block] @ scores.T, reduced[block], out=reduced[block])
            if self.barred is not None:
                change[self.barred[block]] = 0.0
            law[block] -= self.ratio[block] * change
            if self.drift is not None:
                change += self.drift[block]
        spare = (spare_aim + self.spare * multipliers) / self.multipliers
        slack = self.leak.direction(scores)
        return _Move(law, reduced, slack, scores, spare, -multipliers, values)

    def _through(self, push: np.ndarray) -> np.ndarray:
        """F F' push, report by report."""
        inner = np.matmul(self.small.transpose(0, 2, 1), push[:, :, None])
        return np.matmul(self.small, inner)[:, :, 0]

    def _lengths(self, move: _Move) -> tuple[float, float]:
        slack, scores = self.leak.longest(move.scores, move.slack)
        primal = min(slack, longest_step(self.spare, move.spare))
        dual = min(scores, longest_step(self.multipliers, move.multipliers))
        for block in self._blocks:
            primal = min(primal, longest_step(self.law[block], move.law[block]))
            dual = min(dual, longest_step(self.reduced[block], move.reduced[block]))
        return (min(primal, dual),) * 2 if self.leak.curved else (primal, dual)

    def _bend(
        self, bend: np.ndarray, move: _Move, ahead: float, behind: float, target: float
    ) -> np.ndarray:
        """The bends of law x reduced after looking ahead along the move."""
        bent = np.empty_like(self.law)
        for block in self._blocks:
            product = self.law[block] + ahead * move.law[block]
            product *= self.reduced[block] + behind * move.reduced[block]
            before = bend[block] if bend.ndim == 2 else 0.0
            np.subtract(before, _towards(product, target), out=bent[block])
        return bent

    def advance(self, target: float) -> float:
        """Move towards products equal to `target`; returns the shorter of the primal and dual step
        lengths."""
        self.factor()
        bends = _Bends(np.zeros(1), np.zeros(1), np.zeros(1))
        move = self._direction(target, bends)
        primal, dual = self._lengths(move)
        for _ in range(_CORRECTORS):
            if min(primal, dual) > 0.9:
                break
            ahead, behind = min(1.0, 1.5 * primal + 0.1), min(1.0, 1.5 * dual + 0.1)
            slacks = self.leak.slack + ahead * move.slack
            spares = self.spare + ahead * move.spare
            scores = self.leak.scores + behind * move.scores
            prices = self.multipliers + behind * move.multipliers
            bends = _Bends(
                self._bend(bends.law, move, ahead, behind, target),
                bends.slack - _towards(slacks * scores, target),
                bends.spare - _towards(spares * prices, target),
            )
            other = self._direction(target, bends)
            lengths = self._lengths(other)
            if sum(lengths) < primal + dual + 0.05:
                break
            move, (primal, dual) = other, lengths
        self.law = self.law + primal * move.law
        self.joint_zx = self.law.T @ self.weights
        self.reduced += dual * move.reduced
        self.spare = self.spare + primal * move.spare
        self.multipliers = self.multipliers + dual * move.multipliers
        self.values = self.values + dual * move.values
        scores, slack = self.leak.scores + dual * move.scores, self.leak.slack + primal * move.slack
        self.leak.move(self.joint_zx, scores, slack)
        return min(primal, dual)


def _towards(product: np.ndarray, target: float) -> np.ndarray:
    """Change that brings complementary products back into [0.1, 10] times the target."""
    return np.maximum(np.clip(product, 0.1 * target, 10 * target) - product, -10 * target)
