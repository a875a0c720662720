"""The contract that every mechanism keeps."""

import pkgutil
import warnings
from abc import ABC, abstractmethod
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arguments import guided
from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.data.plane import Plane, looks_like_degrees
from sfumato.errors import FileError, MechanismError, SfumatoError
from sfumato.files import read_arrays, written_beside
from sfumato.mechanism.law import (
    Law,
    ListedChances,
    ReportChances,
    ReportRows,
    Window,
    merge_on_grid,
)
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.mechanism.rows import RowsOnDemand, on_demand
from sfumato.randomness import uniforms

_KINDS: dict[str, type["Mechanism"]] = {}
FORMAT = "sfumato mechanism 2"
_INNER = "inner."  # before the names of a wrapped mechanism's arrays


class Mechanism(ABC):
    """Truth to random report.

    A mechanism is a plain function of the truth and of `draws` numbers uniform on [0, 1) for each
    report, so that secure chance, a seed, a browser or a keyed hash can drive the same one.
    A subclass writes `_report`; if it can name finitely many reports with their chances it writes
    `rows` as well, and then knows its own law.

    >>> class Shift(Mechanism):
    ...     def _report(self, truth, chance):
    ...         return truth + 100.0
    >>> Shift().sample([0.0, 50.0]).tolist()
    [100.0, 150.0]
    """

    kind: ClassVar[str]
    draws: int = 1
    lists_truths: bool = True  # does its file list places of its data?  Yes, unless a kind says no
    not_places: ClassVar[tuple[str, ...]] = ()  # arrays of its file that hold no places, by prefix
    _plane: Plane | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @property
    def plane(self) -> Plane | None:
        """The plane that truths and reports lie on, where it is known: data of another plane are
        brought to it before they meet the mechanism."""
        return self._plane

    def on_plane(self, plane: Plane | None) -> Self:
        """The same mechanism, known to work in the metres of a plane."""
        if plane == self.plane:
            return self
        placed = copy(self)
        object.__setattr__(placed, "_plane", plane)
        return placed

    @guided(random_state="seed", rng="seed", n="sample(np.repeat(truth, n, axis=0))")
    def sample(self, truth: Any, *, seed: int | None = None) -> np.ndarray:
        """A report for one point (2,) or for many (n, 2), in metres.

        Without a seed the chance is the operating system's; with one the same call repeats.
        """
        if hasattr(truth, "truth"):
            raise MechanismError("got check-ins; expected their true places: sample(data.truth)")
        if hasattr(truth, "columns"):
            raise MechanismError(
                "got a data frame; expected true places in metres: sample(frame[['x', 'y']]"
                ".to_numpy()), or sf.deploy.report(frame, 'run') for latitudes and longitudes"
            )
        points = np.asarray(truth, dtype=float)
        single = points.ndim == 1
        points = np.atleast_2d(points)
        if points.ndim != 2 or points.shape[1] != 2:
            raise MechanismError(
                "a truth is two coordinates in metres, or n rows of two; got shape"
                f" {np.shape(truth)}"
            )
        if not np.all(np.isfinite(points)):
            raise MechanismError(
                "a truth must be two finite numbers of metres; got NaN or infinity"
            )
        if looks_like_degrees(points, self.plane):
            raise MechanismError(
                "the truths look like degrees; expected metres on a plane: convert them with"
                " plane.to_metres(latitude, longitude), with the plane of the mechanism's data",
                hint="where they are metres, say so with mechanism.on_plane(plane)",
            )
        reports = self.report(points, uniforms(len(points), self.draws, seed=seed))
        return reports[0] if single else reports

    def report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """The reports for given truths (n, 2) and given numbers on [0, 1), shape (n, draws)."""
        reports = self._report(truth, chance)
        if not np.all(np.isfinite(reports)):
            raise MechanismError(
                f"the {type(self).__name__} gave a report that is not a finite number of metres;"
                " expected one for every truth: make the mechanism again, or repair its function"
            )
        return reports

    @abstractmethod
    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Reports for truths (n, 2) and uniforms (n, draws)."""

    def rows(self, truth: np.ndarray) -> ReportRows | None:
        """P(report | truth) for each truth, with the places of the reports; None when it is not
        finite."""
        return None

    def rows_on(self, truth: np.ndarray, grid: Grid | None = None) -> RowsOnDemand | None:
        """The rows at given truths, one at a time: on the mechanism's own reports, or merged into
        the cells of `grid`.  None when the law is not known (or needs a grid and got none)."""
        rows = self.rows(truth)
        if rows is None:
            return None
        return on_demand(rows if grid is None else ReportRows(rows.matrix, grid.snap(rows.places)))

    def chances_at(self, truth: np.ndarray) -> ReportChances | None:
        """P(report | truth) at given truths as a function of reports; None when the law is not
        known."""
        rows = self.rows(truth)
        return None if rows is None else ListedChances.of_rows(rows)

    def chances_of_cells(
        self, truth: np.ndarray, middles: np.ndarray, cell_m: float
    ) -> np.ndarray | None:
        """The chance that the report falls into square cells with the given middles and side in
        metres, shape (truths, cells), for a mechanism with a smooth density; None for all
        others."""
        return None

    def law_of_cells(self, joint: Joint, grid: Grid, *, loss: Loss = euclidean) -> Law | None:
        """P(secret, cell) and the loss of reporting the middle of the cell that a report falls in,
        for a mechanism that can integrate its law over cells; None for all others."""
        return None

    def window(self, joint: Joint, grid: Grid | None = None) -> Window | None:
        """How much is integrated for its law by cells; None where it has none."""
        return None

    def law(self, joint: Joint, *, grid: Grid | None = None, loss: Loss = euclidean) -> Law | None:
        """What the mechanism makes of P(secret, truth): P(secret, report) and the loss, with no
        sampling.

        On the mechanism's own reports, or merged into the cells of `grid`.  None when the law is
        not known (or needs a grid and got none).
        """
        if joint.places is None:
            raise MechanismError("this table has no places; a mechanism of the plane needs them")
        law = self._law(joint, loss)
        if law is None:
            return None
        return law if grid is None else merge_on_grid(law, grid)

    def _law(self, joint: Joint, loss: Loss) -> Law | None:
        return Law.of_mechanism(joint, self.rows, loss=loss)

    @property
    def geo_epsilon(self) -> float | None:
        """Geo-indistinguishability per metre that holds by design at all truths; None where nothing
        is known by design."""
        return None

    def places_in_file(self) -> np.ndarray:
        """The places that stand in the mechanism's file: every array of points, and single points,
        but for the arrays that `not_places` names."""
        try:
            arrays = self.arrays()
        except MechanismError:  # cannot be saved: there is no file
            return np.empty((0, 2))
        places = [
            array.reshape(-1, 2).astype(float)
            for name, array in arrays.items()
            if not name.startswith((_INNER, *self.not_places))
            and array.dtype.kind == "f"
            and array.shape[-1:] == (2,)
            and array.ndim <= 2
        ]
        return np.vstack([np.empty((0, 2)), *places])

    # Files ---------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """What must be saved to build the same mechanism again."""
        raise MechanismError(f"a mechanism of kind '{self.kind}' cannot be saved")

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Mechanism":
        """Build a mechanism from what `arrays` gave."""
        raise MechanismError(f"a mechanism of kind '{cls.kind}' cannot be loaded")

    def save(self, path: str | Path) -> None:
        """Write the mechanism to one file (NumPy arrays, nothing pickled)."""
        with written_beside(path, private=self.lists_truths) as beside, beside.open("wb") as target:
            np.savez_compressed(
                target,
                allow_pickle=False,
                format=np.array(FORMAT),
                kind=np.array(self.kind),
                **({} if self.plane is None else {"plane": np.array(self.plane.numbers)}),
                **self.arrays(),
            )


def load_mechanism(path: str | Path) -> Mechanism:
    """Read a mechanism that `save` wrote.

    >>> from sfumato.mechanism.laplace import PlanarLaplace
    >>> PlanarLaplace(epsilon=0.01).save("mechanism.npz")
    >>> load_mechanism("mechanism.npz")
    PlanarLaplace(epsilon=0.01)
    """
    return mechanism_from_arrays(read_arrays(path, what="mechanism"), source=str(path))


def kinds() -> dict[str, type[Mechanism]]:
    """Every mechanism by the word for its kind: those of this package, and those of your own that
    were imported.  Files, tests and exports go by it.

    >>> sorted(kinds())[:3]
    ['atlas', 'channel', 'clamped']
    """
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        import_module(f"sfumato.mechanism.{module.name}")
    return dict(_KINDS)


def mechanism_from_arrays(arrays: dict[str, np.ndarray], *, source: str) -> Mechanism:
    """Build a mechanism from stored arrays, checking that they are ours."""
    if "kind" not in arrays or str(arrays.get("format")) != FORMAT:
        raise FileError(
            f"{source} is not a mechanism file of this version; expected '{FORMAT}': make the run"
            " again"
        )
    kind = str(arrays["kind"])
    if kind not in _KINDS and kind not in kinds():
        raise FileError(
            f"{source} holds a mechanism of kind {kind[:40]!r}, which this version does not know"
        )
    odd = [name for name, array in arrays.items() if array.dtype.kind not in "fiubU"]
    if odd:
        raise FileError(f"{source}: the array {odd[0]!r} holds no numbers; make or copy it again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a number that overflows is no number of ours
            plane = Plane(*map(float, arrays["plane"])) if "plane" in arrays else None
            return _KINDS[kind].from_arrays(arrays).on_plane(plane)
    except KeyError as error:
        raise FileError(
            f"{source}: the array {error} is missing; make or copy the file again"
        ) from None
    except SfumatoError:
        raise
    except (TypeError, ValueError, IndexError, ArithmeticError, Warning) as error:
        raise FileError(
            f"{source} holds arrays that make no {kind} ({error}); make or copy the file again"
        ) from None


def inner_arrays(inner: Mechanism, *, part: str = "") -> dict[str, np.ndarray]:
    """The arrays of a wrapped mechanism, under names of their own; `part` tells one of several."""
    stored = {"format": np.array(FORMAT), "kind": np.array(inner.kind), **inner.arrays()}
    return {f"{_INNER}{part}{name}": array for name, array in stored.items()}


def inner_mechanism(arrays: dict[str, np.ndarray]) -> Mechanism:
    """Build the wrapped mechanism again."""
    nested = {
        name.removeprefix(_INNER): array
        for name, array in arrays.items()
        if name.startswith(_INNER)
    }
    return mechanism_from_arrays(nested, source="a wrapped mechanism")


def inner_mechanisms(arrays: dict[str, np.ndarray]) -> list[Mechanism]:
    """Build wrapped mechanisms again whose parts are `0.`, `1.` and so on."""
    parts: dict[int, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        if name.startswith(_INNER):
            number, _, rest = name.removeprefix(_INNER).partition(".")
            parts.setdefault(int(number), {})[rest] = array
    return [
        mechanism_from_arrays(parts[number], source="a wrapped mechanism")
        for number in range(len(parts))
    ]
