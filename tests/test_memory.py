"""Memory that is free is what every limit leaves."""

import sys
from pathlib import Path

import pytest

from sfumato import memory

_OTHER = "1:cpu:/\n"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with 8 GB to be had."""
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    for name, path in (("_SYSTEM", "meminfo"), ("_OWN_GROUPS", "own"), ("_GROUPS", "groups")):
        monkeypatch.setattr(memory, name, tmp_path / path)
    return tmp_path


def _group(folder: Path, names: tuple[str, str, str], limit: str) -> None:
    folder.mkdir(parents=True)
    (folder / names[0]).write_text(limit)
    (folder / names[1]).write_text("500000000\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} 100000000\n")


def test_without_limits_it_is_what_the_system_says(system: Path) -> None:
    assert memory.free_bytes() == 8_000_000 * 1024
    (system / "own").write_text(f"{_OTHER}0::/\n")
    _group(system / "groups", ("memory.max", "memory.current", "inactive_file"), "max\n")
    assert memory.free_bytes() == 8_000_000 * 1024


@pytest.mark.parametrize("group", ["", "job/step"])
def test_a_control_group_or_one_above_it_limits_it(system: Path, group: str) -> None:
    (system / "own").write_text(f"{_OTHER}0::/job/step\n")
    names = ("memory.max", "memory.current", "inactive_file")
    _group(system / "groups" / group, names, "2000000000\n")
    assert memory.free_bytes() == 2e9 - 5e8 + 1e8


def test_a_control_group_of_the_older_version_limits_it(system: Path) -> None:
    (system / "own").write_text(f"{_OTHER}4:memory:/job\n0::/\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    _group(system / "groups" / "memory" / "job", names, "2000000000\n")
    assert memory.free_bytes() == 2e9 - 5e8 + 1e8


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc/self/statm")
def test_the_limit_of_the_process_counts(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    (system / "statm").write_text("1000 1 1 1 1 1 1\n")
    monkeypatch.setattr(memory, "_SIZES", system / "statm")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**9, resource.RLIM_INFINITY))
    assert memory.free_bytes() == 10**9 - 1000 * resource.getpagesize()
