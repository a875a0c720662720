"""Interior-point solver for linked reports, over a given list of reports.

The program: choose a mechanism M(z|w) that makes the largest of several distances small,

    min  t     s.t.  sum_k R(i,k) H_k(M) <= t,   and rows, budgets and signs as in `interior_point`,

where H_k = sum_z (sqrt q_x(z) - sqrt q_x'(z))^2 / 2 is 1 - the overlap of the k-th pair of users.
With R the identity it is the largest least overlap; with one row, a weighted sum of overlaps.  At
fixed multipliers of these rows Newton's system is that of one curved leakage; the rows add one
column each, eliminated last.
"""

import numpy as np

from sfumato.measure.linked import pairs_of
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.interior_point import Laws, Point, Restricted, follow
from sfumato.solver.exact.leakage_curves import longest_step
from sfumato.solver.exact.newton_system import Pieces, paired, smaller_side
from sfumato.solver.exact.task import Weights

_MAX_STEPS = 300


def distances(joint_zx: np.ndarray) -> np.ndarray:
    """1 - the overlap of each pair of users, from P(report, secret)."""
    prior = joint_zx.sum(axis=0)
    roots, (first, second) = np.sqrt(joint_zx / prior), pairs_of(prior)
    return np.asarray(0.5 * ((roots[:, first] - roots[:, second]) ** 2).sum(axis=0))


def solve_linked(
    problem: Restricted,
    rows: np.ndarray,
    *,
    gap: float,
    deadline: Deadline = NEVER,
) -> Point:
    """Least largest distance over the reports given; `rows` is R, one weight per pair of users
    each.

    Stops once leakage - bound <= gap, when rounding stops progress, or at the deadline.
    """
    return follow(_State(problem, rows), gap=gap, max_steps=_MAX_STEPS, deadline=deadline)


def _inverse(numbers: np.ndarray) -> np.ndarray:
    """1 / number; 0 for 0: a user whom the cap bars from a report has no slope there."""
    return np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0)


