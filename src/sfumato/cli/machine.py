"""How a command uses the machine: one thread per matrix product, and compiled code that is kept."""

import os
import stat
import sys
from pathlib import Path

_MOST_KEPT = 256 * 2**20  # bytes of compiled code; beyond it the oldest goes
_KEPT = "*-cache"  # how JAX names it: the folder may be a link to one with other files
_SHORTEST_S = "0.05"  # what compiles faster is not kept


def one_thread(*, tables: bool = False) -> None:
    """Matrix products of this process take one thread unless the environment says otherwise: ours
    are small, and threads that wait for each other took ten times the processor time.
    With `tables`, so do Arrow and OpenMP, where rows are worked on part by part."""
    for name in ("OPENBLAS_NUM_THREADS", *["OMP_NUM_THREADS"] * tables):
        os.environ.setdefault(name, "1")


def keep_compiled() -> None:
    """Keep what JAX compiles in the user's cache folder, so that the next run need not compile it.

    It is code and shapes of arrays, never data.  Left alone where JAX_COMPILATION_CACHE_DIR is set,
    and where the folder is not the user's alone: who can write it can run code here.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or "jax" in sys.modules:
        return
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(home) if home else Path.home() / ".cache") / "sfumato" / "compiled"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = folder.stat()
        if hasattr(os, "getuid") and known.st_uid != os.getuid():
            return
        if stat.S_IMODE(known.st_mode) & 0o022:
            return
        _prune(folder)
    except (OSError, RuntimeError):  # no home, no room, not ours: it is compiled each time
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", _SHORTEST_S)


def _prune(folder: Path) -> None:
    """Remove the oldest files that JAX kept until the rest of them is small enough."""
    files = [(path.stat(), path) for path in folder.glob(_KEPT) if path.is_file()]
    size = sum(known.st_size for known, _ in files)
    for known, path in sorted(files, key=lambda file: file[0].st_mtime):
        if size <= _MOST_KEPT:
            break
        path.unlink(missing_ok=True)
        size -= known.st_size
