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


def _search(column: pa.Array, *, names: tuple[str, ...] = (), footer: bytes = b"") -> None:
    searched = Searched(degrees=True, packed=True)
    searched.names(list(names), footer)
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


@pytest.mark.parametrize("form", _HIDDEN)
def test_a_coordinate_in_another_form_is_found(form: str) -> None:
    with pytest.raises(DataError, match="true coordinates stand in other columns, 'beside'"):
        _search(_HIDDEN[form]())


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
    with pytest.raises(DataError, match="true coordinates stand in other columns"):
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
