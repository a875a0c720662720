"""The server's folder: where pages keep what they were given and made, until the server ends.

Its name is only taken once its lock is held, so a folder whose lock is free was left by a server
that was killed; the next server removes it.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "sfumato-studio-"
_LOCK = "lock"


@contextmanager
def work_folder() -> Iterator[Path]:
    """A new folder that its owner alone can read; removed in the end, as are those left over."""
    remove_leftovers()
    draft = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
    handle = os.open(draft / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle)
        folder = draft.rename(draft.with_name(draft.name[1:]))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(handle)


def remove_leftovers() -> None:
    """Remove the folders of this user's servers that are no more."""
    if sys.platform == "win32":  # without such locks nothing tells the living from the dead
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if _lock(handle):
                    shutil.rmtree(folder)
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Take the lock if nobody holds it; the system lets go of it however the process ends."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
