"""Two processes and one run folder: the second is told so, and a process that was killed is in
nobody's way."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.errors import FileError
from sfumato.study.folder import claimed

_HOLD = """
import sys
from pathlib import Path
from sfumato.study.folder import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

_TAKE_TURNS = """
import sys
from pathlib import Path
from sfumato.errors import FileError
from sfumato.study.folder import claimed
target, turns = Path(sys.argv[1]), 0
while turns < 1000:
    try:
        with claimed(target):
            target.touch(exist_ok=False)  # fails where another is inside
            target.unlink()
            turns += 1
    except FileError:
        pass
"""


@pytest.fixture
def other(tmp_path: Path):
    """A process that holds the run folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def _solve(sfumato, folder: Path):
    return sfumato(
        "solve",
        "four-corners",
        "--max-loss",
        173,
        "--cell-m",
        250,
        "--solver",
        "coin",
        "--out",
        folder / "run",
    )


def test_the_second_is_refused_until_the_first_ends(sfumato, tmp_path, other):
    refused = _solve(sfumato, tmp_path)
    assert refused.code == 2 and refused.out == ""
    assert (
        "another sfumato is at work on" in refused.err
        and "wait for it to end or name another folder" in refused.err
    )
    assert not (tmp_path / "run").exists()
    other.communicate("")
    assert _solve(sfumato, tmp_path).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # no lock stays


def test_a_killed_process_is_in_nobodys_way(sfumato, tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / ".run.lock").exists()  # left behind, and held by nobody
    assert _solve(sfumato, tmp_path).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_another_folder_of_the_same_place_is_free(tmp_path, other):
    with (
        claimed(tmp_path / "run-2"),
        claimed(tmp_path / "run-2"),
    ):  # and the holder may take it again
        assert (tmp_path / ".run-2.lock").exists()


def test_never_two_at_once(tmp_path):
    jobs = [
        subprocess.Popen([sys.executable, "-c", _TAKE_TURNS, str(tmp_path / "run")])
        for _ in range(2)
    ]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot write .*file"), claimed(tmp_path / "file" / "run"):
        pass
