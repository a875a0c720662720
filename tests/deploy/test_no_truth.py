"""Files with hidden copies of the truth: each is refused, or what comes out holds none of them."""

import base64
import json
import os
import struct

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.deploy.geometry import encode
from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError
from tests.deploy.test_recognise import _geohash, _h3, _s2

ROWS = 60
RANDOM = np.random.default_rng(8)
LATITUDE = 48.857 + RANDOM.uniform(-0.02, 0.02, ROWS)
LONGITUDE = 2.347 + RANDOM.uniform(-0.02, 0.02, ROWS)
PLACES = list(zip(LATITUDE.tolist(), LONGITUDE.tolist(), strict=True))
KEY = bytes(range(32))
EXTENT = [LONGITUDE.min(), LATITUDE.min(), LONGITUDE.max(), LATITUDE.max()]


def _plain(**columns) -> pa.Table:
    return pa.table({"id": np.arange(ROWS), "lat": LATITUDE, "lon": LONGITUDE, **columns})


def _each(form) -> pa.Table:
    return _plain(hidden=[form(a, b) for a, b in PLACES])


def _box() -> pa.Array:
    sides = [pa.array(values) for values in (LONGITUDE, LATITUDE, LONGITUDE, LATITUDE)]
    return pa.StructArray.from_arrays(sides, ["xmin", "ymin", "xmax", "ymax"])


def _geo(table: pa.Table) -> pa.Table:
    column = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": EXTENT}
    notes = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    return table.replace_schema_metadata({"geo": json.dumps(notes)})


def _interleaved(latitude: float, longitude: float, pole: float) -> int:
    """By the definition: halve the ranges in turn, 26 times each."""
    up = int((latitude + pole) / (2 * pole) * 2**26)
    across = int((longitude + 180) / 360 * 2**26)
    pairs = zip(f"{across:026b}", f"{up:026b}", strict=True)
    return int("".join(x + y for x, y in pairs), 2)


def _noted(name: str) -> pa.Table:
    table = _plain()
    place = table.schema.get_field_index(name)
    field = table.schema.field(name).with_metadata({"first": repr(PLACES[0])})
    return table.cast(table.schema.set(place, field))


def _gpx(a: float, b: float) -> str:
    return (
        f'<gpx version="1.1"><trk><trkseg><trkpt lat="{a:.6f}" lon="{b:.6f}"/></trkseg></trk></gpx>'
    )


def _feature(a: float, b: float) -> str:
    point = {"type": "Point", "coordinates": [round(b, 7), round(a, 7)]}
    return json.dumps({"type": "Feature", "bbox": [b, a, b, a], "geometry": point})


WKB = encode(LATITUDE, LONGITUDE, pa.binary())
HIGH = [struct.pack("<BIddd", 1, 1001, b, a, 30.0) for a, b in PLACES]
FILES = {
    "GeoParquet, the geometry alone": lambda: _geo(
        _plain(geometry=WKB).drop_columns(["lat", "lon"])
    ),
    "GeoParquet, beside coordinates": lambda: _geo(_plain(geometry=WKB)),
    "GeoParquet, box alone": lambda: _plain(bbox=_box()),
    "GeoParquet, extent in its notes": lambda: _geo(_plain()),
    "WKB with heights, another name": lambda: _plain(shape=HIGH),
    "WKB in base 64": lambda: _each(
        lambda a, b: base64.b64encode(struct.pack("<BIdd", 1, 1, b, a)).decode()
    ),
    "GeoArrow, a structure": lambda: _plain(
        hidden=pa.StructArray.from_arrays([pa.array(LONGITUDE), pa.array(LATITUDE)], ["x", "y"])
    ),
    "GeoArrow, a list of two": lambda: _plain(
        hidden=pa.array([[b, a] for a, b in PLACES], pa.list_(pa.float64(), 2))
    ),
    "GeoJSON geometry": lambda: _each(
        lambda a, b: json.dumps({"type": "Point", "coordinates": [b, a]})
    ),
    "GeoJSON feature": lambda: _each(_feature),
    "GPX": lambda: _each(_gpx),
    "KML": lambda: _each(
        lambda a, b: f"<Point><coordinates>{b:.5f},{a:.5f},0</coordinates></Point>"
    ),
    "H3 in text": lambda: _each(_h3),
    "H3 in whole numbers": lambda: _each(lambda a, b: int(_h3(a, b), 16)),
    "H3 in a list": lambda: _each(lambda a, b: [_h3(a, b)]),
    "S2 token": lambda: _each(lambda a, b: f"{_s2(a, b, 16):016x}".rstrip("0")),
    "S2 in unsigned numbers": lambda: _plain(
        hidden=pa.array([_s2(a, b, 20) for a, b in PLACES], pa.uint64())
    ),
    "geohash": lambda: _each(lambda a, b: _geohash(a, b, 9)),
    "geohash in whole numbers": lambda: _each(lambda a, b: _interleaved(a, b, 90.0)),
    "geohash of Redis": lambda: _each(lambda a, b: _interleaved(a, b, 85.05112878)),
    "a note on a column": lambda: _noted("lat"),
    "statistics and page indexes": _plain,
    "values of other rows in a dictionary": lambda: _plain(
        hidden=pa.DictionaryArray.from_arrays(
            np.zeros(ROWS, dtype=np.int32), ["none", *(f"{a!r} {b!r}" for a, b in PLACES)]
        )
    ),
}
CLEAN = {
    "GeoParquet, extent in its notes",
    "a note on a column",
    "statistics and page indexes",
    "values of other rows in a dictionary",
}
REPLACED = {  # by sf.deploy.report
    "GeoParquet, the geometry alone",
    "GeoParquet, beside coordinates",
} | CLEAN


