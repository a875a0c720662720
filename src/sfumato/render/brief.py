"""What a command prints unless it is asked for details: some ten lines, and columns in one order
everywhere (loss, Bayes error, exposed, worst report)."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path

import numpy as np

from sfumato.data.categories import CategoricalData
from sfumato.data.samples import MANY_USERS, Samples
from sfumato.measure.judge import Judgement
from sfumato.measure.objective import Bayes, Overlap
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.loss import traits_of
from sfumato.memory import Expected
from sfumato.render.endings import linked_sentence, proof_sentence
from sfumato.render.estimates import mark, shown
from sfumato.render.names import printable
from sfumato.render.text import (
    NOTHING_PROVED,
    asked_text,
    below_text,
    common_unit,
    counted_on,
    exposed_note,
    figures_to_come,
    gap_text,
    gaps_missing,
    held_out_over,
    in_unit,
    left_out_parts,
    loss_digits,
    loss_form,
    of_categories,
    over_budget,
    over_mark,
    posterior,
    relative_text,
    settled_text,
    text_table,
    to_come_heads,
    too_few,
)
from sfumato.solver.exact.solver import MOST_LINKED
from sfumato.solver.outcome import NONE, QUICK, Effort, Proved, Proving
from sfumato.solver.problem import Problem
from sfumato.study.certify import Gap
from sfumato.study.compare import Compared, Comparison
from sfumato.study.measure import TEST, TRAINING, Measured
from sfumato.study.solve import Kept

_LABELS = {TEST: "on held-out check-ins", TRAINING: "on training check-ins"}
_NO_WORST = (
    "worst report -: it is the largest of all reports, which cannot be estimated for check-ins to"
    " come"
)
_SHORT_S = 60
_WIDE = 40  # budgets along a side: much of such an area is far from any one user's check-ins


def plan_text(
    problem: Problem,
    solver: str,
    expected: Expected | None,
    proof: Effort,
    *,
    limit_s: float | None = None,
    proof_s: float | None = None,
) -> str:
    """What is about to be done, how much that is (within a time limit of `limit_s` seconds, the
    proof at most `proof_s`), and the one option that would make it less."""
    samples = problem.samples
    if not isinstance(samples, Samples):
        return f"plan: {solver} for {printable(samples.described)}"
    text = f"plan: {solver} for {_of_places(problem, samples)}"
    if expected is None:
        return f"{text}; {_takes_unknown(limit_s, 'the best')}"
    text += f"; {takes_text(expected)}"
    text += _ends(expected, proof, limit_s, proof_s, "--time-limit", "Ctrl-C")
    return f"{text}\n{_less(problem, expected, proof, limit_s)}".rstrip()


def _of_places(problem: Problem, samples: Samples) -> str:
    """Check-ins, users, places and area."""
    across, up = np.ptp(problem.places, axis=0) / 1e3
    return (
        f"{samples.described}, {len(problem.places):,}"
        f" place{'s' * (len(problem.places) != 1)} in {across:.1f} × {up:.1f} km"
    )


def _takes_unknown(limit_s: float | None, kept: str) -> str:
    ends = "" if limit_s else f"; --time-limit SECONDS ends it with {kept} so far"
    return f"how long it takes is not known beforehand{ends}"


def frontier_plan_text(
    problem: Problem, budgets: int, expected: Expected | None, *, limit_s: float | None = None
) -> str:
    """What `frontier` is about to do, how much that is, and the option that would make it less."""
    samples = problem.samples
    assert isinstance(samples, Samples)  # categories have no frontier
    text = f"plan: a frontier at {budgets} budgets for {_of_places(problem, samples)}"
    if expected is None:
        return f"{text}; {_takes_unknown(limit_s, 'the budgets')}"
    text += f"; {takes_text(expected)}"
    if limit_s is not None and expected.slowest > limit_s:
        return f"{text}; --time-limit ends it earlier and keeps the best bounds so far"
    if limit_s is not None or expected.slowest < _SHORT_S:
        return text
    return (
        f"{text}; --time-limit SECONDS ends it with the best bounds so far\nto reduce this:"
        " --per-user N takes N check-ins of each user"
    )


def plan_on_page(
    expected: Expected | None,
    proof: Effort,
    *,
    limit_s: float | None = None,
    proof_s: float | None = None,
) -> str:
    """The same beside the studio's Solve button, where the data are in sight."""
    if expected is None:
        return "How long it takes is not known beforehand; a time limit ends it."
    text = takes_text(expected) + _ends(expected, proof, limit_s, proof_s, "the time limit", "Stop")
    return f"{text[0].upper()}{text[1:]}."


