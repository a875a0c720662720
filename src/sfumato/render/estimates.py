"""How an estimate is written."""

from math import isnan

from sfumato.measure.estimate import Estimate


def mark(kind: str) -> str:
    """The sign before a figure that was estimated from samples."""
    return "≈" if kind == "estimate" else ""


def shown(estimate: Estimate, form: str = "{:.3f}", *, interval: bool = False) -> str:
    """A number; estimates are marked, with their interval where that is asked for.

    >>> shown(Estimate.exact(0.25)), shown(Estimate(0.25, 0.2, 0.3, "estimate"), interval=True)
    ('0.250', '≈0.250 [0.200, 0.300]')
    """
    if isnan(estimate.value):
        return "not known"
    text = mark(estimate.kind) + form.format(estimate.value)
    if not interval or estimate.kind != "estimate":
        return text
    return f"{text} [{form.format(estimate.low)}, {form.format(estimate.high)}]"
