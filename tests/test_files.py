"""Files are whole or not there, two writers do not mix, and what never ends is not read."""

import errno
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sfumato import files
from sfumato.errors import FileError
from sfumato.files import (
    check_can_be_made,
    file_hash,
    folder_beside,
    locked,
    read_arrays,
    read_json,
    write_json,
    written_beside,
)


@pytest.fixture(params=["unnamed drafts", "hidden drafts"])
def drafts(request, monkeypatch):
    """Both ways to write: with files that have no name, and without."""
    if request.param == "hidden drafts":
        monkeypatch.setattr(files, "_UNNAMED", False)
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)


def test_a_file_is_there_when_its_block_ends_and_not_before(tmp_path, drafts):
    with written_beside(tmp_path / "new" / "a.txt") as beside:
        beside.write_text("whole")
        assert not (tmp_path / "new" / "a.txt").exists()
    assert (tmp_path / "new" / "a.txt").read_text() == "whole"
    with pytest.raises(KeyError), written_beside(tmp_path / "new" / "a.txt") as beside:
        beside.write_text("half")
        raise KeyError
    assert (tmp_path / "new" / "a.txt").read_text() == "whole"
    with written_beside(tmp_path / "new" / "a.txt") as beside:
        beside.write_text("newer")
    assert (tmp_path / "new" / "a.txt").read_text() == "newer"
    assert os.listdir(tmp_path / "new") == ["a.txt"]


def test_of_two_that_may_not_replace_the_first_wins(tmp_path, drafts):
    with (
        pytest.raises(FileError, match=r"a\.txt exists"),
        written_beside(tmp_path / "a.txt", replaces=False) as late,
    ):
        late.write_text("late")
        with written_beside(tmp_path / "a.txt", replaces=False) as early:
            early.write_text("early")
    assert (tmp_path / "a.txt").read_text() == "early" and os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_takes_the_place_of_another_at_once(tmp_path, drafts):
    for text in ("old", "new"):
        with folder_beside(tmp_path / "run", replaces=True) as beside:
            (beside / "run.json").write_text(text)
        assert (tmp_path / "run" / "run.json").read_text() == text
        assert os.listdir(tmp_path) == ["run"]


def test_the_disk_has_a_file_before_its_name_and_the_name_before_the_end(
    tmp_path, drafts, monkeypatch
):
    """A file that is synced is the draft; after its naming it is the folder."""
    calls = []
    for name in ("fsync", "link", "replace", "rename"):
        real = getattr(os, name)

        def call(*args, name=name, real=real, **options):
            folder = name == "fsync" and os.path.isdir(f"/proc/self/fd/{args[0]}")
            calls.append("fsync of the folder" if folder else name)
            return real(*args, **options)

        monkeypatch.setattr(os, name, call)
    write_json(tmp_path / "a.json", {})
    assert calls[0] == "fsync" and calls[1] in ("link", "replace")
    assert calls[2:] == ["fsync of the folder"]
    calls.clear()
    files.rename(tmp_path / "a.json", tmp_path / "b.json")
    assert calls == ["replace", "fsync of the folder"]


def test_a_killed_writers_draft_is_cleared_and_a_living_ones_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_UNNAMED", False)
    (tmp_path / ".a.txt.0badcafe.part").write_text("left by a killed job")
    (tmp_path / ".a.txt.backup.part").write_text("not ours")
    with written_beside(tmp_path / "a.txt") as beside:
        beside.write_text("being written")
        files.clear_drafts(tmp_path / "a.txt")
        assert sorted(os.listdir(tmp_path)) == sorted([".a.txt.backup.part", beside.name])
    assert (tmp_path / "a.txt").read_text() == "being written"