def _ends(
    expected: Expected,
    proof: Effort,
    limit_s: float | None,
    proof_s: float | None,
    limit: str,
    stop: str,
) -> str:
    """What ends a job before it is done: the `limit`, or whoever presses `stop`."""
    if limit_s is not None and expected.slowest > limit_s:
        return f"; {limit} ends it earlier and keeps the best so far"
    if proof == NONE:
        return ""
    return f"; {_proof_takes(proof_s, stop if limit_s is None else limit)}"


def _proof_takes(seconds: float | None, ends: str) -> str:
    longest = "may take longer"
    if seconds is not None:
        longest = f"takes at most {seconds / 60:g} minutes more"
    return f"the proof that follows {longest} ({ends} ends it and keeps its best bound)"


def takes_text(expected: Expected) -> str:
    """Time and memory of a job that has not begun."""
    time = f"about {_duration(expected.seconds)}"
    if _duration(expected.fastest) != _duration(expected.slowest):
        time = f"{_duration(expected.fastest)} to {_duration(expected.slowest)}"
    return f"it takes {time} of one core and {expected.bytes / 1e9:.1f} GB of memory"


def _duration(seconds: float) -> str:
    tens, minutes = 10 * ceil(seconds / 10), ceil(seconds / 60)
    return f"{tens} seconds" if tens < 60 else f"{minutes} minute{'s' * (minutes > 1)}"


def measuring_text(name: str, samples: Samples, expected: Expected) -> str:
    """What `measure` is about to do on data that was named, and how much that is."""
    return f"plan: measure {printable(name)} on {samples.described}; {takes_text(expected)}"


def _less(problem: Problem, expected: Expected, proof: Effort, limit_s: float | None) -> str:
    """The option that saves most; nothing of a job that takes less than a minute."""
    if proof == NONE and expected.slowest < _SHORT_S:
        return ""
    users = len(problem.samples.secrets)
    if users > MANY_USERS:
        return (
            f"to reduce this: --top-users {MANY_USERS} learns only from the users with most"
            " check-ins"
        )
    if np.ptp(problem.places, axis=0).max() > _WIDE * problem.scale_m:
        return "to reduce this: --square LAT,LON,METRES keeps one part of the area"
    if proof not in (NONE, QUICK) and limit_s is None:
        return "to reduce this: --proof quick ends the proof within some 0.01 of the best bound"
    return ""


def kept_text(kept: Kept, *, seconds: float) -> str:
    """What `solve` prints once the run folder is written; the proof follows."""
    solution, problem = kept.solution, kept.solution.problem
    unit = traits_of(problem.loss).unit
    judged = {} if kept.test is None else {TEST: kept.test}
    judged[TRAINING] = solution.measured
    proved_bayes = isinstance(problem.objective, Bayes) and isinstance(
        solution.ending.facts, Proved
    )
    leakage_said = ["Leakage is 1 minus the Bayes error."] * proved_bayes
    parts = [
        _figures(
            solution.name,
            judged,
            kept.to_come,
            max_loss=problem.max_loss,
            unit=unit,
        ),
        _worst_case(next(iter(judged.values()))),
        "  ".join([solution.status, *leakage_said, *solution.warnings]),
        "  ".join(filter(None, [settled_text(kept), below_text(kept)])),
    ]
    parts.append(held_out_over(kept.test, kept.to_come, problem.max_loss, unit))
    if kept.linked is not None:
        parts.append(linked_sentence(kept.linked, on=" on held-out check-ins"))
    if kept.to_come is not None and problem.max_loss is not None:
        parts.append(too_few(kept.to_come, problem.max_loss))
    parts.append(f"Written to {kept.folder} after {seconds:.0f} s.")
    return "\n".join(filter(None, parts))


