"""Times of any fineness pass or are refused in a sentence; none ends in a traceback."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.deploy.one_file import Policy
from sfumato.deploy.recognise import Looked, telling
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError
from sfumato.mechanism.chance import Sticky

WHOLE = np.array([1_287_532_527_123_456_789 + row * 10**12 + row for row in range(30)])
FAR = np.array([2**62 - row for row in range(30)])
UNITS = (10**3, 10**6, 10**9)  # of a second


@pytest.mark.parametrize("int96", [False, True])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_read_and_stay(runs, tmp_path, int96, zone):
    """The last three digits cannot be a Python time: that ended in a traceback with a value."""
    times = pa.array(WHOLE).cast(pa.timestamp("ns", tz=zone))
    lists = pa.array([[time] for time in times], pa.list_(times.type))
    columns = {"user": ["ann"] * 30, "time": times, "times": lists}
    table = pa.table(columns | {"lat": 48.85 + np.arange(30) / 977, "lon": np.full(30, 2.3471)})
    source = tmp_path / "in.parquet"
    parquet.write_table(table, source, use_deprecated_int96_timestamps=int96)
    for number, chance in enumerate((None, Sticky(bytes(32), "day"))):
        policy = Policy(keep=("user", "time", "times"))
        sanitize(
            runs / "laplace", source, tmp_path / f"{number}.parquet", policy=policy, chance=chance
        )
        found = parquet.read_table(tmp_path / f"{number}.parquet")
        assert found["time"].cast(pa.int64()).to_pylist() == WHOLE.tolist()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("us"), pa.time64("ns"), pa.duration("ns")]
)
def test_times_too_far_for_python_are_no_traceback(runs, tmp_path, kind):
    values = FAR // (1000 if kind == pa.timestamp("s") else 1)
    values = values if kind != pa.time64("ns") else values % (86_400 * 10**9)
    table = pa.table({"when": pa.array(values).cast(kind), "lat": [48.8571] * 30})
    table = table.append_column("lon", pa.array([2.3471] * 30))
    parquet.write_table(table, tmp_path / "in.parquet")
    record = sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert record["rows_out"] == 30


RANDOM = np.random.default_rng(5)
LATITUDE = 48.857 + RANDOM.uniform(-0.02, 0.02, 60)
LONGITUDE = 2.347 + RANDOM.uniform(-0.02, 0.02, 60)
SECONDS = 1_287_532_527 + RANDOM.integers(0, 10**7, 60)
MINUTES = SECONDS // 60 * 60
BELOW = {  # what hides a latitude within the second, the minute or the hour of a time
    "a hundredth, in order": pa.array(
        np.sort(SECONDS) * 10**6 + (LATITUDE * 1e4).round().astype(int), pa.timestamp("us", "UTC")
    ),
    "a hundredth": pa.array(
        SECONDS * 10**9 + (LATITUDE * 1e7).round().astype(int), pa.timestamp("ns")
    ),
    "below one degree": pa.array(
        SECONDS * 10**6 + (LONGITUDE % 1 * 1e6).round().astype(int), pa.timestamp("us")
    ),
    "below one degree, to 100 m": pa.array(
        SECONDS * 10**3 + (LATITUDE % 1 * 1e3).round().astype(int), pa.timestamp("ms")
    ),
    "below a microsecond": pa.array(
        SECONDS * 10**9
        + RANDOM.integers(0, 10**6, 60) * 10**3
        + (LATITUDE * 1e3).astype(int) % 1000,
        pa.timestamp("ns"),
    ),
    "seconds of a minute": pa.array(
        MINUTES * 10**6 + (LATITUDE * 1e6).round().astype(int), pa.timestamp("us")
    ),
    "minutes of an hour": pa.array(
        SECONDS // 3600 * 3_600_000 + (LATITUDE * 60_000).round().astype(int), pa.timestamp("ms")
    ),
    "a duration": pa.array(
        (SECONDS % 90_000) * 10**6 + (LATITUDE * 1e4).round().astype(int), pa.duration("us")
    ),
    "seconds as a float": pa.array(SECONDS + LATITUDE / 100),
    "digits in a text": pa.array(
        [f"{time}{round(a * 1e7)}" for time, a in zip(SECONDS, LATITUDE, strict=True)]
    ),
    "a time in a text": pa.array(
        [
            f"{np.datetime64(int(time), 's')}.{round(a * 1e4)}Z"
            for time, a in zip(SECONDS, LATITUDE, strict=True)
        ]
    ),
}


@pytest.mark.parametrize("kind", BELOW)
def test_a_latitude_below_the_second_is_refused(runs, tmp_path, kind):
    table = pa.table({"lat": LATITUDE, "lon": LONGITUDE, "when": BELOW[kind]})
    parquet.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(DataError, match=r"reveals the place in other columns: 'when' \("):
        sanitize(runs / "laplace", tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_honest_times_of_any_fineness_tell_nothing():
    """10,000 rows with uniform parts of a second, in order and not, and a device that drifts."""
    random, count = np.random.default_rng(6), 10_000
    latitude = 48.857 + random.uniform(-0.02, 0.02, count)
    longitude = 2.347 + random.uniform(-0.02, 0.02, count)
    times = {unit: 1_287_532_527 * unit + random.integers(0, 10**7 * unit, count) for unit in UNITS}
    columns = {f"{unit} a second": found.tolist() for unit, found in times.items()}
    columns["in order"] = np.sort(times[10**6]).tolist()
    columns["floats"] = (times[10**6] / 1e6).tolist()
    columns["texts"] = [f"{np.datetime64(int(time), 'us')}Z" for time in times[10**6]]
    columns["drifting"] = (1_287_532_527_000 + np.arange(count) * 1001).tolist()
    assert not telling([Looked(columns, latitude, longitude)], degrees=True, cell_m=25.0)
