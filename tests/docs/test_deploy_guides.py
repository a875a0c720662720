"""The commands of the guides for tables and devices run as written."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sfumato import cli
from sfumato.deploy.clients import read_clients

_GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"


def _commands(page: str) -> list[list[str]]:
    text = (_GUIDES / page).read_text(encoding="utf-8")
    return [
        shlex.split(command) for command in re.findall(r"^    sfumato (.+)$", text, re.MULTILINE)
    ]


@pytest.mark.parametrize(
    ("page", "verbs"),
    [
        ("sanitize.md", ["solve", "sanitize", "sanitize"]),
        ("device.md", ["solve", "export"]),
        ("extension.md", ["solve", "export"]),
    ],
)
def test_the_commands_of_a_guide_run(
    page: str, verbs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkins.csv").write_text(
        "user,time,lat,lon\nann,1287532527,48.857,2.347\nben,1287532528,48.858,2.348\n"
    )
    commands = _commands(page)
    assert [command[0] for command in commands] == verbs
    for command in commands:
        ended = CliRunner().invoke(cli.cli, command, catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
        for made in (
            "sanitized.csv",
            "sanitized.csv.record.json",
        ):  # the next command of the guide names the same output
            (tmp_path / made).unlink(missing_ok=True)


def test_the_help_names_the_files_that_the_guides_name() -> None:
    takes = (_GUIDES / "sanitize.md").read_text(encoding="utf-8")
    kinds = ("CSV", "Parquet", "SNAP", "folder")
    helped = CliRunner().invoke(cli.cli, ["sanitize", "-h"]).output
    assert all(kind in takes and kind in helped for kind in kinds)
    columns = (_GUIDES / "not-only-places.md").read_text(encoding="utf-8")
    helped = CliRunner().invoke(cli.cli, ["solve", "-h"]).output
    said = "secret, truth and count (or probability)"
    assert said in columns and said in " ".join(helped.split())


def test_the_token_file_is_as_the_guide_shows_it(tmp_path: Path) -> None:
    text = (_GUIDES / "service.md").read_text(encoding="utf-8")
    shown = json.loads(re.search(r'^    (\{"format".+)$', text, re.MULTILINE)[1])  # type: ignore[index]
    (client,) = shown["clients"]
    read_clients(tmp_path / "clients.json", add=(client,))
    made = json.loads((tmp_path / "clients.json").read_text())
    assert made.keys() == shown.keys() and made["format"] == shown["format"]
    assert made["clients"].keys() == {client} and f"--client {client}" in text
    assert f"Authorization: Bearer {shown['clients'][client]}" in text


def test_the_options_that_the_guides_name_are_there() -> None:
    for page in ("sanitize", "device", "service", "cluster"):
        text = (_GUIDES / f"{page}.md").read_text(encoding="utf-8")
        for verb in ("sanitize", "export", "serve"):
            helped = CliRunner().invoke(cli.cli, [verb, "-h"]).output
            for line in re.findall(rf"^    sfumato {verb} (.+)$", text, re.MULTILINE):
                assert all(option in helped for option in re.findall(r"--[a-z-]+", line)), (
                    page,
                    line,
                )
