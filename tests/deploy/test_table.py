"""Reports for Arrow tables: the same bytes again, no truth beside them, nothing else touched."""

import json
import shutil
import struct

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.deploy.geometry import decode, encode
from sfumato.deploy.release import release
from sfumato.deploy.table import Reporter
from sfumato.errors import DataError, FileError
from sfumato.mechanism.chance import Keyed, Rows
from sfumato.study.folder import keep_reports, load_run
from sfumato.study.record import Keeping
from tests.deploy.tables import checkins

KEY = bytes(range(32))
ROWS = 1200


def table_of(rows: int = ROWS) -> pa.Table:
    return checkins(rows).rename_columns(["user", "time", "lat", "lon", "note", "stars", "number"])


def report(table, runs, **options):
    return sf.deploy.report(
        table, runs / "laplace", key=KEY, row="number", **{"drop": "user", **options}
    )


def geometry_of(table: pa.Table, **notes) -> pa.Table:
    """The same places as GeoParquet has them, read by pyarrow."""
    latitude = table["lat"].to_numpy()
    longitude = table["lon"].to_numpy().astype(float)
    box = pa.StructArray.from_arrays(
        [pa.array(v) for v in (longitude, latitude, longitude, latitude)],
        ["xmin", "ymin", "xmax", "ymax"],
    )
    geo = {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {
            "geometry": {
                "encoding": "WKB",
                "geometry_types": ["Point"],
                "bbox": [longitude.min(), latitude.min(), longitude.max(), latitude.max()],
                **notes,
            }
        },
    }
    made = table.drop_columns(["lat", "lon"])
    made = made.append_column("geometry", encode(latitude, longitude, pa.binary()))
    return made.append_column("bbox", box).replace_schema_metadata({"geo": json.dumps(geo)})


def test_rows_order_and_other_columns_stay_and_places_change(runs):
    table = table_of()
    made = report(table, runs)
    assert made.num_rows == ROWS and made.column_names == [
        name for name in table.column_names if name != "user"
    ]
    for name in ("time", "note", "stars", "number"):
        assert made[name].equals(table[name]) and made[name].type == table[name].type
    assert made["lat"].type == table["lat"].type and made["lon"].type == table["lon"].type
    same = np.isclose(made["lat"].to_numpy(), table["lat"].to_numpy(), rtol=0, atol=1e-7)
    assert same.mean() < 0.01


def test_a_row_has_the_same_report_in_any_order_and_in_any_piece(runs):
    table = table_of()
    whole = report(table, runs)
    shuffled = np.random.default_rng(1).permutation(ROWS)
    again = report(table.take(pa.array(shuffled)), runs)
    assert again.equals(whole.take(pa.array(shuffled)))
    part = report(table.slice(700, 40), runs)
    assert part.equals(whole.slice(700, 40))
    batch = table.slice(700, 40).combine_chunks().to_batches()[0]
    assert pa.Table.from_batches([report(batch, runs)]).equals(part)


@pytest.mark.parametrize("change", ["key", "mechanism", "row", "user", "time"])
def test_another_key_mechanism_row_user_or_time_is_another_draw(runs, change):
    table = table_of(300)
    options = {"key": KEY, "row": "number", "drop": "user"}
    run, other, asked = runs / "laplace", table, dict(options)
    if change == "key":
        asked["key"] = bytes(32)
    if change == "mechanism":
        run = runs / "bare-laplace"
    if change == "row":
        other = table.set_column(6, "number", pa.array(np.arange(300) + 10_000))
    if change == "user":
        other = table.set_column(0, "user", pa.array(["x"] * 300))
    if change == "time":
        other = table.set_column(1, "time", pa.array(np.arange(300)))
    one = sf.deploy.report(table, runs / "laplace", **options)
    two = sf.deploy.report(other, run, **asked)
    same = [one[axis].to_numpy() == two[axis].to_numpy() for axis in ("lat", "lon")]
    # Two draws share a row of 50 m cells one time in ten, so a cell one time in a hundred; of 300
    # rows, 15 are more than six standard deviations.
    assert np.mean(same[0] & same[1]) < 0.05


