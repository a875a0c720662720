"""The notebooks run through, and show what they showed."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import notebooks

BOOKS = sorted(path.name for path in notebooks.FOLDER.glob("*.ipynb"))
DRAWN = {"protect-a-log.ipynb"}  # its reports are drawn anew, as those of a user are


def _shown(book: dict[str, Any]) -> list[tuple[str, str]]:
    """Each output of the code cells: its richest kind, and its plain text."""
    found = []
    for cell in book["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text")})
            found.append((list(data)[-1], "".join(data["text/plain"])))
    return found


def _run(path: Path, target: Path) -> "subprocess.CompletedProcess[str]":
    """In a process of its own: here every call's shapes are checked, which takes longer."""
    command = [sys.executable, "-m", "tools.notebooks", str(path), str(target)]
    root = notebooks.FOLDER.parents[1]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"(?<![\w.])\d+\.\d+(?!\w)", text)]


@pytest.mark.parametrize("name", BOOKS)
def test_a_notebook_shows_what_was_committed(name: str, tmp_path: Path) -> None:
    path = notebooks.FOLDER / name
    ran = _run(path, tmp_path / name)
    assert ran.returncode == 0, ran.stderr
    now, then = (_shown(json.loads(p.read_text("utf-8"))) for p in (tmp_path / name, path))
    assert [kind for kind, _ in now] == [kind for kind, _ in then] and len(then) >= 5
    if name not in DRAWN:
        for (_, mine), (_, theirs) in zip(now, then, strict=True):
            assert _numbers(mine) == pytest.approx(_numbers(theirs), rel=0.02, abs=0.02)


def test_there_are_three_and_each_is_run_in_order() -> None:
    assert len(BOOKS) == 3
    for name in BOOKS:
        book = json.loads((notebooks.FOLDER / name).read_text("utf-8"))
        counts = [cell["execution_count"] for cell in book["cells"] if cell["cell_type"] == "code"]
        assert counts == list(range(1, len(counts) + 1))
        assert book["nbformat"] == 4


def test_a_cell_that_fails_fails_the_notebook(tmp_path: Path) -> None:
    path = tmp_path / "bad.ipynb"
    cell = {"cell_type": "code", "source": ["print('before')\n", "1 / 0"]}
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        notebooks.run(path)
