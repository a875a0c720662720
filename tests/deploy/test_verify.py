"""What was written is read back by another parser before it gets its name: a writer that is wrong in
any way is caught."""

import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.deploy import csv_table
from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import sanitize
from sfumato.deploy.verify import Noted, streams
from sfumato.errors import DataError
from tests.deploy.tables import checkins, write_parquet


def _csv(path, kind="plain"):
    mark = "" if kind == "plain" else '"'
    rows = [
        f"{mark}n{row}{mark},{48.851111111111 + row / 1e4!r},2.341111111111\n" for row in range(40)
    ]
    if kind == "a line end within":
        rows[3] = rows[3].replace("n3", "n\n3")
    path.write_text("note,lat,lon\n" + "".join(rows))
    return path


def _row_lost(write):
    def wrong(self, block, first, second, keep, users=None):
        lost = np.ones(len(block), dtype=bool)
        lost[5] = False
        noted, self.noted = self.noted, csv_table.Noted()
        write(self, block, first, second, lost, users)
        self.noted = noted
        noted.rows(len(block), None)

    return wrong


def _field_changed(write):
    def wrong(self, block, first, second, keep, users=None):
        if hasattr(block, "records"):
            block.records[7][0] = "other"
        else:
            block.data = block.data.replace(b"n7", b"m7")
        write(self, block, first, second, keep, users)

    return wrong


def _written_unlike_noted(write):
    """The true text stays in the file while the notes say that it was replaced."""

    def wrong(self, block, first, second, keep, users=None):
        true = block.values("lat", np.array([1]))[0]
        write(self, block, first, second, keep, users)
        self._target.write(f"n40,{true},2.341111111111\n".encode())

    return wrong


@pytest.mark.parametrize("kind", ["plain", "quoted", "a line end within"])
@pytest.mark.parametrize("fault", [_row_lost, _field_changed, _written_unlike_noted])
def test_a_wrong_csv_writer_is_caught_and_nothing_is_left(runs, tmp_path, monkeypatch, fault, kind):
    source = _csv(tmp_path / "in.csv", kind)
    monkeypatch.setattr(csv_table.CsvSink, "write", fault(csv_table.CsvSink.write))
    with pytest.raises(DataError, match="read back by another parser and differs in") as refused:
        sanitize(runs / "laplace", source, tmp_path / "out.csv")
    assert "48.85" not in str(refused.value) and os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize("lost", ["a row", "the report", "another column"])
def test_a_wrong_parquet_writer_is_caught_and_nothing_is_left(runs, tmp_path, monkeypatch, lost):
    source = write_parquet(tmp_path / "in.parquet", checkins(60))
    write = parquet.ParquetWriter.write_batch

    def wrong(self, batch, **options):
        if lost == "a row":
            batch = batch.slice(1)
        elif lost == "the report":
            values = batch.column("latitude").to_numpy().copy()
            values[3] = checkins(60)["latitude"][3].as_py()
            batch = batch.set_column(2, batch.schema.field(2), pa.array(values))
        else:
            place = batch.schema.get_field_index("number")
            turned = batch.column("number").take(pa.array(np.arange(60)[::-1]))
            batch = batch.set_column(place, batch.schema.field(place), turned)
        write(self, batch, **options)

    monkeypatch.setattr(parquet.ParquetWriter, "write_batch", wrong)
    with pytest.raises(DataError, match="read back by another parser and differs in"):
        sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["in.parquet"]


LATITUDE, LONGITUDE = 48.851234567891, 2.341234567891


