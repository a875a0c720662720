"""Which columns hold the place, the user and the time, and which would betray the place."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.data.read import USUAL
from sfumato.errors import DataError

_TIMES = ("time", "timestamp", "datetime", "date", "created_at", "utc")
_AGREE = (
    0.95  # share of repeated values that go with one place before a column is said to give it away
)
_FEW = 20  # repeated rows below which nothing is said
_SAME_PLACE_DEGREES = 1e-4  # about 11 m
_SAME_PLACE_M = 10.0  # in plane metres; a cell of the run where that is less
_COPIES = 0.5  # share of rows whose value equals a coordinate before a column is called a copy


@dataclass(frozen=True)
class Columns:
    """Names of the columns that play a part; `first` and `second` are latitude and longitude, or x
    and y."""

    first: str
    second: str
    user: str | None = None
    time: str | None = None


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
    options = {"lat": "--lat", "lon": "--lon", "x": "--lat", "y": "--lon"}
    found = Columns(
        first=_one(names, lat, USUAL[first], source=source, what=first, option=options[first]),
        second=_one(names, lon, USUAL[second], source=source, what=second, option=options[second]),
        user=(
            _one(names, user, USUAL["secret"], source=source, what="user", option="--secret")
            if asks_user
            else None
        ),
        time=(
            _one(names, time, _TIMES, source=source, what="time", option="--time")
            if asks_time
            else None
        ),
    )
    if found.first == found.second:
        raise DataError(f"{source}: one column cannot be both {first} and {second}; name two")
    return found


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
                hint=f"name it with {option}",
            )
    if len(matches) > 1 and (given is not None or what not in ("user", "time")):
        raise DataError(
            f"{source} has several columns for {what}; expected one",
            hint=f"say which with {option}",
        )
    return matches[0]


def betraying(
    columns: dict[str, list[Any]],
    first: np.ndarray,
    second: np.ndarray,
    *,
    degrees: bool,
    cell_m: float,
) -> list[str]:
    """Columns whose values tell the place: a copy of a coordinate, or values that always go with
    one place.

    Places are the same within about 10 m; `degrees` says in which unit they are, `cell_m` how fine
    the run is. Judged on the rows given (the first of a file).  A column whose values never repeat
    cannot be judged so, unless it holds a coordinate.
    """
    known = np.isfinite(first) & np.isfinite(second)
    rows = np.flatnonzero(known).tolist()
    if len(rows) < _FEW:
        return []
    same = _SAME_PLACE_DEGREES if degrees else min(_SAME_PLACE_M, cell_m)
    small = 1.0 if degrees else 10 * same
    where = [(round(first[row] / same), round(second[row] / same)) for row in rows]
    if len(set(where)) < 2:
        return []
    return [
        name
        for name, values in columns.items()
        if _is_copy(values, rows, first, second, same=same, small=small)
        or _goes_with_place(values, rows, where)
    ]


def _goes_with_place(values: list[Any], rows: list[int], where: list[tuple[int, int]]) -> bool:
    groups: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for row, place in zip(rows, where, strict=True):
        value = values[row]
        groups[value if isinstance(value, (str, int, float, bytes, bool)) else str(value)].append(
            place
        )
    repeated = [places for places in groups.values() if len(places) > 1]
    count = sum(len(places) for places in repeated)
    if count < _FEW or len(repeated) < 2:
        return False
    agreeing = sum(Counter(places).most_common(1)[0][1] for places in repeated)
    return agreeing / count >= _AGREE


def _is_copy(
    values: list[Any],
    rows: list[int],
    first: np.ndarray,
    second: np.ndarray,
    *,
    same: float,
    small: float,
) -> bool:
    near = 0
    for row in rows:
        text = str(values[row])
        hit = False
        for part in (
            text.replace(",", " ").replace("(", " ").replace(")", " ").replace(";", " ").split()
        ):
            try:
                number = float(part)
            except ValueError:
                continue
            # Coordinates near zero look like any small number.
            hit |= any(
                abs(number - place) <= same and abs(place) > small
                for place in (first[row], second[row])
            )
        near += hit
    return near / len(rows) >= _COPIES
