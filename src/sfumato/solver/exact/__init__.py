"""The exact optimum: which law leaks least within the budgets, and the proof that none leaks less.

What other rooms call is here; see README.md for what lies behind it.
"""

from sfumato.solver.exact.column_generation import Optimum as Optimum
from sfumato.solver.exact.column_generation import generate_columns as generate_columns
from sfumato.solver.exact.endless import OneLaw as OneLaw
from sfumato.solver.exact.linked import best_for as best_for
from sfumato.solver.exact.linked import joint_of as joint_of
from sfumato.solver.exact.linked import laws_for as laws_for
from sfumato.solver.exact.solver import FULL_GAP as FULL_GAP
from sfumato.solver.exact.solver import QUICK_GAP as QUICK_GAP
from sfumato.solver.exact.solver import START_S as START_S
from sfumato.solver.exact.solver import Exact as Exact
from sfumato.solver.exact.solver import best_within as best_within
from sfumato.solver.exact.solver import certificate_for as certificate_for
from sfumato.solver.exact.solver import check_size as check_size
from sfumato.solver.exact.solver import equal_laws as equal_laws
from sfumato.solver.exact.solver import program_of as program_of
from sfumato.solver.exact.solver import proof_bytes as proof_bytes
from sfumato.solver.exact.solver import proof_fits as proof_fits
from sfumato.solver.exact.solver import task_of as task_of
