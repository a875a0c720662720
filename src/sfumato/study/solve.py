"""Solve a problem; and solve, judge on held-out check-ins, save and prove, as both skins do."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from sfumato.arguments import guided
from sfumato.data.recipe import Recipe
from sfumato.data.samples import MANY_USERS, Samples
from sfumato.errors import MechanismError, ProblemError, arg, missing_extra
from sfumato.files import check_can_be_made
from sfumato.measure.certificate import Certificate
from sfumato.measure.judge import Judgement
from sfumato.measure.linked import Linked
from sfumato.measure.outlook import Outlook
from sfumato.measure.repeated import linked_figures
from sfumato.mechanism.loss import traits_of
from sfumato.memory import Expected
from sfumato.solver import DEFAULT, as_solver
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import FULL_GAP, QUICK_GAP, certificate_for, proof_bytes, proof_fits
from sfumato.solver.outcome import (
    FULL,
    NONE,
    QUICK,
    Conditions,
    Effort,
    Ended,
    Ending,
    Foretelling,
    Progress,
    Proving,
    Solver,
    proof_line,
)
from sfumato.solver.problem import Problem
from sfumato.study.folder import CERTIFICATE, check_target, checkpoint_in, claimed
from sfumato.study.solution import Solution
from sfumato.threads import one_thread

_LEAST_PROOF_S = 1.0
PROOF_S = 120.0  # of a proof that is not to be full


def proof_limit(proof: Effort | None, *, limited: bool) -> float | None:
    """The seconds after which a proof of this effort ends by itself, in a solve that is `limited`
    in time or not; None where nothing but that limit ends it."""
    return None if proof == FULL or limited else PROOF_S


@one_thread()
@guided(
    max_loss="sf.solve(sf.Problem(data, max_loss=METRES), ...)",
    method="solver",
    rounds="sf.solve(problem, sf.Game(rounds=N))",
)
def solve(
    problem: Problem,
    solver: Solver | type[Solver] | str = DEFAULT,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    proof: Effort | None = None,
) -> Solution:
    """Find a mechanism for a problem, measure it on the problem's own (training) data, and prove
    how little any mechanism can leak.

    `solver` is one such as `Laplace()`, or the name of one with its usual settings ("laplace").
    The same seed gives the same mechanism.  `time_limit` is in seconds, the proof included.  A
    solver that plays rounds calls `progress` with a record of each (and the mechanism as it is
    then, under "mechanism"), and with `checkpoint` (a file) can be stopped and resumed.

    `proof` is "none", "quick" (a bound within some 0.01 of the best one) or "full"; unless set it
    is full after a codebook and none after the other solvers.  Where there is no time limit, a
    proof ends after two minutes unless "full" was asked for.  The exact solver proves as it solves.
    Ctrl-C during the proof ends it with the best bound so far.

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
    task = _Task(problem, as_solver(solver), seed, Deadline.after(time_limit), progress, proof)
    try:
        solution = task.solved(None if checkpoint is None else Path(checkpoint))
    except ImportError as error:  # a plain install: no learning
        raise missing_extra(error) or error from None
    return task.proved(solution)


