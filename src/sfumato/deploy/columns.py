"""Which columns hold the place, the user and the time."""

import re
from dataclasses import dataclass
from functools import partial

from sfumato.data.read import USUAL
from sfumato.errors import DataError, arg

_LIKE_A_PLACE = re.compile(r"[0-9][.,][0-9]{4}|[0-9]{9}")
_USERS = tuple(name for name in USUAL["secret"] if name != "id")


@dataclass(frozen=True)
class Columns:
    """Names of the columns that play a part; `first` and `second` are latitude and longitude, or x
    and y."""

    first: str
    second: str
    user: str | None = None
    time: str | None = None
    row: str | None = None  # names the row, for draws that must come out the same again


def check_header(names: list[str], *, source: str) -> list[str]:
    """Refuse names that may hold a place, as they go into the output and into sentences, and names
    that are there twice."""
    for place, name in enumerate(names):
        if _LIKE_A_PLACE.search(name):
            raise DataError(
                f"{source}: the name of column {place + 1} holds a number like a coordinate;"
                " expected names in the first line: add or repair it"
            )
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise DataError(
            f"{source} has the column '{twice[0]}' twice; expected each name once: rename or"
            " remove one"
        )
    return names


def find_columns(
    names: list[str],
    *,
    source: str,
    degrees: bool,
    lat: str | None = None,
    lon: str | None = None,
    user: str | None = None,
    time: str | None = None,
    asks_user: bool = False,
    asks_time: bool = False,
) -> Columns:
    """By the names given, or the usual ones."""
    first, second = ("lat", "lon") if degrees else ("x", "y")
    find = partial(_one, names, source=source)
    columns = Columns(
        first=find(lat, USUAL[first], what=first, option="lat"),
        second=find(lon, USUAL[second], what=second, option="lon"),
        user=find(user, USUAL["secret"], what="user", option="secret") if asks_user else None,
        time=find(time, USUAL["time"], what="time", option="time") if asks_time else None,
    )
    if columns.first == columns.second:
        raise DataError(f"{source}: one column cannot be both {first} and {second}; name two")
    return columns


def _one(
    names: list[str],
    given: str | None,
    usual: tuple[str, ...],
    *,
    source: str,
    what: str,
    option: str,
) -> str:
    if given is not None:
        matches = [name for name in names if name == given]
        if not matches:
            raise DataError(
                f"{source} has no column '{given}'; it has {len(names)} others: look at its header"
            )
    else:
        matches = sorted(
            (name for name in names if name.lower() in usual),
            key=lambda name: usual.index(name.lower()),
        )
        if not matches:
            raise DataError(
                f"{source} has no column for {what}; expected one named {' or '.join(usual[:3])}",
                hint=f"name it with {arg(option)}; from a folder, move away what is no table",
            )
    if len(matches) > 1 and (given is not None or what not in ("user", "time")):
        raise DataError(
            f"{source} has several columns for {what}; expected one",
            hint=f"say which with {arg(option)}",
        )
    return matches[0]


def users(names: list[str], given: str | None) -> list[str]:
    """Columns that name users: the one that is said, and those with a usual name.

    A column `id` is not among them: it may as well number the rows.
    """
    return [name for name in names if name == given or name.lower() in _USERS]


def find_optional(
    names: list[str], *, user: str | None, time: str | None, source: str
) -> tuple[str | None, str | None]:
    """The columns of user and time: those given, or the first with a usual name, if there is
    one."""
    columns = []
    for given, usual, what in ((user, _USERS, "user"), (time, USUAL["time"], "time")):
        there = any(name.lower() in usual for name in names)
        columns.append(
            _one(names, given, usual, source=source, what=what, option=what)
            if given is not None or there
            else None
        )
    return columns[0], columns[1]


def has_place(names: list[str]) -> bool:
    """Whether columns of latitude and longitude have usual names."""
    return all(any(name.lower() in USUAL[axis] for name in names) for axis in ("lat", "lon"))
