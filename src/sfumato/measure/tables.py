"""Measures of a table P(secret, report) that stand beside the main figures: one line per measure.

`sfumato measure` shows each of them, as text and as JSON.  To add one, write its function and add
its line here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.data.joint import Joint
from sfumato.measure.exact import conditional_entropy, min_entropy_leakage, santhi_vardy_bound


@dataclass(frozen=True)
class TableMeasure:
    """A figure of P(secret, report): its name in JSON, in words, its unit and how to compute it.

    A measure that is `exact_only` says nothing about a table that was counted from samples.
    """

    key: str
    words: str
    unit: str
    of: Callable[[Joint], float]
    exact_only: bool = False


TABLE_MEASURES = (
    TableMeasure("conditional_entropy_bits", "remaining uncertainty", "bits", conditional_entropy),
    TableMeasure("min_entropy_leakage_bits", "min-entropy leakage", "bits", min_entropy_leakage),
    TableMeasure(  # of a table of hits it would bound nothing
        "santhi_vardy_bound", "Bayes error at most", "(Santhi and Vardy)", santhi_vardy_bound, True
    ),
)


def table_measures(joint: Joint, *, exact: bool) -> dict[str, float | None]:
    """All of them for one table, by key; None for what needs an exact table and has none."""
    return {
        measure.key: None if measure.exact_only and not exact else measure.of(joint)
        for measure in TABLE_MEASURES
    }