@dataclass(frozen=True, eq=False)
class _Task:
    """A solve in its two parts: the mechanism, and the proof that follows."""

    problem: Problem
    solver: Solver
    seed: int
    deadline: Deadline
    progress: Progress | None
    proof: Effort | None

    def __post_init__(self) -> None:
        if self.proof not in (None, NONE, QUICK, FULL):
            raise ProblemError(f"{arg('proof')} is {NONE}, {QUICK} or {FULL}; got {self.proof!r}")

    def solved(self, checkpoint: Path | None) -> Solution:
        """The mechanism, measured; its ending says that a proof is to follow, if one is."""
        problem, solver = self.problem, self.solver
        if checkpoint is not None and not solver.resumable:
            raise ProblemError(
                f"the solver '{solver.name}' keeps no checkpoint and cannot be resumed; leave"
                f" {arg('checkpoint')} out"
            )
        if isinstance(solver, Foretelling):
            solver.expected(problem)  # refuses what does not fit into memory
        start = time.perf_counter()
        how = Conditions(self.seed, self.deadline, self.progress, checkpoint, self.proof)
        outcome = solver.solve(problem, how)
        seconds = time.perf_counter() - start
        mechanism = outcome.mechanism.on_plane(problem.samples.plane)
        measured = problem.judge(mechanism)
        ending = changed(outcome.ending, loss_unit=traits_of(problem.loss).unit)
        if problem.max_loss is not None and measured.loss.low > problem.max_loss * (1 + 1e-9):
            ending = changed(ending, exceeded=(measured.loss.value, problem.max_loss))
        if problem.reports != 1 and measured.bayes_error.kind == "exact":
            ending = changed(ending, linked=linked_figures(measured.joint, problem.reports))
        effort = outcome.proof if self.proof is None else self.proof
        stopped = ending.ended is Ended.STOPPED
        if effort != NONE and outcome.certificate is None and not stopped:
            ending = changed(ending, proof=Proving.STOPPED)  # until it is done
        return Solution(
            problem,
            solver,
            self.seed,
            mechanism,
            measured,
            _marked(ending, outcome.outlook, problem),
            seconds,
            outcome.history,
            outcome.certificate,
            outcome.outlook,
        )

    def proved(
        self, solution: Solution, *, keep: Callable[[Certificate], None] | None = None
    ) -> Solution:
        """The solution with the bound that is proved in the time, where a proof is to follow;
        `keep` is called with each better certificate on the way."""
        if solution.ending.proof is None or solution.certificate is not None:
            return solution
        quick = self.proof == QUICK
        exact = solution.measured.bayes_error.kind == "exact"
        start = time.perf_counter()
        best: Certificate | None = None

        def heard(certificate: Certificate, bound: float, least: float) -> None:
            nonlocal best
            best = certificate
            if keep is not None:
                keep(certificate)
            if self.progress is not None:
                self.progress(proof_line(certificate, bound, least, None if many else gap))

        gap = QUICK_GAP if quick else FULL_GAP
        many = len(self.problem.joint.secrets) > MANY_USERS  # their proof ends after some steps
        limit = proof_limit(self.proof, limited=self.deadline.limited)
        deadline = self.deadline if limit is None else Deadline.after(limit)
        deadline = deadline.no_sooner_than(_LEAST_PROOF_S)
        try:
            best = certificate_for(
                self.problem,
                seed=self.seed,
                gap=gap,
                plane=not quick,
                deadline=deadline,
                on_proof=heard,
                known=solution.measured.joint if exact else None,
            )
            ended = Proving.QUICK if quick else Proving.FULL
            if deadline.passed:
                ended = Proving.TIME_LIMIT
            elif best is None and not proof_fits(self.problem):
                ended = Proving.NO_MEMORY
        except KeyboardInterrupt:
            ended = Proving.STOPPED
            if self.progress is not None:
                self.progress({"proof_stopped": True, "certificate": best})
        return changed(
            solution,
            certificate=best,
            ending=changed(solution.ending, proof=ended),
            seconds=solution.seconds + time.perf_counter() - start,
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


def foretold(solver: Solver, problem: Problem, proof: Effort) -> Expected | None:
    """What a solve takes, with the memory of the proof that follows; None where that is not known
    beforehand."""
    expected = solver.expected(problem) if isinstance(solver, Foretelling) else None
    many = len(problem.joint.secrets) > MANY_USERS
    if expected is None or proof == NONE or many or not proof_fits(problem):
        return expected
    return changed(expected, bytes=max(expected.bytes, proof_bytes(problem)))


@one_thread()
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
    proof: Effort | None = None,
    written: Callable[[Kept], None] | None = None,
) -> Kept:
    """Solve, judge on held-out check-ins, write the run folder; then prove.

    Main arguments: `recipe`, how the data was got; `test`, the held-out check-ins; `proof`, as for
    `solve`.  Other arguments: `resume` resumes from the folder's checkpoint; `replace` lets an
    older run be written over; `written` is called once the run folder can be used, before the
    proof.  The folder always holds the best certificate so far.
    """
    check_target(folder, replace=replace or resume)
    check_can_be_made(folder)
    with claimed(folder):
        learned = solver.resumable
        task = _Task(problem, solver, seed, Deadline.after(time_limit), progress, proof)
        with checkpoint_in(folder, resume=resume) if learned else nullcontext() as checkpoint:
            solution = task.solved(checkpoint)
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
        kept = Kept(solution, folder, judged, to_come, refused, linked)
        if solution.ending.proof is not None:
            if written is not None:
                before = changed(solution, ending=changed(solution.ending, proof=None))
                written(changed(kept, solution=before))
            proved = task.proved(
                solution, keep=lambda certificate: certificate.save(folder / CERTIFICATE)
            )
            proved.save(folder, recipe=recipe, test=judged)
            kept = changed(kept, solution=proved)
    return kept
