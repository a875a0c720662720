"""What is to be solved: data, a loss function, budgets, an objective."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from sfumato.arguments import guided_class
from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples, Split
from sfumato.errors import ProblemError, arg
from sfumato.measure.judge import Judgement, check_secrets, judge
from sfumato.measure.linked import ENDLESS, Reports, linked_leakage
from sfumato.measure.objective import Bayes, Endless, Objective, Overlap, objective_named
from sfumato.measure.repeated import MOST_COUNT
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import Loss, euclidean, traits_of
from sfumato.solver.feasible import check_feasible

CELL_M = 25.0
_FEW_CELLS = 2500  # up to this number all cells are kept, inside the truths' hull or not
BAYES = Bayes()
_RING = 1  # cells about the hull that are kept as well
# how far the default region reaches beyond the data when no average budget is set
_WIDEST_MARGIN_M = 1000.0


@guided_class(budget="max_loss", data="samples", cell="cell_m")
@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Hide the secret of `samples` within a loss budget.

    Main arguments: `samples`, the training data (of a `Split`, its training part); `max_loss`, the
    budget in metres, on average.

    Other arguments: `user_max_loss`, an average budget for each user by name; `max_distance`, a
    hard cap (no report costs more than this), both alone or beside `max_loss`; `objective`, the
    leakage to keep small; `reports`, how many reports of one user the adversary sees together (a
    number, or "endless"): beyond one the least overlap of two users is made large in place of the
    Bayes error (`sfumato.measure.linked`), and "endless" without a budget asks the exact solver for
    the smallest loss at which no number of reports tells anything; `min_bayes_error`, in place of
    all budgets, asks the exact solver for the smallest loss that allows it; `loss`, a function of
    (truth, report); `region`, where reports may lie and grids are laid (the data's own, else its
    bounding square widened by the budget on every side); `cell_m` or `cells`, the grid that reports
    are released on (25 m cells unless set).

    >>> from sfumato.data.synthetic import four_corners
    >>> Problem(four_corners(0).train, max_loss=173).grid.cell_m
    25.0
    """

    samples: Samples | CategoricalData
    max_loss: float | None = None
    loss: Loss = euclidean
    region: Region | None = None
    cell_m: float | None = None
    cells: int | None = None
    user_max_loss: Mapping[str, float] | None = None
    max_distance: float | None = None
    objective: Objective = BAYES
    min_bayes_error: float | None = None
    reports: Reports = 1

    def __post_init__(self) -> None:
        if isinstance(self.samples, Split):
            object.__setattr__(self, "samples", self.samples.train)
        if not isinstance(self.samples, Samples | CategoricalData):
            raise ProblemError(
                f"expected training data; got {type(self.samples).__name__}: read it first with"
                " sf.read_checkins"
            )
        if isinstance(self.objective, str):  # by name, as on the command line
            objective = objective_named(self.objective, self.samples.secrets)
            object.__setattr__(self, "objective", objective)
        if isinstance(self.samples, CategoricalData) and traits_of(self.loss).is_distance:
            object.__setattr__(self, "loss", self.samples.loss)  # not set: a table has its own
        self._check_reports()
        self._check_budgets()
        check_secrets(self.samples)
        if self.cell_m is not None and self.cells is not None:
            raise ProblemError(
                f"name the grid by {arg('cell_m')} or by {arg('cells')}, not by both"
            )
        if isinstance(self.samples, CategoricalData):
            if self.cell_m is not None or self.cells is not None or self.region is not None:
                raise ProblemError(
                    f"{self.samples.name} holds categories, not places; it takes no cells and"
                    " no region"
                )
            return
        if self.region is None:
            object.__setattr__(self, "region", self.samples.region or self._widened())
        assert self.region is not None
        outside = int((~self.region.contains(self.samples.truth)).sum())
        if outside:
            raise ProblemError(
                f"{outside} of {len(self.samples)} truths lie outside the region of"
                f" {self.region.side_m:g} m; widen the region or select fewer check-ins"
            )

    def __repr__(self) -> str:
        budgets = ("max_loss", "max_distance", "min_bayes_error", "user_max_loss")
        given = [name for name in budgets if getattr(self, name) is not None]
        asked = [f"{name}={getattr(self, name):g}" for name in given if name != "user_max_loss"]
        asked += ["a budget per user"] * ("user_max_loss" in given)
        asked += [] if self.reports == 1 else [f"{self.reports} reports"]
        return f"<Problem {self.samples.name!r}: {', '.join([*asked, self.objective.name])}>"

    def _check_reports(self) -> None:
        """Refuse what is no number of reports, and set the objective of several."""
        count = self.reports
        whole = isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST_COUNT
        if count != ENDLESS and not whole:
            raise ProblemError(
                f"{arg('reports')} is a whole number from 1 to {MOST_COUNT} or '{ENDLESS}'; got"
                f" {count}"
            )
        several = isinstance(self.objective, Overlap)
        if count == 1:
            if isinstance(self.objective, Endless):
                raise ProblemError(f"the objective endless goes with {arg('reports')} {ENDLESS}")
            return
        if self.min_bayes_error is not None or not (self.objective == BAYES or several):
            other = "a Bayes error" if self.min_bayes_error is not None else self.objective.name
            raise ProblemError(
                f"{arg('reports')} goes with a budget and the objective bayes; got {other}"
            )
        linked = Endless() if self.seeks_endless_budget else Overlap()
        object.__setattr__(self, "objective", linked)

    @property
    def several(self) -> int | None:
        """The number of linked reports; None for one and for endless ones."""
        return self.reports if isinstance(self.reports, int) and self.reports > 1 else None

    @property
    def seeks_endless_budget(self) -> bool:
        """Whether the smallest loss is asked for at which no number of reports tells anything."""
        return self.reports == ENDLESS and self.max_loss is None and self.user_max_loss is None

    def _check_budgets(self) -> None:
        if self.min_bayes_error is not None:
            if self.max_loss is not None or self.user_max_loss is not None:
                raise ProblemError(
                    f"{arg('min_bayes_error')} asks for the smallest loss; it does not go with"
                    f" {arg('max_loss')} or {arg('user_max_loss')}"
                )
            if self.objective != BAYES:
                raise ProblemError(
                    f"{arg('min_bayes_error')} goes with the objective bayes; got"
                    f" {self.objective.name}"
                )
            if not 0 < self.min_bayes_error < 1:
                raise ProblemError(
                    f"{arg('min_bayes_error')} lies between 0 and 1; got {self.min_bayes_error}"
                )
        elif self.seeks_endless_budget:
            pass
        elif (self.max_loss, self.user_max_loss, self.max_distance) == (None, None, None):
            raise ProblemError(
                f"a problem needs a budget: {arg('max_loss')}, {arg('user_max_loss')} or"
                f" {arg('max_distance')}; got none"
            )
        self._check_above_0(arg("max_loss"), self.max_loss)
        self._check_above_0(arg("max_distance"), self.max_distance)
        if self.user_max_loss is None:
            return
        budgets, users = set(self.user_max_loss), set(self.samples.secrets)
        if budgets != users:
            unknown, without = sorted(budgets - users), sorted(users - budgets)
            odd = f"no user is called '{unknown[0]}'" if unknown else f"'{without[0]}' has none"
            raise ProblemError(f"budgets per user need one for each user and no other; {odd}")
        for name, budget in self.user_max_loss.items():
            self._check_above_0(f"the budget of user {name}", budget)

    def _check_above_0(self, name: str, budget: float | None) -> None:
        if isinstance(budget, str):
            raise ProblemError(f"{name} is a number; got the text '{budget}'")
        if budget is not None and not (budget > 0 and np.isfinite(budget)):
            unit = traits_of(self.loss).unit
            zero = "0 metres" if unit == "m" else f"0 {unit}".rstrip()
            raise ProblemError(f"{name} must be above {zero} and finite; got {budget}")

    def leakage(self, joint: Joint) -> float:
        """What laws are compared by, from P(secret, report): the objective's leakage; for n linked
        reports what n of them tell (`sfumato.measure.linked.linked_leakage`)."""
        if self.several is not None:
            return linked_leakage(joint, self.several)
        return self.objective.leakage(joint)

    @cached_property
    def joint(self) -> Joint:
        """P(secret, truth) at the data's own points."""
        return self.samples.joint()

    @property
    def places(self) -> np.ndarray:
        """The distinct truths, in metres."""
        places = self.joint.places
        assert places is not None
        return places

    @cached_property
    def user_limits(self) -> np.ndarray | None:
        """The budgets per user in the order of the secrets."""
        if self.user_max_loss is None:
            return None
        return np.array([self.user_max_loss[name] for name in self.samples.secrets], dtype=float)

    @cached_property
    def grid(self) -> Grid:
        """The cells that reports are released on."""
        if self.region is None:
            raise ProblemError(f"{self.samples.name} holds categories, not places; it has no grid")
        cell_m = CELL_M if self.cell_m is None and self.cells is None else self.cell_m
        return Grid.over(self.region, cell_m=cell_m, cells=self.cells)

    @property
    def released_on(self) -> Grid | None:
        """The grid, or None for words."""
        return None if self.region is None else self.grid

    def judge(
        self, mechanism: Mechanism, samples: Samples | CategoricalData | None = None, **options: Any
    ) -> Judgement:
        """Judge a mechanism by the problem's loss, region and grid, on its own data or on other;
        `options` are those of `sfumato.judge`."""
        known = {"loss": self.loss, "region": self.region, "sampled_on": self.released_on}
        return judge(mechanism, self.samples if samples is None else samples, **known | options)

    def names_cells(self, joint: Joint) -> bool:
        """Whether the reports of P(secret, report) lie at the middles of the grid's cells; words
        always do."""
        return self.region is None or joint.places is None or self.on_cells(joint.places)

    def on_cells(self, places: np.ndarray) -> bool:
        """Whether all places are middles of the grid's cells."""
        return bool(np.all(np.abs(self.grid.snap(places) - places) <= 1e-6))

    @property
    def loss_is_distance(self) -> bool:
        """Whether the loss grows with the distance, so that reports outside the truths' hull cannot
        help."""
        return traits_of(self.loss).grows_with_distance

    @cached_property
    def report_places(self) -> np.ndarray:
        """The places that a released report may name: the region's cells, or a table's reports.

        For a loss that grows with the distance, cells that lie outside the convex hull of the
        truths and a ring of cells about it are left out: a report there can be moved onto the hull,
        which costs no more and leaks no more.  (The ring is there because the hull's own points are
        not on the grid.)
        """
        if isinstance(self.samples, CategoricalData):
            return self.samples.report_places
        count = self.grid.cells_per_side or 0
        if not self.loss_is_distance or count * count <= _FEW_CELLS:
            return self.grid.centres()
        if self.max_distance is not None:
            # a report moved onto the hull may break the cap: keep all cells within it
            centres = self.grid.centres()
            return centres[cKDTree(self.places).query(centres)[0] <= self.cap_as_distance]
        low, high = np.clip(
            [
                self.grid.index(self.places.min(axis=0)) - _RING,
                self.grid.index(self.places.max(axis=0)) + _RING,
            ],
            0,
            count - 1,
        )
        axes = [np.arange(low[axis], high[axis] + 1) for axis in (0, 1)]
        centres = self.grid.centre_of(
            np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        )
        return centres[meets_hull(centres, (0.5 + _RING) * self.grid.cell_m, self.places)]

    @property
    def cap_as_distance(self) -> float:
        """How far off a report within the cap can lie, in metres, with a little to spare."""
        assert self.max_distance is not None
        return traits_of(self.loss).distance(self.max_distance) * (1 + 1e-9) + 1e-9

    @cached_property
    def nearest_losses(self) -> np.ndarray:
        """For each truth the loss of the report that is nearest to it."""
        if isinstance(self.samples, CategoricalData):
            return self.loss(self.places[:, None, :], self.report_places[None, :, :]).min(axis=1)
        return self.loss(self.places, self.grid.snap(self.places))

    @property
    def smallest_loss(self) -> float:
        """The loss of reporting what is nearest to each truth: no mechanism on these reports costs
        less."""
        return float(self.joint.place_probability @ self.nearest_losses)

    def check_feasible(self) -> None:
        """Refuse budgets that no mechanism on this grid can keep, and name the smallest ones that
        some can."""
        words = isinstance(self.samples, CategoricalData)
        check_feasible(
            self.joint.matrix,
            self.nearest_losses,
            max_loss=self.max_loss,
            user_max_loss=self.user_limits,
            cap=self.max_distance,
            names=tuple(self.samples.secrets),
            on="these reports" if words else f"{self.grid.cell_m:g} m cells",
            unit="" if words else f" {traits_of(self.loss).unit}",
            advice="raise it" if words else "raise the budget or make the cells smaller",
        )

    @property
    def _budgets(self) -> list[float]:
        """Every budget that is set."""
        budgets = (self.max_loss, self.max_distance, *(self.user_max_loss or {}).values())
        return [budget for budget in budgets if budget is not None]

    def _widened(self) -> Region:
        """The data's bounding square, widened by the budget on every side."""
        assert isinstance(self.samples, Samples)
        distance = traits_of(self.loss).distance
        if self.max_loss is not None:
            margin = distance(self.max_loss)
        else:
            cell = (self.cell_m or CELL_M) if self.seeks_endless_budget else 0.0
            margin = max(cell, min(distance(max(self._budgets, default=0.0)), _WIDEST_MARGIN_M))
        return Region.around(self.samples.truth, margin_m=margin)

    @property
    def scale_m(self) -> float:
        """The smallest budget as a distance, but no less than a cell: the scale that reports spread
        over."""
        return max(traits_of(self.loss).distance(min(self._budgets)), self.grid.cell_m)

    @property
    def average_budget(self) -> float:
        """The average budget, for solvers that know no other."""
        if self.max_loss is None or self.user_max_loss is not None or self.max_distance is not None:
            raise ProblemError(
                f"this solver keeps one average budget ({arg('max_loss')}) and no other; use the"
                " exact solver for the rest"
            )
        return self.max_loss


def meets_hull(centres: np.ndarray, half_m: float | np.ndarray, truths: np.ndarray) -> np.ndarray:
    """Which square cells, of half sides `half_m`, may meet the convex hull of the truths: no edge
    of the hull has the whole cell outside."""
    try:
        edges = ConvexHull(truths).equations
    except (QhullError, ValueError):
        # fewer than three truths, or all on a line: the bounding box stands in
        return np.ones(len(centres), dtype=bool)
    inside = np.ones(len(centres), dtype=bool)
    for across, up, offset in edges:
        reach = half_m * (abs(across) + abs(up)) + 1e-9
        inside &= centres @ np.array([across, up]) + offset <= reach
    return inside
