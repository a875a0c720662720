"""Values as text for a terminal: every table and every sentence that a command prints.

Estimates are marked by `shown` alone, loss over the budget by `over_mark` alone, and a bound that
is only the blind guess reads `NOTHING_PROVED`.
"""

from collections.abc import Mapping, Sequence
from math import inf, isnan, log
from typing import Any

from sfumato import show
from sfumato.data.categories import CategoricalData
from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import Judgement, PerUser
from sfumato.measure.membership import FEWEST, Membership
from sfumato.measure.objective import Bayes, Endless, Overlap
from sfumato.measure.outlook import Outlook
from sfumato.measure.population import USEFUL, PopulationCertificate
from sfumato.measure.prior import Priors, UnderPrior
from sfumato.measure.repeated import Repeated
from sfumato.measure.tables import TABLE_MEASURES
from sfumato.measure.traces import Who
from sfumato.mechanism.loss import traits_of
from sfumato.render.endings import linked_sentence, proof_sentence
from sfumato.render.estimates import mark, shown
from sfumato.render.names import printable
from sfumato.solver.outcome import Learned
from sfumato.solver.problem import Problem
from sfumato.study.atlas import AtlasRun
from sfumato.study.certify import Certified, Gap, Relative
from sfumato.study.compare import Compared, Comparison
from sfumato.study.leave_one_out import LeftOutUser, user_of
from sfumato.study.linked import LinkedTradeOff
from sfumato.study.measure import TEST, TRAINING, Attack, Measured
from sfumato.study.policy import PolicyChoice
from sfumato.study.population import CrossFitted
from sfumato.study.solution import Solution
from sfumato.study.solve import Kept
from sfumato.study.traces import TracesFound
from sfumato.study.trade_off import TradeOff

