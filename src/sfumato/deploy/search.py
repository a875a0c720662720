"""True coordinates of the input, looked for in all that goes out beside the reports."""

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import isfinite, lgamma, log
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from sfumato.data.arrow import to_arrow, to_numpy, without_empty
from sfumato.deploy.codes import plain_digits
from sfumato.errors import DataError, arg

# A number in a text with enough digits to be a coordinate: with a decimal point or comma, or whole.
_NUMBER = re.compile(r"([0-9]{1,10}[.,][0-9]{4,})(?:[eE]([+-]?[0-9]{1,2})(?![0-9]))?|([0-9]{7,})")
_GROUPED = re.compile(r"(?<![0-9])[0-9]{1,3}(?:[.,' \xa0\u2009\u202f][0-9]{3}){2,}(?![0-9])")
_SEXAGESIMAL = re.compile(  # degrees, minutes and seconds, or degrees and decimal minutes
    r"(?<![0-9.,])([0-9]{1,3})[^0-9.,]{1,5}"
    r"(?:([0-5]?[0-9])[^0-9.,]{1,5}([0-5]?[0-9](?:[.,][0-9]+)?)|([0-5]?[0-9][.,][0-9]+))"
)
# The texts of a column that may hold such a number, for RE2.
_LIKE_NUMBERS = "[0-9][.,][0-9]{4}|[0-9]{7}"
_LIKE_GROUPED = r"[0-9](?:[.,' \x{a0}\x{2009}\x{202f}][0-9]{3}){2}"
_LIKE_SEXAGESIMAL = r"[0-9] ?(?:'|deg|[^\x00-\x7f]{1,3}) ?[0-9]"
_LIKE_OTHER_DIGITS = r"[^\P{N}0-9]{3}"
_DIGITS = 7  # significant digits that must agree: a random number of such a column agrees once in
# some million rows
_BY_CHANCE = 2e-6  # per row, of such numbers
_SURE_DIGITS = 10  # with this number of digits it is no chance
_UNLIKELY = 1e-3  # a number of agreements with truths of other rows that chance seldom reaches
_MOST_OTHERS = 10_000  # different agreements with truths of other rows that are noted
_PAIR_DEGREES = 1.5e-4  # to which both coordinates in one text must agree: chance does not do that
_FINE = 1e7  # to which these must agree: a centimetre
_FEW = 16  # values that are looked for one by one, without sorting the truths
_SCALES = (1.0, 1e6, 1e7, 1e9)  # degrees, and whole numbers of microdegrees and of parts of them


_STEP_BYTES = 1 << 16  # of texts that are looked at together
_OVERLAP_BYTES = 16  # no less than what is looked for is long

Coordinates = Callable[[], Sequence[np.ndarray]]  # both of some rows, read when they are asked for


