"""The commands of the guide for words run as written, and print what it says."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sfumato import cli

_ROOT = Path(__file__).resolve().parents[2]
_GUIDE = (_ROOT / "docs" / "guides" / "not-only-places.md").read_text(encoding="utf-8")


def test_the_commands_of_the_guide_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(_ROOT / "examples")
    printed = ""
    commands = re.findall(r"^    sfumato (.+)$", _GUIDE, re.MULTILINE)
    for command in commands:
        ended = CliRunner().invoke(cli.cli, shlex.split(command), catch_exceptions=False)
        assert ended.exit_code == 0
        printed += ended.stdout
    assert {shlex.split(command)[0] for command in commands} == {
        "solve",
        "measure",
        "compare",
        "certify",
    }
    shown = re.findall(r"^    (mechanism .*(?:\n    .+)*)", _GUIDE, re.MULTILINE)
    assert len(shown) == 1 and all(line.strip() in printed for line in shown[0].splitlines())
    assert re.findall(r"^> (.+)$", _GUIDE, re.MULTILINE)[0] in printed
    blind, smallest = (
        re.search(r"A blind guess is wrong ([\d.]+) of", _GUIDE),
        re.search(r"answers ([\d.]+) bands", _GUIDE),
    )
    assert "metres" not in printed and " m " not in printed
    assert re.search(
        r"on the data +0\.500 ", printed
    )  # in the unit of the losses, not in decimetres
    assert "identifies school in" in printed and "training check-ins" not in printed
    assert blind is not None and f"a blind guess errs {blind[1]}" in printed
    assert (
        smallest is not None
        and f"Bayes error of 0.7: {smallest[1]}; no mechanism with these reports reaches it below {smallest[1]}"
        in printed
    )


def test_the_lines_shown_of_the_files_are_in_them() -> None:
    for name in ("survey", "losses"):
        lines = (
            (_ROOT / "examples" / "words" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        )
        assert lines[0] in _GUIDE and lines[1] in _GUIDE and lines[2] in _GUIDE
    assert "made up" in (_ROOT / "examples" / "words" / "README.md").read_text(encoding="utf-8")
