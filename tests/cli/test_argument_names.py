"""Sentences name arguments by `arg`, so that the command line can say its own options there."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click

import sfumato
from sfumato.cli import _COMMANDS

ROOT = Path(sfumato.__file__).parent


def _said_in_errors() -> Iterator[tuple[str, str]]:
    """The fixed parts of every sentence and hint that is raised outside the command line."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.parent == ROOT / "cli":
            continue
        for raised in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_error = isinstance(raised, ast.Call) and ast.unparse(raised.func).endswith("Error")
            is_hint = isinstance(raised, ast.keyword) and raised.arg == "hint"
            if not (is_error or is_hint):
                continue
            for part in ast.walk(raised):
                text = part.value if isinstance(part, ast.Constant) else None
                if isinstance(text, str) and " " in text:
                    yield f"{path.relative_to(ROOT)}:{part.lineno}", text


def _names_with_underscores() -> set[str]:
    commands = [import_module(f"sfumato.cli.{name}").command for name in _COMMANDS]
    options = [p for command in commands for p in command.params if isinstance(p, click.Option)]
    return {option.name for option in options if option.name and "_" in option.name}


def test_no_room_but_the_command_line_writes_a_flag_in_a_sentence():
    said = list(_said_in_errors())
    assert len(said) > 200
    assert [where for where, text in said if re.search(r"(?<![\w-])--[a-z]", text)] == []


def test_no_sentence_names_an_option_as_python_does():
    names = "|".join(sorted(_names_with_underscores(), key=len, reverse=True))
    unmarked = re.compile(rf"(?<![\w.])(?:{names})(?![\w(])")
    assert "max_loss" in names
    assert [where for where, text in _said_in_errors() if unmarked.search(text)] == []


# what the phrase-book has better words for: "one row per truth", "categories", "resume"
_NOT_SAID = re.compile(
    r"so many|gone on|\bgo on\b|(holds|about) words|\b(one|a) (row|column|place|name|report|truth) an?"
    r" (row|column|truth|secret|place|action|report|user|check-in)\b|\banew\b|who has the"
)


def test_no_sentence_uses_what_the_phrase_book_replaces():
    assert [where for where, text in _said_in_errors() if _NOT_SAID.search(text)] == []


def test_hints_and_sentences_read_as_the_commands_own_options(sfumato, tmp_path):
    table = tmp_path / "trips.csv"
    table.write_text("who,a,b\n1,48.85,2.35\n", "utf-8")
    solved = ("solve", "four-corners", "--max-loss", 173, "--solver", "coin")
    assert sfumato(*solved, "--out", tmp_path / "run").code == 0
    ended = sfumato("sanitize", tmp_path / "run", table, tmp_path / "reports.csv")
    assert ended.code == 2 and "hint: name it with --lat" in ended.err
    ended = sfumato(*solved, "--cell-m", 50, "--cells", 9, "--out", tmp_path / "other")
    assert ended.code == 2 and "name the grid by --cell-m or by --cells, not by both" in ended.err
    table.write_text("user,lat,lon\na,48.85,2.35\nb,48.86,2.36\n", "utf-8")
    ended = sfumato("solve", table, "--max-loss", 99, "--out", tmp_path / "other")
    assert ended.code == 2 and "for these check-ins alone with --for these" in ended.err
