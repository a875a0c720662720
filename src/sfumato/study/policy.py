"""How reports are to be kept: every way is measured on traces against four adversaries, and one is
chosen by a rule.

The rule: of the ways of keeping whose reports stay within the budget, the one of which the
adversary who finds most finds fewest traces.  Of equal ones the one that is kept longest, but not
forever: fewer reports of one place tell less about it.  It is chosen on one half of the traces to
be found, and the figures that are shown are those of the other half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sfumato.data.grid import Region, check_sticky_cell
from sfumato.data.traces import Traces
from sfumato.errors import DataError, ProblemError, arg, raise_all
from sfumato.measure.traces import Found, Who, find_in_parts
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.chance import PERIODS, Secure
from sfumato.mechanism.loss import euclidean
from sfumato.show import Printed
from sfumato.solver.one_place import best_one_place, check_named
from sfumato.study.folder import Run
from sfumato.study.record import NEVER, Keeping
from sfumato.study.traces import (
    chance_of,
    check_traces,
    found_dict,
    lists_reports,
    on_lattice,
    released_mechanism,
    released_reports,
    seeded_key,
)

When = Literal["before", "after"]
FOUR: tuple[Who, ...] = ("law", "history", "period", "all")
FEWEST_TRACES = 200  # to be found: in each half a share is then known to within ten in a hundred
SLACK = 0.02  # of the budget: what cells of kept reports and rounding may add
_SHORTEST = 86_400  # seconds; within less, a day is as long as forever
_DEVIATIONS = 1.96  # a loss counts as over the budget where its 95 % interval is
_PREFERRED = ("week", "day", "hour", NEVER, "forever")  # of equal ways
WEEK = "week"
_LATTICE = 0.25  # of the budget, unless another lattice is asked for


@dataclass(frozen=True)
class Way:
    """One way of keeping, and what four adversaries find of it: in the half of the traces by which
    it is chosen, and in the other, which is shown."""

    keeping: Keeping
    chosen_by: Found
    shown: Found
    within_budget: bool

    @property
    def eligible(self) -> bool:
        """Whether it may be recommended: within the budget, and not one report for all users, for
        which one user's known place would be everybody's."""
        return self.within_budget and self.keeping.by_user


@dataclass(frozen=True, eq=False)
class PolicyChoice(Printed):
    """All ways of keeping, measured, and the one that the rule recommends."""

    run: str
    ways: tuple[Way, ...]
    best: Way
    users: int
    budget: float

    @property
    def keeping(self) -> Keeping:
        """For the run's record: the choice, with what was measured of every way."""
        figures = {
            way.keeping.words: {
                "loss_m": way.shown.loss_m,
                **{who: share.value for who, share in way.shown.shares.items()},
            }
            for way in self.ways
        }
        return replace(self.best.keeping, traces=self.best.shown.traces, found=figures)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "run": self.run,
            "users": self.users,
            "budget": self.budget,
            "recommended": self.best.keeping.words,
            "ways": [
                {
                    "way": way.keeping.words,
                    "keeping": way.keeping.as_dict(),
                    "within_budget": way.within_budget,
                    "eligible": way.eligible,
                    **found_dict(way.shown),
                    "worst_where_chosen": way.chosen_by.worst.value,
                }
                for way in self.ways
            ],
        }