class Searched:
    """Counts by column of rows that hold a true coordinate.

    A number of a row is set beside that row's own truth, to seven significant digits, as degrees
    and as millionths, ten-millionths and billionths of a degree; exact doubles beside all truths of
    the block.  In texts it may have digits of any script, groups of three digits, or marks of
    minutes and seconds.  Both coordinates in one text are found from four decimals or whole seconds
    on.  A single one that is written with fewer digits looks like any number and is not looked for
    here.
    """

    def __init__(self, *, degrees: bool, packed: bool) -> None:
        """`packed` says that a column of bytes may hold doubles, not only text."""
        self._packed = packed
        self._scales = _SCALES if degrees else (1.0,)
        self._likely: defaultdict[str, int] = defaultdict(int)
        self._sure: defaultdict[str, int] = defaultdict(int)
        self._by_chance: defaultdict[str, float] = defaultdict(float)
        self._named = np.empty(0)  # numbers in the header or footer
        self._true = np.empty(0, dtype=bool)  # which of them are truths
        self._out = np.empty(0, dtype=bool)  # which of them are in rows that go out
        self._sizes: list[tuple[float, float]] | None = None  # that coordinates may have
        self._every: Coordinates = tuple
        self._block: tuple[_Truths, ...] = ()
        self._others: defaultdict[str, set[float]] = defaultdict(set)
        self._expected: defaultdict[str, float] = defaultdict(float)
        self._filled: defaultdict[str, float] = defaultdict(float)

    def names(self, texts: list[str], footer: bytes = b"") -> None:
        """Names of columns and notes on them, which may hold no true coordinate; with the footer of
        a Parquet file, in which doubles may stand at any place."""
        values = [
            sign * value for text in texts for value in _numbers(text, True) for sign in (1, -1)
        ]
        self._watch(np.array([*values, *_doubles(footer)], dtype=float))

    def _watch(self, values: np.ndarray) -> None:
        with np.errstate(invalid="ignore"):
            size = np.abs(values)
            self._named = np.unique(values[(size > 1e-5) & (size < 1e10)])
        self._true = np.zeros(len(self._named), dtype=bool)
        self._out = np.zeros(len(self._named), dtype=bool)

    def within(self, ranges: Iterable[tuple[float, float]]) -> None:
        """Say between which numbers all true coordinates lie: columns of plain numbers that are
        none of these, in whatever unit, are not set beside them."""
        self._sizes = []
        for low, high in ranges:
            least, most = max(low, -high, 0.0), max(high, -low)
            off = max(most * 10.0 ** (1 - _DIGITS), 4 / _FINE)  # more than what agrees is off by
            self._sizes.append((least - off, most + off))
            for by in self._scales[1:]:
                off = 4 * _off(by)
                self._sizes.append((least * by - off, most * by + off))

    def _may_be_truths(self, values: np.ndarray) -> bool:
        if self._sizes is None:
            return True
        low, high = extent(size := np.abs(values))
        return any(
            bool(((size >= least) & (size <= most)).any())
            for least, most in self._sizes
            if least <= high and low <= most
        )

    def truths(self, coordinates: Coordinates) -> None:
        """All true coordinates of a block, also of rows that do not go out: numbers of its columns
        are set beside them."""
        self._every, self._block = coordinates, ()

    def asks(self, ranges: Iterable[tuple[float, float]]) -> bool:
        """Whether a number of the header or footer, which no row that went out had, lies in a range
        that true coordinates lie in."""
        left = self._named[~self._out]
        return any(((left >= low) & (left <= high)).any() for low, high in ranges)

    def true(self, values: np.ndarray) -> None:
        """True coordinates, also of rows that do not go out, of which the header and the footer may
        hold none."""
        self._true |= self._marked(values, self._true | self._out, _long)

    def released(self, column: Any) -> None:
        """A column in which a truth may go out: a footer may say its smallest and largest
        values."""
        if self._out.all():
            return
        values = _plain(column)
        if values is None:
            pairs, marked = _values(column, packed=self._packed)
            parts = (part for _, value in pairs for part in _leaves(value))
            values = np.array([n for part in parts for n in _parts(part, marked)], dtype=float)
        self._out |= self._marked(values, self._out)

    def _marked(
        self,
        values: np.ndarray,
        known: np.ndarray,
        only: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Which numbers of the header or footer, but for those that are `known`, are among some
        values, or those of them that `only` gives back."""
        marks = np.zeros(len(self._named), dtype=bool)
        if known.all():
            return marks
        low, high = extent(values)
        some = np.flatnonzero((self._named >= low) & (self._named <= high) & ~known)
        if len(some) > _FEW and np.array_equal(values, np.floor(values)):
            some = some[self._named[some] == np.floor(self._named[some])]  # no other is among them
        if len(some):
            hits = values[np.isin(values, self._named[some])]
            marks[some] = np.isin(self._named[some], hits if only is None else only(hits))
        return marks

    def column(self, name: str, column: Any, coordinates: Coordinates) -> None:
        """A column that stays as it was, with the truths of its rows."""
        values = _plain(column)
        if values is not None:
            if self._may_be_truths(values):
                rows, apart = np.arange(len(values)), np.zeros(len(values), dtype=bool)
                self._numbers(name, rows, values, apart, *coordinates())
            return
        row_of: list[int] = []
        numbers: list[float] = []
        in_text: list[bool] = []
        pairs, marked = _values(column, packed=self._packed)
        for row, value in pairs:
            for part in _leaves(value):
                if isinstance(part, bytes):
                    if self._packed and _packs(part, *(truth[row] for truth in coordinates())):
                        self._hit(self._sure, name, np.array([row]))
                    part = _decoded(part)
                for number in _numbers(part, marked) if isinstance(part, str) else (part,):
                    row_of.append(row)
                    numbers.append(number)
                    in_text.append(isinstance(part, str))
        if row_of:
            rows, values, written = np.array(row_of), np.array(numbers), np.array(in_text)
            first, second = coordinates()
            self._numbers(name, rows, values, written, first, second)
            self._pairs(name, rows[written], values[written], first, second)

    def _pairs(
        self,
        name: str,
        rows: np.ndarray,
        values: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
    ) -> None:
        """Rows whose text holds both coordinates, in degrees."""
        if len(self._scales) == 1:
            return
        first_rows, second_rows = (
            rows[np.abs(np.abs(values) - np.abs(truth[rows])) <= _PAIR_DEGREES]
            for truth in (first, second)
        )
        self._hit(self._sure, name, np.intersect1d(first_rows, second_rows))

    def _numbers(
        self,
        name: str,
        rows: np.ndarray,
        values: np.ndarray,
        in_text: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
    ) -> None:
        values = np.abs(values)
        least, most = extent(values)
        self._block = self._block or tuple(map(_Truths, self._every()))
        for truth, block in zip((first, second), self._block, strict=True):
            own = np.abs(truth)
            self._other_rows(name, values, block)
            low, high = extent(own)
            for scale in self._scales:
                start, end = low * scale - _off(scale), high * scale + _off(scale)
                if most < start or least > end:
                    continue
                near = np.flatnonzero((values >= start) & (values <= end))
                if not len(near):
                    continue
                there, mine = values[near], own[rows[near]]
                off = np.abs(there - mine * scale)
                if scale == 1.0:
                    unit = 10.0 ** _size(mine)
                    agrees = unit * 10.0 ** (1 - _DIGITS) / 2
                    likely = off <= agrees
                    sure = off <= unit * 10.0 ** (1 - _SURE_DIGITS) / 2
                    sure &= _has_digits(mine, _SURE_DIGITS)
                    long = np.flatnonzero(_has_digits(there, _SURE_DIGITS))
                    for every in self._block:
                        sure[long] |= every.hold(there[long])
                    self._hit(self._sure, name, rows[near[sure]])
                else:
                    # seconds since 1970 have the size of billionths of some longitudes: only in a
                    # text, and of seven decimals, these may be off by a centimetre
                    rounded = in_text[near] & (there % _off(scale) == 0)
                    agrees = np.where(rounded, _off(scale), 1.0)
                    likely = off <= agrees
                    likely &= mine * scale >= 10.0 ** (_DIGITS - 1)
                likely &= _has_digits(mine, _DIGITS)
                self._hit(self._likely, name, rows[near[likely]])
                # row numbers are as dense beside the truths' range as in it, coordinates are not
                wide = max(end - start, scale / 1e3)
                beside = np.count_nonzero((values >= start - wide) & (values <= end + wide))
                self._by_chance[name] += (beside - len(near)) * float(agrees.mean()) / wide

    def _other_rows(self, name: str, values: np.ndarray, truths: "_Truths") -> None:
        """Note different values that agree with the truth of any row, and how many would by chance
        if they were spread evenly over their range, or as they are beside the truths': the digits
        of hashes are of all lengths, and prices repeat."""
        if len(self._others[name]) >= _MOST_OTHERS:
            return
        lowest, highest = (np.floor(edge * _FINE) - 2 for edge in truths.range)
        for scale in (_FINE, 1.0) if len(self._scales) > 1 else (_FINE,):
            with np.errstate(over="ignore"):  # a number of 1e308 is no coordinate
                scaled = values * scale
            some = scaled[(scaled >= lowest) & (scaled <= highest + 4)]
            if not len(some):
                continue
            low, high = extent(truths.fine)
            some = some[(some >= low - 1) & (some <= high + 1)]
            if not len(some):
                continue
            start, end = extent(scaled)
            wide, count = max(high - low, 1e4), len(truths.fine)
            some = np.unique(np.round(some))
            self._others[name].update(some[_among(some, truths.fine)].tolist())
            near = scaled[(scaled >= low - wide) & (scaled <= high + wide)]
            beside = len(np.unique(near[(near < low - 1) | (near > high + 1)]))
            self._expected[name] += max(
                len(values) * count / max(end - start, wide), beside * count / (2 * wide)
            )
            self._filled[name] = max(self._filled[name], count / (2 * wide))

    def _hit(self, counts: defaultdict[str, int], name: str, rows: np.ndarray) -> None:
        if len(rows):
            counts[name] += len(np.unique(rows))

    def raise_for(self, source: str, rows: int) -> None:
        """One sentence with the columns and how many rows; never what is in them."""
        if np.any(self._true & ~self._out):
            raise DataError(
                f"{source}: a true coordinate is in the names or notes of its columns; nothing"
                " was written: rename them"
            )
        telling = {
            name
            for name, count in self._likely.items()
            if count > _BY_CHANCE * rows and _unlikely(count, self._by_chance[name])
        }
        telling |= {name for name, count in self._sure.items() if count}
        telling |= {
            name
            for name, hits in self._others.items()
            if hits and _unlikely(len(hits), self._expected[name] + self._filled[name])
        }
        if telling:
            columns = ", ".join(f"'{name}'" for name in sorted(telling))
            raise DataError(
                f"{source}: true coordinates are in other columns, {columns}; nothing was written",
                hint=f"leave a column out with {arg('drop')}, or let it pass with {arg('keep')}",
            )


class _Truths:
    """One true coordinate of all rows of a block, but for the sign.  What costs a sort is made when
    a column first asks for it."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    @cached_property
    def size(self) -> np.ndarray:
        """Their absolute values."""
        return np.abs(self._values)

    @cached_property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest."""
        return extent(self.size)

    @cached_property
    def fine(self) -> np.ndarray:
        """Different numbers in ten-millionths, cut and rounded, of those that have as many
        digits; sorted."""
        scaled = self.size[_has_digits(self.size, _DIGITS + 1)] * _FINE
        return np.unique(np.concatenate([np.floor(scaled), np.round(scaled)]))

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.sort(self.size)

    def hold(self, values: np.ndarray) -> np.ndarray:
        """Which values are among them, to the last digit."""
        if len(values) <= _FEW:
            return np.array([bool((self.size == value).any()) for value in values], dtype=bool)
        return _among(values, self._sorted)


def _among(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Which values are among others that are sorted."""
    if not len(ordered):
        return np.zeros(len(values), dtype=bool)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[places] == values)