def test_a_folder_that_a_killed_job_set_aside_is_put_back(tmp_path):
    (tmp_path / ".run.0badcafe.old" / "run").mkdir(parents=True)
    (tmp_path / ".run.0badcafe.old" / "run" / "run.json").write_text("old")
    files.clear_drafts(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_text() == "old" and os.listdir(tmp_path) == ["run"]


def test_a_lock_keeps_out_the_same_process_where_asked(tmp_path):
    with locked(tmp_path / "lock", busy="busy"):
        with locked(tmp_path / "lock", busy="busy"):
            pass
        with (
            pytest.raises(FileError, match="busy"),
            locked(tmp_path / "lock", busy="busy", again=False),
        ):
            pass
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("writes", [False, True])
def test_a_job_that_fails_leaves_no_empty_folder_that_it_made(tmp_path, writes):
    (tmp_path / "old").mkdir()
    for folder, stays in (("new/deep", writes), ("old", True)):
        with (
            pytest.raises(FileError, match="full"),
            locked(tmp_path / folder / ".run.lock", busy="busy"),
        ):
            if writes:
                (tmp_path / folder / "b.json").touch()
            raise FileError("full")
        assert (tmp_path / folder.split("/")[0]).exists() is stays
        assert (tmp_path / folder / "b.json").exists() is writes


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_an_error_of_the_system_names_the_file(tmp_path, code):
    with (
        pytest.raises(FileError, match=re.escape(f"a.json: {os.strerror(code)}")),
        written_beside(tmp_path / "a.json"),
    ):
        raise OSError(code, os.strerror(code))


def _read_json(path: Path) -> object:
    return read_json(path, what="run record")


def _read_arrays(path: Path) -> object:
    return read_arrays(path, what="mechanism")


@pytest.mark.parametrize("read", [_read_json, _read_arrays, file_hash])
@pytest.mark.timeout(20)
def test_what_never_ends_is_refused_at_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(FileError, match=f"{path} is a folder, a pipe or a device"):
            read(path)


def test_documents_that_break_a_parser_are_one_sentence(tmp_path):
    many = ('{"a": ' + "1" * digits + "}" for digits in (400, 5_000))  # of a whole number
    for text in ("[" * 100_000, *many, "{", "\xff"):
        (tmp_path / "run.json").write_text(text, encoding="latin-1")
        with pytest.raises(FileError, match="not a whole run record"):
            read_json(tmp_path / "run.json", what="run record")
    write_json(tmp_path / "run.json", {"a": [1.5, np.inf]})
    assert read_json(tmp_path / "run.json", what="run record") == {"a": [1.5, "infinity"]}


def test_an_archive_larger_than_it_may_be_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MOST_ARRAYS", 1 << 20)
    np.savez_compressed(tmp_path / "large.npz", zeros=np.zeros(1 << 18))
    with pytest.raises(FileError, match=r"unpacks to 20\d{5} bytes; expected at most 1048576"):
        read_arrays(tmp_path / "large.npz", what="mechanism")


def test_an_array_that_says_it_is_larger_than_it_is_takes_no_memory(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    with zipfile.ZipFile(tmp_path / "false.npz", "w") as archive:
        archive.writestr(
            "a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64
        )
    with pytest.raises(FileError, match="not a whole mechanism file"):
        read_arrays(tmp_path / "false.npz", what="mechanism")


def test_errors_within_a_folder_in_the_making_name_the_folder_that_was_asked_for(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with (
        pytest.raises(FileError, match="No space left") as refused,
        folder_beside(tmp_path / "run") as beside,
        written_beside(beside / "run.json"),
    ):
        raise full
    assert str(tmp_path / "run" / "run.json") in str(refused.value)
    assert ".part" not in str(refused.value)


def test_a_copy_that_finds_no_room_names_what_was_to_be_written(tmp_path):
    """The system names both files: the one that is copied was said to be full."""
    full = os.strerror(errno.ENOSPC)
    with (
        pytest.raises(FileError, match="No space left") as refused,
        folder_beside(tmp_path / "dist") as beside,
    ):
        raise OSError(errno.ENOSPC, full, "/source/page.html", None, str(beside / "page.html"))
    assert f"cannot write {tmp_path / 'dist'}" in str(refused.value)
    assert "source" not in str(refused.value)


def _refused(target):
    with pytest.raises(FileError, match=r"^cannot write .*; name a place in a folder") as refused:
        check_can_be_made(target)
    return str(refused.value)


def test_a_place_that_cannot_be_written_is_refused_beforehand_and_nothing_is_left(
    tmp_path, monkeypatch
):
    (tmp_path / "run").mkdir()
    (tmp_path / "file").touch()
    before = set(tmp_path.rglob("*"))
    for name in ("new", "run", "not/yet/there", "r" * 230, f"{'r' * 250}/run", f"new/{'é' * 110}"):
        check_can_be_made(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    check_can_be_made(Path("new"))
    assert "Not a directory" in _refused(tmp_path / "file" / "run")
    for name in ("r" * 250, f"new/{'r' * 256}/run", f"new/{'r' * 250}"):  # a draft's is longer
        assert "File name too long" in _refused(tmp_path / name)
    assert ".part" not in _refused(tmp_path / ("r" * 250))
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
def test_root_cannot_write_everywhere():
    assert "/proc/run" in _refused(Path("/proc/run"))


def test_the_root_of_all_folders_is_no_target(tmp_path):
    """It has no name, and no draft beside it."""
    assert "Is a directory" in _refused(Path(tmp_path.anchor))


def test_a_folder_that_cannot_be_written_is_refused_although_the_one_above_can(
    tmp_path, monkeypatch
):
    (tmp_path / "run").mkdir()
    make = Path.mkdir

    def refusing(path, *more, **options):
        if path.parent == tmp_path / "run":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        make(path, *more, **options)

    monkeypatch.setattr(Path, "mkdir", refusing)
    assert f"{tmp_path / 'run'}: Permission denied" in _refused(tmp_path / "run")
    assert os.listdir(tmp_path) == ["run"]