def _figures(
    name: str,
    judged: dict[str, Judgement],
    to_come: Outlook | None,
    *,
    max_loss: float | None,
    unit: str,
) -> str:
    """One row per set of data, the check-ins to come first."""
    rows, first = [], next(iter(judged.values()))
    parts = dict(judged)
    if to_come is not None:
        held_out = None if to_come.folds else parts.pop(TEST, None)
        worst = "-" if held_out is None else _worst(held_out)
        rows.append(["on check-ins to come", *_outlook(to_come, max_loss), worst])
    rows += [
        [
            _on(label, judgement),
            *_judged(judgement, loss_digits(of_categories(judgement)), interval=True),
        ]
        for label, judgement in parts.items()
    ]
    blind = 1 - float(first.joint.prior.max())
    rows.append(["a blind guess", "", f"{blind:.3f}", "", ""])
    budget = "" if max_loss is None else f", budget {in_unit(f'{max_loss:g}', unit)}"
    table = text_table([f"{name}{budget}", *_heads(unit)], rows)
    return table + f"\n{_NO_WORST}" * (rows[0][-1] == "-")


def _on(label: str, judgement: Judgement) -> str:
    return "on the data" if of_categories(judgement) else _LABELS.get(label, f"on {label}")


def _heads(unit: str | None) -> tuple[str, ...]:
    return in_unit("loss", unit or ""), "Bayes error ↑", "exposed ↓", "worst report ↓"


def _outlook(outlook: Outlook, max_loss: float | None) -> list[str]:
    over = "!" if max_loss is not None and outlook.over(max_loss) else ""
    return [
        shown(outlook.loss, "{:.1f}", interval=True) + over,
        shown(outlook.bayes_error, interval=True),
        shown(outlook.exposed, "{:.1%}", interval=True),
    ]


def _judged(
    judgement: Judgement, loss_form: str, over: str = "", *, interval: bool = False
) -> list[str]:
    return [
        shown(judgement.loss, loss_form, interval=interval) + over,
        shown(judgement.bayes_error, interval=interval),
        shown(judgement.exposed, "{:.1%}", interval=interval),
        _worst(judgement),
    ]


def _worst(judgement: Judgement) -> str:
    return f"{mark(judgement.exposed.kind)}{posterior(judgement.worst_report)}"


def _worst_case(judgement: Judgement) -> str:
    """Whom it hides least, and what one report can tell."""
    user = min(judgement.per_user, key=lambda person: person.error)
    named = printable(user.name)
    share = f"{mark(judgement.bayes_error.kind)}{1 - user.error:.0%}"
    whose, one = f"user {named} in {share} of their", "user"
    if of_categories(judgement):
        whose, one = f"{named} in {share} of its", "secret"
    return (
        f"Worst case: the best guess identifies {whose} reports; the most revealing report gives"
        " one"
        f" {one} a probability of {_worst(judgement)}."
    )


def _cells(judgement: Judgement) -> str:
    """On which cells reports were counted, where that is a choice."""
    error = judgement.bayes_error
    if error.cell_m is None or error.kind == "exact":
        return ""
    return f"≈ estimated from reports counted on cells of {error.cell_m:g} m, with 95 % intervals."


