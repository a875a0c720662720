"""The search for true coordinates in columns that stay: what is found, and what is no sign of
them."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from sfumato.deploy.search import Searched, floats, timeless
from sfumato.errors import DataError

ROWS = 400
_RANDOM = np.random.default_rng(3)
LATITUDE = 48.857 + _RANDOM.uniform(-0.02, 0.02, ROWS)
LONGITUDE = 2.347 + _RANDOM.uniform(-0.02, 0.02, ROWS)


def _search(
    column: pa.Array,
    *,
    names: tuple[str, ...] = (),
    footer: bytes = b"",
    known: bool = False,
    packed: bool = True,
) -> None:
    searched = Searched(degrees=True, packed=packed)
    searched.names(list(names), footer)
    if known:
        searched.within([(LATITUDE.min(), LATITUDE.max()), (-LONGITUDE.max(), -LONGITUDE.min())])
    searched.truths(lambda: (LATITUDE, LONGITUDE))
    searched.column("beside", column, lambda: (LATITUDE, LONGITUDE))
    _set_beside_all(searched)
    searched.raise_for("log.parquet", ROWS)


def _set_beside_all(searched: Searched) -> None:
    ranges = [(axis.min(), axis.max()) for axis in (LATITUDE, -LONGITUDE)]
    for axis in (LATITUDE, -LONGITUDE) if searched.asks(ranges) else ():
        searched.true(axis)


_HIDDEN = {
    "the double itself": lambda: pa.array(LATITUDE),
    "of another row": lambda: pa.array(np.roll(LONGITUDE, 7)),
    "without its sign": lambda: pa.array(-LONGITUDE),
    "microdegrees": lambda: pa.array(np.round(LATITUDE * 1e6).astype(np.int64)),
    "ten-millionths": lambda: pa.array(np.round(LATITUDE * 1e7).astype(np.int64)),
    "seven digits as text": lambda: pa.array([f"seen at {value:.6f}" for value in LONGITUDE]),
    "with a power of ten": lambda: pa.array([f"seen at {value:.8e}" for value in LATITUDE]),
    "both, of four decimals": lambda: pa.array(
        [f"{a:.4f};{b:.4f}" for a, b in zip(LATITUDE, LONGITUDE, strict=True)]
    ),
    "packed": lambda: pa.array([b"\x01" + struct.pack(">d", value) for value in LATITUDE]),
    "in a list": lambda: pa.array([[1.0, value] for value in LATITUDE.tolist()]),
    "in a struct": lambda: pa.array([{"a": {"b": value}} for value in LATITUDE.tolist()]),
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("form", _HIDDEN)
def test_a_coordinate_in_another_form_is_found(form: str, known: bool) -> None:
    with pytest.raises(DataError, match="true coordinates are in other columns, 'beside'"):
        _search(_HIDDEN[form](), known=known)


@pytest.mark.parametrize("off", [-1, 1])
@pytest.mark.parametrize("scale", [1, 10**6, 10**7, 10**9])
def test_a_number_as_far_off_as_is_found_is_not_passed_over_by_the_range(scale: int, off: int):
    """The smallest and the largest truth, off by as much as agrees with them: five millionths of a
    degree at 48 degrees, or one unit."""
    edge = max(LATITUDE) if off > 0 else min(LATITUDE)
    number = edge + off * 4.9e-6 if scale == 1 else np.floor(edge * scale) + (off > 0)
    column = np.where(edge == LATITUDE, number, 7.0)
    with pytest.raises(DataError, match="true coordinates"):
        _search(pa.array(column), known=True)


def test_coordinates_are_not_read_for_numbers_of_another_size() -> None:
    searched = Searched(degrees=True, packed=True)
    searched.within([(48.8, 48.9), (2.3, 2.4)])
    searched.column("votes", pa.array([0, 3, 49, 500_000]), lambda: pytest.fail("were read"))


def _sexagesimal(value: float, marks: str, decimals: int) -> str:
    minutes, seconds = divmod(value * 3600, 60)
    degrees, minutes = divmod(minutes, 60)
    one, two, three = marks.split("|")
    return f"{degrees:.0f}{one}{minutes:02.0f}{two}{seconds:.{decimals}f}{three}"


_WIDE = {48 + digit: 0xFF10 + digit for digit in range(10)}
_SINGLE = {  # each of one place, in a column of other texts
    "billionths": lambda a, b: f"id {a * 1e9:.0f}",
    "billionths of seven decimals": lambda a, b: f"{round(b, 7) * 1e9:.0f}",
    "full-width digits": lambda a, b: f"at {a:.6f}".translate(_WIDE),
    "full-width digits and point": lambda a, b: f"{a:.6f}".translate(_WIDE | {46: 0xFF0E}),
    "Persian digits": lambda a, b: f"{a:.7f}".translate({48 + n: 0x6F0 + n for n in range(10)}),
    "minutes and seconds": lambda a, b: f"from {_sexagesimal(a, '°|′|″', 3)}N on",
    "minutes and seconds in ASCII": lambda a, b: _sexagesimal(a, "deg |'|\"", 2),
    "decimal minutes": lambda a, b: f"{int(a)}° {a % 1 * 60:.5f}' N",
    "both to the second": lambda a, b: " ".join(_sexagesimal(v, "°|'|\"", 0) for v in (a, b)),
    "both in decimal minutes": lambda a, b: f"N {int(a)}° {a % 1 * 60:.3f}' E 2° {b % 1 * 60:.3f}'",
    "thousands": lambda a, b: f"{round(a * 1e6):,}",
    "thousands with points": lambda a, b: f"{round(b * 1e6):,}".replace(",", "."),
    "thousands with spaces": lambda a, b: f"no {round(a * 1e7):,} here".replace(",", " "),
    "thousands with narrow spaces": lambda a, b: f"{round(a * 1e6):,}".replace(",", "\u202f"),
    "thousands with quotes": lambda a, b: f"{round(a * 1e9):,}".replace(",", "'"),
    "decimals in groups": lambda a, b: f"{a:.6f}"[:6] + " " + f"{a:.6f}"[6:],
}


@pytest.mark.parametrize("form", _SINGLE)
def test_a_coordinate_in_a_single_text_is_found(form: str) -> None:
    """In the first, some and the last row, where other texts end and begin with digits."""
    honest = [f"{'no. ' * (row % 2)}{row % 7}" for row in range(ROWS)]
    for row in (0, 200, ROWS - 1):
        for kind in (pa.string(), pa.large_string(), pa.binary()):
            texts = honest.copy()
            _search(pa.array(texts).cast(kind), packed=False)
            texts[row] = _SINGLE[form](LATITUDE[row], LONGITUDE[row])
            with pytest.raises(DataError, match="true coordinates are in other columns, 'beside'"):
                _search(pa.array(texts).cast(kind), packed=False)


def test_a_coordinate_in_a_text_that_is_not_utf_8_is_found() -> None:
    texts = ["caf\xe9 5\xb0 8'".encode("latin-1")] * ROWS
    _search(pa.array(texts), packed=False)
    texts[7] = _sexagesimal(LATITUDE[7], "\xb0|'|\"", 3).encode("latin-1")
    with pytest.raises(DataError, match="true coordinates are in other columns, 'beside'"):
        _search(pa.array(texts), packed=False)


_HONEST = {
    "numbers of that range": lambda: pa.array(_RANDOM.uniform(48.8, 48.9, ROWS)),
    "counts": lambda: pa.array(np.arange(ROWS)),
    "prices": lambda: pa.array(np.round(_RANDOM.uniform(1, 99, ROWS), 2)),
    "degrees of two decimals": lambda: pa.array(np.round(LATITUDE, 2)),
    "times": lambda: pa.array(np.arange(ROWS) + 1_287_532_527, pa.timestamp("s")),
    "texts": lambda: pa.array(["café 12", None] * (ROWS // 2)),
    "nothing": lambda: pa.nulls(ROWS),
    "huge": lambda: pa.array(np.full(ROWS, 1e308)),
}


@pytest.mark.parametrize("form", _HONEST)
def test_a_column_that_tells_no_place_passes(form: str) -> None:
    _search(_HONEST[form]())


_MANY = 20_000
_UNLIKE = {
    "hashes": lambda random: [random.bytes(32).hex() for _ in range(_MANY)],
    "prices": lambda random: random.lognormal(3, 1, _MANY).round(2),
    "numbers of all sizes": lambda random: 10.0 ** random.uniform(0, 15, _MANY),
}


@pytest.mark.parametrize("wide", [0.0015, 0.15])
@pytest.mark.parametrize("form", _UNLIKE)
def test_many_rows_of_a_column_that_tells_no_place_pass(form: str, wide: float) -> None:
    """Blocks of 20,000 true places each: of hashes and of prices some agree with one of them."""
    random = np.random.default_rng(2)
    searched = Searched(degrees=True, packed=True)
    for _ in range(4):
        axes = np.array([[48.86], [2.35]]) + random.uniform(-wide, wide, (2, _MANY))
        searched.truths(lambda axes=axes: axes)
        searched.column("beside", pa.array(_UNLIKE[form](random)), lambda axes=axes: axes)
    searched.raise_for("log.parquet", 4 * _MANY)


_TEXTS = {
    "prices in groups": lambda random: [f"€ {p:,}" for p in random.integers(10**6, 10**8, _MANY)],
    "network addresses": lambda random: [
        ".".join(map(str, four)) for four in random.integers(0, 256, (_MANY, 4)).tolist()
    ],
    "telephones": lambda random: [
        f"+1 {n[:3]} {n[3:6]} {n[6:]}" for n in map(str, random.integers(10**9, 10**10, _MANY))
    ],
    "addresses": lambda random: [
        f"https://s/{n}/é?q=1" for n in random.integers(10**9, size=_MANY)
    ],
    "times": lambda random: [
        f"{n // 3600 % 24:02d}:{n // 60 % 60:02d}'{n % 60:02d}.{n % 1000:03d}\""
        for n in random.integers(10**9, size=_MANY)
    ],
    "headings": lambda random: [f"{n}° {n % 60}'" for n in random.integers(360, size=_MANY)],
    "times in nanoseconds": lambda random: (
        1_700_000_000_000_000_000 + random.integers(10**15, size=_MANY)
    ),
    "ids": lambda random: random.integers(10**9, 10**12, _MANY),
}


@pytest.mark.parametrize("form", _TEXTS)
def test_numbers_with_marks_and_groups_that_tell_no_place_pass(form: str) -> None:
    random = np.random.default_rng(5)
    axes = np.array([[48.86], [2.35]]) + random.uniform(-0.01, 0.01, (2, _MANY))
    searched = Searched(degrees=True, packed=False)
    searched.truths(lambda: axes)
    searched.column("beside", pa.array(_TEXTS[form](random)), lambda: axes)
    searched.raise_for("log.csv", _MANY)


@pytest.mark.parametrize("written", [np.asarray, lambda times: [f"at {time}" for time in times]])
def test_seconds_since_1970_are_no_latitudes_of_singapore(written) -> None:
    """1.30 degrees in billionths are a time of 2011; four rows agree to a centimetre by chance."""
    random = np.random.default_rng(5)
    axes = np.array([[1.3], [103.8]]) + random.uniform(0, 0.001, (2, _MANY))
    searched = Searched(degrees=True, packed=False)
    searched.truths(lambda: axes)
    times = 1_300_000_000 + random.integers(10**6, size=_MANY)
    searched.column("time", pa.array(written(times)), lambda: axes)
    searched.raise_for("log.csv", _MANY)


def _numbered(hidden: int) -> None:
    """Rows numbered 2,250,000 and so on, whose numbers pass the microdegrees of their longitudes;
    some of the numbers are these."""
    random = np.random.default_rng(3)
    rows = 250_000
    axes = np.array([[48.857], [2.3483]]) + random.uniform(-0.0025, 0.0025, (2, rows))
    numbers = 2_250_000 + np.arange(rows)
    numbers[:hidden] = np.round(axes[1, :hidden] * 1e6)
    searched = Searched(degrees=True, packed=False)
    searched.truths(lambda: axes)
    for start in range(0, rows, 50_000):
        some = slice(start, start + 50_000)
        searched.column("id", pa.array(numbers[some]), lambda some=some: axes[:, some])
    searched.raise_for("log.csv", rows)


def test_row_numbers_of_the_size_of_coordinates_pass() -> None:
    """About two of 5,000 numbers in the range agree with their row's longitude by chance."""
    _numbered(0)


