"""The frontier, with other mechanisms placed on it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import show
from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.solver.baselines import Coin, Laplace
from sfumato.solver.frontier import Frontier, frontier
from sfumato.solver.problem import Problem
from sfumato.study.folder import Run, load_run
from sfumato.study.measure import check_planes
from sfumato.study.solve import solve

_LAPLACE_POINTS = 6
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Placed:
    """A mechanism on the frontier's axes."""

    name: str
    loss: float
    bayes_error: float
    information_bits: float
    kind: str = "exact"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The proven curve and the mechanisms beside it."""

    frontier: Frontier
    placed: tuple[Placed, ...]

    def __str__(self) -> str:
        return show.text(self)

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(place.name for place in self.placed))
        return f"<TradeOff at {len(self.frontier.budgets)} budgets, with {names}>"

    @property
    def beyond(self) -> tuple[str, ...]:
        """Who passes what is proved for reports on the cells: only what reports elsewhere can."""
        budgets, bayes, bits = self.frontier.budgets, self.frontier.bayes, self.frontier.information
        within = [
            one
            for one in self.placed
            if one.kind == "exact" and budgets.min() <= one.loss <= budgets.max()
        ]
        at = np.array([one.loss for one in within])
        more = [1 - one.bayes_error for one in within] < bayes.bound_at(at) - _ROUNDING
        more |= [one.information_bits for one in within] < bits.bound_at(at) - _ROUNDING
        return tuple(
            dict.fromkeys(one.name for one, passed in zip(within, more, strict=True) if passed)
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.frontier.as_dict(), "placed": [one.as_dict() for one in self.placed]}


def trade_off(
    data: Samples | CategoricalData,
    *,
    first: float,
    last: float,
    points: int,
    cell_m: float | None,
    cells: int | None,
    gap: float,
    runs: tuple[Path, ...] = (),
    time_limit: float | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> TradeOff:
    """Prove the frontier and place Laplace, the coin and runs on it."""
    if isinstance(data, CategoricalData):
        raise ProblemError(
            "a frontier is drawn for places; for categories solve at each budget instead"
        )
    if not first < last:
        raise ProblemError(
            f"the budgets run from {first:g} to {last:g} m; expected the first below the last"
        )
    problem = Problem(data, max_loss=last, cell_m=cell_m, cells=cells)
    budgets = np.linspace(first, last, points)
    loaded = [load_run(folder) for folder in runs]
    check_planes(
        [data.plane, *[run.record.data.plane for run in loaded]],
        [data.name, *[str(run.folder) for run in loaded]],
    )
    runs_placed = [
        _placed(run, problem) for run in loaded
    ]  # what cannot be placed is refused before the proof
    found = frontier(problem, budgets, gap=gap, time_limit=time_limit, progress=progress)
    placed = []
    for solver, chosen in (
        (Coin(), budgets),
        (Laplace(), budgets[:: max(1, -(-points // _LAPLACE_POINTS))]),
    ):
        for budget in chosen:
            progress(f"{solver.name} at {budget:g} m")
            measured = solve(replace(problem, max_loss=float(budget)), solver).measured
            figures = (
                measured.loss.value,
                measured.bayes_error.value,
                measured.information_bits.value,
            )
            placed.append(Placed(solver.name, *figures, measured.bayes_error.kind))
    return TradeOff(found, (*placed, *runs_placed))


def _placed(run: Run, problem: Problem) -> Placed:
    law = run.mechanism.law(problem.joint, loss=problem.loss) or run.mechanism.law(
        problem.joint, grid=run.grid, loss=problem.loss
    )
    if law is None:
        raise ProblemError(
            f"the law of {run.folder} is not known; measure it instead",
            hint=f"sfumato measure {run.folder}",
        )
    return Placed(run.name, law.loss, bayes_error(law.joint), mutual_information(law.joint))
