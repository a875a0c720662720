"""Where a report's chance comes from when somebody is protected: the operating system, or a key.

A keyed report is the same for the same user, cell and period.  Nothing is stored: the numbers are a
keyed hash (BLAKE2b) of these three, so only who holds the key can tell what they will be.
"""

import hashlib
import hmac
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from sfumato.data.grid import STICKY_CELL_M, Grid
from sfumato.errors import DataError, FileError, arg
from sfumato.files import clear_drafts, written_beside
from sfumato.randomness import uniforms

PERIODS = {"hour": 3600, "day": 86_400, "week": 7 * 86_400, "forever": None}
_KEY_BYTES = 32
_NAME_BYTES = 10  # of a pseudonym: two among a million users agree with a chance of 4e-13
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
        ...

    @property
    def asks_time(self) -> bool:
        """Whether rows must say when."""
        ...

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Truths as they are to be answered, and numbers of shape (n, draws)."""
        ...

    def words(self) -> dict[str, object]:
        """For a record."""
        ...


@dataclass(frozen=True)
class Secure:
    """A new draw for each report, from the operating system."""

    @property
    def asks_user(self) -> bool:
        return False

    @property
    def asks_time(self) -> bool:
        return False

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        return truth, uniforms(len(truth), draws)

    def words(self) -> dict[str, object]:
        return {"randomness": "operating system, a new draw for each row"}


@dataclass(frozen=True)
class Sticky:
    """The same report for the same user, cell and period.

    The truth that is answered is the middle of its cell of `cell_m` metres, so that jitter neither
    redraws nor shows.
    """

    key: bytes
    period: str
    cell_m: float = STICKY_CELL_M
    by_user: bool = True

    def __post_init__(self) -> None:
        if self.period not in PERIODS:
            raise DataError(
                f"a report is kept for one of {', '.join(PERIODS)}; got '{self.period}'"
            )
        if not (self.cell_m > 0 and np.isfinite(self.cell_m)):
            raise DataError(
                f"the cell within which a report is kept must be above 0 metres; got {self.cell_m}"
            )
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
        length = PERIODS[self.period]
        when = np.zeros(len(truth), dtype=np.int64)
        if length is not None:
            assert rows.seconds is not None
            when = np.floor_divide(rows.seconds, length)
        who = np.full(len(truth), "") if rows.users is None else rows.users
        chance = np.empty((len(truth), max(draws, 1)))
        known: dict[tuple[str, int, int, int], np.ndarray] = {}
        lines = zip(
            who.tolist(), cell[:, 0].tolist(), cell[:, 1].tolist(), when.tolist(), strict=True
        )
        for row, line in enumerate(lines):
            found = known.get(line)
            if found is None:
                found = known[line] = self._numbers(line)
            chance[row] = found[: chance.shape[1]]
        return grid.centre_of(cell), chance[:, :draws]

    def _numbers(self, line: tuple[str, int, int, int]) -> np.ndarray:
        user, across, up, period = line
        text = (
            struct.pack("<qqqd", across, up, period, self.cell_m)
            + self.period.encode()
            + b"\0"
            + user.encode("utf-8", "surrogateescape")
        )
        digest = hashlib.blake2b(
            text, key=self.key, digest_size=64, person=b"sfumato report"
        ).digest()
        return (np.frombuffer(digest, dtype="<u8") >> np.uint64(11)) * 2.0**-53

    def words(self) -> dict[str, object]:
        return {
            "randomness": "keyed hash of user, cell and period",
            "sticky": self.period,
            "sticky_cell_m": self.cell_m,
            "key_fingerprint": key_fingerprint(self.key),
        }


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
                "a row must be told from others before its draw can be repeated; expected a column"
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
        numbers = np.frombuffer(bytes(digests), dtype="<u8").reshape(count, _MOST_DRAWS)
        return truth, (numbers[:, :draws] >> np.uint64(11)) * 2.0**-53

    def words(self) -> dict[str, object]:
        return {
            "randomness": "keyed hash of user, row, time, place and mechanism",
            "key_fingerprint": key_fingerprint(self.key),
        }


def _encoded(texts: np.ndarray) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in texts.tolist()]


def _check_draws(draws: int) -> None:
    if draws > _MOST_DRAWS:
        raise DataError(
            f"this mechanism needs {draws} random numbers a report; a kept report has at most"
            f" {_MOST_DRAWS}"
        )


def check_key(key: bytes) -> bytes:
    """Refuse a key of another length."""
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        got = f"{len(key)}" if isinstance(key, bytes) else type(key).__name__
        raise FileError(f"a key is {_KEY_BYTES} bytes; got {got}")
    return key


@dataclass(frozen=True)
class Pseudonym:
    """New names for users: HMAC-SHA256 of the user and the period.

    Only who holds the key can tell who it was, or which names of two periods are one user's.
    """

    key: bytes
    period: str

    def __post_init__(self) -> None:
        if self.period not in PERIODS:
            raise DataError(
                f"a pseudonym is kept for one of {', '.join(PERIODS)}; got '{self.period}'"
            )
        check_key(self.key)

    @property
    def asks_time(self) -> bool:
        """Whether rows must say when."""
        return PERIODS[self.period] is not None

    def of(self, rows: "Rows") -> np.ndarray:
        """The new name of each row's user."""
        assert rows.users is not None
        length = PERIODS[self.period]
        when = np.zeros(len(rows.users), dtype=np.int64)
        if length is not None:
            assert rows.seconds is not None
            when = np.floor_divide(rows.seconds, length)
        pairs = list(zip(rows.users.tolist(), when.tolist(), strict=True))
        known = {pair: self._name(*pair) for pair in set(pairs)}
        return np.array([known[pair] for pair in pairs], dtype=object)

    def _name(self, user: str, period: int) -> str:
        text = f"sfumato pseudonym\0{self.period}\0{period}\0{user}"
        digest = hmac.digest(self.key, text.encode("utf-8", "surrogateescape"), "sha256")
        return digest[:_NAME_BYTES].hex()

    def words(self) -> dict[str, object]:
        """For a record."""
        return {
            "pseudonym": "HMAC-SHA256 of user and period",
            "period": self.period,
            "key_fingerprint": key_fingerprint(self.key),
        }


def key_fingerprint(key: bytes) -> str:
    """Tells two keys apart and gives neither away."""
    return hashlib.blake2b(b"", key=key, digest_size=8, person=b"sfumato key name").hexdigest()


def read_or_make_key(path: Path) -> bytes:
    """The key in a file; a file that is not there is made, readable by its owner alone, and never
    overwritten."""
    clear_drafts(path)
    if path.exists():
        return read_key(path)
    key = os.urandom(_KEY_BYTES)
    try:
        with written_beside(path, replaces=False, private=True) as beside:
            beside.write_text(key.hex() + "\n", encoding="ascii")
    except FileError:
        if path.exists():  # another process has made one meanwhile
            return read_key(path)
        raise
    return key


def read_key(path: Path) -> bytes:
    """The key in a file that others cannot read."""
    try:
        with path.open("rb") as source:
            if stat.S_IMODE(os.fstat(source.fileno()).st_mode) & 0o077:
                raise FileError(
                    f"others can read the key file {path}; expected mode 600: run chmod 600 on it"
                )
            text = source.read(_KEY_BYTES * 2 + 2)
    except OSError as error:
        raise FileError(f"cannot read the key file {path}: {error.strerror}") from None
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise FileError(
            f"{path} holds no key of ours; expected {_KEY_BYTES * 2} hexadecimal digits: name a new"
            " file and one is made"
        )
    return key
