"""Columns that tell the place in another form: copies, codes, texts, packed bytes, ids of places.

Each column is looked at in some rows of each block, in several blocks at once.  A value is decoded
in every way that fits its shape, and what comes out is set beside the truth of its row; numbers are
also tried as a linear function of the coordinates, rounded or not, and of those of the rows before
and after, and values that repeat as names of places.  The last digits of numbers are tried
likewise: what a time has within its second, minute or hour.  Numbers also tell the place where
rows with neighbouring numbers lie close together, as cells along a curve do, and where several
columns together make a coordinate.
"""

import base64
import binascii
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np

from sfumato.deploy import codes

_SAME_PLACE_DEGREES = 1e-4  # about 11 m
_SAME_PLACE_M = 10.0  # in plane metres; a cell of the run where that is less
_COPIES = 0.3  # share of values that equal a coordinate before a column is called a copy
_CODES = 0.02  # share of values that decode to the place: no chance does that
_AGREE = 0.95  # share of repeated values that go with one place
_FEW = 20  # repeated rows below which nothing is said of values that go with a place
_LINEAR_ROWS = 10  # rows and distinct values below which nothing is said of a line
_LINEAR_REST = 1e-3  # of the spread, left over by a line through the coordinates
_NEARLY = 0.1  # likewise, of numbers that are not in order: no chance comes as near
_CLOSE = 0.2  # of how far rows lie apart, between rows with neighbouring values
_TURNS = 60.0, 100.0  # parts of a degree that coordinates are cut into: minutes, hundredths
_TOGETHER = 24  # columns of numbers that are tried together
_RIDGE = 1e-12  # of the rows, so that axes on one line leave a fit with one answer
_ROUNDED_REST = 0.3  # of the step between values, where they are rounded: even rounding leaves 0.29
_ROUNDED_ROWS = 40  # rows below which nothing is said of rounded values and of neighbouring rows
_ROUNDED_VALUES = 6  # distinct values, likewise
_PERIODS = sorted(  # a second, a minute and an hour, in units from seconds to nanoseconds
    period * unit for unit in (1, 10**3, 10**6, 10**9) for period in (1, 60, 3600)
)
_REMAINDERS = 1_000  # rows whose last digits are looked at
_MOST_WHOLE = 2**63 - 1
_LEAST_HALVES, _MOST_HALVES = 6, 14  # digits of a reference to a grid
_LONGEST = 2_000  # letters or bytes of a value that are looked at
_AT_ONCE = 1 << 19  # bytes of values that are looked at together
_LONG = 32  # bytes of a value beyond which it is hardly a packed number or two
_LARGEST = 1e18  # beyond it a number in a text is no coordinate, in whatever unit
_FEW_DIGITS = 16  # of a whole number: below, a double has it exactly
_MOST_NUMBERS = 16  # numbers of a text that are looked at
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COMMA = re.compile(r"[0-9]+,[0-9]+")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?\s*")
_HALVES = re.compile(rf".*?((?:[0-9]{{2}}){{{_LEAST_HALVES // 2},{_MOST_HALVES // 2}}})")
_HEX = re.compile(r"(?:0x|\\x)?((?:[0-9a-fA-F]{2}){4,})")
_BINARY = {  # kinds of binary numbers, with their units in metres and in degrees
    f"{order}{kind}": units
    for order in "<>"
    for kind, units in {
        "f8": ((1.0,), (1.0,)),
        "f4": ((1.0,), (1.0,)),
        "i4": ((1e3, 1.0, 1e2), (1e7, 1e6, 1e5)),
        "i8": ((1e3, 1.0, 1e2), (1e7, 1e6, 1e9)),
    }.items()
}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")
_BASE32 = re.compile(r"(?:[A-Z2-7]{7,}|[a-z2-7]{7,})={0,6}")
_DEEPEST = 3  # bytes within bytes that are unpacked
_PIECE = re.compile(r"[0-9A-Za-z+]{5,20}")  # of a longer text, that may be a code
_LONG_PIECE = re.compile(r"[0-9A-Za-z_/+-]{8,}={0,2}")  # or packed bytes
_MOST_PIECES = 8  # of a text
# of which no part is tried: what times tell is tried as numbers
_TIME = re.compile(r"\s*\d{4}-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d(?::[0-5]\d)?(?:Z|\+00:00)?\s*")
_MARKS = re.compile(r"[^0-9A-Za-z+]")
_WITH_MARKS = re.compile(r"(?=.{11})[0-9a-fA-F]{1,8}(?:[:-][0-9a-fA-F]{0,12}){2,}")  # as of devices
_SHORT_DIGITS = 11  # below which a text of digits alone is a number and no packed bytes
_LIKE_NUMBERS = re.compile(r"\s*[+-]?0+(?:[.,]0+)?(?:a[+-]?0+)?\s*")  # as `codes.Looks` has them
_LIKE_BYTES = re.compile(r"\s*(?!0{,10}\s*$)(?:\\z)?[0az+/_:-]{6,}={0,6}\s*")
_BASES = {  # what texts of numbers in other bases look like, and are
    16: (
        re.compile(r"\s*[+-]?(?:0z)?[0a]{1,15}\s*"),
        re.compile(r"\s*[+-]?(?:0[xX])?[0-9a-fA-F]{1,15}\s*"),
    ),
    36: (re.compile(r"\s*[+-]?[0az]{1,12}\s*"), re.compile(r"\s*[+-]?[0-9a-zA-Z]{1,12}\s*")),
}
_LIKE_HALVES = re.compile(rf".*0{{{_LEAST_HALVES}}}\s*", re.DOTALL)
_NONE = {"-", "?", "n/a", "na", "nan", "none", "null", "nil", "inf", "+inf", "-inf", "\\n", "#n/a"}
_AN_H3_CELL = "the id of an H3 cell"
_IN_TEXT = "a coordinate in its text"
_IN_HALVES = "a linear function of the coordinates in half of its digits"


