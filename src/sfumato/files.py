"""Files of ours: whole or not there, hashed, never pickled.

What is being written is a draft: a file without a name where the system has such (it goes with its
process), else a hidden one, `.NAME.*.part`.  A draft is locked while its process lives, so the next
job can tell what a killed one left, and clears it.
"""

import ctypes
import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfumato.errors import FileError

_HANDLES = Path("/proc/self/fd")
_UNNAMED = hasattr(os, "O_TMPFILE") and _HANDLES.is_dir()
_BINARY = getattr(os, "O_BINARY", 0)
_NOT_KNOWN_HERE = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
_DRAFT = re.compile(r"\A\.(.+)\.[0-9a-f]{8}\.part\Z")  # as `_hidden_name` names it
_CUT = 60  # letters of a name that leave room for a draft's, whatever the letters
_FULL = {errno.ENOSPC, errno.EDQUOT}
_MOST_DIGITS = 300  # of a whole number; one of 309 is infinite in floating point
_MOST_JSON, _MOST_ARRAYS = 1 << 28, 1 << 31  # bytes; files of ours are far below
_MOST_PACKED, _MOST_SHRUNK = 1 << 26, 100  # beyond these bytes an archive shrinks to 1 % at most
_MOST_MEMBERS = 10_000

# Writing -----------------------------------------------------------------------------------------


@contextmanager
def written_beside(
    path: str | os.PathLike[str], *, replaces: bool = True, private: bool = False
) -> Iterator[Path]:
    """Give a path to write to; what is written becomes `path` when the block ends well.

    A killed job leaves the old file or none, never half of a new one.  Without `replaces` a file
    that has the name by then is left as it is, and the new one is refused.  A `private` file, one
    that tells places of the data, can be read by its owner only.
    """
    target = Path(path)
    with _errors_name(target):
        _make_folder(target.parent)
        draft = _Draft(target)
        try:
            yield draft.path
            draft.path.chmod(0o600 if private else 0o666 & ~_umask())
            os.fsync(draft.handle)
            draft.publish(replaces=replaces)
        finally:
            draft.drop()
        _sync(target.parent)


class _Draft:
    """A file in the making: `path` is where to write it, `hidden` its own name if it has one."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.hidden: Path | None = None
        handle = _open_unnamed(target.parent)
        if handle is None:
            self.hidden = _hidden_name(target)
            handle = os.open(self.hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600)
        self.handle = handle
        self.path = self.hidden or _HANDLES / str(handle)
        flock(handle)

    def publish(self, *, replaces: bool) -> None:
        """Give the draft its final name."""
        if sys.platform == "win32":  # where an open file cannot be renamed
            os.close(self.handle)
            self.handle = -1
        if self.hidden is None:
            try:
                self._link(self.target)
                return
            except FileExistsError:
                if not replaces:
                    raise _taken(self.target) from None
            clear_drafts(self.target)
            self.hidden = _hidden_name(self.target)
            self._link(self.hidden)
        if replaces:
            os.replace(self.hidden, self.target)
            self.hidden = None
        else:
            _rename_to_new(self.hidden, self.target)

    def _link(self, name: Path) -> None:
        # Python follows the link in /proc only if it is given the handle of a folder, which an
        # absolute path does not need: any handle will do.
        os.link(self.path, name.absolute(), src_dir_fd=self.handle, follow_symlinks=True)

    def drop(self) -> None:
        """Let go of the draft; what was not published is gone."""
        with suppress(OSError):  # what counts has been synced, or is given up
            os.close(self.handle)
        if self.hidden is not None:
            with suppress(OSError):
                self.hidden.unlink()


def _open_unnamed(folder: Path) -> int | None:
    """A new file without a name; None where the file system has none."""
    if not _UNNAMED:
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno in _NOT_KNOWN_HERE:
            return None
        raise


def _rename_to_new(hidden: Path, target: Path) -> None:
    """Rename, never over a file that is there; the hidden name may stay."""
    try:
        os.link(hidden, target)
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():  # no system call says it at once here; jobs of ours hold a lock
            raise _taken(target) from None
        os.rename(hidden, target)


@contextmanager
def folder_beside(path: str | os.PathLike[str], *, replaces: bool = False) -> Iterator[Path]:
    """Give a new folder beside `path`; it takes that name when the block ends well, with `replaces`
    also from a folder that has it.

    A killed job leaves the old folder or the new one.  Where a system cannot exchange two names at
    once, the old one may stand aside as `.NAME.*.old` until the next job puts it back.
    """
    target = Path(path)
    with _errors_name(target):
        _make_folder(target.parent)
        clear_drafts(target)
        beside = _hidden_name(target)
        try:
            beside.mkdir(0o700)
            with _locked_if_free(beside):
                yield beside
                beside.chmod(0o777 & ~_umask())
                for place, _, names in os.walk(beside):
                    for name in (*names, ""):
                        _sync(Path(place, name))
                if not (replaces and target.exists()):
                    os.replace(beside, target)
                elif not _exchange(beside, target):
                    _replace_folder(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        _sync(target.parent)


def _exchange(path: Path, other: Path) -> bool:
    """Swap two names at once; False where the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if rename(here, os.fsencode(path), here, os.fsencode(other), swap) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_KNOWN_HERE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _replace_folder(beside: Path, target: Path) -> None:
    """In two steps: the old folder aside, the new one in its place."""
    aside = _hidden_name(target, "old")
    aside.mkdir(0o700)
    with _locked_if_free(aside):
        try:
            os.replace(target, aside / target.name)
            os.replace(beside, target)
        except BaseException:
            if not target.exists():
                os.replace(aside / target.name, target)
            aside.rmdir()
            raise
        shutil.rmtree(aside, ignore_errors=True)


