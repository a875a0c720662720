"""Where a report's chance comes from when somebody is protected: the operating system, or a key.
And how reports are drawn with it.

A kept report is the same for the same mechanism, user, cell and period.  Nothing is stored: the
numbers are a keyed hash (BLAKE2b) of these, so only the holder of the key can tell what they are.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from sfumato.data.distinct import distinct
from sfumato.data.grid import STICKY_CELL_M, Grid, Region, check_sticky_cell
from sfumato.errors import DataError, FileError, arg
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.one_place import OnePlace, drawn_places, mean_distances, parts_of
from sfumato.randomness import uniforms

PERIODS = {"hour": 3600, "day": 86_400, "week": 7 * 86_400, "forever": None}
KEY_BYTES = 32
_MOST_DRAWS = 8  # numbers that a hash of 64 bytes gives
_MILLIMETRES = 1000.0
_HEAD = np.dtype([("place", "<i8", 2), ("seconds", "<i8"), ("user", "<u4")])


@dataclass(frozen=True)
class Rows:
    """Who and when, and the row's own name, of the rows that are to be answered; None where the
    chance does not ask."""

    users: np.ndarray | None = None
    seconds: np.ndarray | None = None
    names: np.ndarray | None = None

    def take(self, mask: np.ndarray) -> "Rows":
        """Those of some rows."""
        parts = (self.users, self.seconds, self.names)
        return Rows(*(None if part is None else part[mask] for part in parts))


class Chance(Protocol):
    """Numbers on [0, 1) for reports, and the truth that is answered in place of the true one."""

    @property
    def asks_user(self) -> bool:
        """Whether rows must say who."""

    @property
    def asks_time(self) -> bool:
        """Whether rows must say when."""

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Truths as they are to be answered, and numbers of shape (n, draws)."""

    def words(self) -> dict[str, object]:
        """For a record."""


@dataclass(frozen=True)
class Secure:
    """A new draw for each report, from the operating system; with a seed the same call repeats,
    for measuring alone."""

    seed: int | None = None

    @property
    def asks_user(self) -> bool:
        return False

    @property
    def asks_time(self) -> bool:
        return False

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        return truth, uniforms(len(truth), draws, seed=self.seed)

    def words(self) -> dict[str, object]:
        return {"randomness": "operating system, a new draw for each row"}


