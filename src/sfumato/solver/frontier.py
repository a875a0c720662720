"""The proven best trade-off: how little any mechanism can leak at each budget.

The least leakage is a convex, falling function of the budget.  One solve at a budget gives two
things that hold at *every* budget: a tangent below the curve (its certificate, whose multiplier is
the slope) and a mechanism on it (mixing two mechanisms gives all losses between).  So a few solves
bracket the whole curve, and the next one goes where the bracket is widest.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.arguments import guided
from sfumato.data.frames import Tabular
from sfumato.errors import ProblemError, arg
from sfumato.measure.certificate import Proof, bound_on_the_grid
from sfumato.measure.objective import Bayes, Information, Objective, blind_leakage
from sfumato.mechanism.loss import traits_of
from sfumato.mechanism.simple import Identity, constant
from sfumato.mechanism.wrap import Snapped
from sfumato.show import Drawn, InNotebooks
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import best_within
from sfumato.solver.problem import Problem
from sfumato.threads import one_thread

_ROUNDING = 1e-9
_HARDLY = 0.005  # a probability, or bits: the gap to which a frontier is proved


@dataclass(frozen=True, eq=False)
class Curve:
    """The bracket of one objective: at each budget, `reached` by some mechanism and `bound` that
    none goes below.

    `tangents`, height at budget 0 and slope, each below the frontier at every budget.
    """

    objective: Objective
    budgets: np.ndarray
    reached: np.ndarray
    tangents: np.ndarray
    solves: int

    @property
    def bound(self) -> np.ndarray:
        """What no mechanism goes below, at each of `budgets`."""
        return self.bound_at(self.budgets)

    def bound_at(self, budgets: np.ndarray) -> np.ndarray:
        """At any budgets from the first to the last: between two of them a straight line would lie
        above the frontier."""
        heights, slopes = self.tangents.T
        lowest = (heights[:, None] + slopes[:, None] * budgets).max(axis=0)
        return np.minimum(lowest, self.reached_at(budgets))

    def reached_at(self, budgets: np.ndarray) -> np.ndarray:
        """At any budgets from the first to the last: two mechanisms take turns."""
        order = np.argsort(self.budgets)
        return np.interp(budgets, self.budgets[order], self.reached[order])

    def with_mechanisms(self, points: Iterable[tuple[float, float]]) -> "Curve":
        """The curve where further mechanisms, each a loss and a leakage, take turns too: where the
        time was up, a baseline may be the best that is known."""
        known = [*zip(self.budgets.tolist(), self.reached.tolist(), strict=True), *points]
        reached = np.interp(self.budgets, *_lower_hull(known))
        return replace(self, reached=np.maximum(reached, self.bound))

    @property
    def proved_anything(self) -> bool:
        """Whether a solve ended: without one the bound is only what a blind guess leaks."""
        return len(self.tangents) > 1

    @property
    def beyond_blind(self) -> np.ndarray:
        """At which budgets the bound is more than what a blind guess leaks, or a mechanism leaks
        hardly more than that, so that it is the answer."""
        blind = self.tangents[0, 0]
        return np.asarray((self.bound > blind + _ROUNDING) | (self.reached <= blind + _HARDLY))

    @property
    def gap(self) -> float:
        """The widest place of the bracket."""
        return float(np.max(self.reached - self.bound))


@dataclass(frozen=True, eq=False)
class Frontier(Tabular, Drawn, InNotebooks):
    """Bayes error and information against the loss budget, on the problem's grid."""

    problem: Problem
    bayes: Curve
    information: Curve

    def __repr__(self) -> str:
        low, high = self.budgets.min(), self.budgets.max()
        return (
            f"<Frontier at {len(self.budgets)} budgets from {low:g} to {high:g} {self.loss_unit}>"
        )

    @property
    def loss_unit(self) -> str:
        """The unit of the budgets."""
        return traits_of(self.problem.loss).unit

    @property
    def budgets(self) -> np.ndarray:
        """The budgets, in the unit of the problem's loss."""
        return self.bayes.budgets

    def columns(self) -> dict[str, Any]:
        """One row per budget: what is reached, and the bound that no mechanism on the grid can
        pass."""
        return {
            "max_loss": self.budgets,
            "bayes_error": 1 - self.bayes.reached,
            "bayes_error_bound": 1 - self.bayes.bound,
            "information_bits": self.information.reached,
            "information_bits_bound": self.information.bound,
        }

    def as_dict(self) -> dict[str, object]:
        """For JSON: Bayes errors (not vulnerabilities) and bits; `bound` is what no mechanism on
        the grid can pass."""
        curves = {"bayes_error": self.bayes, "information_bits": self.information}
        columns = self.columns()
        points = [
            {"max_loss": float(budget)}
            | {
                name: {
                    "value": float(columns[name][at]),
                    "bound": float(columns[f"{name}_bound"][at]),
                }
                for name in curves
            }
            for at, budget in enumerate(self.budgets)
        ]
        return {
            "points": points,
            "gap": {name: curve.gap for name, curve in curves.items()},
            "proved_anything": {name: curve.proved_anything for name, curve in curves.items()},
            "cell_m": self.problem.grid.cell_m,
            "data_hash": self.problem.samples.hash,
            "solves": self.bayes.solves + self.information.solves,
        }