NOTHING_PROVED = "nothing proved yet"
_ALIKE = 1e-9  # 1 - overlap that rounding alone makes
_LESS = 0.02  # of the budget: what is left of it on check-ins to come is explained beyond this
_USED_UP = 0.999  # of the budget
_MOST_USERS = 20
_WIDE_BELOW = 0.1  # of reports: an exposed share whose interval reaches further down is explained
_NOT_TESTED = "not tested"
NEEDS_LAW = (
    "needs the mechanism's law in one table, which functions, recorded pairs and noise over too"
    " many cells do not have: an sf.mechanism.Channel of reports and their chances has it"
)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; the first is flush left, the rest flush right.

    >>> print(text_table(["a", "b"], [["x", "10"]]))
    a   b
    x  10
    """
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def in_unit(value: str, unit: str) -> str:
    """A value with its unit behind it; a table of losses has none."""
    return f"{value} {unit}".rstrip()


def over_mark(row: Compared) -> str:
    """A mark beside a loss that is over its budget."""
    return "!" if row.over_by > 0 else ""


def posterior(value: float) -> str:
    """Two digits; what is not certain does not read 1.00."""
    return ">0.99" if 0.995 <= value < 1 - 1e-12 else f"{value:.2f}"


# One mechanism -----------------------------------------------------------------------------------


def exposed_note(judgement: Judgement) -> str:
    """What the interval of an estimated exposed share means, where it reaches far below the value;
    nothing elsewhere."""
    share = judgement.exposed
    if share.kind != "estimate" or not share.value - share.low > _WIDE_BELOW:
        return ""
    return (
        "The exposed share errs high: a cell with few reports looks certain. Its interval begins at"
        f" {share.low:.1%}: the other half of the reports confirms no more of what one half shows;"
        f" larger cells (--cell-m) or more reports narrow it."
    )


def judged_text(
    name: str, judged: Mapping[str, Judgement], *, max_loss: float | None = None, unit: str = "m"
) -> str:
    """A table of figures, one column per data set, and one of figures per user for the first."""
    columns = list(judged.values())
    first, label = columns[0], next(iter(judged))
    cell_m = first.bayes_error.cell_m
    cells = "own reports" if cell_m is None else f"{cell_m:g} m cells"
    digits = loss_digits(of_categories(first))
    lines = [
        [_loss_head(unit, max_loss), *[shown(j.loss, digits, interval=True) for j in columns]],
        [f"Bayes error ↑ ({cells})", *[shown(j.bayes_error, interval=True) for j in columns]],
        ["information, bits ↓", *[shown(j.information_bits, interval=True) for j in columns]],
        ["exposed reports ↓", *[shown(j.exposed, "{:.1%}", interval=True) for j in columns]],
        ["worst report ↓", *[f"{mark(j.exposed.kind)}{j.worst_report:.3f}" for j in columns]],
        ["reports outside the region", *[f"{j.outside:.2%}" for j in columns]],
    ]
    if any(j.learnt_error is not None for j in columns):
        errors = [
            "-" if j.learnt_error is None else shown(j.learnt_error, interval=True) for j in columns
        ]
        lines.append(["error of guesses learnt on training data ↑", *errors])
    if any(j.geo_epsilon is not None for j in columns):
        epsilons = [
            "-" if j.geo_epsilon is None else f"{j.geo_epsilon:.4g}".replace("inf", "infinite")
            for j in columns
        ]
        lines.append(["geo-indistinguishability, per metre ↓", *epsilons])
    users = list(first.per_user)
    hidden = max(0, len(users) - _MOST_USERS)
    if hidden:
        users = sorted(users, key=lambda user: (user.error, -user.exposed))[:_MOST_USERS]
    per_user = text_table(
        [
            f"{'secret' if of_categories(first) else 'user'}, {label}",
            in_unit("loss", unit),
            "error ↑",
            "exposed ↓",
        ],
        [[user.name, *_figures_of(user, digits)] for user in users],
    )
    more = f"\n… and {hidden} users who are harder to guess" if hidden else ""
    heads = ["its reports"] if list(judged) == [name] else [*judged]  # a file on itself
    return f"{text_table([name, *heads], lines)}\n\n{per_user}{more}"


def _loss_head(unit: str, max_loss: float | None) -> str:
    """The head of a row of losses: their unit, and the budget where there is one."""
    budget = "" if max_loss is None else f" (budget {max_loss:g})"
    return f"loss{unit and ', '}{'metres' if unit == 'm' else unit}{budget}"


def _figures_of(user: PerUser | None, digits: str = "{:.1f}") -> list[str]:
    """Loss, error and exposure of one user; a dash for what is not known."""
    forms = {"loss": digits, "error": "{:.3f}", "exposed": "{:.1%}"}
    values = [(form, None if user is None else getattr(user, p)) for p, form in forms.items()]
    return ["-" if value is None or isnan(value) else form.format(value) for form, value in values]


@show.text.register
def measured_text(measured: Measured) -> str:
    """The figures, other measures of the same table, and what else was asked for."""
    label, unit = next(iter(measured.judged)), measured.loss_unit
    parts = []
    if measured.to_come is not None:
        parts.append(outlook_text(measured.to_come, max_loss=measured.max_loss, unit=unit))
    held_out = {name: judgement for name, judgement in measured.judged.items() if name == TEST}
    judged = held_out | dict(measured.judged)
    parts.append(
        judged_text(measured.name, judged, max_loss=measured.max_loss, unit=unit)
        + f"\n{_tables_text(measured)}"
    )
    if note := exposed_note(measured.first):
        parts.append(note)
    if warned := [*over_budget(measured), *measured.warnings]:
        parts.append("\n".join(warned))
    if measured.priors is not None:
        parts.append(priors_text(measured.priors[label], label, unit=unit))
    if measured.membership is not None:
        parts.append(membership_text(measured.membership))
    if measured.membership_of_certificate is not None:
        parts.append(membership_text(measured.membership_of_certificate, file="the certificate"))
    return "\n\n".join([*parts, *asked_text(measured)])


def asked_text(measured: Measured) -> list[str]:
    """What is measured only where it is asked for."""
    unit, parts = measured.loss_unit, []
    if measured.gain is not None:
        gain, value = measured.gain
        about = mark(measured.first.bayes_error.kind)
        parts.append(f"g-vulnerability ({gain}) {about}{value:.3f}")
    if measured.attacks:
        parts.append(_attacks_text(measured.attacks))
    parts += [repeated_text(many, name, unit=unit) for name, many in measured.repeated.items()]
    if measured.traces is not None:
        parts.append(traces_text(measured.traces))
    for name in dict.fromkeys(name for user in measured.left_out for name in user.judged):
        judged = measured.judged[name]
        parts.append(left_out_text(measured.left_out, name, judged, unit=unit))
    return parts


def _tables_text(measured: Measured) -> str:
    about, values = mark(measured.first.bayes_error.kind), measured.first.tables
    said = [
        in_unit(f"{measure.words} {about}{value:.3f}", measure.unit)
        for key, measure in TABLE_MEASURES.items()
        if (value := values[key]) is not None
    ]
    return "\n" + ", ".join(said)


def _attacks_text(attacks: Sequence[Attack]) -> str:
    lines = [
        [attack.name, *[f"{s.accuracy:.3f} / {s.f1:.3f}" for s in attack.scores.values()]]
        for attack in attacks
    ]
    return text_table(["adversary: accuracy / F1", *attacks[0].scores], lines)


def kept_text(kept: Kept, *, seconds: float) -> str:
    """What `solve --details` prints: figures, how it ended."""
    solution = kept.solution
    judged = {} if kept.test is None else {TEST: kept.test}
    judged[TRAINING] = solution.measured
    problem = solution.problem
    unit = traits_of(problem.loss).unit
    table = judged_text(solution.name, judged, max_loss=problem.max_loss, unit=unit)
    if kept.to_come is not None:
        leads = outlook_text(kept.to_come, max_loss=problem.max_loss, unit=unit)
        table = f"{leads}\n\n{table}"
    linked = "" if kept.linked is None else linked_sentence(kept.linked, on=" on test data")
    written = f"Written to {kept.folder} after {seconds:.0f} s."
    said = (
        solution.status,
        *solution.warnings,
        linked,
        settled_text(kept),
        below_text(kept),
        written,
    )
    over = held_out_over(kept.test, kept.to_come, problem.max_loss, unit)
    return "\n".join(filter(None, [table, "  ".join(filter(None, said)), over]))


@show.text.register
def atlas_text(made: AtlasRun) -> str:
    """What `atlas` prints: figures of the whole against who is told the tile, and how many tiles
    have what."""
    record = made.run.record
    table = text_table(["all tiles", "training data"], atlas_lines(made))
    leads = ""
    if record.to_come is not None:
        leads = f"{outlook_text(record.to_come, max_loss=record.max_loss)}\n\n"
    ends = "  ".join(
        filter(None, [record.status, f"{record.seconds or 0.0:.1f} s.", alone_text(made)])
    )
    return f"{leads}{table}\n{ends}"


def alone_text(made: AtlasRun) -> str:
    """Why tiles have no Bayes error; nothing where each has one."""
    alone, tiles = len(made.alone), len(made.tiles)
    if not alone:
        return ""
    some = f"In {alone:,} of the {tiles:,} tiles near check-ins there was one user or none"
    whole = "; the figures of all tiles count them"
    if alone == tiles:
        some, whole = "In no tile were two users", ""
    return f"{some}. Nobody there can be taken for another, so no Bayes error is given (-){whole}."


def atlas_lines(made: AtlasRun) -> list[list[str]]:
    """The figures of an atlas on its training data."""
    record = made.run.record
    loss, error, bits = (
        Estimate(**record.train[name]) for name in ("loss", "bayes_error", "information_bits")
    )
    nobody = len(made.alone) == len(made.tiles)  # has a tile with others
    return [
        [_loss_head("m", record.max_loss), shown(loss, "{:.1f}")],
        ["Bayes error, at least ↑", "-" if nobody else f"{error.low:.3f}"],
        ["Bayes error of a blind guess, tile known", "-" if nobody else f"{made.blind:.3f}"],
        ["information, bits, at most ↓", f"{bits.high:.3f}"],
        ["exposed reports, tile known ↓", f"{record.train['exposed']:.1%}"],
    ]


def outlook_text(outlook: Outlook, *, max_loss: float | None = None, unit: str = "m") -> str:
    """What to expect of check-ins to come: figures with their intervals, and what simple mechanisms
    have there; how many check-ins would do, where these are too few for the loss."""
    over = "!" if max_loss is not None and outlook.over(max_loss) else ""
    rows = [
        [_loss_head(unit, max_loss), shown(outlook.loss, "{:.1f}", interval=True) + over],
        ["Bayes error ↑", shown(outlook.bayes_error, interval=True)],
        ["information, bits ↓", shown(outlook.information_bits, interval=True)],
        ["exposed reports ↓", shown(outlook.exposed, "{:.1%}", interval=True)],
    ]
    table = text_table(["on check-ins to come", f"{outlook.confidence:.0%} interval"], rows)
    beside = ", ".join(f"{name} {leakage:.3f}" for name, leakage in outlook.baselines.items())
    others = f"  Leakage there {outlook.leakage:.3f}; {beside}." if beside else ""
    few = "" if max_loss is None else too_few(outlook, max_loss)
    return f"{table}\n{measured_on(outlook)}{others}{few and f'  {few}'}"


def measured_on(outlook: Outlook) -> str:
    """What the figures on check-ins to come were measured on, in a sentence."""
    data = f"{outlook.checkins:,} check-ins"
    if outlook.folds:
        return (
            f"Cross-fitted: measured on {outlook.folds} folds of {data}, each by a mechanism made"
            " without it."
        )
    return f"Measured on {data} that were held out."


def outlook_note(outlook: Outlook | None, max_loss: float) -> str:
    """What figures on check-ins to come were measured on, and how many check-ins would do."""
    said = () if outlook is None else (measured_on(outlook), too_few(outlook, max_loss))
    return " ".join(filter(None, said))


def too_few(outlook: Outlook, max_loss: float) -> str:
    """Where the loss on check-ins to come is not known closely: how many check-ins would do.  Empty
    where it is."""
    if not outlook.says_little(max_loss):
        return ""
    half, needed = (outlook.loss.high - outlook.loss.low) / 2, outlook.checkins_for(max_loss)
    if needed is None:
        return "One check-in is too few to estimate the loss on those to come."
    return (
        f"The loss on check-ins to come is known only to within {half / max_loss:.0%} of the"
        f" budget either way; about {needed:,} check-ins would narrow that to 5%."
    )


def settled_text(kept: Kept) -> str:
    """From which loss a learned law was brought to its budget, where progress has shown another
    than the figures have."""
    solution = kept.solution
    facts, last = solution.ending.facts, solution.history[-1:]
    if not isinstance(facts, Learned) or facts.instead is not None or not last:
        return ""
    unit = traits_of(solution.problem.loss).unit
    before, after = (
        in_unit(f"{loss:.1f}", unit) for loss in (last[0]["loss"], solution.measured.loss.value)
    )
    if before == after:
        return ""
    ahead = " on check-ins to come" if kept.to_come is not None and kept.to_come.folds else ""
    if sure := getattr(solution.solver, "confidence", None):
        ahead += f" with {100 * sure:.4g} % confidence"
    return (
        f"Learning ended at a loss of {before}; then the noise was set for the budget{ahead}:"
        f" {after} on the training check-ins."
    )


def below_text(kept: Kept) -> str:
    """Why check-ins to come use clearly less than the budget; nothing where they do not, or where
    something else than the two reasons may be one."""
    solution, to_come = kept.solution, kept.to_come
    problem, facts = solution.problem, solution.ending.facts
    if problem.max_loss is None or to_come is None or problem.user_max_loss is not None:
        return ""
    less = 1 - to_come.loss.value / problem.max_loss
    if not less > _LESS or not isinstance(facts, Learned) or not facts.searched:
        return ""
    if facts.limits is not None or facts.loss is not None:  # both are said
        return ""
    said = f"Check-ins to come are expected to use {less:.1%} less than the budget"
    if solution.measured.loss.value > _USED_UP * problem.max_loss:
        return f"{said}: the training check-ins, which must keep it too, use it up."
    if sure := getattr(solution.solver, "confidence", None):
        return f"{said}, so that they keep it with {100 * sure:.4g} % confidence."
    return ""


def over_budget(measured: Measured) -> list[str]:
    """The data on which a mechanism costs more than its budget, one sentence each."""
    said, max_loss, unit = [], measured.max_loss, measured.loss_unit
    for label, judgement in measured.judged.items():
        if label == TEST:
            said.append(held_out_over(judgement, measured.to_come, max_loss, unit))
        elif label != TRAINING:
            whose = f"the check-ins of {printable(label)}"
            said.append(held_out_over(judgement, None, max_loss, unit, whose=whose))
        elif max_loss is not None and judgement.loss.low > max_loss * (1 + 1e-9):
            said.append(f"Warning: training check-ins {_lose(judgement.loss, max_loss, unit)}.")
    return list(filter(None, said))


def held_out_over(
    judged: Judgement | None,
    to_come: Outlook | None,
    max_loss: float | None,
    unit: str,
    *,
    whose: str = "held-out check-ins",
) -> str:
    """That held-out check-ins cost more than the budget, and whether chance explains it; nothing
    where they do not, or where they are what is shown of check-ins to come."""
    loss = None if judged is None else judged.loss_of_sample
    if to_come is not None and not to_come.folds:
        return ""
    if loss is None or max_loss is None or not loss.value > max_loss * (1 + 1e-9):
        return ""
    more = loss.low > max_loss
    around = f"95 % interval {loss.low:.1f} to {loss.high:.1f}"
    if loss.high == inf:
        around = "one check-in has no interval"
    return (
        f"{'Warning: ' + whose if more else whose[0].upper() + whose[1:]}"
        f" {_lose(loss, max_loss, unit)}, by {'more' if more else 'no more'} than chance explains"
        f" ({around})."
    )


def _lose(loss: Estimate, max_loss: float, unit: str) -> str:
    return (
        f"lose {in_unit(f'{loss.value:.1f}', unit)} on average, over the budget of"
        f" {in_unit(f'{max_loss:g}', unit)}"
    )


def round_text(line: Mapping[str, Any], *, unit: str) -> str | None:
    """What one round of a game, one part of a codebook's learning or a better proof has reached;
    None for what is only for the run's history."""
    if "progress" in line:
        return None
    if "resumed" in line:
        return f"resumed where it was stopped: {round_text(line['resumed'], unit=unit)}"
    if "proof_stopped" in line:
        kept = line["certificate"] is not None
        return f"the proof is stopped{'; the best bound so far is kept' * kept}"
    if "proof_bound" in line:
        low, high, what = line["proof_bound"], line["proof_least"], "the least leakage"
        if line["certificate"].objective == Bayes.name:
            low, high, what = 1 - high, 1 - low, "the largest Bayes error"
        gap, apart = line["proof_gap"], high - low
        ends = "" if gap is None else f"; the proof ends at {gap:g}"
        if gap is None and line["proof_least"] > 0:  # users are many: a Bayes error says little
            ends = f", {apart / line['proof_least']:.0%} of the leakage"
        return (
            f"{what} possible on this grid lies between {low:.4f} and {high:.4f}"
            f" ({apart:.4f} apart{ends})"
        )
    if "folds" in line:
        beside = " for one report" if line.get("for_one_report") else ""
        on = f"{line['folds']} folds{beside}, for check-ins to come"
        return f"{line['done']:.0%} of the learning on {on}"
    loss = in_unit(f"loss {line['loss']:.1f}", unit)
    if "done" in line:
        return (
            f"{line['done']:.0%} learned: {loss}, Bayes error {line['bayes_error']:.4f},"
            f" {line['information_bits']:.4f} bits on training data"
        )
    return (
        f"round {line['round'] + 1}, lattice {line['lattice_m']:g} m: payoff {line['payoff']:.4f},"
        f" {loss}, adversary right {line['accuracy_train']:.3f} /"
        f" {line['accuracy_validation']:.3f} (training / validation), validation Bayes error"
        f" {line['validation_bayes_error']:.3f}"
    )