def _hidden(kind: str) -> str:
    return {
        "the text": f"{LATITUDE!r}",
        "zeros": f"{LATITUDE!r}000",
        "five decimals": f"at {LATITUDE:.5f}",
        "seven decimals": f"[{LONGITUDE:.7f}]",
        "a decimal comma": f"{LATITUDE:.6f}".replace(".", ","),
        "ten-millionths": f"{round(LATITUDE * 1e7)}",
        "millionths in a text": f"id {round(LATITUDE * 1e6)} end",
        "another row's": f"{LATITUDE + 1e-4!r}",
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "the text",
        "zeros",
        "five decimals",
        "seven decimals",
        "a decimal comma",
        "ten-millionths",
        "millionths in a text",
        "another row's",
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_one_true_coordinate_in_one_row_of_thousands_is_found(runs, tmp_path, kind, ending):
    """Where a share of rows would not show: row 7,000 of 9,000."""
    rows = 9000
    notes = [f"note {row * 7919 % 1000}" for row in range(rows)]
    notes[7000] = _hidden(kind)
    latitude = np.full(rows, 48.85) + np.arange(rows) * 1e-7
    longitude = np.full(rows, 2.34) + np.arange(rows) * 1e-7
    latitude[7000], longitude[7000], latitude[10] = LATITUDE, LONGITUDE, LATITUDE + 1e-4
    table = pa.table({"lat": latitude, "lon": longitude, "note": notes})
    source = tmp_path / f"in.{ending}"
    if ending == "parquet":
        write_parquet(source, table)
    else:
        from pyarrow import csv

        packed = pa.CompressedOutputStream if "gz" in ending else None
        with pa.OSFile(str(source), "wb") as raw:
            target = packed(raw, "gzip") if packed else raw
            csv.write_csv(table, target)
            target.close()
    with pytest.raises(DataError, match="'note'") as refused:
        sanitize(runs / "laplace", source, tmp_path / f"out.{ending}")
    assert "48.85" not in f"{refused.value} {refused.value.hint}"
    assert os.listdir(tmp_path) == [f"in.{ending}"]
    policy = Policy(keep=("note",))
    assert sanitize(runs / "laplace", source, tmp_path / f"out.{ending}", policy=policy)


def test_a_mechanism_that_reports_the_truth_is_not_refused_for_it(runs, tmp_path):
    """The coin keeps some truths: on the middle of a cell that is the same number, and was drawn."""
    from sfumato.deploy.release import release

    released = release(sf.load_run(runs / "coin"))
    centres = released.grid.snap(np.zeros((1, 2)) + np.arange(400)[:, None] % 20 * 50.0)
    latitude, longitude = released.written(centres)
    table = pa.table({"lat": latitude, "lon": longitude, "number": np.arange(400)})
    source = write_parquet(tmp_path / "in.parquet", table)
    policy = Policy(over_budget=True)  # these truths are not the run's
    sanitize(runs / "coin", source, tmp_path / "out.parquet", policy=policy)
    found = parquet.read_table(tmp_path / "out.parquet")["lat"].to_numpy()
    assert 0.02 < (found == latitude).mean() < 0.9


def test_a_true_coordinate_in_a_columns_name_is_refused(runs, tmp_path):
    name = f"near {LATITUDE!r}"
    table = pa.table({"lat": [LATITUDE] * 3, "lon": [LONGITUDE] * 3, name: [1, 2, 3]})
    write_parquet(tmp_path / "in.parquet", table)
    (tmp_path / "in.csv").write_text(f"lat,lon,{name}\n{LATITUDE!r},{LONGITUDE!r},1\n")
    for ending in ("csv", "parquet"):
        with pytest.raises(DataError, match="column 3 holds a number like a coordinate"):
            sanitize(runs / "laplace", tmp_path / f"in.{ending}", tmp_path / f"out.{ending}")


def test_random_numbers_of_many_digits_are_not_taken_for_coordinates(runs, tmp_path):
    """30,000 rows with three columns in the range of the coordinates: chance agrees in seven digits
    about 0.02 times."""
    random = np.random.default_rng(8)
    rows = 30_000
    columns = {
        "lat": 48.85 + random.uniform(0, 0.01, rows),
        "lon": 2.34 + random.uniform(0, 0.01, rows),
        "price": random.uniform(0, 100, rows),
        "score": random.uniform(0, 3, rows).round(7),
        "number": random.integers(0, 10**9, rows),
    }
    source = write_parquet(tmp_path / "in.parquet", pa.table(columns))
    assert sanitize(runs / "laplace", source, tmp_path / "out.parquet")["rows_out"] == rows


def test_a_table_whose_rows_are_all_dropped_is_written_empty(runs, tmp_path):
    (tmp_path / "in.csv").write_text("lat,lon\n10.5,10.5\n")
    record = sanitize(
        runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv", policy=Policy(outside="drop")
    )
    assert record["rows_out"] == 0 and (tmp_path / "out.csv").read_text() == "lat,lon\n"


def test_truths_of_other_rows_are_found_across_small_row_groups(runs, tmp_path):
    """Arrow gives a dictionary's groups one by one: a block is then a single row."""
    random = np.random.default_rng(4)
    latitude = (48.857 + random.uniform(-0.01, 0.01, 7)).round(10)
    other = pa.array([repr(value) for value in np.roll(latitude, 1).tolist()]).dictionary_encode()
    table = pa.table({"lat": latitude, "lon": np.full(7, 2.3471), "a": other})
    source = write_parquet(tmp_path / "in.parquet", table, row_group_size=1)
    with pytest.raises(DataError, match="'a'"):
        sanitize(runs / "laplace", source, tmp_path / "out.parquet")


def test_a_place_of_four_decimals_in_one_note_of_thousands_is_found(runs, tmp_path):
    """Too few digits for either coordinate alone, and in too few rows to call the column a copy."""
    rows = 3_000
    random = np.random.default_rng(6)
    latitude = (48.857 + random.uniform(-0.01, 0.01, rows)).round(5)
    longitude = (2.347 + random.uniform(-0.01, 0.01, rows)).round(5)
    notes = [f"visit {row}, 12.3456 paid" for row in range(rows)]
    table = {"lat": latitude, "lon": longitude, "a": notes}
    source = write_parquet(tmp_path / "in.parquet", pa.table(table))
    assert sanitize(runs / "laplace", source, tmp_path / "out.parquet")["rows_out"] == rows
    notes[1_777] = f"we met at {longitude[1_777]:.4f} {latitude[1_777]:.4f}"
    source = write_parquet(tmp_path / "told.parquet", pa.table(table))
    with pytest.raises(DataError, match="true coordinates are in other columns, 'a'"):
        sanitize(runs / "laplace", source, tmp_path / "told-out.parquet")
    assert not (tmp_path / "told-out.parquet").exists()


def test_the_checksum_of_texts_does_not_hang_on_where_blocks_end():
    texts = pa.array([b"a", b"", b"bcd", b"", b"e"], pa.binary())
    one, two = Noted(), Noted()
    one.columns([streams(texts)])
    for part in (texts[:2], texts[2:2], texts[2:]):
        two.columns([streams(part)])
    assert one.checksums == two.checksums
    moved = Noted()
    moved.columns([streams(pa.array([b"a", b"b", b"cd", b"", b"e"], pa.binary()))])
    assert moved.checksums != one.checksums  # the same bytes, cut elsewhere


def test_numbers_that_hardly_repeat_are_written_without_a_dictionary(runs, tmp_path):
    table = checkins(40_000)
    every = np.arange(len(table))
    table = table.append_column("row", pa.array(every * 7919 % 1_000_003))
    table = table.append_column("kind", pa.array(every % 5))
    write_parquet(tmp_path / "in.parquet", table)
    policy = Policy(keep=("who", "row"))
    sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "out.parquet", policy=policy)
    group = parquet.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert columns["kind"].has_dictionary_page and not columns["row"].has_dictionary_page
    assert parquet.read_table(tmp_path / "out.parquet")["row"].equals(table["row"])


