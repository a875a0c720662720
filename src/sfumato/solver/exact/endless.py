"""The least loss at which the reports of all users have one law: from there on no number of linked
reports tells anything.

A linear program: min sum p(w) M(z|w) d(w,z) with sum_w (p(w|x) - p(w|x')) M(z|w) = 0 for all pairs
of users and all reports.  Its dual is one table of scores s_z(x) with sum_x p(x) s_z(x) = 0, which
proves sum_w min_z [ sum_x p(x,w) s_z(x) + p(w) d(w,z) ].  It is solved over few reports, all are
priced, those that pay are added.  If each truth has one owner, a report pays iff
sum_x p(x) max over truths of x of [ v_w - d(w,z) ] > 0, with v_w the truth's dual value over p(w).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import silent
from sfumato.solver.exact.interior_point import Laws, Point, follow
from sfumato.solver.exact.leakage_curves import longest_step, orthogonal_to
from sfumato.solver.exact.newton_system import Pieces, paired, smaller_side
from sfumato.solver.exact.pricing import least_scores, spread_out
from sfumato.solver.exact.task import PerPair, PerTruth, Shares, Task, Weights
from sfumato.solver.feasible import InfeasibleBudget

_MOST_PAIRS = 100_000  # pairs (truth, report) that are solved at once
_MAX_STEPS = 200
_NEARLY = 1e-7  # laws of users that differ by no more can be made one
_APART = 1e-14  # and differ by no more then
_RARE, _POLISH = 1e-6, 6
_FIRST = 60  # reports to begin with
_MAX_ROUNDS = 60


@dataclass(frozen=True)
class OneLaw:
    """A mechanism whose reports have one law for all users, its loss and the proof.

    mechanism: truths x len(reports), indices into the task's reports.  scores: all reports x
    secrets.  bound: no such mechanism costs less.
    """

    mechanism: np.ndarray
    reports: np.ndarray
    scores: np.ndarray
    loss: float
    bound: float


def min_loss_given_equal_laws(
    task: Task,
    *,
    gap: float = 1e-3,
    first_reports: np.ndarray | None = None,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> OneLaw:
    """The least average loss at which all users report with one law, up to a share `gap` of it.

    task: its max_loss is not used; a cap stays; it has no budgets per secret.
    """
    truths = task.joint.shape[1]
    active = np.arange(task.report_count)
    one_place, dear = _one_place(task)
    if truths * task.report_count > _MOST_PAIRS:
        step = max(1, task.report_count // _FIRST)
        active = active[::step] if first_reports is None else np.unique(first_reports)
        active = np.union1d(active, one_place)
    # one place for all, unless the cap bars it from somebody
    best = dear, np.ones((truths, 1)), np.array([one_place])
    if task.cap is not None and not np.all(task.loss_of(best[2]) <= task.cap):
        best = np.inf, best[1], best[2]
    proof = 0.0, np.zeros((task.report_count, len(task.joint)))
    everything = len(active) == task.report_count
    goal = (0.5 * gap if everything else 0.02) * dear
    for number in range(1, _MAX_ROUNDS + 1):
        loss = task.loss_of(active)
        law, own, values = _solve(task, loss, gap=goal, deadline=deadline)
        if law is not None:
            cost = float(task.truth_mass @ np.sum(law * loss, axis=1))
            best = min(best, (cost, law, active), key=lambda candidate: candidate[0])
        scores, bound, wanted = _price(task, own, values, active)
        if bound > proof[0]:
            proof = bound, scores
        progress(f"round {number}: {len(active)} reports, loss {best[0]:.6g}, bound {proof[0]:.6g}")
        done = best[0] - proof[0] <= gap * best[0]
        goal = max(0.5 * gap * best[0], min(goal, 0.2 * (best[0] - proof[0])))
        if done or deadline.passed or not len(wanted):
            break
        active = np.union1d(active, wanted)
    cost, law, active = best
    if not np.isfinite(cost):
        raise InfeasibleBudget(
            "within the cap no mechanism was found that gives all users one law of reports: raise"
            " it"
        )
    used = law.sum(axis=0) > 0
    return OneLaw(law[:, used], active[used], proof[1], cost, proof[0])


def _one_place(task: Task) -> tuple[int, float]:
    """The report that costs least if all truths make it, and its loss."""
    cost = np.concatenate([task.truth_mass @ task.loss_of(part) for part in task.chunks()])
    return int(cost.argmin()), float(cost.min())


class _State(Laws):
    """The iterate of the program over some reports: the law with its reduced costs, the values of
    the truths, and scores s_z with sum_x p(x) s_z(x) = 0.  An `Iterate` of the interior point."""

    curved = False

    def __init__(self, task: Task, loss: PerPair, allowed: PerPair | None) -> None:
        self.masses, self.prior = task.weights, task.prior
        self.pairs = loss.size - self._bar(allowed)
        self.cost = self._blank(task.truth_mass[:, None] * loss)
        self.law = self._blank(np.ones_like(loss))
        self.law /= self.law.sum(axis=1, keepdims=True)  # one law for all, where no pair is barred
        self.scores = np.zeros((loss.shape[1], len(task.joint)))
        spread = self.cost.max(axis=1) - self.cost.min(axis=1)
        self.values = self.cost.min(axis=1) - spread - 1e-3 * (spread.mean() or 1.0)
        self.reduced = self._blank(self.cost - self.values[:, None], 1.0)

    def measure(self) -> tuple[float, float]:
        """Loss, infinite while the laws of users differ, and bound."""
        cost = self._blank(self.cost + self.masses @ self.scores.T, np.inf)
        apart = np.ptp(self.law.T @ self.masses / self.prior, axis=1).max()
        loss = float(np.sum(self.cost * self.law)) if apart < _NEARLY else np.inf
        return loss, float(cost.min(axis=1).sum())

    def point(self, leakage: float, bound: float, steps: int) -> Point:
        return Point(self.law, self.scores, self.values, leakage, bound, steps)

    def complementarity(self) -> float:
        return float(np.einsum("wz,wz->", self.law, self.reduced))

    def advance(self, target: float) -> float:
        """Move towards products equal to `target`, by a step that looks ahead once; returns the
        shorter of the two lengths."""
        ratio = self.law / self.reduced
        tied = _Tied(self.masses, self.prior, ratio)

        def direction(wanted: np.ndarray | float) -> tuple[np.ndarray, ...]:
            """Changes of law, reduced costs, scores and values."""
            aim = self._blank(wanted / self.reduced - self.law)
            scores, values = tied.solve(self.law + aim)
            reduced = self._blank(self.masses @ scores.T - values[:, None])
            return self._blank(aim - ratio * reduced), reduced, scores, values

        law, reduced, *_ = direction(0.0)
        law, reduced, scores, values = direction(target - law * reduced)
        primal, dual = longest_step(self.law, law), longest_step(self.reduced, reduced)
        self.law = self.law + primal * law
        self.reduced = self.reduced + dual * reduced
        self.scores = _centred(self.scores + dual * scores, self.prior)
        self.values = self.values + dual * values
        return min(primal, dual)


class _Tied:
    """The smallest change of a law, each pair weighed by `ratio`, that makes its rows sum to 1 and
    the laws of all users one: ratio (values - masses scores)."""

    def __init__(self, masses: Weights, prior: np.ndarray, ratio: PerPair) -> None:
        self.masses, self.ratio = masses, ratio
        basis = orthogonal_to(prior[None, :])[0]
        inner = np.linalg.cholesky(basis.T @ paired(masses, ratio) @ basis)
        small = basis @ np.linalg.inv(inner).transpose(0, 2, 1)
        self.through = small @ small.transpose(0, 2, 1)
        nothing = np.zeros((len(masses), 0))
        self.dense = smaller_side(Pieces(ratio, ratio, masses, small, nothing, np.zeros(0)))

    def solve(self, law: PerPair) -> tuple[np.ndarray, PerTruth]:
        """Scores and values for a law that is to be changed."""
        bent = np.einsum("zxy,zy->zx", self.through, law.T @ self.masses)
        rows = np.einsum("wx,wx->w", self.masses, self.ratio @ bent) - law.sum(axis=1) + 1
        values = self.dense.solve(rows)
        lift = (self.ratio * values[:, None]).T @ self.masses
        return bent + np.einsum("zxy,zy->zx", self.through, lift), values


def _centred(scores: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Scores less their mean over the users."""
    return np.asarray(scores - (scores @ prior / prior.sum())[:, None])