@dataclass(frozen=True)
class Looked:
    """Some rows of a block that are looked at: their values by column, their true coordinates, and
    those of the rows before and after, and their times, if known."""

    columns: dict[str, list[Any]]
    first: np.ndarray
    second: np.ndarray
    around: tuple[np.ndarray, ...] = ()
    times: Sequence[Any] = ()

    @cached_property
    def known(self) -> list[int]:
        """The rows that have a place."""
        return np.flatnonzero(np.isfinite(self.first) & np.isfinite(self.second)).tolist()

    def values(self, name: str) -> list[Any]:
        """Those of a column in these rows."""
        values = self.columns[name]
        return values if len(self.known) == len(values) else [values[row] for row in self.known]

    def truths(self, same: float, degrees: bool) -> "_Truths":
        """Their coordinates; those of a row before or after that has none are the row's own."""
        near = tuple(
            np.where(np.isfinite(axis), axis, own)[self.known]
            for axis, own in zip(self.around, (self.first, self.second) * 2, strict=False)
        )
        order = np.arange(len(self.first))
        with suppress(TypeError):  # times of several kinds have no order
            by_time = sorted(range(len(self.times)), key=self.times.__getitem__)
            order[by_time] = np.arange(len(by_time))
        return _Truths(
            self.first[self.known],
            self.second[self.known],
            same,
            degrees,
            near,
            times=order[self.known],
        )


