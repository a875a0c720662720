"""Rules that phones and browsers apply whatever the data: beside the others, at the loss that they
have."""

from dataclasses import dataclass
from typing import ClassVar

from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.measure.cost import judging_cost
from sfumato.mechanism.approximate import DegreeSnap
from sfumato.mechanism.simple import Identity
from sfumato.mechanism.wrap import Snapped
from sfumato.memory import Expected
from sfumato.solver.outcome import Conditions, Outcome
from sfumato.solver.problem import Problem
from sfumato.solver.setting import setting

ANDROID_M = 2000.0  # the accuracy that AOSP's LocationFudger is made with
WEBKIT_M = 5000.0


@dataclass(frozen=True)
class Snap:
    """Reports the middle of the truth's cell.  It knows no budget: its loss, some 0.38 of a cell of
    `cell_m` metres where truths are even, is what it is.

    >>> import sfumato as sf
    >>> data = sf.four_corners(seed=0)
    >>> snapped = sf.solve(sf.Problem(data.train, max_loss=500), Snap(1000.0))
    >>> snapped.mechanism.sample([[10.0, 20.0]]).tolist()
    [[500.0, 500.0]]
    """

    cell_m: float = setting(
        2000.0, "Side of the cells whose middles are reported.", option="METRES", flag="--snap-m"
    )
    name: ClassVar[str] = "snap"
    resumable: ClassVar[bool] = False

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """The same for every problem."""
        return Outcome(Snapped(Identity(), Grid(cell_m=self.cell_m)))

    def expected(self, problem: Problem) -> Expected:
        """What judging it takes."""
        return judging_cost(self.solve(problem, Conditions()).mechanism, problem.samples)


@dataclass(frozen=True)
class Android:
    """Android's coarse location: an offset, then the nearest corner of a grid.

    The offset is Gaussian, a quarter of `accuracy_m` in deviation; the grid is of `accuracy_m`.
    `sample` draws the offset anew for each report, which is the law of one report.  On a phone it
    drifts, so that reports of one week share most of it: `mechanism.along(truth, seconds)` gives
    those.

    >>> import sfumato as sf
    >>> data = sf.four_corners(seed=0)
    >>> sf.solve(sf.Problem(data.train, max_loss=900), Android()).mechanism.kind
    'degree snap'
    """

    accuracy_m: float = ANDROID_M
    name: ClassVar[str] = "android"
    resumable: ClassVar[bool] = False

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """The same for every problem on one plane."""
        return Outcome(_on_degrees(problem, self.accuracy_m, self.accuracy_m / 4))

    def expected(self, problem: Problem) -> Expected:
        """What judging it takes."""
        return judging_cost(self.solve(problem, Conditions()).mechanism, problem.samples)


@dataclass(frozen=True)
class WebKit:
    """The approximate location of WebKit: the nearest corner of a grid, without chance.

    The grid is of `cell_m` metres, its columns as wide as the latitude asks: one place, one report.

    >>> import sfumato as sf
    >>> data = sf.four_corners(seed=0)
    >>> sf.solve(sf.Problem(data.train, max_loss=2500), WebKit()).mechanism.draws
    0
    """

    cell_m: float = WEBKIT_M
    name: ClassVar[str] = "webkit"
    resumable: ClassVar[bool] = False

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """The same for every problem on one plane."""
        return Outcome(_on_degrees(problem, self.cell_m, 0.0))

    def expected(self, problem: Problem) -> Expected:
        """What judging it takes."""
        return judging_cost(self.solve(problem, Conditions()).mechanism, problem.samples)


def _on_degrees(problem: Problem, cell_m: float, deviation_m: float) -> DegreeSnap:
    samples = problem.samples
    if not isinstance(samples, Samples) or samples.plane is None:
        raise ProblemError(
            f"{samples.name} is in metres or categories; a grid of degrees needs latitudes and"
            " longitudes"
        )
    plane = samples.plane
    return DegreeSnap(plane.latitude, plane.longitude, cell_m, deviation_m)
