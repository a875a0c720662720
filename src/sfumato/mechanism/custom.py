"""Mechanisms of the user's own: a function, or pairs that somebody recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from sfumato.data.plane import Plane, check_degrees
from sfumato.data.read import numbers, read_table
from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism

PAIRS_IN_METRES = ("truth_x", "truth_y", "report_x", "report_y")
PAIRS_IN_DEGREES = ("truth_lat", "truth_lon", "report_lat", "report_lon")
# a file of reports with their truths, as `measure` takes it
_REPORTS = (("truth_lat", "truth_lon", "lat", "lon"), ("truth_x", "truth_y", "x", "y"))
Rule = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def as_mechanism(given: object) -> Mechanism:
    """A mechanism as it is, or a plain function as one.

    >>> as_mechanism(lambda truth, random: truth).sample([3.0, 4.0], seed=1).tolist()
    [3.0, 4.0]
    """
    if isinstance(given, Mechanism):
        return given
    if callable(given) and not isinstance(given, type):
        return Function(given)
    what = given.__name__ if isinstance(given, type) else type(given).__name__
    hint = ".mechanism" if hasattr(given, "mechanism") else "()" if isinstance(given, type) else ""
    way = f"write it with {hint} behind" if hint else "solve a problem for one, or write a function"
    if isinstance(given, str):
        way = f"read a run folder with sf.load_run({given!r}), or solve a problem for one"
    raise MechanismError(
        f"expected a mechanism or a function (truth, random) -> reports; got {what}: {way}"
    )


@dataclass(frozen=True, eq=False)
class Function(Mechanism):
    """A function (truths (n, 2), NumPy generator) -> reports (n, 2), to be measured and compared.

    >>> shift = Function(lambda truth, random: truth + random.normal(0, 50, truth.shape))
    >>> shift.sample([0.0, 0.0], seed=1).shape
    (2,)
    """

    rule: Rule
    kind = "function"

    def __post_init__(self) -> None:
        try:
            signature(self.rule).bind(None, None)
        except TypeError:
            raise MechanismError(
                "the function must take truths and a NumPy generator, from which it draws; write"
                " it as def blur(truth, random): ..."
            ) from None
        except ValueError:  # a function in C has no signature to look at
            pass

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        random = np.random.default_rng(np.ascontiguousarray(chance).view(np.uint64).ravel()[:4])
        reports = np.asarray(self.rule(truth, random), dtype=float)
        if reports.shape != truth.shape:
            raise MechanismError(
                f"the function must give a report for each truth, shape {truth.shape}; got"
                f" {reports.shape}"
            )
        if not np.all(np.isfinite(reports)):
            raise MechanismError("the function must give finite reports; got NaN or infinity")
        return reports


def is_pairs(columns: Sequence[str]) -> bool:
    """Whether columns are those of recorded pairs, in metres or in degrees."""
    return any(set(names) <= set(columns) for names in (PAIRS_IN_METRES, PAIRS_IN_DEGREES))


@dataclass(frozen=True, eq=False)
class Recorded(Mechanism):
    """Recorded (truth, report) pairs: a truth is answered with one of the reports recorded for it.

    A truth that was not recorded is answered as the nearest one that was.

    >>> Recorded(truths=[[0, 0], [0, 0]], reports=[[50, 0], [50, 0]]).sample([0.0, 0.0]).tolist()
    [50.0, 0.0]
    """

    truths: np.ndarray = field(repr=False)
    reports: np.ndarray = field(repr=False)
    kind = "recorded"

    def __post_init__(self) -> None:
        truths, reports = (np.array(places, dtype=float) for places in (self.truths, self.reports))
        if (
            truths.ndim != 2
            or truths.shape != reports.shape
            or truths.shape[1] != 2
            or not len(truths)
        ):
            raise MechanismError(
                f"expected n truths and n reports of two coordinates; got {truths.shape} and"
                f" {reports.shape}"
            )
        if not (np.all(np.isfinite(truths)) and np.all(np.isfinite(reports))):
            raise MechanismError(
                "recorded pairs must be finite numbers of metres; got NaN or infinity"
            )
        places, group = np.unique(truths, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        object.__setattr__(self, "truths", truths[order])
        object.__setattr__(self, "reports", reports[order])
        object.__setattr__(
            self, "_start", np.searchsorted(group.ravel()[order], np.arange(len(places) + 1))
        )
        object.__setattr__(self, "_tree", cKDTree(places))

    @classmethod
    def read(cls, path: str | Path, *, plane: Plane | None = None) -> "Recorded":
        """Read a CSV or Parquet file with columns truth_x, truth_y, report_x, report_y in metres,
        or truth_lat, truth_lon, report_lat, report_lon in degrees; the reports may be x, y or lat,
        lon too, as `measure` reads them.

        Degrees are put on `plane`, or on one about the middle of the truths; data on another are
        brought to it.
        """
        name, table = Path(path).name, read_table(Path(path))
        present = set(table.column_names)
        named = (PAIRS_IN_DEGREES, PAIRS_IN_METRES, *_REPORTS)
        wanted = next((columns for columns in named if set(columns) <= present), None)
        if wanted is None:
            absent = next(column for column in PAIRS_IN_METRES if column not in present)
            raise MechanismError(
                f"{name} has no column '{absent}'; expected {', '.join(PAIRS_IN_METRES)} in"
                f" metres, or {', '.join(PAIRS_IN_DEGREES)}"
            )
        in_degrees = wanted[0] == PAIRS_IN_DEGREES[0]
        columns = [numbers(table[column], source=name, column=column) for column in wanted]
        if not in_degrees:
            return cls(np.stack(columns[:2], axis=1), np.stack(columns[2:], axis=1))
        for latitude, longitude in (columns[:2], columns[2:]):
            check_degrees(latitude, longitude, source=name)
        plane = plane or Plane.about(columns[0], columns[1])
        truths, reports = plane.to_metres(*columns[:2]), plane.to_metres(*columns[2:])
        return cls(truths, reports).on_plane(plane)

    def unrecorded(self, truth: np.ndarray) -> int:
        """How many truths lie more than a metre from every recorded one."""
        return int((self._tree.query(truth)[0] > 1.0).sum())  # type: ignore[attr-defined]

    @property
    def recorded_once(self) -> float:
        """The share of the recorded truths that have one report."""
        return float((np.diff(self._start) == 1).mean())  # type: ignore[attr-defined]

    @property
    def given_again(self) -> str:
        """What `recorded_once` means for the figures."""
        return (
            f"{self.recorded_once:.0%} of the recorded truths have one report, which is always"
            " given again: a mechanism that draws hides more"
        )

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        group = self._tree.query(truth)[1]  # type: ignore[attr-defined]
        start, end = self._start[group], self._start[group + 1]  # type: ignore[attr-defined]
        return self.reports[start + np.floor(chance[:, 0] * (end - start)).astype(int)]

    def arrays(self) -> dict[str, np.ndarray]:
        return {"truths": self.truths, "reports": self.reports}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Recorded":
        return cls(truths=arrays["truths"], reports=arrays["reports"])
