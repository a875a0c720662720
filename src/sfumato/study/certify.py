"""How far a mechanism is from the best that can exist, with proof."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, log2
from pathlib import Path
from typing import Any, Protocol

from sfumato.data.categories import CategoricalData
from sfumato.data.joint import Joint
from sfumato.data.recipe import Recipe
from sfumato.data.samples import MANY_USERS, Samples
from sfumato.errors import DataError, ProblemError, arg
from sfumato.measure.certificate import Bounds, Certificate, load_certificate, refuse_above
from sfumato.measure.estimate import count_hits, estimate_mean
from sfumato.measure.judge import draw_reports, hits_for
from sfumato.measure.objective import Bayes, Objective, blind_leakage
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import Law
from sfumato.mechanism.loss import Loss, traits_of
from sfumato.show import Printed
from sfumato.solver.exact import Exact, certificate_for, check_size
from sfumato.solver.outcome import Conditions, Progress, Proving, proof_line
from sfumato.solver.problem import Problem
from sfumato.study.folder import CERTIFICATE, RECORD, Run, load_run
from sfumato.study.question import problem_of
from sfumato.study.solution import Solution
from sfumato.threads import one_thread

_SLACK = 1e-9
# above the leakage of a blind guess, as a probability and as a share of it: hardly more
_NEAR, _NEAR_OF_BLIND = 0.005, 0.02
_FEW_USERS = 20  # beyond it figures relative to the blind guess are given as well
_ROUNDING = 1e-6  # of a budget
_UNFINISHED = {Proving.QUICK.value, Proving.TIME_LIMIT.value, Proving.STOPPED.value}


@dataclass(frozen=True)
class Gap:
    """A leakage on the training data beside what no mechanism within the budget can go below.

    `blind` is the leakage of reporting nothing.  A bound that is no more needs no proof.  The gap
    of a mechanism that is not `within_budgets` says nothing about how good it is.  An `estimated`
    leakage is that of sampled reports, counted on the problem's cells.
    """

    objective: Objective
    leakage: float
    bounds: Bounds
    on_grid: bool
    blind: float
    loss: float
    within_budgets: bool
    over_cap: bool = False
    estimated: bool = False
    users: int = 0

    @classmethod
    def of(cls, problem: Problem, law: Law, bounds: Bounds) -> "Gap":
        """The gap of a mechanism with this law on the problem's data.  Where the smallest loss is
        asked for at which all users have one law, the loss is in the place of the leakage."""
        leakage = problem.objective.leakage(law.joint)
        endless, over_cap = problem.seeks_endless_budget, _over_cap(problem, law)
        kept = leakage <= _SLACK if endless else not _over_budgets(problem, law)
        return cls(
            problem.objective,
            law.loss if endless else leakage,
            bounds,
            problem.names_cells(law.joint),
            0.0 if endless else blind_leakage(problem.objective, problem.joint),
            law.loss,
            kept and not over_cap,
            over_cap,
            users=len(problem.joint.secrets),
        )

    @property
    def relative(self) -> "Relative | None":
        """The vulnerability beside the blind guess and the proven least, where there are more than
        20 users: a Bayes error near 1 says little.  None for fewer, and for other objectives."""
        if not isinstance(self.objective, Bayes) or self.users <= _FEW_USERS or self.bound is None:
            return None
        return Relative(self.leakage / self.blind, self.bound / self.blind)

    @property
    def nearly_blind(self) -> bool:
        """Whether the best guess is hardly more often right than a blind one, which no mechanism
        can prevent, and no bound says more."""
        near = min(_NEAR, _NEAR_OF_BLIND * self.blind)
        return (
            isinstance(self.objective, Bayes)
            and self.leakage <= self.blind + near
            and not any(map(self.says_something, (self.bounds.grid, self.bounds.plane)))
        )

    @property
    def bound(self) -> float | None:
        """The bound that holds for this mechanism: the grid's for reports on the grid, the plane's
        for others (None where it was not proved, and nothing is left to prove)."""
        bound = self.bounds.grid if self.on_grid else self.bounds.plane
        return self.blind if bound is None and self.nearly_blind else bound

    @property
    def value(self) -> float | None:
        """Leakage less the bound that holds for this mechanism."""
        return None if self.bound is None else self.leakage - self.bound

    @property
    def proved_anything(self) -> bool:
        """Whether the bound says more than that a blind guess is possible (or the mechanism leaks
        hardly more than that)."""
        bounds = (self.bounds.grid, self.bounds.plane)
        least = self.leakage <= self.blind + _SLACK or self.nearly_blind
        return least or any(map(self.says_something, bounds))

    def says_something(self, bound: float | None) -> bool:
        """Whether a bound is more than the leakage of reporting nothing."""
        return bound is not None and bound > self.blind + _SLACK

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "objective": self.objective.name,
            "leakage": self.leakage,
            "bound_grid": self.bounds.grid,
            "bound_plane": self.bounds.plane,
            "gap": self.value,
            "reports_on_grid": self.on_grid,
            "proved_anything": self.proved_anything,
            "loss": self.loss,
            "within_budgets": self.within_budgets,
            "estimated": self.estimated,
            **({} if self.relative is None else self.relative.as_dict()),
        }


@dataclass(frozen=True)
class Relative:
    """How many times as often as a blind guess the best guess is right: with this mechanism, and
    with any mechanism within the budget at least.  Lower is more private.

    >>> found = Relative(4.0, 2.0)
    >>> found.bits, found.of_least
    (2.0, 2.0)
    """

    times: float
    least_times: float

    @property
    def bits(self) -> float:
        """The min-entropy leakage: log2 of the first."""
        return log2(self.times)

    @property
    def of_least(self) -> float:
        """The vulnerability as a multiple of the proven least."""
        return self.times / self.least_times

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {
            "times_blind": self.times,
            "least_times_blind": self.least_times,
            "min_entropy_leakage_bits": self.bits,
            "of_proven_least": self.of_least,
        }


@dataclass(frozen=True, eq=False)
class Certified(Printed):
    """The gap of a run or solution, worked out again from the data; `stopped` where a proof that
    was made now was stopped by hand with the best bound so far.  Prints as a sentence."""

    run: Run | Solution
    problem: Problem
    gap: Gap
    made_now: bool
    stopped: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON; leakage, bounds and gaps in the objective's unit."""
        plane, problem = self.gap.bounds.plane, self.problem
        budgets = problem.user_max_loss
        return {
            "kind": "exact",
            **self.gap.as_dict(),
            "gap_plane": None if plane is None else self.gap.leakage - plane,
            "unit": (
                traits_of(problem.loss).unit
                if problem.seeks_endless_budget
                else problem.objective.unit
            ),
            "reports": problem.reports,
            "max_loss": problem.max_loss,
            "user_max_loss": None if budgets is None else dict(budgets),
            "max_distance": problem.max_distance,
            "data_hash": problem.samples.hash,
            "check_ins": len(problem.samples),
            "users": len(problem.samples.secrets),
            "notes": list(problem.samples.notes),
            "cells_checked": self.gap.bounds.cells,
            "cells_of_grid": self.gap.bounds.all_cells,
            "sentence": str(self),
        }