def test_ten_coordinates_among_such_row_numbers_are_found() -> None:
    """Two are expected by chance; ten have a chance below a thousandth."""
    with pytest.raises(DataError, match="true coordinates are in other columns, 'id'"):
        _numbered(10)


@pytest.mark.parametrize("wide", [0.0015, 0.15])
def test_some_places_of_other_rows_among_hashes_are_found(wide: float) -> None:
    random = np.random.default_rng(2)
    axes = np.array([[48.86], [2.35]]) + random.uniform(-wide, wide, (2, _MANY))
    texts = _UNLIKE["hashes"](random)
    for row in range(20):
        texts[row] = f"{axes[0, -1 - row]:.7f}"
    searched = Searched(degrees=True, packed=True)
    searched.truths(lambda: axes)
    searched.column("beside", pa.array(texts), lambda: axes)
    with pytest.raises(DataError, match="true coordinates are in other columns"):
        searched.raise_for("log.parquet", _MANY)


def test_a_coordinate_in_a_name_or_a_footer_is_found_unless_it_goes_out_in_a_row() -> None:
    honest = _HONEST["counts"]()
    with pytest.raises(DataError, match="names or notes of its columns"):
        _search(honest, names=(f"extent {LATITUDE[5]!r}",))
    with pytest.raises(DataError, match="names or notes of its columns"):
        _search(honest, footer=b"min" + struct.pack("<d", LATITUDE[5]))
    with pytest.raises(DataError, match="names or notes of its columns"):
        _search(honest, names=(f"west {-LONGITUDE[5]!r}",))
    searched = Searched(degrees=True, packed=True)
    searched.names([], struct.pack("<d", LATITUDE[5]))
    searched.released(pa.array([LATITUDE[5]]))  # a column that may pass: its footer may say so
    assert not searched.asks([(-180.0, 180.0)])
    _set_beside_all(searched)
    searched.raise_for("log.parquet", ROWS)


def test_no_sentence_holds_a_value() -> None:
    with pytest.raises(DataError) as refused:
        _search(_HIDDEN["both, of four decimals"]())
    assert not any(f"{value:.3f}" in str(refused.value) for value in (*LATITUDE, *LONGITUDE))


def test_columns_of_coordinates_are_doubles_and_empty_ones_are_none() -> None:
    for column in (
        pa.array([1.5, None]),
        pa.array(["1.5", ""]),
        pa.array([b"1.5", b" "]),
        pa.array(["1.5", None]).cast(pa.large_string()).cast(pa.string()),
    ):
        np.testing.assert_array_equal(floats(column), [1.5, np.nan])


def test_times_within_others_become_whole_numbers() -> None:
    fine = pa.array([{"at": [10**18 + 1]}], pa.struct([("at", pa.list_(pa.timestamp("ns")))]))
    assert timeless(fine).to_pylist() == [{"at": [10**18 + 1]}]
    plain = pa.array([1, 2])
    assert timeless(plain) is plain
