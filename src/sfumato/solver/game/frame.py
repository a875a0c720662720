"""How metres become the numbers that the nets see, and the lattice that reports are moved to."""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sfumato.data.grid import Grid

Points = Annotated[Any, "n 2"]


class Frame(NamedTuple):
    """Scaled = (metres - centre) / unit.  Reports are moved to the points anchor + spacing * whole
    numbers."""

    centre: Any
    unit: Any
    anchor: Any
    spacing: Any

    def scale(self, metres: Points) -> Points:
        return (metres - self.centre[None, :]) / self.unit

    def metres(self, scaled: Points) -> Points:
        return scaled * self.unit + self.centre[None, :]

    def snap(self, scaled: Points) -> Points:
        """The nearest point of the lattice; the gradient passes straight through."""
        point = (
            self.anchor[None, :]
            + jnp.round((self.metres(scaled) - self.anchor[None, :]) / self.spacing) * self.spacing
        )
        return scaled + jax.lax.stop_gradient(self.scale(point) - scaled)

    def show(self, point: Points, smear: Annotated[Any, "2 n"]) -> Points:
        """A lattice point as the classifier sees it: anywhere in its cell, by numbers on [0, 1),
        shape (2, n).

        A classifier that sees the points alone is flat at each of them and steep in between, so
        that its slope there tells the generator nothing; seen over whole cells, its mean slope
        points to the better neighbour.
        """
        return point + (smear.T - 0.5) * (self.spacing / self.unit)


def frame_of(
    truth: Points, grid: Grid, *, cells: int, region_m: tuple[float, float, float] | None
) -> Frame:
    """Centre the data and scale its root mean square distance to 1; or scale a region (x, y, half
    side) to [-1, 1].

    The lattice has a point every `cells` cells of the grid, one of them the middle of the cell that
    holds the centre of the data.
    """
    middle = truth.mean(axis=0)
    if region_m is None:
        centre, unit = middle, float(np.sqrt(((truth - middle) ** 2).sum(axis=1).mean())) or 1.0
    else:
        centre, unit = np.array(region_m[:2]), region_m[2]
    numbers = (centre, unit, grid.snap(middle), cells * grid.cell_m)
    return Frame(*(np.asarray(number, np.float32) for number in numbers))


def lattice_of(truth: np.ndarray, grid: Grid, *, cells: int) -> Grid:
    """The lattice of `frame_of` as a grid: its cells are `cells` cells wide, their middles are cell
    middles."""
    low = grid.snap(truth.mean(axis=0)) - cells * grid.cell_m / 2
    return Grid(cell_m=cells * grid.cell_m, corner=(float(low[0]), float(low[1])))


def wide_cells(share: float, *, max_loss: float, cell_m: float) -> int:
    """The odd number of cells nearest below `share` of the budget, at least 1."""
    return 2 * int(share * max_loss / cell_m / 2) + 1