def unmoved_text(proof: str, *, since: str) -> str:
    """A proof that has got no further for some seconds."""
    return f"{proof}; not moved since {since}, the proof continues"


def proof_text(solution: Solution, gap: Gap | None) -> str:
    """What the proof that followed a solve came to."""
    ended = proof_sentence(solution.ending, bound=gap is not None)
    if gap is None:
        return f"{ended} {NOTHING_PROVED.capitalize()} of how little a mechanism can leak.".strip()
    return f"{proved_text(gap, solution.problem)} {ended}".strip()


def proved_text(gap: Gap, problem: Problem) -> str:
    """What is proved of a learned mechanism, in a sentence."""
    leaks = f"On training data it leaks {gap.leakage:z.4f} ({problem.objective.unit})"
    if gap.nearly_blind:
        return f"{leaks}; {_no_less_than_blind(gap)}."
    if not gap.says_something(gap.bounds.grid) and not gap.leakage <= gap.blind:
        beside = relative_text(gap.relative)
        return f"{leaks}; {NOTHING_PROVED} of how little a mechanism can leak.{beside}"
    return (
        f"{leaks}; no mechanism on this grid within the budgets leaks less than"
        f" {max(gap.bounds.grid, 0.0):z.4f} (proved).{relative_text(gap.relative)}"
    )


