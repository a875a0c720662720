"""What cross-fitting costs: processor time of learning for check-ins to come (the nets of the four
folds, then the net that is released) over that of one net of the same size and steps.

Experiments 2 and 4, seed 0.  Both sides run in turn in one process on one thread, twice each; the
second run is compiled already.  Without calibration, judging and the proof.

python -m benchmarks folds
"""

import time
from collections.abc import Callable
from typing import Any

from benchmarks.alone import alone
from benchmarks.codebook import SEED, problem_of

AT_MOST = 3.0


def _timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _both(experiment: int) -> dict[str, float]:
    """Seconds of one net, and of the folds and the net after them."""
    from sfumato.solver import Codebook
    from sfumato.solver.codebook.run import CrossFittedTraining
    from sfumato.solver.codebook.training import CodebookTraining
    from sfumato.solver.deadline import NEVER
    from sfumato.solver.learner import train

    settings, problem = Codebook(), problem_of(experiment)
    capacity = settings.capacity(problem)
    quiet: Any = {"deadline": NEVER, "progress": None, "checkpoint": None}

    def one() -> None:
        train(CodebookTraining(settings, problem, SEED, capacity=capacity), **quiet)

    def folds() -> None:
        train(CrossFittedTraining(settings, problem, SEED), **quiet)

    first = {"one": _timed(one), "folds": _timed(folds)}
    return {name: min(first[name], _timed(run)) for name, run in (("one", one), ("folds", folds))}


def run() -> dict[str, Any]:
    """Both experiments, each in a process of its own with one thread."""
    found = []
    for experiment in (2, 4):
        seconds = alone(_both, experiment)
        ratio = seconds["folds"] / seconds["one"]
        found.append({"experiment": experiment, "ratio": ratio, "processor_seconds": seconds})
    return {
        "name": "what cross-fitting costs",
        "command": "python -m benchmarks folds",
        "at_most": AT_MOST,
        "runs": found,
        "met": all(each["ratio"] <= AT_MOST for each in found),
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Lines of RESULTS.md, where this was run."""
    if not (own := found.get("folds")):
        return []
    return [
        (
            f"learning for check-ins to come, ratio to learning one net, experiment {row['experiment']}",
            f"{row['ratio']:.1f}",
            f"at most {own['at_most']:g}",
            own,
        )
        for row in own["runs"]
    ]