def best_text(
    gap: Gap | None,
    run: str | Path = "RUN",
    *,
    name: str = "this mechanism",
    on: str = "the training check-ins",
) -> str:
    """What is proved of the best possible on some data, beside what the mechanism of this name has
    reached there."""
    if gap is not None and gap.nearly_blind:
        return (
            f"A Bayes error of {1 - gap.blind:.3f} on {on}, that of a blind"
            f" guess; {name} has {1 - gap.leakage:.3f} there."
        )
    if gap is not None and isinstance(gap.objective, Bayes) and not gap.proved_anything:
        return (
            f"Not known: the proof does not get below the {1 - gap.blind:.3f} of a blind guess;"
            f" {name} has a Bayes error of {1 - gap.leakage:.3f} on {on}."
            f"{relative_text(gap.relative)}"
        )
    if gap is None or not gap.proved_anything:
        return f"{NOTHING_PROVED.capitalize()}; sfumato certify {run} proves it."
    if isinstance(gap.objective, Overlap):
        return (
            f"With every mechanism some two users overlap by at most"
            f" {1 - max(gap.bounds.grid, 0.0):.4f} per report on {on} (proved);"
            f" with {name} the least overlap is {1 - gap.leakage:.4f} there."
        )
    if not isinstance(gap.objective, Bayes):
        what = {"information": "Information, in bits,", "endless": "A loss"}.get(
            gap.objective.name, "Leakage"
        )
        return (
            f"{what} of at least {max(gap.bounds.grid, 0.0):.4g} on {on}"
            f" (proved); {name} has {gap.leakage:.4g} there."
        )
    bound, where = gap.bound, "" if gap.on_grid else " for reports anywhere"
    if bound is None:
        bound, where = gap.bounds.grid, " for reports on the grid, where its are not"
    return (
        f"A Bayes error of at most {1 - max(bound, gap.blind):.3f} on {on}"
        f" (proved{where}); {name} has {1 - gap.leakage:.3f} there."
        f"{relative_text(gap.relative)}"
    )


def proof_text(kept: Kept, gap: Gap | None) -> str:
    """What the proof that followed a solve came to."""
    solution = kept.solution
    users, best = len(solution.problem.samples.secrets), best_text(gap, kept.folder)
    if gap is None and solution.problem.reports != 1 and users > MOST_LINKED:
        return f"Best possible: not proved for linked reports of more than {MOST_LINKED} users."
    ended = proof_sentence(solution.ending, bound=gap is not None)
    if solution.ending.proof is Proving.NO_MEMORY:
        return f"Best possible: {NOTHING_PROVED}. {ended}"
    return f"Best possible: {best} {ended}".strip()


def measured_text(measured: Measured) -> str:
    """What `measure` prints: the figures, the best possible, the worst case, what was asked for."""
    ordered = [label for label in (TEST, TRAINING) if label in measured.judged]
    judged = {label: measured.judged[label] for label in ordered} | dict(measured.judged)
    first = next(iter(judged.values()))
    on = {"on": "the data"} if of_categories(first) else {}
    lines = [
        _figures(
            measured.name,
            judged,
            measured.to_come,
            max_loss=measured.max_loss,
            unit=measured.loss_unit,
        ),
        *([] if measured.gap is None else [f"Best possible: {best_text(measured.gap, **on)}"]),
        _worst_case(first),
        _cells(first),
        exposed_note(first),
        *over_budget(measured),
        *measured.warnings,
    ]
    return "\n\n".join(["\n".join(filter(None, lines)), *asked_text(measured)])


def compared_text(comparison: Comparison) -> str:
    """What `compare` prints: one row per mechanism, and what the marks mean."""
    rows, unit = comparison.rows, common_unit(comparison.rows)
    held_out = all(row.held_out for row in rows)
    to_come = not held_out and any(row.to_come is not None for row in rows)
    heads = ["mechanism", *to_come_heads(unit) * to_come, *_heads(unit), "gap ↓"]
    lines = [_compared(row, loss_form(row, comparison), to_come=to_come) for row in rows]
    notes = [counted_on(comparison)]
    if any(row.gap is not None and row.gap.proved_anything for row in rows):
        data = "the data" if isinstance(comparison.on, CategoricalData) else "training check-ins"
        notes.append(f"gap: leakage on {data} above the least possible (proved)")
    if missing := gaps_missing(comparison):
        notes.append(f"gap -: {missing}")
    if any(row.measured.bayes_error.kind != "exact" for row in rows):
        notes.append("≈ estimated from samples")
    if any(map(over_mark, rows)):
        notes.append("! over its budget here" + " by more than its interval" * held_out)
    warned = [f"{row.name}: {warning}" for row in rows for warning in row.contender.warnings]
    table = "\n".join([text_table(heads, lines), *map(printable, ["; ".join(notes), *warned])])
    return "\n\n".join([table, *left_out_parts(rows)])


def _compared(row: Compared, loss_form: str, *, to_come: bool) -> list[str]:
    ahead: Sequence[str] = figures_to_come(row, loss_form) if to_come else ()
    return [row.name, *ahead, *_judged(row.measured, loss_form, over_mark(row)), gap_text(row.gap)]