def clear_drafts(target: Path) -> None:
    """Remove what killed jobs left of `target`, and put a folder back that one had set aside.

    What a living job is writing is locked, and stays.
    """
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-z_]{{8}}\.(part|old)")
    if not target.parent.is_dir():
        return
    for name in os.listdir(target.parent):
        if not ours.fullmatch(name):
            continue
        left = target.parent / name
        with suppress(OSError), _locked_if_free(left) as free:
            if not free:
                continue
            if (left / target.name).exists() and not target.exists():
                os.replace(left / target.name, target)
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()


def _hidden_name(target: Path, ending: str = "part") -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{ending}")


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and have the disk know their names."""
    with _errors_name(folder):
        _make_folder(folder)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def check_writable(target: Path) -> None:
    """Refuse, before any work is done, a file that cannot be written; nothing is left behind."""
    with _errors_name(target):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    check_can_be_made(target)


def check_can_be_made(target: Path) -> None:
    """The same of a file or a folder; of a folder that is there, also that it can be written.

    Only trying tells: root may write anywhere by its rights, and not in /proc.  What is tried has
    the names that will be needed, within a draft, and is removed at once; a kill in between leaves
    an empty draft, which the next job clears.
    """
    target = target.absolute()
    with _errors_name(target):
        if not target.name:  # the root of all folders
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        first = target  # the uppermost that is to be made
        while not os.path.exists(first.parent):
            first = first.parent
        if not os.path.isdir(first.parent):
            code = errno.ENOTDIR
            raise NotADirectoryError(code, os.strerror(code), str(first.parent))
        tried = [_hidden_name(first.with_name(first.name[:_CUT]))]
        for part in target.relative_to(first.parent).parts[:-1]:
            tried.append(tried[-1] / part)
        tried.append(tried[-1] / _hidden_name(target).name)  # the longest name of a draft
        if os.path.isdir(target):
            tried.append(target / tried[-1].name)
        made = []
        try:
            for folder in tried:
                folder.mkdir(0o700)
                made.append(folder)
        except OSError as error:  # without the name of what was tried
            raise OSError(error.errno, error.strerror) from None
        finally:
            for folder in reversed(made):
                with suppress(OSError):
                    folder.rmdir()


def rename(path: Path, target: Path) -> None:
    """Give a file that was written here, or a folder of such files, another name."""
    with _errors_name(target):
        for place, _, _ in os.walk(path):
            _sync(Path(place))
        os.replace(path, target)
        for folder in {target.parent, path.parent}:
            _sync(folder)


def _sync(path: Path) -> None:
    """Have the disk hold a file's content or a folder's names, where the system has that."""
    if sys.platform == "win32":
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder that may be written and not listed
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_KNOWN_HERE:
            raise
    finally:
        with suppress(OSError):
            os.close(handle)


@contextmanager
def _errors_name(target: Path) -> Iterator[None]:
    """Any error of the system while `target` is written becomes one sentence that names it."""
    try:
        yield
    except BrokenPipeError:  # about the terminal, not about the file
        raise
    except OSError as error:
        blamed = error.filename2 or error.filename  # of a copy or a new name, where it goes
        named = None if blamed is None else Path(os.fsdecode(blamed))
        folder = target.parent.absolute()
        inside = named is not None and (
            folder in named.absolute().parents or (named.absolute() == folder and folder.is_dir())
        )
        if named is None or inside or named.parent == _HANDLES:
            named = target
        named = Path(*(_DRAFT.sub(r"\1", part) for part in named.parts))
        advice = "name a place in a folder that can be written"
        if error.errno in _FULL:
            advice = "make room on that disk, or name a place on another"
        raise FileError(
            f"cannot write {named}: {error.strerror or type(error).__name__}; {advice}"
        ) from None


def _taken(target: Path) -> FileError:
    return FileError(
        f"{target} exists; it was made while this job was at work: name a new file, or remove it"
    )


# Locks -------------------------------------------------------------------------------------------

_HELD: set[Path] = set()


@contextmanager
def locked(lock: Path, *, busy: str, again: bool = True) -> Iterator[None]:
    """Hold a lock file, or refuse with the sentence `busy` while another process holds it.

    With `again` a process that holds it may take it again.  The system lets go of it however the
    process ends; where it knows no such locks nobody is kept out.
    """
    if again and lock in _HELD:
        yield
        return
    locked = False
    with _empty_folders_gone(lock.parent):
        while not locked:
            with _errors_name(lock.with_name(lock.name.removeprefix(".").removesuffix(".lock"))):
                _make_folder(lock.parent)
                handle = os.open(lock, os.O_CREAT | os.O_WRONLY, 0o666)
            try:
                if not flock(handle):
                    raise FileError(busy)
                # else its last holder removed it as we opened it
                locked = os.fstat(handle).st_nlink > 0
                if locked:
                    _HELD.add(lock)
                    try:
                        yield
                    finally:
                        _HELD.discard(lock)
                        with suppress(OSError):
                            lock.unlink(missing_ok=True)
            finally:
                with suppress(OSError):
                    os.close(handle)


@contextmanager
def _empty_folders_gone(folder: Path) -> Iterator[None]:
    """Where the block fails, remove this folder and those above it that were not there before, as
    far as they are empty."""
    missing = [part for part in (folder, *folder.parents) if not os.path.exists(part)]
    try:
        yield
    except BaseException:
        for part in missing:
            with suppress(OSError):
                part.rmdir()
        raise


@contextmanager
def _locked_if_free(path: Path) -> Iterator[bool]:
    """Lock a file or folder that is there; gives whether no living job has it locked."""
    if sys.platform == "win32":
        yield path.is_dir()  # what is being written cannot be removed there
        return
    # Some network file systems lock a file only for those who may write to it.
    mode = os.O_RDONLY if path.is_dir() else os.O_RDWR
    handle = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        yield flock(handle)
    finally:
        with suppress(OSError):
            os.close(handle)


def flock(handle: int, *, without: bool = True) -> bool:
    """Lock a file: whether no other process holds it; `without` where the system has no locks.  It
    lets go of one however the process ends."""
    if sys.platform == "win32":
        return without
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Documents and arrays ----------------------------------------------------------------------------


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Write text in one go; a `private` file can be read by its owner only."""
    with written_beside(path, private=private) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], document: Any, *, private: bool = False) -> None:
    """Write a JSON document, readable by people and by a strict parser (no NaN, infinity as the
    word)."""
    text = json.dumps(plain(document), indent=2, allow_nan=False) + "\n"
    write_text(path, text, private=private)


