"""What the plan before a solve says against what the solve takes: processor seconds and peak memory
over those that `expected` gives, each in a process of its own on one thread, compiling included.

Experiment 2's check-ins, and the synthetic town of `benchmarks.crowd`; without a proof.  A row is
met where the time lies within a factor of three of what was said (of the range, for the exact
solver, which says one) and memory is at most 1.5 times what was said.

python -m benchmarks foretold
"""

import sys
import time
from typing import Any

from benchmarks.alone import alone
from benchmarks.crowd import town

_TIMES, _MEMORY = 3.0, 1.5
CASES = (  # solver, users and check-ins of the town (None: experiment 2), budget in metres
    ("laplace", None, 173.0),
    ("laplace", (6, 1_000), 1000.0),
    ("laplace", (600, 100_000), 300.0),
    ("coin", (600, 100_000), 300.0),
    ("codebook", None, 173.0),
    ("codebook", (600, 100_000), 300.0),
    ("game", None, 173.0),
    ("game", (6, 10_000), 300.0),
    ("exact", None, 173.0),
    ("exact", (6, 1_000), 1000.0),
    ("measure coin", (600, 100_000), 300.0),
    ("measure laplace", (600, 100_000), 300.0),
)


def _one(solver: str, size: tuple[int, int] | None, budget: float) -> dict[str, float]:
    """What is said and what is taken; `measure` is that of a coin or of noise."""
    start = time.process_time()
    import resource

    import sfumato as sf
    from sfumato.measure.cost import judging_cost
    from sfumato.measure.judge import judge

    data = sf.four_corners(0).train if size is None else town(*size)
    if solver.startswith("measure "):
        problem, before = sf.Problem(data, max_loss=budget), time.process_time()
        mechanism = sf.solve(problem, solver.removeprefix("measure ")).mechanism
        start += time.process_time() - before
        expected = judging_cost(mechanism, data)
        judge(mechanism, data, sampled_on=problem.grid)
    else:
        problem, chosen = sf.Problem(data, max_loss=budget), sf.solver.SOLVERS[solver]()
        expected = chosen.expected(problem)
        sf.solve(problem, chosen, proof=None if solver == "exact" else "none")
    return {
        "seconds": time.process_time() - start,
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        "least_said": expected.fastest,
        "most_said": expected.slowest,
        "bytes_said": expected.bytes,
    }


def run(cases: Any = CASES) -> dict[str, Any]:
    """Every case."""
    found = []
    for case in cases:
        one = alone(_one, *case)
        solver, size, budget = case
        data = "experiment 2" if size is None else f"{size[1]:,} check-ins of {size[0]:,} users"
        found.append({"solver": solver, "data": data, "budget_m": budget, **one})
        print(f"{solver}, {data}: {one['seconds']:.1f} s, {_times(one):.2f}", file=sys.stderr)
    return {
        "name": "what a plan says against what it takes",
        "command": "python -m benchmarks foretold",
        "at_most": _TIMES,
        "at_most_memory": _MEMORY,
        "runs": found,
        "met": all(map(_met, found)),
    }


def _times(one: dict[str, float]) -> float:
    """How many times the time that was said, or one over that where it was less."""
    over = max(one["seconds"] / one["most_said"], one["least_said"] / one["seconds"])
    return max(over, 1.0) if one["least_said"] < one["most_said"] else over


def _met(one: dict[str, float]) -> bool:
    return _times(one) <= _TIMES and one["bytes"] <= _MEMORY * one["bytes_said"]


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Lines of RESULTS.md, where this was run."""
    if not (own := found.get("foretold")):
        return []
    seconds = max(map(_times, own["runs"]))
    memory = max(one["bytes"] / one["bytes_said"] for one in own["runs"])
    said = f"over {len(own['runs'])} solves and measurements"
    return [
        (
            f"the plan's time against the time taken, largest factor {said}",
            f"{seconds:.1f}",
            f"at most {own['at_most']:g}",
            own,
        ),
        (
            f"memory taken over the plan's, largest {said}",
            f"{memory:.2f}",
            f"at most {own['at_most_memory']:g}",
            own,
        ),
    ]
