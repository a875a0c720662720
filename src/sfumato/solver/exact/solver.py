"""The best mechanism on a grid, with its proof; and the proof alone, for a problem that another
solver answers."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from sfumato.arguments import guided_class
from sfumato.data.categories import CategoricalData
from sfumato.data.joint import MOST_DENSE, Joint
from sfumato.data.samples import MANY_USERS, Samples
from sfumato.errors import ProblemError, SfumatoError, arg
from sfumato.measure.bound import bound_grid
from sfumato.measure.cells import Cells, covers_hull, widest_root_m
from sfumato.measure.certificate import Certificate, PlaneProof, Proof, claim_of
from sfumato.measure.linked import pairs_of
from sfumato.measure.objective import Gain, Information, Overlap, blind_leakage
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.loss import traits_of
from sfumato.memory import Expected, check_fits, free_bytes
from sfumato.solver.deadline import NEVER, Deadline, OutOfTime
from sfumato.solver.exact.column_generation import (
    OnProof,
    Optimum,
    Scored,
    generate_columns,
    measured_leakage,
    silent,
    unheard,
)
from sfumato.solver.exact.endless import (
    OneLaw,
    centred_scores_for,
    min_loss_given_equal_laws,
    reach_of,
)
from sfumato.solver.exact.first_order import QUICK_STEPS, STEPS, Heard, first_order_certificate
from sfumato.solver.exact.linked import best_for
from sfumato.solver.exact.new_places import average_for
from sfumato.solver.exact.plane_proof import OnCells, split_to_keep, split_until, values_off_grid
from sfumato.solver.exact.pricing import least_costs
from sfumato.solver.exact.refine import Places, solve_on_cells
from sfumato.solver.exact.smallest_loss import min_loss_given_max_leakage
from sfumato.solver.exact.task import Task
from sfumato.solver.feasible import InfeasibleBudget
from sfumato.solver.outcome import (
    Conditions,
    Ended,
    Ending,
    EndlessProved,
    Facts,
    LossProved,
    Outcome,
    OverlapProved,
    Proved,
    Solving,
    proof_line,
)
from sfumato.solver.problem import Problem
from sfumato.solver.setting import setting

_RELATIVE = 0.008  # of the leakage, for objectives that have no natural scale
# how far below the grid's bound the plane's may end: probability or gain; information in bits
_PLANE_SLACK, _PLANE_SLACK_BITS = 0.008, 0.009
_PLANE_SLACK_OF_LOSS = 0.004  # the same for endless reports, as a share of the loss
# times that slack is what half a cell may be worth for a solve off the grid: on coarser cells grid
# and plane lie far apart anyway
_FINE = 8
_MOST_OFF_GRID = 20_000_000  # pairs of truths and places up to which the plane gets its own solve
_FIRST_REPORTS = 400  # reports that a solve over many begins with
_FIRST_OF_LAWS = 60  # the same for endless reports, whose program is slower
MOST_LINKED = 24  # users: 276 pairs
_FEW_LINKED = 6  # users up to which a row for each pair is soon solved
# of a proof for another solver's mechanism: to the end, and one that is soon there
FULL_GAP, QUICK_GAP = 2e-3, 1e-2
_PROOF_TRUTHS = 2500  # up to this number the program of such a proof has all of them
_SLOW = 5_000  # users times truths beyond which the interior point takes long to its first bound
_FIRST_ORDER_SHARE = 0.7  # of the time, before the interior point
_NOTHING = 1e-9  # above a blind guess's leakage
# What a solve takes (`python -m benchmarks exact`, `python -m benchmarks foretold`): seconds of the
# start, and times users, truths and reports to these powers; where bits are minimised, how many
# times that; and how far off that may be, for what makes a program hard is not its size.
START_S, _SOLVE_S, _POWERS, _TIMES_FOR_BITS, _WITHIN = 6.0, 5e-5, (0.5, 1.5, 0.3), 5.0, 4.0
# Bytes of the start, per place and cell, and per pair of guesses at each report of a program, of
# which there are some hundred at once.
_START_BYTES, _PAIR_BYTES, _GUESSES_BYTES, _REPORTS_AT_ONCE = 270e6, 50, 60, 500


def ignored(certificate: Certificate, bound: float, leakage: float) -> None:
    """Certificates on the way that nobody waits for."""


@guided_class()
@dataclass(frozen=True)
class Exact(Solving):
    """The mechanism that leaks least within the budgets, on reports at the cells of the grid, up to
    a proven gap.

    With a problem that asks for a Bayes error (`min_bayes_error`) it finds the smallest loss.  For
    n linked reports it takes the law with the largest Bayes error of n reports among those that
    make overlaps of users large, and proves how large the least overlap can be; for endless ones
    the law with the largest least overlap, or, without a budget, the smallest loss at which no
    number of reports tells anything.
    Leakage and gap are in the objective's unit: a probability for the Bayes error, bits for
    information, lower is more private; the loss is in its own.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> problem = sf.Problem(data, max_loss=45, cell_m=20)
    >>> round(sf.solve(problem, sf.Exact()).leakage, 3)
    0.525
    """

    gap: float = setting(
        1e-3,
        "How far the leakage may stay above the bound, as a probability or in bits; in bits 0.8 %"
        " of the leakage is enough.",
        option="GAP",
    )
    plane: bool = setting(
        True, "Prove a bound for reports anywhere on the plane too.", option="flag"
    )
    name = "exact"
    resumable = False

    def __post_init__(self) -> None:
        if not self.gap > 0:
            raise ProblemError(f"{arg('gap')} must be above 0; got {self.gap}")

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """The optimum on the grid, then (for distances) a proof over the plane."""
        start = time.perf_counter()
        check_size(problem)
        problem.check_feasible()
        objective, secrets = problem.objective, problem.joint.secrets
        if isinstance(objective, Gain) and len(objective.gains(secrets)) < 2:
            raise ProblemError(
                f"with {len(secrets)} users '{objective.name}' leaks the same whatever is"
                " reported; choose another"
            )
        if problem.min_bayes_error is not None:
            return self._smallest_loss(problem, how.deadline)
        history: list[dict[str, Any]] = []

        def note(text: str) -> None:
            history.append({"seconds": time.perf_counter() - start, "progress": text})
            if how.progress is not None:
                how.progress(history[-1])

        def heard(certificate: Certificate, bound: float, least: float) -> None:
            if how.progress is not None:
                how.progress(proof_line(certificate, bound, least, self.gap))

        if problem.seeks_endless_budget:
            return self._endless(problem, how.deadline, note)
        optimum, certificate = _proved(
            problem,
            gap=self.gap,
            plane=self.plane,
            deadline=how.deadline,
            progress=note,
            on_proof=certified(problem, heard),
        )
        late = how.deadline.limited and optimum.gap > self.gap
        if isinstance(objective, Overlap):
            channel, leakage = self._linked(problem, optimum, how.deadline, note)
            least = OverlapProved(1 - leakage, 1 - optimum.bound, len(problem.report_places))
            return Outcome(channel, _ending(least, late), tuple(history), certificate)
        channel = channel_of(problem, optimum.mechanism, optimum.reports)
        verify(problem, channel, claimed=optimum.leakage)
        pairs = len(problem.places) * len(problem.report_places)
        history.append({"pairs": pairs, "pairs_touched": optimum.pairs_touched})
        leakage, bound, gap = (
            value / objective.nats for value in (optimum.leakage, optimum.bound, optimum.gap)
        )
        facts = Proved(leakage, bound, gap, objective.unit, len(problem.report_places))
        return Outcome(channel, _ending(facts, late), tuple(history), certificate)

    def expected(self, problem: Problem) -> Expected | None:
        """A wide range: a program of one size may take ten times as long as another.  None for
        smallest losses, linked reports and categories."""
        check_size(problem)
        sought = problem.min_bayes_error is not None or problem.reports != 1
        if sought or problem.region is None:
            return None
        size = (*problem.joint.shape, _cells_across(problem))
        seconds = _SOLVE_S * float(np.prod(np.power(size, _POWERS)))
        if isinstance(problem.objective, Information):
            seconds *= _TIMES_FOR_BITS
        return Expected(START_S + seconds, program_bytes(problem), _WITHIN)

    def _linked(
        self,
        problem: Problem,
        least: Optimum,
        deadline: Deadline,
        progress: Callable[[str], None],
    ) -> tuple[Channel, float]:
        """For linked reports the law for their number, given that of the largest least overlap, and
        its leakage: one law for all users where the budget allows it."""
        task = program_of(problem)
        law: Optimum | OneLaw = least
        if least.leakage <= self.gap:
            with suppress(InfeasibleBudget):  # a cap may leave no law for all
                one_law = equal_laws(problem, gap=self.gap, deadline=deadline, progress=progress)
                law = one_law if _within_budgets(problem, one_law) else least
        if law is least and problem.several is not None:
            law = best_for(
                task,
                problem.several,
                least,
                gap=max(self.gap, FULL_GAP),
                deadline=deadline,
                progress=progress,
            )
        channel = channel_of(problem, law.mechanism, law.reports)
        leakage = measured_leakage(task, law.mechanism)
        verify(problem, channel, claimed=leakage)
        return channel, leakage

    def _endless(
        self, problem: Problem, deadline: Deadline, progress: Callable[[str], None]
    ) -> Outcome:
        """The least loss at which all users report with one law."""
        one_law = equal_laws(problem, gap=self.gap, deadline=deadline, progress=progress)
        channel = channel_of(problem, one_law.mechanism, one_law.reports)
        verify(problem, channel, claimed=0.0)
        proof = Proof(problem.report_places, one_law.scores, np.ones(1))
        wide = one_law.loss - one_law.bound > 2 * self.gap * one_law.loss
        facts = EndlessProved(one_law.loss, one_law.bound)
        ending = _ending(facts, deadline.limited and wide)
        on_plane = None
        if self.plane and traits_of(problem.loss).is_distance and not deadline.passed:
            on_plane = _endless_plane_proof(problem, one_law)
        return Outcome(channel, ending, (), Certificate.of(problem, proof, on_plane))

    def _smallest_loss(self, problem: Problem, deadline: Deadline) -> Outcome:
        assert problem.min_bayes_error is not None
        law = min_loss_given_max_leakage(
            task_of(problem), 1 - problem.min_bayes_error, tolerance=self.gap, deadline=deadline
        )
        channel = channel_of(problem, law.mechanism, law.reports)
        verify(problem, channel, claimed=law.leakage)
        wide = law.loss - law.loss_bound > 2 * self.gap * max(law.loss, 1.0)
        facts = LossProved(problem.min_bayes_error, law.loss, law.loss_bound)
        return Outcome(channel, _ending(facts, deadline.limited and wide))


def program_bytes(problem: Problem, *, most_truths: int | None = None) -> float:
    """What is held while a program is solved: losses, and at each report a matrix of its guesses;
    of a program with `most_truths` truths at most."""
    users, truths = problem.joint.shape
    truths = truths if most_truths is None else min(truths, most_truths)
    gains = problem.objective.gains(problem.joint.secrets)
    guesses = users if gains is None else len(gains)
    cells = len(problem.report_places) if problem.region is None else _cells_across(problem)
    losses = _PAIR_BYTES * truths * min(truths, cells)
    reports = min(len(problem.report_places), _REPORTS_AT_ONCE)
    return _START_BYTES + losses + _GUESSES_BYTES * reports * float(guesses) ** 2


def _cells_across(problem: Problem) -> float:
    """How many cells the places lie among."""
    return float(np.prod(np.ptp(problem.places, axis=0) / problem.grid.cell_m + 1))


def check_size(problem: Problem, *, of_run: bool = False) -> None:
    """Refuse tables that are not held whole, for the programs here are of users times places; and
    programs that do not fit into memory.  Of a run that is there (`of_run`) only a proof is made,
    and its users and cells are set."""
    users, places = problem.joint.shape
    what = "a proof" if of_run else "the exact solver"
    another = "solve anew with fewer users or larger cells, and certify that run"
    if problem.joint.sparse is not None:
        fewer = f"keep fewer with {arg('top_users')}, or take the codebook"
        raise ProblemError(
            f"{what} takes at most {MOST_DENSE // 1_000_000} million users times places; got"
            f" {users:,} users with {places:,} places: {another if of_run else fewer}"
        )
    fewer = f"keep fewer users ({arg('top_users')}), take larger cells ({arg('cell_m')})"
    check_fits(
        program_bytes(problem),
        what=f"{what} with {users:,} users at {places:,} place{'s' * (places != 1)}",
        advice=another if of_run else f"{fewer}, or take the codebook",
    )


def equal_laws(
    problem: Problem,
    *,
    gap: float,
    deadline: Deadline = NEVER,
    progress: Callable[[str], None] = silent,
) -> OneLaw:
    """The least loss at which all users report with one law, whatever the problem's budgets."""
    many = len(problem.report_places) > _FIRST_REPORTS and problem.region is not None
    return min_loss_given_equal_laws(
        replace(task_of(problem), user_max_loss=None),
        gap=gap,
        first_reports=_coarse(problem, _FIRST_OF_LAWS) if many else None,
        deadline=deadline,
        progress=progress,
    )


