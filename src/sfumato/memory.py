"""What a job is expected to take, how much memory is free, and a sentence where it needs more."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import ProblemError

_SYSTEM, _SIZES = Path("/proc/meminfo"), Path("/proc/self/statm")
_OWN_GROUPS, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# by the names of the two versions of control groups: the folder, limit, use and cache to be had
_OF_GROUPS = {
    "": (".", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


@dataclass(frozen=True)
class Expected:
    """Seconds of one core of a machine like ours, right to within a factor, and bytes.

    >>> Expected(10.0, 3e8, within=4.0).fastest
    2.5
    """

    seconds: float
    bytes: float
    within: float = 1.0

    @property
    def fastest(self) -> float:
        """The least that it may take, in seconds."""
        return self.seconds / self.within

    @property
    def slowest(self) -> float:
        """The most that it may take, in seconds."""
        return self.seconds * self.within


def free_bytes() -> float | None:
    """What can be had without pushing anything else out: the least of what the system, the control
    groups (a container, a job of a cluster) and the limit of this process (`ulimit -v`) leave; None
    where none of them says.

    >>> free = free_bytes()
    >>> free is None or free > 0
    True
    """
    left: list[float] = []
    for known in (_of_system, _of_groups, _of_process):
        with suppress(OSError, ValueError, IndexError):
            left.extend(known())
    return max(1.0, min(left)) if left else None


def _of_system() -> Iterator[float]:
    yield _number_after("MemAvailable:", _SYSTEM) * 1024


def _of_groups() -> Iterator[float]:
    """Of the groups of this process, and of those above them, that have a limit."""
    for line in _OWN_GROUPS.read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        kind = "memory" if "memory" in kinds.split(",") else kinds
        if kind not in _OF_GROUPS:
            continue
        folder, limit, used, cache = _OF_GROUPS[kind]
        own = Path(path.lstrip("/"))
        for group in (own, *own.parents):  # within a container only the last is there
            place = _GROUPS / folder / group
            with suppress(OSError, ValueError, IndexError):
                most = float((place / limit).read_text())  # "max" is no limit
                now = float((place / used).read_text())
                yield most - now + _number_after(cache, place / "memory.stat")


def _of_process() -> Iterator[float]:
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        yield limit - float(_SIZES.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _number_after(name: str, path: Path) -> float:
    """The number behind a name, in a file with one such pair per line."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return float(next((pair[1] for pair in pairs if pair[0] == name), "nothing"))


def check_fits(needed: float, *, what: str, advice: str) -> None:
    """Refuse what needs more memory than is free, and say what would fit."""
    free = free_bytes()
    if free is not None and needed > free:
        raise ProblemError(
            f"{what} needs about {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free;"
            f" {advice}"
        )


def one_heap() -> None:
    """Let all threads of this process share one heap: XLA compiles in several, and each would keep
    a heap of its own when it is done.  Nothing happens where the C library is not glibc."""
    _malloc("mallopt", _ARENA_MAX, 1)


def give_back() -> None:
    """Hand memory that is free, but still held, back to the system; where the C library is glibc.

    >>> give_back()
    """
    _malloc("malloc_trim", 0)


def forget_compiled() -> None:
    """Drop what JAX has compiled, where it is in use.  It keeps every program, for each shape of
    its arrays: tens of megabytes, and some hundred mappings, of which Linux allows a process 65,530
    and beyond them the compiler ends it.

    >>> forget_compiled()
    """
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
        gc.collect()
        give_back()


def _malloc(name: str, *numbers: int) -> None:
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return
    function(*numbers)
