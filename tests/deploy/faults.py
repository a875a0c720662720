"""One call to the system fails: a full disk, an input or output error, or the end of the process.

Every opening for writing, write, sync, rename or link, close, change of mode, making and removing
below a folder is a point.  A run without a fault counts them; then each is made to fail in turn.
"""

import builtins
import errno
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato import files
from sfumato.errors import SfumatoError

FAULTS = {"full": errno.ENOSPC, "damaged": errno.EIO, "killed": 0}
_KILLED = 77
_TAKES_ROOM = ("open", "write", "mkdir", "link", "sendfile")
_TWO_PATHS = ("replace", "rename", "link")
_BY_PATH = (*_TWO_PATHS, "unlink", "remove", "mkdir", "rmdir", "chmod")


@dataclass
class Faults:
    """Counts the points that are reached, and lets one of them fail."""

    folder: Path
    at: int | None = None
    fault: str = "full"
    points: list[str] = field(default_factory=list)
    handles: set[int] = field(default_factory=set)
    full: bool = False

    def reached(self, what: str, path: Any = None, *, halfway: Callable[[], Any] | None = None):
        """A point; `halfway` does what of the call has an effect before it fails."""
        self.points.append(what)
        hit = len(self.points) - 1 == self.at
        if not hit and not (self.full and what in _TAKES_ROOM):
            return
        if halfway is not None:
            halfway()
        if self.fault == "killed":
            os._exit(_KILLED)
        self.full = self.fault == "full"
        code = FAULTS[self.fault]
        raise OSError(code, os.strerror(code), None if path is None else os.fspath(path))

    def ours(self, path: Any) -> bool:
        """Whether a path lies in the folder, or stands for a file that was opened there."""
        if isinstance(path, int):
            return path in self.handles
        text = os.path.abspath(os.fsdecode(path))
        if text.startswith("/proc/self/fd/"):
            return int(text.rpartition("/")[2]) in self.handles
        return text.startswith(str(self.folder))


