"""What leaves a run: its mechanism, on its plane, with the decimals of its reports."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, log10
from typing import Any, Literal

import numpy as np

from sfumato.data.distinct import distinct
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import METRES_A_DEGREE, Plane
from sfumato.data.samples import Samples
from sfumato.deploy.spent import Budget
from sfumato.errors import DataError, FileError, SfumatoError
from sfumato.mechanism.base import FORMAT, Mechanism, mechanism_from_arrays
from sfumato.mechanism.channel import Channel
from sfumato.study.folder import Run
from sfumato.study.record import Keeping
from sfumato.study.traces import on_a_grid, on_lattice, places_of

NewPlaces = Literal["average", "nearest", "refuse"]
NEW_PLACES: tuple[NewPlaces, ...] = ("average", "nearest", "refuse")
_FINENESS = 100  # decimals are as many as tell a hundredth of a cell apart, and no more


@dataclass(frozen=True, eq=False)
class Release:
    """A mechanism as it is used: on a plane (None for data in metres), in a region, with its
    reports on a grid.

    `figures` holds what the run measured (budget, loss, leakage), no place and no user; `budget`
    is what its reports may cost; `keeping` is how the run says to keep them, which who draws with
    the release must see to.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> release(sf.load_run("run")).decimals  # of a written coordinate
    6
    """

    mechanism: Mechanism
    plane: Plane | None
    region: Region
    grid: Grid
    figures: dict[str, Any]
    budget: Budget = field(default_factory=Budget)
    keeping: Keeping | None = None

    @property
    def decimals(self) -> int:
        """Decimals of a written coordinate: enough for a hundredth of a cell, so that lower digits
        say nothing."""
        step = self.grid.cell_m / _FINENESS
        if self.plane is not None:
            step /= METRES_A_DEGREE
        return max(0, ceil(-log10(step)))

    @property
    def epsilon(self) -> float:
        """Of the planar Laplace noise for points outside the region: the run's own loss,
        2/epsilon."""
        return 2 / float(self.figures["max_loss"] or self.figures["loss"])

    def written(self, reports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Reports in metres as the two coordinates that are written, rounded."""
        lookup = distinct(reports)
        if lookup is not None:
            first, second = self.written(lookup[0])
            return first.take(lookup[1]), second.take(lookup[1])
        if self.plane is None:
            return np.round(reports[:, 0], self.decimals), np.round(reports[:, 1], self.decimals)
        latitude, longitude = self.plane.to_degrees(reports)
        return np.round(latitude, self.decimals), np.round(longitude, self.decimals)

    def distance(self, truth: np.ndarray, reports: np.ndarray) -> np.ndarray:
        """Metres between truths and reports."""
        if self.plane is not None and self.plane.wide:
            return self.plane.distance(truth, reports)
        off = reports - truth
        off *= off
        return np.asarray(np.sqrt(off[:, 0] + off[:, 1]))

    # For sending to another process ---------------------------------------------------------------

    def as_parts(self) -> tuple[bytes, dict[str, Any]]:
        """The mechanism's file and the rest as plain values."""
        target = io.BytesIO()
        stored: dict[str, Any] = {
            "format": np.array(FORMAT),
            "kind": np.array(self.mechanism.kind),
        }
        np.savez(target, allow_pickle=False, **stored, **self.mechanism.arrays())
        return target.getvalue(), {
            "plane": None if self.plane is None else list(self.plane.numbers),
            "region": [*self.region.centre, self.region.side_m],
            "grid": self.grid.as_dict(),
            "figures": self.figures,
            "budget": self.budget.as_dict(),
        }

    @classmethod
    def from_parts(cls, mechanism: bytes, rest: dict[str, Any]) -> "Release":
        """Build what `as_parts` took apart."""
        with np.load(io.BytesIO(mechanism), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        x, y, side = rest["region"]
        return cls(
            mechanism=mechanism_from_arrays(arrays, source="a mechanism sent by another process"),
            plane=None if rest["plane"] is None else Plane(*rest["plane"]),
            region=Region(centre=(x, y), side_m=side),
            grid=Grid.from_dict(rest["grid"]),
            figures=rest["figures"],
            budget=Budget(**rest["budget"]),
        )


def release(run: Run, *, new_places: NewPlaces = "average") -> Release:
    """The mechanism of a run, ready for use.  `new_places` says how a mechanism that was made for
    given places alone answers others.

    A mechanism whose reports can lie anywhere is snapped to the run's grid: its leakage was
    measured there, and full floating-point noise carries traces of the truth in its last bits.
    """
    own, region = places_of(run)
    kept = run.record.keeping
    mechanism = on_a_grid(_answering(run.mechanism, new_places), own, region)
    mechanism = on_lattice(mechanism, kept)
    lattice_m = None if kept is None else kept.lattice_m
    grid = own if lattice_m is None else Grid(cell_m=lattice_m)
    try:
        loss = float(run.record.train["loss"]["value"])
        figures = {
            "solver": run.record.solver,
            "kind": _kind(mechanism),
            "mechanism_hash": run.record.mechanism_hash,
            "max_loss": run.max_loss,
            "loss": loss,
            "bayes_error": float(run.record.train["bayes_error"]["value"]),
            "cell_m": grid.cell_m,
        }
    except (KeyError, TypeError, ValueError):
        raise FileError(
            f"{run.folder / 'run.json'} lacks its figures; make the run again"
        ) from None
    if not loss > 0 and run.max_loss is None:
        figures["max_loss"] = own.cell_m
    plane = run.record.data.plane
    return Release(mechanism, plane, region, grid, figures, budget_of(run), kept)


def budget_of(run: Run) -> Budget:
    """What the run's reports may cost, with the interval of its own estimate for check-ins to
    come."""
    kept = run.record.keeping
    if kept is not None and kept.one_place is not None:
        return Budget(max_loss=kept.max_loss)
    loss = (to_come(run) or {}).get("loss") or {}
    within = max(0.0, float(loss.get("high", 0.0)) - float(loss.get("value", 0.0)))
    return Budget(
        max_loss=run.max_loss,
        user_max_loss=dict(run.record.user_max_loss or {}),
        loss_function=run.record.loss_function,
        within=within,
    )


def to_come(run: Run) -> Mapping[str, Any] | None:
    """What the run's record says to expect of check-ins to come; None where it says nothing."""
    expected = run.record.to_come
    return None if expected is None else expected.as_dict()


def _answering(mechanism: Mechanism, new_places: NewPlaces) -> Mechanism:
    """A channel with the rule that is wanted for places that it has no row for."""
    if not isinstance(mechanism, Channel):
        return mechanism
    average = mechanism.average if new_places == "average" else None
    chosen = replace(mechanism, average=average, nearest=new_places == "nearest")
    return chosen.on_plane(mechanism.plane)


def _kind(mechanism: Mechanism) -> str:
    inner = getattr(mechanism, "inner", None)
    return mechanism.kind if inner is None else f"{_kind(inner)}, {mechanism.kind}"


_SHARE = 0.95
_STEP_M = 10.0
_REPORTS = 200_000


def accuracy(run: Run, released: Release) -> dict[str, Any]:
    """The distance that 95 % of reports stay within, rounded up to 10 m, and for which truths.

    For the run's training data where it can be read again; else for truths spread evenly over the
    region.
    """
    samples = training_samples(run)
    truth = None if samples is None else samples.truth
    where = "the run's training data"
    mechanism = released.mechanism
    if isinstance(mechanism, Channel) and not mechanism.answers_new:
        truth, where = mechanism.truths, "the places that the mechanism was made for"
    if truth is None:
        side = np.linspace(-0.5, 0.5, 101) * released.region.side_m
        truth = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) + np.array(
            released.region.centre
        )
        where = "truths spread evenly over the region"
    truth = np.resize(truth, (max(_REPORTS, len(truth)), 2))
    reports = mechanism.sample(truth, seed=0)
    _check_on_earth(run, released, np.vstack([reports, mechanism.places_in_file()]))
    off = released.distance(truth, reports)
    metres = max(_STEP_M, float(np.ceil(np.quantile(off, _SHARE) / _STEP_M) * _STEP_M))
    return {
        "accuracy_m": metres,
        "accuracy_means": f"95 % of reports lie within this distance of the truth, for {where}",
    }


def _check_on_earth(run: Run, released: Release, places: np.ndarray) -> None:
    """Refuse, before there are requests, reports that have no latitude and longitude."""
    try:
        released.written(places)
    except DataError:
        raise FileError(
            f"{run.folder} holds a mechanism that reports beyond the edge of the Earth; make the"
            " run again"
        ) from None


def training_samples(run: Run) -> Samples | None:
    """The run's training check-ins, read again; None where that cannot be."""
    try:
        data = None if run.recipe is None else run.recipe.data()[0]
    except SfumatoError:
        return None
    known = isinstance(data, Samples) and data.hash == run.record.data.hash
    return data if known and isinstance(data, Samples) else None
