"""Columns that tell the place in another form: copies, codes, texts, packed bytes, ids of places.

Each column is looked at in some rows of each block.  A value is decoded in every way that fits its
shape, and what comes out is set beside the truth of its row; numbers are also tried as a linear
function of the coordinates, rounded or not, and of those of the rows before and after, and values
that repeat as names of places.  The last digits of numbers are tried likewise: what a time has
within its second, minute or hour.
"""

import base64
import binascii
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
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
_LONG = 32  # bytes of a value beyond which it is hardly a packed number or two
_LARGEST = 1e18  # beyond it a number in a text is no coordinate, in whatever unit
_FEW_DIGITS = 16  # of a whole number: below, a double has it exactly
_MOST_NUMBERS = 16  # numbers of a text that are looked at
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COMMA = re.compile(r"[0-9]+,[0-9]+")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?\s*")
_HALVES = re.compile(rf".*?((?:[0-9]{{2}}){{{_LEAST_HALVES // 2},{_MOST_HALVES // 2}}})")
_HEX = re.compile(r"(?:0x|\\x)?((?:[0-9a-fA-F]{2}){8,})")
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
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}={0,2}")
_LIKE_NUMBERS = re.compile(r"\s*[+-]?0+(?:[.,]0+)?(?:a[+-]?0+)?\s*")  # as `codes.Looks` has them
_LIKE_BYTES = re.compile(r"\s*(?:\\z)?[0az+/_-]{11,}={0,2}\s*")
_LIKE_HALVES = re.compile(rf".*0{{{_LEAST_HALVES}}}\s*", re.DOTALL)
_AN_H3_CELL = "the id of an H3 cell"
_IN_TEXT = "a coordinate in its text"
_IN_HALVES = "a linear function of the coordinates in half of its digits"