def certify_run(
    folder: str | Path | Run | Solution,
    *,
    other: str | Path | None = None,
    source: str | None = None,
    gap: float = 1e-3,
    progress: Progress | None = None,
    finish: bool = True,
) -> Certified:
    """Check a run's certificate against its data; make one where there is none, or (`finish`) where
    the run's own proof was quick or ended early.  Ctrl-C keeps the best bound so far.

    Main arguments: `folder`, a run folder, or a solution as it is.  Other arguments, of a run:
    `other`, a folder whose certificate is taken; `source`, where the run's data lies now.

    Leakage, bound and gap are in the objective's unit; a gap of 0 is the best possible.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> data.to_pandas().to_csv("data.csv", index=False)
    >>> sf.solve(sf.Problem(data, max_loss=45, cell_m=20), sf.Coin()).save("run")
    >>> found = sf.certify("run", source="data.csv")
    >>> round(found.gap.leakage, 3), round(found.gap.value, 3)
    (0.525, 0.0)
    """
    check_gap(gap)
    if isinstance(folder, Solution):
        check_has_budget(folder.problem)
        law, made_now = _known_law(folder, folder.problem), folder.certificate is None
        certificate = folder.certificate or new_certificate(folder.problem, gap)
        return _certified(folder, folder.problem, law, certificate, made_now)
    run = folder if isinstance(folder, Run) else load_run(folder)
    problem = problem_of(run, recipe_of_run(run, source).data()[0], option="train")
    check_has_budget(problem)
    law = _known_law(run, problem)
    path = (run.folder if other is None else Path(other)) / CERTIFICATE
    unfinished = finish and run.record.proof in _UNFINISHED
    if other is not None or (path.exists() and not unfinished):
        return _certified(run, problem, law, load_certificate(path), made_now=False)
    many = len(problem.joint.secrets) > MANY_USERS
    own = run.mechanism.law(problem.joint, loss=problem.loss) if many else None
    made, stopped = new_proof(problem, gap, progress, None if own is None else own.joint)
    known = load_certificate(path) if path.exists() else None
    certificate = _better(problem, known, made)
    certified = _certified(run, problem, law, certificate, made_now=True)
    certificate.save(path)
    proof = Proving.STOPPED if stopped else Proving.FULL
    replace(run.record, proof=proof.value).write(run.folder / RECORD)
    return replace(certified, stopped=stopped)