def _no_less_than_blind(gap: Gap) -> str:
    return f"no mechanism leaks less than the {gap.blind:.4f} of a blind guess"


def relative_text(found: Relative | None) -> str:
    """The vulnerability beside the blind guess, a further sentence; nothing where users are few.

    >>> relative_text(Relative(4.0, 2.0))
    ' The best guess is right 4.0 times as often as a blind one (2.00 bits), which is 2.00 times\
 the least that is proved for any mechanism within the budget.'
    """
    if found is None:
        return ""
    said = (
        f" The best guess is right {found.times:.1f} times as often as a blind one"
        f" ({found.bits:z.2f} bits)"
    )
    if not found.least_times > 1 + 1e-9:  # a blind guess's: nothing is proved
        return f"{said}."
    return (
        f"{said}, which is {found.of_least:.2f} times the least that is proved for any mechanism"
        " within the budget."
    )


# Other users, repeated reports -------------------------------------------------------------------


def repeated_text(many: Repeated, label: str, *, unit: str = "m") -> str:
    """Bayes errors on one set of data: one column per number of reports and one for endlessly
    many, one row per way of sending them."""
    same = len(many.counts) + 1
    rows = [
        ["one place, a new draw for each", *map(shown, many.fresh), shown(many.endless)],
        ["one place and period, the first report kept", *[shown(many.first)] * same],
    ]
    if many.middle is not None:
        answered = f"the middle of its {many.sticky_cell_m:g} m cell answered"
        rows.append([f"one place and period, {answered}", *[shown(many.middle)] * same])
        periods = map(shown, many.middle_periods or ())
        rows.append(["one place, a new period for each, middles answered", *periods, "-"])
    rows.append(["another place of the user for each", *map(shown, many.places), "-"])
    if many.middle_places is not None:
        places = map(shown, many.middle_places)
        rows.append(["another place of the user for each, middles answered", *places, "-"])
    head = [f"Bayes error ↑ by number of reports seen, {label}", *map(str, many.counts), "endless"]
    return f"{text_table(head, rows)}\n{' '.join(_repeated_notes(many, unit))}"


def _repeated_notes(many: Repeated, unit: str) -> list[str]:
    """How the figures were got, what keeping costs, and what it leaves open."""
    groups = (many.fresh, many.places, many.middle_periods, many.middle_places)
    drawn = [error for several in groups for error in several or () if error.kind == "estimate"]
    notes = []
    if drawn:
        wide = max(max(error.high - error.value, error.value - error.low) for error in drawn)
        least = min(error.hits or 0 for error in drawn)
        notes.append(
            f"≈ from at least {least} lists of reports drawn from the law: unbiased, given the law,"
            f" and within {wide:.3f} (95 %)."
        )
    if many.middle_loss is not None:
        notes.append(
            f"Answering middles costs {in_unit(f'{many.middle_loss:.1f}', unit)} on average."
        )
    notes.append(
        f"The two users who are told apart most easily overlap by {many.overlap:.3f} per report"
        " (1: never told apart)."
    )
    notes.append(
        "Keeping reports does not cover other periods and other places: each brings a report of"
        " its own."
    )
    return notes


def traces_text(traces: TracesFound) -> str:
    """The share of traces that is found: one row per way of reporting, one column per adversary."""
    first = next(iter(traces.found.values()))
    head = [
        f"traces found ↓, {first.traces} traces of {traces.users} users",
        "loss m",
        *(_ADVERSARIES[who] for who in first.shares),
    ]
    rows = [
        [name, f"{figures.loss_m:,.0f}", *map(share_shown, figures.shares.values())]
        for name, figures in traces.found.items()
    ]
    note = (
        "Each adversary guesses the user of a whole trace, and knows the user's other traces"
        f" ({traces.named} in all): their true places and the law of the reports (law), how the"
        " user moves between places as well (chain), or only their named reports (named history)."
        f" A blind guess finds about {traces.blind:.1%}. 95 % intervals over traces; cleverer"
        " adversaries may find more."
    )
    return f"{text_table(head, rows)}\n{note}"


_NEARLY_ALL = 0.9
_ADVERSARIES: Mapping[Who, str] = {
    "law": "law",
    "chain": "chain",
    "history": "named history",
    "period": "one period",
    "all": "sees all",
    "counts": "law and counts",
}


@show.text.register
def policy_text(choice: PolicyChoice) -> str:
    """One row per way of keeping, one column per adversary, and what the rule says."""
    shown = choice.best.shown
    head = [
        f"traces found ↓, {shown.traces} traces of {choice.users} users, budget"
        f" {choice.budget:,.0f} m",
        "loss m",
        *(_ADVERSARIES[who] for who in shown.shares),
    ]
    rows = [
        [
            ("→ " if way is choice.best else "") + way.keeping.words,
            f"{way.shown.loss_m:,.0f}" + ("" if way.within_budget else " !"),
            *map(share_shown, way.shown.shares.values()),
        ]
        for way in choice.ways
    ]
    notes = [
        "Law: knows true places of named traces and the mechanism's law. Named history: has reports"
        " of named traces. One period: law, where names change with the period, so that one period"
        " (one report, where none is kept) is all that is linked. Sees all: law and named history,"
        " whole traces.",
        f"Recommended (→): {choice.best.keeping.words}. {_why(choice)} One report for all users is"
        " measured and not recommended: anyone who knows one user's place then knows everybody's.",
    ]
    if any(not way.within_budget for way in choice.ways):
        notes.append(f"! over the budget of {choice.budget:g} m, by more than chance explains.")
    if shown.worst.low > _NEARLY_ALL:
        notes.append(
            f"Nearly all traces are found however reports are kept: {share_shown(shown.worst)} by"
            " the recommended way. A larger budget, or a mechanism made for more reports, hides"
            " more."
        )
    return f"{text_table(head, rows)}\n" + "\n".join(notes)


def _why(choice: PolicyChoice) -> str:
    if not choice.best.eligible:
        return (
            f"No way is within the budget of {choice.budget:g} m on these traces: solve with data"
            " like them, or with a larger budget."
        )
    return (
        "Each way within the budget is judged by the adversary who finds most traces. This way has"
        f" the smallest share found on the {choice.best.chosen_by.traces} other traces, which chose"
        f" it: {choice.best.chosen_by.worst.value:.1%}.{_fewer_here(choice)}"
    )


def _fewer_here(choice: PolicyChoice) -> str:
    """Where the traces of the table, which did not choose, would have chosen another way: so."""
    eligible = [way for way in choice.ways if way.eligible]
    here = min(eligible, key=lambda way: way.shown.worst.value)
    if not here.shown.worst.value < choice.best.shown.worst.value:
        return ""
    return (
        f" In the table, which did not choose, {here.keeping.words} has fewer"
        f" ({here.shown.worst.value:.1%}, and {choice.best.shown.worst.value:.1%} for the way"
        " chosen); the halves differ by chance."
    )


