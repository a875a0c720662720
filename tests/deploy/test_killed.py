"""A command that is killed or ended from outside at any moment: nothing lost, doubled, reordered or
left over when the next one has ended.

SFUMATO_KILLS is how many of each signal are sent, 10 unless set.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv, parquet

from sfumato.mechanism.base import load_mechanism
from tests.deploy.tables import checkins, write_parquet
from tests.deploy.warm import Warm, warm
from tests.solver.game.tiny import same

_KILLS = int(os.environ.get("SFUMATO_KILLS", "10"))
_KINDS = ("file", "folder", "codebook", "game")
_PARTS, _ROWS = 6, 20_000
_SOLVE = (
    *("solve", "four-corners", "--per-user", "30+10", "--max-loss", "173", "--cell-m", "100"),
    *("--proof", "none"),
)
_RUN = ["checkpoint.npz", "history.jsonl", "mechanism.npz", "run.json"]


def _moments(kind: str) -> int:
    """How many of the signals are this kind's."""
    place = _KINDS.index(kind)
    return _KILLS // len(_KINDS) + (place < _KILLS % len(_KINDS))


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with warm(tmp_path_factory.mktemp("warm")) as started:
        yield started


def _stopped(
    commands: Warm, words: tuple[object, ...], stop: int, seconds: float, kind: str
) -> Iterator[int]:
    """The command, stopped at moments all over its time; gives each exit code."""
    random = np.random.default_rng((_KINDS.index(kind), stop))
    moments = _moments(kind)
    for moment in range(moments):
        after = seconds * (moment + random.uniform()) / moments
        code = commands.run(*words, stop=stop, after=after)
        expected = (-stop, 0) if stop == signal.SIGKILL else (-stop, 128 + stop, 0)
        assert code in expected, (code, commands.log.read_text()[-2000:])
        if code == 0:  # it had ended: the machine is quicker than it was
            seconds *= 0.9
        yield code


def _seconds(commands: Warm, *words: object) -> float:
    start = time.perf_counter()
    assert commands.run(*words) == 0, commands.log.read_text()
    return time.perf_counter() - start


def _hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_sanitize_of_a_file_leaves_all_or_nothing(
    commands: Warm, runs: Path, tmp_path: Path, stop: int
) -> None:
    table = checkins(4 * _ROWS).select(["latitude", "longitude", "number"])
    csv.write_csv(table, tmp_path / "in.csv")
    words = ("sanitize", runs / "net", tmp_path / "in.csv")
    seconds = _seconds(commands, *words, tmp_path / "first.csv")
    target, record = tmp_path / "out.csv", tmp_path / "out.csv.record.json"
    stopped = 0
    for code in _stopped(commands, (*words, target), stop, seconds, "file"):
        assert not [name for name in _hidden(tmp_path) if name.endswith(".part")]
        assert record.exists() or not target.exists()
        if not target.exists():
            stopped += 1
            assert code != 0 and commands.run(*words, target) == 0
        else:  # it had ended: a second draw is refused
            assert commands.run(*words, target) == 2
        found = csv.read_csv(target)
        assert found["number"].to_pylist() == list(range(4 * _ROWS))
        assert not _hidden(tmp_path)
        target.unlink()
        record.unlink()
    assert stopped >= _moments("file") // 3  # else the moments missed the work


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_sanitize_of_a_folder_is_resumed(
    commands: Warm, runs: Path, tmp_path: Path, stop: int
) -> None:
    for part in range(_PARTS):
        table = checkins(_ROWS, seed=part).select(["latitude", "longitude", "number"])
        numbers = np.arange(_ROWS) + part * _ROWS
        write_parquet(
            tmp_path / "in" / f"part-{part}.parquet", table.set_column(2, "number", [numbers])
        )
    words = ("sanitize", runs / "net", tmp_path / "in")
    seconds = _seconds(commands, *words, tmp_path / "first")
    resumed = 0
    for moment, _ in enumerate(
        _stopped(commands, (*words, tmp_path / "out"), stop, seconds, "folder")
    ):
        work = tmp_path / ".out.sfumato-job"
        assert not [name for name in _hidden(tmp_path) if name.endswith(".part")]
        noted, parts = len(list(work.glob("done/*.json"))), work / "parts"
        if (tmp_path / "out").exists():  # it had ended, or was clearing up
            assert _rows(tmp_path / "out") == list(range(_PARTS * _ROWS))
            noted, parts = _PARTS, tmp_path / "out"
        drawn = {path.name: path.read_bytes() for path in parts.glob("*.parquet")}
        assert commands.run(*words, tmp_path / "out") == 0
        assert _rows(tmp_path / "out") == list(range(_PARTS * _ROWS))
        kept = [(tmp_path / "out" / name).read_bytes() == part for name, part in drawn.items()]
        assert sum(kept) >= noted  # nothing is drawn a second time
        resumed += 0 < noted < _PARTS
        assert not _hidden(tmp_path)
        (tmp_path / "out").rename(tmp_path / f"done-{moment}")
        (tmp_path / "out.record.json").unlink()
    assert resumed >= _moments("folder") // 4


def _rows(folder: Path) -> list[int]:
    names = [f"part-{part}.parquet" for part in range(_PARTS)]
    assert sorted(path.name for path in folder.iterdir()) == names
    found = [parquet.read_table(folder / name)["number"].to_pylist() for name in names]
    return [number for part in found for number in part]


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["codebook", "game"])
def test_a_learner_resumed_gives_the_undisturbed_mechanism(
    commands: Warm, tmp_path: Path, learner: str
) -> None:
    words = (*_SOLVE, "--solver", learner)
    commands.run(*words, "--out", tmp_path / "compiled")
    seconds = _seconds(commands, *words, "--out", tmp_path / "undisturbed")
    undisturbed = load_mechanism(tmp_path / "undisturbed" / "mechanism.npz")
    run = tmp_path / "run"
    for stop in (signal.SIGKILL, signal.SIGTERM):
        stopped = _stopped(commands, (*words, "--out", run), stop, seconds, learner)
        for moment, _ in enumerate(stopped):
            again = "--resume" if (run / "checkpoint.npz").exists() else "--out"
            assert commands.run(*words, again, run) == 0, commands.log.read_text()[-2000:]
            assert same(undisturbed, load_mechanism(run / "mechanism.npz"))
            assert sorted(path.name for path in run.iterdir()) == _RUN
            assert not _hidden(tmp_path)
            run.rename(tmp_path / f"done-{stop}-{moment}")


@pytest.mark.slow
def test_of_two_jobs_with_one_output_exactly_one_succeeds(runs: Path, tmp_path: Path) -> None:
    csv.write_csv(checkins(_ROWS).select(["latitude", "longitude"]), tmp_path / "in.csv")
    words = ["sanitize", runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv"]
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "sfumato", *words], stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = {job.communicate()[1].splitlines()[-1]: job.returncode for job in both}
    assert sorted(said.values()) == [0, 2]
    refusal = next(text for text, code in said.items() if code == 2)
    assert refusal.startswith("error: ") and ("at work" in refusal or "exists" in refusal)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == _ROWS + 1
    assert not _hidden(tmp_path)
