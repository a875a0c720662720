"""Solve a problem; and solve, judge on held-out check-ins and save, as both skins do."""

import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import MechanismError, ProblemError, arg
from sfumato.measure.certificate import Certificate
from sfumato.measure.judge import Judgement, judge
from sfumato.measure.linked import Linked
from sfumato.measure.outlook import Outlook
from sfumato.measure.repeated import linked_figures
from sfumato.mechanism.loss import traits_of
from sfumato.solver import DEFAULT, as_solver
from sfumato.solver.deadline import Deadline
from sfumato.solver.outcome import Conditions, Ending, Progress, Solver
from sfumato.solver.problem import Problem
from sfumato.study.folder import check_target, checkpoint_in, claimed
from sfumato.study.solution import Solution


def solve(
    problem: Problem,
    solver: Solver | type[Solver] | str = DEFAULT,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Solution:
    """Find a mechanism for a problem and measure it on the problem's own (training) data.

    `solver` is one such as `Laplace()`, or the name of one with its usual settings ("laplace").
    The same seed gives the same mechanism.  `time_limit` is in seconds.  A solver that plays rounds
    calls `progress` with a record of each (and the mechanism as it is then, under "mechanism"), and
    with `checkpoint` (a file) can be stopped and resumed.

    >>> import sfumato as sf
    >>> solution = sf.solve(sf.Problem(sf.four_corners(0).train, max_loss=173), sf.Coin())
    >>> round(solution.measured.bayes_error.value, 2)
    0.61
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"expected a problem; got {type(problem).__name__}: write sf.solve(sf.Problem(data,"
            f" {arg('max_loss')}=METRES), ...)"
        )
    solver = as_solver(solver)
    if checkpoint is not None and not solver.resumable:
        raise ProblemError(
            f"the solver '{solver.name}' keeps no checkpoint and cannot be resumed; leave"
            f" {arg('checkpoint')} out"
        )
    checkpoint = None if checkpoint is None else Path(checkpoint)
    deadline, start = Deadline.after(time_limit), time.perf_counter()
    outcome = solver.solve(problem, Conditions(seed, deadline, progress, checkpoint))
    seconds = time.perf_counter() - start
    mechanism = outcome.mechanism.on_plane(problem.samples.plane)
    measured = judge(
        mechanism,
        problem.samples,
        loss=problem.loss,
        region=problem.region,
        sampled_on=problem.released_on,
    )
    ending = changed(outcome.ending, loss_unit=traits_of(problem.loss).unit)
    if problem.max_loss is not None and measured.loss.low > problem.max_loss * (1 + 1e-9):
        ending = changed(ending, exceeded=(measured.loss.value, problem.max_loss))
    if problem.reports != 1 and measured.bayes_error.kind == "exact":
        ending = changed(ending, linked=linked_figures(measured.joint, problem.reports))
    ending = _marked(ending, outcome.outlook, problem)
    return Solution(
        problem,
        solver,
        seed,
        mechanism,
        measured,
        ending,
        seconds,
        outcome.history,
        outcome.certificate,
        outcome.outlook,
    )


def _marked(ending: Ending, to_come: Outlook | None, problem: Problem) -> Ending:
    """The ending with a mark where check-ins to come cost more than the budget."""
    budget = problem.max_loss
    if to_come is None or budget is None or not to_come.over(budget):
        return ending
    return changed(ending, over_to_come=(to_come.loss, budget))


@dataclass(frozen=True, eq=False)
class Kept:
    """A solution in its run folder, and its figures on held-out check-ins where there are any.

    `to_come` is what to expect of check-ins to come: cross-fitted by the solver, or from the
    held-out check-ins.  `not_tested` says why it could not be judged on them.  `linked` is what is
    left on them when several reports are seen together, where it was made for that.
    """

    solution: Solution
    folder: Path
    test: Judgement | None = None
    to_come: Outlook | None = None
    not_tested: MechanismError | None = None
    linked: Linked | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        test = None if self.test is None else self.test.as_dict()
        to_come = None if self.to_come is None else self.to_come.as_dict()
        linked = {} if self.linked is None else {"linked_test": asdict(self.linked)}
        return {**self.solution.as_dict(), "to_come": to_come, "test": test, **linked}


def solve_and_save(
    problem: Problem,
    solver: Solver,
    folder: Path,
    *,
    recipe: Recipe,
    test: Samples | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    replace: bool = False,
    certificate: Certificate | None = None,
) -> Kept:
    """Solve, judge on held-out check-ins, write the run folder.

    Main arguments: `recipe`, how the data was got; `test`, the held-out check-ins.  Other
    arguments: `resume` goes on from the folder's checkpoint; `replace` lets an older run be
    written over; `certificate`, one that is known already for this very problem, is kept where the
    solver makes none.
    """
    check_target(folder, replace=replace or resume)
    with claimed(folder):
        learned = solver.resumable
        with checkpoint_in(folder, resume=resume) if learned else nullcontext() as checkpoint:
            solution = solve(
                problem,
                solver,
                seed=seed,
                time_limit=time_limit,
                progress=progress,
                checkpoint=checkpoint,
            )
        if solution.certificate is None and certificate is not None:
            solution = changed(solution, certificate=certificate)
        judged, refused, linked = None, None, None
        if test is not None:
            try:
                judged = solution.judge(test)
            except MechanismError as error:  # a hard cap, and test points with no report within it
                refused = error
        if judged is not None and problem.reports != 1 and judged.bayes_error.kind == "exact":
            linked = linked_figures(judged.joint, problem.reports)
        to_come = solution.outlook
        if to_come is None and judged is not None:
            to_come = Outlook.held_out(judged, problem.objective)
            ending = _marked(solution.ending, to_come, problem)
            solution = changed(solution, ending=ending)
        solution.save(folder, recipe=recipe, test=judged)
    return Kept(solution, folder, judged, to_come, refused, linked)
