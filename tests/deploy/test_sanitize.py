"""Sanitized tables keep everything but the place, and say what was done."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import sfumato as sf
from sfumato.deploy.one_file import Policy
from sfumato.deploy.release import release
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError, FileError, SfumatoError
from sfumato.mechanism.chance import Sticky
from sfumato.study.measure import measure
from tests.deploy.tables import DATA, checkins, write_parquet

KEY = bytes(range(32))
OTHERS = ["who", "time", "note", "stars", "number"]


def _places(table: pa.Table) -> zip:
    return zip(table["latitude"].to_pylist(), table["longitude"].to_pylist(), strict=True)


def _metres(table: pa.Table) -> np.ndarray:
    assert DATA.train.plane is not None
    return DATA.train.plane.to_metres(
        table["latitude"].to_numpy(), table["longitude"].to_numpy().astype(float)
    )


@pytest.mark.parametrize("kind", ["laplace", "coin", "net", "keeping-net", "bare-laplace"])
def test_other_columns_rows_order_and_types_stay(runs, tmp_path, kind):
    table = checkins(3000)
    source = write_parquet(tmp_path / "in.parquet", table, compression="zstd", row_group_size=700)
    record = sanitize(runs / kind, source, tmp_path / "out.parquet")
    table, found = parquet.read_table(source), parquet.read_table(tmp_path / "out.parquet")
    assert found.schema.equals(table.schema)
    assert found.select(OTHERS).equals(table.select(OTHERS))
    assert record["rows_in"] == record["rows_out"] == 3000
    moved = (found["latitude"].to_numpy() != table["latitude"].to_numpy()).mean()
    assert moved > 0.7  # the coin keeps a fifth of the truths, rounded


def test_csv_keeps_every_other_byte(runs, tmp_path):
    first = '1,48.8571,2.3469,"a, ""b""\r\nsecond line"\r\n'
    rows = [
        '"id",lat,lon,"free text"\r\n',
        first,
        "2,48.8570,2.3470,\r\n",
        "\r\n",
        "3,48.857,2.347,é",
    ]
    (tmp_path / "in.csv").write_bytes("".join(rows).encode())
    sanitize(runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    text = (tmp_path / "out.csv").read_bytes().decode()
    assert text.startswith('"id",lat,lon,"free text"\r\n1,')
    assert (
        ',"a, ""b""\r\nsecond line"\r\n2,' in text and text.endswith(",é") and ",\r\n\r\n3," in text
    )


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_coordinates_are_written_to_the_decimals_of_the_record(runs, tmp_path, ending):
    table = checkins(500).drop_columns(["note"])
    source = tmp_path / f"in.{ending}"
    if ending == "parquet":
        write_parquet(source, table)
    else:
        lines = ["latitude,longitude"] + [f"{a!r},{b!r}" for a, b in _places(table)]
        data = "\n".join(lines).encode()
        source.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    record = sanitize(runs / "laplace", source, tmp_path / f"out.{ending}")
    decimals = record["decimals"]
    if ending == "parquet":
        values = parquet.read_table(tmp_path / "out.parquet")["latitude"].to_numpy()
    else:
        written = (tmp_path / f"out.{ending}").read_bytes()
        text = (gzip.decompress(written) if ending.endswith("gz") else written).decode()
        fields = [line.split(",")[0] for line in text.splitlines()[1:]]
        assert {len(field.split(".")[1]) for field in fields} == {decimals}
        values = np.array([float(field) for field in fields])
    assert np.array_equal(values, np.round(values, decimals))


def test_equal_cells_are_written_as_equal_numbers(runs, tmp_path):
    """Low bits carry nothing: there are as many written places as cells."""
    source = write_parquet(tmp_path / "in.parquet", checkins(20_000))
    sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet")
    grid = release(sf.load_run(runs / "laplace")).grid
    written = set(zip(found["latitude"].to_pylist(), found["longitude"].to_pylist(), strict=True))
    cells = {tuple(cell) for cell in grid.index(_metres(found)).tolist()}
    assert len(written) == len(cells)


def test_points_outside_are_refused_with_count_and_rows_and_nothing_is_written(runs, tmp_path):
    table = checkins(50)
    far = table["latitude"].to_numpy().copy()
    far[[3, 20, 21]] = [40.0, -33.3, 48.9]
    source = write_parquet(tmp_path / "in.parquet", table.set_column(2, "latitude", pa.array(far)))
    with pytest.raises(DataError, match=r"3 of 50 rows .* \(data rows 4, 21, 22\)") as refused:
        sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    assert "40" not in str(refused.value) and "33.3" not in str(refused.value)
    assert sorted(os.listdir(tmp_path)) == ["in.parquet"]
    kept = {}
    for policy in ("drop", "laplace", "clamp"):
        record = sanitize(
            runs / "laplace", source, tmp_path / f"{policy}.parquet", policy=Policy(outside=policy)
        )
        assert record["outside"] == {"policy": policy, "rows": 3}
        kept[policy] = parquet.read_table(tmp_path / f"{policy}.parquet")
    assert kept["drop"]["number"].to_pylist() == [
        row for row in range(50) if row not in (3, 20, 21)
    ]
    near = kept["laplace"]["latitude"].to_numpy()[[3, 20, 21]]
    assert np.all(np.abs(near - far[[3, 20, 21]]) < 0.03) and not np.any(near == far[[3, 20, 21]])
    clamped = kept["clamp"]["latitude"].to_numpy()[[3, 20, 21]]
    assert np.all(np.abs(clamped - 48.857) < 0.04)  # the region is 6500 m wide


def test_laplace_outside_has_the_budgets_loss_far_from_the_plane():
    """For 20,000 points the mean is within 1.5 m of 173 with a chance above 99.9 % (deviation 122 m
    / sqrt n)."""
    from sfumato.deploy.coordinates import laplace_outside
    from sfumato.deploy.release import Release
    from sfumato.randomness import uniforms

    lattice = sf.Grid(side_m=1000, cells=100)
    assert lattice.region is not None
    made = Release(
        sf.mechanism.Identity(),
        sf.Plane(48.0, 2.0),
        lattice.region,
        lattice,
        {"max_loss": 173.0, "loss": 173.0},
    )
    latitude, longitude = np.full(20_000, -33.9), np.full(20_000, 151.2)
    reports = laplace_outside(made, latitude, longitude, uniforms(20_000, 2, seed=1))
    off = np.hypot(*sf.Plane(-33.9, 151.2).to_metres(*reports).T)
    assert abs(off.mean() - 173) < 4  # 0.2 % of a spherical degree and the cell's spread included


def test_rows_without_a_place_stay_without_one(runs, tmp_path):
    table = checkins(20)
    latitude = pa.array(
        [None if row == 4 else value for row, value in enumerate(table["latitude"].to_pylist())]
    )
    source = write_parquet(tmp_path / "in.parquet", table.set_column(2, "latitude", latitude))
    record = sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet")
    assert record["rows_without_place"] == 1
    assert (
        found["latitude"][4].as_py() is None
        and found["longitude"][4].as_py() is None
        and found["latitude"].null_count == 1
    )


def test_impossible_coordinates_are_refused_whatever_the_policy(runs, tmp_path):
    (tmp_path / "in.csv").write_text("lat,lon\n48.857,2.347\n948.5,2.3\n")
    with pytest.raises(DataError, match=r"1 of 2 rows .* \(data rows 2\)") as refused:
        sanitize(
            runs / "laplace",
            tmp_path / "in.csv",
            tmp_path / "out.csv",
            policy=Policy(outside="laplace"),
        )
    assert "948" not in str(refused.value) and not (tmp_path / "out.csv").exists()


def test_columns_that_tell_the_place_are_named_and_dropped_only_when_asked(runs, tmp_path):
    table = checkins(4000)
    venue = [f"v{round(a * 1e4)}-{round(b * 1e4)}" for a, b in _places(table)]
    copy = [f"POINT({b:.6f} {a:.6f})" for a, b in _places(table)]
    told = table.append_column("venue_id", pa.array(venue)).append_column(
        "geometry", pa.array(copy)
    )
    source = write_parquet(tmp_path / "in.parquet", told)
    policy = Policy(keep=("venue_id", "geometry"))
    record = sanitize(runs / "laplace", source, tmp_path / "out.parquet", policy=policy)
    assert record["columns_that_tell_the_place"] == ["geometry", "venue_id"]
    assert "venue_id" in parquet.read_table(tmp_path / "out.parquet").column_names
    record = sanitize(
        runs / "laplace",
        source,
        tmp_path / "less.parquet",
        policy=Policy(drop=("venue_id", "geometry")),
    )
    assert record["columns_that_tell_the_place"] == [] and record["dropped_columns"] == [
        "venue_id",
        "geometry",
    ]
    assert parquet.read_table(tmp_path / "less.parquet").column_names == table.column_names


def test_metadata_that_may_hold_places_is_left_out(runs, tmp_path):
    table = checkins(20).replace_schema_metadata({"geo": '{"bbox": [2.3, 48.8, 2.4, 48.9]}'})
    sanitize(
        runs / "laplace", write_parquet(tmp_path / "in.parquet", table), tmp_path / "out.parquet"
    )
    assert b"bbox" not in (tmp_path / "out.parquet").read_bytes()


def test_of_pandas_notes_only_known_keys_stay(runs, tmp_path):
    column = {"name": "latitude", "field_name": "latitude", "pandas_type": "float64"}
    column |= {"numpy_type": "float64", "metadata": {"bbox": "inner", "num_categories": 3}}
    notes = {
        "columns": [column, {**column, "name": None, "field_name": "gone"}],
        "index_columns": [],
    }
    notes |= {"bbox": "outer", "column_indexes": ["bbox"], "creator": {"library": "bbox"}}
    table = checkins(20).replace_schema_metadata({"pandas": json.dumps(notes)})
    source = write_parquet(tmp_path / "in.parquet", table)
    sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    kept = json.loads(parquet.read_schema(tmp_path / "out.parquet").metadata[b"pandas"])
    assert [one["name"] for one in kept["columns"]] == ["latitude"]
    assert kept["columns"][0]["metadata"] == {"num_categories": 3} and "bbox" not in str(kept)


def test_notes_on_a_column_are_left_out_and_its_number_stays(runs, tmp_path):
    """Also in nested columns; a column's number is how some readers find it."""
    table = checkins(20)
    inner = pa.struct([pa.field("a", pa.int64(), metadata={"bbox": "inner"})])
    lists = pa.list_(pa.field("element", pa.int64(), metadata={"bbox": "of a list"}))
    schema = table.schema.set(
        2, table.schema.field(2).with_metadata({"bbox": "[2.3, 48.8]", "PARQUET:field_id": "7"})
    )
    schema = schema.append(pa.field("box", inner)).append(pa.field("steps", lists))
    columns = [*table.columns, pa.array([{"a": 1}] * 20, inner), pa.array([[1, 2]] * 20, lists)]
    source = write_parquet(tmp_path / "in.parquet", pa.table(columns, schema=schema))
    assert parquet.read_schema(source).field("latitude").metadata[b"bbox"] == b"[2.3, 48.8]"
    sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    found = parquet.read_schema(tmp_path / "out.parquet")
    assert found.field("latitude").metadata == {b"PARQUET:field_id": b"7"}
    fields = (found.field("box").type.field(0), found.field("steps").type.value_field)
    assert not any(b"bbox" in (field.metadata or {}) for field in fields) and found.equals(
        parquet.read_schema(source)
    )


