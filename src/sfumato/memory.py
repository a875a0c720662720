"""What a job is expected to take, how much memory is free, and a sentence where it needs more."""

import ctypes
import gc
import sys
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import ProblemError

_KNOWN = Path("/proc/meminfo")
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
    """What can be had without pushing anything else out; None where the system does not say.

    >>> free = free_bytes()
    >>> free is None or free > 0
    True
    """
    try:
        for line in _KNOWN.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


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