@one_thread()
@guided(
    budgets="sf.frontier(problem, [100, 200])",
    start="budgets",
    max_loss="budgets",
    max_losses="budgets",
)
def frontier(
    problem: Problem,
    budgets: Sequence[float] | np.ndarray,
    *,
    gap: float = 0.005,
    time_limit: float | None = None,
    progress: Callable[[str], None] = lambda text: None,
    watch: Callable[[Curve], None] = lambda curve: None,
) -> Frontier:
    """Bracket the least leakage at every budget given, to `gap` (a probability, or bits) or until
    the time is up.

    The problem's own budget and objective are not used; its grid, loss and data are.  `watch` is
    shown the bracket after each solve, while it narrows.  Budgets are in the unit of the loss;
    leakage is a probability or bits, lower is more private.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> problem = sf.Problem(data, max_loss=45, cell_m=20)
    >>> found = sf.frontier(problem, [45.0, 60.0], gap=0.01)
    >>> found.bayes.reached.round(2)  # 1 - Bayes error at each budget
    array([0.52, 0.5 ])
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"expected a problem; got {type(problem).__name__}: write sf.frontier(sf.Problem(data,"
            f" {arg('max_loss')}=200), [100, 200])"
        )
    deadline = Deadline.after(time_limit)
    budgets = np.atleast_1d(np.asarray(budgets, dtype=float))
    if budgets.ndim != 1 or not len(budgets) or not np.all((budgets > 0) & np.isfinite(budgets)):
        raise ProblemError("a frontier needs budgets above 0, all finite")
    if not gap > 0:
        raise ProblemError(f"the gap must be above 0; got {gap}")
    smallest, unit = problem.smallest_loss, traits_of(problem.loss).unit
    if not budgets.min() >= smallest:
        raise ProblemError(
            f"the smallest budget asked for is {budgets.min():g} {unit}; on this grid no mechanism"
            f" stays below {smallest:.4g} {unit}: start higher or make the cells smaller"
        )
    curves = [
        _curve(problem, objective, budgets, gap=gap, deadline=end, progress=progress, watch=watch)
        for objective, end in ((Bayes(), deadline.share(0.5)), (Information(), deadline))
    ]
    return Frontier(problem, curves[0], curves[1])


def _curve(
    problem: Problem,
    objective: Objective,
    budgets: np.ndarray,
    *,
    gap: float,
    deadline: Deadline,
    progress: Callable[[str], None],
    watch: Callable[[Curve], None],
) -> Curve:
    unit = objective.nats
    points = _ends(problem, objective)
    tangents = [(max(blind_leakage(objective, problem.joint), 0.0), 0.0)]
    reports: np.ndarray | None = None
    solved: set[float] = set()
    while True:
        reached = np.interp(budgets, *_lower_hull(points))
        curve = Curve(objective, budgets, reached, np.array(tangents), len(solved))
        watch(curve)
        widths = reached - curve.bound
        widths[[budget in solved for budget in budgets]] = -1
        at = int(np.argmax(widths))
        if not widths[at] > gap or deadline.passed:
            break
        budget = float(budgets[at])
        solved.add(budget)
        asked = replace(
            problem,
            max_loss=budget,
            user_max_loss=None,
            max_distance=None,
            min_bayes_error=None,
            objective=objective,
        )
        optimum = best_within(asked, gap=gap * unit / 2, deadline=deadline, first_reports=reports)
        proven, _ = bound_on_the_grid(
            asked, Proof(asked.report_places, optimum.scores, optimum.multipliers)
        )  # by the checker, not the solver
        reports = optimum.reports if reports is None else np.union1d(reports, optimum.reports)
        price = float(optimum.multipliers[0]) / unit
        tangents.append((proven / unit + price * budget, -price))
        points.append((optimum.loss, optimum.leakage / unit))
        where = f"at {budget:g} {traits_of(problem.loss).unit}"
        leaked, least = (max(0.0, leakage / unit) for leakage in (optimum.leakage, proven))
        if isinstance(objective, Bayes):
            progress(f"Bayes error {where}: {1 - leaked:.4f}, at most {1 - least:.4f}")
        else:
            progress(f"{objective.name} {where}: {leaked:.4f}, at least {least:.4f}")
    return curve


def _ends(problem: Problem, objective: Objective) -> list[tuple[float, float]]:
    """Mechanisms at both ends that need no solving: the nearest report, and one place for all."""
    points = []
    cost = np.array(
        [
            float(problem.joint.place_probability @ problem.loss(problem.places, place[None, :]))
            for place in problem.report_places
        ]
    )
    best = problem.report_places[int(np.argmin(cost))]
    for mechanism in (
        Snapped(Identity(), problem.grid),
        constant((float(best[0]), float(best[1]))),
    ):
        law = mechanism.law(problem.joint, loss=problem.loss)
        assert law is not None
        points.append((law.loss, objective.leakage(law.joint)))
    return points


def _lower_hull(points: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Losses and leakages of the mixtures that leak least: the lower convex hull, level beyond its
    last point."""
    hull: list[tuple[float, float]] = []
    for point in sorted(points):
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (point[1] - hull[-2][1]) <= (
            hull[-1][1] - hull[-2][1]
        ) * (point[0] - hull[-2][0]):
            hull.pop()
        hull.append(point)
    losses, leakages = np.array(hull).T
    return losses, np.minimum.accumulate(leakages)
