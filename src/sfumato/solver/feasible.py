"""Whether budgets can be kept at all, and which are the smallest that can."""

from typing import Any

import numpy as np

from sfumato.errors import ProblemError

_SLACK = 1 + 1e-12


class InfeasibleBudget(ProblemError):
    """No mechanism on these reports keeps the budget; the sentence names the smallest one that some
    mechanism keeps."""


def check_feasible(
    table: Any,
    least: np.ndarray,
    *,
    max_loss: float | None,
    user_max_loss: np.ndarray | None,
    cap: float | None,
    names: tuple[str, ...] | None = None,
    on: str = "these reports",
    unit: str = "",
    advice: str = "raise it",
) -> None:
    """Refuse budgets that no mechanism can keep.

    `table` is P(secret, truth), dense or sparse, and `least` the loss of each truth's nearest
    report, which is best for every budget at once, so that each budget can be checked alone.
    """
    start = f"no mechanism that reports on {on} can"
    average = float(np.asarray(table.sum(axis=0)).ravel() @ least)
    farthest = float(least.max())
    if max_loss is not None and not average <= max_loss * _SLACK:
        raise InfeasibleBudget(
            f"{start} stay within {max_loss:g}{unit}: the smallest possible loss is"
            f" {average:.4g}{unit}; {advice}"
        )
    if cap is not None and not farthest <= cap * _SLACK:
        raise InfeasibleBudget(
            f"{start} keep every report within {cap:g}{unit}: the smallest possible cap is"
            f" {farthest:.4g}{unit}; {advice}"
        )
    if user_max_loss is None:
        return
    averages = table @ least / np.maximum(np.asarray(table.sum(axis=1)).ravel(), 1e-300)
    for user in np.flatnonzero(~(averages <= np.asarray(user_max_loss) * _SLACK))[:1]:
        raise InfeasibleBudget(
            f"{start} keep user {user if names is None else names[user]} within"
            f" {user_max_loss[user]:g}{unit}: the smallest possible budget is"
            f" {averages[user]:.4g}{unit}; {advice}"
        )