def _within_budgets(problem: Problem, law: OneLaw) -> bool:
    """Whether a law keeps the problem's average budgets."""
    task = task_of(problem)
    charges, limits = task.budgets()
    spent = charges.T @ np.sum(law.mechanism * task.loss_of(law.reports), axis=1)
    return bool(np.all(spent <= limits))


def _ending(facts: Facts, late: bool) -> Ending:
    return Ending(Ended.TIME_LIMIT if late else Ended.FINISHED, facts)


def task_of(problem: Problem, reports: np.ndarray | None = None) -> Task:
    """The problem as arrays, on its own reports or on others."""
    claim = claim_of(problem)
    places, reports = problem.places, problem.report_places if reports is None else reports
    return Task(
        joint=claim.joint,
        loss_of=lambda chosen: problem.loss(places[:, None, :], reports[None, chosen, :]),
        report_count=len(reports),
        max_loss=claim.max_loss,
        user_max_loss=claim.user_max_loss,
        cap=claim.cap,
        gains=claim.gains,
        information=problem.objective.scores == "information",
    )


def program_of(problem: Problem, reports: np.ndarray | None = None) -> Task:
    """The same with what linked reports make small: the distance of each pair of users."""
    task = task_of(problem, reports)
    if problem.objective.scores != "overlap":
        return task
    users = len(task.joint)
    if users > MOST_LINKED:
        raise ProblemError(
            f"for linked reports the exact solver takes at most {MOST_LINKED} users; got {users}:"
            " select fewer, or use the codebook without a proof"
        )
    return replace(task, linked=np.eye(users * (users - 1) // 2))


def best_within(
    problem: Problem,
    *,
    gap: float,
    deadline: Deadline = NEVER,
    first_reports: np.ndarray | None = None,
    progress: Callable[[str], None] = silent,
    on_proof: OnProof = unheard,
) -> Optimum:
    """Solve to the gap; for information, again with a smaller one while the gap is too large a
    share of the leakage."""
    task = program_of(problem)
    if first_reports is None and isinstance(problem.samples, Samples):
        many = len(problem.report_places) > _FIRST_REPORTS
        first_reports = _coarse(problem, _FIRST_REPORTS) if many else None
    ways: Any = {"deadline": deadline, "progress": progress, "on_proof": on_proof}
    if isinstance(problem.samples, CategoricalData) or task.linked is not None:
        optimum = generate_columns(task, gap=gap, first_reports=first_reports, **ways)
    else:
        places = Places(
            problem.places,
            problem.report_places,
            problem.grid.origin,
            problem.grid.cell_m,
            problem.loss,
        )
        optimum = solve_on_cells(task, places, gap=gap, first_reports=first_reports, **ways)
    wanted = max(_RELATIVE * optimum.leakage, 1e-7)
    if task.information and optimum.gap > wanted and not deadline.passed:
        optimum = generate_columns(task, gap=wanted, first_reports=optimum.reports, **ways)
    return optimum


def _proved(
    problem: Problem,
    *,
    gap: float,
    plane: bool = True,
    deadline: Deadline,
    progress: Callable[[str], None] = silent,
    on_proof: OnProof = unheard,
) -> tuple[Optimum, Certificate]:
    """The optimum on the grid, and its certificate; with a proof for the plane where the loss is
    the distance and time is left."""
    optimum = best_within(problem, gap=gap, deadline=deadline, progress=progress, on_proof=on_proof)
    on_plane = None
    if plane and traits_of(problem.loss).is_distance and not deadline.passed:
        on_plane = _plane_proof(problem, optimum, deadline)
    on_grid = Proof(
        problem.report_places, optimum.scores, optimum.multipliers, optimum.pair_weights
    )
    return optimum, Certificate.of(problem, on_grid, on_plane)


def certificate_for(
    problem: Problem,
    *,
    seed: int,
    gap: float = FULL_GAP,
    plane: bool = True,
    deadline: Deadline = NEVER,
    on_proof: Heard = ignored,
    known: Joint | None = None,
) -> Certificate | None:
    """The bound that is proved in the time, for a problem that another solver answers, up to `gap`;
    None where there is no time at all, too many users for linked reports, or too little memory.

    With more than 200 users a first-order method proves it, for the Bayes objective and reports
    anywhere on the plane (`first_order`), from `known`, P(secret, report) of what was found.  With
    fewer, where the interior point takes long to its first bound, that method goes before it.

    `on_proof` is called with each better certificate on the way, its bound and the least leakage
    that the proof has reached, both in the objective's unit.
    """
    too_many = isinstance(problem.objective, Overlap) and len(problem.joint.secrets) > MOST_LINKED
    if deadline.passed or too_many:
        return None
    if len(problem.joint.secrets) > MANY_USERS:
        steps = STEPS if gap <= FULL_GAP else QUICK_STEPS
        return first_order_certificate(
            problem, steps=steps, known=known, deadline=deadline, on_proof=on_proof
        )
    fits = proof_fits(problem)
    if len(problem.places) > _PROOF_TRUTHS:
        return _from_a_draw(problem, seed=seed, deadline=deadline) if fits else None
    best: tuple[float, Certificate | None] = -np.inf, None

    def better(certificate: Certificate, bound: float, least: float) -> None:
        nonlocal best
        if bound > best[0]:
            best = bound, certificate
            on_proof(certificate, bound, least)

    if len(problem.joint.secrets) * len(problem.places) > _SLOW:
        share = deadline.share(_FIRST_ORDER_SHARE)
        first_order_certificate(problem, known=known, deadline=share, on_proof=better)
    if deadline.passed or not fits:
        return best[1]
    heard = certified(problem, better)
    linked = problem.objective.scores == "overlap" and isinstance(problem.samples, Samples)
    if linked and len(problem.joint.secrets) > _FEW_LINKED:
        # what one row makes small is an average of distances, not the largest: no leakage of a law
        least = 1.0 if known is None else problem.objective.leakage(known)
        _weighed_at_once(
            problem,
            gap=gap,
            deadline=deadline,
            on_proof=lambda proof: heard(replace(proof, leakage=least)),
        )
        if deadline.passed:
            return best[1]
    early = best[0]
    last = _proved(problem, gap=gap, plane=plane, deadline=deadline, on_proof=heard)[1]
    return best[1] if best[1] is not None and last.bound(problem).grid < early else last


def proof_bytes(problem: Problem) -> float:
    """What the proof of a problem that another solver answers holds, where a program finds it."""
    return program_bytes(problem, most_truths=_PROOF_TRUTHS)


def proof_fits(problem: Problem) -> bool:
    """Whether there is memory for that proof; with more than 200 users a method that holds little
    takes its place."""
    many = len(problem.joint.secrets) > MANY_USERS
    return many or proof_bytes(problem) <= (free_bytes() or np.inf)


def _weighed_at_once(
    problem: Problem, *, gap: float, deadline: Deadline, on_proof: OnProof
) -> None:
    """A first bound for linked reports.  The least overlap is below every average of overlaps:
    that of all pairs, weighed by how far apart the two users are, is one row instead of one for
    each pair."""
    task = program_of(problem)
    first, second = pairs_of(task.prior)
    middles = task.joint @ problem.places / task.prior[:, None]
    apart = np.linalg.norm(middles[first] - middles[second], axis=1)
    weights = apart + apart.mean() + 1.0  # no pair is left out
    many = len(problem.report_places) > _FIRST_REPORTS and problem.region is not None
    generate_columns(
        replace(task, linked=weights[None, :] / weights.sum()),
        gap=gap,
        first_reports=_coarse(problem, _FIRST_OF_LAWS) if many else None,
        deadline=deadline,
        max_rounds=1,
        on_proof=on_proof,
    )


def certified(problem: Problem, on_proof: Heard) -> OnProof:
    """Hand each proof on as a certificate, with its bound and the least leakage reached."""
    unit = problem.objective.nats

    def heard(proof: Scored) -> None:
        on_grid = Proof(problem.report_places, proof.scores, proof.multipliers, proof.pair_weights)
        on_proof(Certificate.of(problem, on_grid), proof.bound / unit, proof.leakage / unit)

    return heard


def _from_a_draw(problem: Problem, *, seed: int, deadline: Deadline) -> Certificate | None:
    """Scores of a smaller program are scores all the same: the bound for all truths is worked out
    with them, at its best price.  None where the time was too short for more than the bound of a
    blind guess: to check that takes as long as any other."""
    assert isinstance(problem.samples, Samples)
    random = np.random.default_rng((seed, 4))
    each = max(1, _PROOF_TRUTHS // 2 // len(problem.samples.secrets))
    drawn = problem.samples.some_of_each(each, random)
    small = replace(problem, samples=problem.samples.take(drawn))
    optimum = best_within(small, gap=4 * FULL_GAP, deadline=deadline)
    blind = blind_leakage(problem.objective, small.joint) * problem.objective.nats
    if deadline.passed and optimum.bound <= blind + _NOTHING:
        return None
    shares = optimum.scores[cKDTree(small.report_places).query(problem.report_places)[1]]
    claim = replace(claim_of(problem), pair_weights=optimum.pair_weights)
    loss_of = task_of(problem).loss_of
    multipliers = optimum.multipliers
    if not deadline.passed:
        from scipy.optimize import minimize_scalar  # 12 MB: only where it is used

        minimum = minimize_scalar(
            lambda factor: -bound_grid(claim, shares, optimum.multipliers * factor, loss_of),
            bounds=(0.8, 1.2),
            method="bounded",
            options={"maxiter": 6},
        )
        multipliers = optimum.multipliers * float(minimum.x)
    return Certificate.of(
        problem, Proof(problem.report_places, shares, multipliers, optimum.pair_weights)
    )


def _coarse(problem: Problem, count: int) -> np.ndarray:
    """Every k-th cell each way: a coarse grid to begin with."""
    index = problem.grid.index(problem.report_places)
    step = max(1, round((len(index) / count) ** 0.5))
    return np.flatnonzero(np.all(index % step == 0, axis=1))


def _plane_proof(problem: Problem, optimum: Optimum, deadline: Deadline) -> PlaneProof | None:
    """Split the cells where the grid's bound is attained; where its values do not fit the plane,
    find values that do and split again."""
    task, places, reports = task_of(problem), problem.places, problem.report_places
    if optimum.pair_weights is not None:  # the weights of the grid's proof are the plane's
        weights = optimum.pair_weights / optimum.pair_weights.sum()
        task = replace(task, linked=weights[None, :], pair_weights=weights)
    cells = _cells_of(problem)
    if cells is None:
        return None
    slack = _PLANE_SLACK_BITS * problem.objective.nats if task.information else _PLANE_SLACK
    goal = optimum.bound - slack
    on_cells = OnCells(task, places, optimum.multipliers, deadline=deadline)
    try:
        best = split_until(on_cells, cells, optimum.scores, goal=goal)
    except OutOfTime:
        return None
    small = task.cap is None and len(places) * (len(places) + len(reports)) <= _MOST_OFF_GRID
    half_cell = problem.grid.cell_m / 2 * float(np.sum(task.budgets()[0] @ optimum.multipliers))
    if best.bound < goal and small and half_cell <= _FINE * slack and not deadline.passed:
        values, multipliers, bound = values_off_grid(
            task, places, reports, optimum.reports, gap=slack / 4, deadline=deadline
        )
        off_grid = OnCells(task, places, multipliers, deadline=deadline)
        with suppress(OutOfTime):
            again = split_to_keep(off_grid, cells, values, slack=max(bound - goal, slack / 6))
            best = max(best, again, key=lambda proof: proof.bound)
    return PlaneProof(best.cells, best.scores, best.multipliers)


def _cells_of(problem: Problem) -> Cells | None:
    """The grid's cells as a start for the plane; None where they do not cover it."""
    cells, places = Cells.over(problem.grid, problem.report_places), problem.places
    if cells.side_m > widest_root_m(places):  # a region so much wider than the data
        return None
    # a cap on the distance leaves cells between the truths out
    return cells if covers_hull(places, cells) else None


def _endless_plane_proof(problem: Problem, one_law: OneLaw) -> PlaneProof | None:
    """Split the cells where the bound on the smallest loss is attained."""
    task, prices, cells = task_of(problem), np.ones(1), _cells_of(problem)
    if cells is None:
        return None
    values = least_costs(task, one_law.scores, task.truth_mass, task.within_cap)
    reach = reach_of(task, one_law.scores, values)
    on_cells = OnCells(task, problem.places, prices, partial(centred_scores_for, reach=reach))
    goal = one_law.bound * (1 - _PLANE_SLACK_OF_LOSS)
    best = split_until(on_cells, cells, one_law.scores, goal=goal)
    return PlaneProof(best.cells, best.scores, best.multipliers)


def channel_of(problem: Problem, mechanism: np.ndarray, reports: np.ndarray) -> Channel:
    """The law as a channel; new places are answered by an average over near ones, new categories
    are refused."""
    if isinstance(problem.samples, CategoricalData):
        return Channel(problem.places, problem.report_places[reports], mechanism)
    cap, traits = problem.max_distance, traits_of(problem.loss)
    if cap is not None:
        cap = traits.distance(cap) if traits.grows_with_distance else None
    channel = Channel(
        problem.places, problem.report_places[reports], mechanism, nearest=True, max_distance=cap
    )
    return replace(channel, average=average_for(problem, channel))


def verify(problem: Problem, channel: Channel, *, claimed: float) -> None:
    """Check the law as it will be sampled: budgets kept, the leakage what the solver said.  (Rows
    are checked by the channel.)"""
    law = channel.law(problem.joint, loss=problem.loss)
    assert law is not None
    leakage = problem.objective.leakage(law.joint) * problem.objective.nats
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
        raise SfumatoError(
            "the solver's law does not have the figures that it claims: " + "; ".join(faults)
        )
