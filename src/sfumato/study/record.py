"""The record of a run: what was asked, of what data, and what came out.  The one place that reads
and writes run.json.

The record holds a SHA-256 checksum of its own content, so a flipped bit or an edited budget is
refused.  Records written before there was one are read as they are.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import STICKY_CELL_M, Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import FileError
from sfumato.files import plain, read_json, write_json
from sfumato.measure.linked import ENDLESS, Reports
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.chance import PERIODS
from sfumato.mechanism.one_place import OnePlace
from sfumato.version import __version__

FORMAT = "sfumato run 1"
_WHAT = "run record"
_CORNER_M = 1.0  # places of a rule lie off the corner of a metre, so perhaps that far outside


def versions() -> dict[str, str]:
    """What computed the figures."""
    return {"sfumato": __version__, "python": platform.python_version(), **_packages()}


@cache
def _packages() -> dict[str, str]:
    versions = {}
    for package in ("numpy", "scipy", "jax"):
        with suppress(metadata.PackageNotFoundError):  # what learns is not in the plain install
            versions[package] = metadata.version(package)
    return versions


@dataclass(frozen=True)
class DataRecord:
    """The training data of a run; `plane` is None for metres and for categories, `recipe` for data
    that was given in memory."""

    name: str
    hash: str
    rows: int | None
    users: tuple[str, ...]
    plane: Plane | None
    recipe: Recipe | None

    @classmethod
    def of(cls, data: Samples | CategoricalData, recipe: Recipe | None) -> "DataRecord":
        """What is written of the data."""
        return cls(data.name, data.hash, len(data), tuple(data.secrets), data.plane, recipe)


NEVER = "never"


@dataclass(frozen=True)
class Keeping:
    """How reports are kept: for the same user, cell of `cell_m` metres and `period` (never: each
    report is a new draw), on a lattice of `lattice_m` metres where that is given; with `by_user`
    off, one report for all users.  With `one_place` whole periods may be sent from one place, at a
    mean loss of `max_loss` metres in all.

    `found` is what `sfumato policy` measured: the share of traces found by each adversary, by the
    words for each way of keeping; `traces` of them.

    >>> Keeping("week").words
    'kept for a week'
    """

    period: str
    cell_m: float = STICKY_CELL_M
    lattice_m: float | None = None
    by_user: bool = True
    one_place: OnePlace | None = None
    max_loss: float | None = None
    traces: int = 0
    found: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = [self.cell_m, *([] if self.lattice_m is None else [self.lattice_m])]
        if self.period not in (NEVER, *PERIODS) or not all(0 < n < 1e9 for n in numbers):
            raise ValueError("reports are kept for no such period, or in no such cell")
        if self.one_place is not None and (
            self.period == NEVER
            or not self.by_user
            or (PERIODS[self.period] is None and self.one_place.parts > 1)
            or self.max_loss is None
            or not 0 < self.max_loss < 1e9
        ):
            raise ValueError("one place is for a user's period, within a budget")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        rule = None if self.one_place is None else self.one_place.as_dict()
        return {**asdict(replace(self, one_place=None)), "one_place": rule}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Keeping":
        """From JSON; runs that are older know of no one place."""
        rule = document.get("one_place")
        return cls(**{**document, "one_place": None if rule is None else OnePlace.from_dict(rule)})

    @property
    def words(self) -> str:
        """What is done, in words."""
        kept = "a new draw for each report"
        if self.period != NEVER:
            spans = {"hour": "for an hour", "forever": "forever"}
            kept = f"kept {spans.get(self.period, f'for a {self.period}')}"
            kept += "" if self.by_user else ", one for all users"
            if self.one_place is not None:
                when = "before it" if self.one_place.before else "when it is over"
                place = "one place" if self.one_place.parts == 1 else "one common week"
                kept = f"{place} for some {self.period}s, the others {kept}, chosen {when}"
        return kept + ("" if self.lattice_m is None else f", on a lattice of {self.lattice_m:g} m")


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Everything that run.json says.  `region` and `grid` are None for categories; `train` and
    `test` are judgements as JSON has them; `to_come` is what to expect of check-ins to come;
    `proof` says how the proof that followed ended, None where none did; `keeping` is how reports
    are to be kept, where that was chosen."""

    solver: str
    settings: Mapping[str, Any]
    seed: int | None = None
    objective: str = "bayes"
    max_loss: float | None
    user_max_loss: Mapping[str, float] | None = None
    max_distance: float | None = None
    min_bayes_error: float | None = None
    reports: Reports = 1
    loss_function: str
    region: Region | None
    grid: Grid | None
    data: DataRecord
    mechanism_hash: str = ""
    status: str
    warnings: tuple[str, ...] = ()
    ended: str = "finished"
    proof: str | None = None
    seconds: float | None = None
    train: Mapping[str, Any]
    test: Mapping[str, Any] | None = None
    to_come: Outlook | None = None
    keeping: Keeping | None = None
    versions: Mapping[str, str] = field(default_factory=versions)

    def write(self, path: Path) -> None:
        """Write run.json with its checksum; for its owner only where it has users beside places."""
        document = plain(self.as_dict())
        private = self.keeping is not None and self.keeping.one_place is not None
        write_json(path, {**document, "checksum": _checksum(document)}, private=private)

    @classmethod
    def read(cls, path: Path) -> "RunRecord":
        """Read run.json and check that it is whole."""
        document = read_json(path, what=_WHAT)
        if document.get("format") != FORMAT:
            raise FileError(f"{path} is not a run record of this version; expected '{FORMAT}'")
        checksum = document.pop("checksum", None)
        try:
            recomputed = _checksum(document)
        except ValueError:
            raise FileError(
                f"{path} holds a number that is not finite, which no run has; make the run again"
            ) from None
        if checksum is None:
            odd = sorted(document.keys() - _NAMES - {"format"})
            if odd:
                raise FileError(f"{path} holds an unknown '{odd[0]}'; make the run again")
        elif checksum != recomputed:
            raise FileError(
                f"{path} was changed after it was written (its checksum differs); make the run"
                " again"
            )
        missing = sorted(_NEEDED - document.keys())
        if missing:
            raise FileError(f"{path} lacks '{missing[0]}'; make the run again")
        try:
            record = cls._of(document)
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
            raise FileError(f"{path} is damaged; make the run again") from None
        kept = record.keeping
        if kept is not None and kept.one_place is not None:
            _check_rule(path, kept.one_place, record.region)
        return record

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        data, plane = self.data, self.data.plane
        return {
            "format": FORMAT,
            **vars(self),
            "region": None if self.region is None else asdict(self.region),
            "to_come": None if self.to_come is None else self.to_come.as_dict(),
            "keeping": None if self.keeping is None else self.keeping.as_dict(),
            "grid": None if self.grid is None else self.grid.as_dict(),
            "data": {
                **vars(data),
                "plane": None if plane is None else dict(zip(_PLANE, plane.numbers, strict=False)),
                "recipe": None if data.recipe is None else data.recipe.as_dict(),
            },
        }

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> "RunRecord":
        """From JSON; what older runs did not write is what they did without asking."""
        data, region, grid = document["data"], document["region"], document["grid"]
        to_come, keeping = document.get("to_come"), document.get("keeping")
        plane, recipe = data.get("plane"), data.get("recipe")
        tables = {name: document.get(name) or {} for name in ("settings", "train", "versions")}
        users = document.get("user_max_loss")
        if not all(isinstance(table, Mapping) for table in (*tables.values(), users or {})):
            raise TypeError("a table is none")
        record = cls(
            **{
                **{name: document[name] for name in _NAMES & document.keys()},
                **tables,
                "warnings": tuple(document.get("warnings", ())),
                "region": (
                    None if region is None else Region(tuple(region["centre"]), region["side_m"])
                ),
                "grid": None if grid is None else Grid.from_dict(grid),
                "data": DataRecord(
                    data["name"],
                    data["hash"],
                    data.get("rows"),
                    tuple(data.get("users") or ()),
                    None if plane is None else Plane(**plane),
                    None if recipe is None else Recipe.from_dict(recipe),
                ),
                "to_come": None if to_come is None else Outlook.from_dict(to_come),
                "keeping": None if keeping is None else Keeping.from_dict(keeping),
            }
        )
        texts = (record.solver, record.loss_function, record.data.hash, record.status, record.ended)
        if not all(isinstance(text, str) for text in (*texts, *record.warnings)):
            raise TypeError("a text is not one")
        if not isinstance(document.get("warnings", []), list):
            raise TypeError("the warnings are no list")
        if record.proof is not None and not isinstance(record.proof, str):
            raise TypeError("how the proof ended is no text")
        budgets = (record.max_loss, record.max_distance, *(record.user_max_loss or {}).values())
        if not all(budget is None or budget > 0 for budget in budgets):
            raise ValueError("a budget is not above 0")
        if record.reports != ENDLESS and type(record.reports) is not int:
            raise TypeError("the number of reports is none")
        return record


_PLANE = ("latitude", "longitude", "reach_m")
_NAMES = {part.name for part in fields(RunRecord)}
_NEEDED = {"solver", "max_loss", "region", "grid", "data", "mechanism_hash", "status"}


def _check_rule(path: Path, rule: OnePlace, region: Region | None) -> None:
    """A record without its checksum is taken; a rule that no policy can have written is not."""
    places = rule.places.reshape(-1, 2)
    wider = None if region is None else replace(region, side_m=region.side_m + 2 * _CORNER_M)
    if wider is None or not wider.contains(places).all():
        raise FileError(
            f"{path} has a rule for one place with places outside the run's region; expected one"
            " that sfumato policy wrote: choose again with it"
        )


def _checksum(document: Mapping[str, Any]) -> str:
    """SHA-256 of the document, however it is spaced and ordered."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
