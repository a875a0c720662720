"""One thread per matrix product while a problem is solved: ours are small, and threads that wait
for each other take several times the processor time."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple

_LOADED = Path("/proc/self/maps")
# how builds of OpenBLAS name its functions: those of the wheels of NumPy and SciPy, then others
_NAMES = [(prefix, suffix) for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")]
_lock = Lock()
_inside = 0
_before: "list[tuple[_Pool, int]]" = []


class _Pool(NamedTuple):
    """The threads of one loaded OpenBLAS."""

    number: Callable[[], int]
    limit: Callable[[int], None]


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products take one thread inside, and as many as before afterwards.

    Left alone where OPENBLAS_NUM_THREADS is set: then the user has decided.  The number is the
    process's, so products of the user's other threads take one as well meanwhile; of several solves
    at a time the last to end restores it.  Where NumPy uses another library, nothing changes.
    """
    global _inside
    if "OPENBLAS_NUM_THREADS" in os.environ:
        yield
        return
    with _lock:
        if not _inside:
            _before[:] = [(pool, pool.number()) for pool in _pools()]
            for pool, _ in _before:
                pool.limit(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                for pool, count in _before:
                    pool.limit(count)


def _pools() -> list[_Pool]:
    """Every OpenBLAS that this process has loaded: NumPy and SciPy each bring their own."""
    try:
        lines = _LOADED.read_text().splitlines()
    except OSError:  # no such file on this system
        return []
    paths = {line.split(maxsplit=5)[-1] for line in lines if "openblas" in line}
    return [pool for path in sorted(paths) if (pool := _pool(path)) is not None]


def _pool(path: str) -> _Pool | None:
    try:
        library = ctypes.CDLL(path)  # loaded already: the same library
    except OSError:
        return None
    for prefix, suffix in _NAMES:
        count = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
        limit = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
        if count is not None and limit is not None:
            count.argtypes, count.restype = [], ctypes.c_int
            limit.argtypes, limit.restype = [ctypes.c_int], None
            return _Pool(count, limit)
    return None
