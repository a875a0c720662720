"""One timed solve in a process of its own: the exact solver, or HiGHS on the full linear program.

python -m benchmarks.exact_tasks ours '{"common": 25, "gap": 0.0005}'
python -m benchmarks.exact_tasks highs '{"points": 60, "cell_m": 16, "method": "ipm", "tolerance":
1e-3}'
"""

import json
import resource
import sys
import time
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.measure.bound import Claim, bound_grid
from sfumato.mechanism.loss import euclidean
from sfumato.solver.exact.refine import Places, solve_on_cells
from sfumato.solver.exact.task import Task
from sfumato.solver.problem import Problem

_FIRST = 36  # reports that a priced solve begins with, about


def common(n: int, users: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """T(n): unit cells as truths and reports, users Gaussian about the quarter points (the first four;
    others about the middle, an edge and a circle), every truth shared by all."""
    axis = np.arange(n) + 0.5
    places = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    centres = [
        (n / 4, n / 4),
        (n / 4, 3 * n / 4),
        (3 * n / 4, n / 4),
        (3 * n / 4, 3 * n / 4),
        (n / 2, n / 2),
        (n / 2, 0.0),
    ]
    turns = 2.4 * np.arange(max(0, users - len(centres)))  # beyond six: on a circle, spread evenly
    centres += [(n / 2 + n / 3 * np.cos(turn), n / 2 + n / 3 * np.sin(turn)) for turn in turns]
    centres = centres[:users]
    density = np.array(
        [np.exp(-((places - centre) ** 2).sum(axis=1) / (2 * (n / 5) ** 2)) for centre in centres]
    )
    return density / density.sum(axis=1, keepdims=True) / len(density), places, places, n / 6


def corners(points: int, cell_m: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Four corners with the first `points` of each user, reports on the cells that meet the hull,
    173 m allowed."""
    train = four_corners(seed=0).train
    chosen = np.concatenate([np.flatnonzero(train.secret == user)[:points] for user in range(4)])
    samples: Samples = train.take(np.isin(np.arange(len(train)), chosen))
    problem = Problem(samples, max_loss=173.0, cell_m=cell_m)
    return problem.joint.table, problem.places, problem.report_places, 173.0


def distances(truths: np.ndarray, reports: np.ndarray) -> np.ndarray:
    """Truths x reports."""
    return np.sqrt(
        (truths[:, None, 0] - reports[None, :, 0]) ** 2
        + (truths[:, None, 1] - reports[None, :, 1]) ** 2
    )


def cell_of(reports: np.ndarray) -> float:
    """The side of a cell."""
    return float(np.diff(np.unique(np.round(reports[:, 0], 6))).min())


def coarse(reports: np.ndarray) -> np.ndarray:
    """A coarse lattice among the reports to begin with."""
    index = np.round((reports - reports.min(axis=0)) / cell_of(reports)).astype(int)
    every = max(1, round((len(reports) / _FIRST) ** 0.5))
    return np.flatnonzero(np.all(index % every == every // 2, axis=1))


def ours(
    joint: np.ndarray, truths: np.ndarray, reports: np.ndarray, max_loss: float, gap: float
) -> dict[str, Any]:
    """Solve, then let the checker find the bound again; only the solve is timed."""
    loss = distances(truths, reports)
    task = Task(joint, lambda indices: loss[:, indices], len(reports), max_loss=max_loss)
    start, processor = time.perf_counter(), time.process_time()
    cell = cell_of(reports)
    corner = reports.min(axis=0) - cell / 2
    places = Places(truths, reports, (float(corner[0]), float(corner[1])), cell, euclidean)
    found = solve_on_cells(
        task,
        places,
        gap=gap,
        first_reports=coarse(reports),
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    bound = bound_grid(
        Claim(joint, max_loss=max_loss),
        found.scores,
        found.multipliers,
        lambda indices: loss[:, indices],
    )
    answer = {
        "leakage": found.leakage,
        "bound": bound,
        "gap": found.leakage - bound,
        "loss": found.loss,
        "rounds": found.rounds,
    }
    return {
        **answer,
        "pairs_touched": found.pairs_touched,
        "seconds": seconds,
        "processor_seconds": processor,
    }


def highs(
    joint: np.ndarray,
    loss: np.ndarray,
    max_loss: float,
    method: str,
    tolerance: float | None,
    limit_s: float,
) -> dict[str, Any]:
    """The full program, a column per pair: HiGHS by "simplex" or "ipm".

    With a tolerance its interior point may stop at that relative gap and skips the crossover to a
    vertex. After `limit_s` seconds of processor time the process is ended by the system; what it
    says then stands on stdout before.
    """
    import highspy

    secrets, truths = joint.shape
    reports = loss.shape[1]
    pairs, free = truths * reports, highspy.kHighsInf
    truth, report = np.divmod(np.arange(pairs), reports)
    rows = [
        reports * secrets + truth,
        np.full(pairs, reports * secrets + truths),
        np.arange(reports * secrets),
    ]
    columns = [np.arange(pairs), np.arange(pairs), pairs + np.repeat(np.arange(reports), secrets)]
    entries = [
        np.ones(pairs),
        (joint.sum(axis=0)[:, None] * loss).ravel(),
        -np.ones(reports * secrets),
    ]
    for secret, mass in enumerate(joint):
        owned = np.flatnonzero(mass[truth] > 0)
        rows, columns, entries = (
            [*rows, report[owned] * secrets + secret],
            [*columns, owned],
            [*entries, mass[truth[owned]]],
        )
    matrix = csc_matrix((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))))
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_ = np.r_[np.zeros(pairs), np.ones(reports)]
    program.col_lower_, program.col_upper_ = (
        np.zeros(pairs + reports),
        np.full(pairs + reports, free),
    )
    program.row_lower_ = np.r_[np.full(reports * secrets, -free), np.ones(truths), -free]
    program.row_upper_ = np.r_[np.zeros(reports * secrets), np.ones(truths), max_loss]
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = (
        matrix.indptr,
        matrix.indices,
        matrix.data,
    )
    engine = highspy.Highs()
    options: dict[str, Any] = {"output_flag": False, "solver": method, "threads": 1}
    if tolerance is not None:
        options |= {"run_crossover": "off", "ipm_optimality_tolerance": tolerance}
    for name, value in options.items():
        engine.setOptionValue(name, value)
    engine.passModel(program)
    print(
        json.dumps(
            {"truths": truths, "reports": reports, "users": secrets, "processor_seconds": limit_s}
        ),
        flush=True,
    )
    start, processor = time.perf_counter(), time.process_time()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(processor + limit_s) + 1, resource.RLIM_INFINITY))
    engine.run()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    status, value = (
        engine.modelStatusToString(engine.getModelStatus()),
        engine.getInfo().objective_function_value,
    )
    return {
        "status": status,
        "leakage": value,
        "seconds": seconds,
        "processor_seconds": processor,
        "cut_off": False,
    }


def main(solver: str, options: dict[str, Any]) -> dict[str, Any]:
    """One solve as asked, with its sizes and the process's peak memory."""
    if "common" in options:
        joint, truths, reports, max_loss = common(options["common"], options.get("users", 4))
    else:
        joint, truths, reports, max_loss = corners(options["points"], options["cell_m"])
    if solver == "ours":
        found = ours(joint, truths, reports, max_loss, options["gap"])
    else:
        limit_s = options.get("limit_s", 3600.0)
        found = highs(
            joint,
            distances(truths, reports),
            max_loss,
            options["method"],
            options.get("tolerance"),
            limit_s,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "truths": len(truths),
        "reports": len(reports),
        "users": len(joint),
        **found,
        "peak_mb": peak,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
