"""Approximate location as phones and browsers have it: a grid of degrees, with or without an offset
before the snap."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri

from sfumato.data.plane import Plane
from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportRows
from sfumato.randomness import uniforms

METRES_PER_DEGREE = 111_000.0  # of the coarse location of Android
_FURTHEST = 6.0  # standard deviations; what lies beyond, 2e-9, is brought there
_HIGHEST = 90.0 - 1.0 / METRES_PER_DEGREE
_HOURLY = (1 - 0.03**2) ** 0.5  # the share of Android's offset that an hour leaves


@dataclass(frozen=True)
class DegreeSnap(Mechanism):
    """Adds a Gaussian offset and reports the nearest corner of a grid of degrees.

    The grid's rows are `cell_m` metres apart from the equator on, and each row is cut into lengths
    of `cell_m` at its own latitude.  `deviation_m` is the offset's standard deviation in metres,
    north and east; 0 for none, and then a place has one report.  `latitude` and `longitude` are the
    middle of the plane that truths and reports lie on.

    >>> snap = DegreeSnap(48.85, 2.35, cell_m=2000.0)
    >>> snap.sample([[0.0, 0.0], [300.0, 10.0]]).round().tolist()
    [[343.0, -351.0], [343.0, -351.0]]
    """

    latitude: float
    longitude: float
    cell_m: float
    deviation_m: float = 0.0
    kind: ClassVar[str] = "degree snap"
    lists_truths = False

    def __post_init__(self) -> None:
        if not 1e-6 <= self.cell_m < np.inf:
            raise MechanismError(f"a cell must be above 0 metres, by 1e-6; got {self.cell_m}")
        if not 0 <= self.deviation_m < 1e9:
            raise MechanismError(
                f"the deviation of the offset must be 0 metres or more; got {self.deviation_m}"
            )
        if not (abs(self.latitude) < 85 and abs(self.longitude) <= 180):
            raise MechanismError("the middle of the plane must lie below 85 degrees of latitude")

    @property
    def draws(self) -> int:  # type: ignore[override]
        return 2 if self.deviation_m else 0

    @property
    def _middle(self) -> Plane:
        return Plane(self.latitude, self.longitude)

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        up, across = self._middle.to_degrees(truth)
        if self.deviation_m:
            offset = self._offsets(chance) * self.deviation_m
            across = across + offset[:, 0] / (METRES_PER_DEGREE * np.cos(np.radians(up)))
            up = up + offset[:, 1] / METRES_PER_DEGREE
        row = np.round(np.clip(up, -_HIGHEST, _HIGHEST) / self._height)
        return self._places(row, np.round(across / self._width(row)))

    def along(
        self, truth: np.ndarray, seconds: np.ndarray, *, seed: int | None = None
    ) -> np.ndarray:
        """Reports of one phone whose offset drifts: truths (n, 2) in metres and their times, in
        order.

        Each hour since the first report leaves sqrt(1 - 0.03^2) of the offset and adds 0.03 of a
        new one, so that its deviation stays and a week leaves 0.93 of it.

        >>> snap = DegreeSnap(48.85, 2.35, cell_m=2000.0, deviation_m=500.0)
        >>> near = snap.along(np.zeros((2, 2)), np.array([0.0, 60.0]), seed=1)
        >>> bool((near[0] == near[1]).all())
        True
        """
        seconds = np.asarray(seconds, dtype=float)
        if len(seconds) != len(truth) or not np.all(np.diff(seconds) >= 0):
            raise MechanismError(
                "expected one time for each truth, in seconds, none before the last"
            )
        hours = np.diff(np.floor((seconds - seconds[:1]) / 3600), prepend=0.0)
        new = self._offsets(uniforms(len(truth), 2, seed=seed))
        kept = _HOURLY**hours
        offset = new.copy()
        for row in range(1, len(offset)):
            offset[row] = kept[row] * offset[row - 1] + np.sqrt(1 - kept[row] ** 2) * new[row]
        return self.report(np.asarray(truth, dtype=float), ndtr(offset)[:, : self.draws])

    @staticmethod
    def _offsets(chance: np.ndarray) -> np.ndarray:
        """In standard deviations."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(ndtri(chance), -_FURTHEST, _FURTHEST))

    @property
    def _height(self) -> float:
        return self.cell_m / METRES_PER_DEGREE

    def _width(self, row: np.ndarray) -> np.ndarray:
        return np.asarray(self._height / np.cos(np.radians(row * self._height)))

    def _places(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        return self._middle.to_metres(row * self._height, column * self._width(row))

    def rows(self, truth: np.ndarray) -> ReportRows:
        if not self.deviation_m:
            none = np.empty((len(truth), 0))
            return ReportRows(sparse.identity(len(truth), format="csr"), self._report(truth, none))
        up, across = self._middle.to_degrees(truth)
        each = np.arange(len(truth))
        reach = int(np.ceil(_FURTHEST * self.deviation_m / self.cell_m)) + 1
        steps = np.arange(-reach, reach + 1)
        deviation = self.deviation_m / METRES_PER_DEGREE
        wide = deviation / np.cos(np.radians(up))
        parts, places, owners = [], [], []
        middle = np.round(up / self._height)
        for down in steps:
            row = middle + down
            share = _between(row, self._height, up, deviation)
            width = self._width(row)
            centre = np.round(across / width)
            for aside in steps:
                column = centre + aside
                chance = share * _between(column, width, across, wide)
                some = chance > 0
                parts.append(chance[some])
                places.append(self._places(row[some], column[some]))
                owners.append(each[some])
        chances, rows = np.concatenate(parts), np.concatenate(owners)
        matrix = sparse.csr_matrix(
            (chances, (rows, np.arange(len(rows)))), shape=(len(truth), len(rows))
        )
        return ReportRows(matrix, np.concatenate(places))

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "middle": np.array([self.latitude, self.longitude]),
            "cell": np.array(self.cell_m),
            "deviation": np.array(self.deviation_m),
        }

    not_places = ("middle", "cell", "deviation")

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "DegreeSnap":
        latitude, longitude = (float(value) for value in arrays["middle"])
        return cls(latitude, longitude, float(arrays["cell"]), float(arrays["deviation"]))


def _between(
    number: np.ndarray, step: np.ndarray | float, truth: np.ndarray, deviation: np.ndarray | float
) -> np.ndarray:
    """The chance that a Gaussian about the truth, cut off at its furthest, rounds to a number of
    steps."""

    def below(edge: np.ndarray) -> np.ndarray:
        off = (edge - truth) / deviation
        return np.where(off > _FURTHEST, 1.0, np.where(off < -_FURTHEST, 0.0, ndtr(off)))

    return below((number + 0.5) * step) - below((number - 0.5) * step)