def of_categories(judgement: Judgement) -> bool:
    """Whether its secrets are no users: the law of a table that is no sample of check-ins."""
    return judgement.checkins is None and judgement.bayes_error.kind == "exact"


def share_shown(share: Estimate) -> str:
    """A share with its interval, in percent."""
    return f"{share.value:.1%} [{share.low:.1%}, {share.high:.1%}]"


def priors_text(priors: Priors | None, label: str, *, unit: str = "m") -> str:
    """Loss and leakage under other shares of the users."""
    if priors is None:
        return f"Other shares of the users: not computed; this {NEEDS_LAW}."
    chosen = {
        "as in the data": priors.given,
        "equal": priors.equal,
        f"{priors.easiest.name} twice (least error)": priors.easiest,
        f"{priors.dearest.name} twice (most loss)": priors.dearest,
    }
    heads = [in_unit("loss", unit), "Bayes error ↑", "a blind guess", "info bits ↓"]
    lines = [[name, *_under(under)] for name, under in chosen.items()]
    return (
        f"{text_table([f'shares, {label}', *heads], lines)}\n"
        f"Whatever the shares: the best guess is right at most {priors.capacity:.2f} times as often"
        f" as a blind one, and the loss is at most"
        f" {in_unit(f'{priors.largest_loss:.1f}', unit)}."
    )


def _under(under: UnderPrior) -> list[str]:
    return [
        f"{under.loss:.1f}",
        f"{under.bayes_error.value:.3f}",
        f"{under.blind:.3f}",
        f"{under.information_bits.value:.3f}",
    ]


def left_out_heads(unit: str = "m") -> list[str]:
    """The columns' heads of `left_out_rows`, with the loss's unit."""
    return [
        *(in_unit("loss", unit), "Bayes error ↑"),
        *(in_unit("user's loss", unit), "in training", "user's error ↑", "in training"),
        *("user exposed ↓", "in training"),
    ]


def left_out_rows(users: Sequence[LeftOutUser], label: str, trained: Judgement) -> list[list[str]]:
    """One row for the mechanism that saw everybody, then one per user left out: all users'
    figures, the user's, and what they were."""

    def everybody(judged: Judgement) -> list[str]:
        loss = "-" if isnan(judged.loss.value) else shown(judged.loss, "{:.1f}")
        return [loss, shown(judged.bayes_error)]

    rows = [["nobody", *everybody(trained), *["-"] * 6]]
    for user in users:
        pairs = zip(
            _figures_of(user.of_user(label)), _figures_of(user_of(trained, user.user)), strict=True
        )
        own = [figure for pair in pairs for figure in pair]
        rows.append([user.user, *everybody(user.judged[label]), *own])
    return rows


def left_out_text(
    users: Sequence[LeftOutUser], label: str, trained: Judgement, *, name: str = "", unit: str = "m"
) -> str:
    """What leaving each user out of training did, on one set of data."""
    head = f"{name and f'{name}: '}left out of training, {label}"
    return text_table([head, *left_out_heads(unit)], left_out_rows(users, label, trained))


@show.text.register
def verdict_text(found: Membership) -> str:
    """What a file tells about its training points, in a sentence."""
    if found.listed == 1:
        return (
            "The file lists its training points: anyone with the file has them. Keep it as you"
            " keep the data."
        )
    if found.listed > 0:
        return (
            f"{found.listed:.1%} of the training points are in the file: anyone with the file"
            " has them."
        )
    if found.telling is None:
        return (
            f"Not tested: {found.points} places are seen once on either side; expected at least"
            f" {FEWEST}."
        )
    name, auc = found.telling
    if auc.low <= 0.5 <= auc.high:
        return "None of these scores distinguishes training points from held-out ones."
    return (
        f"The score '{name}' distinguishes training points from held-out ones better than a"
        " coin toss."
    )


def membership_text(found: Membership, *, file: str = "the file") -> str:
    """What the file of the mechanism, or of the certificate, tells about its training points."""
    if not found.scores:
        return f"what {file} reveals about its training points: {found.verdict}"
    lines = [[name, shown(auc, interval=True)] for name, auc in found.scores.items()]
    head = f"is a place a training point? {found.points} against {found.points} held out"
    return f"{text_table([head, 'AUC (0.5 is a coin toss)'], lines)}\n{found.verdict}"


def file_tells(found: Membership | None) -> str:
    """What a file tells about its training points, in a few words."""
    if found is not None and found.listed:
        return f"lists {found.listed:.0%} of its training points"
    if found is None or found.telling is None:
        return _NOT_TESTED
    return shown(found.telling[1], interval=True)


# Several mechanisms ------------------------------------------------------------------------------


@show.text.register
def comparison_text(comparison: Comparison) -> str:
    """Three tables, one row per mechanism, and one more per mechanism whose users were left
    out."""
    rows, unit = comparison.rows, common_unit(comparison.rows)
    to_come = any(row.to_come is not None and row.to_come.folds for row in rows)
    header = [
        *("mechanism", *to_come_heads(unit) * to_come),
        *(in_unit("loss", unit or ""), "Bayes error ↑", "info bits ↓"),
        *("exposed ↓", "worst report ↓", "learnt error ↑", "gap ↓", "cell m"),
    ]
    lines = [_compared_line(row, loss_form(row, comparison), to_come=to_come) for row in rows]
    marks = "≈ estimated from samples, otherwise computed from the mechanism's law"
    gaps = [row.gap for row in rows if row.gap is not None]
    if any(gap.proved_anything for gap in gaps):
        categories = isinstance(comparison.on, CategoricalData)
        data = "the data" if categories else "training check-ins"
        marks += (
            f"; gap: leakage on {data} above the least possible (proved; for reports off the grid,"
            " on the plane)"
        )
    if missing := gaps_missing(comparison):
        marks += f"; gap -: {missing}"
    if any(map(over_mark, rows)):
        marks += "; ! over its budget here"
        marks += " by more than its interval" if any(row.held_out for row in rows) else ""
    if to_come:
        marks += (
            "; to come: with 95% intervals, cross-fitted on training data, or (h) on held-out"
            " check-ins"
        )
    measures = [measure.head for measure in TABLE_MEASURES.values()]
    tables = text_table(["other measures", *measures], [tables_line(row) for row in rows])
    heads = [
        *("other users than these", "error, equal shares ↑", "error, one user doubled ↑"),
        *("loss, one user doubled ↓", "training points in its file"),
    ]
    others = text_table(heads, [_other_users_line(row) for row in rows])
    warned = [f"{row.name}: {warning}" for row in rows for warning in row.contender.warnings]
    parts = [
        "\n".join(
            [text_table(header, lines), *map(printable, [counted_on(comparison), marks, *warned])]
        ),
        tables,
        f"{others}\none user doubled: with twice the check-ins of the user for whom that is"
        " worst; training points in its file: how well anyone with the file tells them from"
        " held-out points (AUC, 0.5 is a coin toss)"
        + f"; not computed: {NEEDS_LAW}" * any(row.priors is None for row in rows)
        + f"; not tested: {_needs_points(comparison)}"
        * any(file_tells(row.membership) == _NOT_TESTED for row in rows),
    ]
    return "\n\n".join([*parts, *left_out_parts(rows)])