def test_a_dropped_row_leaves_no_value_in_a_dictionary(runs, tmp_path, monkeypatch):
    """Neither in its own block nor in another block of its row group, nor in a nested column."""
    monkeypatch.setattr("sfumato.deploy.parquet_table.BLOCK_ROWS", 20)
    table = checkins(60)
    far = table["latitude"].to_numpy().copy()
    far[45] = 10.0
    words = [
        None if row == 3 else "SECRET-WORD" if row == 45 else f"w{row % 4}" for row in range(60)
    ]
    sizes = pa.DictionaryArray.from_arrays(
        pa.array([row % 3 for row in range(60)], pa.int8()), ["small", "big", "huge"], ordered=True
    )
    told = table.set_column(2, "latitude", pa.array(far)).append_column(
        "word", pa.array(words).dictionary_encode()
    )
    lists = pa.array([[word, "all"] for word in words]).cast(
        pa.list_(pa.dictionary(pa.int32(), pa.string()))
    )
    told = told.append_column("words", lists).append_column("size", sizes)
    source = write_parquet(tmp_path / "in.parquet", told, compression="none")
    sanitize(runs / "laplace", source, tmp_path / "out.parquet", policy=Policy(outside="drop"))
    assert (
        b"SECRET-WORD" in source.read_bytes()
        and b"SECRET-WORD" not in (tmp_path / "out.parquet").read_bytes()
    )
    found, left = (
        parquet.read_table(tmp_path / "out.parquet"),
        [row for row in range(60) if row != 45],
    )
    assert (
        found.schema.equals(parquet.read_schema(source)) and found.schema.field("size").type.ordered
    )
    for name in ("word", "words", "size"):
        assert found[name].to_pylist() == told[name].take(left).to_pylist()
    assert found["size"].chunk(0).dictionary.to_pylist() == ["small", "big", "huge"]


