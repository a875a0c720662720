"""What was measured, in words for a terminal."""

from collections.abc import Mapping

from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import Judgement
from sfumato.report.table import text_table

_MOST_USERS = 20


def measured_text(
    name: str, judged: Mapping[str, Judgement | None], *, max_loss: float | None = None
) -> str:
    """A table of figures, a column a data set, and one of figures per user for the first."""
    columns = {label: found for label, found in judged.items() if found is not None}
    first = next(iter(columns.values()))
    budget = "" if max_loss is None else f" (budget {max_loss:g})"
    lines = [
        [f"loss, metres{budget}", *[_number(found.loss, 1) for found in columns.values()]],
        [
            f"Bayes error ↑ ({_cells(first.bayes_error)})",
            *[_number(found.bayes_error, 3) for found in columns.values()],
        ],
        [
            "information, bits ↓",
            *[_number(found.information_bits, 3) for found in columns.values()],
        ],
        [
            "exposed reports ↓",
            *[f"{_about(found.exposed)}{found.exposed.value:.1%}" for found in columns.values()],
        ],
        [
            "worst report ↓",
            *[f"{_about(found.exposed)}{found.worst_report:.3f}" for found in columns.values()],
        ],
        ["reports outside the region", *[f"{found.outside:.2%}" for found in columns.values()]],
    ]
    if any(found.learnt_error is not None for found in columns.values()):
        shown = [
            "-" if found.learnt_error is None else _number(found.learnt_error, 3)
            for found in columns.values()
        ]
        lines.append(["error of guesses learnt on training data ↑", *shown])
    if any(found.geo_epsilon is not None for found in columns.values()):
        shown = [
            (
                "-"
                if found.geo_epsilon is None
                else f"{found.geo_epsilon:.4g}".replace("inf", "infinite")
            )
            for found in columns.values()
        ]
        lines.append(["geo-indistinguishability, per metre ↓", *shown])
    shown_users = sorted(first.per_user, key=lambda user: (user.error, -user.exposed))[:_MOST_USERS]
    hidden = len(first.per_user) - len(shown_users)
    shown_users = list(first.per_user) if not hidden else shown_users
    users = [
        [
            user.name,
            "-" if user.loss != user.loss else f"{user.loss:.1f}",
            f"{user.error:.3f}",
            f"{user.exposed:.1%}",
        ]
        for user in shown_users
    ]
    return "\n\n".join(
        [
            text_table([name, *columns], lines),
            text_table([f"user, {next(iter(columns))}", "loss m", "error ↑", "exposed ↓"], users)
            + (f"\n… and {hidden} users who are easier to hide" if hidden else ""),
        ]
    )


def _about(estimate: Estimate) -> str:
    return "≈" if estimate.kind == "estimate" else ""


def _cells(estimate: Estimate) -> str:
    return "own reports" if estimate.cell_m is None else f"{estimate.cell_m:g} m cells"


def _number(estimate: Estimate, digits: int) -> str:
    if estimate.value != estimate.value:
        return "not known"
    if estimate.kind == "estimate":
        return (
            f"≈{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"
        )
    return f"{estimate.value:.{digits}f}"
