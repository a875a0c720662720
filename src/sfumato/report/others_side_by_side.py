"""Who is not in the data, for several mechanisms beside each other, as text for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.measure.membership import Membership
from sfumato.report.others import left_out_text
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
