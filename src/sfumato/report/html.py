"""The report: a comparison as one HTML file that needs nothing from outside."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from math import isfinite, isinf, isnan
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.files import write_text
from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import PerUser
from sfumato.mechanism.base import Mechanism
from sfumato.randomness import generator
from sfumato.report import figures
from sfumato.report.compare import Comparison, Row
from sfumato.report.others_side_by_side import others_section
from sfumato.report.page import HOW_TO_READ, figure, head_row, page, table
from sfumato.report.words import amount, how, length, over_by, spoken, summary, unit
from sfumato.solver.run import versions

PICTURE_SEED = 0
_MOST_POINTS = 2000  # points a picture
# points in all pictures; with coarser pictures where there are many, this keeps the file below 2 MB
_ALL_POINTS = 9000
_FEW_POINTS = 600  # fewer check-ins than this are reported several times each
_CROWD = 0.05  # a place with more than this share of the reports is spoken of


def write_html(comparison: Comparison, path: str | Path) -> None:
    """Write the comparison as one self-contained HTML file.  The same comparison gives the same
    bytes.

    The page contains true locations, and says so.
    """
    rows, on = comparison.rows, comparison.on
    if isinstance(on, CategoricalData):
        raise ProblemError(
            "the report is for places; a comparison on words has no map: print it as a table"
            " instead"
        )
    sections = [
        ("figures", "Loss and leakage", _main_table(rows, on)),
        ("points", "What each mechanism did to the points", _points(rows, on)),
        ("grids", "Leakage side by side", _charts(rows, on)),
        ("users", "Each user", _users(rows, on)),
        ("worst", "Worst cases", _worst(rows)),
        ("others", "Who is not in the data", others_section(rows)),
        ("learning", "Learning curves", _learning(rows)),
        ("settings", "Settings, seeds, versions", _settings(comparison)),
        ("reading", "How to read it", HOW_TO_READ),
    ]
    title = f"Who can be told from the reports: {on.name}"
    write_text(
        path,
        page(
            title=title,
            summary=summary(rows, on),
            sections=[section for section in sections if section[2]],
        ),
    )


def _main_table(rows: Sequence[Row], on: Samples) -> str:
    names = [
        "mechanism",
        "loss",
        "Bayes error ↑",
        "information, bits ↓",
        "exposed ↓",
        "worst report ↓",
        "learnt error ↑",
    ]
    names += ["gap to the best ↓", "geo-indist., per m ↓", "cell side"]
    lines = []
    for row in rows:
        found = row.measured
        computed = found.exposed.kind == "exact"
        learnt = "–<small>not judged</small>"
        cell = found.bayes_error.cell_m
        lines.append(
            [
                escape(row.entry.name),
                _loss_cell(row),
                _cell(found.bayes_error, "{:.3f}"),
                _cell(found.information_bits, "{:.3f}"),
                _cell(found.exposed, "{:.1%}"),
                f"{found.worst_report:.3f}<small>{'exact' if computed else 'largest seen'}</small>",
                learnt if found.learnt_error is None else _cell(found.learnt_error, "{:.3f}"),
                (
                    "–<small>not proved</small>"
                    if row.gap is None or row.gap.value is None
                    else f"{row.gap.value:.4f}<small>proved, on</small><small>training data</small>"
                ),
                _epsilon(found.geo_epsilon, by_design=row.entry.mechanism.geo_epsilon is not None),
                "own reports" if cell is None else f"{cell:g} m",
            ]
        )
    caption = (
        f"On {on.name}: {len(on)} check-ins of {len(on.secrets)} users. ↑ higher is more private, ↓"
        " lower is more private."
    )
    return table(caption, head_row(names), lines)


def _loss_cell(row: Row) -> str:
    loss, limit = row.measured.loss, row.entry.max_loss
    if isnan(loss.value):
        return "not known<small>truths not given</small>"
    budget = "no budget" if limit is None else f"of {limit:g} {unit(row)}"
    if over_by(row) > 0:
        budget = (
            f'<span class="over">{amount(over_by(row))} {unit(row)} over {limit:g}'
            f" {unit(row)}</span>"
        )
    return f"{length(row)}<small>{budget}</small>{_how(loss, '{:.1f}')}"


def _cell(estimate: Estimate, form: str) -> str:
    if isnan(estimate.value):
        return "not known"
    return form.format(estimate.value) + _how(estimate, form)


def _how(estimate: Estimate, form: str) -> str:
    return "".join(f"<small>{line}</small>" for line in how(estimate, form))


def _epsilon(value: float | None, *, by_design: bool) -> str:
    if value is None:
        return "not computed"
    return (
        "∞<small>no guarantee</small>"
        if isinf(value)
        else f"{value:.3g}<small>{'by design' if by_design else 'at these points'}</small>"
    )


def _points(rows: Sequence[Row], on: Samples) -> str:
    """Truth beside the reports of the same check-ins, in one window."""
    most = max(1, min(_MOST_POINTS, _ALL_POINTS // (len(rows) + 1)))
    chosen = generator(PICTURE_SEED).permutation(len(on))[:most]
    again = max(1, min(_FEW_POINTS, most) // len(chosen))
    truth, secret = on.truth[chosen], on.secret[chosen]
    budgets = [row.entry.max_loss for row in rows if row.entry.max_loss is not None]
    window = figures.window_of(on.truth, min(budgets, default=0.0))
    dpi = round(min(150.0, 150 * (6 / (len(rows) + 1)) ** 0.5))
    note = "All check-ins." if len(chosen) == len(on) else f"{len(chosen)} of {len(on)} check-ins."
    alt = (
        f"Map of the true locations of {len(on.secrets)} users, {window.side_m:.0f} metres wide,"
        " one colour and marker a user."
    )
    panels = [
        figure(
            figures.points_figure(truth, secret, window, dpi=dpi), alt, heading="Truth", note=note
        )
    ]
    for row in rows:
        truths, secrets = np.repeat(truth, again, axis=0), np.repeat(secret, again)
        reports = row.entry.mechanism.sample(truths, seed=PICTURE_SEED)
        mixed = generator(PICTURE_SEED).permutation(len(reports))
        drawn = figures.points_figure(reports[mixed], secrets[mixed], window, behind=truth, dpi=dpi)
        words = _seen(reports, window)
        alt = (
            f"Map of the reports of {row.entry.name} for the same check-ins, in the same window."
            f" {words}"
        )
        panels.append(figure(drawn, alt, heading=f"Reports: {row.entry.name}", note=escape(words)))
    legend = "".join(
        f"<li>{figures.swatch(user)}{escape(name)}</li>" for user, name in enumerate(on.secrets)
    )
    each = "one report" if again == 1 else f"{again} reports"
    text = (
        f"The same {len(chosen)} check-ins in every picture, {each} each, drawn with the fixed seed"
        f" {PICTURE_SEED}. Points that share one place are fanned out around it: the larger the"
        " disc, the more points. Grey: the truths. Only the pictures are drawn so; the figures are"
        " not computed from them."
    )
    return (
        f'<p class="note">{text}</p>\n<ul class="legend" aria-label="Users">{legend}</ul>\n<div'
        f' class="panels">{"".join(panels)}</div>'
    )


def _seen(reports: np.ndarray, window: Region) -> str:
    beyond = int((~window.contains(reports)).sum())
    _, count = np.unique(np.round(reports, 3), axis=0, return_counts=True)
    words = (
        f"{len(reports)} reports; {beyond} ({beyond / len(reports):.1%}) beyond this window, not"
        " shown."
    )
    words = words if beyond else f"{len(reports)} reports, all in this window."
    if count.max() > max(1, _CROWD * len(reports)):
        words += f" {count.max() / len(reports):.0%} of them at one place."
    return words


def _charts(rows: Sequence[Row], on: Samples) -> str:
    names = [row.entry.name for row in rows]
    prior = on.counts[on.counts > 0] / len(on)
    blind, entropy = float(1 - prior.max()), float(-np.sum(prior * np.log2(prior)))
    panels = []
    if any(row.over_grids for row in rows):
        told = "; ".join(
            f"{row.entry.name}: "
            + ", ".join(f"{e.value:.3f} at {e.cell_m:g} m" for e in row.over_grids)
            for row in rows
        )
        alt = f"Bayes error by side of the cells. {told}. A blind guess errs {blind:.3f}."
        drawn = figures.grids_figure(names, [row.over_grids for row in rows], blind)
        note = "Who sees only coarser cells errs no less. Whiskers: 95% intervals of estimates."
        panels.append(figure(drawn, alt, heading="Bayes error over grids ↑", note=note))
    bits = [row.measured.information_bits for row in rows]
    alt = "Information in bits. " + "; ".join(
        f"{name}: {e.value:.3f}" for name, e in zip(names, bits, strict=True)
    )
    drawn = figures.bars_figure(
        names, bits, label="bits", most=entropy, most_label=f"all there is, {entropy:.2f}"
    )
    panels.append(figure(drawn, f"{alt}. At most {entropy:.3f}.", heading="Information ↓"))
    exposed = [row.measured.exposed for row in rows]
    alt = "Share of exposed reports. " + "; ".join(
        f"{name}: {e.value:.1%}" for name, e in zip(names, exposed, strict=True)
    )
    drawn = figures.bars_figure(
        names, exposed, label="share of reports", most=1.0, most_label="all", percent=True
    )
    panels.append(
        figure(drawn, f"{alt}.", heading="Exposed reports ↓", note="One user more than 90% likely.")
    )
    *first, information, last = panels
    return (
        f'<div class="panels two">{"".join(first)}<div'
        f' class="stack">{information}{last}</div></div>'
    )


def _users(rows: Sequence[Row], on: Samples) -> str:
    number = {name: user for user, name in enumerate(on.secrets)}
    found = [{user.name: user for user in row.measured.per_user} for row in rows]
    lines = []
    for name, user in number.items():
        cells = [escape(name), str(on.counts[user])]
        for users in found:
            cells += _user_cells(users.get(name))
        lines.append([figures.swatch(user) + cells[0], *cells[1:]])
    head = head_row(["", *(row.entry.name for row in rows)], span=3).replace(
        '<th scope="col"></th>', "<td></td><td></td>", 1
    )
    head += head_row(
        [
            "user",
            "check-ins",
            *(name for row in rows for name in (f"loss, {unit(row)}", "error ↑", "exposed ↓")),
        ]
    )
    caption = (
        "For each user: loss, chance that the best guess misses this user, share of this user's"
        " reports that leave it above 90%."
    )
    return table(caption, head, lines)


def _user_cells(user: PerUser | None) -> list[str]:
    if user is None:
        return ["–"] * 3
    return [
        "–" if isnan(user.loss) else amount(user.loss),
        f"{user.error:.3f}",
        f"{user.exposed:.1%}",
    ]


def _worst(rows: Sequence[Row]) -> str:
    cases: list[tuple[str, Callable[[Row], str]]] = [
        ("Worst report", _worst_report),
        (
            "Easiest to guess",
            lambda row: _extreme(row, lambda user: -user.error, "errs {0.error:.3f}"),
        ),
        (
            "Most exposed",
            lambda row: _extreme(row, lambda user: user.exposed, "{0.exposed:.1%} of the reports"),
        ),
        (
            "Pays most",
            lambda row: _extreme(row, lambda user: user.loss, "{0.loss:.1f} " + unit(row)),
        ),
        ("Reports outside the region", lambda row: f"{amount(100 * row.measured.outside)}%"),
    ]
    lines = [[name, *(case(row) for row in rows)] for name, case in cases]
    return table(
        "What the averages hide.",
        head_row(["case", *(row.entry.name for row in rows)]),
        lines,
        look="texts",
    )


def _worst_report(row: Row) -> str:
    joint, worst = row.measured.joint, row.measured.worst_report
    top = joint.posterior >= worst - 1e-9
    share = float(joint.place_probability[top.any(axis=0)].sum())
    whom = [joint.secrets[user] for user in np.flatnonzero(top.any(axis=1))]
    sent = f"{share:.1%}" if share >= 0.001 else f"{100 * share:.1g}%"
    return (
        f"{worst:.3f} for {escape(spoken(whom, most=4))}<small>such reports: {sent} of all</small>"
    )


def _extreme(row: Row, key: Callable[[PerUser], float], form: str) -> str:
    known = [user for user in row.measured.per_user if isfinite(key(user))]
    if not known:
        return "not known"
    top = max(key(user) for user in known)
    whom = [user for user in known if key(user) >= top - 1e-9]
    return f"{escape(spoken([user.name for user in whom], most=4))}<small>{form.format(whom[0])}</small>"


def _learning(rows: Sequence[Row]) -> str:
    panels = []
    for row in rows:
        drawn = (
            figures.history_figure(row.entry.history, row.entry.max_loss)
            if row.entry.history
            else None
        )
        if drawn is not None:
            alt = f"Learning curves of {row.entry.name} over {len(row.entry.history)} rounds."
            panels.append(
                figure(
                    drawn,
                    alt,
                    heading=row.entry.name,
                    note="The payoff steers the learning. It is not the leakage.",
                )
            )
    return f'<div class="panels">{"".join(panels)}</div>' if panels else ""


def _settings(comparison: Comparison) -> str:
    names = ["mechanism", "what it is", "budget", "loss function", "seed", "how the solver ended"]
    lines = []
    for row in comparison.rows:
        entry = row.entry
        budget = "none" if entry.max_loss is None else f"{entry.max_loss:g} {unit(row)}"
        loss = str(getattr(entry.loss, "__name__", "own function"))
        cells = [
            described(entry.mechanism),
            budget,
            loss,
            "none" if entry.seed is None else str(entry.seed),
            entry.status or "–",
        ]
        lines.append([escape(entry.name), *(escape(cell) for cell in cells)])
    region, on, train = comparison.region, comparison.on, comparison.train
    hits = sorted(
        {
            e.hits
            for row in comparison.rows
            for e in (row.measured.bayes_error, *row.over_grids)
            if e.hits is not None
        }
    )
    facts = [
        ("judged on", f"{on.name}: {len(on)} check-ins of {len(on.secrets)} users"),
        ("hash of that data (SHA-256)", on.hash),
        *(
            []
            if train is None
            else [
                ("learnt on", f"{train.name}: {len(train)} check-ins"),
                ("hash of that data (SHA-256)", train.hash),
            ]
        ),
        *([("steps", "; ".join(on.notes))] if on.notes else []),
        ("plane", "metres as given" if on.plane is None else described(on.plane)),
        *(
            []
            if region is None
            else [
                (
                    "region",
                    (
                        f"{region.side_m:g} m square about ({region.centre[0]:.1f},"
                        f" {region.centre[1]:.1f}) m"
                    ),
                )
            ]
        ),
        *([("reports a check-in, for estimates", ", ".join(map(str, hits)))] if hits else []),
        ("seed of the pictures", str(PICTURE_SEED)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions().items())),
    ]
    values = [
        [escape(name), f"<code>{escape(value)}</code>" if "hash" in name else escape(value)]
        for name, value in facts
    ]
    made = table("How each mechanism was made.", head_row(names), lines, look="texts")
    return made + table("Data and versions.", head_row(["what", "value"]), values, look="texts")


def described(thing: Any) -> str:
    """A mechanism or a part of one in words that do not change from run to run."""
    if isinstance(thing, (bool, int, str)) or thing is None:
        return str(thing)
    if isinstance(thing, Grid):
        return f"{thing.cell_m:g} m cells" + (
            "" if thing.region is None else f" over {thing.region.side_m:g} m"
        )
    if isinstance(thing, (float, np.floating)):
        return f"{thing:.6g}"
    if isinstance(thing, (tuple, list)) and len(thing) <= 4:
        return f"({', '.join(described(part) for part in thing)})"
    if isinstance(thing, np.ndarray):
        return f"array of {' x '.join(map(str, thing.shape))}"
    if is_dataclass(thing):
        name = thing.kind if isinstance(thing, Mechanism) else type(thing).__name__.lower()
        return f"{name}({', '.join(f'{part.name}={described(getattr(thing, part.name))}' for part in fields(thing))})"
    return str(getattr(thing, "__name__", type(thing).__name__))