def _better(problem: Problem, known: Certificate | None, made: Certificate) -> Certificate:
    """The one of two certificates that proves more on the grid."""
    if known is None or made.bound(problem).grid >= known.bound(problem).grid:
        return made
    return known


def check_gap(gap: float) -> None:
    """Refuse what is no gap to prove to."""
    if not (gap > 0 and isfinite(gap)):
        raise ProblemError(f"the {arg('gap')} must be above 0 and finite; got {gap}")


def check_has_budget(problem: Problem) -> None:
    """Refuse a question for the smallest loss."""
    if problem.min_bayes_error is not None:
        raise ProblemError(
            "this run asked for the smallest loss, and its status says what is proved; certify a"
            " run with a budget"
        )


def _known_law(run: Run | Solution, problem: Problem) -> Law:
    """The mechanism's law on the problem's data; refused, before there is a proof, where it is not
    known."""
    law = run.mechanism.law(problem.joint, loss=problem.loss)
    if law is None:
        law = run.mechanism.law(problem.joint, grid=problem.grid, loss=problem.loss)
    if law is None:
        raise ProblemError(
            "the law of this run's mechanism is not known in one table, so no gap to a proof can be"
            " computed; expected a run of one mechanism with a known law",
            hint="sfumato measure RUN estimates what it leaks",
        )
    return law


def _certified(
    run: Run | Solution, problem: Problem, law: Law, certificate: Certificate, made_now: bool
) -> Certified:
    bounds = certificate.bound(problem)
    gap = Gap.of(problem, law, bounds)
    equal_laws = not problem.seeks_endless_budget  # where they must be, rounding decides
    if gap.bound is not None and equal_laws and _keeps_budgets(problem, law):
        refuse_above(gap.bound, gap.leakage)
    return Certified(run, problem, gap, made_now)


def _keeps_budgets(problem: Problem, law: Law) -> bool:
    """Whether it is known that the run's own mechanism is within the budgets."""
    return (
        (problem.max_distance is None or law.most_loss <= problem.max_distance)
        and law.missing == 0
        and (problem.max_loss is None or law.loss <= problem.max_loss)
        and (problem.user_limits is None or bool((law.loss_of <= problem.user_limits).all()))
    )


def _over_budgets(problem: Problem, law: Law) -> bool:
    """Whether average losses are above the budgets by more than rounding; a record from somebody
    else may name budgets that its mechanism never kept."""
    over = problem.max_loss is not None and law.loss > problem.max_loss * (1 + _ROUNDING)
    if problem.user_limits is not None:
        over |= bool((law.loss_of > problem.user_limits * (1 + _ROUNDING)).any())
    return over


def _over_cap(problem: Problem, law: Law) -> bool:
    """Whether a loss above the hard cap can occur, by more than rounding."""
    cap = problem.max_distance
    return cap is not None and law.most_loss > cap * (1 + _ROUNDING)


def recipe_of_run(run: Run, source: str | None) -> Recipe:
    """How the run's data was got, with the file where it lies now."""
    if run.recipe is None:
        if source is None:
            raise DataError(
                f"{run.folder} does not say where its data is; name it", hint=f"{arg('train')} FILE"
            )
        return Recipe(source)
    return run.recipe if source is None else replace(run.recipe, source=source)


@one_thread()
def new_certificate(problem: Problem, gap: float) -> Certificate:
    """The exact solver's certificate for a problem."""
    check_size(problem, of_run=True)
    outcome = Exact(gap=gap).solve(problem, Conditions())
    assert outcome.certificate is not None
    return outcome.certificate


@one_thread()
def new_proof(
    problem: Problem, gap: float, progress: Progress | None = None, start: Joint | None = None
) -> tuple[Certificate, bool]:
    """The same, and whether it was stopped: Ctrl-C ends it with the best so far, where there is
    one.  With more than 200 users the first-order method proves it, from `start`, P(secret, report)
    of the run's mechanism."""
    best: Certificate | None = None

    def heard(line: dict[str, Any]) -> None:
        nonlocal best
        best = line.get("certificate", best)
        if progress is not None:
            progress(line)

    try:
        if len(problem.joint.secrets) > MANY_USERS:
            certificate = certificate_for(
                problem,
                seed=0,
                on_proof=lambda made, bound, least: heard(proof_line(made, bound, least, None)),
                known=start,
            )
            if certificate is None:
                raise ProblemError(
                    f"with more than {MANY_USERS} users only the Bayes objective within an average"
                    f" budget is proved; got {problem.objective.name}"
                )
        else:
            check_size(problem, of_run=True)
            certificate = Exact(gap=gap).solve(problem, Conditions(progress=heard)).certificate
        assert certificate is not None
        return certificate, False
    except KeyboardInterrupt:
        if best is None:
            raise
        heard({"proof_stopped": True, "certificate": best})
        return best, True


