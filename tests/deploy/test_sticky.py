"""Kept reports: the same for a user, a place and a period, from a private key."""

import os
import stat

import numpy as np
import pyarrow as pa
import pytest

from sfumato.deploy.keeping import chance_for
from sfumato.deploy.one_file import Policy
from sfumato.deploy.pseudonym import read_key, read_or_make_key
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError, FileError
from sfumato.mechanism.chance import Rows, Sticky
from sfumato.study.folder import load_run
from tests.deploy.tables import write_parquet

KEY = bytes(range(32))


class TestSticky:
    def _reports(self, runs, tmp_path, rows, name, **settings):
        (tmp_path / f"{name}.csv").write_text("user,time,lat,lon\n" + "\n".join(rows) + "\n")
        sanitize(
            runs / "laplace",
            tmp_path / f"{name}.csv",
            tmp_path / f"{name}.out.csv",
            chance=Sticky(KEY, **settings),
            policy=Policy(keep=("user",)),
        )
        return [
            tuple(line.split(",")[2:])
            for line in (tmp_path / f"{name}.out.csv").read_text().splitlines()[1:]
        ]

    def test_the_same_user_cell_and_period_get_the_same_report(self, runs, tmp_path):
        place = "48.85701,2.34702"
        rows = [f"ann,2010-10-19T0{hour}:00:00Z,{place}" for hour in range(5)]
        rows += [
            f"ann,2010-10-20T00:00:00Z,{place}",
            f"ben,2010-10-19T00:00:00Z,{place}",
            "ann,2010-10-19T00:00:00Z,48.85702,2.34703",
        ]
        found = self._reports(runs, tmp_path, rows, "in", period="day")
        assert (
            len(set(found[:5])) == 1 and found[7] == found[0]
        )  # a jitter of a metre does not redraw
        assert found[5] != found[0] and found[6] != found[0]
        forever = self._reports(runs, tmp_path, rows, "again", period="forever")
        assert len(set(forever[:6])) == 1

    @pytest.mark.parametrize("unit", [10**3, 10**6, 10**9])
    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_times_in_milliseconds_or_smaller_are_refused(self, runs, tmp_path, ending, unit):
        """Taken as seconds, a day of milliseconds would be drawn anew every 86 seconds."""
        times = [1_287_532_527 * unit + row for row in range(3)]
        if ending == "csv":
            lines = "".join(f"ann,{time},48.857,2.347\n" for time in times)
            (tmp_path / "in.csv").write_text("user,time,lat,lon\n" + lines)
        else:
            write_parquet(
                tmp_path / "in.parquet",
                pa.table(
                    {"user": ["ann"] * 3, "time": times, "lat": [48.857] * 3, "lon": [2.347] * 3}
                ),
            )
        with pytest.raises(
            DataError, match=r"3 time\(s\) in 'time' .*milliseconds.*seconds"
        ) as refused:
            sanitize(
                runs / "laplace",
                tmp_path / f"in.{ending}",
                tmp_path / f"out.{ending}",
                chance=Sticky(KEY, "day"),
                policy=Policy(keep=("user",)),
            )
        assert "12875" not in str(refused.value) and os.listdir(tmp_path) == [f"in.{ending}"]

    def test_whole_seconds_are_times(self, runs, tmp_path):
        """Also as 64 bits without a sign, and before 1970."""
        from sfumato.data.times import seconds_of

        rows = [f"ann,{1_287_446_400 + step},48.857,2.347" for step in (0, 86_399, 86_400)] + [
            "ann,-5,48.857,2.347"
        ]
        found = self._reports(runs, tmp_path, rows, "in", period="day")
        assert found[0] == found[1] and len(set(found)) > 1
        assert seconds_of(pa.array([7, 10**11], pa.uint64()), source="a", column="t").tolist() == [
            7,
            10**11,
        ]
        with pytest.raises(DataError, match="milliseconds"):
            seconds_of(pa.array([2**64 - 5], pa.uint64()), source="a", column="t")

    def test_numbers_from_the_key_are_uniform(self):
        """Kolmogorov's distance of 20,000 numbers stays below 1.95/sqrt(n) with a chance of 99.9
        %."""
        truth = np.stack([np.arange(20_000) * 100.0 + 50, np.zeros(20_000)], axis=1)
        _, chance = Sticky(KEY, "forever").of(
            truth, Rows(users=np.full(20_000, "ann", dtype=object)), 2
        )
        for column in chance.T:
            assert np.abs(np.sort(column) - np.arange(20_000) / 20_000).max() < 1.95 / 20_000**0.5
        assert abs(np.corrcoef(chance.T)[0, 1]) < 0.03

    def test_another_key_gives_other_reports(self, runs, tmp_path):
        rows = [f"u{row},,48.857,2.347" for row in range(50)]
        one = self._reports(runs, tmp_path, rows, "one", period="forever")
        (tmp_path / "two.csv").write_text("user,time,lat,lon\n" + "\n".join(rows) + "\n")
        sanitize(
            runs / "laplace",
            tmp_path / "two.csv",
            tmp_path / "two.out.csv",
            chance=Sticky(KEY[::-1], "forever"),
            policy=Policy(keep=("user",)),
        )
        two = [
            tuple(line.split(",")[2:])
            for line in (tmp_path / "two.out.csv").read_text().splitlines()[1:]
        ]
        assert sum(a == b for a, b in zip(one, two, strict=True)) < 10

    def test_two_runs_under_one_key_share_no_numbers(self, runs):
        """Two scales of planar Laplace noise drawn with the same numbers would reveal the truth."""
        truth, rows = np.array([[5.0, 5.0]]), Rows(users=np.array(["ann"], dtype=object))
        kept = [
            chance_for(load_run(runs / name), KEY, period="forever") for name in ("laplace", "coin")
        ]
        one, other = (chance.of(truth, rows, 2)[1] for chance in kept)
        assert not np.any(one == other)
        assert np.array_equal(one, kept[0].of(truth, rows, 2)[1])

    def test_a_key_file_is_private_and_never_overwritten(self, tmp_path):
        key = read_or_make_key(tmp_path / "key")
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
        assert read_or_make_key(tmp_path / "key") == key == read_key(tmp_path / "key")
        (tmp_path / "key").chmod(0o644)
        with pytest.raises(FileError, match="600"):
            read_or_make_key(tmp_path / "key")
        (tmp_path / "other").write_text("not a key")
        (tmp_path / "other").chmod(0o600)
        with pytest.raises(FileError):
            read_or_make_key(tmp_path / "other")
        assert (tmp_path / "other").read_text() == "not a key"
