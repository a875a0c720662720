"""The CSV grammar: what two readers could read in two ways is refused, with its row."""

import gzip
import io
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sfumato.deploy import csv_table, one_file
from sfumato.deploy.csv_table import CsvTable
from sfumato.deploy.one_file import Answers, Policy
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError
from sfumato.mechanism.chance import Sticky

HEAD = "who,note,lat,lon\n"
ROW = "u1,fine,48.851111111111,2.341111111111\n"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (  # the report that found it: two bare quotes glue two rows into one
            'who,note,lat,lon\nu1,5" pipe,48.851111111111,2.341111111111\n'
            'u2,6" pipe,48.862222222222,2.352222222222\n',
            "data row 1",
        ),
        (HEAD + ROW + 'u2,a "b" c,48.862222222222,2.352222222222\n', "data row 2"),
        (HEAD + ROW + 'u2,"a\\"b",48.862222222222,2.352222222222\n', "data row 2"),
        (HEAD + ROW + 'u2,"a"b,48.862222222222,2.352222222222\n', "data row 2"),
        (HEAD + ROW + 'u2, "a",48.862222222222,2.352222222222\n', "data row 2"),
        (HEAD + ROW + '"u2,b,48.862222222222,2.352222222222\n', "data row 2"),
        (HEAD + ROW + 'u2,b,48.862222222222,2.352222222222"\n' + ROW, "data row 2"),
        (HEAD + '"u,1",x,48.851111111111,2.341111111111"\n' + ROW, "data row 1"),
        ('who,"note,lat,lon\n' + ROW, "its first line"),
        (
            HEAD + ROW + 'u2,",48.862222222222,2.352222222222\nu3,",48.863333333333,2.35\n',
            "data row 2",
        ),
        (HEAD + ROW + "u2,a\rb,48.862222222222,2.352222222222\n", "data row 2"),
        (HEAD + ROW + "u2,a\0b,48.862222222222,2.352222222222\n", "data row 2"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_quote_out_of_place_is_refused_with_its_row(runs, tmp_path, text, row, ending):
    data = text.encode()
    (tmp_path / f"in.{ending}").write_bytes(gzip.compress(data) if "gz" in ending else data)
    with pytest.raises(DataError, match=row) as refused:
        sanitize(runs / "laplace", tmp_path / f"in.{ending}", tmp_path / f"out.{ending}")
    assert not any(part in str(refused.value) for part in ("48.8", "2.34", "11111", "22222"))
    assert os.listdir(tmp_path) == [f"in.{ending}"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_other_byte_stays_whatever_the_dialect(runs, tmp_path, end, delimiter, mark):
    rows = [
        ['"the ""who"""', "lat", "lon", '"a, b; c|d\te"'],
        ['"u\n1"', "48.851111111111", "2.341111111111", '""""'],
        ["", '"48.862222222222"', "2.352222222222", "é\u2028\x85"],
    ]
    text = mark + "".join(delimiter.join(row) + end for row in rows)
    (tmp_path / "in.csv").write_bytes(text.encode())
    record = sanitize(runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    found = (tmp_path / "out.csv").read_bytes().decode()
    written = [line[1:3] for line in _cut(found.removeprefix(mark), rows, delimiter, end)]
    assert record["rows_in"] == 2 and written[0] == ["lat", "lon"]
    for row, (lat, lon) in zip(rows, written, strict=True):
        row[1:3] = [lat, lon]
    assert found == mark + "".join(delimiter.join(row) + end for row in rows)


_LINES = (
    "u{0},fine,48.85{0:04d}1111,2.34111{0:04d}",
    "u{0},,48.85{0:04d}1111,2.34111{0:04d}",
    "é{0}, x ,48.85{0:04d}1111, 2.34111{0:04d}",
    "u{0},y,,",
    'u{0},"quoted, {0}",48.85{0:04d}1111,2.34111{0:04d}',
    '"u{0}","say ""{0}"", or """,  "48.85{0:04d}1111","2.34111{0:04d}"'.replace("  ", ""),
    '"","","",""',
    'u{0},"two\nlines",48.85{0:04d}1111,2.34111{0:04d}',
)


@pytest.mark.parametrize(
    "kinds", ["000000", "012010", "0003", "0024", "0004000", "5", "0506", "0045", "55500005557"]
)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n", "mixed", "unended"])
@pytest.mark.parametrize("drop", [(), ("note",), ("who",)])
def test_lines_are_written_as_records_one_by_one_are(
    runs, tmp_path, monkeypatch, kinds, ends, drop
):
    """Two ways to read and write, the same bytes, wherever blocks are cut."""
    rows = [
        _LINES[int(kinds[row % len(kinds)])].format(row)
        + {"mixed": "\n" if row % 7 else "\r\n", "unended": "\n"}.get(ends, ends)
        for row in range(60)
    ]
    text = HEAD + "".join(rows)
    (tmp_path / "in.csv").write_bytes((text.rstrip() if ends == "unended" else text).encode())
    monkeypatch.setattr(csv_table, "_BLOCK_BYTES", 400)
    for name in ("plain", "one by one"):
        sanitize(
            runs / "laplace",
            tmp_path / "in.csv",
            tmp_path / f"{name}.csv",
            chance=Sticky(bytes(32), "forever", by_user=False),
            policy=Policy(drop=drop),
        )
        monkeypatch.setattr(csv_table, "plain_block", lambda *given: None)
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "one by one.csv").read_bytes()


def test_lines_that_are_not_read_one_by_one_have_the_fields_that_these_have():
    """Of 30,000 random texts with quotes in and out of place, those that are taken as lines."""
    random, letters, taken = np.random.default_rng(0), np.array([*'"""",,a\n']), 0
    table = SimpleNamespace(names=["a", "b"], path=Path("in.csv"), delimiter=",")
    for _ in range(30_000):
        text = "".join(random.choice(letters, random.integers(3, 14)))
        if random.random() < 0.5:
            text = f'"{text[:2]}","{text[2:]}"\n'.replace(text[2:3], "")
        block = csv_table.plain_block(table, 0, text.encode())
        if block is None:
            continue
        taken += 1
        records = list(csv_table._records(io.StringIO(text, newline=""), table.path, ",", width=2))
        whole = csv_table.QuotedBlock(table, 0, *map(list, zip(*records, strict=True)))
        rows = np.arange(len(whole))
        for name in table.names:
            assert block.values(name, rows) == whole.values(name, rows), text
            assert block.column(name).equals(whole.column(name)), text
    assert taken > 1_000


def _cut(text, rows, delimiter, end):
    """The fields of each line, found by what stands before and after the two coordinates."""
    for row in rows:
        start, stop = row[0] + delimiter, delimiter + row[3] + end
        assert text.startswith(start)
        body, _, text = text[len(start) :].partition(stop)
        yield [row[0], *body.split(delimiter), row[3]]
    assert text == ""


def test_an_ending_in_capitals_is_unpacked_and_packed_too(runs, tmp_path):
    (tmp_path / "IN.CSV.GZ").write_bytes(gzip.compress((HEAD + ROW).encode()))
    sanitize(runs / "laplace", tmp_path / "IN.CSV.GZ", tmp_path / "OUT.CSV.GZ")
    assert gzip.decompress((tmp_path / "OUT.CSV.GZ").read_bytes()).startswith(HEAD.encode())


def test_a_file_that_unpacks_to_far_more_than_a_table_is_refused(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.deploy.csv_table._UNPACKED", 1 << 20)
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress((HEAD + ROW * 100_000).encode()))
    with pytest.raises(DataError, match="unpacks to more than 250 times"):
        for _ in CsvTable(tmp_path / "in.csv.gz").blocks():
            pass


@pytest.mark.parametrize("reveals", [False, True])
def test_of_blocks_of_few_rows_not_most_rows_are_looked_at(runs, tmp_path, monkeypatch, reveals):
    """A block of a table of 1,000 columns holds some hundred rows, and 400 of each were looked at:
    60 rows per second.  A column that reveals the place from some row on is still found."""
    monkeypatch.setattr(csv_table, "_BLOCK_BYTES", 20_000)
    looked = []
    look = Answers._look_at

    def counted(self, block, first, second):
        looked.append(min(len(block), one_file._LATER))
        look(self, block, first, second)

    monkeypatch.setattr(Answers, "_look_at", counted)
    random, rows = np.random.default_rng(0), 30_000
    lat, lon = 48.86 + random.uniform(-2e-3, 2e-3, rows), 2.35 + random.uniform(-2e-3, 2e-3, rows)
    other = np.where((np.arange(rows) > 9_000) & reveals, lat, random.permutation(lat) + 1)
    lines = [f"{a:.6f},{b:.6f},{c:.6f}" for a, b, c in zip(lat, lon, other, strict=True)]
    (tmp_path / "in.csv").write_text("\n".join(["lat,lon,other", *lines, ""]))
    task = (runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    if reveals:
        with pytest.raises(DataError, match="'other'"):
            sanitize(*task)
    else:
        assert sanitize(*task)["rows_out"] == rows
        assert 5_000 <= sum(looked) < 10_000