def test_the_record_holds_no_location(runs, tmp_path):
    source = write_parquet(tmp_path / "in.parquet", checkins(2000))
    record = sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    text = (tmp_path / "out.parquet.record.json").read_text()
    assert "hash" not in record["mechanism"]  # mechanism_hash has it
    assert not any(part in text for part in ("48.8", "2.34", "2.35", "plane", "region", "centre"))
    assert record["loss_of_this_table"] == pytest.approx(173, abs=12)  # 122 m / sqrt(2000) = 2.7 m


def test_two_draws_differ_and_an_old_output_is_not_drawn_again(runs, tmp_path):
    source = write_parquet(tmp_path / "in.parquet", checkins(200))
    for name in ("a", "b"):
        sanitize(runs / "laplace", source, tmp_path / f"{name}.parquet")
    one, two = (
        parquet.read_table(tmp_path / f"{name}.parquet")["latitude"].to_pylist() for name in "ab"
    )
    assert one != two
    with pytest.raises(FileError, match="exists"):
        sanitize(runs / "laplace", source, tmp_path / "a.parquet")


def test_a_column_of_users_can_be_used_for_keeping_and_dropped(runs, tmp_path):
    table = checkins(300)
    named = table.rename_columns(["user", *table.column_names[1:]])
    source = write_parquet(tmp_path / "in.parquet", named)
    sanitize(
        runs / "laplace",
        source,
        tmp_path / "out.parquet",
        chance=Sticky(KEY, "forever"),
        policy=Policy(user="user", drop=("user",)),
    )
    assert "user" not in parquet.read_table(tmp_path / "out.parquet").column_names
    with pytest.raises(DataError, match="sanitize dropped the column 'user'") as refused:
        measure(tmp_path / "out.parquet")
    assert refused.value.hint is not None and "keep user" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("lat,lon\n", "0 rows"),
        ("a,b\n1,2\n", "no column for lat"),
        ("lat,lon\n48.857\n", "fields"),
        ("lat,lon\n48.857,x7y\n", "not"),
        ('lat,lon\n"48.857,2.3\n', "data row 1 has a quote"),
        ("lat,lon,lat\n1,2,3\n", "has the column 'lat' twice"),
        ("lat,lon,note,note\n1,2,3,4\n", "has the column 'note' twice"),
        ("\n\nlat,lon\n", "empty"),
    ],
)
def test_a_bad_csv_is_one_sentence_without_values(runs, tmp_path, text, says):
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(SfumatoError, match=says) as refused:
        sanitize(runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    assert "48.8" not in str(refused.value) and "x7y" not in str(refused.value)
    assert os.listdir(tmp_path) == ["in.csv"]


def test_snap_files_are_sanitized_as_they_are(runs, tmp_path):
    lines = [f"{row}\t2010-10-19T23:55:27Z\t48.857\t2.347\t22847\n" for row in range(30)]
    with gzip.open(tmp_path / "in.txt.gz", "wt") as source:
        source.writelines(lines)
    policy = Policy(keep=("user",))
    sanitize(runs / "laplace", tmp_path / "in.txt.gz", tmp_path / "out.txt.gz", policy=policy)
    with gzip.open(tmp_path / "out.txt.gz", "rt") as found:
        fields = [line.rstrip("\n").split("\t") for line in found]
    assert [field[0] for field in fields] == [str(row) for row in range(30)] and {
        field[4] for field in fields
    } == {"22847"}


def test_words_cannot_be_sanitized_with(tmp_path):
    root = Path(__file__).resolve().parents[2] / "examples" / "words"
    table = sf.read_categories(root / "survey.csv", root / "losses.csv")
    sf.solve(sf.Problem(table, max_loss=1.0), sf.Exact()).save(tmp_path / "run")
    (tmp_path / "in.csv").write_text("lat,lon\n1,2\n")
    with pytest.raises(FileError, match="words"):
        sanitize(tmp_path / "run", tmp_path / "in.csv", tmp_path / "out.csv")


@pytest.mark.parametrize("coded", [False, True])
def test_a_parquet_file_of_long_texts_stored_once_is_refused_before_it_fills_memory(
    runs, tmp_path, monkeypatch, coded
):
    """300 rows of one text of 10,000 letters: some kB in the file, 3 MB when unpacked."""
    notes = pa.array(["x" * 10_000] * 300)
    table = checkins(300)
    table = table.append_column("essay", notes.dictionary_encode() if coded else notes)
    write_parquet(tmp_path / "in.parquet", table)
    assert (tmp_path / "in.parquet").stat().st_size < 100_000
    policy = Policy(keep=("who",))
    sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "a.parquet", policy=policy)
    monkeypatch.setattr("sfumato.deploy.parquet_table.MOST_BLOCK_BYTES", 2_000_000)
    with pytest.raises(DataError, match="unpacks to more than 2,000,000 bytes in 131,072 rows"):
        sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "b.parquet", policy=policy)
    assert not (tmp_path / "b.parquet").exists()
    policy = Policy(keep=("who",), drop=("essay",))
    sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "b.parquet", policy=policy)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_sanitizing_imports_no_pandas(runs, tmp_path, ending):
    """It takes as long as a million rows, and pyarrow imports it when it is given a list."""
    table = checkins(3_000)
    source = write_parquet(tmp_path / "in.parquet", table)
    if ending == "csv":
        source = tmp_path / "in.csv"
        csv.write_csv(table, source)
    code = (
        "import sys; from sfumato.deploy.one_file import Policy;"
        " from sfumato.deploy.sanitize import sanitize; run, source, target = sys.argv[1:];"
        f" sanitize(run, source, target, policy=Policy(keep={OTHERS[:1]!r}));"
        " print('pandas' in sys.modules)"
    )
    words = [sys.executable, "-c", code, runs / "laplace", source, tmp_path / f"out.{ending}"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
