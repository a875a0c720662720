"""The frontier, with other mechanisms placed on it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError, arg
from sfumato.measure.cost import START_S as JUDGING_START_S
from sfumato.measure.estimate import estimate_mean
from sfumato.measure.exact import bayes_error, entropy, mutual_information
from sfumato.measure.objective import Bayes
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.memory import Expected
from sfumato.show import Drawn, InNotebooks, Printed
from sfumato.solver.baselines import Coin, Laplace, cheapest_place
from sfumato.solver.exact import START_S, Exact
from sfumato.solver.frontier import Frontier, frontier
from sfumato.solver.problem import Problem
from sfumato.study.folder import Run, load_run
from sfumato.study.measure import check_planes
from sfumato.study.solve import solve

_LAPLACE_POINTS = 6
_ROUNDING = 1e-6
# A frontier in solves for the Bayes error as the exact solver foretells them: of how many solves a
# curve is, until the budgets between them are bracketed, and how long one is, each begun with the
# reports of the last.  Measured for 4 to 20 users; the range holds what is hard and what is easy.
_MOST_SOLVES, _MOST_BITS_SOLVES = 8, 14
_OF_A_SOLVE, _OF_A_BITS_SOLVE, _WITHIN = 0.3, 0.2, 6.0

Foretold = Callable[[Problem, Expected | None], None]


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
class TradeOff(Printed, Drawn, InNotebooks):
    """The proven curve and the mechanisms beside it."""

    frontier: Frontier
    placed: tuple[Placed, ...]

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
        return tuple(place.to_come for place in self.placed if place.to_come is not None)

    @property
    def cross_fitted(self) -> tuple[Outlook, ...]:
        """Those of `to_come` that were measured on folds of the training data."""
        return tuple(outlook for outlook in self.to_come if outlook.folds)

    def reached_to_come(self, budgets: np.ndarray) -> dict[str, np.ndarray]:
        """The Bayes error and the information that are reached on check-ins to come: the less and
        the more private end of an interval, each at every budget.

        Two mechanisms that take turns have a loss and at most a leakage on the line between theirs.
        The lines lead from the truth over the cross-fitted runs, in the order of their losses, to
        one place for all, which leaks nothing: without runs they are the coin's.  At the less
        private end a true report names its user.
        """
        problem, joint = self.frontier.problem, self.frontier.problem.joint
        assert isinstance(problem.samples, Samples)  # categories have no frontier
        place = np.array(cheapest_place(problem))
        always = estimate_mean(problem.loss(problem.samples.truth, place[None, :]))
        blind = 1 - float(joint.prior.max())
        worse = [(0.0, 0.0, -entropy(joint)), (always.high, blind, 0.0)]
        better = [
            (0.0, bayes_error(joint), -mutual_information(joint)),
            (always.low, blind, 0.0),
        ]
        for outlook in self.cross_fitted:
            loss, error, bits = outlook.loss, outlook.bayes_error, outlook.information_bits
            worse.append((loss.high, error.low, -bits.high))
            better.append((loss.low, error.high, -bits.low))
        ends = [_by_turns(points, budgets) for points in (worse, better)]
        errors, hidden = np.swapaxes(np.array(ends), 0, 1)
        return {"bayes_error": errors, "information_bits": -hidden}

    @property
    def beside_the_bounds(self) -> list[tuple[Placed, float | None, float | None]]:
        """Each mechanism, the largest Bayes error and the least information that are possible on
        the cells at its loss; None where nothing is proved, or not of budgets such as its loss."""
        budgets, bayes, bits = self.frontier.budgets, self.frontier.bayes, self.frontier.information
        losses = np.array([place.loss for place in self.placed])
        within = (budgets.min() <= losses) & (losses <= budgets.max())
        errors, least = 1 - bayes.bound_at(losses), bits.bound_at(losses)
        return [
            (
                place,
                float(errors[at]) if within[at] and bayes.proved_anything else None,
                float(least[at]) if within[at] and bits.proved_anything else None,
            )
            for at, place in enumerate(self.placed)
        ]

    @property
    def beyond(self) -> tuple[str, ...]:
        """Who passes what is proved for reports on the cells: only what reports elsewhere can."""
        passed = (
            place.name
            for place, error, bits in self.beside_the_bounds
            if place.kind == "exact"
            and (
                (error is not None and place.bayes_error > error + _ROUNDING)
                or (bits is not None and place.information_bits < bits - _ROUNDING)
            )
        )
        return tuple(dict.fromkeys(passed))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `to_come` holds the ends of what is reached on check-ins to come."""
        ends = self.reached_to_come(self.frontier.budgets)
        to_come = {name: values.T.tolist() for name, values in ends.items()}
        placed = [place.as_dict() for place in self.placed]
        return {**self.frontier.as_dict(), "to_come": to_come, "placed": placed}


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
    foretold: Foretold | None = None,
) -> TradeOff:
    """Prove the frontier and place Laplace, the coin and runs on it.

    `first` and `last` are budgets in the unit of `loss`; `foretold` is called with what that takes,
    before it begins.
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
    if foretold is not None:
        foretold(problem, _expected(problem, points))
    curves = frontier(problem, budgets, gap=gap, time_limit=time_limit, progress=progress)
    placed = []
    for solver, chosen in (
        (Coin(), budgets),
        (Laplace(), budgets[:: max(1, -(-points // _LAPLACE_POINTS))]),
    ):
        for budget in chosen:
            progress(f"{solver.name} at {budget:g} {curves.loss_unit}")
            measured = solve(replace(problem, max_loss=float(budget)), solver).measured
            figures = (
                measured.loss.value,
                measured.bayes_error.value,
                measured.information_bits.value,
            )
            placed.append(Placed(solver.name, *figures, measured.bayes_error.kind))
    on_cells = [one for one in placed if one.name == Laplace.name and one.kind == "exact"]
    curves = replace(
        curves,
        bayes=curves.bayes.with_mechanisms((one.loss, 1 - one.bayes_error) for one in on_cells),
        information=curves.information.with_mechanisms(
            (one.loss, one.information_bits) for one in on_cells
        ),
    )
    return TradeOff(curves, (*placed, *runs_placed))


def _expected(problem: Problem, points: int) -> Expected | None:
    """What the two curves and the mechanisms beside them take, by what one solve takes."""
    one = Exact().expected(replace(problem, objective=Bayes()))
    if one is None:
        return None
    solves = min(points, _MOST_SOLVES) * _OF_A_SOLVE
    solves += min(points, _MOST_BITS_SOLVES) * _OF_A_BITS_SOLVE
    noise, coin = Laplace().expected(problem), Coin().expected(problem)
    beside = min(points, _LAPLACE_POINTS) * (noise.seconds - JUDGING_START_S)
    beside += points * (coin.seconds - JUDGING_START_S)
    seconds = START_S + solves * (one.seconds - START_S) + beside
    return Expected(seconds, max(one.bytes, noise.bytes), _WITHIN)


def check_range(data: Samples | CategoricalData, first: float, last: float) -> None:
    """Refuse what no frontier can be drawn of."""
    if isinstance(data, CategoricalData):
        raise ProblemError(
            "a frontier is drawn for places; for categories solve at each budget instead"
        )
    if not first < last:
        raise ProblemError(
            f"the budgets run from {first:g} to {last:g}; expected {arg('first')} below"
            f" {arg('last')}"
        )


def _by_turns(points: Sequence[tuple[float, ...]], budgets: np.ndarray) -> list[np.ndarray]:
    """What mechanisms that take turns reach at each budget: `points` hold a loss and figures of
    which more is better.  More loss never hides less."""
    losses, *figures = np.array(sorted(points)).T
    return [np.interp(budgets, losses, np.maximum.accumulate(row)) for row in figures]


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