def _per_report(tables: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Tables, reports x users x users, times the scores of each row, rows x reports x users: two
    factors at a time, as a sum over three takes users times as long."""
    return np.asarray((tables @ scores.transpose(1, 2, 0)).transpose(2, 0, 1))


class _State(Laws):
    """The iterate: the law with its reduced costs, the budgets' spare with their multipliers, the
    slack of the rows with their weights."""

    curved = True

    def __init__(self, problem: Restricted, rows: np.ndarray) -> None:
        self.masses: Weights = problem.weights
        self.prior = self.masses.sum(axis=0)
        self.rows, self.couples = rows, pairs_of(self.prior)
        barrier, gaps = self._begin(problem)
        self.weights = np.full(len(rows), 1.0 / len(rows))
        self._see()
        self.top = float(self.heights.max()) + len(rows) * barrier
        self.slack = self.top - self.heights
        cost = self._cost()
        self.values = cost.min(axis=1) - barrier * gaps
        self.reduced = self._blank(cost - self.values[:, None], 1.0)
        self.pairs += len(rows)

    def point(self, leakage: float, bound: float, steps: int) -> Point:
        """What is kept of it: the laws of the users as shares, and the weights of the pairs."""
        likelihood = self.joint_zx / self.prior
        shares = likelihood / likelihood.sum(axis=1, keepdims=True)
        weights = self.weights @ self.rows
        return Point(self.law, shares, self.multipliers, leakage, bound, steps, weights)

    def _see(self) -> None:
        """Distances and their gradients at the law: one table of scores per row, rows x reports x
        users."""
        first, second = self.couples
        self.joint_zx = self.law.T @ self.masses
        roots = np.sqrt(self.joint_zx / self.prior)
        self.common = roots[:, first] * roots[:, second]  # sqrt(q q'), reports x pairs
        self.heights = self.rows @ (0.5 * ((roots[:, first] - roots[:, second]) ** 2).sum(axis=0))
        inverse = _inverse(roots)
        own = np.zeros((len(first), *roots.shape))
        pair = np.arange(len(first))
        own[pair, :, first] = (
            (1 - roots[:, second] * inverse[:, first]) / (2 * self.prior[first])
        ).T
        own[pair, :, second] = (
            (1 - roots[:, first] * inverse[:, second]) / (2 * self.prior[second])
        ).T
        self.slopes = np.tensordot(self.rows, own, axes=1)

    def _cost(self) -> np.ndarray:
        scores = np.tensordot(self.weights, self.slopes, axes=1)
        cost = self.masses @ scores.T + (self.charges @ self.multipliers)[:, None] * self.loss
        return self._blank(cost, np.inf)

    def measure(self) -> tuple[float, float]:
        """Largest height and bound of the iterate; notes how far the reduced costs lag behind."""
        cost = self._cost()
        bound = float(cost.min(axis=1).sum() - self.multipliers @ self.limits)
        self.drift = self._blank(cost - self.values[:, None] - self.reduced)
        return float(self.heights.max()), bound

    def complementarity(self) -> float:
        pairs = float(np.einsum("wz,wz->", self.law, self.reduced))
        return pairs + float(self.spare @ self.multipliers) + float(self.slack @ self.weights)

    def _curvature(self) -> np.ndarray:
        """E with E E' = the Hessian at each report, reports x users x (users - 1)."""
        first, second = self.couples
        heavy = np.sqrt(0.25 * (self.weights @ self.rows) * self.common)
        sizes = _inverse(np.sqrt(self.joint_zx))
        edges = np.zeros((*self.joint_zx.shape, len(first)))
        pair = np.arange(len(first))
        edges[:, first, pair] = heavy * sizes[:, first]
        edges[:, second, pair] = -heavy * sizes[:, second]
        # scaled by the roots of the masses, so that small and large users weigh alike
        length, basis = np.linalg.eigh(edges @ edges.transpose(0, 2, 1))
        root = basis[:, :, 1:] * np.sqrt(np.maximum(length[:, None, 1:], 0.0))
        return np.asarray(sizes[:, :, None] * root)

    def advance(self, target: float) -> float:
        masses, law, reduced, loss = self.masses, self.law, self.reduced, self.loss
        truths, users = masses.shape
        ratio = law / reduced
        among = paired(masses, ratio)
        edge = self._curvature()
        inner = edge.transpose(0, 2, 1) @ among @ edge + np.eye(users - 1)
        small = edge @ np.linalg.inv(np.linalg.cholesky(inner)).transpose(0, 2, 1)
        corner = self.spare / self.multipliers
        dense = smaller_side(Pieces(ratio, loss, masses, small, self.charges, corner))
        through = small @ small.transpose(0, 2, 1)  # S: from pressure to change of scores

        def summed(scores: np.ndarray) -> np.ndarray:
            """Over reports: what a change of scores moves of each truth's row and each budget."""
            rows = np.einsum("wx,wx->w", masses, ratio @ scores)
            spent = np.einsum("wx,wx->w", masses, (ratio * loss) @ scores)
            return np.concatenate([rows, self.charges.T @ spent])

        aim = self._blank(target / reduced - law - ratio * self.drift)
        push = aim.T @ masses
        spare_aim = (target - self.spare * self.multipliers) / self.multipliers
        slack_aim = (target - self.slack * self.weights) / self.weights
        bent = np.einsum("zxy,zy->zx", through, push)
        over = np.concatenate(
            [law.sum(axis=1) - 1, self._spent(law) + self.spare - self.limits + spare_aim]
        )
        aimed = np.concatenate([aim.sum(axis=1), self._spent(aim)])
        start = dense.solve(summed(bent) - aimed - over)
        # each row's own scores, after the curvature has given way
        kept = self.slopes - _per_report(through @ among, self.slopes)
        columns = np.stack([summed(slope) for slope in kept], axis=1)
        solved = np.stack([dense.solve(column) for column in columns.T], axis=1)
        own = np.tensordot(self.slopes, _per_report(among, kept), axes=((1, 2), (1, 2)))
        own -= columns.T @ solved
        own = 0.5 * (own + own.T) + np.diag(self.slack / self.weights)
        count = len(self.rows)
        system = np.ones((count + 1, count + 1))
        system[:count, :count], system[count, count] = own, 0.0
        right = self.heights + self.slack - self.top + slack_aim + columns.T @ start
        right = np.append(
            right + np.einsum("izx,zx->i", kept, push), 1.0 - float(self.weights.sum())
        )
        *change, top = np.linalg.solve(system, right)
        weights = np.array(change)
        values, prices = np.split(start + solved @ weights, [truths])
        lift = self._blank(values[:, None] + (self.charges @ prices)[:, None] * loss)
        scores = np.einsum("zxy,zy->zx", through, push + (ratio * lift).T @ masses)
        scores += np.tensordot(weights, kept, axes=1)
        change_of_cost = masses @ scores.T - lift
        moved = self._blank(aim - ratio * change_of_cost)
        lowered = self._blank(change_of_cost + self.drift)
        spare = spare_aim + self.spare / self.multipliers * prices
        slack = slack_aim - self.slack / self.weights * weights
        length = min(
            longest_step(law, moved),
            longest_step(reduced, lowered),
            longest_step(self.spare, spare),
            longest_step(self.multipliers, -prices),
            longest_step(self.slack, slack),
            longest_step(self.weights, weights),
        )
        self.law = law + length * moved
        self.reduced = reduced + length * lowered
        self.values = self.values + length * values
        self.spare = self.spare + length * spare
        self.multipliers = self.multipliers - length * prices
        self.slack = self.slack + length * slack
        self.weights = self.weights + length * weights
        self.top += length * float(top)
        self._see()
        return length
