"""Interior-point solver for the two optimum problems, over a given list of reports.

The program: choose a mechanism M(z|w) that leaks least within linear loss budgets,

    min  sum_z F( J(.,z) )     J(a,z) = sum_w G(w,a) M(z|w)
    s.t. sum_z M(z|w) = 1,     sum_{w,z} C(w,k) d(w,z) M(z|w) <= L_k,     M >= 0,

with F the largest entry of the column (vulnerability) or its share of I(X;Z) in nats.
Newton's system has one dense block of size truths + budgets: at each report everything else is a matrix of size
"guesses", so a step over a million (w,z) pairs costs a few matrix products. Every iterate keeps the budgets.
Barred pairs (a hard cap) stay at law 0 with reduced cost 1.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sfumato.solver.exact.leakage_curves import Information, Vulnerability, longest_step

_CORRECTORS = 3  # extra solves per factorisation that pull outliers back to the central path (Gondzio 1996)
_START_ROUNDS = 200


@dataclass(frozen=True)
class Restricted:
    """The program over some reports, as arrays.

    weights: G, truths x guesses.  loss: d, truths x reports.  charges: C, truths x budgets.
    limits: L, one per budget.  allowed: truths x reports, or None when every pair is.
    """

    weights: np.ndarray
    loss: np.ndarray
    charges: np.ndarray
    limits: np.ndarray
    allowed: np.ndarray | None = None


@dataclass(frozen=True)
class Point:
    """What the solver found: a law, its prices and the two sides of the gap over the reports given."""

    mechanism: np.ndarray  # truths x reports
    shares: np.ndarray  # reports x guesses, probability vectors: the scores, or the posteriors of information
    multipliers: np.ndarray  # one per budget
    leakage: float
    bound: float
    steps: int


def solve_restricted(
    problem: Restricted, *, prior: np.ndarray | None = None, gap: float = 1e-9, max_steps: int = 400, deadline: float = np.inf
) -> Point:
    """Least leakage over the reports given: vulnerability, or information if `prior` is given.

    Stops once leakage - bound <= gap, when rounding stops progress, or at the deadline (of time.monotonic);
    the point says which gap was reached.
    """
    state = _State(problem, prior)
    best: Point | None = None
    stalled, share = 0, 0.5
    for step in range(max_steps):
        leakage, bound = state.measure()
        stalled += 1
        if best is None or leakage - bound < best.leakage - best.bound:
            best = Point(state.law, state.leak.shares, state.multipliers, leakage, bound, step)
            stalled = 0
        if best.leakage - best.bound <= gap or stalled > 25 or time.monotonic() > deadline:
            break
        together = state.complementarity()
        if prior is not None and leakage - bound > 3 * together:
            share = 0.9  # the scores have run ahead of the reduced costs: let them meet first
        try:
            state.factor()
        except np.linalg.LinAlgError:
            break
        shortest = state.advance(share * together / state.pairs)
        share *= 0.5 if shortest > 0.7 else 1.0 if shortest > 0.3 else 1.5 if shortest > 0.1 else 3.0
        share = min(0.9, max(0.05, share))
    assert best is not None
    return best


def central_start(problem: Restricted) -> tuple[np.ndarray, float, np.ndarray]:
    """A law strictly inside the budgets, M = 1 / (k c(w) (d - d_min + width_w)), with k and the gaps k c width.

    Reduced costs k c (d - d_min + width) then make every product the same: a point on the central path.
    """
    over = problem.loss if problem.allowed is None else np.where(problem.allowed, problem.loss, np.inf)
    least = over.min(axis=1)
    over = over - least[:, None]
    if not problem.charges.shape[1]:
        law = np.isfinite(over) / np.isfinite(over).sum(axis=1, keepdims=True)
        return law, 0.0, 1.0 / law.max(axis=1)
    charge = problem.charges.sum(axis=1)
    floor = problem.charges.T @ least
    room = problem.limits - floor
    loss = problem.loss if problem.allowed is None else np.where(problem.allowed, problem.loss, 0.0)
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


_Move = tuple[np.ndarray, ...]  # changes of law, reduced costs, slacks, scores, spare budgets, multipliers, values
_Bends = list[np.ndarray]  # corrections of the products law x reduced, slack x scores, spare x multipliers


class _State:
    """The iterate, and Newton's system at it."""

    def __init__(self, problem: Restricted, prior: np.ndarray | None) -> None:
        self.weights, self.charges, self.limits = problem.weights, problem.charges, problem.limits
        self.barred = None if problem.allowed is None or problem.allowed.all() else ~problem.allowed
        self.loss = problem.loss if self.barred is None else np.where(self.barred, 0.0, problem.loss)
        self.law, sharpness, gaps = central_start(problem)
        self._see()
        barrier = float(self.joint_zx.max())
        self.multipliers = np.full(len(self.limits), sharpness * barrier)
        self.spare = self.limits - self._spent(self.law)
        self.together_step = prior is not None
        self.leak: Vulnerability | Information
        self.leak = Vulnerability(self.joint_zx, barrier) if prior is None else Information(self.joint_zx, prior)
        self.values = np.zeros(len(self.law))
        cost = self._cost()
        self.values = cost.min(axis=1) - barrier * gaps
        self.reduced = self._blank(cost - self.values[:, None], 1.0)
        barred = 0 if self.barred is None else int(self.barred.sum())
        self.pairs = self.law.size - barred + self.leak.pairs + len(self.limits)
        guesses = self.weights.shape[1]
        self.pair_weights = (self.weights[:, :, None] * self.weights[:, None, :]).reshape(-1, guesses * guesses)

    def _see(self) -> None:
        self.joint_zx = self.law.T @ self.weights

    def _spent(self, law: np.ndarray) -> np.ndarray:
        return self.charges.T @ np.einsum("wz,wz->w", law, self.loss)

    def _blank(self, table: np.ndarray, value: float = 0.0) -> np.ndarray:
        if self.barred is not None:
            table[self.barred] = value
        return table

    def _cost(self) -> np.ndarray:
        """G s + C lambda d, truths x reports; infinite at barred pairs."""
        cost = self.weights @ self.leak.scores.T
        cost += (self.charges @ self.multipliers)[:, None] * self.loss
        return self._blank(cost, np.inf)

    def measure(self) -> tuple[float, float]:
        """Leakage and bound of the iterate; notes how far the reduced costs are from what they should be."""
        cost = self._cost()
        bound = float(cost.min(axis=1).sum() - self.multipliers @ self.limits)
        cost -= self.values[:, None]
        cost -= self.reduced
        self.drift = self._blank(cost)
        return self.leak.leakage(self.joint_zx), bound

    def complementarity(self) -> float:
        return float(np.einsum("wz,wz->", self.law, self.reduced)) + self.leak.complementarity() + float(self.spare @ self.multipliers)

    def factor(self) -> None:
        """Cholesky factor of the dense block, and the small factors per report."""
        truths, reports = self.law.shape
        size, guesses = truths + len(self.limits), self.weights.shape[1]
        self.ratio = ratio = self.law / self.reduced
        self.small = self.leak.factor((self.pair_weights.T @ ratio).T.reshape(reports, guesses, guesses))
        matrix = np.zeros((size, size))
        rows = np.empty((size, reports))
        for column in range(self.small.shape[2]):
            np.multiply(ratio, self.weights @ self.small[:, :, column].T, out=rows[:truths])
            rows[truths:] = self.charges.T @ (rows[:truths] * self.loss)
            matrix -= rows @ rows.T
        first = np.einsum("wz,wz->w", ratio, self.loss)
        second = np.einsum("wz,wz,wz->w", ratio, self.loss, self.loss)
        matrix[:truths, truths:] += self.charges * first[:, None]
        matrix[truths:, :truths] += (self.charges * first[:, None]).T
        matrix[truths:, truths:] += self.charges.T @ (self.charges * second[:, None])
        diagonal = np.arange(size)
        matrix[diagonal, diagonal] += np.concatenate([ratio.sum(axis=1), self.spare / self.multipliers])
        self.scale = 1.0 / np.sqrt(np.diag(matrix).clip(1e-300))
        matrix *= self.scale[:, None] * self.scale
        for shift in (1e-14, 1e-12, 1e-10, 1e-8):
            try:
                matrix[diagonal, diagonal] += shift
                self.dense = cho_factor(matrix, lower=True, check_finite=False)
                return
            except np.linalg.LinAlgError:
                continue
        raise np.linalg.LinAlgError("Newton's system is no longer positive definite")

    def _direction(self, target: float, bends: _Bends) -> _Move:
        """Newton's direction towards products equal to `target` minus the bends; see `advance` for the order."""
        aim = (target - bends[0]) / self.reduced - self.law - self.ratio * self.drift
        self._blank(aim)
        spare_aim = target - self.spare * self.multipliers - bends[2]
        bent = self._through(aim.T @ self.weights + self.leak.pressure(target, bends[1]))
        moved = aim - self.ratio * (self.weights @ bent.T)
        right = np.concatenate(
            [
                1.0 - self.law.sum(axis=1) - moved.sum(axis=1),
                self.limits - self._spent(self.law) - self.spare - spare_aim / self.multipliers - self._spent(moved),
            ]
        )
        answer = self.scale * cho_solve(self.dense, self.scale * right, check_finite=False)
        values, multipliers = np.split(answer, [len(self.law)])
        lift = values[:, None] + (self.charges @ multipliers)[:, None] * self.loss
        scores = bent + self._through((self.ratio * lift).T @ self.weights)
        reduced = self.weights @ scores.T - lift + self.drift
        law = aim + self.ratio * (self.drift - reduced)
        spare = (spare_aim + self.spare * multipliers) / self.multipliers
        return law, self._blank(reduced), self.leak.direction(scores), scores, spare, -multipliers, values

    def _through(self, push: np.ndarray) -> np.ndarray:
        """F F' push, report by report."""
        return np.einsum("zaj,zj->za", self.small, np.einsum("zaj,za->zj", self.small, push))

    def _lengths(self, move: _Move) -> tuple[float, float]:
        slack, scores = self.leak.longest(move[3], move[2])
        primal = min(longest_step(self.law, move[0]), slack, longest_step(self.spare, move[4]))
        dual = min(longest_step(self.reduced, move[1]), scores, longest_step(self.multipliers, move[5]))
        return (min(primal, dual),) * 2 if self.together_step else (primal, dual)

    def advance(self, target: float) -> float:
        """Move towards products equal to `target`; returns the shorter of the primal and dual step lengths."""
        bends: _Bends = [np.zeros(1), np.zeros(1), np.zeros(1)]
        move = self._direction(target, bends)
        primal, dual = self._lengths(move)
        for _ in range(_CORRECTORS):
            if min(primal, dual) > 0.9:
                break
            ahead, behind = min(1.0, 1.5 * primal + 0.1), min(1.0, 1.5 * dual + 0.1)
            pairs = ((self.law, self.reduced), (self.leak.slack, self.leak.scores), (self.spare, self.multipliers))
            bends = [
                bend - _towards((one + ahead * move[2 * k]) * (two + behind * move[2 * k + 1]), target)
                for k, (bend, (one, two)) in enumerate(zip(bends, pairs, strict=True))
            ]
            other = self._direction(target, bends)
            lengths = self._lengths(other)
            if sum(lengths) < primal + dual + 0.05:
                break
            move, (primal, dual) = other, lengths
        self.law = self.law + primal * move[0]
        self._see()
        self.reduced = self.reduced + dual * move[1]
        self.spare = self.spare + primal * move[4]
        self.multipliers = self.multipliers + dual * move[5]
        self.values = self.values + dual * move[6]
        self.leak.move(self.joint_zx, move[3], move[2], primal, dual)
        return min(primal, dual)


def _towards(product: np.ndarray, target: float) -> np.ndarray:
    """Change that brings complementary products back into [0.1, 10] times the target."""
    return np.maximum(np.clip(product, 0.1 * target, 10 * target) - product, -10 * target)
