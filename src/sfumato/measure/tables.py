"""Measures of a table P(secret, report) that stand beside the main figures: one line per measure.

`sfumato measure` and `sfumato compare` show each of them, as text and as JSON.  To add one, write
its function and add its line here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.data.joint import Joint
from sfumato.measure.exact import conditional_entropy, min_entropy_leakage, santhi_vardy_bound


@dataclass(frozen=True)
class TableMeasure:
    """How to compute a figure of P(secret, report), its name in words, its unit and which way is
    more private (↑ or ↓).

    A measure that is `exact_only` says nothing about a table that was counted from samples.
    """

    of: Callable[[Joint], float]
    words: str
    unit: str
    private: str
    exact_only: bool = False

    @property
    def head(self) -> str:
        """The head of its column."""
        return f"{self.words}{self.unit and f', {self.unit}'} {self.private}"


TABLE_MEASURES: dict[str, TableMeasure] = {  # by name in JSON
    "conditional_entropy_bits": TableMeasure(
        conditional_entropy, "remaining uncertainty", "bits", "↑"
    ),
    "min_entropy_leakage_bits": TableMeasure(
        min_entropy_leakage, "min-entropy leakage", "bits", "↓"
    ),
    "santhi_vardy_bound": TableMeasure(  # of a table of hits it would bound nothing
        santhi_vardy_bound, "Santhi and Vardy's bound on the Bayes error", "", "↑", exact_only=True
    ),
}
