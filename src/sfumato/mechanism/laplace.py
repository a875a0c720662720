"""The planar Laplace mechanism, sampled exactly and integrated exactly over cells."""

from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import Law, Loss, euclidean

_TAIL = 1e-6  # probability left outside the window over which cells are summed
_WITHIN = 5e-6  # tail and series error together, in total variation (measured against a tenfold finer sum)
_NEAR = 4  # cells this close to the truth are integrated exactly: the density has a kink there
_FINE = 0.3  # epsilon times cell side above which cells are split for the series of far cells
_MOST_CELLS = 3e9  # about half a minute
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
    draws = 2

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and np.isfinite(self.epsilon)):
            raise MechanismError(f"epsilon must be above 0 per metre and finite; got {self.epsilon}")

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
        radius = self.radius(chance[:, 0])
        angle = 2 * np.pi * chance[:, 1]
        return truth + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    def radius(self, chance: np.ndarray) -> np.ndarray:
        """The distance below which the noise stays with a given chance: the inverse of 1 - (1 + er) exp(-er)."""
        inverse = -lambertw((chance - 1) / np.e, k=-1).real - 1
        return np.maximum(inverse, 0.0) / self.epsilon

    def law(self, joint: Joint, *, grid: Grid | None = None, loss: Loss = euclidean) -> Law | None:
        """P(secret, cell) over a grid; the loss is that of the unmerged reports, 2/epsilon."""
        if grid is None or loss is not euclidean:
            return None
        law = self.law_of_cells(joint, grid, loss=loss)
        if law is None:
            return None
        expected = np.full(len(joint.secrets), self.expected_loss)
        return Law(joint=law.joint, loss=self.expected_loss, loss_of=expected, cell_m=grid.cell_m, missing=_WITHIN)

    def law_of_cells(self, joint: Joint, grid: Grid, *, loss: Loss = euclidean) -> Law | None:
        """P(secret, cell) and the loss of reporting the middle of the cell that the noise falls in.

        None when there are so many truths and cells that sampling is the better way.
        """
        assert joint.places is not None
        reach = float(self.radius(np.array(1 - _TAIL))) + grid.cell_m
        if (
            len(joint.places) * ((np.ptp(joint.places, axis=0).max() + 2 * reach) / min(grid.cell_m, _FINE / self.epsilon)) ** 2
            > _MOST_CELLS
        ):
            return None
        # One window for all truths, so that cutting the tails off cannot tell one truth from another.
        low = grid.index(joint.places.min(axis=0) - reach)
        shape = grid.index(joint.places.max(axis=0) + reach) - low + 1
        across, up = (grid.centre_of(low + np.arange(shape[axis])[:, None])[:, axis] for axis in (0, 1))
        centres = None if loss is euclidean else np.stack(np.meshgrid(across, up, indexing="ij"), axis=-1)
        table = np.zeros((len(joint.secrets), *shape))
        cost_of = np.zeros(len(joint.secrets))
        for column, place in enumerate(joint.places):
            window = self._cells(place, grid, low, shape)
            if centres is None:
                cost = np.sqrt((across[:, None] - place[0]) ** 2 + (up[None, :] - place[1]) ** 2)
            else:
                cost = loss(place, centres)
            mean = float(np.einsum("ij,ij->", window, cost))
            for secret in np.flatnonzero(joint.table[:, column]):
                weight = joint.table[secret, column]
                table[secret] += weight * window
                cost_of[secret] += weight * mean
        index = np.stack(np.unravel_index(np.arange(shape.prod()), tuple(shape)), axis=1) + low
        return Law(
            joint=Joint(table.reshape(len(joint.secrets), -1) / table.sum(), places=grid.centre_of(index), secrets=joint.secrets),
            loss=float(cost_of.sum()),
            loss_of=np.divide(cost_of, joint.prior, out=np.zeros_like(cost_of), where=joint.prior > 0),
            cell_m=grid.cell_m,
            missing=_WITHIN,
        )

    def _cells(self, place: np.ndarray, grid: Grid, low: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """The chance of each cell of a window, for one truth; sums to 1."""
        split = max(1, int(np.ceil(self.epsilon * grid.cell_m / _FINE)))
        fine_m = grid.cell_m / split
        edges = [(low[axis] * split + np.arange(shape[axis] * split + 1)) * fine_m + grid.origin[axis] - place[axis] for axis in (0, 1)]
        middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
        distance = np.sqrt(middles[0][:, None] ** 2 + middles[1][None, :] ** 2)
        near = [np.clip(np.searchsorted(edge, 0.0) - 1 + np.array([-_NEAR, _NEAR + 1]), 0, len(edge) - 1) for edge in edges]
        distance[near[0][0] : near[0][1], near[1][0] : near[1][1]] = fine_m  # overwritten below; avoids 1/0
        # Mean of exp(-er) over a square: value at the middle plus side^2/24 times its Laplacian.
        scale = self.epsilon**2 / (2 * np.pi) * fine_m**2
        bend = fine_m**2 / 24
        mean = -self.epsilon * distance
        np.exp(mean, out=mean)
        np.divide(-scale * bend * self.epsilon, distance, out=distance)
        distance += scale * (1 + bend * self.epsilon**2)
        mean *= distance
        corner = self._corner(edges[0][near[0][0] : near[0][1] + 1], edges[1][near[1][0] : near[1][1] + 1])
        mean[near[0][0] : near[0][1], near[1][0] : near[1][1]] = np.diff(np.diff(corner, axis=0), axis=1)
        if split > 1:
            columns, rows = mean.shape[0] // split, mean.shape[1] // split
            mean = mean.reshape(columns, split, rows, split).sum(axis=(1, 3))
        return mean / mean.sum()

    def _corner(self, across: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Signed chance of the rectangle between the truth and each corner (across, up).

        A rectangle is two right triangles with a corner at the truth; over one of them, with the leg
        h along the axis and the angle t, the chance is 1/(2 pi) int_0^t F(h / cos a) da, where F is the
        radial distribution function.
        """
        a, b = np.abs(across)[:, None], np.abs(up)[None, :]
        turn = np.arctan2(b, a)
        chance = self._triangle(a, turn) + self._triangle(b, np.pi / 2 - turn)
        return np.sign(across)[:, None] * np.sign(up)[None, :] * chance

    def _triangle(self, leg: np.ndarray, angle: np.ndarray) -> np.ndarray:
        half = angle[..., None] / 2
        reach = self.epsilon * leg[..., None] / np.cos(half * (_NODES + 1))
        return np.sum(_WEIGHTS * (1 - (1 + reach) * np.exp(-reach)), axis=-1) * half[..., 0] / (2 * np.pi)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"epsilon": np.array(self.epsilon)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "PlanarLaplace":
        return cls(epsilon=float(arrays["epsilon"]))