class _File(io.FileIO):
    """A file whose writes and whose closing are points."""

    faults: Faults

    def write(self, data: Any) -> int:
        half = memoryview(data).cast("B")[: len(memoryview(data).cast("B")) // 2]
        self.faults.reached("write", halfway=lambda: super(_File, self).write(half))
        return super().write(data)

    def close(self) -> None:
        if not self.closed:
            self.faults.reached("close", halfway=super().close)
        super().close()


@contextmanager
def injected(faults: Faults) -> Iterator[None]:
    """Put the points between sfumato and the system."""
    real = {name: getattr(os, name) for name in (*_BY_PATH, "open", "close", "fsync", "sendfile")}
    real_open, real_exchange = io.open, files._exchange

    def by_path(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            relative = any(options.get(key) is not None for key in ("dir_fd", "src_dir_fd"))
            if relative or faults.ours(args[0]):
                faults.reached(name, args[1 if name in _TWO_PATHS else 0])
            return real[name](*args, **options)

        return call

    def os_open(path: Any, flags: int, *args: Any, **options: Any) -> int:
        inside = options.get("dir_fd") is not None or faults.ours(path)
        if not inside or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return real["open"](path, flags, *args, **options)
        faults.reached("open", path)
        handle = real["open"](path, flags, *args, **options)
        faults.handles.add(handle)
        return handle

    def os_close(handle: int) -> None:
        if handle in faults.handles:
            faults.handles.discard(handle)
            faults.reached("close", halfway=lambda: real["close"](handle))
        real["close"](handle)

    def os_fsync(handle: int) -> None:
        faults.reached("fsync")

    def os_sendfile(*args: Any, **options: Any) -> int:
        faults.reached("sendfile")
        return real["sendfile"](*args, **options)

    def exchange(one: Path, other: Path) -> bool:
        faults.reached("exchange", other)
        return real_exchange(one, other)

    def io_open(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or not faults.ours(file):
            return real_open(file, mode, *args, **options)
        faults.reached("open", file)
        raw = _File(file, mode.replace("b", "").replace("t", ""))
        raw.faults = faults
        buffered = io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        names = ("buffering", "encoding", "errors", "newline")
        given = {**dict(zip(names, args, strict=False)), **options}
        given.pop("buffering", None)
        return io.TextIOWrapper(buffered, **given)

    changed = {name: by_path(name) for name in _BY_PATH}
    changed |= {"open": os_open, "close": os_close, "fsync": os_fsync, "sendfile": os_sendfile}
    try:
        for name, call in changed.items():
            setattr(os, name, call)
        io.open = builtins.open = io_open  # type: ignore[assignment]
        files._exchange = exchange
        yield
    finally:
        for name, call in real.items():
            setattr(os, name, call)
        io.open = builtins.open = real_open
        files._exchange = real_exchange


@dataclass(frozen=True)
class Scenario:
    """A job in a folder, and what may be there.

    `look` gives the state under the final name ("none", "old", "new"), and fails where it is half
    of something.
    """

    before: Callable[[Path], None]
    job: Callable[[Path], None]
    look: Callable[[Path], str]
    after: Callable[[Path, str], None]  # the next job, given the state; must leave "new"
    draws: bool = False  # whether a draft is another draw of the same rows


def run_all(scenario: Scenario, *, hidden: bool) -> tuple[list[str], list[str]]:
    """Every point of a scenario with every fault: the points, and sentences on what went wrong.

    With `hidden` the system has neither files without a name nor an exchange of two names.
    """
    assert "jax" not in sys.modules  # its threads do not survive a fork
    unnamed, exchange, fsync = files._UNNAMED, files._exchange, os.fsync
    os.fsync = lambda handle: None  # the machine stays up: no need to wait for its disk
    if hidden:
        files._UNNAMED, files._exchange = False, lambda one, other: False
    said: list[str] = []
    sys.unraisablehook = lambda about: said.append(f"unraisable: {about.exc_value!r}")
    try:
        with tempfile.TemporaryDirectory() as place:
            counted = _tried(scenario, Path(place), None, "full", said)
            problems = [f"without a fault: {text}" for text in said]
            for fault in FAULTS:
                for at, point in enumerate(counted):
                    said.clear()
                    try:
                        _tried(scenario, Path(place), at, fault, said)
                    except AssertionError as error:
                        said.append(str(error) or "an assertion failed")
                    problems += [f"{fault} at {at} ({point}): {text}" for text in said]
            return counted, problems
    finally:
        files._UNNAMED, files._exchange, os.fsync = unnamed, exchange, fsync


def _tried(
    scenario: Scenario, place: Path, at: int | None, fault: str, said: list[str]
) -> list[str]:
    folder = place / "work"
    folder.mkdir()
    try:
        scenario.before(folder)
        faults = Faults(folder, at, fault)
        error = None
        if fault == "killed":
            _killed(scenario, faults)
        else:
            error = _failed(scenario, faults)
        if at is not None and fault != "killed":
            assert len(faults.points) > at, "the point was not reached"
        state = scenario.look(folder)
        left = leftovers(folder)
        if error is not None:
            _check_sentence(error, fault, said)
        elif fault != "killed" and state != "new":
            said.append(f"no error, and yet the state is {state}")
        point = None if at is None or fault == "killed" else faults.points[at]
        # What cannot be removed stays until the next job; what is killed may leave a lock, and a
        # hidden draft only where no file is without a name.
        if fault != "killed" and point not in ("unlink", "rmdir") and left:
            said.append(f"left over: {left}")
        drafts = [name for name in left if name.endswith(".part") and (folder / name).is_file()]
        if fault == "killed" and files._UNNAMED and scenario.draws and drafts:
            said.append(f"a draft was left: {drafts}")
        scenario.after(folder, state)
        if scenario.look(folder) != "new":
            said.append("the next job did not end")
        if leftovers(folder):
            said.append(f"not cleared by the next job: {leftovers(folder)}")
        return faults.points
    finally:
        shutil.rmtree(folder)


def leftovers(folder: Path) -> list[str]:
    """Hidden names in a folder: drafts, locks, what was set aside.  The working folder of a job
    counts where no finished part is in it."""
    found = []
    for path in sorted(folder.rglob(".*")):
        done = list(path.glob("done/*.json")) if path.name.endswith(".sfumato-job") else []
        if not done:
            found.append(path.relative_to(folder).as_posix())
    return found


def _failed(scenario: Scenario, faults: Faults) -> Exception | None:
    try:
        with injected(faults):
            scenario.job(faults.folder)
    except Exception as error:
        return error
    return None


def _killed(scenario: Scenario, faults: Faults) -> None:
    child = os.fork()
    if not child:
        try:
            with injected(faults):
                scenario.job(faults.folder)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == _KILLED, "it was not killed at the point"


def _check_sentence(error: Exception, fault: str, said: list[str]) -> None:
    text = str(error)
    if not isinstance(error, SfumatoError):
        said.append(f"a traceback: {error!r}")
    elif os.strerror(FAULTS[fault]) not in text or "out" not in text or "\n" in text:
        said.append(f"not one sentence that names the file and the error: {text}")
