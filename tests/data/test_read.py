"""Reading tables: the formats that are taken, and what is said of those that are not."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato.data.read import read_checkins
from sfumato.errors import DataError, ProblemError
from sfumato.mechanism.custom import Recorded
from sfumato.solver import Problem

ROWS = [("u10", 48.8584, 2.3482), ("u9", 48.8590, 2.3490), ("u10", 48.8575, 2.3470)]
_SWAPPED = "name the columns with lat and lon, or write the square's latitude first"
HEADED = "user,lat,lon\n" + "".join(f"{user},{lat},{lon}\n" for user, lat, lon in ROWS)
SNAP = "".join(f"{user}\t2010-10-19T23:55:27Z\t{lat}\t{lon}\t22847\n" for user, lat, lon in ROWS)


def _write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def _parquet(path: Path) -> Path:
    user, lat, lon = zip(*ROWS, strict=True)
    parquet.write_table(pa.table({"user": user, "lat": lat, "lon": lon}), path)
    return path


FORMATS: dict[str, Callable[[Path], Path]] = {
    "snap": lambda folder: _write(folder / "log.txt", SNAP),
    "snap gzipped": lambda folder: _write(folder / "log.txt.gz", SNAP),
    "csv": lambda folder: _write(folder / "log.csv", HEADED),
    "csv gzipped": lambda folder: _write(folder / "log.csv.gz", HEADED),
    "csv with semicolons": lambda folder: _write(folder / "log.csv", HEADED.replace(",", ";")),
    "csv from a spreadsheet": lambda folder: _write(
        folder / "log.csv", "\ufeff" + HEADED.replace("\n", "\r\n")
    ),
    "parquet": lambda folder: _parquet(folder / "log.parquet"),
}


@pytest.mark.parametrize("made", FORMATS.values(), ids=FORMATS.keys())
def test_every_format_gives_the_same_samples(made: Callable[[Path], Path], tmp_path: Path) -> None:
    samples = read_checkins(made(tmp_path))
    assert samples.secrets == ("u10", "u9") and samples.secret.tolist() == [0, 1, 0]
    assert samples.plane is not None
    latitude, longitude = samples.plane.to_degrees(samples.truth)
    assert np.abs(latitude - [row[1] for row in ROWS]).max() < 1e-9
    assert np.abs(longitude - [row[2] for row in ROWS]).max() < 1e-9


@pytest.mark.parametrize(
    "header",
    ["user_id,latitude,longitude", "uid,Lat,lng", "UserID,LATITUDE,long", "secret,lat,lon"],
)
def test_columns_are_found_by_their_usual_names(header: str, tmp_path: Path) -> None:
    samples = read_checkins(_write(tmp_path / "log.csv", HEADED.replace("user,lat,lon", header)))
    assert samples.counts.tolist() == [2, 1]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.csv", HEADED.replace("user,lat,lon", "who,north,east"))
    assert len(read_checkins(path, secret="who", lat="north", lon="east")) == 3
    with pytest.raises(
        DataError, match=r"has no column 'whom'; it has 'who', 'north', 'east'"
    ) as e:
        read_checkins(path, secret="whom", lat="north", lon="east")
    assert e.value.hint == "name one of these with secret"


def test_plane_metres_are_taken_as_they_are(tmp_path: Path) -> None:
    samples = read_checkins(_write(tmp_path / "log.csv", "user,x,y\na,1.5,-2\nb,3,4\n"))
    assert samples.truth.tolist() == [[1.5, -2], [3, 4]] and samples.plane is None
    with pytest.raises(DataError, match="in plane metres"):
        read_checkins(tmp_path / "log.csv", square=(48.8584, 2.3482, 500))


def test_users_that_are_numbers_keep_their_zeros_and_are_sorted_as_numbers(tmp_path: Path) -> None:
    samples = read_checkins(_write(tmp_path / "log.csv", "user,x,y\n10,0,0\n9,1,1\n007,2,2\n"))
    assert samples.secrets == ("007", "9", "10")


def test_a_spreadsheets_byte_order_mark_does_not_change_the_users(tmp_path: Path) -> None:
    assert read_checkins(
        _write(tmp_path / "log.csv", "\ufeffuser,x,y\n007,0,0\n8,1,1\n")
    ).secrets == ("007", "8")


def test_a_square_is_cut_before_anything_is_projected(tmp_path: Path) -> None:
    """A file of the whole world, across the antimeridian and at the pole, still gives its Paris."""
    path = _write(tmp_path / "world.csv", HEADED + "far,-17,179.9\nfar,-17,-179.9\npole,90,0\n")
    samples = read_checkins(path, square=(48.8584, 2.3482, 1000))
    assert samples.secrets == ("u10", "u9") and samples.truth[0].round(6).tolist() == [0, 0]
    with pytest.raises(DataError, match="antimeridian"):
        read_checkins(path)


def test_four_corners_is_a_name() -> None:
    assert len(read_checkins("four-corners", seed=3)) == 2400
    assert read_checkins("four-corners", seed=3).hash != read_checkins("four-corners", seed=4).hash


def test_a_split_column_is_noted_not_hidden(tmp_path: Path) -> None:
    samples = read_checkins(
        _write(tmp_path / "log.csv", "user,x,y,split\na,0,0,train\nb,1,1,test\n")
    )
    assert "'split' was not read" in samples.notes[0]


BAD: dict[str, tuple[str, str]] = {
    "NaN latitude": (
        "user,lat,lon\na,nan,2\nb,48,2\n",
        r"1 latitude value\(s\) are not finite numbers \(first in row 1: nan\)",
    ),
    "infinite longitude": (
        "user,lat,lon\na,48,2\nb,48,inf\n",
        r"1 longitude value\(s\) are not finite numbers \(first in row 2: inf\)",
    ),
    "empty cell": (
        "user,lat,lon\na,48,2\nb,,2\n",
        r"1 latitude value\(s\) are not finite numbers \(first in row 2",
    ),
    "NaN metres": ("user,x,y\na,0,0\nb,nan,0\n", r"1 point\(s\) are not finite \(first in row 2\)"),
    "latitude beyond 90": (
        "user,lat,lon\na,148,151\nb,48,2\n",
        r"latitude 148\.0 in row 1 is beyond 90 degrees .*expected degrees between -90 and 90",
    ),
    "swapped": (
        "user,lat,lon\na,151.2,-33.8\nb,151.3,-33.9\n",
        r"latitude 151\.2 in row 1 is beyond 90.*latitude and longitude are probably swapped",
    ),
    "longitude beyond 180": (
        "user,lat,lon\na,48,200\nb,48,2\n",
        r"longitude 200\.0 in row 1 is beyond 180 degrees",
    ),
    "duplicate columns": (
        "user,lat,lat,lon\na,48,48,2\n",
        r"has the column 'lat' twice; expected it once",
    ),
    "duplicate by case": (
        "user,lat,LAT,lon\na,48,48,2\n",
        r"has the column 'lat' twice; expected it once",
    ),
    "two latitudes": (
        "user,lat,latitude,lon\na,48,48,2\n",
        r"several columns for lat: 'lat', 'latitude'; say which",
    ),
    "no user": (
        "lat,lon\n48,2\n",
        r"has no column for the user; expected one of 'user', 'user_id'",
    ),
    "no place": (
        "user,when\na,now\n",
        r"has no columns for the place; expected latitude and longitude, or x and y",
    ),
    "only latitude": ("user,lat\na,48\n", r"has no columns for the place"),
    "text in a number column": (
        "user,lat,lon\na,48,2\nb,north,2\n",
        r"'north' in column 'lat', row 2, is not a number",
    ),
    "missing user": ("user,lat,lon\na,48,2\n,48,2\n", r"1 row\(s\) have no value in 'user'"),
    "header alone": ("user,lat,lon\n", r"holds no rows"),
    "nothing": ("", r"log\.csv is empty"),
    "ragged": (
        "user,lat,lon\na,48,2\nb,48\n",
        (
            r"cannot be read as a SNAP, CSV or Parquet file: CSV parse error: Expected 3 columns,"
            r" got 2 in line 3; repair it or write it again$"
        ),
    ),
    "JSON": ('[{"user": "a"}]\n', r"looks like JSON; expected a SNAP, CSV or Parquet file"),
    "decimal commas": (
        "user;lat;lon\na;48,1;2,3\n",
        r"'48,1' in column 'lat', row 1, is not a number; write numbers with a decimal point",
    ),
    "one odd latitude": (
        "user,lat,lon\na,48,2\nb,48,2\nb,948,2\n",
        r"latitude 948\.0 in row 3 is beyond 90 degrees .*: remove or repair these rows",
    ),
    "one odd place": (
        "user,lat,lon\na,48,2\nb,0,0\nb,48.1,2\n",
        r"repair row 2, the farthest from the others, if it is a mistake",
    ),
    "pole": ("user,lat,lon\na,89.9,2\nb,89.8,3\n", r"not at the poles"),
    "antimeridian": (
        "user,lat,lon\na,-17,179.9\nb,-17,-179.9\n",
        r"both sides of the antimeridian",
    ),
    "the whole world": ("user,lat,lon\na,48,2\nb,10,10\n", r"a flat plane is accurate to 200 km"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_table_is_refused_in_a_sentence_that_names_it(
    text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read_checkins(_write(tmp_path / "log.csv", text))
    assert "\n" not in str(caught.value)


def test_swapped_columns_within_range_are_found_out_by_the_square(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.csv", HEADED.replace("lat,lon", "lon,lat"))
    with pytest.raises(
        DataError, match=r"none of 3 check-ins lies in the 4500 m square.*probably swapped"
    ) as caught:
        read_checkins(path, square=(48.8584, 2.3482, 4500))
    assert caught.value.hint == _SWAPPED


def test_an_empty_selection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of 3 check-ins lies in the 100 m square"):
        read_checkins(_write(tmp_path / "log.csv", HEADED), square=(40.0, 2.0, 100))


def test_a_column_named_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has the column 'lat' twice"):
        read_checkins(
            _write(tmp_path / "log.csv", "user,lat,lat,lon\na,48,48,2\nb,48,48,2\n"), lat="lat"
        )


@pytest.mark.parametrize("size", [15, 60, 2000])
def test_a_truncated_gzip_is_refused(size: int, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    text = "".join(
        f"{n}\t2010-10-19T23:55:27Z\t{48 + random.random()}\t{2 + random.random()}\t{n}\n"
        for n in range(500)
    )
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(text.encode())[:size])
    with pytest.raises(
        DataError, match=r"log\.txt\.gz cannot be read as a SNAP, CSV or Parquet file"
    ):
        read_checkins(path)


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(SNAP.encode()))
    packed[12:30] = b"\xff" * 18
    (tmp_path / "log.txt.gz").write_bytes(packed)
    with pytest.raises(DataError, match="cannot be read as a SNAP, CSV or Parquet file"):
        read_checkins(tmp_path / "log.txt.gz")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.parquet", b"user,lat,lon\n"),
        ("log.csv", b"\xff\xfe\x00\x01"),
        ("log.csv.gz", b"user,lat"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(
    name: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as a SNAP, CSV or Parquet file"):
        read_checkins(tmp_path / name)


def test_a_text_column_in_parquet_is_read_as_numbers_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"user": ["a", "b"], "x": ["1", "2"], "y": [0.0, 1.0]}), path)
    assert read_checkins(path).truth.tolist() == [[1, 0], [2, 1]]
    parquet.write_table(pa.table({"user": ["a", "b"], "x": [[1], [2]], "y": [0.0, 1.0]}), path)
    with pytest.raises(DataError, match="expected numbers"):
        read_checkins(path)


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        read_checkins(tmp_path / "none.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_checkins(tmp_path)


def test_one_user_can_be_read_but_not_hidden(tmp_path: Path) -> None:
    samples = read_checkins(_write(tmp_path / "log.csv", "user,x,y\nann,0,0\nann,1,1\n"))
    with pytest.raises(ValueError, match=r"holds one user \(ann\); expected at least two"):
        Problem(samples, max_loss=100)


def test_recorded_pairs_are_read_from_a_table(tmp_path: Path) -> None:
    path = _write(tmp_path / "pairs.csv", "truth_x,truth_y,report_x,report_y\n0,0,5,5\n10,0,6,6\n")
    assert Recorded.read(path).sample([[0, 0], [10, 0]]).tolist() == [[5, 5], [6, 6]]
    with pytest.raises(ValueError, match="has no column 'report_y'"):
        Recorded.read(_write(tmp_path / "less.csv", "truth_x,truth_y,report_x\n0,0,5\n"))
    with pytest.raises(ValueError, match="NaN or infinity"):
        Recorded.read(
            _write(tmp_path / "odd.csv", "truth_x,truth_y,report_x,report_y\n0,0,5,nan\n")
        )
    with pytest.raises(ValueError, match="is not a number"):
        Recorded.read(
            _write(tmp_path / "text.csv", "truth_x,truth_y,report_x,report_y\n0,0,5,east\n")
        )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_log_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch, ending):
    path = tmp_path / f"log.{ending}"
    rows = pa.table({"user": [1, 2] * 500, "x": [0.0, 1.0] * 500, "y": [2.0, 3.0] * 500})
    (parquet.write_table if ending == "parquet" else csv.write_csv)(rows, path)
    assert len(read_checkins(path)) == 1000
    monkeypatch.setattr("sfumato.memory.free_bytes", lambda: 5_000.0)
    with pytest.raises(ProblemError, match=rf"^reading log.{ending} needs about .* are free; cut"):
        read_checkins(path)