def _one_law(task: Task, law: PerPair) -> PerPair | None:
    """A law that gives all users nearly one law, so that it does to the last digit: reports that
    hardly occur are left out, and the rest is changed in proportion.  None where that fails."""
    per_secret = law.T @ task.weights / task.prior
    used = per_secret.min(axis=1) > _RARE
    part = law[:, used]
    for _ in range(_POLISH):
        total = part.sum(axis=1, keepdims=True)
        if not used.any() or not np.all(total > 0):
            return None
        part = part / total
        try:
            scores, values = _Tied(task.weights, task.prior, part).solve(part)
        except np.linalg.LinAlgError:
            return None
        part = np.maximum(part * (1 + values[:, None] - task.weights @ scores.T), 0.0)
    per_secret = part.T @ task.weights / task.prior
    if not (
        np.ptp(per_secret, axis=1).max() <= _APART and np.abs(part.sum(axis=1) - 1).max() <= 1e-9
    ):
        return None
    whole = np.zeros_like(law)
    whole[:, used] = part
    return whole


def _solve(
    task: Task, loss: PerPair, *, gap: float, deadline: Deadline
) -> tuple[PerPair | None, Shares, PerTruth]:
    """The law over these reports (None where none was found), its scores, and the value of each
    truth."""
    size = float(task.truth_mass @ loss.mean(axis=1)) or 1.0
    allowed = task.within_cap(loss)
    state = _State(task, loss / size, allowed)
    point = follow(state, gap=gap / size, max_steps=_MAX_STEPS, deadline=deadline)
    law = _one_law(task, point.mechanism) if np.isfinite(point.leakage) else None
    cost = size * state.masses @ point.shares.T + task.truth_mass[:, None] * loss
    if allowed is not None:
        cost[~allowed] = np.inf
    return law, size * point.shares, cost.min(axis=1)


