"""Users who are not in the data: solve again without each of them, and judge everybody with what
comes out."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import FileError, ProblemError
from sfumato.measure.judge import Judgement, PerUser
from sfumato.mechanism.base import Mechanism
from sfumato.solver.outcome import Solver
from sfumato.solver.problem import Problem
from sfumato.study.folder import load_run
from sfumato.study.question import same_question
from sfumato.study.solve import solve

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class LeftOutUser:
    """What became of everybody when one user was left out of training.

    `judged` holds a judgement of all users, the one left out among them, for each set of data.
    """

    user: str
    mechanism: Mechanism
    judged: Mapping[str, Judgement]
    status: str

    def of_user(self, label: str) -> PerUser | None:
        """The figures of the user left out; None where that data has nothing of the user."""
        return user_of(self.judged[label], self.user)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "user": self.user,
            "status": self.status,
            **{label: judgement.as_dict() for label, judgement in self.judged.items()},
        }


def user_of(judged: Judgement, name: str) -> PerUser | None:
    """One user's figures; None where the data holds nothing of the user."""
    prior = dict(zip(judged.joint.secrets, judged.joint.prior, strict=True))
    return next((user for user in judged.per_user if user.name == name and prior[name] > 0), None)


def leave_one_out(
    problem: Problem,
    solver: Solver,
    *,
    on: Mapping[str, Samples] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    grid: Grid | None = None,
    hits: int | None = None,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> tuple[LeftOutUser, ...]:
    """For each user: solve again without the user, then judge everybody with that mechanism: one
    solve per user.

    Main arguments: the problem and the solver of the mechanism that is looked at, and its `seed`;
    `on`, data to judge on by name (all of the training data unless said).  Other arguments:
    `time_limit`, seconds per solve; `grid` and `hits` as for `judge`; `keep`, a folder for the run
    of each user left out: what is there from the same problem, solver and seed is not solved again.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.solver.problem import Problem
    >>> problem = Problem(four_corners(seed=0).train, max_loss=173)
    >>> from sfumato.solver.baselines import Coin
    >>> from sfumato.study.solve import solve
    >>> [left.user for left in leave_one_out(problem, Coin())]
    ['blue', 'red', 'green', 'yellow']
    """
    samples = problem.samples
    if isinstance(samples, CategoricalData):
        raise ProblemError(
            f"{samples.name} holds categories; leaving users out is for places: a truth never"
            " seen has no report among categories"
        )
    present = [name for name, count in zip(samples.secrets, samples.counts, strict=True) if count]
    if len(present) < 3:
        raise ProblemError(
            f"leaving one of {len(present)} users out leaves nobody to be confused with; expected"
            " at least three users"
        )
    left_out = []
    for number, user in enumerate(present):
        start = time.perf_counter()
        smaller = without(problem, user)
        place = None if keep is None else Path(keep) / f"without-{number + 1}"
        mechanism, status, fresh = _solved(smaller, solver, seed, time_limit, place)
        judged = {
            label: problem.judge(mechanism, data, grid=grid, hits=hits)
            for label, data in (on or {"training data": samples}).items()
        }
        left_out.append(LeftOutUser(user, mechanism, judged, status))
        if progress is not None:
            how = "solved" if fresh else "read again"
            progress(
                f"left out {user} ({number + 1} of {len(present)}): {how} in"
                f" {time.perf_counter() - start:.1f} s"
            )
    return tuple(left_out)


def without(problem: Problem, user: str) -> Problem:
    """The same problem without one user: same region, grid, budgets and objective."""
    samples = problem.samples
    assert isinstance(samples, Samples)
    if problem.objective.name == f"target:{user}":
        raise ProblemError(
            f"the objective is about user {user}, who cannot be left out of it; choose another"
            " objective"
        )
    rest = samples.take(
        samples.secret != samples.secrets.index(user), name=f"{samples.name} without {user}"
    ).renumbered()
    budgets = problem.user_max_loss
    if budgets is not None:
        budgets = {name: budget for name, budget in budgets.items() if name in rest.secrets}
    return replace(problem, samples=rest, user_max_loss=budgets)


def _solved(
    problem: Problem, solver: Solver, seed: int, time_limit: float | None, place: Path | None
) -> tuple[Mechanism, str, bool]:
    """A mechanism and how its solver ended; whether it was solved now or read again."""
    if place is not None and place.exists():
        run = load_run(place)
        if not same_question(run, problem, solver, seed):
            raise FileError(
                f"{place} holds a run of another problem, solver or seed; name another folder or"
                " remove it"
            )
        return run.mechanism, "  ".join([run.record.status, *run.record.warnings]), False
    solution = solve(problem, solver, seed=seed, time_limit=time_limit)
    if place is not None:
        solution.save(place)
    return solution.mechanism, "  ".join([solution.status, *solution.warnings]), True