class OwnMechanism(Protocol):
    """A mechanism of somebody's own, with the loss and the budget that it is held against."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def max_loss(self) -> float | None: ...
    @property
    def loss(self) -> Loss: ...


def gaps_of(
    items: Sequence[Solution | Run | OwnMechanism],
    train: Samples | CategoricalData | None,
    *,
    hits: int | None = None,
    seed: int = 0,
) -> list[Gap | None]:
    """A gap for each solution or run whose problem one of them carries a certificate for, and for
    each other mechanism that keeps the budget of such a problem: estimated from `hits` reports per
    truth where its law is not known."""
    problems = [problem_behind(item, train) for item in items]
    proved: dict[tuple[Any, ...], tuple[Problem, Bounds]] = {}
    for item, problem in zip(items, problems, strict=True):
        certificate = item.certificate if isinstance(item, (Solution, Run)) else None
        if problem is not None and certificate is not None:
            bounds, known = certificate.bound(problem), proved.get(_key(problem))
            better = bounds if known is None else known[1].or_better(bounds)
            proved[_key(problem)] = problem, better
    gaps: list[Gap | None] = []
    for item, problem in zip(items, problems, strict=True):
        if isinstance(item, (Solution, Run)):
            proof = None if problem is None else proved.get(_key(problem))
            gaps.append(None if proof is None else _gap(item, *proof))
        else:
            tried = (_own_gap(item, *proof, hits=hits, seed=seed) for proof in proved.values())
            gaps.append(next((gap for gap in tried if gap is not None), None))
    return gaps


def _gap(item: Solution | Run, problem: Problem, bounds: Bounds) -> Gap | None:
    law = item.mechanism.law(problem.joint, loss=problem.loss)
    return None if law is None else Gap.of(problem, law, bounds)


def _own_gap(
    item: OwnMechanism, problem: Problem, bounds: Bounds, *, hits: int | None, seed: int
) -> Gap | None:
    """The gap of a mechanism of somebody's own on the training data; None where it breaks the
    budgets, or is held against others."""
    if item.loss is not problem.loss or item.max_loss not in (None, problem.max_loss):
        return None
    law = item.mechanism.law(problem.joint, loss=problem.loss)
    if law is not None:
        gap = Gap.of(problem, law, bounds)
        return gap if gap.within_budgets else None
    single = (problem.user_limits, problem.max_distance) == (None, None) and problem.reports == 1
    if not single or problem.max_loss is None or isinstance(problem.samples, CategoricalData):
        return None  # an average can be estimated, a cap cannot
    hits = hits_for(problem.samples) if hits is None else hits
    reports, secret, cost = draw_reports(
        item.mechanism.on_plane(problem.samples.plane),
        problem.samples,
        hits=hits,
        seed=seed,
        loss=problem.loss,
    )
    loss = estimate_mean(cost, hits=hits)
    if loss.low > problem.max_loss:
        return None
    table = count_hits(secret, reports, problem.grid, secrets=len(problem.samples.secrets))
    return Gap(
        problem.objective,
        problem.objective.leakage(table.joint(problem.samples.secrets)),
        bounds,
        on_grid=problem.on_cells(reports),
        blind=blind_leakage(problem.objective, problem.joint),
        loss=loss.value,
        within_budgets=True,
        estimated=True,
    )


def problem_behind(item: object, train: Samples | CategoricalData | None) -> Problem | None:
    """The problem that a solution or a run of this training data answers; None for anything
    else."""
    if isinstance(item, Solution):
        return item.problem
    if isinstance(item, Run) and train is not None and train.hash == item.record.data.hash:
        return problem_of(item, train)
    return None


def _key(problem: Problem) -> tuple[Any, ...]:
    """What a certificate is for; categories' losses are in the hash of their data."""
    limits = None if problem.user_limits is None else tuple(problem.user_limits)
    loss = None if isinstance(problem.samples, CategoricalData) else problem.loss
    return (
        problem.samples.hash,
        problem.objective.name,
        problem.max_loss,
        limits,
        problem.max_distance,
        problem.released_on,
        loss,
    )
