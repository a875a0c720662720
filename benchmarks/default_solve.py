"""Processor time of the default solve: until there is a mechanism, and until there is a bound
within 0.01 of the one that the proof ends with.

Experiment 4, seed 0: six users of Paris with 82 check-ins each, 518 m.  A process of its own, with
one thread per matrix product, from the start of Python on: imports, data and compiling are counted.
Once with an empty folder of compiled code and once with what the first run left there, as commands
keep it; bytecode of the packages is there both times, as after an installation.

python -m benchmarks default_solve
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

AT_MOST_S = 20.0
WITHIN = 0.01
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _one() -> dict[str, Any]:
    """The two parts of `sf.solve(problem)`, with the time at which each answer is there."""
    from sfumato.cli import machine

    machine.keep_compiled()
    from paper.experiments import EXPERIMENTS, load
    from sfumato.solver import Codebook, Problem
    from sfumato.solver.exact import certificate_for
    from sfumato.study.solve import solve

    problem = Problem(load("gowalla", 0).train, max_loss=EXPERIMENTS[3].max_loss_m)
    solution = solve(problem, Codebook(), seed=0, proof="none")
    learned = time.process_time()
    bounds: list[tuple[float, float]] = []
    certificate_for(
        problem,
        seed=0,
        on_proof=lambda certificate, bound, least: bounds.append((time.process_time(), bound)),
        known=solution.measured.joint,
    )
    assert solution.outlook is not None
    return {
        "mechanism_s": learned,
        "bound_s": next(at for at, bound in bounds if bounds[-1][1] - bound <= WITHIN),
        "end_s": time.process_time(),
        "bounds": bounds,
        "loss_to_come": solution.outlook.loss.value,
        "bayes_error_to_come": solution.outlook.bayes_error.value,
    }


def run() -> dict[str, Any]:
    """Without compiled code, then with it."""
    kept_out = ("PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR")
    ours = {name: value for name, value in os.environ.items() if name not in kept_out}
    found, load = {}, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        code = "import json; from benchmarks.default_solve import _one; print(json.dumps(_one()))"
        env = ours | _ONE_THREAD | {"XDG_CACHE_HOME": folder}
        start = "import sfumato.solver.codebook.run, sfumato.study.solve"
        subprocess.run([sys.executable, "-c", start], env=env, check=True)
        for name in ("compiling", "compiled"):
            ended = subprocess.run(
                [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
            )
            found[name] = json.loads(ended.stdout.splitlines()[-1])
    return {
        "name": "the default solve of six users of Paris at 518 m",
        "command": "python -m benchmarks default_solve",
        "at_most_s": AT_MOST_S,
        "within": WITHIN,
        "runs": found,
        "load_average": [round(load, 1), round(os.getloadavg()[0], 1)],
        "met": found["compiling"]["bound_s"] <= AT_MOST_S,
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Lines of RESULTS.md, where this was run."""
    if not (own := found.get("default_solve")):
        return []
    busy = f" (load average {max(own['load_average']):.0f} on two cores)"
    name = f"default solve, Paris, 518 m, processor seconds{busy}"
    lines = []
    for how, each in own["runs"].items():
        first = "empty compilation cache" if how == "compiling" else "filled compilation cache"
        lines += [(f"{name} to the mechanism, {first}", f"{each['mechanism_s']:.1f}", "", own)]
        wanted = f"at most {own['at_most_s']:g}" if how == "compiling" else ""
        to_bound = f"{name} to a bound within {own['within']:g} of the last, {first}"
        lines += [(to_bound, f"{each['bound_s']:.1f}", wanted, own)]
        lines += [(f"{name} to the last bound, {first}", f"{each['end_s']:.1f}", "", own)]
    return lines