def test_a_corrected_place_is_drawn_afresh_so_that_the_noise_does_not_cancel():
    """With one chance for two truths the difference of reports would be that of the truths."""
    chance = Keyed(KEY, "m", by_user=False, by_time=False)
    names = Rows(names=np.array(["a"], dtype=object))
    (_, one), (_, two), (_, same) = (
        chance.of(np.array([[x, 0.0]]), names, 2) for x in (1.0, 1.002, 1.0)
    )
    assert (one == same).all() and (one != two).all()


def test_users_and_rows_do_not_run_into_each_other():
    chance = Keyed(KEY, "m", by_time=False)
    truth = np.zeros((2, 2))
    rows = Rows(
        users=np.array(["ab", "a"], dtype=object), names=np.array(["c", "bc"], dtype=object)
    )
    numbers = chance.of(truth, rows, 2)[1]
    assert (numbers[0] != numbers[1]).all()


def test_keyed_numbers_are_even(runs):
    """400,000 numbers in 20 bins: a bin off by a twentieth would be 7 standard deviations."""
    rows = Rows(names=np.arange(50_000).astype(str).astype(object))
    chance = Keyed(KEY, "m", by_user=False, by_time=False)
    numbers = chance.of(np.zeros((50_000, 2)), rows, 8)[1]
    bins = np.bincount((numbers.ravel() * 20).astype(int), minlength=20) / 20_000
    assert numbers.min() >= 0 and numbers.max() < 1 and np.abs(bins - 1).max() < 0.04
    assert abs(np.corrcoef(numbers.T) - np.eye(8)).max() < 0.025


def test_without_a_key_it_is_refused_with_the_reason(runs):
    with pytest.raises(DataError, match="second draw of a row reveals more than one"):
        sf.deploy.report(table_of(5), runs / "laplace", row="number", drop="user")


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_the_wrong_length_is_refused(runs, length):
    with pytest.raises(FileError, match=f"32 bytes; got {length}"):
        sf.deploy.report(table_of(5), runs / "laplace", key=bytes(length), row="number")


def test_rows_that_nothing_tells_apart_are_refused(runs):
    table = table_of(5).select(["lat", "lon", "note"])
    with pytest.raises(DataError, match="must be identified"):
        sf.deploy.report(table, runs / "laplace", key=KEY)


def test_user_and_time_tell_rows_apart(runs):
    table = table_of(50)
    made = sf.deploy.report(table, runs / "laplace", key=KEY, drop="user")
    assert made.num_rows == 50 and made.equals(
        sf.deploy.report(table, runs / "laplace", key=KEY, drop="user")
    )


def _staying(rows: int) -> pa.Table:
    """Rows of one user at one place, a minute apart."""
    return pa.table(
        {
            "user": ["ann"] * rows,
            "time": [1_578_268_800 + 60 * row for row in range(rows)],
            "lat": [48.8584] * rows,
            "lon": [2.3482] * rows,
        }
    )


def test_a_run_that_keeps_reports_is_followed(runs, tmp_path):
    shutil.copytree(runs / "laplace", tmp_path / "run")
    table = _staying(60)
    run = load_run(tmp_path / "run")
    options = {"key": KEY, "drop": "user"}
    fresh = sf.deploy.report(table, run, **options)
    run = keep_reports(run, Keeping("week"))
    made = sf.deploy.report(table, tmp_path / "run", **options)
    assert len(fresh["lat"].unique()) > 10 and len(made["lat"].unique()) == 1
    reporter = Reporter.of(run, row=None, **options)
    assert Reporter.from_parts(*reporter.as_parts()).whole(table).equals(made)
    for name, drop in (("user", ()), ("time", "user")):
        with pytest.raises(DataError, match=f"no column of the {name}, and the run keeps"):
            sf.deploy.report(table.drop_columns(name), run, key=KEY, row="lat", drop=drop)
    with pytest.raises(DataError, match="reports are kept for a week; expected the run itself"):
        sf.deploy.report(table, release(run), **options)
    never = keep_reports(run, Keeping("never"))
    assert sf.deploy.report(table, never, **options).equals(fresh)
    assert sf.deploy.report(table, release(never), **options).equals(fresh)


