"""Mechanisms of the user's own: a function, or pairs that somebody recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism


@dataclass(frozen=True, eq=False)
class Function(Mechanism):
    """A function (truths (n, 2), NumPy generator) -> reports (n, 2), to be measured and compared.

    >>> shift = Function(lambda truth, random: truth + random.normal(0, 50, truth.shape))
    >>> shift.sample([0.0, 0.0], seed=1).shape
    (2,)
    """

    rule: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    kind = "function"

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        random = np.random.default_rng(np.ascontiguousarray(chance).view(np.uint64).ravel()[:4])
        reports = np.asarray(self.rule(truth, random), dtype=float)
        if reports.shape != truth.shape or not np.all(np.isfinite(reports)):
            raise MechanismError(
                f"the function must give a finite report for each truth, shape {truth.shape}; got"
                f" {reports.shape}"
            )
        return reports


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
    def read(cls, path: str | Path) -> "Recorded":
        """Read a CSV or Parquet file with columns truth_x, truth_y, report_x, report_y in
        metres."""
        from sfumato.data.read import numbers, read_table

        table = read_table(Path(path))
        wanted = ["truth_x", "truth_y", "report_x", "report_y"]
        absent = [name for name in wanted if name not in table.column_names]
        if absent:
            raise MechanismError(
                f"{Path(path).name} has no column '{absent[0]}'; expected {', '.join(wanted)} in"
                " metres"
            )
        columns = np.stack(
            [numbers(table[name], source=Path(path).name, column=name) for name in wanted], axis=1
        )
        return cls(truths=columns[:, :2], reports=columns[:, 2:])

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        group = self._tree.query(truth)[1]  # type: ignore[attr-defined]
        start, end = self._start[group], self._start[group + 1]  # type: ignore[attr-defined]
        return self.reports[start + np.floor(chance[:, 0] * (end - start)).astype(int)]

    def arrays(self) -> dict[str, np.ndarray]:
        return {"truths": self.truths, "reports": self.reports}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Recorded":
        return cls(truths=arrays["truths"], reports=arrays["reports"])
