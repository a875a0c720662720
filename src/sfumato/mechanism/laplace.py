"""The planar Laplace mechanism, sampled exactly and integrated exactly over cells."""

from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from weakref import WeakKeyDictionary

import numpy as np

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import MechanismError, ProblemError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import Law, Window, deviation
from sfumato.mechanism.loss import Loss, euclidean, traits_of
from sfumato.mechanism.rows import MOST_ENTRIES, RowsOnDemand

_TAIL = 1e-6  # probability left outside the window over which cells are summed
# tail and series error together, in total variation (measured against a tenfold finer sum)
_WITHIN = 5e-6
_NEAR = 4  # cells this close to the truth are integrated exactly: the density has a kink there
_FINE = 0.3  # epsilon times cell side above which cells are split for the series of far cells
_COARSE = 0.5  # epsilon times the side of the parts of a cell whose middles stand for them
_WIDEST_WINDOW = 4e7  # cells times secrets that are held at once, about a gigabyte
_MOST_CELLS = 3e9  # about half a minute
_WIDEST_ROW = 2e7  # cells of one row
_LEAST_EPSILON = 1e-12  # noise of a million million metres: no place on Earth, and still finite
_BLOCK = 16384  # reports made at a time: what is at work stays in the cache
_SINE = [
    (-1) ** n / float(factorial(2 * n + 1)) for n in range(7, 0, -1)
]  # enough for an eighth of a turn in double precision
_KEPT = 2e6  # entries of a law that is kept
_LAST: WeakKeyDictionary[Joint, tuple[tuple[float, Grid, Loss], Law]] = WeakKeyDictionary()
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class PlanarLaplace(Mechanism):
    """Adds noise of density  epsilon^2 / (2 pi) * exp(-epsilon * d(w, z)).

    `epsilon` is per metre.  Its expected loss is 2/epsilon metres, whatever the data.
    Geo-indistinguishable at epsilon.  Paper: equation of section 5, "The planar Laplace mechanism".

    >>> round(PlanarLaplace.for_loss(173).epsilon, 5)
    0.01156
    """

    epsilon: float
    kind = "planar laplace"
    lists_truths = False
    draws = 2

    def __post_init__(self) -> None:
        if not (self.epsilon >= _LEAST_EPSILON and np.isfinite(self.epsilon)):
            raise MechanismError(
                f"epsilon must be at least {_LEAST_EPSILON:g} per metre and finite; got"
                f" {self.epsilon}"
            )

    @classmethod
    def for_loss(cls, loss_m: float) -> "PlanarLaplace":
        """The one with a given expected loss in metres: epsilon = 2 / loss."""
        if not (loss_m > 0 and np.isfinite(loss_m)):
            raise MechanismError(f"the expected loss must be above 0 metres; got {loss_m}")
        return cls(epsilon=2 / loss_m)

    @property
    def expected_loss(self) -> float:
        """2 / epsilon, in metres."""
        return 2 / self.epsilon

    @property
    def geo_epsilon(self) -> float:
        return self.epsilon

    def density(self, truth: np.ndarray, report: np.ndarray) -> np.ndarray:
        """Probability per square metre of a report given a truth."""
        return self.epsilon**2 / (2 * np.pi) * np.exp(-self.epsilon * euclidean(truth, report))

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        reports = np.empty(truth.shape)
        for start in range(0, len(truth), _BLOCK):
            rows = slice(start, start + _BLOCK)
            radius = self.radius(chance[rows, 0])
            across, up = _direction(chance[rows, 1])
            across *= radius
            up *= radius
            np.add(truth[rows, 0], across, out=reports[rows, 0])
            np.add(truth[rows, 1], up, out=reports[rows, 1])
        return reports

    def radius(self, chance: np.ndarray) -> np.ndarray:
        """The distance below which the noise stays with a given chance: the inverse of 1 - (1 + er)
        exp(-er).

        This is -(W(-(1 - chance)/e) + 1) / epsilon, W the lower branch of Lambert's function.
        """
        chance = np.asarray(chance, dtype=float)
        return (_lower_lambert(np.atleast_1d(chance)) / self.epsilon).reshape(chance.shape)

    def law(self, joint: Joint, *, grid: Grid | None = None, loss: Loss = euclidean) -> Law | None:
        """P(secret, cell) over a grid; the loss is that of the unmerged reports, 2/epsilon."""
        if grid is None or not traits_of(loss).is_distance:
            return None
        law = self.law_of_cells(joint, grid, loss=loss)
        if law is None:
            return None
        expected = np.full(len(joint.secrets), self.expected_loss)
        return Law(
            joint=law.joint,
            loss=self.expected_loss,
            loss_of=expected,
            cell_m=grid.cell_m,
            missing=_WITHIN,
        )

    def law_of_cells(self, joint: Joint, grid: Grid, *, loss: Loss = euclidean) -> Law | None:
        """P(secret, cell) and the loss of reporting the middle of the cell that the noise falls in.

        None where truths and cells are too many, and sampling is the better way.  The last law of a
        joint is kept as long as the joint is: it is judged, compared and held against a bound.
        """
        asked = (self.epsilon, grid, loss)
        before, law = _LAST.get(joint, (None, None))
        if before != asked:
            law = self._law_of_cells(joint, grid, loss)
            if law is not None and law.joint.table.size <= _KEPT:
                _LAST[joint] = asked, law
        return law

    def _law_of_cells(self, joint: Joint, grid: Grid, loss: Loss) -> Law | None:
        if self.window(joint, grid) is None:
            return None
        assert joint.places is not None
        low, shape = self._window(joint.places, grid)
        centres = None
        if not traits_of(loss).is_distance:
            across, up = (
                grid.centre_of(low + np.arange(shape[axis])[:, None])[:, axis] for axis in (0, 1)
            )
            centres = np.stack(np.meshgrid(across, up, indexing="ij"), axis=-1)
        table = np.zeros((len(joint.secrets), *shape))
        cost_of, means = np.zeros(len(joint.secrets)), np.zeros(len(joint.places))
        for column, place in enumerate(joint.places):
            window, cost = self._cells(place, grid, low, shape)
            mean = float(np.vdot(window, cost if centres is None else loss(place, centres)))
            means[column] = mean
            for secret in np.flatnonzero(joint.table[:, column]):
                weight = joint.table[secret, column]
                table[secret] += weight * window
                cost_of[secret] += weight * mean
        return Law(
            joint=Joint(
                table.reshape(len(joint.secrets), -1) / table.sum(),
                places=_middles(grid, low, shape),
                secrets=joint.secrets,
            ),
            loss=float(cost_of.sum()),
            loss_of=np.divide(
                cost_of, joint.prior, out=np.zeros_like(cost_of), where=joint.prior > 0
            ),
            cell_m=grid.cell_m,
            missing=_WITHIN,
            loss_deviation=deviation(means, joint.place_probability),
        )

    def window(self, joint: Joint, grid: Grid | None = None) -> Window | None:
        """None where truths and cells are too many, and reports are sampled."""
        if grid is None or joint.sparse is not None:
            return None
        assert joint.places is not None
        terms, shape = self.terms(joint.places, grid), self._window(joint.places, grid)[1]
        cells = float(shape[0]) * float(shape[1])
        if terms > _MOST_CELLS or cells * len(joint.secrets) > _WIDEST_WINDOW:
            return None
        return Window(cells, terms)

    def terms(self, truth: np.ndarray, grid: Grid) -> float:
        """Truths times the cells, as fine as the series needs them, of the window of a law."""
        side = np.ptp(truth, axis=0).max() + 2 * self._reach(grid)
        return float(len(truth) * (side / min(grid.cell_m, _FINE / self.epsilon)) ** 2)

    def rows_on(self, truth: np.ndarray, grid: Grid | None = None) -> RowsOnDemand | None:
        """The chance of each cell of one window, truth by truth."""
        if grid is None:
            return None
        low, shape = self._window(truth, grid)
        if float(shape[0]) * float(shape[1]) > _WIDEST_ROW:
            raise ProblemError(
                f"the noise spreads over {shape[0]} x {shape[1]} cells of {grid.cell_m:g} m;"
                " expected larger cells"
            )
        places = _middles(grid, low, shape)
        every = np.arange(len(places))

        def row(number: int) -> tuple[np.ndarray, np.ndarray]:
            return every, self._cells(truth[number], grid, low, shape)[0].ravel()

        few = len(truth) * len(places) <= MOST_ENTRIES  # each row is asked for a few times
        return RowsOnDemand(
            len(truth), places, lru_cache(maxsize=None)(row) if few else row, _WITHIN
        )

    def chances_of_cells(self, truth: np.ndarray, middles: np.ndarray, cell_m: float) -> np.ndarray:
        """By the density at the middles of small parts of each cell, with the second term of its
        series: within 1 % of the chance, but for the part that the truth lies in.  In single
        precision."""
        origin = truth.mean(axis=0) if len(truth) else np.zeros(2)
        truth, middles = ((part - origin).astype(np.float32) for part in (truth, middles))
        parts = max(1, int(np.ceil(self.epsilon * cell_m / _COARSE)))
        side = cell_m / parts
        scale = self.epsilon**2 / (2 * np.pi) * side**2 * (1 + (side * self.epsilon) ** 2 / 24)
        steps = ((np.arange(parts) - (parts - 1) / 2) * side).astype(np.float32)
        chances = np.zeros((len(truth), len(middles)), dtype=np.float32)
        for across in steps:
            for up in steps:
                east = (middles[:, 0] + across)[None, :] - truth[:, 0, None]
                north = (middles[:, 1] + up)[None, :] - truth[:, 1, None]
                east *= east
                north *= north
                east += north
                np.sqrt(east, out=east)
                east *= np.float32(-self.epsilon)
                chances += np.exp(east, out=east)
        chances *= np.float32(scale)
        return chances

    def _reach(self, grid: Grid) -> float:
        return float(self.radius(np.array(1 - _TAIL))) + grid.cell_m

    def _window(self, truth: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """The first cell and the shape of one window for all truths, so that cutting the tails off
        cannot tell one truth from another."""
        reach = self._reach(grid)
        low = grid.index(truth.min(axis=0) - reach)
        return low, grid.index(truth.max(axis=0) + reach) - low + 1

    def _cells(
        self, place: np.ndarray, grid: Grid, low: np.ndarray, shape: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The chance of each cell of a window, for one truth, summing to 1; and how far the cells'
        middles are from it."""
        split = max(1, int(np.ceil(self.epsilon * grid.cell_m / _FINE)))
        fine_m = grid.cell_m / split
        edges = [
            (low[axis] * split + np.arange(shape[axis] * split + 1)) * fine_m
            + grid.origin[axis]
            - place[axis]
            for axis in (0, 1)
        ]
        near = [
            np.clip(
                np.searchsorted(edge, 0.0) - 1 + np.array([-_NEAR, _NEAR + 1]), 0, len(edge) - 1
            )
            for edge in edges
        ]
        distance = _between(edges, 1)
        # Mean of exp(-er) over a square: value at the middle plus side^2/24 times its Laplacian.
        scale = self.epsilon**2 / (2 * np.pi) * fine_m**2
        bend = fine_m**2 / 24
        with np.errstate(divide="ignore"):  # the cell of the truth, overwritten below
            factor = -scale * bend * self.epsilon / distance
        factor += scale * (1 + bend * self.epsilon**2)
        mean = -self.epsilon * distance
        np.exp(mean, out=mean)
        mean *= factor
        corner = self._corner(
            edges[0][near[0][0] : near[0][1] + 1], edges[1][near[1][0] : near[1][1] + 1]
        )
        mean[near[0][0] : near[0][1], near[1][0] : near[1][1]] = np.diff(
            np.diff(corner, axis=0), axis=1
        )
        if split > 1:
            mean = mean.reshape(shape[0], split, shape[1], split).sum(axis=(1, 3))
            distance = _between(edges, split)
        mean /= mean.sum()
        return mean, distance

    def _corner(self, across: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Signed chance of the rectangle between the truth and each corner (across, up).

        A rectangle is two right triangles with a corner at the truth; over one of them, with the
        leg h along the axis and the angle t, the chance is 1/(2 pi) int_0^t F(h / cos a) da, where
        F is the radial distribution function.
        """
        a, b = np.abs(across)[:, None], np.abs(up)[None, :]
        return (
            np.sign(across)[:, None]
            * np.sign(up)[None, :]
            * (self._triangle(a, b) + self._triangle(b, a))
        )

    def _triangle(self, leg: np.ndarray, opposite: np.ndarray) -> np.ndarray:
        """The chance of one triangle; with 1 / cos a = cosh u the integrand is smooth however thin
        the triangle is."""
        leg, opposite = np.broadcast_arrays(leg, opposite)
        thin = leg <= 0  # no area
        half = np.where(thin, 0.0, np.arcsinh(opposite / np.where(thin, 1.0, leg)))[..., None] / 2
        stretch = np.cosh(half * (_NODES + 1))
        reach = self.epsilon * leg[..., None] * stretch
        return (
            np.sum(_WEIGHTS * (1 - (1 + reach) * np.exp(-reach)) / stretch, axis=-1)
            * half[..., 0]
            / (2 * np.pi)
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return {"epsilon": np.array(self.epsilon)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "PlanarLaplace":
        return cls(epsilon=float(arrays["epsilon"]))


def _middles(grid: Grid, low: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """The middles of the cells of a window, column by column."""
    index = np.stack(np.unravel_index(np.arange(shape.prod()), tuple(shape)), axis=1) + low
    return grid.centre_of(index)


def _between(edges: list[np.ndarray], step: int) -> np.ndarray:
    """How far the middles between every n-th edges, across and up, are from the origin."""
    across, up = ((edge[step::step] + edge[:-step:step]) ** 2 / 4 for edge in edges)
    distance = across[:, None] + up[None, :]
    return np.sqrt(distance, out=distance)


def _lower_lambert(chance: np.ndarray) -> np.ndarray:
    """-W(-(1 - chance)/e) - 1 on the lower branch: the s with s - log(1 + s) = -log(1 - chance).

    Barry, Parlange, Sander and Sivaplan's approximation (1993), off by at most 3 parts in 10,000,
    then one step of Fritsch, Shafer and Crowley (1973), which takes the error to its fourth power:
    within 1e-15 for a chance of 53 bits.  In real arithmetic, in place, a tenth of the time of a
    general complex W.
    """
    left = 1 - chance
    if not left.all():  # a chance of 1: as far as can be
        return np.where(left == 0, np.inf, _lower_lambert(np.where(left == 0, 0.0, chance)))
    target = np.negative(np.log(left, out=left), out=left)
    # start = target + 2/a * b / (1 + b - 0.0042 target (1 - 0.0201 root)),  a = 0.3361,  b = a root
    # / sqrt(2)
    start = np.sqrt(target)
    below = start * (0.0042 * 0.0201)
    below -= 0.0042
    below *= target
    start *= 0.3361 / 2**0.5
    below += start
    below += 1
    start /= below
    start *= 2 / 0.3361
    start += target
    np.maximum(start, 1e-12, out=start)  # the step divides by it
    # off = start - log(1 + start) - target, with what 1 + start rounded off put back
    whole = start + 1
    off = whole - 1
    off -= start
    off /= whole
    off -= np.log(whole, out=below)
    off += start
    off -= target
    # step = off / start * (slope - off) / (slope - 2 off),  slope = 2 start (start - 2/3 off)
    slope = np.multiply(off, -2 / 3, out=below)
    slope += start
    slope *= start
    slope *= 2
    slope -= off
    step = off / start
    step *= slope
    slope -= off
    step /= slope
    step *= whole
    start -= step
    np.maximum(start, 0.0, out=start)
    start *= target > 0
    return start


def _direction(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of 2 pi turn: the sine of a quarter of the angle by its series, then doubled
    twice."""
    quarter = turn - 0.5
    quarter *= np.pi / 2
    square = quarter * quarter
    sine = square * _SINE[0]
    for term in _SINE[1:]:
        sine += term
        sine *= square
    sine += 1
    sine *= quarter
    np.multiply(sine, sine, out=square)
    half_cosine = 1 - 2 * square
    np.sqrt(np.subtract(1, square, out=square), out=square)
    sine *= square
    sine *= 2
    cosine = sine * sine
    cosine *= 2
    cosine -= 1
    sine *= half_cosine
    sine *= -2
    return cosine, sine
