"""A job that is killed leaves nothing under its final name, and the next run ends with every row exactly once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from tests.deploy.tables import checkins, write_parquet

_PARTS, _ROWS = 6, 40_000
_MOMENTS = 10


def _start(runs: Path, source: Path, target: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sfumato", "sanitize", str(runs / "net"), str(source), str(target)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_killed_at_ten_random_moments(runs: Path, tmp_path: Path) -> None:
    for part in range(_PARTS):
        table = checkins(_ROWS, seed=part).set_column(6, "number", [np.arange(_ROWS) + part * _ROWS])
        write_parquet(tmp_path / "in" / f"part-{part}.parquet", table)
    start = time.perf_counter()
    assert _start(runs, tmp_path / "in", tmp_path / "whole").wait(timeout=120) == 0
    whole = time.perf_counter() - start
    random = np.random.default_rng(7)
    went_on = killed = 0
    for moment in range(_MOMENTS):
        target = tmp_path / f"out-{moment}"
        job = _start(runs, tmp_path / "in", target)
        time.sleep(float(random.uniform(0.15, 0.98)) * whole)
        job.send_signal(signal.SIGKILL)
        killed += job.wait(timeout=60) == -signal.SIGKILL
        work = tmp_path / f".out-{moment}.sfumato-job" / "parts"
        if target.exists():  # it had ended, or was killed while tidying up
            assert _rows(target) == list(range(_PARTS * _ROWS))
        for path in [*work.glob("*.parquet")]:
            assert parquet.ParquetFile(path).metadata.num_rows == _ROWS
            went_on += 1
        again = _start(runs, tmp_path / "in", target)
        assert again.wait(timeout=120) == 0
        assert _rows(target) == list(range(_PARTS * _ROWS))
        left = [name for name in os.listdir(tmp_path) if name.startswith(f".out-{moment}")]
        assert not [name for name in left if (tmp_path / name / "parts").exists()]
    assert killed >= _MOMENTS // 2 and went_on > 0  # else the moments missed the work


def _rows(folder: Path) -> list[int]:
    found = [parquet.read_table(path, columns=["number"])["number"].to_pylist() for path in sorted(folder.glob("*.parquet"))]
    assert sorted(path.name for path in folder.iterdir()) == [f"part-{part}.parquet" for part in range(_PARTS)]
    return [number for part in found for number in part]
