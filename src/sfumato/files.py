"""Files of ours: written beside and renamed, hashed, never pickled."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfumato.errors import FileError


@contextmanager
def written_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder; rename it to `path` when the block ends well.

    A killed job leaves the old file or none, never half of a new one.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
    except OSError as error:
        raise FileError(
            f"cannot write {target}: {error.strerror}; name a file in a folder that can be written"
        ) from None
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with beside.open("rb") as finished:
            os.fsync(finished.fileno())
        beside.chmod(0o666 & ~_umask())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def folder_beside(path: str | os.PathLike[str], *, replaces: bool = False) -> Iterator[Path]:
    """Give a new folder beside `path`; it takes that name when the block ends well, with `replaces`
    also from a folder that has it.

    A killed job leaves the old folder or none (it may stand beside, as `.NAME.*.old`), never half
    of a new one.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        )
    except OSError as error:
        raise FileError(
            f"cannot write {target}: {error.strerror}; name a folder that can be written"
        ) from None
    try:
        yield beside
        beside.chmod(0o777 & ~_umask())
        if replaces and target.exists():
            old = Path(
                tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent)
            )
            os.replace(target, old / target.name)
            os.replace(beside, target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


_HELD: set[Path] = set()


@contextmanager
def locked(lock: Path, *, busy: str) -> Iterator[None]:
    """Hold a lock file, or refuse with the sentence `busy` while another process holds it.

    A process that holds it may take it again.  The system lets go of it however the process ends;
    where it knows no such locks nobody is kept out.
    """
    if lock in _HELD:
        yield
        return
    held = False
    while not held:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = lock.open("w")
        except OSError as error:
            raise FileError(
                f"cannot write {lock.parent}: {error.strerror}; name a folder that can be written"
            ) from None
        with handle:
            if not _flock(handle):
                raise FileError(busy)
            held = (
                os.fstat(handle.fileno()).st_nlink > 0
            )  # else its last holder removed it as we opened it
            if held:
                _HELD.add(lock)
                try:
                    yield
                finally:
                    _HELD.discard(lock)
                    lock.unlink(missing_ok=True)


def _flock(handle: IO[str]) -> bool:
    """Whether no other process holds the file."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text in one go."""
    with written_beside(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], document: Any) -> None:
    """Write a JSON document, readable by people and by a strict parser (no NaN, infinity as the
    word)."""
    write_text(path, json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike[str], *, what: str) -> dict[str, Any]:
    """Read a JSON object; `what` names it in the error."""
    source = Path(path)
    try:
        document = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"no {what} at {source}; expected a file that sfumato wrote") from None
    except OSError as error:
        raise FileError(f"cannot read {what} at {source}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise FileError(
            f"{source} is not a whole {what}: it is truncated or not JSON; make it again"
        ) from None
    if not isinstance(document, dict):
        raise FileError(
            f"{source} is not a {what}: expected a JSON object, got {type(document).__name__}"
        )
    return document


def plain(value: Any) -> Any:
    """Turn arrays, NumPy numbers and infinities into what JSON can hold; infinity becomes the word
    "infinity"."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        if value != value:
            return None
        if value in (float("inf"), float("-inf")):
            return "infinity" if value > 0 else "-infinity"
    return value


def read_arrays(path: str | os.PathLike[str], *, what: str) -> dict[str, np.ndarray]:
    """Read an archive of arrays, never a pickle; `what` names it in the error."""
    try:
        with Path(path).open("rb") as source, np.load(source, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise FileError(
            f"there is no {what} file {path}; expected one that sfumato wrote"
        ) from None
    except (
        Exception
    ) as error:  # a damaged archive raises anything: zip, zlib, struct or value errors
        raise FileError(
            f"{path} is not a whole {what} file ({type(error).__name__}); make or copy it again"
        ) from None


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, as hexadecimal."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as source:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def array_hash(*arrays: np.ndarray) -> str:
    """SHA-256 over the shapes, types and little-endian bytes of arrays, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        fixed = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{fixed.dtype.str}{fixed.shape}".encode())
        digest.update(fixed.tobytes())
    return digest.hexdigest()
