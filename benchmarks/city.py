"""All 6,571 users of San Francisco within 300 m: processor seconds and peak memory of learning and
of the proof, and what the proof says of the vulnerability on the check-ins learned from.

The mechanism is made for check-ins to come, so that its gap on these is not as small as can be;
`these` makes it for these alone.  Results go to benchmarks/city.json.

python -m benchmarks.city
python -m benchmarks.city these
"""

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

from paper.experiments import data_folder
from sfumato.data.read import read_checkins
from sfumato.files import write_json
from sfumato.solver import Codebook, Problem
from sfumato.solver.exact.first_order import first_order_certificate
from sfumato.study.solve import solve

_RESULTS = Path(__file__).with_name("city.json")
BUDGET = 300.0
SETTINGS = {"new": Codebook(), "these": Codebook(made_for="these", places=1024, steps=1500)}
_MOST_S, _MOST_BYTES = 600.0, 4e9


def measured(whom: str) -> dict[str, Any]:
    """One mechanism, and its proof."""
    samples = read_checkins(data_folder() / "gowalla-sanfrancisco.csv.gz")
    problem = Problem(samples, max_loss=BUDGET)
    start = time.process_time()
    solution = solve(problem, SETTINGS[whom], proof="none")
    learned, learned_bytes = time.process_time(), _peak()
    certificate = first_order_certificate(problem, known=solution.measured.joint)
    proved = time.process_time()
    assert certificate is not None
    bounds = certificate.bound(problem)
    vulnerability, blind = solution.leakage, float(problem.joint.prior.max())
    return {
        "made_for": whom,
        "settings": repr(SETTINGS[whom]),
        "users": len(samples.secrets),
        "checkins": len(samples),
        "budget_m": BUDGET,
        "loss_m": solution.loss,
        "seconds_learning": learned - start,
        "bytes_learning": learned_bytes,
        "seconds_proof": proved - learned,
        "bytes_with_proof": _peak(),
        "blind": blind,
        "vulnerability": vulnerability,
        "least_vulnerability_proved": bounds.grid,
        "times_blind": vulnerability / blind,
        "least_times_blind": bounds.grid / blind,
        "bits_above_blind": math.log2(vulnerability / blind),
        "least_bits_above_blind": math.log2(bounds.grid / blind),
        "relative_gap": (vulnerability - bounds.grid) / vulnerability,
        "met": learned - start <= _MOST_S and learned_bytes <= _MOST_BYTES,
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    """One row, beside the others in the file."""
    whom = sys.argv[1] if len(sys.argv) > 1 else "new"
    kept = json.loads(_RESULTS.read_text())["rows"] if _RESULTS.exists() else []
    rows = [row for row in kept if row["made_for"] != whom] + [measured(whom)]
    write_json(_RESULTS, {"command": "python -m benchmarks.city [these]", "rows": rows})
    print(json.dumps(rows[-1], indent=1))


if __name__ == "__main__":
    main()
