"""Who is not in the data, for several mechanisms beside each other: text for a terminal, a section
for the report."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from sfumato.measure.membership import Membership
from sfumato.report.others import LEFT_OUT_HEADS, capacity, left_out_rows, left_out_text
from sfumato.report.page import head_row, table
from sfumato.report.table import text_table

if TYPE_CHECKING:
    from sfumato.report.compare import Row

_HEADS = (
    "error, equal shares ↑",
    "error, one user twice ↑",
    "loss, one user twice ↓",
    "its file tells",
)
_NOTES = (
    "one user twice: the user whose doubling is worst; its file tells: how well who has the file"
    " tells training points from held-out ones (AUC, 0.5 is a toss)"
)


def others_text(rows: Sequence["Row"]) -> str:
    """Other shares of the users and what each file tells; below it, users left out where that was
    asked for."""
    said = [
        text_table(
            ["other users than these", *_HEADS], [[row.entry.name, *_cells(row)] for row in rows]
        )
        + f"\n{_NOTES}"
    ]
    for row in rows:
        for label in dict.fromkeys(label for one in row.left_out for label in one.judged):
            said.append(left_out_text(row.left_out, label, row.measured, name=row.entry.name))
    return "\n\n".join(said)


def _cells(row: "Row") -> list[str]:
    found = row.priors
    if found is None:
        shares = ["not computed"] * 3
    else:
        easiest, dearest = found.easiest, found.dearest
        shares = [
            f"{found.equal.bayes_error.value:.3f}",
            f"{easiest.bayes_error.value:.3f} ({easiest.name})",
            f"{dearest.loss:.1f} ({dearest.name})",
        ]
    return [*shares, told(row.membership)]


def told(found: Membership | None) -> str:
    """What a file tells, in a few words."""
    if found is None or (found.telling is None and not found.listed):
        return "not tested"
    if found.listed:
        return f"lists {found.listed:.0%} of its training points"
    assert found.telling is not None
    auc = found.telling[1]
    return f"≈{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]"


def others_section(rows: Sequence["Row"]) -> str:
    """The section of the report, as HTML."""
    parts = [_shares(rows), _files(rows)]
    for row in rows:
        for label in dict.fromkeys(label for one in row.left_out for label in one.judged):
            caption = (
                f"{row.entry.name}: each user left out of training in turn, everybody judged on"
                f" {label}."
            )
            lines = [
                [escape(cell) for cell in line]
                for line in left_out_rows(row.left_out, label, row.measured)
            ]
            parts.append(table(caption, head_row(["left out", *LEFT_OUT_HEADS]), lines))
    if not any(row.left_out for row in rows):
        parts.append(
            '<p class="note">Users left out of training: not measured here; compare with'
            " --leave-one-out.</p>"
        )
    return "\n".join(part for part in parts if part)


def _shares(rows: Sequence["Row"]) -> str:
    lines, notes = [], []
    for row in rows:
        found = row.priors
        if found is None:
            lines.append(
                [
                    escape(row.entry.name),
                    "not computed<small>estimated from samples</small>",
                    *["–"] * 4,
                ]
            )
            continue
        easiest, dearest = found.easiest, found.dearest
        lines.append(
            [
                escape(row.entry.name),
                (
                    f"{found.given.bayes_error.value:.3f}<small>a blind guess"
                    f" {found.given.blind:.3f}</small>"
                ),
                (
                    f"{found.equal.bayes_error.value:.3f}<small>a blind guess"
                    f" {found.equal.blind:.3f}</small>"
                ),
                (
                    f"{easiest.bayes_error.value:.3f}<small>{escape(easiest.name)}; a blind guess"
                    f" {easiest.blind:.3f}</small>"
                ),
                f"{found.equal.loss:.1f} m",
                f"{dearest.loss:.1f} m<small>{escape(dearest.name)}</small>",
            ]
        )
        notes.append(f"<li>{escape(row.entry.name)}: {escape(capacity(found))}</li>")
    names = [
        "mechanism",
        "error, as in the data ↑",
        "error, equal shares ↑",
        "error, one user twice ↑",
        "loss, equal shares",
        "loss, one user twice",
    ]
    caption = (
        "If the users reported in other shares than in this data. One user twice: the user whose"
        " doubling is worst."
    )
    return table(caption, head_row(names), lines) + (f"<ul>{''.join(notes)}</ul>" if notes else "")


def _files(rows: Sequence["Row"]) -> str:
    tested = [(row, row.membership) for row in rows if row.membership is not None]
    if not tested:
        return ""
    names = list(dict.fromkeys(name for _, found in tested for name in found.scores))
    lines = []
    for row, found in tested:
        cells = [escape(row.entry.name)]
        for name in names:
            auc = found.scores.get(name)
            cells.append(
                "–"
                if auc is None
                else (
                    f"{auc.value:.3f}<small>estimate</small><small>{auc.low:.3f} to"
                    f" {auc.high:.3f}</small>"
                )
            )
        lines.append([*cells, escape(found.verdict)])
    caption = (
        "What each mechanism's file tells about its training points: how well a score that is read"
        " off the file tells them from as many held-out points (AUC; 0.5 is a toss, 1 is certain)."
    )
    return table(caption, head_row(["mechanism", *names, "verdict"]), lines, look="texts")
