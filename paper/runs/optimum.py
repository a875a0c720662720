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
from paper.tables import say
from sfumato.data.select import PAPER_REGION
from sfumato.files import file_hash, read_json, write_json, write_text
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.judge import judge
from sfumato.measure.objective import objective_named
from sfumato.solver import Exact, Problem, solve

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
        "reports": len(problem.reports),
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
    write_text(folder / "optimum.md", page(folder))


def page(folder: Path = RESULTS) -> str:
    """optimum.md: the intervals that replace the paper's "0.50" and "?"."""
    rows = read_json(folder / "optimum.json", what="the optima")["rows"]
    lines = ["# The best mechanism that can exist, experiments 2 and 4", ""]
    lines += [
        (
            "Made by `make paper` from optimum.json: training data, reports at the middles of the"
            " 25 m cells of the 6.5 km region."
        ),
        "",
    ]
    lines += ["## Bayes error", ""]
    lines += [
        "| experiment | seed | the paper's optimum | ours reaches | nobody on the grid above |"
        " nobody on the plane above | gap |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for row in _of(rows, "bayes"):
        lines.append(
            f"| {row['experiment']} | {row['seed']} | {row['printed']} | {1 - row['leakage']:.4f} |"
            f" {1 - row['bound_grid']:.4f} | {1 - row['bound_plane']:.4f} | {row['gap']:.4f} |"
        )
    lines += ["", "## Information", ""]
    lines += [
        (
            "| experiment | seed | ours, bits | nobody on the grid below | nobody on the plane"
            " below | gap, % |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for row in _of(rows, "information"):
        lines.append(
            f"| {row['experiment']} | {row['seed']} | {row['leakage']:.4f} |"
            f" {row['bound_grid']:.4f} | {row['bound_plane']:.4f} |"
            f" {100 * row['gap'] / row['leakage']:.2f} |"
        )
    lines += ["", "## The program", ""]
    lines += [
        (
            "The paper counts one variable a pair of cells. Only truths with mass and cells that"
            " meet their convex hull (and a ring about it) can matter; column generation touches"
            " fewer still. Times and memory are of one machine with two cores, shared with other"
            " work (hence the seconds of processor time, where they were taken); they are not"
            " results."
        ),
        "",
        (
            "| experiment | objective | seed | variables, the paper's count | that can matter |"
            " touched | seconds | of processor | check, seconds | peak MB | certificate, kB |"
            " SHA-256 |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['experiment']} | {row['objective']} | {row['seed']} | {row['variables']:,} |"
            f" {row['pairs']:,} | {row['pairs_touched']:,} | {row['seconds']:.0f} |"
            f" {_processor(row)} | {row['check_seconds']:.0f} | {row['peak_mb']:.0f} |"
            f" {row['certificate_bytes'] / 1000:.0f} | `{row['certificate_sha256'][:16]}` |"
        )
    lines += ["", "## The same mechanisms on test data", ""]
    lines += [
        (
            "An unseen truth is answered as the nearest training truth, with its own nearest report"
            " mixed in until it costs no more: this is what the exact channel is worth on places"
            " that it was not solved for. B(X|Z) is for the adversary who knows the test points;"
            " *learnt* for the one who learnt on training data."
        ),
        "",
        (
            "| experiment | objective | seed | loss, training | loss, test | B(X\\|Z), training |"
            " B(X\\|Z), test | learnt, test | exposed, training |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        test = row["test"]
        lines.append(
            f"| {row['experiment']} | {row['objective']} | {row['seed']} "
            f"| {row['loss_m']:.1f} | {test['loss_m']:.1f} | {row['bayes_error']:.3f} "
            f"| {test['bayes_error']:.3f} | {test['learnt_error']:.3f} | {row['exposed']:.1%} |"
        )
    return "\n".join([*lines, ""])


def _processor(row: dict[str, Any]) -> str:
    return f"{row['processor_seconds']:.0f}" if "processor_seconds" in row else ""


def _of(rows: list[dict[str, Any]], objective: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["objective"] == objective]


if __name__ == "__main__":
    if (
        sys.argv[1:] and sys.argv[1] in _OBJECTIVES
    ):  # all seeds of one objective, into docs/reproduction
        main(objectives=(sys.argv[1],), again=True)
        sys.exit()
    print(json.dumps(solve_one(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