def _needs_points(comparison: Comparison) -> str:
    """Why it is not tested what a file tells about its training points."""
    if isinstance(comparison.on, CategoricalData):
        return "a table of chances holds no training points"
    return (
        "needs the training check-ins that a run or solution was made from, and on either side"
        f" {FEWEST} places seen once"
    )


def common_unit(rows: Sequence[Compared]) -> str | None:
    """The unit of all losses; None where they differ, and each row says its own."""
    units = {row.loss_unit for row in rows}
    return units.pop() if len(units) == 1 else None


def loss_digits(categories: bool) -> str:
    """How many digits of a loss are shown: a decimetre, or a thousandth of the table's unit."""
    return "{:.3f}" if categories else "{:.1f}"


def loss_form(row: Compared, comparison: Comparison) -> str:
    """How a loss is written in a comparison."""
    form = loss_digits(isinstance(comparison.on, CategoricalData))
    return form if common_unit(comparison.rows) is not None else f"{form} {row.loss_unit}"


def counted_on(comparison: Comparison) -> str:
    """What the figures are measured on, and how often a blind guess errs there."""
    on = comparison.on
    counted = f"truths and {len(on.secrets):,} secrets"
    if not isinstance(on, CategoricalData):
        held_out = "held-out " * all(row.held_out for row in comparison.rows)
        counted = f"{held_out}check-ins of {len(on.secrets):,} users"
    return f"on {on.name}: {len(on):,} {counted}; a blind guess errs {comparison.blind_error:.3f}"


def left_out_parts(rows: Sequence[Compared]) -> list[str]:
    """A table for each mechanism whose users were left out."""
    return [
        left_out_text(row.left_out, label, row.measured, name=row.name, unit=row.loss_unit)
        for row in rows
        for label in dict.fromkeys(label for user in row.left_out for label in user.judged)
    ]


def to_come_heads(unit: str | None) -> tuple[str, str]:
    """The columns' heads of `figures_to_come`."""
    return in_unit("to come: loss", unit or ""), "to come: Bayes error ↑"


def figures_to_come(row: Compared, loss_form: str = "{:.1f}") -> tuple[str, str]:
    """Loss and Bayes error on check-ins to come with their intervals; a dash for what is not
    known."""
    outlook, budget = row.to_come, row.contender.max_loss
    if outlook is None:
        return "-", "-"
    over = "!" if budget is not None and outlook.over(budget) else ""
    held_out = "" if outlook.folds else " (h)"
    loss = shown(outlook.loss, loss_form, interval=True)
    return f"{loss}{over}{held_out}", shown(outlook.bayes_error, interval=True)


def gap_text(gap: Gap | None) -> str:
    """A gap in a table; a dash where nothing is proved."""
    if gap is None or not gap.proved_anything or gap.value is None:
        return "-"
    return f"{'≈' * gap.estimated}{gap.value:z.3f}"


def gap_missing(row: Compared) -> str:
    """Why a mechanism has no gap, and what to do where there is something; nothing where it has
    one."""
    gap = row.gap
    if gap_text(gap) != "-":
        return ""
    if gap is None:
        return "over its budget" if row.over_by > 0 else "no proof was asked for: certify makes one"
    if not gap.proved_anything:
        return "nothing is proved beyond a blind guess: certify may prove more"
    return "its reports are not on the grid of the proof: certify proves for any"


def gaps_missing(comparison: Comparison) -> str:
    """Why mechanisms have no gap, in few words; nothing where all have one."""
    why: dict[str, list[str]] = {}
    proved = any(row.gap is not None for row in comparison.rows)
    for row in comparison.rows:
        reason = gap_missing(row)
        if reason and row.gap is None and comparison.train is None:
            reason = "the training data was not given (train=)"
        elif reason and row.gap is None and proved and not (row.contender.status or row.over_by):
            reason = "over the proved budget on training check-ins, or held to another"
        if reason:
            why.setdefault(reason, []).append(row.name)
    return ", ".join(f"{reason} ({', '.join(names)})" for reason, names in why.items())


def _compared_line(row: Compared, loss_form: str, *, to_come: bool) -> list[str]:
    judgement, gap = row.measured, row.gap
    return [
        row.name,
        *figures_to_come(row, loss_form) * to_come,
        shown(judgement.loss, loss_form) + over_mark(row),
        shown(judgement.bayes_error),
        shown(judgement.information_bits),
        shown(judgement.exposed, "{:.1%}"),
        f"{mark(judgement.exposed.kind)}{posterior(judgement.worst_report)}",
        "-" if judgement.learnt_error is None else shown(judgement.learnt_error),
        gap_text(gap),
        "own" if judgement.bayes_error.cell_m is None else f"{judgement.bayes_error.cell_m:g}",
    ]


def tables_line(row: Compared) -> list[str]:
    """A mechanism's name and what the measures of `TABLE_MEASURES` say of it."""
    about = mark(row.measured.bayes_error.kind)
    values = row.measured.tables.values()
    return [row.name, *("-" if value is None else f"{about}{value:.3f}" for value in values)]


def _other_users_line(row: Compared) -> list[str]:
    shares, priors = ["not computed"] * 3, row.priors
    if priors is not None:
        easiest, dearest = priors.easiest, priors.dearest
        shares = [
            f"{priors.equal.bayes_error.value:.3f}",
            f"{easiest.bayes_error.value:.3f} ({easiest.name})",
            f"{dearest.loss:.1f} ({dearest.name})",
        ]
    return [row.name, *shares, file_tells(row.membership)]


# Proofs ------------------------------------------------------------------------------------------


@show.text.register
def certified_text(certified: Certified) -> str:
    """One sentence, and more where only the plane's bound holds or the budget is not kept."""
    problem, gap = certified.problem, certified.gap
    if isinstance(problem.objective, Overlap):
        return _linked_text(problem, gap)
    unit = " bits" if problem.objective.unit == "bits" else ""
    leaks = f"This mechanism leaks {gap.leakage:z.4f}{unit} (exact, on its own reports)"
    if gap.nearly_blind and gap.within_budgets:
        return f"{leaks}; {_no_less_than_blind(gap)}; gap {gap.leakage - gap.blind:z.4f}."
    if not gap.proved_anything:
        return (
            f"{leaks}; {NOTHING_PROVED} of how little a mechanism within {_budget(problem)} can"
            f" leak: the bound is what a blind guess leaks, {gap.blind:.4f}{unit}."
            f"{relative_text(gap.relative)}"
        )
    grid, plane = gap.bounds.grid, gap.bounds.plane
    where = (
        "makes these reports"
        if problem.region is None
        else f"reports on this {problem.grid.cell_m:g} m grid"
    )
    text = (
        f"{leaks}; no mechanism within {_budget(problem)} that {where} can leak less than"
        f" {max(grid, 0.0):z.4f}{unit}"
    )
    gaps = f"{gap.leakage - grid:z.4f}"
    if plane is not None:
        text += f"; anywhere on the plane, less than {max(plane, 0.0):z.4f}{unit}"
        gaps += f" on the grid, {gap.leakage - plane:z.4f} on the plane"
    text += f"; gap {gaps}.{relative_text(gap.relative)}"
    if gap.bounds.all_cells is not None and gap.bounds.cells < gap.bounds.all_cells:
        text += (
            f" Of the grid's {gap.bounds.all_cells} cells the {gap.bounds.cells} about the truths'"
            " hull were checked; the bound on the grid holds for reports there."
        )
    if not gap.on_grid:
        text += " It does not report on that grid, so only the bound on the plane holds for it."
    if not gap.within_budgets:
        which = f"budget (its average loss is {gap.loss:.4g})"
        if gap.over_cap:
            which = "cap on the distance (a report of it can be further off)"
        text += f" It is over its own {which}, so its gap says nothing about how good it is."
    return text


