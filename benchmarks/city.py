"""What is proved for all 6,571 users of San Francisco within 300 m, each a secret: processor seconds,
peak memory, and the least vulnerability of any mechanism, with that of a blind guess.

`learn`, after it, learns a codebook for check-ins to come and one for these alone, and says how far
their vulnerabilities on these check-ins are above it.  Results go to benchmarks/city.json.

python -m benchmarks.city
python -m benchmarks.city learn
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
BUDGET, STEPS = 300.0, 200
SETTINGS = {"new": Codebook(), "these": Codebook(made_for="these")}
_MOST_S, _MOST_BYTES = 600.0, 4e9


def problem() -> Problem:
    """All users, each apart."""
    samples = read_checkins(data_folder() / "gowalla-sanfrancisco.csv.gz")
    return Problem(samples, max_loss=BUDGET)


def proved() -> dict[str, Any]:
    """The proof, from noise."""
    asked = problem()
    start = time.process_time()
    heard: list[tuple[float, float]] = []
    certificate = first_order_certificate(
        asked,
        steps=STEPS,
        on_proof=lambda _, bound, __: heard.append((time.process_time() - start, bound)),
    )
    proof_s = time.process_time() - start
    assert certificate is not None and certificate.on_plane is not None
    least, blind = certificate.bound(asked).grid, float(asked.joint.prior.max())
    sides = certificate.on_plane.cells.sides_m
    return {
        "users": len(asked.samples.secrets),
        "places": len(asked.places),
        "budget_m": BUDGET,
        "steps": STEPS,
        "cells": len(sides),
        "narrowest_cell_m": float(sides.min()),
        "seconds_proof": proof_s,
        "seconds_checking": time.process_time() - start - proof_s,
        "bytes": _peak(),
        "blind": blind,
        "least_vulnerability_proved": least,
        "least_times_blind": least / blind,
        "least_bits_above_blind": math.log2(least / blind),
        "bounds_by_second": heard,
    }


def learned(whom: str, least: float, blind: float) -> dict[str, Any]:
    """One mechanism beside the proven least."""
    start = time.process_time()
    solution = solve(problem(), SETTINGS[whom], proof="none")
    spent = time.process_time() - start
    return {
        "made_for": whom,
        "settings": repr(SETTINGS[whom]),
        "loss_m": solution.loss,
        "seconds_learning": spent,
        "bytes": _peak(),
        "vulnerability": solution.leakage,
        "times_blind": solution.leakage / blind,
        "bits_above_blind": math.log2(solution.leakage / blind),
        "times_proven_least": solution.leakage / least,
        "met": spent <= _MOST_S and _peak() <= _MOST_BYTES,
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    """The proof, or the mechanisms beside the proof that is kept."""
    if sys.argv[1:] != ["learn"]:
        found: dict[str, Any] = {"command": "python -m benchmarks.city [learn]", "proof": proved()}
        print(json.dumps(found, indent=1), flush=True)
        write_json(_RESULTS, found)
    else:
        found = json.loads(_RESULTS.read_text())
        least, blind = (found["proof"][name] for name in ("least_vulnerability_proved", "blind"))
        found["mechanisms"] = [learned(whom, least, blind) for whom in SETTINGS]
        print(json.dumps(found["mechanisms"], indent=1))
        write_json(_RESULTS, found)


if __name__ == "__main__":
    main()
