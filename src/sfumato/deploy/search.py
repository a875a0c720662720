"""True coordinates of the input, looked for in all that goes out beside the reports."""

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import isfinite, lgamma, log
from typing import Any

import numpy as np

from sfumato.data.arrow import to_arrow, to_numpy
from sfumato.errors import DataError, arg

# A number in a text with enough digits to be a coordinate: with a decimal point or comma, or whole.
_NUMBER = re.compile(r"([0-9]{1,10}[.,][0-9]{4,})(?:[eE]([+-]?[0-9]{1,2})(?![0-9]))?|([0-9]{7,})")
_DIGITS = 7  # significant digits that must agree: a random number of such a column agrees once in
# some million rows
_BY_CHANCE = 2e-6  # per row, of such numbers
_SURE_DIGITS = 10  # with this number of digits it is no chance
_UNLIKELY = 1e-3  # a number of agreements with truths of other rows that chance seldom reaches
_MOST_OTHERS = 10_000  # different agreements with truths of other rows that are noted
_PAIR_DEGREES = 1e-4  # to which both coordinates in one text must agree: chance does not do that
_FINE = 1e7  # to which these must agree: a centimetre
_FEW = 16  # values that are looked for one by one, without sorting the truths
_SCALES = (1.0, 1e6, 1e7)  # degrees, and whole numbers of microdegrees and of tenths of them


Coordinates = Callable[[], Sequence[np.ndarray]]  # both of some rows, read when they are asked for