def reach_of(task: Task, scores: Shares, values: PerTruth) -> float:
    """How large scores are looked for, given those of a law and what it leaves each truth."""
    return 2 * float(np.abs(scores).max() + np.abs(values / task.truth_mass).max())


def _price(
    task: Task, own: np.ndarray, values: PerTruth, active: np.ndarray
) -> tuple[Shares, float, np.ndarray]:
    """Scores at every report, the bound they prove, and the reports most worth adding."""
    mass, prior = task.truth_mass, task.prior
    scores = np.empty((task.report_count, len(prior)))
    scores[active] = _centred(own, prior)
    reach = reach_of(task, own, values)
    is_active = np.isin(np.arange(task.report_count), active)
    floor, worst = np.full(len(mass), np.inf), np.zeros(task.report_count)
    for indices in task.chunks(1_000_000):
        loss = task.loss_of(indices)
        allowed = task.within_cap(loss)
        need = values[:, None] / mass[:, None] - loss
        if allowed is not None:
            need[~allowed] = -np.inf
        new = ~is_active[indices]
        scores[indices[new]] = centred_scores_for(task, need[:, new], reach)
        cost = task.joint.T @ scores[indices].T + mass[:, None] * loss
        if allowed is not None:
            cost[~allowed] = np.inf
        worst[indices] = np.where(new, np.max((values[:, None] - cost) / mass[:, None], axis=0), 0)
        np.minimum(floor, cost.min(axis=1), out=floor)
    return scores, float(floor.sum()), spread_out(task, worst, 1.0)


def centred_scores_for(task: Task, need: PerPair, reach: float) -> Shares:
    """Centred scores that give each truth what it needs at each report, or fall short of it by as
    little for all: the one-owner formula, and where truths are shared a tiny program, which is that
    of mixture weights c with s(x) = reach (c(x) / p(x) - 1)."""
    prior = task.prior
    asked = np.stack([need[row > 0].max(axis=0) for row in task.joint], axis=1)
    asked = np.maximum(asked, -reach)  # barred by the cap
    scores = _centred(asked, prior)
    hard = np.flatnonzero(asked @ prior > 1e-9 * reach)
    if len(hard) and np.any(np.sum(task.joint > 0, axis=0) > 1):
        owners = task.weights / task.truth_mass[:, None] / prior
        mixture = least_scores(owners, need[:, hard] / reach + 1)
        scores[hard] = _centred(reach * (mixture / prior - 1), prior)
    return scores
