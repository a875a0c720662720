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
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.show import Drawn, InNotebooks
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
    """A mechanism on the frontier's axes: on these check-ins and, for a run that knows it, on
    check-ins to come."""

    name: str
    loss: float
    bayes_error: float
    information_bits: float
    kind: str = "exact"
    to_come: Outlook | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        to_come = None if self.to_come is None else self.to_come.as_dict()
        return {**asdict(self), "to_come": to_come}


@dataclass(frozen=True, eq=False)
class TradeOff(Drawn, InNotebooks):
    """The proven curve and the mechanisms beside it."""

    frontier: Frontier
    placed: tuple[Placed, ...]

    def __str__(self) -> str:
        return show.text(self)

    @property
    def loss_unit(self) -> str:
        """The unit of losses and budgets."""
        return self.frontier.loss_unit

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(place.name for place in self.placed))
        return f"<TradeOff at {len(self.frontier.budgets)} budgets, with {names}>"

    @property
    def to_come(self) -> tuple[Outlook, ...]:
        """What to expect of check-ins to come, of the mechanisms that know it."""
        return tuple(one.to_come for one in self.placed if one.to_come is not None)

    @property
    def beside_the_bounds(self) -> list[tuple[Placed, float | None, float | None]]:
        """Each mechanism, the largest Bayes error and the least information that are possible on
        the cells at its loss; None where nothing is proved, or not of budgets such as its loss."""
        budgets, bayes, bits = self.frontier.budgets, self.frontier.bayes, self.frontier.information
        losses = np.array([one.loss for one in self.placed])
        within = (budgets.min() <= losses) & (losses <= budgets.max())
        errors, least = 1 - bayes.bound_at(losses), bits.bound_at(losses)
        return [
            (
                one,
                float(errors[at]) if within[at] and bayes.proved_anything else None,
                float(least[at]) if within[at] and bits.proved_anything else None,
            )
            for at, one in enumerate(self.placed)
        ]

    @property
    def beyond(self) -> tuple[str, ...]:
        """Who passes what is proved for reports on the cells: only what reports elsewhere can."""
        passed = (
            one.name
            for one, error, bits in self.beside_the_bounds
            if one.kind == "exact"
            and (
                (error is not None and one.bayes_error > error + _ROUNDING)
                or (bits is not None and one.information_bits < bits - _ROUNDING)
            )
        )
        return tuple(dict.fromkeys(passed))

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
    loss: Loss = euclidean,
    runs: tuple[Path, ...] = (),
    time_limit: float | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> TradeOff:
    """Prove the frontier and place Laplace, the coin and runs on it.

    `first` and `last` are budgets in the unit of `loss`.
    """
    check_range(data, first, last)
    problem = Problem(data, max_loss=last, cell_m=cell_m, cells=cells, loss=loss)
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
            progress(f"{solver.name} at {budget:g} {found.loss_unit}")
            measured = solve(replace(problem, max_loss=float(budget)), solver).measured
            figures = (
                measured.loss.value,
                measured.bayes_error.value,
                measured.information_bits.value,
            )
            placed.append(Placed(solver.name, *figures, measured.bayes_error.kind))
    return TradeOff(found, (*placed, *runs_placed))


def check_range(data: Samples | CategoricalData, first: float, last: float) -> None:
    """Refuse what no frontier can be drawn of."""
    if isinstance(data, CategoricalData):
        raise ProblemError(
            "a frontier is drawn for places; for categories solve at each budget instead"
        )
    if not first < last:
        raise ProblemError(
            f"the budgets run from {first:g} to {last:g}; expected the first below the last"
        )


def _placed(run: Run, problem: Problem) -> Placed:
    law = run.mechanism.law(problem.joint, loss=problem.loss) or run.mechanism.law(
        problem.joint, grid=run.grid, loss=problem.loss
    )
    if law is None:
        raise ProblemError(
            f"the law of {run.folder} is not known; measure it instead",
            hint=f"sfumato measure {run.folder}",
        )
    return Placed(
        run.name,
        law.loss,
        bayes_error(law.joint),
        mutual_information(law.joint),
        to_come=run.record.to_come,
    )