def _write(table: pa.Table, path) -> None:
    parquet.write_table(
        table, path, write_page_index=True, store_schema=True, row_group_size=20, compression="none"
    )


def _holds_no_truth(path) -> None:
    """Neither in its bytes, uncompressed, nor in statistics, page indexes or notes."""
    data = path.read_bytes()
    for a, b in PLACES:
        for value in (a, b):
            assert struct.pack("<d", value) not in data and f"{value:.5f}".encode() not in data
    footer = parquet.ParquetFile(path).metadata
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            found = footer.row_group(group).column(number).statistics
            if found is not None and found.has_min_max:
                assert found.min not in LATITUDE and found.max not in LATITUDE
                assert found.min not in LONGITUDE and found.max not in LONGITUDE


def test_the_search_finds_a_truth_in_statistics_and_page_indexes(tmp_path):
    """What the test below relies on: the input has them, at the places that are looked at."""
    _write(_plain(), tmp_path / "in.parquet")
    with pytest.raises(AssertionError):
        _holds_no_truth(tmp_path / "in.parquet")
    data, footer = (
        (tmp_path / "in.parquet").read_bytes(),
        len((tmp_path / "in.parquet").read_bytes()),
    )
    size = int.from_bytes(data[-8:-4], "little")
    index = data[footer - 8 - size - 2000 :]  # page indexes stand before the footer
    assert struct.pack("<d", LATITUDE[:20].min()) in index


@pytest.mark.parametrize("kind", FILES)
def test_no_truth_passes_sanitize(runs, tmp_path, kind):
    _write(FILES[kind](), tmp_path / "in.parquet")
    target = tmp_path / "out.parquet"
    if kind in CLEAN:
        record = sanitize(runs / "laplace", tmp_path / "in.parquet", target)
        assert record["rows_out"] == ROWS
        _write(parquet.read_table(target), tmp_path / "uncompressed.parquet")
        _holds_no_truth(tmp_path / "uncompressed.parquet")
        _holds_no_truth(target)
        return
    with pytest.raises(DataError) as refused:
        sanitize(runs / "laplace", tmp_path / "in.parquet", target)
    assert "48.8" not in str(refused.value) and os.listdir(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize("kind", FILES)
def test_no_truth_passes_report(runs, tmp_path, kind):
    _write(FILES[kind](), tmp_path / "in.parquet")
    table = parquet.read_table(tmp_path / "in.parquet")
    if kind in REPLACED:
        made = sf.deploy.report(table, runs / "laplace", key=KEY, row="id")
        assert made.num_rows == ROWS
        _write(made, tmp_path / "out.parquet")
        _holds_no_truth(tmp_path / "out.parquet")
        return
    with pytest.raises(DataError, match="reveals the place in other columns"):
        sf.deploy.report(table, runs / "laplace", key=KEY, row="id")


@pytest.mark.parametrize("name", ["tracks.gpx", "places.geojson", "places.kml"])
def test_files_of_other_kinds_are_refused(runs, tmp_path, name):
    (tmp_path / name).write_text(_gpx(*PLACES[0]))
    with pytest.raises(DataError, match="does not sanitize"):
        sanitize(runs / "laplace", tmp_path / name, tmp_path / f"out-{name}")
    assert os.listdir(tmp_path) == [name]


def test_a_column_passes_when_somebody_says_so(runs, tmp_path):
    _write(FILES["GPX"](), tmp_path / "in.parquet")
    policy = Policy(keep=("hidden",))
    record = sanitize(
        runs / "laplace", tmp_path / "in.parquet", tmp_path / "out.parquet", policy=policy
    )
    assert record["columns_that_tell_the_place"] == ["hidden"]
