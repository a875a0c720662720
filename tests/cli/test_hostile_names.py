"""Names in files and folders steer neither the terminal nor the spinner."""

import io
import sys
from pathlib import Path

import pytest

from sfumato.cli.options import say_notes, working

_NAME = "\x1b[31mred\x07[/bold] [link=x]"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_spinner_takes_brackets_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with working(f"measuring {_NAME}") as tell:
        tell(f"round 2 of {_NAME}")
    assert r"round 2 of \x1b[31mred\x07[/bold] [link=x]" in screen.getvalue()
    assert "\x07" not in screen.getvalue() and "\x1b[31mred" not in screen.getvalue()


def test_lines_on_stderr_hold_no_escape(capsys: pytest.CaptureFixture[str]) -> None:
    with working(f"measuring {_NAME}") as tell:
        tell(_NAME)
    say_notes((_NAME,))
    shown = r"\x1b[31mred\x07[/bold] [link=x]"
    assert capsys.readouterr().err == f"measuring {shown} …\n{shown}\nnote: {shown}\n"


def test_an_error_holds_no_escape(sfumato, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "\x1b[31mred.csv"
    path.write_text("user,lat,lon\n\x1b]0;x\x07,1,1\n", encoding="utf-8")
    ended = sfumato("solve", path, "--max-loss", "10", "--out", tmp_path / "run")
    assert ended.code == 2 and "\x1b" not in ended.err and r"\x1b[31mred.csv" in ended.err