@dataclass(frozen=True)
class _Truths:
    """The true coordinates of the rows that are looked at."""

    first: np.ndarray
    second: np.ndarray
    same: float
    degrees: bool
    around: tuple[np.ndarray, ...] = ()  # coordinates of the rows before and after, if known

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

    def odd(self, rows: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """Which of these copies of a first or of a second coordinate are of one that does not look
        like any small or round number."""
        if not (one.any() or two.any()):
            return one
        first, second = self._odd
        return (one & first[rows]) | (two & second[rows])

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


def telling(
    columns: dict[str, list[Any]],
    first: np.ndarray,
    second: np.ndarray,
    *,
    degrees: bool,
    cell_m: float,
    around: tuple[np.ndarray, ...] = (),
) -> dict[str, str]:
    """Columns whose values tell the place, each with how.

    `degrees` says in which unit the coordinates are, `cell_m` how fine the run is; `around` are the
    coordinates of the rows before and after.
    """
    known = np.flatnonzero(np.isfinite(first) & np.isfinite(second))
    same = _SAME_PLACE_DEGREES if degrees else min(_SAME_PLACE_M, cell_m)
    near = tuple(
        np.where(np.isfinite(axis), axis, own)[known]
        for axis, own in zip(around, (first, second) * 2, strict=False)
    )
    truths = _Truths(first[known], second[known], same, degrees, near)
    found = {}
    for name, values in columns.items():
        chosen = [values[row] for row in known.tolist()]
        how = _how(chosen, truths) if chosen else None
        if how is not None:
            found[name] = how
    return found


def _how(values: list[Any], truths: _Truths) -> str | None:
    """How a column tells the place, None where it does not."""
    leaves: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    if {*map(type, values)} == {int}:
        rows = np.arange(len(values))
        return _of_leaves(rows, values, truths) or _goes_with_place(rows, values, truths)
    if {*map(type, values)} == {str}:
        full = [(row, value) for row, value in enumerate(values) if value and not value.isspace()]
        leaves |= (
            {"": [(row, _plain_digits(text[:_LONGEST])) for row, text in full]} if full else {}
        )
    else:
        for row, value in enumerate(values):
            for path, leaf in _leaves(value):
                leaves[path].append((row, leaf))
    if len(leaves) > _MOST_NUMBERS:  # lists without end: taken as one
        leaves = {"": [pair for pairs in leaves.values() for pair in pairs]}  # type: ignore[assignment]
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
        if value.strip():
            yield path, _plain_digits(value[:_LONGEST])
    elif isinstance(value, (bytes, int, float, Decimal)) and not isinstance(value, bool):
        yield path, value


def _plain_digits(text: str) -> str:
    """A text with the digits of all scripts, raised and lowered ones too, as 0 to 9."""
    if text.isascii():
        return text
    digits = (str(unicodedata.digit(letter, letter)) for letter in text)
    return "".join(digits).replace("\u066b", ".")


def _of_leaves(rows: np.ndarray, leaves: list[Any], truths: _Truths) -> str | None:
    kinds = {*map(type, leaves)}
    if kinds == {int} and -_MOST_WHOLE <= min(leaves) <= max(leaves) <= _MOST_WHOLE:
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
        (row, data) for row, leaf in _to_unpack(rows, leaves, looks) for data in _packed(leaf)
    ]
    texts += [(row, data.decode("latin-1")) for row, data in packed if isinstance(data, bytes)]
    return _of_codes(texts, len(leaves), truths) or _of_bytes(packed, len(leaves), truths)


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
    whole, count = codes.Whole(values), len(values)
    if truths.degrees:
        if (how := _decoded(rows, whole, count, truths)) is not None:
            return how
        if codes.are_h3(whole).sum() >= max(1, 0.5 * count):
            return _AN_H3_CELL
    some = np.flatnonzero(whole.size < _LARGEST)
    if len(some) and _copies_within(rows[some], whole.size[some].astype(float), count, truths):
        return _IN_TEXT
    some = np.flatnonzero(whole.length >= _LEAST_HALVES)
    half = 10 ** (np.minimum(whole.length[some], _MOST_HALVES) // 2)
    halves = np.stack([whole.size[some] // half % half, whole.size[some] % half]).astype(float)
    if len(some) >= 0.8 * count and _linear(rows[some], halves, truths.own, [None, None]).any():
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
    some = slice(None, None, -(-len(rows) // _REMAINDERS))
    plain, chosen = values.astype(float), values[some]
    periods = _PERIODS[: int(np.searchsorted(_PERIODS, np.abs(chosen).max(), "right"))]
    rests = [(chosen % period).astype(float) for period in periods]
    if len(chosen) == len(values):
        return _first_how(rows, np.stack([plain, *rests]), truths, [None, *periods])
    how = _first_how(rows, plain[None], truths, [None])
    if how is None and rests:
        how = _first_how(rows[some], np.stack(rests), truths, periods)
    return how


def _first_how(
    rows: np.ndarray, several: np.ndarray, truths: _Truths, periods: Sequence[float | None]
) -> str | None:
    """How the first of several columns of numbers that tell the place does so; a period says that
    a column's are remainders."""
    forms = _FORMS if truths.degrees else _METRE_FORMS
    alone = [1 if period is None else 3 for period in periods]  # of many, one agrees by chance
    least = np.maximum(alone, _COPIES * len(rows))
    copies = np.array([truths.copied(rows, form(several)).sum(axis=1) for form in forms.values()])
    linear = _linear(rows, several, truths.own, periods)
    near, close = (*truths.own, *truths.around), np.zeros(len(several), dtype=bool)
    if truths.around and len(rows) >= _ROUNDED_ROWS:
        free = [not _in_order(*column) for column in zip(several, periods, strict=True)]
        asked = np.flatnonzero(free).tolist()
        close[asked] = _linear(rows, several[asked], near, [periods[at] for at in asked])
    for at, values in enumerate(several):
        found = [how for how, count in zip(forms, copies[:, at], strict=True) if count >= least[at]]
        if not found and _of_other_rows(values, truths):
            found.append("coordinates of other rows")
        if linear[at]:
            found.append("a linear function of the coordinates")
        if close[at]:
            found.append("differences of coordinates from row to row")
        if found:
            return found[0] if periods[at] is None else f"{found[0]} in its last digits"
    return None


def _of_other_rows(values: np.ndarray, truths: _Truths) -> bool:
    """Whether most values are coordinates of some row (of the one before, say)."""
    unit = 1e-6 if truths.degrees else 1e-3
    odd = np.abs(values / unit / 100 - np.round(values / unit / 100)) > 1e-4  # many decimals
    if not odd.any() or odd.mean() < 0.5:
        return False
    for truth in (truths.first, truths.second):
        there = np.isin(np.round(values[odd] / unit), np.round(truth / unit))
        if there.mean() >= 0.5 and len(np.unique(values[odd][there])) >= 3:
            return True
    return False


def _linear(
    rows: np.ndarray,
    several: np.ndarray,
    along: tuple[np.ndarray, ...],
    periods: Sequence[float | None],
) -> np.ndarray:
    """Which columns of numbers, a row of `several` each, are nearly a + b first + c second, for
    most rows; also if they are rounded, as the numbers of the cells of a grid are."""
    known = np.isfinite(several).all(axis=0)
    rows, several = rows[known], several[:, known]
    count, found = len(rows), np.zeros(len(several), dtype=bool)
    if count < _LINEAR_ROWS:
        return found
    varied = np.flatnonzero((several != several[:, :1]).any(axis=1))
    if len(varied) < len(several):
        if len(varied):
            some_periods = [periods[at] for at in varied.tolist()]
            found[varied] = _linear(rows, several[varied], along, some_periods)
        return found
    axes = [axis[rows] for axis in along]
    axes = [(axis - axis.mean()) / (axis.std() or 1.0) for axis in axes]
    design = np.stack([np.ones(count), *axes], axis=1)
    middle = np.median(several, axis=1, keepdims=True)  # one huge value moves a mean beyond all
    apart = several - middle
    fitted, some = np.broadcast_to(design, (len(several), *design.shape)), apart
    most = max(_LINEAR_ROWS, count * 3 // 4)
    for _ in range(4):  # the half that fits best decides, so that some other values do not hide it
        across = fitted.transpose(0, 2, 1)
        square = across @ fitted + np.eye(design.shape[1]) * (_RIDGE * count)
        line = np.linalg.solve(square, across @ some[:, :, None])
        rest = np.abs(apart - (design @ line)[:, :, 0])
        order = np.argpartition(rest, most - 1, axis=1)[:, :most]
        fitted, some = design[order], np.take_along_axis(apart, order, axis=1)
    spread = (fitted @ line)[:, :, 0].std(axis=1)
    off = np.sqrt(np.mean(np.take_along_axis(rest, order, axis=1) ** 2, axis=1))
    step = np.ptp(some, axis=1) / (_ROUNDED_VALUES - 1)  # the smallest is at most this
    near = (off <= _ROUNDED_REST * step) | (off <= _LINEAR_REST * spread)
    for at in np.flatnonzero((spread > 0) & near).tolist():
        distinct = np.unique(several[at][order[at]])
        if len(distinct) < _ROUNDED_VALUES:
            continue
        rounded = off[at] <= _ROUNDED_REST * float(np.diff(distinct).min())
        in_order = rounded and _in_order(several[at], periods[at])
        found[at] = (rounded and count >= _ROUNDED_ROWS and not in_order) or (
            len(distinct) >= _LINEAR_ROWS and off[at] <= _LINEAR_REST * spread[at]
        )
    return found


def _in_order(values: np.ndarray, period: float | None = None) -> bool:
    """Whether values only rise or only fall, as times do: on a straight way they look like
    places.  Remainders may begin anew."""
    steps = np.diff(values)
    if period is not None:
        steps = (steps + period / 2) % period - period / 2
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


# Texts and codes ---------------------------------------------------------------------------------


def _of_codes(texts: list[tuple[int, str]], count: int, truths: _Truths) -> str | None:
    enough = max(1, _CODES * count)
    if truths.degrees:
        first, second = truths.first.tolist(), truths.second.tolist()
        bare = [text.strip() for _, text in texts]
        rows = np.array([row for row, _ in texts], dtype=int)
        if (how := _decoded(rows, codes.Looks(bare), count, truths)) is not None:
            return how
        if sum(codes.is_h3(text) for text in bare if len(text) in (15, 18)) >= max(1, 0.5 * count):
            return _AN_H3_CELL
        plus = [(row, text) for (row, _), text in zip(texts, bare, strict=True) if "+" in text]
        if sum(codes.is_plus_code(text, first[row], second[row]) for row, text in plus) >= enough:
            return "the place as a plus code"
    return _numbers_within(texts, count, truths)


def _decoded(
    rows: np.ndarray, texts: codes.Looks | codes.Whole, count: int, truths: _Truths
) -> str | None:
    """How some texts name a box that their row's place lies in."""
    for how, decode in codes.DECODERS.items():
        some, box = decode(texts) if isinstance(texts, codes.Whole) else texts.decoded(decode)
        at = rows[some]
        if len(at) and box.holds(truths.first[at], truths.second[at]).sum() >= max(
            1, _CODES * count
        ):
            return how
    return None


def _copies_within(rows: np.ndarray, values: np.ndarray, count: int, truths: _Truths) -> bool:
    """Whether numbers of texts are coordinates: one in many rows, or both in some."""
    for form in (_FORMS if truths.degrees else _METRE_FORMS).values():
        one, two = truths.copies(rows, form(values))
        odd = truths.odd(rows, one, two)
        if not odd.any():
            continue
        either = len(np.unique(rows[odd]))
        both = len(np.intersect1d(np.intersect1d(rows[one], rows[two]), rows[odd]))
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
    if 1 < usual <= _MOST_NUMBERS:
        alike = [(row, numbers) for row, numbers in per_row if len(numbers) == usual]
        if _any_linear(alike, truths):
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
    return bool(_linear(rows, several, truths.own, [None] * len(several)).any())


def _halves(text: str) -> list[float]:
    """The two halves of the digits that a text ends with, as references to a grid of metres have
    them."""
    found = _HALVES.fullmatch(text) or _HALVES.fullmatch(text.strip())
    if not found:
        return []
    digits = found[1]
    middle = len(digits) // 2
    return [float(digits[:middle]), float(digits[middle:])]


def _numbers(text: str) -> list[float]:
    """The numbers of a text, and hundred times what they have below one."""
    if text.isascii() and text.isdigit():
        return [number] if (number := float(text)) < _LARGEST else []
    found = [*map(float, _NUMBER.findall(text)[:_MOST_NUMBERS])]
    if "," in text and "." not in text:
        found += [float(part.replace(",", ".")) for part in _COMMA.findall(text)[:_MOST_NUMBERS]]
    found = [number for number in found if number < _LARGEST]
    return found + [number % 1 * 100 for number in found if number % 1]


def _numbers_alike(looks: codes.Looks) -> list[list[float]] | None:
    """The same of all texts at once, where all look alike and have whole numbers of few digits;
    None for others."""
    if len(looks.kinds) != 1:
        return None
    (kind,) = looks.kinds
    spans = [found.span() for found in _NUMBER.finditer(kind)][:_MOST_NUMBERS]
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


def _packed(leaf: Any) -> Iterator[bytes]:
    """Bytes, also as hexadecimal digits or in base 64."""
    if isinstance(leaf, bytes):
        yield leaf[:_LONGEST]
        leaf = leaf[:_LONGEST].decode("latin-1")
    if not isinstance(leaf, str):
        return
    if found := _HEX.fullmatch(leaf.strip()):
        yield bytes.fromhex(found[1])
    if _BASE64.fullmatch(leaf.strip()):
        text = leaf.strip().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield base64.b64decode(text + "=" * (-len(text) % 4))
        except (binascii.Error, ValueError):
            return


def _of_bytes(packed: list[tuple[int, bytes]], count: int, truths: _Truths) -> str | None:
    """Coordinates as binary numbers, at any place and of any byte order: one in many rows, or both
    in some."""
    either = both = 0
    for row, data in packed:
        values = np.concatenate([np.empty(0), *_binary(data, truths.degrees)])
        where = np.full(len(values), row)
        with np.errstate(invalid="ignore", over="ignore"):
            one, two = truths.copies(where, values)
            either += bool(truths.copied(where, values).any())
        both += bool(one.any() and two.any())
    if both >= max(1, _CODES * count):
        return "the place in packed bytes"
    return "a coordinate in packed bytes" if either >= max(1, _COPIES * count) else None


def _binary(data: bytes, degrees: bool) -> Iterator[np.ndarray]:
    """The numbers that begin at any byte; whole ones in the units of coordinates, of long values in
    the first alone."""
    for kind, units in _BINARY.items():
        size, long = int(kind[-1]), len(data) > _LONG
        if long and kind.endswith("i8"):
            continue
        for start in range(min(size, max(0, len(data) - size + 1))):
            number = (len(data) - start) // size
            values = np.frombuffer(data, kind, count=number, offset=start)
            with np.errstate(invalid="ignore", over="ignore"):
                for unit in units[degrees][: 1 if long else None]:
                    yield values.astype(float) / unit


# Names of places -------------------------------------------------------------------------------


def _goes_with_place(rows: np.ndarray, values: list[Any], truths: _Truths) -> str | None:
    """Whether values that repeat go each with one place."""
    if len({*values}) == len(values):
        return None
    known: dict[Any, int] = {}
    which = np.array([known.setdefault(value, len(known)) for value in values], dtype=int)
    times = np.bincount(which)
    repeated = times > 1
    count = int(times[repeated].sum())
    if count < _FEW or repeated.sum() < 2 or not truths.number.any():  # or all at one place
        return None
    places = int(truths.number.max()) + 1
    pairs, together = np.unique(which * places + truths.number[rows], return_counts=True)
    most = np.zeros(len(times), dtype=int)
    np.maximum.at(most, pairs // places, together)
    agreeing = most[repeated].sum()
    return "values that go with one place each" if agreeing / count >= _AGREE else None
