"""How often whole traces are found: of a run's reports, and of the truth, planar Laplace noise and
snapping beside them."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.data.grid import Grid, Region
from sfumato.data.traces import Traces
from sfumato.errors import DataError, FileError
from sfumato.measure.traces import Found, Released, Who, find_traces
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.chance import KEY_BYTES, Chance, Rows, Secure, Sticky, draw, within_cap
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Identity
from sfumato.mechanism.wrap import Snapped
from sfumato.study.folder import Run
from sfumato.study.record import NEVER, Keeping

SNAPPED_M = (2000.0, 5000.0)
_MEASURED: tuple[Who, ...] = ("law", "chain", "history")


@dataclass(frozen=True)
class TracesFound:
    """How often traces are found, by what is reported: the run's own name leads."""

    found: Mapping[str, Found]
    users: int
    named: int  # traces that adversaries learn from
    rows: int  # of the traces to be found

    @property
    def blind(self) -> float:
        """The share of traces that a guess finds which sees nothing, if all users have as many."""
        return 1 / self.users

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "users": self.users,
            "named_traces": self.named,
            "rows": self.rows,
            "found": {name: found_dict(figures) for name, figures in self.found.items()},
        }


def found_dict(figures: Found) -> dict[str, Any]:
    """For JSON."""
    shares: dict[str, Any] = {who: share.as_dict() for who, share in figures.shares.items()}
    loss = {"loss_m": figures.loss_m, "loss_error_m": figures.loss_error_m}
    return {**loss, "traces": figures.traces, **shares}


def released_mechanism(run: Run, keeping: Keeping | None = None) -> Mechanism:
    """The mechanism of a run as it is released (see `on_a_grid`), with its reports on the lattice
    of the run's keeping, or of another."""
    grid, region = places_of(run)
    chosen = run.record.keeping if keeping is None else keeping
    return on_lattice(on_a_grid(run.mechanism, grid, region), chosen)


def places_of(run: Run) -> tuple[Grid, Region]:
    """The grid and the region of a run about places; refuses one about categories."""
    if run.region is None or run.grid is None:
        raise FileError(
            f"{run.folder} is about categories, not places; only mechanisms of places can be used"
            " on locations"
        )
    return run.grid, run.region


def on_lattice(mechanism: Mechanism, keeping: Keeping | None) -> Mechanism:
    """The mechanism with its reports on the lattice of a way of keeping, where it has one."""
    lattice_m = None if keeping is None else keeping.lattice_m
    if lattice_m is None:
        return mechanism
    inner = mechanism.inner if isinstance(mechanism, Snapped) else mechanism
    return Snapped(inner, Grid(cell_m=lattice_m))


def on_a_grid(mechanism: Mechanism, grid: Grid, region: Region) -> Mechanism:
    """A mechanism whose reports are finitely many, or on a grid: full floating-point noise carries
    traces of the truth in its last bits."""
    if isinstance(mechanism, Snapped) or lists_reports(mechanism, region):
        return mechanism
    return Snapped(mechanism, grid)


def lists_reports(mechanism: Mechanism, region: Region) -> bool:
    """Whether a mechanism's reports are finitely many, as those of a codebook or a channel."""
    middle = np.array([region.centre])
    return isinstance(mechanism, Channel) or mechanism.rows(middle) is not None


def chance_of(
    keeping: Keeping | None, key: bytes, mechanism: str, *, seed: int | None = None
) -> Chance:
    """Where the chance of reports comes from that are kept so; `mechanism` is the hash of the one
    that draws, `seed` is for measuring alone."""
    if keeping is None or keeping.period == NEVER:
        return Secure(seed)
    return Sticky(
        key,
        keeping.period,
        keeping.cell_m,
        by_user=keeping.by_user,
        mechanism=mechanism,
        one_place=keeping.one_place,
    )


def seeded_key(seed: int) -> bytes:
    """A key for measuring: never one that protects.

    >>> len(seeded_key(0))
    32
    """
    return hashlib.blake2b(f"measured {seed}".encode(), digest_size=KEY_BYTES).digest()