@dataclass(frozen=True)
class Sticky:
    """The same report for the same user, cell and period.

    The truth that is answered is the middle of its cell of `cell_m` metres, so that jitter neither
    redraws nor shows.  `mechanism` is the hash of the one that draws: two mechanisms with the same
    numbers would reveal the truth (two scales of planar Laplace noise cancel).

    With `one_place` whole periods may be sent from one place.  Where that is chosen when a period
    is over, `sent_from` has the number of the place of each user and period (`with_periods`).
    """

    key: bytes
    period: str
    cell_m: float = STICKY_CELL_M
    by_user: bool = True
    mechanism: str = ""
    one_place: OnePlace | None = None
    sent_from: Mapping[tuple[str, int], int] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.period not in PERIODS:
            raise DataError(
                f"a report is kept for one of {', '.join(PERIODS)}; got '{self.period}'"
            )
        check_sticky_cell(self.cell_m)
        check_key(self.key)

    @property
    def asks_user(self) -> bool:
        return self.by_user

    @property
    def asks_time(self) -> bool:
        return PERIODS[self.period] is not None

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        _check_draws(draws)
        grid = Grid(cell_m=self.cell_m)
        cell = grid.index(truth)
        when = self.periods(rows, len(truth))
        users = rows.users if self.by_user else None
        names: dict[str, int] = {"": 0}
        who = [names.setdefault(name, len(names)) for name in ([] if users is None else users)]
        lines = np.column_stack([who or np.zeros(len(truth), dtype=np.int64), cell, when])
        lookup = distinct(lines)  # a line is hashed once, and looked up where it repeats
        chance = self._numbers(lines if lookup is None else lookup[0], list(names))
        return grid.centre_of(cell), (chance if lookup is None else chance[lookup[1]])[:, :draws]

    def periods(self, rows: Rows, count: int) -> np.ndarray:
        """The number of each row's period; 0 where reports are kept forever."""
        length = PERIODS[self.period]
        if length is None:
            return np.zeros(count, dtype=np.int64)
        assert rows.seconds is not None
        return np.asarray(np.floor_divide(rows.seconds, length))

    def sent_from_of(self, rows: Rows, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The number of the place that each row is sent from, -1 for its usual report, and the
        number that this was drawn with."""
        assert self.one_place is not None and rows.users is not None
        pairs, at = _pairs(rows.users, self.periods(rows, count))
        numbers = self._choices(pairs)
        if self.one_place.before:
            who = self.one_place.numbers(np.array([user for user, _ in pairs]))
            places = drawn_places(self.one_place.chances(who), numbers)
        elif self.sent_from is None or any(pair not in self.sent_from for pair in pairs):
            raise DataError(
                "the run chooses one place for a period when the period is over, and these rows"
                " come one by one; expected a finished file: sanitize it whole, or choose before a"
                " period"
            )
        else:
            places = np.array([self.sent_from[pair] for pair in pairs])
        return places[at], numbers[at]

    def with_periods(
        self, truth: np.ndarray, rows: Rows, known: np.ndarray | None = None
    ) -> "Sticky":
        """Ready for the finished periods that these rows, in any order, are all of; rows that are
        not `known` have no place, and decide nothing."""
        if self.one_place is None or self.one_place.before:
            return self
        assert rows.users is not None
        pairs, at = _pairs(rows.users, self.periods(rows, len(truth)))
        if known is not None and not known.all():
            decided = self.with_periods(truth[known], rows.take(known)).sent_from or {}
            return replace(self, sent_from={**dict.fromkeys(pairs, -1), **decided})
        order = np.argsort(at, kind="stable")
        starts = np.searchsorted(at[order], np.arange(len(pairs)))
        counts = np.diff(starts, append=len(at))
        part = parts_of(rows.seconds, self.one_place.parts, len(truth))[order]
        far = mean_distances(truth[order], starts, self.one_place.places, part)
        who = self.one_place.numbers(np.array([user for user, _ in pairs]))
        places = drawn_places(self.one_place.chances(who, far, counts), self._choices(pairs))
        return replace(self, sent_from=dict(zip(pairs, places.tolist(), strict=True)))

    def _choices(self, pairs: list[tuple[str, int]]) -> np.ndarray:
        """A number on [0, 1) for each user and period."""
        about = self.period.encode() + b"\0" + hashlib.sha256(self.mechanism.encode()).digest()
        digests = b"".join(
            hashlib.blake2b(
                struct.pack("<q", period) + about + user.encode("utf-8", "surrogateescape"),
                key=self.key,
                digest_size=64,
                person=b"sfumato place",
            ).digest()
            for user, period in pairs
        )
        return _uniform(digests)[:, 0]

    def answered(self, truth: np.ndarray) -> np.ndarray:
        """The middles of the truths' cells."""
        return Grid(cell_m=self.cell_m).snap(truth)

    def _numbers(self, lines: np.ndarray, names: list[str]) -> np.ndarray:
        """Numbers for lines of user (a number among the names), cell and period."""
        about = self.period.encode() + b"\0" + hashlib.sha256(self.mechanism.encode()).digest()
        ends = [about + name.encode("utf-8", "surrogateescape") for name in names]
        digests = b"".join(
            hashlib.blake2b(
                struct.pack("<qqqd", across, up, period, self.cell_m) + ends[user],
                key=self.key,
                digest_size=64,
                person=b"sfumato report",
            ).digest()
            for user, across, up, period in lines.tolist()
        )
        return _uniform(digests)

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for another process; the key is in it."""
        rule = None if self.one_place is None else self.one_place.as_dict()
        bare = asdict(replace(self, one_place=None))
        return {**bare, "key": self.key.hex(), "one_place": rule}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Sticky":
        """Build what `as_dict` took apart."""
        rule = document["one_place"]
        parts = {
            "key": bytes.fromhex(document["key"]),
            "one_place": None if rule is None else OnePlace.from_dict(rule),
        }
        return cls(**{**document, **parts})

    def words(self) -> dict[str, object]:
        record: dict[str, object] = {
            "randomness": "keyed hash of mechanism, user, cell and period",
            "sticky": self.period,
            "sticky_cell_m": self.cell_m,
            "key_fingerprint": key_fingerprint(self.key),
        }
        if self.one_place is not None:
            record["one_place"] = self.one_place.fingerprint
        return record


@dataclass(frozen=True)
class Keyed:
    """A draw of its own for each row, and the same one whenever the row is computed again.

    The numbers are a keyed hash of the row's user, name and time, as far as rows have them, and of
    the mechanism and the true place (to a millimetre): a row that was corrected, or that another
    mechanism answers, is drawn afresh.  Equal chance under two truths or two mechanisms would give
    away what they differ by.
    """

    key: bytes
    mechanism: str
    by_user: bool = True
    by_time: bool = True
    by_name: bool = True

    def __post_init__(self) -> None:
        check_key(self.key)
        if not (self.by_name or (self.by_user and self.by_time)):
            raise DataError(
                "a row must be identified before its draw can be repeated; expected a column"
                f" that names the row ({arg('row')}), or those of the user and of the time"
            )

    @property
    def asks_user(self) -> bool:
        return self.by_user

    @property
    def asks_time(self) -> bool:
        return self.by_time

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        _check_draws(draws)
        count = len(truth)
        head = np.zeros(count, dtype=_HEAD)
        head["place"] = np.round(truth * _MILLIMETRES)
        if rows.seconds is not None:
            head["seconds"] = rows.seconds
        users = [b""] * count if rows.users is None else _encoded(rows.users)
        names = [b""] * count if rows.names is None else _encoded(rows.names)
        head["user"] = [len(user) for user in users]
        packed, size = head.tobytes(), _HEAD.itemsize
        asked = [rows.users is not None, rows.seconds is not None, rows.names is not None]
        start = hashlib.blake2b(key=self.key, digest_size=64, person=b"sfumato row")
        start.update(bytes(asked) + hashlib.sha256(self.mechanism.encode()).digest())
        digests = bytearray()
        for row, (user, name) in enumerate(zip(users, names, strict=True)):
            digest = start.copy()
            digest.update(packed[row * size : (row + 1) * size] + user + name)
            digests += digest.digest()
        return truth, _uniform(bytes(digests))[:, :draws]

    def words(self) -> dict[str, object]:
        return {
            "randomness": "keyed hash of user, row, time, place and mechanism",
            "key_fingerprint": key_fingerprint(self.key),
        }


def _uniform(digests: bytes) -> np.ndarray:
    """Hashes of 64 bytes as numbers on [0, 1), one row per hash."""
    bits = np.frombuffer(digests, dtype="<u8").reshape(-1, _MOST_DRAWS)
    return (bits >> np.uint64(11)) * 2.0**-53


def _pairs(users: np.ndarray, periods: np.ndarray) -> tuple[list[tuple[str, int]], np.ndarray]:
    """Each user and period once, and which of them each row has."""
    names, who = np.unique(users.astype(str), return_inverse=True)
    each, at = np.unique(np.column_stack([who.ravel(), periods]), axis=0, return_inverse=True)
    return [(str(names[user]), period) for user, period in each.tolist()], at.ravel()


def _encoded(texts: np.ndarray) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in texts.tolist()]


def _check_draws(draws: int) -> None:
    if draws > _MOST_DRAWS:
        raise DataError(
            f"this mechanism needs {draws} random numbers per report; a kept report has at most"
            f" {_MOST_DRAWS}"
        )


def check_key(key: bytes) -> bytes:
    """Refuse a key of another length."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        got = f"{len(key)}" if isinstance(key, bytes) else type(key).__name__
        raise FileError(f"a key is {KEY_BYTES} bytes; got {got}")
    return key


def key_fingerprint(key: bytes) -> str:
    """Tells two keys apart and gives neither away."""
    return hashlib.blake2b(b"", key=key, digest_size=8, person=b"sfumato key name").hexdigest()


class Drawn(NamedTuple):
    """Reports, in metres; the numbers that they were drawn with; and which truths the mechanism
    does not answer (None for none), in whose place a known truth was."""

    reports: np.ndarray
    numbers: np.ndarray
    new: np.ndarray | None


def draw(
    mechanism: Mechanism,
    truth: np.ndarray,
    chance: Chance,
    rows: Rows,
    region: Region | None = None,
) -> Drawn:
    """Reports of truths (n, 2) in metres.  All that protects or measures a policy draws here.

    `region` is where the middle of a cell is moved to when it lies outside.

    >>> from sfumato.mechanism.simple import Identity
    >>> truth, rows = np.array([[3.0, 4.0]]), Rows(users=np.array(["ann"]))
    >>> draw(Identity(), truth, Sticky(bytes(32), "forever"), rows).reports.tolist()
    [[12.5, 12.5]]
    """
    answered, numbers = chance.of(truth, rows, mechanism.draws)
    if answered is not truth and region is not None:
        answered = region.clamp(answered)  # the middle of a cell at the edge may lie outside
    answered, new = _known(mechanism, answered)
    reports = within_cap(mechanism, chance).report(answered, numbers)
    if isinstance(chance, Sticky) and chance.one_place is not None:
        at, chosen = chance.sent_from_of(rows, len(truth))
        part = parts_of(rows.seconds, chance.one_place.parts, len(truth))
        reports = np.where(at[:, None] < 0, reports, chance.one_place.places[at, part])
        numbers = np.where(at[:, None] < 0, numbers, chosen[:, None])
    _check_cap(mechanism, chance, truth, reports)
    return Drawn(reports, numbers, new)


def _known(mechanism: Mechanism, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Truths that the mechanism answers, and which of those given it does not (None for none): a
    known one stands in for each, so that arrays keep their length."""
    if not isinstance(mechanism, Channel) or mechanism.answers_new:
        return truth, None
    new = ~mechanism.knows(truth)
    return np.where(new[:, None], mechanism.truths[0], truth), new if new.any() else None


def within_cap(mechanism: Mechanism, chance: Chance) -> Mechanism:
    """A mechanism with a hard cap, tightened where the middle of a cell is answered: what is within
    the rest from there is within the cap from all of the cell."""
    cap = getattr(mechanism, "max_distance", None)
    if cap is None or not isinstance(chance, Sticky):
        return mechanism
    left = cap - chance.cell_m / 2**0.5
    if not left > 0:
        raise _cap_refusal(cap, chance)
    return _tightened(mechanism, left)


@lru_cache(maxsize=4)
def _tightened(mechanism: Mechanism, cap: float) -> Mechanism:
    return replace(mechanism, max_distance=cap)  # type: ignore[type-var]


def _check_cap(
    mechanism: Mechanism, chance: Chance, truth: np.ndarray, reports: np.ndarray
) -> None:
    cap = getattr(mechanism, "max_distance", None)
    if cap is None or not isinstance(chance, Sticky):
        return
    off = reports - truth
    if np.any(np.hypot(off[:, 0], off[:, 1]) > cap * (1 + 1e-6)):
        raise _cap_refusal(cap, chance)


def _cap_refusal(cap: float, chance: Sticky) -> DataError:
    return DataError(
        f"reports kept for a cell of {chance.cell_m:g} m cannot all be within the run's cap of"
        f" {cap:g} m; expected a cell well below that: make {arg('sticky_cell_m')} smaller"
    )