@pytest.mark.parametrize("name", ["outside", "new_places"])
@pytest.mark.parametrize("value", ["foo", "", None, "Refuse"])
def test_an_unknown_rule_is_refused(runs, name, value):
    with pytest.raises(DataError, match=f"is one of .*refuse.*; got {value!r}"):
        report(table_of(5), runs, **{name: value})


def test_unknown_arguments_are_refused_in_a_sentence(runs):
    with pytest.raises(TypeError, match="no argument 'drops'; expected lat, lon"):
        report(table_of(5), runs, drops="lat")
    with pytest.raises(DataError, match=r"is a Pseudonym.*; got a str"):
        report(table_of(5), runs, pseudonym="day")


def test_rows_that_share_a_name_are_refused(runs):
    for table, row, repeats in (
        (_staying(9).append_column("number", pa.array([1, 2, 3] * 3)), "number", None),
        (_staying(9).drop_columns("time").append_column("n", pa.array(["a"] * 9)), "n", 8),
        (_staying(9).set_column(1, "time", pa.array([0, 1, 2] * 3)), None, 6),
    ):
        options = {"key": KEY, "row": row, "drop": "user"}
        if repeats is None:
            assert sf.deploy.report(table, runs / "laplace", **options).num_rows == 9
            continue
        with pytest.raises(DataError, match=f"{repeats} of 9 rows repeat another row's 'user', '"):
            sf.deploy.report(table, runs / "laplace", **options)


