"""The same sanitize over a real cluster of two workers: the same output under the same key, also
when one is killed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from sfumato.data.samples import Samples
from sfumato.deploy.engines.dask import (
    ClusterError,
    _order,
    _outcome,
    _work,
    on_cluster,
    tiles_on_cluster,
)
from sfumato.deploy.one_file import Policy, Tally, sanitize_part
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError, FileError
from sfumato.mechanism.chance import Sticky
from sfumato.solver import Coin
from sfumato.study.atlas import AtlasPlan, solve_atlas
from tests.deploy.tables import checkins, write_parquet

KEY = bytes(range(32))
_PARTS, _ROWS = 10, 4_000


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._place = folder, folder / "scheduler.json"
        self._started: list[subprocess.Popen[bytes]] = []
        where = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(self._place))
        self._start("dask_scheduler", "--port", "0", *where)
        until = time.monotonic() + 60
        while not self._place.exists() and time.monotonic() < until:
            time.sleep(0.1)
        self.address: str = json.loads(self._place.read_text())["address"]
        self._options = (*where, "--nthreads", "1", "--no-nanny", "--local-directory")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self._folder / "cluster.log").open("ab") as log:
            command = [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]]
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        self._started.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        """One worker more, which the scheduler knows of."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            count = len(client.scheduler_info()["workers"])
            process = self._start("dask_worker", *self._options, str(self._folder / "w"))
            client.wait_for_workers(count + 1, timeout=60)
        return process

    def end(self) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            process.wait(timeout=30)


@contextmanager
def clustered(folder: Path) -> Iterator[Cluster]:
    """A cluster with one worker."""
    started = Cluster(folder)
    try:
        started.worker()
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one worker, which nobody kills."""
    with clustered(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for part in range(_PARTS):
        write_parquet(tmp_path / "in" / f"part-{part:02d}.parquet", checkins(_ROWS, seed=part))
    return tmp_path / "in"


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


@pytest.mark.slow
def test_a_refusal_on_a_worker_is_the_same_sentence(runs, tmp_path, cluster):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(100))
    (tmp_path / "in" / "b.csv").write_text("lat,lon\n10.123,10\n")
    with pytest.raises(DataError, match=r"b\.csv: 1 of 1 rows") as refused:
        sanitize(
            runs / "laplace", tmp_path / "in", tmp_path / "out", runner=on_cluster(cluster.address)
        )
    assert "10.123" not in str(refused.value) and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_two_workers_one_killed_in_the_middle(runs, parts, tmp_path, cluster):
    chance = Sticky(KEY, "day")
    policy = Policy(user="who", keep=("who",))
    alone = sanitize(runs / "laplace", parts, tmp_path / "alone", chance=chance, policy=policy)
    done: list[int] = []
    other = cluster.worker()

    def progress(rows: int) -> None:
        done.append(rows)
        if len(done) == 2:  # the others are under way
            other.send_signal(signal.SIGKILL)

    whole = sanitize(
        runs / "laplace",
        parts,
        tmp_path / "cluster",
        chance=chance,
        policy=policy,
        progress=progress,
        runner=on_cluster(cluster.address),
    )
    assert other.wait(timeout=30) == -signal.SIGKILL
    assert len(done) == _PARTS and sum(done) == _PARTS * _ROWS
    assert _hashes(tmp_path / "cluster") == _hashes(tmp_path / "alone")
    own = {"loss_of_this_table", "job"}  # `job` is a salted hash
    assert {name: whole[name] for name in whole if name not in own} == {
        name: alone[name] for name in alone if name not in own
    }
    numbers = [
        parquet.read_table(path, columns=["number"])["number"].to_pylist()
        for path in sorted((tmp_path / "cluster").iterdir())
    ]
    assert numbers == [list(range(_ROWS))] * _PARTS  # nothing lost, nothing twice, in order
    assert not [name for name in os.listdir(tmp_path) if "sfumato-job" in name]


@pytest.mark.slow
def test_the_tiles_of_an_atlas_are_solved_on_two_workers_one_killed(tmp_path, cluster):
    random = np.random.default_rng(0)
    towns = random.uniform(-30_000.0, 30_000.0, (20, 2))
    secret = np.repeat(np.arange(80), 12)
    truth = towns[secret // 4] + random.normal(0.0, 300.0, (len(secret), 2))
    data, plan = Samples(secret, truth), AtlasPlan(Coin(), users_per_tile=8, cell_m=50.0)
    alone = solve_atlas(data, tmp_path / "alone", max_loss=200.0, plan=plan)
    done: list[int] = []
    worker = cluster.worker()

    def watched(work: Path, tiles: list[int]) -> Iterator[int]:
        for tile in tiles_on_cluster(cluster.address)(work, tiles):
            done.append(tile)
            if len(done) == 5:
                worker.send_signal(signal.SIGKILL)
            yield tile

    both = solve_atlas(data, tmp_path / "both", max_loss=200.0, plan=plan, runner=watched)
    assert worker.wait(timeout=30) == -signal.SIGKILL
    one, other = (run.mechanism.arrays() for run in (alone, both))
    assert sorted(done) == [line["tile"] for line in alone.tiles] and one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


class _Future:
    """A part that a worker has done, without a cluster."""

    def __init__(self, outcome):
        self.result = lambda: outcome


def _as_on_workers(protection, tasks, progress):
    order = _order(protection)
    for task in tasks:
        done = _Future(_work(order, str(task.source), str(task.target)))
        yield task, Tally.from_dict(_outcome(done, "a part"))


def test_a_worker_that_cannot_write_leaves_the_finished_parts(runs, tmp_path, monkeypatch):
    """Its error is not the data's, so the same command goes on from them."""
    for part in range(3):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(100, seed=part))

    def full(protection, source, target, **options):
        if source.name == "2.parquet":
            raise FileError(
                "cannot write 2.parquet: No space left on device; name a file in a folder that can"
                " be written"
            )
        return sanitize_part(protection, source, target, **options)

    monkeypatch.setattr("sfumato.deploy.engines.dask.sanitize_part", full)
    with pytest.raises(FileError, match="No space left"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out", runner=_as_on_workers)
    finished = _hashes(tmp_path / ".out.sfumato-job" / "parts")
    assert list(finished) == ["0.parquet", "1.parquet"]
    monkeypatch.undo()
    assert (
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out", runner=_as_on_workers)[
            "rows_out"
        ]
        == 300
    )
    assert finished.items() <= _hashes(tmp_path / "out").items()


def test_bad_data_on_a_worker_leaves_nothing(runs, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(100))
    (tmp_path / "in" / "b.csv").write_text("lat,lon\n10.123,10\n")
    with pytest.raises(DataError, match=r"b\.csv: 1 of 1 rows"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out", runner=_as_on_workers)
    assert os.listdir(tmp_path) == ["in"]


def test_no_scheduler_is_one_sentence(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.deploy.engines.dask._WAIT", "1s")
    write_parquet(tmp_path / "in" / "a.parquet", checkins(100))
    with pytest.raises(ClusterError, match="no dask scheduler answers"):
        sanitize(
            runs / "laplace",
            tmp_path / "in",
            tmp_path / "out",
            runner=on_cluster("tcp://127.0.0.1:9"),
        )
    assert os.listdir(tmp_path) == ["in"]


def test_the_single_machine_path_does_not_import_dask():
    code = (
        "import sys, sfumato.deploy.sanitize, sfumato.cli.sanitize; print(sorted(set(sys.modules) &"
        " {'dask', 'distributed', 'jax'}))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