def floats(column: Any) -> np.ndarray:
    """A column of coordinates as doubles, NaN where it is empty."""
    values = _plain(column)
    if values is not None:
        return values
    if pa.types.is_binary(column.type):
        return np.array(
            [float(value.decode()) if value.strip() else np.nan for value in column.to_pylist()]
        )
    return to_numpy(column.cast(pa.float64()))


def _plain(column: Any) -> np.ndarray | None:
    """A column of plain numbers as doubles, also where they are written as text; None for any
    other."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return to_numpy(column.cast(pa.float64(), safe=False))
    if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
        return None
    try:
        text = column.cast(pa.string())
        if text.slice(0, 1).to_pylist() != [""]:
            text.slice(0, 1).cast(pa.float64())  # Arrow words an error for each value that is none
        return to_numpy(without_empty(text).cast(pa.float64()))
    except pa.ArrowException:
        return None


def _values(column: Any, *, packed: bool) -> tuple[Iterable[tuple[int, Any]], bool]:
    """Rows with a value that can hold a number within, and whether these may be `marked`."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_temporal(kind):
        return (), False
    rows, marked = np.arange(len(column)), True
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_binary(kind) and not packed)
    ):
        patterns = _patterns(column)
        if not patterns:
            return (), False
        marked = patterns != [_LIKE_NUMBERS]
        some = compute.match_substring_regex(_as_text(column), "|".join(patterns))
        rows = to_numpy(compute.indices_nonzero(some)).astype(int)
        if not len(rows):
            return (), False
        column = column.take(to_arrow(rows))
    return zip(rows.tolist(), plain_values(column), strict=True), marked