@dataclass(frozen=True)
class _Truths:
    """The true coordinates of the rows that are looked at, of one block or of several that have the
    same number of them."""

    first: np.ndarray
    second: np.ndarray
    same: float
    degrees: bool
    around: tuple[np.ndarray, ...] = ()  # coordinates of the rows before and after, if known
    blocks: int = 1
    times: np.ndarray | None = None  # numbers of the rows in time, where that is another order

    @classmethod
    def joined(cls, several: "list[_Truths]") -> "_Truths":
        """Those of several blocks, one behind the other."""
        block = several[0]
        around = (part.around for part in several)
        return cls(
            np.concatenate([part.first for part in several]),
            np.concatenate([part.second for part in several]),
            block.same,
            block.degrees,
            tuple(np.concatenate(axes) for axes in zip(*around, strict=True)),
            len(several),
            np.concatenate([part.order for part in several]),
        )

    def by_block(self, values: np.ndarray) -> np.ndarray:
        """An array whose last axis has the rows of all blocks, with an axis of blocks before it."""
        return values.reshape(*values.shape[:-1], self.blocks, -1)

    def most(self, rows: np.ndarray) -> int:
        """The largest number of these rows that one block has."""
        if self.blocks == 1 or not len(rows):
            return len(rows)
        return int(np.bincount(rows // (len(self.first) // self.blocks)).max())

    def copies(self, rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which values equal the first and which the second coordinate of their row, but for the
        sign."""
        size = np.abs(values)
        first, second = self._size
        return (
            np.abs(size - first[rows]) <= self.same,
            np.abs(size - second[rows]) <= self.same,
        )

    def copied(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Which values equal either, where that does not look like any small or round number."""
        return self.odd(rows, *self.copies(rows, values))

    def odd(self, rows: np.ndarray, firsts: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Which of these copies of a first or of a second coordinate are of one that does not look
        like any small or round number."""
        if not (firsts.any() or seconds.any()):
            return firsts
        first, second = self._odd
        return (firsts & first[rows]) | (seconds & second[rows])

    @property
    def order(self) -> np.ndarray:
        """The numbers of the rows in time."""
        return np.arange(len(self.first)) if self.times is None else self.times

    @property
    def own(self) -> tuple[np.ndarray, np.ndarray]:
        """Both coordinates of each row."""
        return self.first, self.second

    @cached_property
    def number(self) -> np.ndarray:
        """A number for each row that rows of the same place share."""
        pairs = np.stack([np.round(axis / self.same) for axis in self.own], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].ravel()

    @cached_property
    def _size(self) -> tuple[np.ndarray, np.ndarray]:
        return np.abs(self.first), np.abs(self.second)

    @cached_property
    def _odd(self) -> tuple[np.ndarray, np.ndarray]:
        """Which first and which second coordinates look like no small or round number."""

        def odd(places: np.ndarray) -> np.ndarray:
            if not self.degrees:
                return np.abs(places) > 10 * self.same
            return (np.abs(places) > 1.0) & (np.abs(places * 100 - np.round(places * 100)) > 1e-6)

        return odd(self.first), odd(self.second)


def telling(looked: list[Looked], *, degrees: bool, cell_m: float) -> dict[str, str]:
    """Columns whose values tell the place in some of the blocks that are looked at, each with how.

    `degrees` says in which unit the coordinates are, `cell_m` how fine the run is.
    """
    same = _SAME_PLACE_DEGREES if degrees else min(_SAME_PLACE_M, cell_m)
    alike: defaultdict[int, list[Looked]] = defaultdict(list)
    for block in looked:
        alike[len(block.known)].append(block)
    columns: dict[str, str] = {}
    for count, blocks in alike.items():
        if not count:
            continue
        truths = [block.truths(same, degrees) for block in blocks]
        joined = _Truths.joined(truths) if len(blocks) > 1 and count <= _REMAINDERS else None
        for name in (name for name in blocks[0].columns if name not in columns):
            parts = [block.values(name) for block in blocks]
            values = [value for part in parts for value in part]
            hows: Iterator[str | None] = map(_how, parts, truths)
            if joined is not None and _are_whole(values):
                rows = np.arange(len(values))
                hows = chain(
                    [_of_whole(rows, np.array(values, dtype=np.int64), joined)],
                    map(_goes_with_place, [rows[:count]] * len(parts), parts, truths),
                )
            how = next(filter(None, hows), None)
            if how is not None:
                columns[name] = how
        for block, own in zip(blocks, truths, strict=True):
            left = {name: block.values(name) for name in block.columns if name not in columns}
            columns |= dict.fromkeys(_together(left, own), "a coordinate, together with others")
    return columns


def _together(columns: dict[str, list[Any]], truths: _Truths) -> list[str]:
    """Columns of numbers of which a coordinate is a sum, each multiplied by a number; without those
    that it does not need."""
    some = [name for name, values in columns.items() if _as_number(values[0]) is not None]
    if len(some) < 2:
        return []
    numbers = {  # NaN for None
        name: np.array([*map(_as_number, columns[name])], dtype=float) for name in some
    }
    numbers = {
        name: values / size
        for name, values in numbers.items()
        if np.isfinite(values).all() and 0 < (size := float(np.ptp(values))) < np.inf
    }
    if not 2 <= len(numbers) <= min(_TOGETHER, len(truths.first) // 10):
        return []

    def left_over(names: list[str], truth: np.ndarray) -> bool:
        design = np.stack([np.ones(len(truth)), *(numbers[name] for name in names)], axis=1)
        rest = truth - design @ np.linalg.lstsq(design, truth, rcond=None)[0]
        return bool(rest.std() > _LINEAR_REST * truth.std())

    for truth in truths.own:
        truth, needed = truth - truth.mean(), [*numbers]
        if not truth.any() or left_over(needed, truth):
            continue
        for name in [*numbers]:
            fewer = [other for other in needed if other != name]
            needed = needed if left_over(fewer, truth) else fewer
        if not any(_in_order(numbers[name]) and len(needed) == 1 for name in needed):
            return needed
    return []


def _are_whole(values: list[Any]) -> bool:
    """Whether all are whole numbers of 63 bits and a sign."""
    return {*map(type, values)} == {int} and -_MOST_WHOLE <= min(values) <= max(
        values
    ) <= _MOST_WHOLE


def _how(values: list[Any], truths: _Truths) -> str | None:
    """How a column reveals the place, None where it does not."""
    leaves: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    if {*map(type, values)} == {int}:
        rows = np.arange(len(values))
        return _of_leaves(rows, values, truths) or _goes_with_place(rows, values, truths)
    if {*map(type, values)} == {str}:
        full = [(row, value) for row, value in enumerate(values) if not _is_none(value)]
        leaves |= (
            {"": [(row, codes.plain_digits(text[:_LONGEST])) for row, text in full]} if full else {}
        )
    else:
        for row, value in enumerate(values):
            for path, leaf in _leaves(value):
                leaves[path].append((row, leaf))
    if len(leaves) > _MOST_NUMBERS:  # lists without end
        leaves = _of_lists(values)
    for pairs in leaves.values():
        rows = np.array([row for row, _ in pairs])
        how = _of_leaves(rows, [leaf for _, leaf in pairs], truths)
        if how is not None:
            return how
    there = [row for row, value in enumerate(values) if value is not None and value != ""]
    whole = [
        value if isinstance(value, (str, int, float, bytes)) else repr(value)
        for value in map(values.__getitem__, there)
    ]
    return _goes_with_place(np.array(there, dtype=int), whole, truths)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}.{place}")
    elif isinstance(value, str):
        if not _is_none(value):
            yield path, codes.plain_digits(value[:_LONGEST])
    elif isinstance(value, float):
        if isfinite(value):
            yield path, value
    elif isinstance(value, (bytes, int, Decimal)) and not isinstance(value, bool):
        yield path, value


def _is_none(text: str) -> bool:
    """Whether a text is empty, or a word for no value."""
    return not text or text.isspace() or (len(text) < 10 and text.strip().lower() in _NONE)


def _of_lists(values: list[Any]) -> dict[str, list[tuple[int, Any]]]:
    """Items of long lists: all as one, by their place from the end, and by their place from the
    start without the commonest one, which fills lists up."""
    items = [[leaf for _, leaf in _leaves(value)] for value in values]
    filler = Counter(chain.from_iterable(items)).most_common(1)[0][0]
    groups: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for row, own in enumerate(items):
        groups[""] += [(row, item) for item in own]
        for place, item in enumerate(own[: -_MOST_NUMBERS - 1 : -1]):
            groups[f"{place} from the end"].append((row, item))
        for place, item in enumerate([item for item in own if item != filler][:_MOST_NUMBERS]):
            groups[f"{place} of the others"].append((row, item))
    return groups


def _of_leaves(rows: np.ndarray, leaves: list[Any], truths: _Truths) -> str | None:
    kinds = {*map(type, leaves)}
    if _are_whole(leaves):
        return _of_whole(rows, np.array(leaves, dtype=np.int64), truths)
    looks = codes.Looks(leaves) if kinds == {str} else None
    numbers = (
        [None]
        if looks is not None and not looks.like(_LIKE_NUMBERS)
        else [_as_number(leaf) for leaf in leaves]
    )
    numeric = np.array([number is not None for number in numbers])
    if numeric.mean() >= 0.8:
        values = np.array([number for number in numbers if number is not None], dtype=object)
        if (how := _of_numbers(rows[numeric], values, truths)) is not None:
            return how
    texts = [
        (row, leaf if isinstance(leaf, str) else str(leaf))
        for row, leaf in zip(rows.tolist(), leaves, strict=True)
        if isinstance(leaf, (str, int)) and not isinstance(leaf, bool)
    ]
    packed = [
        (row, data)
        for row, leaf in (*_to_unpack(rows, leaves, looks), *_pieces(texts, _LONG_PIECE))
        for data in _packed(leaf)
    ]
    inner = [(row, data.decode("latin-1")) for row, data in packed]
    return (
        _of_codes(texts, len(leaves), truths)
        or (_of_codes(inner, len(leaves), truths) if inner else None)
        or _of_bytes(packed, len(leaves), truths)
        or (_in_other_bases(rows, looks, truths) if looks and numeric.mean() < 0.8 else None)
    )


def _in_other_bases(rows: np.ndarray, looks: codes.Looks, truths: _Truths) -> str | None:
    """How texts that are whole numbers in base 16 or 36, and do not count the rows, tell the place
    as numbers do."""
    for base, (like, digits) in _BASES.items():
        some = [at for at in looks.like(like) if digits.fullmatch(looks.texts[at])]
        if len(some) >= 0.8 * len(rows):
            values = np.array([int(looks.texts[at], base) for at in some], dtype=np.int64)
            if not _in_order(values) and (how := _of_numbers(rows[some], values, truths)):
                return f"{how} in base {base}"
    return None


def _to_unpack(
    rows: np.ndarray, leaves: list[Any], looks: codes.Looks | None
) -> Iterator[tuple[int, Any]]:
    """Rows with leaves that may be packed bytes."""
    if looks is None:
        yield from zip(rows.tolist(), leaves, strict=True)
    else:
        yield from ((int(rows[at]), leaves[at]) for at in looks.like(_LIKE_BYTES))


def _of_whole(rows: np.ndarray, values: np.ndarray, truths: _Truths) -> str | None:
    """The same for whole numbers, all at once: what their texts would be."""
    if (how := _of_numbers(rows, values, truths)) is not None:
        return how
    whole, count = codes.Whole(values), len(values) // truths.blocks
    if truths.degrees:
        if (how := _decoded(rows, whole, count, truths)) is not None:
            return how
        if truths.most(rows[codes.are_h3(whole)]) >= max(1, 0.5 * count):
            return _AN_H3_CELL
    some = np.flatnonzero(whole.size < _LARGEST)
    if len(some) and _copies_within(rows[some], whole.size[some].astype(float), count, truths):
        return _IN_TEXT
    long, half = whole.length >= _LEAST_HALVES, 10 ** (np.minimum(whole.length, _MOST_HALVES) // 2)
    halves = np.stack([whole.size // half % half, whole.size % half]).astype(float)
    if long.all():
        parts, blocks = [np.arange(len(rows))], truths.blocks
    else:
        every = truths.by_block(np.arange(len(rows)))
        parts = [block[long[block]] for block in every if long[block].sum() >= 0.8 * count]
        blocks = 1
    for part in parts:
        if _linear(rows[part], halves[:, part], truths.own, [None, None], blocks).any():
            return _IN_HALVES
    return None


def _as_number(leaf: Any) -> float | None:
    """A number, whole ones exactly; None for any other and for those beyond all bounds."""
    if isinstance(leaf, str) and _WHOLE.fullmatch(leaf):
        text = leaf.strip().replace(",", ".")
        leaf = float(text)
        exact = Decimal(text) if 1 <= abs(leaf) < 2**63 else None  # others may be beyond Decimal
        if leaf == 0 or (exact is not None and exact == int(exact)):
            leaf = int(exact or 0)
    if not isinstance(leaf, (int, float, Decimal)):
        return None
    try:
        number = float(leaf)
    except OverflowError:
        return None
    return (leaf if isinstance(leaf, int) else number) if isfinite(number) else None


# Numbers -----------------------------------------------------------------------------------------


def _mercator_latitude(values: np.ndarray) -> np.ndarray:
    return np.degrees(np.arctan(np.sinh(np.clip(values / codes.EARTH_M, -4, 4))))


def _degrees_minutes(values: np.ndarray) -> np.ndarray:
    size = np.abs(values)
    return np.floor(size / 100) + size % 100 / 60


def _degrees_minutes_seconds(values: np.ndarray) -> np.ndarray:
    size = np.abs(values)
    return np.floor(size / 1e4) + np.floor(size / 100) % 100 / 60 + size % 100 / 3600


_FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a copy of a coordinate": lambda values: values,
    "a coordinate in ten-thousandths": lambda values: values / 1e4,
    "a coordinate in hundred-thousandths": lambda values: values / 1e5,
    "a coordinate in millionths": lambda values: values / 1e6,
    "a coordinate in ten-millionths": lambda values: values / 1e7,
    "a coordinate in billionths": lambda values: values / 1e9,
    "a coordinate in radians": np.degrees,
    "a coordinate in Web Mercator": lambda values: np.degrees(values / codes.EARTH_M),
    "a latitude in Web Mercator": _mercator_latitude,
    "a coordinate in degrees and minutes": _degrees_minutes,
    "a coordinate in degrees, minutes and seconds": _degrees_minutes_seconds,
}
_METRE_FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a copy of a coordinate": lambda values: values,
    "a coordinate in millimetres": lambda values: values / 1e3,
    "a coordinate in centimetres": lambda values: values / 1e2,
    "a coordinate in kilometres": lambda values: values * 1e3,
}


def _of_numbers(rows: np.ndarray, values: np.ndarray, truths: _Truths) -> str | None:
    """How numbers tell the place: as they are, or in what they have within a period, as a time
    does below its second."""
    some = slice(None, None, -(-len(rows) // (_REMAINDERS * truths.blocks)))
    plain, chosen = values.astype(float), values[some]
    periods = _PERIODS[: int(np.searchsorted(_PERIODS, np.abs(chosen).max(), "right"))]
    rests = [(chosen % period).astype(float) for period in periods]
    if len(chosen) == len(values):
        how = _first_how(rows, np.stack([plain, *rests]), truths, [None, *periods])
    else:
        how = _first_how(rows, plain[None], truths, [None])
        if how is None and rests:
            how = _first_how(rows[some], np.stack(rests), truths, periods)
    if how is None and _is_function(rows[some], plain[None, some], truths, in_text=False):
        how = "a function of the coordinates"
    return how


def _first_how(
    rows: np.ndarray, several: np.ndarray, truths: _Truths, periods: Sequence[float | None]
) -> str | None:
    """How the first of several columns of numbers that tell the place does so; a period says that
    a column's are remainders."""
    forms, count = _FORMS if truths.degrees else _METRE_FORMS, len(rows) // truths.blocks
    alone = [1 if period is None else 3 for period in periods]  # of many, one agrees by chance
    least = np.maximum(alone, _COPIES * count)
    copies = np.array(
        [
            truths.by_block(truths.copied(rows, form(several))).sum(axis=2).max(axis=1)
            for form in forms.values()
        ]
    )
    blocks = truths.blocks
    linear = np.any(_linear(rows, several, truths.own, periods, blocks, order=truths.order), axis=1)
    near, close = (*truths.own, *truths.around), np.zeros(len(several), dtype=bool)
    if truths.around and count >= _ROUNDED_ROWS:
        pairs = zip(several, periods, strict=True)
        free = ~np.array([_in_order(truths.by_block(column), period) for column, period in pairs])
        asked = np.flatnonzero(free.any(axis=1)).tolist()
        on_line = _linear(rows, several[asked], near, [periods[at] for at in asked], truths.blocks)
        close[asked] = (on_line & free[asked]).any(axis=1)
    for at, values in enumerate(several):
        hows = [how for how, most in zip(forms, copies[:, at], strict=True) if most >= least[at]]
        if not hows and _of_other_rows(values, truths):
            hows.append("coordinates of other rows")
        if linear[at]:
            hows.append("a linear function of the coordinates")
        if close[at]:
            hows.append("differences of coordinates from row to row")
        if hows:
            return hows[0] if periods[at] is None else f"{hows[0]} in its last digits"
    return None


def _is_function(rows: np.ndarray, several: np.ndarray, truths: _Truths, *, in_text: bool) -> bool:
    """Whether a column of numbers has distances from some place, or what coordinates have within a
    minute or a hundredth of a degree, or neighbouring numbers where places are neighbours; parts of
    a time do so on a way, and of texts only what fits exactly counts."""
    none, blocks = [None] * len(several), truths.blocks
    if len(rows) < _ROUNDED_ROWS * blocks:
        return False
    by_time = np.argsort(truths.by_block(truths.order[rows]), axis=-1)
    parts = several.reshape(len(several), blocks, -1)
    free = ~(_in_order(parts) | _in_order(np.take_along_axis(parts, by_time[None], axis=2)))
    told = np.zeros(free.shape, dtype=bool)
    if free.any():
        middle = [axis - axis.mean() for axis in truths.own]
        circles = (*middle, *(axis**2 for axis in middle))
        with np.errstate(over="ignore"):
            squares = np.minimum(several**2, _LARGEST**2)
        order = None if in_text else truths.order
        told = _linear(rows, squares, circles, none, blocks, order=order) & free
        for turn in _TURNS if truths.degrees else ():
            cut = tuple(axis * turn % 1 for axis in truths.own)
            told |= _linear(rows, several, cut, none, blocks) & free
    return bool(told.any()) or (not in_text and _close_together(rows, several[0], truths))


def _close_together(rows: np.ndarray, values: np.ndarray, truths: _Truths) -> bool:
    """Whether rows of a block with neighbouring numbers lie close together.  Rows that follow each
    other, in the table or in time, do not count: those of a way lie so."""
    parts = (truths.first, truths.second, truths.order)
    first, second, when = (truths.by_block(part[rows]) for part in parts)
    second = second * (np.cos(np.radians(first.mean())) if truths.degrees else 1.0)
    for x, y, time, column in zip(first, second, when, truths.by_block(values), strict=True):
        mixed = np.random.default_rng(len(x)).permutation(len(x))
        apart = np.median(np.hypot(x - x[mixed], y - y[mixed]))
        order = np.argsort(column, kind="stable")
        one, other = order[:-1], order[1:]
        some = (column[one] != column[other]) & (np.abs(one - other) > 1)
        some &= np.abs(time[one] - time[other]) > 1
        one, other = one[some], other[some]
        if len(one) >= _ROUNDED_ROWS:
            step = np.median(np.hypot(x[one] - x[other], y[one] - y[other]))
            if step <= _CLOSE * apart and apart > 0:
                return True
    return False


def _of_other_rows(values: np.ndarray, truths: _Truths) -> bool:
    """Whether most values of a block are coordinates of some row (of the one before, say)."""
    unit = 1e-6 if truths.degrees else 1e-3
    every = np.abs(values / unit / 100 - np.round(values / unit / 100)) > 1e-4  # many decimals
    if not every.any():
        return False
    for odd, part in zip(truths.by_block(every), truths.by_block(values), strict=True):
        for truth in (truths.first, truths.second) if odd.mean() >= 0.5 else ():
            there = np.isin(np.round(part[odd] / unit), np.round(truth / unit))
            if there.mean() >= 0.5 and len(np.unique(part[odd][there])) >= 3:
                return True
    return False


def _linear(
    rows: np.ndarray,
    several: np.ndarray,
    along: tuple[np.ndarray, ...],
    periods: Sequence[float | None],
    blocks: int = 1,
    *,
    order: np.ndarray | None = None,
) -> np.ndarray:
    """Which columns of numbers, a row of `several` each, are nearly a + b first + c second, for
    most rows of a block; also if they are rounded, as the numbers of the cells of a grid are, or
    (with the `order` of all rows in time) off by a tenth and not in order.  A column that is as
    near a line through the numbers of the rows counts them.  Shape (columns, blocks); of several
    blocks all numbers are finite."""
    known = np.isfinite(several).all(axis=0)
    if not known.all():
        rows, several = rows[known], several[:, known]
    count, on_line = len(rows) // blocks, np.zeros((len(several), blocks), dtype=bool)
    varied = np.flatnonzero((several != several[:, :1]).any(axis=1))
    if count < _LINEAR_ROWS or not len(varied):
        return on_line
    # From here on blocks first, then columns, then rows.
    values = several[varied].reshape(len(varied), blocks, count).transpose(1, 0, 2)
    axes = np.stack([axis[rows] for axis in along], axis=1).reshape(blocks, count, len(along))
    spread = axes.std(axis=1, keepdims=True)
    axes = (axes - axes.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    design = np.concatenate([np.ones((blocks, count, 1)), axes], axis=2)
    size = design.shape[2]
    products = (design[..., None] * design[..., None, :]).reshape(blocks, count, size * size)
    # Around the middle value: one huge value moves a mean beyond all.
    apart = values - np.partition(values, count // 2, axis=2)[:, :, count // 2, None]
    chosen, most = np.ones(apart.shape), max(_LINEAR_ROWS, count * 3 // 4)
    for _ in range(4):  # the part that fits best decides, so that some other values do not hide it
        square = (chosen @ products).reshape(*apart.shape[:2], size, size)
        square += np.eye(size) * (_RIDGE * count)
        line = np.linalg.solve(square, ((chosen * apart) @ design)[..., None])[..., 0]
        fitted = line @ design.transpose(0, 2, 1)
        rest = np.abs(apart - fitted)
        chosen = (rest <= np.partition(rest, most - 1, axis=2)[:, :, most - 1, None]).astype(float)
    fits = np.argpartition(rest, most - 1, axis=2)[:, :, :most]
    fitted, rest, some = (np.take_along_axis(part, fits, axis=2) for part in (fitted, rest, apart))
    spread, off = fitted.std(axis=2), np.sqrt(np.mean(rest**2, axis=2))
    step = np.ptp(some, axis=2) / (_ROUNDED_VALUES - 1)  # the smallest is at most this
    near = (off <= _ROUNDED_REST * step) | (
        off <= (_LINEAR_REST if order is None else _NEARLY) * spread
    )
    for block, at in np.argwhere((spread > 0) & near).tolist():
        column = values[block, at]
        distinct = np.unique(column[fits[block, at]])
        if len(distinct) < _ROUNDED_VALUES:
            continue
        rest_here, spread_here = float(off[block, at]), float(spread[block, at])
        in_order = bool(_in_order(column, periods[varied[at]]))
        if order is not None and not in_order:
            column = column[np.argsort(order[rows].reshape(blocks, -1)[block])]
            in_order = bool(_in_order(column))
        loose = rest_here <= _ROUNDED_REST * float(np.diff(distinct).min())
        if order is not None and periods[varied[at]] is None:
            loose |= rest_here <= _NEARLY * spread_here and len(distinct) >= _LINEAR_ROWS
        exact = rest_here <= _LINEAR_REST * spread_here and len(distinct) >= _LINEAR_ROWS
        counts = in_order and exact and _counts_rows(column, rest_here + _LINEAR_REST * spread_here)
        on_line[varied[at], block] = (loose and count >= _ROUNDED_ROWS and not in_order) or (
            exact and not counts
        )
    return on_line


def _counts_rows(values: np.ndarray, room: float) -> bool:
    """Whether values are a line through the numbers of their rows, but for some room."""
    number = np.arange(len(values)) - (len(values) - 1) / 2
    apart = values - values.mean()
    rest = apart - number * (number @ apart) / (number @ number)
    return bool(np.sqrt(np.mean(rest**2)) <= room)


def _in_order(values: np.ndarray, period: float | None = None) -> np.ndarray:
    """Whether values along the last axis only rise or only fall, as times do: on a straight way
    they look like places.  Remainders may begin anew."""
    steps = np.diff(values)
    if period is not None:
        steps = (steps + period / 2) % period - period / 2
    return np.asarray(np.all(steps >= 0, axis=-1) | np.all(steps <= 0, axis=-1))


# Texts and codes ---------------------------------------------------------------------------------


def _of_codes(texts: list[tuple[int, str]], count: int, truths: _Truths) -> str | None:
    enough = max(1, _CODES * count)
    if truths.degrees:
        first, second = truths.first.tolist(), truths.second.tolist()
        bare = [text.strip() for _, text in texts]
        rows = np.array([row for row, _ in texts], dtype=int)
        pieces = _pieces(texts, _PIECE)
        bare += [piece for _, piece in pieces]
        rows = np.append(rows, np.array([row for row, _ in pieces], dtype=int))
        if (how := _decoded(rows, codes.Looks(bare), count, truths)) is not None:
            return how
        if sum(codes.is_h3(text) for text in bare if len(text) in (15, 18)) >= max(1, 0.5 * count):
            return _AN_H3_CELL
        plus = [(row, text) for row, text in zip(rows.tolist(), bare, strict=True) if "+" in text]
        if sum(codes.is_plus_code(text, first[row], second[row]) for row, text in plus) >= enough:
            return "the place as a plus code"
    return _numbers_within(texts, count, truths)


def _pieces(texts: list[tuple[int, str]], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Parts of longer texts, such as addresses of pages, that may be codes; of some rows."""
    return [
        (row, piece)
        for row, text in texts[:: 1 + len(texts) // _REMAINDERS]
        if not (pattern.fullmatch(text) or _TIME.fullmatch(text))
        for piece in _parts(text.replace("%2B", "+"), pattern)
        if len(piece) < len(text) and not piece.isalpha()
    ]


def _parts(text: str, pattern: re.Pattern[str]) -> list[str]:
    """What fits a pattern within a text; a short one also without its marks."""
    parts = pattern.findall(text)[:_MOST_PIECES]
    return [*parts, _MARKS.sub("", text)] if len(text) <= _LONG else parts


def _decoded(
    rows: np.ndarray, texts: codes.Looks | codes.Whole, count: int, truths: _Truths
) -> str | None:
    """How some texts name a box that their row's place lies in."""
    for how, decode in codes.DECODERS.items():
        some, box = decode(texts) if isinstance(texts, codes.Whole) else texts.decoded(decode)
        at = rows[some]
        if not len(at):
            continue
        if truths.most(at[box.holds(truths.first[at], truths.second[at])]) >= max(
            1, _CODES * count
        ):
            return how
    return None


def _copies_within(rows: np.ndarray, values: np.ndarray, count: int, truths: _Truths) -> bool:
    """Whether numbers of texts are coordinates: one in many rows, or both in some."""
    for form in (_FORMS if truths.degrees else _METRE_FORMS).values():
        first, second = truths.copies(rows, form(values))
        odd = truths.odd(rows, first, second)
        if not odd.any():
            continue
        either = truths.most(np.unique(rows[odd]))
        both = truths.most(np.intersect1d(np.intersect1d(rows[first], rows[second]), rows[odd]))
        if either >= max(1, _COPIES * count) or both >= max(1, _CODES * count):
            return True
    return False


def _numbers_within(texts: list[tuple[int, str]], count: int, truths: _Truths) -> str | None:
    """Coordinates among the numbers of texts: one in many rows, or both in some."""
    looks = codes.Looks([text for _, text in texts])
    listed = _numbers_alike(looks)
    if listed is None:
        listed = [_numbers(text) for _, text in texts]
    per_row = [(row, numbers) for (row, _), numbers in zip(texts, listed, strict=True)]
    lengths = [len(numbers) for _, numbers in per_row]
    values = np.array([number for _, numbers in per_row for number in numbers])
    if not len(values):
        return None
    text_of = np.repeat(np.arange(len(texts)), lengths)
    rows = np.array([row for row, _ in texts])[text_of]
    if _copies_within(rows, values, count, truths):
        return _IN_TEXT
    if truths.degrees and _sexagesimal(text_of, rows, values, count, truths):
        return "a coordinate in degrees, minutes and seconds"
    usual = Counter(lengths).most_common(1)[0][0]
    if 1 <= usual <= _MOST_NUMBERS:
        alike = [(row, numbers) for row, numbers in per_row if len(numbers) == usual]
        counter = usual == 1 and _in_order(np.array([number for _, [number] in alike]))
        if not counter and _any_linear(alike, truths):
            return "a linear function of the coordinates in its text"
    ending = [texts[at] for at in looks.like(_LIKE_HALVES)]
    halves = [(row, numbers) for row, text in ending if (numbers := _halves(text))]
    if len(halves) >= 0.8 * count and _any_linear(halves, truths):
        return _IN_HALVES
    return None


def _any_linear(alike: list[tuple[int, list[float]]], truths: _Truths) -> bool:
    """Whether the first numbers of all rows, or the second, and so on, are on a line."""
    rows = np.array([row for row, _ in alike])
    several = np.array([numbers for _, numbers in alike]).T
    linear = _linear(rows, several, truths.own, [None] * len(several))
    return bool(linear.any()) or _is_function(rows, several, truths, in_text=True)


def _halves(text: str) -> list[float]:
    """The two halves of the digits that a text ends with, as references to a grid of metres have
    them."""
    match = _HALVES.fullmatch(text) or _HALVES.fullmatch(text.strip())
    if not match:
        return []
    digits = match[1]
    middle = len(digits) // 2
    return [float(digits[:middle]), float(digits[middle:])]


def _numbers(text: str) -> list[float]:
    """The numbers of a text, and hundred times what they have below one."""
    if text.isascii() and text.isdigit():
        return [number] if (number := float(text)) < _LARGEST else []
    numbers = [*map(float, _NUMBER.findall(text)[:_MOST_NUMBERS])]
    if "," in text and "." not in text:
        numbers += [float(part.replace(",", ".")) for part in _COMMA.findall(text)[:_MOST_NUMBERS]]
    numbers = [number for number in numbers if number < _LARGEST]
    return numbers + [number % 1 * 100 for number in numbers if number % 1]


def _numbers_alike(looks: codes.Looks) -> list[list[float]] | None:
    """The same of all texts at once, where all look alike and have whole numbers of few digits;
    None for others."""
    if len(looks.kinds) != 1:
        return None
    (kind,) = looks.kinds
    spans = [match.span() for match in _NUMBER.finditer(kind)][:_MOST_NUMBERS]
    if not spans:
        return [[] for _ in looks.texts]
    few = all(end - start < _FEW_DIGITS for start, end in spans)
    if not few or not kind.isascii() or "." in kind or "," in kind:
        return None
    letters = np.frombuffer("".join(looks.texts).encode(), dtype=np.uint8)
    digits = (letters.reshape(-1, len(kind)) - ord("0")).astype(float)
    columns = [digits[:, start:end] @ 10.0 ** np.arange(end - start)[::-1] for start, end in spans]
    lists: list[list[float]] = np.stack(columns, axis=1).tolist()
    return lists


def _sexagesimal(
    text_of: np.ndarray, rows: np.ndarray, values: np.ndarray, count: int, truths: _Truths
) -> bool:
    """Whether neighbouring numbers of a text are degrees and minutes, or also seconds, in many
    rows."""
    if len(values) < 2:
        return False
    whole, minutes, seconds = values[:-1], values[1:], np.append(values[2:], 0.0)
    third = np.append(text_of[:-2] == text_of[2:], False)
    some = (text_of[:-1] == text_of[1:]) & (whole == np.floor(whole)) & (minutes < 60)
    at = rows[:-1][some]
    place = (whole + minutes / 60)[some]
    finer = place + (np.where(third, seconds, 0.0) / 3600)[some]
    hits = len(np.unique(at[truths.copied(at, place) | truths.copied(at, finer)]))
    return hits >= max(1, _COPIES * count)


# Bytes -------------------------------------------------------------------------------------------


def _packed(leaf: Any, depth: int = 0) -> Iterator[bytes]:
    """Bytes, also as hexadecimal digits, in base 64 or in base 32; and what these hold in turn."""
    if isinstance(leaf, bytes):
        leaf = _inflated(leaf[:_LONGEST])
        yield leaf
        leaf = leaf.decode("latin-1")
    if isinstance(leaf, str) and depth < _DEEPEST:
        for inner in _unpacked(leaf.strip()):
            yield from _packed(inner, depth + 1)


def _inflated(data: bytes) -> bytes:
    """Bytes, without the packing of zlib or gzip."""
    if data[:2] in (b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"):
        with suppress(zlib.error):
            return zlib.decompressobj(47).decompress(data, _LONGEST)  # 47: either
    return data


def _unpacked(text: str) -> Iterator[bytes]:
    if len(text) < _SHORT_DIGITS and text.isdigit():
        return
    if _WITH_MARKS.fullmatch(text):  # numbers of devices, groups of addresses
        long = 4 if ":" in text and len(text.split(":")[0]) != 2 else 1
        text = "".join(part.zfill(long) for part in re.split("[:-]", text))
    if match := _HEX.fullmatch(text):
        yield bytes.fromhex(match[1])
    bare = text.rstrip("=")
    if _BASE64.fullmatch(text):
        plain = bare.replace("-", "+").replace("_", "/")
        with suppress(binascii.Error, ValueError):
            yield base64.b64decode(plain + "=" * (-len(plain) % 4))
    if _BASE32.fullmatch(text):
        with suppress(binascii.Error, ValueError):
            yield base64.b32decode(bare.upper() + "=" * (-len(bare) % 8))


def _of_bytes(packed: list[tuple[int, bytes]], count: int, truths: _Truths) -> str | None:
    """Coordinates as binary numbers, at any place and of any byte order: one in many rows, or both
    in some."""
    alike: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for row, data in packed:
        alike[len(data)].append((row, data))
    either: set[int] = set()
    both: set[int] = set()
    for size, pairs in alike.items():
        step = max(1, _AT_ONCE // max(1, size))
        for start in range(0, len(pairs), step):
            some = pairs[start : start + step]
            rows = np.array([row for row, _ in some])
            joined = np.frombuffer(b"".join(data for _, data in some), np.uint8)
            odd, any_first, any_second = np.zeros((3, len(some)), dtype=bool)
            for values in _binary(joined.reshape(len(some), size), truths.degrees):
                with np.errstate(invalid="ignore", over="ignore"):
                    first, second = truths.copies(rows[:, None], values)
                odd |= truths.odd(rows[:, None], first, second).any(axis=1)
                any_first |= first.any(axis=1)
                any_second |= second.any(axis=1)
            either |= {*rows[odd].tolist()}
            both |= {*rows[any_first & any_second].tolist()}
    if len(both) >= max(1, _CODES * count):
        return "the place in packed bytes"
    return "a coordinate in packed bytes" if len(either) >= max(1, _COPIES * count) else None


def _binary(data: np.ndarray, degrees: bool) -> Iterator[np.ndarray]:
    """The numbers that begin at any byte of values of one size, a row each; whole ones in the units
    of coordinates, of long values in the first alone."""
    length = data.shape[1]
    for kind, units in _BINARY.items():
        size, long = int(kind[-1]), length > _LONG
        if length < size or (long and kind.endswith("i8")):
            continue
        windows = np.lib.stride_tricks.sliding_window_view(data, size, axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.ascontiguousarray(windows).view(kind)[:, :, 0].astype(float)
            several = [values / unit for unit in units[degrees][: 1 if long else None]]
        yield from several


# Names of places -------------------------------------------------------------------------------


def _goes_with_place(rows: np.ndarray, values: list[Any], truths: _Truths) -> str | None:
    """Whether values that repeat go each with one place."""
    if len({*values}) == len(values):
        return None
    known: dict[Any, int] = {}
    which = np.array([known.setdefault(value, len(known)) for value in values], dtype=int)
    times = np.bincount(which)
    repeated = times > 1
    if not truths.number.any():  # all at one place
        return None
    places = int(truths.number.max()) + 1
    pairs, together = np.unique(which * places + truths.number[rows], return_counts=True)
    most = np.zeros(len(times), dtype=int)
    np.maximum.at(most, pairs // places, together)
    others = repeated.copy()
    others[times.argmax()] = False  # the commonest may stand for no value
    for some in (repeated, others):
        count = int(times[some].sum())
        if count >= _FEW and some.sum() > 1 and most[some].sum() / count >= _AGREE:
            return "values that go with one place each"
    return None