def _under_nulls(latitude: np.ndarray) -> dict[str, pa.Array]:
    """Columns without a value, whose memory holds latitudes."""
    count = len(latitude)
    nothing = pa.array([True] * count)
    empty = pa.py_buffer(bytes(-(-count // 8)))
    bare = pa.Array.from_buffers(pa.float64(), count, [empty, pa.py_buffer(latitude.tobytes())])
    true, each = pa.array(latitude), pa.array(np.arange(count + 1), pa.int32())
    struct = pa.StructArray.from_arrays([true], ["a"], mask=nothing)
    return {
        "bare": bare,
        "in a struct": pa.StructArray.from_arrays([bare], ["a"]),
        "a struct": struct,
        "a list": pa.ListArray.from_arrays(each, true, mask=nothing),
        "empty lists": pa.ListArray.from_arrays(pa.array([0] * (count + 1), pa.int32()), true),
        "structs in lists": pa.ListArray.from_arrays(each, struct),
        "codes": pa.DictionaryArray.from_arrays(bare.view(pa.int64()), pa.array(["a"])),
    }


@pytest.mark.parametrize("name", list(_under_nulls(np.zeros(1))))
def test_what_lies_under_nulls_is_not_sent_along(runs, name):
    table = table_of(50)
    latitude = table["lat"].to_numpy()
    column = _under_nulls(latitude)[name]
    table = table.append_column("extra", column)

    def bytes_of(made: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, made.schema) as writer:
            writer.write_table(made)
        return sink.getvalue().to_pybytes()

    assert latitude[7].tobytes() in bytes_of(table.select(["extra"])) or name == "empty lists"
    made = report(table, runs)
    assert made["extra"].to_pylist() == column.to_pylist() and made["extra"].type == column.type
    made.validate(full=True)
    sent = bytes_of(made.select(["extra"]))
    assert not any(one.tobytes() in sent for one in latitude)


def test_parts_build_the_same_reporter_once(runs):
    reporter = Reporter.of(runs / "laplace", key=KEY, row="number", drop=["user"])
    parts = reporter.as_parts()
    again = Reporter.from_parts(*parts)
    assert again is Reporter.from_parts(*parts)
    table = table_of(50)
    assert again.whole(table).equals(reporter.whole(table))


def test_a_geometry_its_box_and_its_notes_become_the_reports(runs):
    table = table_of(400)
    plain = report(table, runs)
    made = report(geometry_of(table), runs)
    latitude, longitude = decode(
        made["geometry"].combine_chunks(), name="geometry", source="the table"
    )
    np.testing.assert_array_equal(latitude, plain["lat"].to_numpy())
    box = made["bbox"].combine_chunks()
    for side, values in (("xmin", longitude), ("xmax", longitude), ("ymin", latitude)):
        np.testing.assert_array_equal(box.field(side).to_numpy(), values)
    notes = json.loads(made.schema.metadata[b"geo"])
    assert notes["columns"]["geometry"] == {
        "encoding": "WKB",
        "geometry_types": ["Point"],
        "covering": {"bbox": {side: ["bbox", side] for side in ("xmin", "ymin", "xmax", "ymax")}},
    }


def test_a_geometry_beside_coordinates_gets_the_same_report(runs):
    table = table_of(400)
    both = geometry_of(table)
    both = both.append_column("lat", table["lat"]).append_column("lon", table["lon"])
    made = report(both, runs)
    latitude, _ = decode(made["geometry"].combine_chunks(), name="geometry", source="the table")
    np.testing.assert_array_equal(latitude, made["lat"].to_numpy())
    assert made["lat"].equals(report(table, runs)["lat"])


def test_points_of_either_byte_order_with_height_or_reference_are_read():
    x, y = 2.25, 48.5
    forms = [
        b"\x01" + np.array([1], "<u4").tobytes() + np.array([x, y], "<f8").tobytes(),
        b"\x00" + np.array([1], ">u4").tobytes() + np.array([x, y], ">f8").tobytes(),
        b"\x01" + np.array([1001], "<u4").tobytes() + np.array([x, y, 9], "<f8").tobytes(),
        b"\x01" + np.array([0x20000001, 4326], "<u4").tobytes() + np.array([x, y], "<f8").tobytes(),
        None,
    ]
    latitude, longitude = decode(pa.array(forms, pa.binary()), name="g", source="t")
    assert latitude[:4].tolist() == [y] * 4 and longitude[:4].tolist() == [x] * 4
    assert np.isnan(latitude[4])
    assert encode(latitude, longitude, pa.large_binary())[4].as_py() is None


def _line() -> bytes:
    return b"\x01" + np.array([2, 1], "<u4").tobytes() + np.array([2.0, 48.0], "<f8").tobytes()


def _bad_tables() -> dict[str, tuple]:
    table = table_of(60)
    geo = geometry_of(table)
    lines = [_line() if row % 2 else value for row, value in enumerate(geo["geometry"].to_pylist())]
    place = geo.column_names.index("geometry")
    second = geo.append_column("geom2", geo["geometry"])
    notes = json.loads(second.schema.metadata[b"geo"])
    notes["columns"]["geom2"] = notes["columns"]["geometry"]
    metres = {"crs": {"id": {"authority": "EPSG", "code": 2154}}}
    struct = pa.StructArray.from_arrays([table["lat"].combine_chunks()], ["value"])
    holes = pa.array([None, *range(59)])
    return {
        "0 rows": (table.slice(0, 0), "0 rows"),
        "a struct as latitude": (table.set_column(2, "lat", struct), "'lat' holds struct"),
        "a list as row name": (
            table.set_column(6, "number", pa.array([[1]] * 60)),
            "column 'number' holds list",
        ),
        "a missing row name": (table.set_column(6, "number", holes), "have no value in 'number'"),
        "a missing time": (table.set_column(1, "time", holes), "have no value in 'time'"),
        "several geometries": (
            second.replace_schema_metadata({"geo": json.dumps(notes)}),
            "several geometries, geometry, geom2",
        ),
        "mixed geometry types": (
            geo.set_column(place, "geometry", pa.array(lines)),
            "holds LineString; expected points",
        ),
        "bytes that are no WKB": (
            geo.set_column(place, "geometry", pa.array([b"\x01"] * 60)),
            "not well-known binary",
        ),
        "a CRS without definition": (geometry_of(table, crs=None), "without definition"),
        "a CRS in metres": (geometry_of(table, **metres), "not in longitude and latitude"),
        "a place outside": (
            table.set_column(2, "lat", pa.array(np.full(60, 10.0))),
            "60 of 60 rows hold places outside",
        ),
        "a copy of a coordinate": (
            table.append_column("y_again", table["lat"]),
            "'y_again' \\(a copy of a coordinate\\)",
        ),
    }


@pytest.mark.parametrize("case", _bad_tables())
def test_bad_tables_are_one_sentence(runs, case):
    table, words = _bad_tables()[case]
    with pytest.raises(DataError, match=words) as refused:
        report(table, runs)
    assert "\n" not in str(refused.value)


def _millionths(table):
    return (table["lat"].to_numpy() * 1e6).round().astype("int64")


def _packed(form):
    return lambda table: pa.array(
        [struct.pack(form, int(number)) for number in _millionths(table)],
        pa.binary(struct.calcsize(form)),
    )


DISGUISED = {
    "whole numbers in bytes": _packed("<i"),
    "whole numbers in bytes, the other order": _packed(">q"),
    "a float in bytes": lambda table: pa.array(
        [struct.pack("<f", value) for value in table["lat"].to_pylist()], pa.binary(4)
    ),
    "a duration": lambda table: pa.array(_millionths(table), pa.duration("us")),
    "a time": lambda table: pa.array(_millionths(table), pa.timestamp("s", tz="UTC")),
    "a time of day": lambda table: pa.array(_millionths(table), pa.time64("us")),
    "a date": lambda table: pa.array((_millionths(table) // 10).astype("int32"), pa.date32()),
    "times in a dictionary": lambda table: pa.array(
        _millionths(table), pa.timestamp("us")
    ).dictionary_encode(),
    "a duration within": lambda table: pa.array(
        [{"a": int(number)} for number in _millionths(table)],
        pa.struct([("a", pa.duration("us"))]),
    ),
    "a view of text": lambda table: table["lat"].cast(pa.string()).cast(pa.string_view()),
}


@pytest.mark.parametrize("kind", DISGUISED)
def test_a_latitude_that_calls_itself_something_else_is_refused(runs, kind):
    table = table_of(300)
    with pytest.raises(DataError, match=r"reveals the place in other columns: 'other' \(a c"):
        report(table.append_column("other", DISGUISED[kind](table)), runs)


def test_views_durations_and_bytes_that_tell_nothing_pass(runs):
    table, random = table_of(300), np.random.default_rng(8)
    others = {
        "view": pa.array([f"shop {number % 7}" for number in range(300)]).cast(pa.string_view()),
        "took": pa.array(random.integers(0, 90_000, 300), pa.duration("s")),
        "day": pa.array(random.integers(14_000, 15_000, 300).astype("int32"), pa.date32()),
        "tag": pa.array([random.bytes(8) for _ in range(300)], pa.binary(8)),
    }
    for name, column in others.items():
        table = table.append_column(name, column)
    made = report(table, runs)
    for name in others:
        assert made[name].type == table[name].type
        assert made[name].to_pylist() == table[name].to_pylist()


def test_runs_are_refused_in_a_sentence_that_says_what_to_do(runs):
    ends, value = pa.array([300], pa.int32()), pa.array(["x"])
    table = table_of(300).append_column("r", pa.RunEndEncodedArray.from_arrays(ends, value))
    with pytest.raises(DataError, match=r"column 'r' holds run_end_encoded.*run_end_decode"):
        report(table, runs)
    assert report(table, runs, drop=("user", "r")).num_rows == 300


def test_nullable_coordinates_stay_empty(runs):
    table = table_of(60)
    holes = pa.array(
        [None if row % 5 == 0 else v for row, v in enumerate(table["lat"].to_pylist())]
    )
    made = report(table.set_column(2, "lat", holes), runs)
    assert made["lat"].null_count == made["lon"].null_count == 12


def test_a_time_that_is_empty_is_refused_with_what_to_do(runs):
    table = table_of(30).set_column(1, "time", pa.array([None] * 30, pa.timestamp("s")))
    with pytest.raises(DataError, match="expected a time in each row") as refused:
        report(table, runs)
    assert "take it out of the table" in refused.value.hint
    assert report(table.drop_columns(["time"]), runs).num_rows == 30


def test_the_user_must_be_spoken_of(runs):
    with pytest.raises(DataError, match="names the user in its column 'user'"):
        report(table_of(5), runs, drop=())


def test_what_is_no_table_is_refused(runs):
    with pytest.raises(DataError, match=r"a builtins\.dict came"):
        report({"lat": [1.0]}, runs)


def test_values_of_other_rows_leave_dictionaries(runs):
    table = table_of(60)
    coded = pa.array([f"secret {row}" for row in range(60)]).dictionary_encode()
    made = report(table.append_column("coded", coded).slice(0, 10), runs)
    assert made["coded"].chunk(0).dictionary.to_pylist() == [f"secret {row}" for row in range(10)]
