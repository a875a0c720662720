"""Times of any fineness pass or are refused in a sentence; none ends in a traceback."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import sanitize
from sfumato.mechanism.chance import Sticky

WHOLE = np.array([1_287_532_527_123_456_789 + row * 10**12 + row for row in range(30)])
FAR = np.array([2**62 - row for row in range(30)])


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
