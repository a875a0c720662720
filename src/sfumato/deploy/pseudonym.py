"""New names for users, and the key files that names and kept reports come from."""

import hmac
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.errors import DataError, FileError
from sfumato.files import clear_drafts, written_beside
from sfumato.mechanism.chance import KEY_BYTES, PERIODS, Rows, check_key, key_fingerprint

_NAME_BYTES = 10  # of a pseudonym: two among a million users agree with a chance of 4e-13


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


def read_or_make_key(path: Path) -> bytes:
    """The key in a file; a file that is not there is made, readable by its owner alone, and never
    overwritten."""
    clear_drafts(path)
    if path.exists():
        return read_key(path)
    key = os.urandom(KEY_BYTES)
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
            text = source.read(KEY_BYTES * 2 + 2)
    except OSError as error:
        raise FileError(f"cannot read the key file {path}: {error.strerror}") from None
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise FileError(
            f"{path} is not a key file of sfumato; expected {KEY_BYTES * 2} hexadecimal digits:"
            " name a new"
            " file and one is made"
        )
    return key