def check_traces(run: Run, traces: Traces) -> None:
    """Refuse traces that the run was not made for."""
    source, users = traces.samples.name, set(run.record.data.users)
    unknown = sorted(set(traces.samples.secrets) - users) if users else []
    if unknown:
        raise DataError(
            f"{source}: {len(unknown)} user(s) are unknown to {run.folder}, the first is"
            f" '{unknown[0]}'; expected users of the run's training data: leave the others out, or"
            " solve with them"
        )
    assert run.region is not None
    outside = np.flatnonzero(~run.region.contains(traces.samples.truth))
    if outside.size:
        first = traces.samples.secret[outside[0]]
        raise DataError(
            f"{source}: {outside.size} row(s) lie outside the region that {run.folder} was made"
            f" for, the first is of user '{traces.samples.secrets[first]}'; leave them out, or"
            " solve with a larger region"
        )


def rows_of(traces: Traces) -> Rows:
    """Who and when, of all rows."""
    return Rows(np.array(traces.samples.secrets)[traces.samples.secret], traces.seconds)


def released_reports(
    traces: Traces, mechanism: Mechanism, chance: Chance, region: Region | None
) -> Released:
    """Draw the reports of all rows as they would be sent, and say what is known of how they were
    drawn."""
    rows, truth = rows_of(traces), traces.samples.truth
    if chance.asks_time and rows.seconds is None:
        raise DataError(
            f"{traces.samples.name} was read without times, and reports are kept for a period;"
            " name the column of the time"
        )
    if isinstance(chance, Sticky):
        chance = chance.with_periods(truth, rows)
    drawn = draw(mechanism, truth, chance, rows, region)
    if drawn.new is not None:
        raise DataError(
            f"{traces.samples.name}: {int(drawn.new.sum())} row(s) are at places that the mechanism"
            " does not answer; solve again, or measure a mechanism that answers new places"
        )
    if not isinstance(chance, Sticky):
        return Released(mechanism, drawn.reports)

    def answer(points: np.ndarray) -> np.ndarray:
        middles = chance.answered(points)
        return middles if region is None else region.clamp(middles)

    periods = chance.periods(rows, len(truth))
    sent = None if chance.one_place is None else chance.sent_from_of(rows, len(truth))[0]
    capped = within_cap(mechanism, chance)
    return Released(capped, drawn.reports, periods, answer, chance.one_place, sent)


def measure_traces(
    run: Run,
    traces: Traces,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> TracesFound:
    """How often traces of a run's reports are found by three adversaries, with the truth, planar
    Laplace noise of the same loss and snapping to 2 and 5 km beside it.

    Reports are kept as the run says, else drawn anew for each row; those beside are drawn anew.
    """
    check_traces(run, traces)
    mechanism = released_mechanism(run)
    assert run.grid is not None
    fresh = Secure(seed)
    chance = chance_of(run.record.keeping, seeded_key(seed), run.record.mechanism_hash, seed=seed)
    own = released_reports(traces, mechanism, chance, run.region)
    progress(f"traces of {run.name}")
    figures = {run.name: find_traces(traces, own, _MEASURED, progress=progress)}
    beside: dict[str, Mechanism] = {"truth": Snapped(Identity(), run.grid)}
    if figures[run.name].loss_m > 0:
        noise = PlanarLaplace.for_loss(figures[run.name].loss_m)
        beside["planar laplace"] = Snapped(noise, run.grid)
    for side in SNAPPED_M:
        beside[f"snapped to {side / 1000:g} km"] = Snapped(Identity(), Grid(cell_m=side))
    for name, other in beside.items():
        progress(f"traces of {name}")
        released = released_reports(traces, other, fresh, None)
        figures[name] = find_traces(traces, released, _MEASURED, progress=progress)
    return TracesFound(
        figures,
        users=len(traces.samples.secrets),
        named=len(np.unique(traces.trace[traces.named])),
        rows=int((~traces.named).sum()),
    )
