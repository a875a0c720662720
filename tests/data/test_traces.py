"""Traces: rows in any order, and what is refused."""

import numpy as np
import pytest

from sfumato.data.samples import Samples
from sfumato.data.traces import Traces, read_traces
from sfumato.errors import DataError

HEADER = "user,trip,when,x,y,part\n"
ROWS = [
    f"{user},{trip},2020-01-{1 + trip:02d}T{hour:02d}:00:00Z,{900 * user + hour},{trip},"
    f"{'test' if trip == 3 else 'train'}\n"
    for user in (1, 2)
    for trip in range(4)
    for hour in (8, 12, 20)
]


def _file(tmp_path, rows=ROWS, header=HEADER):
    path = tmp_path / "traces.csv"
    path.write_text(header + "".join(rows))
    return path


def _read(path, **columns):
    return read_traces(path, **{"trace": "trip", "time": "when", **columns})


def test_rows_may_come_in_any_order(tmp_path):
    straight = _read(_file(tmp_path))
    shuffled = list(np.random.default_rng(0).permutation(ROWS))
    other = _read(_file(tmp_path, shuffled))
    for name in ("trace", "named", "seconds"):
        assert np.array_equal(getattr(straight, name), getattr(other, name))
    assert np.array_equal(straight.samples.truth, other.samples.truth)
    assert np.all(np.diff(straight.trace) >= 0)
    inside = np.diff(straight.trace) == 0
    assert np.all(np.diff(straight.seconds)[inside] > 0)


def test_the_last_third_of_each_users_traces_is_to_be_found(tmp_path):
    traces = _read(_file(tmp_path))
    assert len(traces.attacked) == 2  # of four traces each, one
    assert set(traces.samples.truth[~traces.named, 1]) == {3.0}  # the last by time
    by_column = _read(_file(tmp_path), split="part")
    assert np.array_equal(by_column.named, traces.named)


def test_a_trace_is_a_name_and_a_user():
    samples = Samples([0, 1, 0, 1], np.arange(8.0).reshape(4, 2) * 1000, ("ann", "bob"))
    traces = Traces.of(samples, ["a", "a", "b", "b"])
    assert traces.users.tolist() == [0, 0, 1, 1]
    assert traces.rows_of(2) == slice(2, 3)


@pytest.mark.parametrize(
    ("rows", "columns", "says"),
    [
        (ROWS, {"trace": "no"}, "no column 'no'"),
        (ROWS, {"time": "part"}, "not times"),
        (ROWS, {"split": "trip"}, "expected train or test"),
        ([row for row in ROWS if ",3," not in row], {"split": "part"}, "no trace to be found"),
        ([row for row in ROWS if ",0,2020" in row], {}, "at least two traces"),
        ([row for row in ROWS if row.startswith("1")], {}, "one user"),
        (
            [row for row in ROWS if row[0] == "1" or "test" in row],
            {"split": "part"},
            "1 of 2 users",
        ),
        ([*ROWS, "1,0,2020-01-01T09:00:00Z,5,5,test\n"], {"split": "part"}, "both training"),
        (
            [*ROWS, "1,,2020-01-01T09:00:00Z,5,5,test\n"],
            {},
            "no value in 'trip'; expected one in each row",
        ),
        ([*ROWS, "1,0,,5,5,test\n"], {}, "no value in 'when'"),
    ],
)
def test_bad_traces_are_refused_in_a_sentence(tmp_path, rows, columns, says):
    with pytest.raises(DataError, match=says):
        _read(_file(tmp_path, rows), **columns)
