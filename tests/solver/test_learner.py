"""The loop under the learned solvers: rounds, checkpoints, Ctrl-C and the deadline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import FileError, ProblemError
from sfumato.mechanism.simple import Identity
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.learner import Clock, History, Round, load, save, train
from sfumato.solver.outcome import Ended


class Counting:
    """Adds 1 to an array in each of five rounds."""

    def __init__(self, *, interrupted_at: int = -1, name: str = "counting") -> None:
        self.interrupted_at, self.name = interrupted_at, name

    def identity(self) -> str:
        return self.name

    def first(self) -> Any:
        return {"sum": np.zeros(3)}

    def next_round(self, state: Any, history: History, clock: Clock) -> Round[Any] | Ended:
        if len(history) == 5:
            return Ended.FINISHED
        if clock.deadline.passed:
            return Ended.TIME_LIMIT
        if len(history) == self.interrupted_at:
            raise KeyboardInterrupt
        line = {"round": len(history)}
        return Round({"sum": state["sum"] + 1}, [(line, Identity())])


def test_all_rounds_are_played_and_told_with_their_mechanism() -> None:
    lines: list[dict[str, Any]] = []
    trained = train(Counting(), deadline=NEVER, progress=lines.append, checkpoint=None)
    assert trained.ended is Ended.FINISHED and trained.state["sum"].tolist() == [5, 5, 5]
    assert [line["round"] for line in lines] == list(range(5))
    assert all(isinstance(line["mechanism"], Identity) for line in lines)


def test_ctrl_c_keeps_whole_rounds_and_a_checkpoint_resumes_them(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    stopped = train(Counting(interrupted_at=3), deadline=NEVER, progress=None, checkpoint=path)
    assert stopped.ended is Ended.STOPPED and len(stopped.history) == 3
    lines: list[dict[str, Any]] = []
    resumed = train(Counting(), deadline=NEVER, progress=lines.append, checkpoint=path)
    assert lines[0] == {"resumed": {"round": 2}}  # where it was stopped
    assert [line["round"] for line in lines[1:]] == [3, 4]
    assert resumed.state["sum"].tolist() == [5, 5, 5] and len(resumed.history) == 5


def test_ctrl_c_before_the_first_round_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        train(Counting(interrupted_at=0), deadline=NEVER, progress=None, checkpoint=None)


def test_a_passed_deadline_ends_the_rounds() -> None:
    trained = train(Counting(), deadline=Deadline(0.0), progress=None, checkpoint=None)
    assert trained.ended is Ended.TIME_LIMIT and trained.history == []


def test_a_checkpoint_that_is_not_of_this_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    train(Counting(name="another"), deadline=NEVER, progress=None, checkpoint=path)
    with pytest.raises(FileError, match="belongs to another run"):
        train(Counting(), deadline=NEVER, progress=None, checkpoint=path)
    np.savez(path, format=np.array("sfumato game 1"))
    with pytest.raises(FileError, match="not a checkpoint of this version"):
        train(Counting(), deadline=NEVER, progress=None, checkpoint=path)
    save(path, {"sum": np.zeros(4)}, [], of="x")
    with pytest.raises(FileError, match="is not a checkpoint of this run"):
        load(path, {"sum": np.zeros(3)}, of="x")


def test_a_deadline_is_shared_out_and_never_is_never() -> None:
    half = Deadline.after(100.0).share(0.5)
    assert 45 < half.left <= 50 and half.limited and not half.passed
    assert NEVER.left == float("inf") and NEVER.share(0.5) == NEVER and not NEVER.limited
    assert Deadline(0.0).passed and 0 < Deadline(0.0).no_sooner_than(5.0).left <= 5
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(ProblemError, match="time limit must be above 0 seconds"):
            Deadline.after(wrong)
