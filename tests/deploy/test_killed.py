"""A job that is killed leaves nothing under its final name, and the next run ends with every row
exactly once."""

import multiprocessing
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from sfumato.deploy.sanitize import sanitize
from tests.deploy.tables import checkins, write_parquet

_PARTS, _ROWS = 6, 30_000
_MOMENTS = 10
_SERVER = multiprocessing.get_context(
    "forkserver"
)  # starts a process in milliseconds: the modules are loaded once
_SERVER.set_forkserver_preload(["sfumato.deploy.sanitize", "pyarrow.parquet"])


def _start(runs: Path, source: Path, target: Path) -> BaseProcess:
    job = _SERVER.Process(target=sanitize, args=(runs / "net", source, target))
    job.start()
    return job


def _ended(job: BaseProcess) -> int | None:
    job.join(timeout=120)
    return job.exitcode


@pytest.mark.slow
def test_killed_at_ten_random_moments(runs: Path, tmp_path: Path) -> None:
    for part in range(_PARTS):
        table = checkins(_ROWS, seed=part).set_column(
            6, "number", [np.arange(_ROWS) + part * _ROWS]
        )
        write_parquet(tmp_path / "in" / f"part-{part}.parquet", table)
    assert _ended(_start(runs, tmp_path / "in", tmp_path / "first")) == 0  # the server is up now
    start = time.perf_counter()
    assert _ended(_start(runs, tmp_path / "in", tmp_path / "whole")) == 0
    whole = time.perf_counter() - start
    random = np.random.default_rng(7)
    found = killed = 0
    for moment in range(_MOMENTS):
        target = tmp_path / f"out-{moment}"
        job = _start(runs, tmp_path / "in", target)
        time.sleep(float(random.uniform(0.05, 0.95)) * whole)
        job.kill()
        killed += _ended(job) == -signal.SIGKILL
        if target.exists():  # it had ended, or was killed while tidying up
            assert _rows(target) == list(range(_PARTS * _ROWS))
        for path in (tmp_path / f".out-{moment}.sfumato-job" / "parts").glob("*.parquet"):
            assert parquet.ParquetFile(path).metadata.num_rows == _ROWS
            found += 1
        assert _ended(_start(runs, tmp_path / "in", target)) == 0
        assert _rows(target) == list(range(_PARTS * _ROWS))
    assert killed >= _MOMENTS // 2 and found > 0  # else the moments missed the work


def _rows(folder: Path) -> list[int]:
    found = [
        parquet.read_table(path, columns=["number"])["number"].to_pylist()
        for path in sorted(folder.glob("*.parquet"))
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        f"part-{part}.parquet" for part in range(_PARTS)
    ]
    return [number for part in found for number in part]
