"""Problems, solvers and solutions."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.errors import ProblemError
from sfumato.measure.judge import judge
from sfumato.solver.baselines import Coin, Laplace
from sfumato.solver.codebook import Codebook
from sfumato.solver.exact.solver import Exact
from sfumato.solver.game import Game
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Solution, Solver

SOLVERS: dict[str, type] = {
    "codebook": Codebook,
    "exact": Exact,
    "game": Game,
    "coin": Coin,
    "laplace": Laplace,
}
DEFAULT = "codebook"
RESUMABLE = (Codebook, Game)  # learn round by round: progress, checkpoints


def solve(
    problem: Problem,
    solver: Solver,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Solution:
    """Find a mechanism for a problem and measure it on the problem's own (training) data.

    The same seed gives the same mechanism.  `time_limit` is in seconds.  A solver that plays rounds
    calls `progress` with a record of each (and the mechanism as it is then, under "mechanism"), and
    with `checkpoint` (a file) can be stopped and gone on with.

    >>> from sfumato.data.synthetic import four_corners
    >>> solution = solve(Problem(four_corners(0).train, max_loss=173), Coin())
    >>> round(solution.measured.bayes_error.value, 2)
    0.61
    """
    if time_limit is not None and not time_limit > 0:
        raise ProblemError(f"the time limit must be above 0 seconds; got {time_limit}")
    start = time.perf_counter()
    if isinstance(solver, RESUMABLE):
        place = None if checkpoint is None else Path(checkpoint)
        found = solver.solve(
            problem, seed=seed, time_limit=time_limit, progress=progress, checkpoint=place
        )
    elif checkpoint is not None:
        raise ProblemError(
            f"the solver '{solver.name}' has no rounds to go on from; only the codebook and the"
            " game have a checkpoint"
        )
    else:
        found = solver.solve(problem, seed=seed, time_limit=time_limit)
    seconds = time.perf_counter() - start
    mechanism = found.mechanism.on_plane(problem.samples.plane)
    measured = judge(
        mechanism,
        problem.samples,
        loss=problem.loss,
        region=problem.region,
        sampled_on=problem.released_on,
    )
    status = found.status
    if problem.max_loss is not None and measured.loss.low > problem.max_loss * (1 + 1e-9):
        status = f"Loss bound exceeded: {measured.loss.value:.2f} m over {problem.max_loss:g} m."
    return Solution(
        problem,
        solver,
        seed,
        mechanism,
        measured,
        status,
        seconds,
        found.history,
        found.certificate,
    )


__all__ = [
    "DEFAULT",
    "RESUMABLE",
    "SOLVERS",
    "Codebook",
    "Coin",
    "Exact",
    "Game",
    "Laplace",
    "Problem",
    "Solution",
    "Solver",
    "solve",
]
