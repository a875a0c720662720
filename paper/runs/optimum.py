"""The best mechanism for experiments 2 and 4 on the paper's 260 x 260 grid: what it prints as 0.50
and as "?".

Each solve runs in a process of its own, so that its peak memory can be read.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, ROOT, load
from paper.tables import arguments, say
from sfumato.data.synthetic import PAPER_REGION
from sfumato.files import file_hash, read_json, write_json
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.judge import judge
from sfumato.measure.objective import objective_named
from sfumato.solver import Exact, Problem
from sfumato.study.solve import solve

_CELLS = 260
_PRINTED = {2: "0.50 (argued)", 4: "? (said to be intractable)"}
_OBJECTIVES = ("bayes", "information")


def solve_one(number: int, objective: str, seed: int) -> dict[str, Any]:
    """Solve, check the proof from the data alone, and judge the mechanism on training and test
    data."""
    experiment = EXPERIMENTS[number - 1]
    data = load(experiment.data, seed)
    assert data.test is not None
    problem = Problem(
        data.train,
        max_loss=experiment.max_loss_m,
        region=PAPER_REGION,
        cells=_CELLS,
        objective=objective_named(objective, data.train.secrets),
    )
    start, processor = time.perf_counter(), time.process_time()
    solution = solve(problem, Exact())
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    assert solution.certificate is not None
    bounds = solution.certificate.bound(problem)
    checked = time.perf_counter() - start - seconds
    with tempfile.TemporaryDirectory() as folder:
        solution.certificate.save(Path(folder) / "certificate.npz")
        size, digest = (
            (Path(folder) / "certificate.npz").stat().st_size,
            file_hash(Path(folder) / "certificate.npz"),
        )
    test = judge(solution.mechanism, data.test, region=PAPER_REGION, fitted_on=data.train)
    assert test.learnt_error is not None
    counts = solution.history[-1]
    return {
        "experiment": number,
        "objective": objective,
        "seed": seed,
        "max_loss_m": experiment.max_loss_m,
        "printed": _PRINTED[number],
        "leakage": solution.leakage,
        "bound_grid": bounds.grid,
        "bound_plane": bounds.plane,
        "gap": solution.leakage - bounds.grid,
        "gap_plane": None if bounds.plane is None else solution.leakage - bounds.plane,
        "bayes_error": bayes_error(solution.measured.joint),
        "information_bits": mutual_information(solution.measured.joint),
        "loss_m": solution.loss,
        "exposed": solution.measured.exposed.value,
        "test": {
            "loss_m": test.loss.value,
            "bayes_error": test.bayes_error.value,
            "learnt_error": test.learnt_error.value,
        },
        "variables": (_CELLS * _CELLS) ** 2,
        "truths": len(problem.places),
        "reports": len(problem.report_places),
        "pairs": counts["pairs"],
        "pairs_touched": counts["pairs_touched"],
        "seconds": seconds,
        "processor_seconds": processor,
        "check_seconds": checked,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "certificate_bytes": size,
        "certificate_sha256": digest,
        "data_hash": data.train.hash,
    }


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = (0, 1, 2),
    objectives: tuple[str, ...] = _OBJECTIVES,
    *,
    experiments: tuple[int, ...] = (2, 4),
    again: bool = False,
) -> None:
    """Solve what the folder does not hold yet, or all again; other rows stay as they are."""
    file = folder / "optimum.json"
    kept = read_json(file, what="the optima")["rows"] if file.exists() else []
    rows = {(row["experiment"], row["objective"], row["seed"]): row for row in kept}
    for number in experiments:
        for objective in objectives:
            for seed in (seed for seed in seeds if again or (number, objective, seed) not in rows):
                say(f"optimum: experiment {number}, {objective}, seed {seed}")
                command = [
                    sys.executable,
                    "-m",
                    "paper.runs.optimum",
                    str(number),
                    objective,
                    str(seed),
                ]
                done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
                rows[number, objective, seed] = json.loads(done.stdout)
                write_json(file, {"rows": [rows[key] for key in sorted(rows)]})


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("what", nargs="+", metavar="OBJECTIVE | EXPERIMENT OBJECTIVE SEED")
    what = parser.parse_args().what
    if len(what) == 1 and what[0] in _OBJECTIVES:  # all seeds, into docs/reproduction
        main(objectives=(what[0],), again=True)
    elif len(what) == 3 and what[0] in ("2", "4") and what[1] in _OBJECTIVES:
        print(json.dumps(solve_one(int(what[0]), what[1], int(what[2]))))
    else:
        parser.error(f"expected {' or '.join(_OBJECTIVES)}, or experiment 2 or 4, one, and a seed")
