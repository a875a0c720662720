"""One loop under every learned solver: rounds, checkpoint, progress, Ctrl-C, time limit."""

import io
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import equinox as eqx
import numpy as np

from sfumato.errors import FileError
from sfumato.files import array_hash, read_arrays, written_beside
from sfumato.mechanism.base import Mechanism
from sfumato.solver.deadline import Deadline
from sfumato.solver.outcome import Checkpoint, Ended, Progress

_FORMAT = "sfumato checkpoint 2"

History = list[dict[str, Any]]
State = TypeVar("State")


Tell = Callable[[str], None]  # called with what is done within a round, or after the last


def silent(text: str) -> None:
    """Tells nobody."""


def telling(progress: Progress | None) -> Tell:
    """Sentences as records of progress."""
    return silent if progress is None else lambda text: progress({"progress": text})


@dataclass
class Clock:
    """The deadline of the learning, the seconds of each round of this run, and whom to tell what is
    done within one."""

    deadline: Deadline
    took: list[float] = field(default_factory=list)
    tell: Tell = silent

    def play(
        self, training: "Training[State]", state: State, history: History
    ) -> "Round[State] | Ended":
        """The next round, with its seconds noted if there was one."""
        start = time.perf_counter()
        result = training.next_round(state, history, self)
        if not isinstance(result, Ended):
            self.took.append(time.perf_counter() - start)
        return result


@dataclass(frozen=True)
class Round(Generic[State]):
    """What a round gives: the new state, and for each line of history the mechanism at that
    moment."""

    state: State
    lines: list[tuple[dict[str, Any], Mechanism]]


class Training(Protocol[State]):
    """A learner on one problem.  Its state is a tree of arrays and numbers."""

    def identity(self) -> str:
        """What a checkpoint must agree with to be resumed."""

    def first(self) -> State:
        """The state before the first round."""

    def next_round(self, state: State, history: History, clock: Clock) -> Round[State] | Ended:
        """The next round, or why there is none."""


@dataclass(frozen=True)
class Trained(Generic[State]):
    """The state after the last whole round, what was noted, and why the learning ended."""

    state: State
    history: History
    ended: Ended


def train(
    training: Training[State],
    *,
    deadline: Deadline,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> Trained[State]:
    """All rounds, or as many as the deadline allows.

    With `checkpoint` the state is written to that file after each round; if the file exists the
    learning resumes from there, to the very mechanism that it would have found undisturbed.  Ctrl-C
    ends with the last whole round, and is passed on where there is none.
    """
    state, history = training.first(), History()
    if checkpoint is not None and checkpoint.exists():
        state, history = load(checkpoint, state, of=_hashed(training))
        if progress is not None and history:
            progress({"resumed": history[-1]})
    clock = Clock(deadline, tell=telling(progress))
    try:
        while True:
            result = clock.play(training, state, history)
            if isinstance(result, Ended):
                return Trained(state, history, result)
            state, history = result.state, [*history, *(line for line, _ in result.lines)]
            if checkpoint is not None:
                save(checkpoint, state, history, of=_hashed(training))
            if progress is not None:
                for line, mechanism in result.lines:
                    progress({**line, "mechanism": mechanism})
    except KeyboardInterrupt:
        if not history:
            raise
        return Trained(state, history, Ended.STOPPED)


def _hashed(training: Training[Any]) -> str:
    return array_hash(np.frombuffer(training.identity().encode(), dtype=np.uint8))


def save(path: Path, state: Any, history: History, *, of: str) -> None:
    """Write a checkpoint; a killed job leaves the last whole one.  Nothing is pickled.  What is
    learned may tell training places: the file is its owner's alone."""
    leaves = io.BytesIO()
    eqx.tree_serialise_leaves(leaves, state)
    with written_beside(path, private=True) as beside, beside.open("wb") as target:
        np.savez(
            target,
            allow_pickle=False,
            format=np.array(_FORMAT),
            of=np.array(of),
            history=np.array(json.dumps(history)),
            state=np.frombuffer(leaves.getvalue(), dtype=np.uint8),
        )


def load(path: Path, like: State, *, of: str) -> tuple[State, History]:
    """The state and history that `save` wrote; `like` is a state of the same shape."""
    try:
        stored = read_arrays(path, what="checkpoint")
    except FileError as error:
        raise FileError(f"{error}; or start the learning again without it") from None
    if str(stored.get("format")) != _FORMAT:
        raise FileError(
            f"{path} is not a checkpoint of this version; start the learning again without it"
        )
    if str(stored.get("of")) != of:
        raise FileError(
            f"{path} belongs to another run: data, budget, grid, settings or seed differ; resume"
            " with the same ones"
        )
    try:
        leaves = io.BytesIO(stored["state"].tobytes())
        state = eqx.tree_deserialise_leaves(leaves, like)
        history = json.loads(str(stored["history"]))
        sound = isinstance(history, list) and not leaves.read(1)
    except Exception:  # what is not ours raises anything: type, value, key or run-time errors
        sound = False
    if not sound:
        raise FileError(
            f"{path} is not a checkpoint of this run; start the learning again without it"
        )
    return state, history
