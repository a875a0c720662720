"""Words of the report: a summary in one or a few sentences, and how each number was got."""

from collections.abc import Sequence
from html import escape
from math import isnan

from sfumato.data.samples import Samples
from sfumato.measure.estimate import Estimate
from sfumato.mechanism.law import squared
from sfumato.report.compare import Row

_TINY = 0.001  # an exact number whose interval is narrower than this is shown without it


def spoken(names: Sequence[str], *, most: int = 12) -> str:
    """Names in a row.

    >>> spoken(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def unit(row: Row) -> str:
    """The unit of a row's loss."""
    return "m²" if row.entry.loss is squared else "m"


def amount(value: float) -> str:
    """A number with one decimal, or with two digits where that would show nothing.

    >>> amount(172.94), amount(0.0021), amount(0)
    ('172.9', '0.0021', '0')
    """
    return f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.2g}"


def length(row: Row) -> str:
    """A row's measured loss with its unit."""
    return f"{amount(row.measured.loss.value)}\u00a0{unit(row)}"


def over_by(row: Row) -> float:
    """How far the measured loss lies over the budget; 0 where it keeps it, has none, or is not
    known."""
    limit, loss = row.entry.max_loss, row.measured.loss
    return loss.value - limit if limit is not None and loss.low > limit * (1 + 1e-9) else 0.0


def how(estimate: Estimate, form: str) -> list[str]:
    """How a number was got, in one line or two: exact, or estimated with its interval."""
    low, high = form.format(estimate.low), form.format(estimate.high)
    return (
        [estimate.kind]
        if estimate.kind == "exact" and estimate.high - estimate.low < _TINY
        else [estimate.kind, f"{low} to {high}"]
    )


def summary(rows: Sequence[Row], on: Samples) -> str:
    """What was compared, and who hides the users best at what loss, as HTML."""
    names = [row.entry.name for row in rows]
    were = "was judged" if len(names) == 1 else "were compared"
    blind = 1 - on.counts.max() / len(on)
    said = [
        f"{spoken(names)} {were} on {on.name}: {len(on)} check-ins of {len(on.secrets)} users,"
        f" where a blind guess errs {blind:.3f}."
    ]
    for budget in dict.fromkeys(row.entry.max_loss for row in rows):
        said.append(_winner([row for row in rows if row.entry.max_loss == budget], budget))
    return " ".join(escape(sentence) for sentence in said if sentence)


def _winner(rows: Sequence[Row], budget: float | None) -> str:
    kept = [row for row in rows if over_by(row) == 0 and not isnan(row.measured.loss.value)]
    where = "Without a budget" if budget is None else f"Within {budget:g} {unit(rows[0])}"
    if not kept:
        unknown = all(isnan(row.measured.loss.value) for row in rows)
        return (
            "The loss is not known, so nobody wins."
            if unknown
            else f"{where}: none; all lose more on this data."
        )
    errors = _same_cells(kept)
    best = max(errors, key=lambda row: errors[row].value)
    own = best.measured.bayes_error
    cells = "its own reports" if own.cell_m is None else f"{own.cell_m:g}\u00a0m cells"
    seen = (
        f"{own.value:.3f} on {cells} at a loss of {length(best)}, with"
        f" {best.measured.exposed.value:.1%} of its reports exposed"
    )
    said = f"{where}, {best.entry.name} hides the users best: the best guess errs {seen}"
    if len(kept) == 1:
        said = f"{where}, the best guess against {best.entry.name} errs {seen}"
    close = [
        row.entry.name for row in kept if row is not best and errors[row].high >= errors[best].low
    ]
    if close:
        said += f" (not told apart from {spoken(close)})"
    over = [
        f"{row.entry.name} errs {row.measured.bayes_error.value:.3f} at {length(row)}"
        for row in rows
        if over_by(row) > 0
    ]
    return f"{said}." + (f" Over the budget on this data: {spoken(over)}." if over else "")


def _same_cells(rows: Sequence[Row]) -> dict[Row, Estimate]:
    """Bayes errors that can be compared: as measured, or on the finest common grid where the cells
    differ."""
    if len({row.measured.bayes_error.cell_m for row in rows}) > 1 and all(
        row.over_grids for row in rows
    ):
        return {row: row.over_grids[0] for row in rows}
    return {row: row.measured.bayes_error for row in rows}
