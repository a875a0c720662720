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
from scipy import sparse
from scipy.optimize import linprog

from sfumato.errors import ProblemError, SfumatoError
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.column_generation import silent
from sfumato.solver.exact.pricing import spread_out
from sfumato.solver.exact.task import PerPair, PerTruth, Shares, Task
from sfumato.solver.feasible import InfeasibleBudget

_MOST_PAIRS = 20_000  # pairs (truth, report) that are solved at once
_FIRST = 60  # reports to begin with
_MAX_ROUNDS = 60
_SAME = 1e-9  # squared Hellinger distance of laws that rounding alone keeps apart


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

    task: its max_loss is not used; a cap stays; budgets per secret are refused.
    """
    if task.user_max_loss is not None:
        raise ProblemError("budgets per secret do not go with the least loss for endless reports")
    truths = task.joint.shape[1]
    active = np.arange(task.report_count)
    if truths * task.report_count > _MOST_PAIRS:
        step = max(1, task.report_count // _FIRST)
        active = active[::step] if first_reports is None else np.unique(first_reports)
        active = np.union1d(active, _best_constant(task))
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    proof = 0.0, np.zeros((task.report_count, len(task.joint)))
    for number in range(1, _MAX_ROUNDS + 1):
        loss = task.loss_of(active)
        law, own, values = _solve(task, loss)
        cost = float(task.truth_mass @ np.sum(law * loss, axis=1))
        if best is None or cost < best[0]:
            best = cost, law, active
        scores, bound, wanted = _price(task, own, values, active)
        if bound > proof[0]:
            proof = bound, scores
        progress(f"round {number}: {len(active)} reports, loss {best[0]:.6g}, bound {proof[0]:.6g}")
        done = best[0] - proof[0] <= gap * best[0]
        if done or deadline.passed or not len(wanted):
            break
        active = np.union1d(active, wanted)
    assert best is not None
    cost, law, active = best
    used = law.sum(axis=0) > 0
    return OneLaw(law[:, used], active[used], proof[1], cost, proof[0])


def _best_constant(task: Task) -> np.ndarray:
    """The report that costs least if all truths make it: with it the program has an answer."""
    cost = np.concatenate([task.truth_mass @ task.loss_of(part) for part in task.chunks()])
    return np.array([int(cost.argmin())])


def _solve(task: Task, loss: PerPair) -> tuple[PerPair, Shares, PerTruth]:
    """The law over these reports, its scores, and the value of each truth."""
    truths, reports = loss.shape
    secrets, mass = len(task.joint), task.truth_mass
    allowed = task.within_cap(loss)
    rows, columns = np.nonzero(np.ones_like(loss) if allowed is None else allowed)
    size, pairs = float(mass @ loss.mean(axis=1)) or 1.0, np.arange(len(rows))
    apart = (task.joint / task.prior[:, None])[1:] - task.joint[0] / task.prior[0]
    entries = [sparse.csr_matrix((np.ones(len(rows)), (rows, pairs)), (truths, len(rows)))]
    entries += [
        sparse.csr_matrix((one[rows], (columns, pairs)), (reports, len(rows))) for one in apart
    ]
    right = np.concatenate([np.ones(truths), np.zeros(reports * (secrets - 1))])
    cost = mass[rows] * loss[rows, columns] / size
    found = linprog(cost, A_eq=sparse.vstack(entries).tocsc(), b_eq=right, method="highs")
    if found.status == 2:
        raise InfeasibleBudget(
            "within the cap no mechanism gives all users one law of reports: raise it"
        )
    if found.status != 0:
        raise SfumatoError(f"the linear program of endless reports was not solved: {found.message}")
    law = np.zeros_like(loss)
    law[rows, columns] = np.maximum(found.x, 0.0)
    law /= law.sum(axis=1, keepdims=True)
    prices = found.eqlin.marginals * size
    values, tied = prices[:truths], prices[truths:].reshape(secrets - 1, reports)
    scores = np.vstack([tied.sum(axis=0), -tied]).T / task.prior
    return law, scores, values


def _price(
    task: Task, own: np.ndarray, values: PerTruth, active: np.ndarray
) -> tuple[Shares, float, np.ndarray]:
    """Scores at every report, the bound they prove, and the reports most worth adding."""
    mass, prior = task.truth_mass, task.prior
    scores = np.empty((task.report_count, len(prior)))
    scores[active] = own
    is_active = np.isin(np.arange(task.report_count), active)
    floor, worst = np.full(len(mass), np.inf), np.zeros(task.report_count)
    for indices in task.chunks(1_000_000):
        loss = task.loss_of(indices)
        allowed = task.within_cap(loss)
        need = values[:, None] / mass[:, None] - loss
        if allowed is not None:
            need[~allowed] = -np.inf
        asked = np.stack([need[row > 0].max(axis=0) for row in task.joint], axis=1)
        asked = np.maximum(asked, -1e3 * (1 + np.abs(values / mass).max()))  # barred by the cap
        new = ~is_active[indices]
        scores[indices[new]] = (asked - (asked @ prior / prior.sum())[:, None])[new]
        cost = task.joint.T @ scores[indices].T + mass[:, None] * loss
        if allowed is not None:
            cost[~allowed] = np.inf
        worst[indices] = np.where(new, np.max((values[:, None] - cost) / mass[:, None], axis=0), 0)
        np.minimum(floor, cost.min(axis=1), out=floor)
    return scores, float(floor.sum()), spread_out(task, worst, 1.0)
