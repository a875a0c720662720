"""What a command keeps on the machine: compiled code, in a folder that is the user's alone."""

import os
import sys
from pathlib import Path

import pytest

from sfumato.cli import machine

_FOLDER = "JAX_COMPILATION_CACHE_DIR"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache folder, before JAX is imported; gives where compiled code goes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (_FOLDER, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "")  # so that it is put back as it was
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    return tmp_path / "sfumato" / "compiled"


def test_compiled_code_goes_into_a_folder_of_the_users_own(home: Path) -> None:
    machine.keep_compiled()
    assert os.environ[_FOLDER] == str(home) and home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(home: Path, mode: int) -> None:
    home.mkdir(parents=True)
    home.chmod(mode)
    machine.keep_compiled()
    assert _FOLDER not in os.environ


def test_a_folder_that_was_chosen_is_left_as_it_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_FOLDER, "elsewhere")
    machine.keep_compiled()
    assert os.environ[_FOLDER] == "elsewhere" and not home.exists()


def test_where_no_folder_can_be_made_nothing_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.parent.write_text("a file in its place")
    machine.keep_compiled()
    assert _FOLDER not in os.environ


def test_beyond_its_size_the_oldest_code_goes_first(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(mode=0o700, parents=True)
    for age, name in enumerate(("new-cache", "middle-cache", "old-cache", "letter")):
        (home / name).write_bytes(bytes(100))
        os.utime(home / name, (1000 - age, 1000 - age))
    monkeypatch.setattr(machine, "_MOST_KEPT", 250)
    machine.keep_compiled()
    assert {path.name for path in home.iterdir()} == {"new-cache", "middle-cache", "letter"}


def test_tables_are_worked_on_by_one_thread_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    monkeypatch.delenv("OMP_NUM_THREADS")
    machine.one_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3" and "OMP_NUM_THREADS" not in os.environ
    machine.one_thread(tables=True)
    assert os.environ["OMP_NUM_THREADS"] == "1"
