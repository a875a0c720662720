"""What is to be solved: data, a loss function, a budget."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.mechanism.law import Loss, euclidean

CELL_M = 25.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Hide the secret of `samples` with an expected loss of at most `max_loss` metres.

    Main arguments: `samples`, the training data; `max_loss`, the budget in metres, on average.

    Other arguments: `loss`, a function of (truth, report); `region`, where reports may lie and grids
    are laid (the data's own, else its bounding square widened by the budget on every side);
    `cell_m` or `cells`, the grid that reports are released on (25 m cells unless set).

    >>> from sfumato.data.synthetic import four_corners
    >>> Problem(four_corners(0).train, max_loss=173).grid.cell_m
    25.0
    """

    samples: Samples
    max_loss: float
    loss: Loss = euclidean
    region: Region | None = None
    cell_m: float | None = None
    cells: int | None = None

    def __post_init__(self) -> None:
        if not (self.max_loss > 0 and np.isfinite(self.max_loss)):
            raise ProblemError(f"max_loss must be above 0 metres and finite; got {self.max_loss}")
        if (self.samples.counts > 0).sum() < 2:
            raise ProblemError(
                f"{self.samples.name} holds one user ({self.samples.secrets[0]}); expected at least two: "
                "there is nobody to be confused with"
            )
        if self.cell_m is not None and self.cells is not None:
            raise ProblemError("name the grid by cell_m or by cells, not by both")
        if self.region is None:
            own = self.samples.region or Region.around(self.samples.truth, margin_m=self.max_loss)
            object.__setattr__(self, "region", own)
        assert self.region is not None
        outside = int((~self.region.contains(self.samples.truth)).sum())
        if outside:
            raise ProblemError(
                f"{outside} of {len(self.samples)} truths lie outside the region of {self.region.side_m:g} m; "
                "widen the region or select fewer check-ins"
            )

    @cached_property
    def grid(self) -> Grid:
        """The cells that reports are released on."""
        assert self.region is not None
        cell_m = CELL_M if self.cell_m is None and self.cells is None else self.cell_m
        return Grid.over(self.region, cell_m=cell_m, cells=self.cells)

    @cached_property
    def joint(self) -> Joint:
        """P(secret, truth) at the data's own points."""
        return self.samples.joint()

    @property
    def smallest_loss(self) -> float:
        """The loss of reporting the cell that each truth lies in: no report on this grid costs less (for distances)."""
        places = self.joint.places
        assert places is not None
        return float(self.joint.place_probability @ self.loss(places, self.grid.snap(places)))

    def check_feasible(self) -> None:
        """Refuse a budget that no mechanism on this grid can keep, and name the smallest one that some can."""
        if not self.max_loss >= self.smallest_loss:
            raise ProblemError(
                f"no mechanism that reports on {self.grid.cell_m:g} m cells can stay within {self.max_loss:g} m: "
                f"the smallest possible loss is {self.smallest_loss:.4g} m; raise the budget or make the cells smaller"
            )