def _as_text(column: Any) -> Any:
    """A column of bytes as text, Latin-1 where a value is not UTF-8."""
    try:
        return column.cast(pa.string()) if pa.types.is_binary(column.type) else column
    except pa.ArrowInvalid:
        values = column.to_pylist()
        return pa.array([None if value is None else _decoded(value) for value in values])


def _patterns(column: Any) -> list[str]:
    """What texts of a column may hold, by its bytes alone: most columns hold none of it, and are
    not looked at text by text.  The end of one text and the start of the next may look so."""
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    patterns: set[str] = set()
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if not len(chunk):
            continue
        ends = np.frombuffer(chunk.buffers()[1], width)[chunk.offset :][: len(chunk) + 1]
        letters = np.frombuffer(chunk.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
        pairs = []
        for start in range(0, len(letters), _STEP_BYTES):  # few enough to stay in the cache
            some = letters[start : start + _STEP_BYTES + _OVERLAP_BYTES]
            pairs.append(start + _noted(some, patterns))
        if _LIKE_GROUPED not in patterns and _any_grouped(letters, ends - ends[0], pairs):
            patterns.add(_LIKE_GROUPED)
    return sorted(patterns)


def _noted(letters: np.ndarray, patterns: set[str]) -> np.ndarray:
    """Add to `patterns` what is seen in some letters; where two groups of three digits begin that
    one mark parts, if groups are not found yet."""
    digit = _is_digit(letters)
    three = digit[:-2] & digit[1:-1] & digit[2:]
    mark = (letters == ord(".")) | (letters == ord(","))
    if _LIKE_NUMBERS not in patterns:
        four = three[:-1] & digit[3:]
        if (four[:-3] & four[3:]).any() or (digit[:-5] & mark[1:-4] & four[2:]).any():
            patterns.add(_LIKE_NUMBERS)
    quote = letters == ord("'")
    if quote.any():
        mark |= quote
        if (digit[:-1] & quote[1:]).any():
            patterns.add(_LIKE_SEXAGESIMAL)
    if letters.max() > 127:
        other = letters > 127
        if (digit[:-1] & other[1:]).any():
            patterns |= {_LIKE_SEXAGESIMAL, _LIKE_GROUPED}
        two = other[:-1] & other[1:]
        if (two[:-4] & two[2:-2] & two[4:]).any():  # three letters of two bytes or more
            patterns.add(_LIKE_OTHER_DIGITS)
    if _LIKE_GROUPED in patterns or not (pair := three[:-4] & three[4:]).any():
        return np.empty(0, dtype=int)
    mark |= letters == ord(" ")
    return np.flatnonzero(pair & mark[3:-3])


def _any_grouped(letters: np.ndarray, ends: np.ndarray, pairs: list[np.ndarray]) -> bool:
    """Whether any of these pairs of three digits are the end of groups, as in `48,857,123`;
    addresses such as `10.101.102.103` and numbers whose last group has four digits are none."""
    at = np.concatenate([np.empty(0, dtype=int), *pairs])
    at = at[at >= 2]
    at = at[(letters[at - 1] < ord("0")) & _is_digit(letters[at - 2])]
    if not len(at):
        return False
    edge, point = np.zeros(len(letters) + 1, dtype=bool), ord(".")
    edge[ends] = True  # a text begins here

    def letter(place: np.ndarray) -> np.ndarray:
        return letters.take(place, mode="clip")

    before = _is_digit(letter(at - 3)) & ~edge[at - 2]
    first = at - 2 - before - (before & _is_digit(letter(at - 4)) & ~edge[at - 3])
    dotted = (letter(at + 7) == point) & ~edge[at + 7]
    dotted |= (letter(first - 1) == point) & ~edge[first]
    at = at[~(dotted & (letters[at + 3] == point))]
    longer = np.ones(len(at), dtype=bool)
    for step in (8, 9, 10, 11):
        longer &= _is_digit(letter(at + step))
    inside = edge.take(at[:, None] + np.arange(7, 12), mode="clip").sum(axis=1) == 0
    digit_after = _is_digit(letter(at + 7)) & ~edge[at + 7]
    return bool((~(longer & inside) & ~digit_after).any())


def _is_digit(letters: np.ndarray) -> np.ndarray:
    return letters - np.uint8(ord("0")) < 10


def plain_values(column: Any) -> list[Any]:
    """The values of a column; times, which may be too fine or too far for Python, as whole
    numbers."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException):
        values = timeless(column).to_pylist()
    return values


def timeless(column: Any) -> Any:
    """A column with times, dates and durations as whole numbers, also within others."""

    def whole(field: Any) -> Any:
        kind, kinds = field.type, pa.types
        if kinds.is_dictionary(kind):
            return whole(field.with_type(kind.value_type))
        if kinds.is_date32(kind) or kinds.is_time32(kind):
            return field.with_type(pa.int32())
        temporal = kinds.is_temporal(kind) and not kinds.is_interval(kind)
        return field.with_type(pa.int64()) if temporal else field

    kind = whole(pa.field("", column.type)).type
    made = remade(kind, whole)
    return column if made == column.type else column.cast(made)


def remade(kind: Any, change: Callable[[Any], Any]) -> Any:
    """A type with all its inner fields changed."""

    def inner(field: Any) -> Any:
        changed = change(field)
        return changed.with_type(remade(changed.type, change))

    if pa.types.is_struct(kind):
        return pa.struct([inner(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(inner(kind.value_field))
    return pa.list_(inner(kind.value_field)) if pa.types.is_list(kind) else kind


def _leaves(value: Any) -> Iterator[Any]:
    """Numbers, texts and bytes within a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(key)
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (str, bytes)):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    else:
        try:
            yield float(value)
        except (TypeError, ValueError, OverflowError):
            return


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _numbers(text: str, marked: bool) -> Iterator[float]:
    """Numbers in a text that have the digits of a coordinate; `marked` says that these may be of
    other scripts, in groups, or degrees with minutes."""
    if marked:
        text = plain_digits(text)
        yield from _marked_numbers(text)
    for decimal, power, whole in _NUMBER.findall(text):
        part = decimal or whole
        yield float(part.replace(",", "."))
        if power:
            yield float(f"{part.replace(',', '.')}e{power}")
        if "," in part:
            yield float(part.partition(",")[2])


