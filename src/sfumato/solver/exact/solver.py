"""The best mechanism on a grid, with its proof."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.data.categories import CategoricalData
from sfumato.errors import ProblemError, SfumatoError
from sfumato.measure.cells import Cells, covers_hull
from sfumato.measure.certificate import Certificate, PlaneProof, Proof, claim_of
from sfumato.measure.objective import Gain
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.law import euclidean, squared
from sfumato.solver.exact.column_generation import Optimum
from sfumato.solver.exact.column_generation import solve as generate_columns
from sfumato.solver.exact.plane_proof import split_to_keep, split_until, values_off_grid
from sfumato.solver.exact.refine import Places, solve_on_cells
from sfumato.solver.exact.smallest_loss import min_loss_given_max_leakage
from sfumato.solver.exact.task import Task
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Outcome

_RELATIVE = 0.008  # of the leakage, for objectives that have no natural scale
_PLANE_SLACK, _PLANE_SLACK_BITS = (
    0.008,
    0.009,
)  # how far below the grid's bound the plane's may end: probability or gain; information
# times that slack is what half a cell may be worth for such a solve: on coarser cells grid and
# plane lie far apart anyway
_FINE = 8
_MOST_OFF_GRID = (
    20_000_000  # pairs of truths and places up to which the plane gets a solve of its own
)
_FIRST_REPORTS = 600  # reports that a solve over many begins with


@dataclass(frozen=True)
class Exact:
    """The mechanism that leaks least within the budgets, on reports at the cells of the grid, up to
    a proven gap.

    `gap` is how far the leakage may stay above the bound: a probability for the Bayes objective;
    for information also at most 0.8 % of the leakage.  `plane` proves a bound over the whole plane
    as well. With a problem that asks for a Bayes error (`min_bayes_error`) it finds the smallest
    loss instead.
    """

    gap: float = 1e-3
    plane: bool = True
    name = "exact"

    def __post_init__(self) -> None:
        if not self.gap > 0:
            raise ProblemError(f"the gap must be above 0; got {self.gap}")

    def solve(self, problem: Problem, *, seed: int, time_limit: float | None) -> Outcome:
        """The optimum on the grid, then (for distances) a proof over the plane."""
        start = time.perf_counter()
        problem.check_feasible()
        if (
            isinstance(problem.objective, Gain)
            and len(problem.objective.matrix(problem.joint.secrets)) < 2
        ):
            users = len(problem.joint.secrets)
            raise ProblemError(
                f"with {users} users '{problem.objective.name}' leaks the same whatever is"
                " reported; choose another"
            )
        if problem.min_bayes_error is not None:
            return self._smallest_loss(problem, time_limit)
        history: list[dict[str, Any]] = []
        task = task_of(problem)
        optimum = best_within(problem, task, gap=self.gap, time_limit=time_limit, history=history)
        on_grid = Proof(problem.reports, optimum.scores, optimum.multipliers)
        left = None if time_limit is None else time_limit - (time.perf_counter() - start)
        on_plane = None
        if self.plane and problem.loss is euclidean and (left is None or left > 0):
            on_plane = plane_proof(problem, task, optimum, time_limit=left)
        channel = channel_of(problem, optimum.mechanism, optimum.reports)
        verify(problem, channel, claimed=optimum.leakage)
        history.append(
            {
                "pairs": len(problem.places) * len(problem.reports),
                "pairs_touched": optimum.pairs_touched,
            }
        )
        return Outcome(
            channel,
            _status(problem, optimum, late=time_limit is not None and optimum.gap > self.gap),
            tuple(history),
            Certificate.of(problem, on_grid, on_plane),
        )

    def _smallest_loss(self, problem: Problem, time_limit: float | None) -> Outcome:
        assert problem.min_bayes_error is not None
        found = min_loss_given_max_leakage(
            task_of(problem), 1 - problem.min_bayes_error, tolerance=self.gap, time_limit=time_limit
        )
        channel = channel_of(problem, found.mechanism, found.reports)
        verify(problem, channel, claimed=found.leakage)
        late = time_limit is not None and found.loss - found.loss_bound > 2 * self.gap * max(
            found.loss, 1.0
        )
        found_what = "Time limit: a loss" if late else "Smallest loss"
        status = (
            f"{found_what} for a Bayes error of {problem.min_bayes_error:g}: {found.loss:.2f}; no"
            f" mechanism on this grid can have it below {found.loss_bound:.2f}."
        )
        return Outcome(channel, status)


def task_of(problem: Problem) -> Task:
    """The problem as arrays."""
    claim = claim_of(problem)
    places, reports = problem.places, problem.reports
    return Task(
        joint=claim.joint,
        loss_of=lambda chosen: problem.loss(places[:, None, :], reports[None, chosen, :]),
        report_count=len(reports),
        max_loss=claim.max_loss,
        user_max_loss=claim.user_max_loss,
        cap=claim.cap,
        gains=claim.gains,
        information=claim.objective == "information",
    )


def best_within(
    problem: Problem,
    task: Task,
    *,
    gap: float,
    time_limit: float | None = None,
    history: list[dict[str, Any]] | None = None,
    first_reports: np.ndarray | None = None,
) -> Optimum:
    """Solve to the gap; for information, again with a smaller one while the gap is too large a
    share of the leakage."""
    start = time.perf_counter()

    def note(text: str) -> None:
        if history is not None:
            history.append({"seconds": time.perf_counter() - start, "progress": text})

    if isinstance(problem.samples, CategoricalData):
        optimum = generate_columns(
            task, gap=gap, first_reports=first_reports, time_limit=time_limit, progress=note
        )
    else:
        if first_reports is None and len(problem.reports) > _FIRST_REPORTS:
            first_reports = _coarse(problem)
        places = Places(
            problem.places, problem.reports, problem.grid.origin, problem.grid.cell_m, problem.loss
        )
        optimum = solve_on_cells(
            task, places, gap=gap, first_reports=first_reports, time_limit=time_limit, progress=note
        )
    wanted = _RELATIVE * optimum.leakage
    if task.information and optimum.gap > max(wanted, 1e-7):
        left = None if time_limit is None else time_limit - (time.perf_counter() - start)
        if left is None or left > 0:
            optimum = generate_columns(
                task,
                gap=max(wanted, 1e-7),
                first_reports=optimum.reports,
                time_limit=left,
                progress=note,
            )
    return optimum


def _coarse(problem: Problem) -> np.ndarray:
    """Every k-th cell each way: a coarse grid to begin with."""
    index = problem.grid.index(problem.reports)
    step = max(1, round((len(index) / _FIRST_REPORTS) ** 0.5))
    return np.flatnonzero(np.all(index % step == 0, axis=1))


def plane_proof(
    problem: Problem, task: Task, optimum: Optimum, *, time_limit: float | None = None
) -> PlaneProof | None:
    """Split the cells where the grid's bound is attained; where its values do not fit the plane,
    find values that do and split again."""
    start = time.perf_counter()
    places, reports, half = problem.places, problem.reports, problem.grid.cell_m / 2
    cells = Cells.over(problem.grid, reports)
    if not covers_hull(places, cells):  # a cap on the distance leaves cells between the truths out
        return None
    slack = _PLANE_SLACK_BITS * float(np.log(2)) if task.information else _PLANE_SLACK
    goal = optimum.bound - slack
    found = split_until(task, places, cells, optimum.scores, optimum.multipliers, goal=goal)
    left = None if time_limit is None else time_limit - (time.perf_counter() - start)
    small = task.cap is None and len(places) * (len(places) + len(reports)) <= _MOST_OFF_GRID
    fine = half * float(np.sum(task.budgets()[0] @ optimum.multipliers)) <= _FINE * slack
    if found.bound < goal and small and fine and (left is None or left > 0):
        values, multipliers, bound = values_off_grid(
            task, places, reports, optimum.reports, gap=slack / 4, time_limit=left
        )
        again = split_to_keep(
            task, places, cells, values, multipliers, slack=max(bound - goal, slack / 6)
        )
        found = max(found, again, key=lambda one: one.bound)
    return PlaneProof(found.cells, found.scores, found.multipliers)


def channel_of(problem: Problem, mechanism: np.ndarray, reports: np.ndarray) -> Channel:
    """The law as a channel; places unseen are answered by its rule for them, words unseen are
    refused."""
    if isinstance(problem.samples, CategoricalData):
        return Channel(problem.places, problem.reports[reports], mechanism)
    cap = problem.max_distance
    if cap is not None and problem.loss is squared:
        cap = cap**0.5
    elif problem.loss is not euclidean:
        cap = None
    return Channel(
        problem.places, problem.reports[reports], mechanism, nearest=True, max_distance=cap
    )


def verify(problem: Problem, channel: Channel, *, claimed: float) -> None:
    """Check the law as it will be sampled: budgets kept, the leakage what the solver said.  (Rows
    are checked by the channel.)"""
    law = channel.law(problem.joint, loss=problem.loss)
    assert law is not None
    leakage = problem.objective.leakage(law.joint) * (
        np.log(2) if problem.objective.name == "information" else 1.0
    )
    faults = []
    if problem.max_loss is not None and law.loss > problem.max_loss * (1 + 1e-9):
        faults.append(f"the loss is {law.loss:.9g} over {problem.max_loss:g}")
    if problem.user_limits is not None and np.any(law.loss_of > problem.user_limits * (1 + 1e-9)):
        faults.append("a user's budget is exceeded")
    if problem.max_distance is not None:
        pairs = channel.matrix.tocoo()
        farthest = float(problem.loss(channel.truths[pairs.row], channel.reports[pairs.col]).max())
        if farthest > problem.max_distance * (1 + 1e-9):
            faults.append(f"a report costs {farthest:.9g} over {problem.max_distance:g}")
    if abs(leakage - claimed) > 1e-8:
        faults.append(f"the leakage is {leakage:.9g}, not {claimed:.9g}")
    if faults:
        raise SfumatoError("the solver's law does not hold what it claims: " + "; ".join(faults))


def _status(problem: Problem, optimum: Optimum, *, late: bool) -> str:
    unit = np.log(2) if problem.objective.name == "information" else 1.0
    word = {"bayes": "probability", "information": "bits"}.get(problem.objective.name, "gain")
    leaks, least = optimum.leakage / unit, optimum.bound / unit
    return (
        f"{'Time limit: proved only to within' if late else 'Optimal within'}"
        f" {optimum.gap / unit:.2g} ({word}): leaks {leaks:.4f}, no mechanism on these"
        f" {len(problem.reports)} reports leaks less than {least:.4f}."
    )