def _linked_text(problem: Problem, gap: Gap) -> str:
    """What is proved of linked reports: the least overlap, or the smallest loss for endless
    ones."""
    where = "these reports" if problem.region is None else f"this {problem.grid.cell_m:g} m grid"
    if problem.seeks_endless_budget:
        unit = traits_of(problem.loss).unit
        loss, least = (in_unit(f"{number:.5g}", unit) for number in (gap.leakage, gap.bounds.grid))
        text = (
            f"From {loss} on linking is useless for these check-ins: at that loss this mechanism"
            " reports with one law"
            f" for all users; no mechanism on {where} does so below {least}"
        )
        gaps = f"{gap.leakage / gap.bounds.grid - 1:z.2%}"
        if gap.bounds.plane is not None:
            below = in_unit(f"{gap.bounds.plane:.5g}", unit)
            text += f", none anywhere on the plane below {below}"
            gaps += f" on the grid, {gap.leakage / gap.bounds.plane - 1:z.2%} on the plane"
        text += f"; gap {gaps}."
        if not gap.within_budgets:
            text += " It does not: its users' laws differ, so the figures say nothing about it."
        return text
    overlap, most = 1 - gap.leakage, 1 - max(gap.bounds.grid, 0.0)
    text = f"Under this mechanism any two users overlap by at least {overlap:.4f} per report"
    if gap.leakage <= _ALIKE:
        return f"{text}: linking is useless for these check-ins, and no mechanism can do better."
    if not gap.proved_anything:
        return f"{text}; {NOTHING_PROVED} of how much they can overlap within {_budget(problem)}."
    text += (
        f"; no mechanism within {_budget(problem)} on {where} keeps every pair above {most:.4f}:"
        f" with every mechanism some pair is told apart at a rate of at least {-log(most):.4f}"
        " nats per report"
    )
    gaps, plane = f"{most - overlap:z.4f}", gap.bounds.plane
    if gap.says_something(plane):
        assert plane is not None
        text += f"; anywhere on the plane, above {1 - plane:.4f}"
        gaps += f" on the grid, {1 - plane - overlap:z.4f} on the plane"
    text += f"; gap {gaps}."
    if not gap.on_grid:
        only = "so only the bound on the plane holds for it"
        text += " It does not report on that grid, "
        text += f"{only}." if gap.says_something(plane) else "so the bound does not hold for it."
    if not gap.within_budgets:
        text += " It is over its own budget, so its gap says nothing about how good it is."
    return text


def _budget(problem: Problem) -> str:
    unit = traits_of(problem.loss).unit
    parts = [] if problem.max_loss is None else [in_unit(f"{problem.max_loss:g}", unit)]
    if problem.user_max_loss is not None:
        parts.append("the budgets per user")
    if problem.max_distance is not None:
        parts.append(f"{in_unit(f'{problem.max_distance:g}', unit)} at most")
    return " and ".join(parts)


@show.text.register
def cross_fitted_text(bound: CrossFitted) -> str:
    """What no mechanism goes beyond on check-ins to come, proved from the training data alone."""
    start = (
        f"On check-ins to come, with {100 * bound.confidence:g} % confidence (by"
        f" {bound.judged:,} training check-ins, each judged by a certificate made without it):"
    )
    if bound.best_error is not None:
        return f"{start} no mechanism on this grid within the budgets has a Bayes error above" + (
            f" {bound.best_error:.4f}."
        )
    return (
        f"{start} no mechanism on this grid within the budgets leaks less than {bound.least:.4f}."
    )


def _linked_population_text(proved: PopulationCertificate) -> str:
    """The same for linked reports: overlaps, or the loss from which linking is useless."""
    unit, text = proved.loss_unit, f"{_held_out(proved)} "
    if proved.most is not None:
        text += f"under this mechanism any two users overlap by at least {1 - proved.most:.4f}, "
    loss = in_unit(f"{proved.loss.low:.1f} to {proved.loss.high:.1f}", unit)
    text += f"{'its' if proved.most is None else 'and its'} loss is {loss}; "
    kinds = _proved_there(proved)
    if isinstance(proved.objective, Endless):
        every = "of every mechanism that gives all users one law, even one that knows its user,"
        said = [f"with reports {where} a loss of at least {least:.1f}" for where, least in kinds]
        said = [in_unit(phrase, unit) for phrase in said]
    else:
        budget = "the budgets" if proved.max_loss is None else f"{proved.max_loss:g} {unit}"
        every = f"of every mechanism within {budget.rstrip()}, even one that knows its user,"
        said = [
            f"with reports {where} some two users overlap by at most {1 - least:.4f}, so they are"
            f" told apart at a rate of at least {-log(1 - least):.4f} nats per report"
            for where, least in kinds
        ]
    text += f"{every} {'; '.join(said)}." if said else f"{NOTHING_PROVED} {every[:-1]}."
    return text + _cut(proved)


def _proved_there(proved: PopulationCertificate) -> list[tuple[str, float]]:
    """Where reports lie and the bound there, where that says more than a blind guess."""
    kinds = [(f"on this {proved.cell_m:g} m grid", proved.least_grid)]
    if proved.least_plane is not None:
        kinds.append(("anywhere on the plane", proved.least_plane))
    return [(where, least) for where, least in kinds if least > proved.blind + 1e-9]


def _held_out(proved: PopulationCertificate) -> str:
    return (
        f"On check-ins to come, with {100 * proved.confidence:g} % confidence (by"
        f" {proved.checkins:,} held-out check-ins of {proved.users} users, their shares"
        f" {proved.shares}):"
    )


def _cut(proved: PopulationCertificate) -> str:
    """A further sentence where some losses count as less than they are."""
    if not proved.above:
        return ""
    farthest = in_unit(f"{proved.farthest:.0f}", proved.loss_unit)
    return f" {proved.above} of them cost more than {farthest} and count as that in the loss."


