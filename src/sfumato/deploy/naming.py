"""Columns that name the user one to one beside the column that does: e-mail addresses, numbers of
devices, names."""

from collections.abc import Mapping, Sequence
from typing import Any

_SURE = 20  # users, and repeated rows, from which on a column is refused before the last row
_REPEATS = 8  # repeated rows below which nothing is said
_OTHERS = 0.05  # of the pairs, may be a second value of a user, or a second user of a value


class OneToOne:
    """Which columns go one to one with the users, over the blocks of a table.

    Of each column the distinct pairs of user and value are kept, until they are too many for one
    value per user: for most columns that is within the first block.
    """

    def __init__(self) -> None:
        self._pairs: dict[str, set[tuple[Any, Any]]] = {}
        self._users: dict[str, set[Any]] = {}
        self._values: dict[str, set[Any]] = {}
        self._rows: dict[str, int] = {}
        self._others: set[str] = set()

    def note(self, users: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> None:
        """Take in some rows: whose they are, and what stands in other columns."""
        for name, values in columns.items():
            if name in self._others:
                continue
            found = [
                (_hashable(user), _hashable(value))
                for user, value in zip(users, values, strict=True)
                if not (user is None or value is None or user == "" or value == "")
            ]
            pairs = self._pairs.setdefault(name, set())
            pairs.update(found)
            self._users.setdefault(name, set()).update(user for user, _ in found)
            self._values.setdefault(name, set()).update(value for _, value in found)
            self._rows[name] = self._rows.get(name, 0) + len(found)
            if len(pairs) > 2 * min(self._counts(name)) + _REPEATS:
                self._others.add(name)
                del self._pairs[name], self._users[name], self._values[name]

    def naming(self, *, sure: bool = False) -> list[str]:
        """The columns that do by the rows so far; `sure`: those of which later rows change
        nothing."""
        least, repeats = (_SURE, _SURE) if sure else (2, _REPEATS)
        return [
            name
            for name, pairs in self._pairs.items()
            if min(self._counts(name)) >= least
            and len(pairs) * (1 - _OTHERS) <= min(self._counts(name))
            and self._rows[name] - len(pairs) >= repeats
        ]

    def _counts(self, name: str) -> tuple[int, int]:
        return len(self._users[name]), len(self._values[name])


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bytes)) else repr(value)