@contextmanager
def open_regular(path: str | os.PathLike[str], *, most: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file to read.  A pipe or a device, which may never end, is refused at once, and so is
    a file of more than `most` bytes."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise FileError(f"{path} is a folder, a pipe or a device; expected a regular file")
    with os.fdopen(handle, "rb") as source:
        if most is not None and about.st_size > most:
            raise FileError(f"{path} has {about.st_size} bytes; expected at most {most}")
        yield source


def read_json(path: str | os.PathLike[str], *, what: str) -> dict[str, Any]:
    """Read a JSON object; `what` names it in the error."""
    source = Path(path)
    try:
        with open_regular(source, most=_MOST_JSON) as opened:
            document = json.loads(opened.read().decode("utf-8"), parse_int=_whole)
    except FileNotFoundError:
        raise FileError(f"no {what} at {source}; expected a file that sfumato wrote") from None
    except OSError as error:
        raise FileError(f"cannot read {what} at {source}: {error.strerror}") from None
    except FileError:
        raise
    except (ValueError, RecursionError):
        raise FileError(
            f"{source} is not a whole {what}: it is truncated or not JSON; make it again"
        ) from None
    if not isinstance(document, dict):
        raise FileError(
            f"{source} is not a {what}: expected a JSON object, got {type(document).__name__}"
        )
    return document


def _whole(digits: str) -> int:
    """A whole number that floating point can hold."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number is too large")
    return int(digits)


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


def read_arrays(
    path: str | os.PathLike[str], *, what: str, names: Collection[str] | None = None
) -> dict[str, np.ndarray]:
    """Read an archive of arrays, never a pickle; `what` names it in the error.

    With `names` an archive that holds an array of another name is refused before it is read.
    """
    try:
        with (
            open_regular(path, most=_MOST_ARRAYS) as source,
            zipfile.ZipFile(source) as archive,
        ):
            members = archive.infolist()
            _check_members(members, path, names, packed=source.seek(0, os.SEEK_END))
            return {
                member.filename.removesuffix(".npy"): _array_in(archive, member)
                for member in members
            }
    except FileNotFoundError:
        raise FileError(
            f"there is no {what} file {path}; expected one that sfumato wrote"
        ) from None
    except FileError:
        raise
    except Exception as error:
        # a damaged archive raises anything: zip, zlib, struct or value errors
        raise FileError(
            f"{path} is not a whole {what} file ({type(error).__name__}); make or copy it again"
        ) from None


def _check_members(
    members: list[zipfile.ZipInfo],
    path: str | os.PathLike[str],
    names: Collection[str] | None,
    *,
    packed: int,
) -> None:
    """Refuse an archive by what it says of its size, before memory is taken for its arrays."""
    known = [member.filename.removesuffix(".npy") for member in members]
    odd = [] if names is None else [name for name in known if name not in names]
    size = sum(member.file_size for member in members)
    most = min(_MOST_ARRAYS, max(_MOST_PACKED, _MOST_SHRUNK * packed))
    if odd:
        fault = f"holds an array {odd[0][:40]!r} that no file of its kind has;"
    elif size > most:
        fault = f"unpacks to {size} bytes; expected at most {most}:"
    elif len(members) > _MOST_MEMBERS:
        fault = f"holds {len(members)} arrays; expected at most {_MOST_MEMBERS}:"
    else:
        return
    raise FileError(f"{path} {fault} make or copy it again")


def _array_in(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """An array of the size that its header says, and no object."""
    with archive.open(member) as stored:
        if np.lib.format.read_magic(stored) == (1, 0):
            shape, by_column, kind = np.lib.format.read_array_header_1_0(stored)
        else:
            shape, by_column, kind = np.lib.format.read_array_header_2_0(stored)
        count, room = math.prod(shape), member.file_size - stored.tell()
        empty = kind.itemsize == 0 and count != 1  # a text may be empty
        if empty or kind.hasobject or count * kind.itemsize != room:
            raise ValueError("an array's size is not what its header says")
        data = bytearray(stored.read())
    if not data:
        return np.empty(shape, kind)
    return np.frombuffer(data, kind).reshape(shape, order="F" if by_column else "C")


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, as hexadecimal."""
    digest = hashlib.sha256()
    try:
        with open_regular(path) as source:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}; make or copy it again") from None
    return digest.hexdigest()


def array_hash(*arrays: np.ndarray) -> str:
    """SHA-256 over the shapes, types and little-endian bytes of arrays, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        fixed = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{fixed.dtype.str}{fixed.shape}".encode())
        digest.update(fixed.tobytes())
    return digest.hexdigest()
