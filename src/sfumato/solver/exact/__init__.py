"""The exact optimum: which law leaks least within the budgets, and the proof that none leaks less.

What other rooms call is here; see README.md for what lies behind it.
"""

from sfumato.solver.exact.column_generation import Optimum, generate_columns
from sfumato.solver.exact.solver import Exact, best_within, certificate_for, task_of

__all__ = ["Exact", "Optimum", "best_within", "certificate_for", "generate_columns", "task_of"]
