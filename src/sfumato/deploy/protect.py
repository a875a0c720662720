"""One block of rows: coordinates in, reports out."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.data.plane import METRES_A_DEGREE
from sfumato.deploy.coordinates import clamped, laplace_outside, truths
from sfumato.deploy.release import Release
from sfumato.deploy.spent import draws_of
from sfumato.mechanism.chance import Chance, Rows, Secure, draw

Outside = Literal["refuse", "drop", "laplace", "clamp"]
POLICIES: tuple[Outside, ...] = ("refuse", "drop", "laplace", "clamp")


@dataclass(frozen=True)
class Protected:
    """Written coordinates, NaN where a row had no place, and which rows are set apart (None for
    none).

    `new` are places that the mechanism was not made for and does not answer; their coordinates are
    NaN, and the caller decides.  `cost` is the loss of each report and `draw` a number that rows of
    the same draw share, for the rows that are `counted`: those that were answered in the region.
    """

    first: np.ndarray
    second: np.ndarray
    missing: np.ndarray | None
    impossible: np.ndarray | None
    outside: np.ndarray | None
    new: np.ndarray | None
    cost: np.ndarray
    draw: np.ndarray

    @property
    def counted(self) -> np.ndarray | slice:
        """The rows that have a loss."""
        masks = (self.missing, self.impossible, self.outside, self.new)
        apart = [mask for mask in masks if mask is not None]
        return ~np.logical_or.reduce(apart) if apart else slice(None)


def protect(
    release: Release,
    first: np.ndarray,
    second: np.ndarray,
    *,
    chance: Chance | None = None,
    rows: Rows | None = None,
    outside: Outside = "refuse",
) -> Protected:
    """Reports for latitudes and longitudes (or x and y).

    Rows outside the region are answered by the policy `outside`; with refuse and drop they, like
    rows that hold no possible place, come back as NaN and the caller decides.
    """
    source: Chance = Secure() if chance is None else chance
    who = Rows() if rows is None else rows
    truth = truths(release, first, second)
    points = truth.points
    if truth.outside is not None and outside == "clamp":
        points = points.copy()
        points[truth.outside] = clamped(release, first[truth.outside], second[truth.outside])
    reports, numbers, new = draw(release.mechanism, points, source, who, release.region)
    across, up = release.written(reports)
    distance = release.distance(points, reports)
    apart = [mask for mask in (truth.missing, truth.impossible) if mask is not None]
    if truth.outside is not None and outside in ("refuse", "drop"):
        apart.append(truth.outside)
    if new is not None:
        for mask in (*apart, truth.outside if outside == "laplace" else None):
            if mask is not None:
                new &= ~mask
        apart.append(new)
        distance[new] = 0.0
    for mask in apart:
        across[mask] = up[mask] = np.nan
    if truth.outside is not None and outside == "laplace":
        mask = truth.outside
        across[mask], up[mask] = _laplace(
            release, first[mask], second[mask], source, who.take(mask)
        )
    return Protected(
        across,
        up,
        truth.missing,
        truth.impossible,
        truth.outside,
        new if new is not None and new.any() else None,
        release.budget.costs(distance),
        draws_of(numbers),
    )


def _laplace(
    release: Release, first: np.ndarray, second: np.ndarray, chance: Chance, rows: Rows
) -> tuple[np.ndarray, np.ndarray]:
    """Outside points; their cells for kept reports are lattice cells in degrees turned to
    metres."""
    if release.plane is None:
        answered, numbers = chance.of(np.stack([first, second], axis=1), rows, 2)
        return laplace_outside(release, answered[:, 0], answered[:, 1], numbers)
    answered, numbers = chance.of(np.stack([first, second], axis=1) * METRES_A_DEGREE, rows, 2)
    return laplace_outside(
        release, answered[:, 0] / METRES_A_DEGREE, answered[:, 1] / METRES_A_DEGREE, numbers
    )
