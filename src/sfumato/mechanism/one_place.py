"""One common place for a whole period: all reports of a user's period come from one common place,
or from one in each part of the week, or they are reported as usual.

Reports from places that the time alone decides tell nothing of each other, however many they are:
what is left is which of the common places it is, and which users send from it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.errors import DataError

_AT_ONCE = 2_000_000  # distances
_TABLES = ("places", "cost", "usual", "edges")
_DAY, _HOUR = 86_400, 3600
_FROM, _TO = 7, 18  # hours of the middle of a day
PARTS = (1, 14)  # of a week: the whole, or the middle and the rest of each day
_NARROW = 1e-6  # what a spread is at least: chances of a smaller one overflow
_EARTH_M = 1e8  # beyond which nothing is: twice around
_FAR = 1e6  # what a table of costs may hold at most: shares of periods found, and some spreads


def parts_of(seconds: np.ndarray | None, parts: int, count: int) -> np.ndarray:
    """The part of the week of each of `count` times, by the clock of the data.

    >>> parts_of(np.array([0, 12 * 3600, 86_400, 7 * 86_400]), 14, 4).tolist()
    [0, 1, 2, 0]
    """
    if parts == 1:
        return np.zeros(count, dtype=np.int64)
    assert seconds is not None
    day, hour = np.floor_divide(seconds, _DAY) % 7, np.floor_divide(seconds, _HOUR) % 24
    return np.asarray(2 * day + ((hour >= _FROM) & (hour < _TO)), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class OnePlace:
    """Which place a period is sent from: P(place | user, period), the rest being sent as usual.

    P(z) is proportional to exp(-(cost_cxz + price n d_z) / spread) and the chance of the usual
    reports to exp(-usual_x / spread), where n is the number of check-ins of the period, c its class
    (`edges` are the least numbers of the second class and on) and d_z their mean distance to z in
    metres.  Cost is what sending from z tells about user x, usual what the usual reports tell.

    `places` has shape (places, parts, 2): where z is in each part of the week (`parts_of`).

    Where `price` is 0 the choice hangs on the user alone and is made when the period begins; else
    the period must be over.

    >>> rule = OnePlace(
    ...     places=np.array([[[0.0, 0.0]]]),
    ...     users=("ann", "bob"),
    ...     cost=np.array([[[0.5], [0.5]]]),
    ...     usual=np.ones(2),
    ...     edges=np.empty(0),
    ...     price=1e-5,
    ...     spread=0.1,
    ... )
    >>> rule.chances(np.array([0, 0]), np.array([[500.0], [9000.0]]), np.array([9, 9])).round(2)
    array([[0.99],
           [0.04]])
    """

    places: np.ndarray = field(repr=False)
    users: tuple[str, ...] = field(repr=False)
    cost: np.ndarray = field(repr=False)
    usual: np.ndarray = field(repr=False)
    edges: np.ndarray = field(repr=False)
    price: float
    spread: float

    def __post_init__(self) -> None:
        users, places, classes = len(self.users), len(self.places), len(self.cost)
        parts = self.places.shape[1] if self.places.ndim == 3 else 0
        shapes = ((places, parts, 2), (classes, users, places), (users,), (classes - 1,))
        sound = all(
            getattr(self, name).shape == shape and np.isfinite(getattr(self, name)).all()
            for name, shape in zip(_TABLES, shapes, strict=True)
        )
        if not (sound and users and places and 0 <= self.price < np.inf and self.spread > 0):
            raise ValueError("a rule for one place needs finite tables of users by places")
        if not (
            parts in PARTS
            and _NARROW < self.spread < np.inf
            and max(np.abs(self.cost).max(), np.abs(self.usual).max()) < _FAR
            and np.abs(self.places).max() < _EARTH_M
            and (np.diff(self.edges, prepend=0.0) > 0).all()
            and len(set(self.users)) == users
            and (classes == 1 or self.price > 0)
        ):
            raise ValueError("a rule for one place has impossible costs, classes, users or parts")

    @property
    def parts(self) -> int:
        """How many parts of the week have a place of their own."""
        return int(self.places.shape[1])

    @property
    def before(self) -> bool:
        """Whether the choice is made when a period begins."""
        return self.price == 0

    def chances(
        self,
        user: np.ndarray,
        distances: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> np.ndarray:
        """P(place | period) of periods, shape (periods, places): of these users (numbers), of mean
        distances (periods, places) in metres, and numbers of check-ins; the latter two are not
        needed where the choice is made before."""
        if self.before:
            cost = self.cost[0, user]
        else:
            assert distances is not None and counts is not None
            kind = np.searchsorted(self.edges, counts, side="right")
            cost = self.cost[kind, user] + self.price * counts[:, None] * distances
        logs = (self.usual[user][:, None] - cost) / self.spread
        top = np.maximum(logs.max(axis=1, keepdims=True), 0.0)
        weights = np.exp(logs - top)
        return np.asarray(weights / (weights.sum(axis=1, keepdims=True) + np.exp(-top)))

    def numbers(self, names: np.ndarray) -> np.ndarray:
        """The number of each named user; refuses one whom the rule does not know."""
        known = {name: number for number, name in enumerate(self.users)}
        each, at = np.unique(names, return_inverse=True)
        strange = [name for name in each.tolist() if name not in known]
        if strange:
            raise DataError(
                f"{len(strange)} user(s) are unknown to the run's choice of one place for a"
                f" period, the first is '{strange[0]}'; expected users of the traces that the"
                " choice was made on: leave the others out, or choose again with them"
            )
        return np.array([known[name] for name in each.tolist()], dtype=np.int64)[at.ravel()]

    @property
    def fingerprint(self) -> str:
        """Tells two rules apart."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        tables = {name: getattr(self, name).tolist() for name in _TABLES}
        return {
            **tables,
            "users": list(self.users),
            "price": self.price,
            "spread": self.spread,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "OnePlace":
        """From JSON; what is none raises ValueError, TypeError or KeyError."""
        numbers = {name: document[name] for name in (*_TABLES, "price", "spread")}
        users = document["users"]
        named = isinstance(users, list) and all(isinstance(user, str) for user in users)
        if not (named and all(map(_is_numeric, numbers.values()))):
            raise TypeError("a rule for one place has texts as users and numbers in its tables")
        try:
            tables = {name: np.array(value, dtype=float) for name, value in numbers.items()}
        except OverflowError:
            raise ValueError("a rule for one place has a number that is too large") from None
        price, spread = float(tables.pop("price")), float(tables.pop("spread"))
        return cls(**tables, users=tuple(users), price=price, spread=spread)


def _is_numeric(value: Any) -> bool:
    """Whether a value of JSON is a number, or lists of numbers."""
    if isinstance(value, list):
        return all(map(_is_numeric, value))
    return type(value) in (int, float)


def mean_distances(
    points: np.ndarray, starts: np.ndarray, places: np.ndarray, part: np.ndarray
) -> np.ndarray:
    """Mean distances of runs of points to places, in metres, shape (runs, places); a run begins at
    each of `starts`, `part` is that of the week of each point.

    >>> points, places = np.array([[0.0, 0.0], [0.0, 6.0]]), np.zeros((1, 1, 2))
    >>> mean_distances(points, np.array([0]), places, np.zeros(2, dtype=int))
    array([[3.]])
    """
    distances = np.empty((len(starts), len(places)))
    lengths = np.diff(starts, append=len(points))
    step = max(1, _AT_ONCE // max(1, len(points)))
    for at in range(0, len(places), step):
        off = points[:, None] - places[at : at + step].transpose(1, 0, 2)[part]
        distances[:, at : at + step] = np.add.reduceat(np.hypot(off[..., 0], off[..., 1]), starts)
    return distances / lengths[:, None]


def recombined(
    user: np.ndarray, points: np.ndarray, part: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Each check-in's place drawn anew from its user's check-ins of that half of the day (`part`
    is that of the week of each point): the periods that a user might have had.

    >>> user, points = np.array([0, 0, 1]), np.array([[0.0, 0.0], [0.0, 6.0], [7.0, 7.0]])
    >>> drawn = recombined(user, points, np.array([0, 1, 1]), np.random.default_rng(0))
    >>> drawn.tolist()  # each is the only one of its user and half
    [[0.0, 0.0], [0.0, 6.0], [7.0, 7.0]]
    """
    alike = 2 * user + part % 2
    order = np.argsort(alike, kind="stable")
    _, first, group, times = np.unique(
        alike[order], return_index=True, return_inverse=True, return_counts=True
    )
    drawn = np.empty_like(points)
    at = first[group] + np.floor(random.random(len(points)) * times[group]).astype(np.int64)
    drawn[order] = points[order[at]]
    return drawn


def drawn_places(chances: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """The number of the place of each period, -1 for the usual reports.

    >>> drawn_places(np.array([[0.2, 0.5], [0.2, 0.5]]), np.array([0.1, 0.9])).tolist()
    [0, -1]
    """
    place = (uniforms[:, None] >= np.cumsum(chances, axis=1)).sum(axis=1)
    return np.where(place < chances.shape[1], place, -1)
