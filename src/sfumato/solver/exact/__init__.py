"""The exact optimum: which law leaks least within the budgets, and the proof that none leaks less.

What other rooms call is here; see README.md for what lies behind it.
"""

from sfumato.solver.exact.column_generation import Optimum, generate_columns
from sfumato.solver.exact.endless import OneLaw
from sfumato.solver.exact.linked import best_for, laws_for, seen
from sfumato.solver.exact.solver import (
    FULL_GAP,
    QUICK_GAP,
    Exact,
    best_within,
    certificate_for,
    equal_laws,
    program_of,
    task_of,
)

__all__ = [
    "FULL_GAP",
    "QUICK_GAP",
    "Exact",
    "OneLaw",
    "Optimum",
    "best_for",
    "best_within",
    "certificate_for",
    "equal_laws",
    "generate_columns",
    "laws_for",
    "program_of",
    "seen",
    "task_of",
]