@show.text.register
def population_text(proved: PopulationCertificate) -> str:
    """What holds for check-ins to come: this mechanism, every other, and how narrow it is."""
    if isinstance(proved.objective, Overlap):
        return _linked_population_text(proved)
    bayes, unit = isinstance(proved.objective, Bayes), proved.loss_unit
    bits = " bits" if proved.objective.unit == "bits" else ""
    reached, possible = proved.shown
    least, loss = proved.least, proved.loss
    budget = [] if proved.max_loss is None else [f"{proved.max_loss:g} {unit}".rstrip()]
    budget += ["the budgets per user"] if proved.user_budgets else []
    if proved.max_distance is not None:
        budget.append(f"{proved.max_distance:g} {unit} at most")
    parts = [_held_out(proved)]
    if reached is None:
        parts.append("this mechanism's law is not finite, so nothing is proved of its leakage;")
    elif bayes:
        parts.append(f"this mechanism has a Bayes error of at least {max(reached, 0.0):.4f}")
    else:
        parts.append(f"this mechanism leaks at most {reached:.4f}{bits}")
    parts.append(
        f"{'its' if reached is None else 'and a'} loss {'is ' if reached is None else 'of '}"
        f"{loss.low:.1f} to {loss.high:.1f} {unit}".rstrip()
        + ";"
    )
    said = [
        f"reports {where}: {'at most' if bayes else 'at least'}"
        f" {1 - bound if bayes else max(bound, 0.0):.4f}{bits}"
        for where, bound in _proved_there(proved)
    ]
    within = f"mechanism within {' and '.join(budget)}"
    parts.append(
        f"of every {within}, even one that knows its user, {'; '.join(said)}."
        if said
        else f"{NOTHING_PROVED} of how well any {within} can hide."
    )
    text = " ".join(parts)
    if proved.bracket is not None and least is not None and possible is not None and said:
        low, high = proved.bracket
        if bayes:  # what needs no proof
            low, high = max(low, 0.0), min(high, 1 - proved.blind)
        what = "Bayes error" if bayes else "leakage"
        text += (
            f" The best {what} at a loss of {proved.at_loss:.1f} {unit}".rstrip()
            + f" lies within {low:.4f} and {high:.4f}, {high - low:.4f} apart."
        )
    enough = proved.needed() if bayes else None
    if enough is not None:
        what = "that" if said else "what is known of the best Bayes error"
        text += f" About {enough:,} check-ins would bring {what} to within {USEFUL:g}."
    text += _cut(proved)
    if proved.all_cells is not None and proved.cells < proved.all_cells:
        text += (
            f" Of the grid's {proved.all_cells} cells the {proved.cells} about the truths' hull"
            " were checked."
        )
    if proved.mixed:
        text += f" {proved.mixed:.0%} of the prior is mixed into the posteriors of the proof."
    return text


@show.text.register
def trade_off_text(trade_off: TradeOff) -> str:
    """The proven curve as a table, and the mechanisms beside it."""
    frontier, unit = trade_off.frontier, trade_off.loss_unit
    bayes, bits = frontier.bayes, frontier.information
    at_most = [
        f"{1 - bound:.4f}" if said else "-"
        for bound, said in zip(bayes.bound, bayes.beyond_blind, strict=True)
    ]
    at_least = [
        f"{bound:z.4f}" if said else "-"
        for bound, said in zip(bits.bound, bits.beyond_blind, strict=True)
    ]
    lines = [
        [
            f"{budget:g}",
            f"{1 - bayes.reached[at]:.4f}",
            at_most[at],
            f"{bits.reached[at]:z.4f}",
            at_least[at],
        ]
        for at, budget in enumerate(frontier.budgets)
    ]
    curve = text_table(
        [f"max loss {unit}", "Bayes error ↑", "at most", "info bits ↓", "at least"], lines
    )
    placed = [
        [
            place.name,
            f"{place.loss:.1f}",
            f"{mark(place.kind)}{place.bayes_error:.4f}",
            f"{mark(place.kind)}{place.information_bits:.4f}",
            *_placed_to_come(place.to_come) * bool(trade_off.to_come),
        ]
        for place in trade_off.placed
    ]
    proved = " and ".join(
        f"{curve.gap:.4f} {name}" if curve.proved_anything else f"{NOTHING_PROVED} {name}"
        for curve, name in ((bayes, "(Bayes error)"), (bits, "bits"))
    )
    if not bayes.proved_anything and not bits.proved_anything:
        proved = NOTHING_PROVED
    elif bayes.proved_anything:
        proved = f"proved to {proved}"
    samples = frontier.problem.samples
    notes = f"on {len(samples):,} training check-ins of {len(samples.secrets):,} users"
    notes += f"; reports on {frontier.problem.grid.cell_m:g} m cells\n{proved}"
    if "-" in (*at_most, *at_least) and proved != NOTHING_PROVED:
        notes += "; -: nothing proved there beyond a blind guess"
    notes += "\nat most, at least: proved for every mechanism; before them: the best found"
    if any(place.kind != "exact" for place in trade_off.placed):
        notes += "; ≈ estimated from samples"
    to_come = tuple(
        f"to come: {figure}" for figure in (f"loss {unit}", "Bayes error ↑", "info bits ↓")
    ) * bool(trade_off.to_come)
    heads = ["mechanism", f"loss {unit}", "Bayes error ↑", "info bits ↓", *to_come]
    others = text_table(heads, placed)
    beyond = ""
    if trade_off.beyond:
        beyond = (
            f"\n{', '.join(map(printable, trade_off.beyond))}: above the curve somewhere, with"
            " reports that are not on these cells"
        )
    return f"{curve}\n{notes}\n\n{others}{beyond}"


@show.text.register
def linked_trade_off_text(trade_off: LinkedTradeOff) -> str:
    """Bayes errors by budget and number of reports, how similar users can be made, and from
    where on linking is useless."""
    unit = trade_off.loss_unit
    heads = [f"max loss {unit}", *(f"Bayes error ↑ of {count}" for count in trade_off.counts)]
    lines = [
        [
            f"{point.max_loss:g}",
            *map(shown, point.bayes_errors),
            f"{point.overlap:.4f}",
            f"{point.overlap_bound:.4f}",
        ]
        for point in trade_off.points
    ]
    table = text_table([*heads, "least overlap ↑", "at most"], lines)
    notes = (
        f"reports on {trade_off.problem.grid.cell_m:g} m cells; a mechanism for each number of"
        " reports, on training data; the least overlap of two users is proved"
    )
    if any(error.kind != "exact" for point in trade_off.points for error in point.bayes_errors):
        notes += "; ≈ from reports drawn from the law"
    if trade_off.endless is None:
        return f"{table}\n{notes}"
    loss, bound = (
        in_unit(f"{value:.4g}", unit) for value in (trade_off.endless.loss, trade_off.endless.bound)
    )
    return (
        f"{table}\n{notes}\nFrom {loss} on linking is useless: no number of reports reveals"
        " anything"
        f" (proved: not below {bound})."
    )


def _placed_to_come(outlook: Outlook | None) -> tuple[str, str, str]:
    if outlook is None:
        return "-", "-", "-"
    return (
        shown(outlook.loss, "{:.1f}", interval=True),
        shown(outlook.bayes_error, interval=True),
        shown(outlook.information_bits, interval=True),
    )
