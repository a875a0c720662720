"""The users that a run was made for, and rows of others: the figures of the run do not hold for
these."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from sfumato.data.arrow import bytes_column, to_numpy
from sfumato.data.samples import EVERYBODY_ELSE
from sfumato.study.record import RunRecord

_LARGEST = 1 << 24  # number of a user that is looked up in a table of as many bytes


@dataclass(frozen=True)
class KnownUsers:
    """By name.  A table may hold a name as text or as a number, as the file that the run was made
    from may.

    >>> KnownUsers(("1", "2")).others(pa.array([1, 2, 3, None]))
    1
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, record: RunRecord) -> "KnownUsers | None":
        """None where the run does not know its users by name: some are pooled, or its secrets are
        no users of a table."""
        names = record.data.users
        known = bool(names) and record.region is not None and EVERYBODY_ELSE not in names
        return cls(names) if known else None

    def others(self, column: Any) -> int | None:
        """Rows of an Arrow column that name somebody else; empty ones name nobody.  None for a type
        that names no user."""
        if pa.types.is_integer(column.type) and not column.null_count and self._small is not None:
            numbers = to_numpy(column)  # looked up ten times as fast as by Arrow's hashes
            if len(numbers) and numbers.dtype != np.uint64 and numbers.min() >= 0:
                return len(numbers) - int(self._small.take(numbers, mode="clip").sum())
        try:
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            if not pa.types.is_binary(column.type):
                column = column.cast(pa.string()).cast(pa.binary())
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        apart = compute.sum(compute.is_in(column, value_set=self._apart)).as_py() or 0
        return len(column) - column.null_count - int(apart)

    @cached_property
    def _small(self) -> np.ndarray | None:
        """By number whether a user of it is known, with a last number that nobody has; None where
        numbers are too large."""
        numbers = [
            int(name)
            for name in self.names
            if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")
        ]
        if any(number > _LARGEST for number in numbers):
            return None
        table = np.zeros(max(numbers, default=0) + 2, dtype=bool)
        table[numbers] = True
        return table

    @cached_property
    def _apart(self) -> Any:
        """The names as bytes, and that of nobody."""
        return bytes_column([b"", *(name.encode("utf-8", "surrogatepass") for name in self.names)])