def _marked_numbers(text: str) -> Iterator[float]:
    """Those in groups of three digits, and degrees with minutes.

    >>> [*_marked_numbers("48,857,123 is 48°30'36\\"")]
    [48.51, 48857123.0]
    """
    if "'" in text or not text.isascii():
        for whole, minutes, seconds, decimal in _SEXAGESIMAL.findall(text):
            finer = float((decimal or minutes).replace(",", "."))
            yield float(whole) + finer / 60 + float((seconds or "0").replace(",", ".")) / 3600
    for grouped in _GROUPED.findall(text):
        yield float("".join(filter(str.isdigit, grouped)))


def _parts(value: Any, marked: bool) -> Iterator[float]:
    """A number; the numbers of a text; of bytes these and all doubles."""
    if isinstance(value, bytes):
        yield from _doubles(value)
        value = _decoded(value)
    yield from _numbers(value, marked) if isinstance(value, str) else (value,)


def _doubles(data: bytes) -> list[float]:
    """The doubles that begin at any byte."""
    return [
        number
        for start in range(min(8, max(0, len(data) - 7)))
        for number in np.frombuffer(data, "<f8", (len(data) - start) // 8, start).tolist()
    ]


def _packs(data: bytes, first: float, second: float) -> bool:
    """Whether bytes hold a coordinate as a double."""
    return any(
        struct.pack(form, value) in data
        for value in (first, second)
        if abs(value) > 1e-5
        for form in ("<d", ">d")
    )


def _off(scale: float) -> float:
    """How far a whole number may be off a coordinate in these parts: one, or a centimetre."""
    return max(1.0, scale / _FINE)


def _size(values: np.ndarray) -> np.ndarray:
    """The power of ten of the first digit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size: np.ndarray = np.floor(np.log10(values))
    return np.where(np.isfinite(size), size, -99.0)


def _has_digits(values: np.ndarray, digits: int) -> np.ndarray:
    """Which numbers need `digits` significant digits to be written."""
    scaled = values * 10.0 ** (digits - 2 - _size(values))
    with np.errstate(invalid="ignore"):
        needs: np.ndarray = np.abs(scaled - np.round(scaled)) > 1e-6
    return needs & np.isfinite(values)


def _long(values: np.ndarray) -> np.ndarray:
    """Numbers with enough digits that their double is hardly anybody else's."""
    return values[_has_digits(np.abs(values), _SURE_DIGITS)]


def _unlikely(count: int, expected: float) -> bool:
    """Whether chance seldom gives this count: P(N >= k) is at most e^k / k! for a mean of e."""
    return not expected or count * log(expected) - lgamma(count + 1) < log(_UNLIKELY)


def extent(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest finite value."""
    if len(values):
        low, high = float(values.min()), float(values.max())  # NaN where one is among them
        if isfinite(low) and isfinite(high):
            return low, high
    known = values[np.isfinite(values)]
    return float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