class Searched:
    """Counts by column of rows that hold a true coordinate.

    A number of a row is set beside that row's own truth, to seven significant digits, as degrees
    and as millionths and ten-millionths of a degree; exact doubles beside all truths of the block.
    Both coordinates in one text are found from four decimals on.  A single one that is written with
    fewer digits looks like any number and is not looked for here.
    """

    def __init__(self, *, degrees: bool, packed: bool) -> None:
        """`packed` says that a column of bytes may hold doubles, not only text."""
        self._packed = packed
        self._scales = _SCALES if degrees else (1.0,)
        self._likely: defaultdict[str, int] = defaultdict(int)
        self._sure: defaultdict[str, int] = defaultdict(int)
        self._named = np.empty(0)  # numbers in the header or footer
        self._true = np.empty(0, dtype=bool)  # which of them are truths
        self._out = np.empty(0, dtype=bool)  # which of them are in rows that go out
        self._every: Coordinates = tuple
        self._block: tuple[_Truths, ...] = ()
        self._others: defaultdict[str, set[float]] = defaultdict(set)
        self._expected: defaultdict[str, float] = defaultdict(float)
        self._filled: defaultdict[str, float] = defaultdict(float)

    def names(self, texts: list[str], footer: bytes = b"") -> None:
        """Names of columns and notes on them, which may hold no true coordinate; with the footer of
        a Parquet file, in which doubles may stand at any place."""
        values = [sign * value for text in texts for value in _numbers(text) for sign in (1, -1)]
        self._watch(np.array([*values, *_doubles(footer)], dtype=float))

    def _watch(self, values: np.ndarray) -> None:
        with np.errstate(invalid="ignore"):
            size = np.abs(values)
            self._named = np.unique(values[(size > 1e-5) & (size < 1e10)])
        self._true = np.zeros(len(self._named), dtype=bool)
        self._out = np.zeros(len(self._named), dtype=bool)

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
            values = np.array(
                [
                    number
                    for _, value in _values(column, packed=self._packed)
                    for part in _leaves(value)
                    for number in _parts(part)
                ],
                dtype=float,
            )
        self._out |= self._marked(values, self._out)

    def _marked(
        self,
        values: np.ndarray,
        known: np.ndarray,
        only: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Which numbers of the header or footer, but for those that are `known`, are among some
        values, or those of them that `only` gives back."""
        found = np.zeros(len(self._named), dtype=bool)
        if known.all():
            return found
        low, high = extent(values)
        some = np.flatnonzero((self._named >= low) & (self._named <= high) & ~known)
        if len(some) > _FEW and np.array_equal(values, np.floor(values)):
            some = some[self._named[some] == np.floor(self._named[some])]  # no other is among them
        if len(some):
            hits = values[np.isin(values, self._named[some])]
            found[some] = np.isin(self._named[some], hits if only is None else only(hits))
        return found

    def column(self, name: str, column: Any, coordinates: Coordinates) -> None:
        """A column that stays as it was, with the truths of its rows."""
        values = _plain(column)
        if values is not None:
            self._numbers(name, np.arange(len(values)), values, *coordinates())
            return
        found: list[int] = []
        numbers: list[float] = []
        in_text: list[bool] = []
        for row, value in _values(column, packed=self._packed):
            for part in _leaves(value):
                if isinstance(part, bytes):
                    if self._packed and _packs(part, *(truth[row] for truth in coordinates())):
                        self._hit(self._sure, name, np.array([row]))
                    part = part.decode("latin-1")
                for number in _numbers(part) if isinstance(part, str) else (part,):
                    found.append(row)
                    numbers.append(number)
                    in_text.append(isinstance(part, str))
        if found:
            rows, values = np.array(found), np.array(numbers)
            first, second = coordinates()
            self._numbers(name, rows, values, first, second)
            self._pairs(name, rows[in_text], values[in_text], first, second)

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
        one, two = (
            rows[np.abs(np.abs(values) - np.abs(truth[rows])) <= _PAIR_DEGREES]
            for truth in (first, second)
        )
        self._hit(self._sure, name, np.intersect1d(one, two))

    def _numbers(
        self,
        name: str,
        rows: np.ndarray,
        values: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
    ) -> None:
        values = np.abs(values)
        self._block = self._block or tuple(map(_Truths, self._every()))
        for truth, block in zip((first, second), self._block, strict=True):
            own = np.abs(truth)
            self._other_rows(name, values, block)
            low, high = extent(own)
            for scale in self._scales:
                near = np.flatnonzero((values >= low * scale - 1) & (values <= high * scale + 1))
                if not len(near):
                    continue
                there, mine = values[near], own[rows[near]]
                off = np.abs(there - mine * scale)
                if scale == 1.0:
                    unit = 10.0 ** _size(mine)
                    likely = off <= unit * 10.0 ** (1 - _DIGITS) / 2
                    sure = off <= unit * 10.0 ** (1 - _SURE_DIGITS) / 2
                    sure &= _has_digits(mine, _SURE_DIGITS)
                    long = np.flatnonzero(_has_digits(there, _SURE_DIGITS))
                    for every in self._block:
                        sure[long] |= every.hold(there[long])
                    self._hit(self._sure, name, rows[near[sure]])
                else:
                    likely = (off <= 1.0) & (mine * scale >= 10.0 ** (_DIGITS - 1))
                likely &= _has_digits(mine, _DIGITS)
                self._hit(self._likely, name, rows[near[likely]])

    def _other_rows(self, name: str, values: np.ndarray, truths: "_Truths") -> None:
        """Note different values that agree with the truth of any row, and how many would by chance
        if they were spread evenly over their range, or as they are beside the truths': the digits
        of hashes are of all lengths, and prices repeat."""
        if len(self._others[name]) >= _MOST_OTHERS:
            return
        lowest, highest = (np.floor(edge * _FINE) - 2 for edge in truths.range)
        for scale in (_FINE, 1.0) if self._scales[-1] == _FINE else (_FINE,):
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
                f"{source}: a true coordinate stands in the names or notes of its columns; nothing"
                " was written: rename them"
            )
        told = {name for name, count in self._likely.items() if count > _BY_CHANCE * rows}
        told |= {name for name, count in self._sure.items() if count}
        told |= {
            name
            for name, found in self._others.items()
            if found and _unlikely(len(found), self._expected[name] + self._filled[name])
        }
        if told:
            columns = ", ".join(f"'{name}'" for name in sorted(told))
            raise DataError(
                f"{source}: true coordinates stand in other columns, {columns}; nothing was"
                " written",
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
    import pyarrow as pa

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
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return to_numpy(column.cast(pa.float64(), safe=False))
    if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
        return None
    try:
        text = column.cast(pa.string())
        if text.slice(0, 1).to_pylist() != [""]:
            text.slice(0, 1).cast(pa.float64())  # Arrow words an error for each value that is none
        if compute.min(compute.binary_length(text)).as_py() == 0:
            text = compute.if_else(compute.equal(text, ""), None, text)
        return to_numpy(text.cast(pa.float64()))
    except pa.ArrowException:
        return None


def _values(column: Any, *, packed: bool) -> Iterator[tuple[int, Any]]:
    """Rows with a value that can hold a number within."""
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_temporal(kind):
        return
    rows = np.arange(len(column))
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_binary(kind) and not packed)
    ):
        if not _may_hold_numbers(column):
            return
        some = compute.match_substring_regex(column, "[0-9][.,][0-9]{4}|[0-9]{7}")
        rows = to_numpy(compute.indices_nonzero(some)).astype(int)
        if not len(rows):
            return
        column = column.take(to_arrow(rows))
    yield from zip(rows.tolist(), plain_values(column), strict=True)


def _may_hold_numbers(column: Any) -> bool:
    """Whether any text has seven digits in a row, or four behind a digit and a point or comma; the
    end of one text and the start of the next may look so."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if not len(chunk):
            continue
        ends = np.frombuffer(chunk.buffers()[1], width)[chunk.offset :][: len(chunk) + 1]
        letters = np.frombuffer(chunk.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
        digit = letters - np.uint8(ord("0")) < 10
        four = digit[:-3] & digit[1:-2] & digit[2:-1] & digit[3:]
        mark = (letters == ord(".")) | (letters == ord(","))
        if (four[:-3] & four[3:]).any() or (digit[:-5] & mark[1:-4] & four[2:]).any():
            return True
    return False


def plain_values(column: Any) -> list[Any]:
    """The values of a column; times, which may be too fine or too far for Python, as whole
    numbers."""
    import pyarrow as pa

    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException):
        values = timeless(column).to_pylist()
    return values


def timeless(column: Any) -> Any:
    """A column with times, dates and durations as whole numbers, also within others."""
    import pyarrow as pa

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
    import pyarrow as pa

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


def _numbers(text: str) -> Iterator[float]:
    """Numbers in a text that have the digits of a coordinate."""
    for decimal, power, whole in _NUMBER.findall(text):
        part = decimal or whole
        yield float(part.replace(",", "."))
        if power:
            yield float(f"{part.replace(',', '.')}e{power}")
        if "," in part:
            yield float(part.partition(",")[2])


def _parts(value: Any) -> Iterator[float]:
    """A number; the numbers of a text; of bytes these and all doubles."""
    if isinstance(value, bytes):
        yield from _doubles(value)
        value = value.decode("latin-1")
    yield from _numbers(value) if isinstance(value, str) else (value,)


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
    """Numbers with so many digits that their double is hardly anybody else's."""
    return values[_has_digits(np.abs(values), _SURE_DIGITS)]


def _unlikely(count: int, expected: float) -> bool:
    """Whether chance seldom gives this count: P(N >= k) is at most e^k / k! for a mean of e."""
    return count * log(expected) - lgamma(count + 1) < log(_UNLIKELY)


def extent(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest finite value."""
    if len(values):
        low, high = float(values.min()), float(values.max())  # NaN where one is among them
        if isfinite(low) and isfinite(high):
            return low, high
    known = values[np.isfinite(values)]
    return float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