def test_times_are_written_as_steps_from_row_to_row(runs, tmp_path):
    """Times of every kind, with gaps; those of a log take a quarter of their bytes at most."""
    table, every = checkins(40_000), np.arange(40_000)
    times = {
        "at": pa.array(1_262_304_000 + every * 37, pa.timestamp("s")),
        "local": pa.array(1_262_304_000_000_000 + every * 37_123_457, pa.timestamp("us", "CET")),
        "exact": pa.array(1_262_304_000_000_000_000 + every * 37, pa.timestamp("ns")),
        "day": pa.array((every * 31 % 40_009 - 9).astype(np.int32), pa.date32()),
        "date": pa.array(every * 86_400_000, pa.date64()),
        "clock": pa.array((every * 7 % 86_399).astype(np.int32), pa.time32("s")),
        "fine": pa.array(every * 1_234_567 % 86_399_999_999, pa.time64("us")),
        "took": pa.array(every * 7919 % 1_000_003 - 5, pa.duration("ms"), mask=every % 997 == 3),
    }
    for name, column in times.items():
        table = table.append_column(name, column)
    write_parquet(tmp_path / "in.parquet", table)
    policy = Policy(keep=("who", *times))
    sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "out.parquet", policy=policy)
    before, after = (parquet.read_table(tmp_path / name) for name in ("in.parquet", "out.parquet"))
    group = parquet.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    for name in times:
        assert before[name].equals(after[name]) and before.schema.field(name) == after.field(name)
        assert "DELTA_BINARY_PACKED" in columns[name].encodings, name
    assert columns["at"].total_uncompressed_size < 80_000


def test_times_whose_name_is_also_that_of_a_part_of_a_column_are_written(runs, tmp_path):
    """Parquet names a part by its path, `seen.at`, and a text cannot be written as steps."""
    table, rows = checkins(40_000), 40_000
    texts = pa.array(["here", "there"] * (rows // 2))
    table = table.append_column("seen", pa.StructArray.from_arrays([texts], ["at"]))
    table = table.append_column("seen.at", pa.array(np.arange(rows) * 37, pa.timestamp("ms")))
    write_parquet(tmp_path / "in.parquet", table)
    policy = Policy(keep=("who", "seen", "seen.at"))
    sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "out.parquet", policy=policy)
    after = parquet.read_table(tmp_path / "out.parquet")
    assert all(after[name].equals(table[name]) for name in ("seen", "seen.at"))
