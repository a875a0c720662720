"""A stop is not lost, wherever the computation is when it comes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sfumato.studio import work

_IN_A_FINALISER = """
import _thread, sys, time
from sfumato.studio import work
{hook}
class Finalised:
    def __del__(self):
        _thread.interrupt_main()
        for _ in range(1000): pass  # the stop comes here, where its exception is dropped
try:
    Finalised()
    time.sleep(1)
    print("lost")
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize(
    ("hook", "ends"),
    [("", "lost"), ("sys.unraisablehook = work.not_lost", "stopped")],
)
def test_a_stop_in_a_finaliser_is_sent_again(hook: str, ends: str) -> None:
    code = _IN_A_FINALISER.format(hook=hook)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ends


_TASK = {
    "recipe": {"source": "four-corners", "per_user": [5, 5]},
    "source": "four-corners",
    "max_loss": 173.0,
    "cell_m": 100.0,
    "objective": "bayes",
    "reports": 1,
    "seed": 0,
}


def test_a_proof_that_is_stopped_leaves_the_run_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    told: list[dict] = []
    monkeypatch.setattr("sfumato.study.solve.certificate_for", stopped)
    solver = {"solver": "codebook", "time_limit": 0.1, "out": str(tmp_path / "run")}
    work.solve_task({**_TASK, **solver}, told.append)
    assert told[-1]["kind"] == "done" and (tmp_path / "run" / "run.json").exists()
    assert "The proof was stopped" in told[-1]["solution"]["proved"]


def test_a_stop_that_somebody_swallowed_ends_the_next_round(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[dict] = []
    solver = {"solver": "exact", "time_limit": None, "out": str(tmp_path / "run")}
    task = {**_TASK, **solver}
    monkeypatch.setattr(work, "STOPPING", work.threading.Event())
    monkeypatch.setattr("sfumato.study.solve.solve_and_save", _one_round)
    work.STOPPING.set()
    with pytest.raises(KeyboardInterrupt):
        work.solve_task(task, told.append)
    assert told == []


def _one_round(*args: object, progress, **options: object) -> None:
    progress({"round": 1, "loss": 200.0})
    raise AssertionError("the round was told as if nothing had happened")


_SWALLOWED = """
import sys, time
from sfumato.studio import work
work._AT_ONCE_S, work._TWICE_S = 0.3, 0.0
def stuck(task, tell, inbox):
    if {begun}: work.BEGUN.set()
    tell({{"kind": "round"}})
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try: time.sleep(0.1)
        except KeyboardInterrupt: pass  # as an import does that is interrupted
work._run = stuck
work.main()
"""


@pytest.mark.parametrize(("begun", "stops"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("kept", [False, True])
def test_a_stop_that_is_swallowed_ends_the_process_where_nothing_is_lost(
    begun: bool, stops: int, kept: bool, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint.npz"
    if kept:
        checkpoint.touch()
    code = _SWALLOWED.format(begun=begun)
    job = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert job.stdin is not None and job.stdout is not None
    print(json.dumps({"kind": "solve", "checkpoint": str(checkpoint)}), file=job.stdin, flush=True)
    assert json.loads(job.stdout.readline()) == {"kind": "round"}
    for _ in range(stops):
        time.sleep(0.3)
        assert job.poll() is None
        print(json.dumps({"kind": "stop"}), file=job.stdin, flush=True)
    begin = time.monotonic()
    said = json.loads(job.stdout.readline())
    assert time.monotonic() < begin + 10
    assert said["kind"] == "stopped" and said["resumable"] is kept
    assert ("Resume continues" in said["error"]) is kept
    assert job.wait(10) == 0
    job.stdin.close()
    job.stdout.close()


@pytest.mark.parametrize(
    ("learns", "rounds", "made", "words"),
    [
        (False, False, False, "This solver keeps nothing"),
        (True, False, False, "before the first round was done: nothing is kept"),
        (True, True, False, "before there was a mechanism; Resume continues"),
        (True, True, True, "the mechanism stays as it was; Resume continues"),
    ],
)
def test_what_a_stop_keeps_is_said_for_the_solver_and_the_moment(
    learns: bool, rounds: bool, made: bool, words: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint.npz"
    if rounds:
        checkpoint.touch()
    said = work.stopped({"checkpoint": str(checkpoint) if learns else None, "made": made})
    assert words in said["error"] and said["resumable"] is rounds
