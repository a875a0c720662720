"""Losses: what a report costs when the truth is elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.data.plane import Plane

Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]


def euclidean(truth: np.ndarray, report: np.ndarray) -> np.ndarray:
    """Distance in metres between truths and reports, over the last axis.

    Written without a library's own functions, so that it works on NumPy and on JAX arrays alike.

    >>> float(euclidean(np.array([0.0, 0.0]), np.array([3.0, 4.0])))
    5.0
    """
    return ((truth[..., 0] - report[..., 0]) ** 2 + (truth[..., 1] - report[..., 1]) ** 2) ** 0.5


def squared(truth: np.ndarray, report: np.ndarray) -> np.ndarray:
    """Squared distance in square metres.

    >>> float(squared(np.array([0.0, 0.0]), np.array([3.0, 4.0])))
    25.0
    """
    return (truth[..., 0] - report[..., 0]) ** 2 + (truth[..., 1] - report[..., 1]) ** 2


@dataclass(frozen=True)
class LossTraits:
    """What is known of a loss beside its values.

    `unit` stands behind its values.  `power` is set for a loss that is the distance to this power,
    and None for any other: then nothing is concluded from distances.

    >>> traits_of(squared).distance(25.0), traits_of(squared).unit
    (5.0, 'm²')
    """

    function: Loss
    unit: str = "m"
    power: int | None = None

    @property
    def is_distance(self) -> bool:
        """Whether the loss is the distance in metres itself."""
        return self.power == 1

    @property
    def grows_with_distance(self) -> bool:
        """Whether a report that is nearer to the truth always costs less."""
        return self.power is not None

    def distance(self, value: float) -> float:
        """How far off, in metres, a report of this loss is; the value itself where the loss does
        not say."""
        return value if self.power is None else float(value ** (1 / self.power))


LOSSES: dict[str, LossTraits] = {
    "euclidean": LossTraits(euclidean, power=1),
    "squared": LossTraits(squared, unit="m²", power=2),
}


def traits_of(loss: Loss) -> LossTraits:
    """What is known of a loss; of a function that is not in `LOSSES`, its `unit` if it has one.

    >>> traits_of(lambda truth, report: abs(truth - report)[..., 0]).grows_with_distance
    False
    """
    known = (traits for traits in LOSSES.values() if traits.function is loss)
    return next(known, LossTraits(loss, getattr(loss, "unit", "m")))


def on_earth(loss: Loss, plane: Plane | None) -> Loss:
    """The same loss where the plane is wide: by distances on the Earth, as those on the plane are
    too short far from its middle.

    >>> on_earth(euclidean, None) is euclidean
    True
    """
    if plane is None or not plane.wide or not traits_of(loss).grows_with_distance:
        return loss

    def over_distance(truth: np.ndarray, report: np.ndarray) -> np.ndarray:
        distance = plane.distance(truth, report)
        return loss(np.zeros(2), np.stack([distance, np.zeros_like(distance)], axis=-1))

    return over_distance
