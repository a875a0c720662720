"""A fresh clone has no Gowalla file: what is synthetic runs, the rest says where the file is."""

import pkgutil
import runpy
from pathlib import Path

import pytest

import paper.runs
from paper.__main__ import main
from paper.experiments import SYNTHETIC, load
from paper.pages.whole import introduction
from paper.runs import laplace_tables, no_noise
from paper.steps import steps, tables
from sfumato.errors import DataError
from sfumato.files import read_json

COMMANDS = ["paper"] + [
    f"paper.runs.{module.name}"
    for module in pkgutil.iter_modules(paper.runs.__path__)
    if module.name != "game_run"  # what a game gives, for the others
]


@pytest.fixture
def fresh_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    monkeypatch.setenv("SFUMATO_GOWALLA", "")
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [name, "-h"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(f"{name}.__main__" if name == "paper" else name, None, "__main__", True)
    told = capsys.readouterr().out
    assert left.value.code == 0 and told.startswith(f"usage: python -m {name}")


@pytest.mark.parametrize("words", [("--experiment", "3"), ("--gowalla", "nothing.gz")])
def test_what_needs_the_file_says_where_it_is(
    fresh_clone: Path,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["paper", *words])
    assert main() == 2
    assert "loc-gowalla_totalCheckins.txt.gz" in capsys.readouterr().err


def test_a_run_that_needs_the_file_says_where_it_is(fresh_clone: Path) -> None:
    with pytest.raises(DataError, match=r"snap\.stanford\.edu"):
        load("gowalla", 0)


def test_synthetic_experiments_run_without_the_file(fresh_clone: Path) -> None:
    assert not any(step.gowalla for step in tables((0,), SYNTHETIC, paper=True))
    assert {step.name for step in steps() if not step.gowalla} > {"Alice and Bob", "coverage"}
    no_noise.main(fresh_clone, (0,), ("synthetic",))
    laplace_tables.main(fresh_clone, (0,), (2,))
    first = tables((0,), (2,))[:2]
    assert all(step.done(fresh_clone) for step in first)
    laplace = read_json(fresh_clone / "laplace.json", what="planar Laplace")
    table = introduction(fresh_clone, laplace, (2,))
    assert "2: synthetic data, high utility" in table[2] and len(table) == 4
    assert "Game" not in table[0]  # it was not run, and its column would be blank