def choose_policy(
    run: Run,
    traces: Traces,
    *,
    cell_m: float | None = None,
    lattice_m: float | None = None,
    one_place: When | None = None,
    parts: int = 1,
    max_loss: float | None = None,
    least_hidden: float = 0.0,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> PolicyChoice:
    """Measure every way of keeping a run's reports on traces, and choose one.

    Main arguments: `run`; `traces`, with times.  Other arguments: `cell_m`, the cell within which a
    report is kept, 25 m unless given; `lattice_m`, the lattice for mechanisms that do not list
    their reports, a quarter of the budget unless given; `one_place`, whether some weeks may be sent
    from one place, chosen before a week or after it, or from one in each of `parts` parts of the
    week (1, or 14 for the middle and the rest of each day); `max_loss` in metres, the budget of
    that, which must exceed what the run's reports cost; `least_hidden`, the least share of each
    user's weeks from one place; `seed`, of the reports that are drawn for measuring.  Nothing is
    written; `study.folder.keep_reports` does.
    """
    raise_all(
        lambda: check_traces(run, traces),
        lambda: _check_times(traces),
        lambda: _check_count(traces),
        lambda: _check_one_place(run, traces, one_place, parts, max_loss, least_hidden),
    )
    assert run.region is not None
    budget = run.max_loss
    if budget is None or run.record.loss_function != euclidean.__name__:
        fresh = released_mechanism(run, Keeping(NEVER))  # what it costs in metres
        drawn = released_reports(traces, fresh, Secure(seed), run.region)
        budget = float(euclidean(traces.samples.truth, drawn.reports).mean())
    ways = ways_of(run.mechanism, run.region, budget, cell_m=cell_m, lattice_m=lattice_m)
    if one_place is not None:
        assert max_loss is not None
        budget = max_loss
        usual = next(way for way in ways if way.period == WEEK)
        progress("one place for a week")
        ways.append(
            with_one_place(
                usual,
                released_mechanism(run, usual),
                run.region,
                budget,
                traces,
                before=one_place == "before",
                parts=parts,
                least_hidden=least_hidden,
                seed=seed,
            )
        )
    return choose(
        run.name,
        released_mechanism(run, ways[0]),
        run.region,
        budget,
        ways,
        traces,
        seed=seed,
        progress=progress,
    )


def _check_one_place(
    run: Run,
    traces: Traces,
    one_place: When | None,
    parts: int,
    max_loss: float | None,
    least_hidden: float,
) -> None:
    if one_place is None and (max_loss is not None or least_hidden or parts > 1):
        raise ProblemError(
            f"{arg('max_loss')}, {arg('least_hidden')} and {arg('parts')} are those of one place;"
            f" give {arg('one_place')} as well"
        )
    if max_loss is not None and not 0 < max_loss < np.inf:
        raise ProblemError(
            f"{arg('max_loss')} must be a finite number above 0 metres; got {max_loss}"
        )
    if one_place is not None and (run.record.max_distance or run.record.user_max_loss):
        raise ProblemError(
            f"{run.folder} keeps a cap or budgets per user, and one place for a week keeps an"
            f" average budget alone; leave {arg('one_place')} out"
        )
    if one_place is not None and max_loss is None:
        spent = "" if run.max_loss is None else f", whose budget is {run.max_loss:g} m"
        raise ProblemError(
            f"one place needs a budget of its own; expected {arg('max_loss')}, the mean loss of all"
            f" weeks in metres, above that of the run's reports{spent}"
        )
    if one_place is not None:
        check_named(traces)


def with_one_place(
    usual: Keeping,
    mechanism: Mechanism,
    region: Region,
    budget: float,
    traces: Traces,
    *,
    before: bool,
    parts: int = 1,
    least_hidden: float = 0.0,
    seed: int = 0,
) -> Keeping:
    """A way of keeping in which some periods are sent from one place, within a budget in metres;
    the rule is made of named traces alone."""
    chance = chance_of(usual, seeded_key(seed), "", seed=seed)
    released = released_reports(traces, on_lattice(mechanism, usual), chance, region)
    off = euclidean(traces.samples.truth, released.reports)[traces.named].mean()
    left = budget - float(off)
    if not left > 0:
        raise ProblemError(
            f"the usual reports are {off:,.0f} m off on average and {arg('max_loss')} is"
            f" {budget:g} m, which leaves nothing for one place; expected a larger one, or a run"
            " with a smaller budget"
        )
    assert released.period is not None
    choice = best_one_place(
        traces.cut(released.period),
        left,
        before=before,
        parts=parts,
        least_hidden=least_hidden,
        seed=seed,
    )
    return replace(usual, one_place=choice.rule, max_loss=budget)


def choose(
    name: str,
    mechanism: Mechanism,
    region: Region,
    budget: float,
    ways: Sequence[Keeping],
    traces: Traces,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> PolicyChoice:
    """Measure ways of keeping the reports of a mechanism that is on a grid, and choose one; the
    budget is in metres."""
    raise_all(lambda: _check_times(traces), lambda: _check_count(traces))
    attacked = traces.attacked
    measured = []
    for keeping in ways:
        progress(keeping.words)
        chance = chance_of(keeping, seeded_key(seed), "", seed=seed)
        released = released_reports(traces, on_lattice(mechanism, keeping), chance, region)
        halves = [attacked[::2], attacked[1::2]]
        first, second = find_in_parts(traces, released, halves, FOUR)
        least = first.loss_m - _DEVIATIONS * first.loss_error_m
        measured.append(Way(keeping, first, second, least <= budget * (1 + SLACK)))
    eligible = [way for way in measured if way.eligible] or measured[:1]
    best = min(
        eligible,
        key=lambda way: (way.chosen_by.worst.value, _PREFERRED.index(way.keeping.period)),
    )
    return PolicyChoice(name, tuple(measured), best, len(traces.samples.secrets), budget)


def _check_times(traces: Traces) -> None:
    source = traces.samples.name
    if traces.seconds is None:
        raise DataError(
            f"{source} was read without times, and reports are kept for periods; name the column of"
            f" the time with {arg('time')}"
        )
    span = float(np.ptp(traces.seconds))
    if not span >= _SHORTEST:
        raise DataError(
            f"the times of {source} lie within {span:,.0f} s, and reports are kept for hours, days"
            f" and weeks; expected times over at least a day, in ISO 8601 or in seconds since 1970:"
            f" name their column with {arg('time')}"
        )


def _check_count(traces: Traces) -> None:
    source, attacked = traces.samples.name, traces.attacked
    if len(attacked) < FEWEST_TRACES:
        raise DataError(
            f"{source} has {len(attacked)} traces to be found; expected at least {FEWEST_TRACES},"
            " to tell ways of keeping apart: bring more traces, or cut them shorter"
        )


def ways_of(
    mechanism: Mechanism,
    region: Region,
    budget: float,
    *,
    cell_m: float | None = None,
    lattice_m: float | None = None,
) -> list[Keeping]:
    """The ways of keeping that are measured, new draws first; lengths are in metres."""
    fresh = Keeping(NEVER)
    if cell_m is not None:
        check_sticky_cell(cell_m)
        fresh = replace(fresh, cell_m=cell_m)
    kept = [replace(fresh, period=period) for period in PERIODS]
    shared = [replace(way, by_user=False) for way in kept if way.period in ("week", "forever")]
    ways = [fresh, *kept, *shared]
    if lists_reports(mechanism, region):
        if lattice_m is not None:
            raise ProblemError(
                f"this mechanism lists its reports; {arg('lattice_m')} is for those whose reports"
                " can lie anywhere"
            )
        return ways
    side = _LATTICE * budget if lattice_m is None else lattice_m
    if not 0 < side < float("inf"):
        raise ProblemError(f"the side of a lattice must be above 0 metres; got {side}")
    on_lattice = [way for way in (fresh, *kept) if way.period in (NEVER, "day", "week", "forever")]
    return ways + [replace(way, lattice_m=side) for way in on_lattice]
