"""Tests that need the real data are skipped aloud, counted, and fail where CI is set."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TEST = "def test_needs_it(gowalla_paris):\n    assert gowalla_paris.is_file()\n"


def _run(tmp_path: Path, *, ci: bool) -> subprocess.CompletedProcess[str]:
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith("PYTEST")
    }
    there = {
        "SFUMATO_DATA": str(tmp_path / "nowhere"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
    }
    environment = {**kept, **there, **({"CI": "true"} if ci else {})}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-rs",
        str(tmp_path),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )


def test_without_the_data_a_test_is_skipped_with_a_reason_and_counted(tmp_path: Path) -> None:
    done = _run(tmp_path, ci=False)
    assert done.returncode == 0
    assert "set SFUMATO_DATA" in done.stdout
    assert "skipped for want of real data (SFUMATO_DATA): 1" in done.stdout


def test_without_the_data_a_test_fails_where_ci_is_set(tmp_path: Path) -> None:
    done = _run(tmp_path, ci=True)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "CI is set" in done.stdout
