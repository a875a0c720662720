"""The token reaches the browser through a file of its owner, never through a command line."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sfumato.studio.serve import remove_leftovers, work_folder
from tests.requirements import wanting

_STAND_IN = """
import json, pathlib, re, sys, time, urllib.parse, urllib.request
door = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[2]).path))
address = re.search(r"url=([^\\"]+)", door.read_text()).group(1)
page = urllib.request.urlopen(address).read().decode()
pathlib.Path(sys.argv[1]).write_text(json.dumps({"door": str(door), "page": page}))
time.sleep(60)
"""


def _started(
    tmp_path: Path, *options: str, **variables: str
) -> tuple[subprocess.Popen[str], str, str]:
    command = [sys.executable, "-m", "sfumato", "studio", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), **variables},
    )
    assert process.stdout is not None and process.stderr is not None
    address = process.stdout.readline().strip()
    return process, address, process.stderr.readline()


def _ended(process: subprocess.Popen[str], how: signal.Signals) -> None:
    process.send_signal(how)
    process.communicate(timeout=20)


def test_no_command_line_of_the_machine_holds_the_token(tmp_path: Path) -> None:
    if not Path("/proc/self/cmdline").exists():
        wanting("no /proc on this system, so command lines were NOT searched for the token")
    stand_in, told = tmp_path / "browser.py", tmp_path / "told.json"
    stand_in.write_text(_STAND_IN)
    browser = f"{sys.executable} {stand_in} {told} %s"
    process, address, said = _started(tmp_path, BROWSER=browser)
    browsers = []
    try:
        until = time.monotonic() + 30
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(0.2)
        found = json.loads(told.read_text())
        assert "static/main.js" in found["page"]  # the file did lead to the page
        token = urlsplit(address).path.strip("/")
        lines = {
            path.parent.name: path.read_bytes()
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if os.access(path, os.R_OK) and path.exists()
        }
        browsers = [int(pid) for pid, line in lines.items() if str(stand_in).encode() in line]
        assert browsers and len(token) >= 32
        assert not [pid for pid, line in lines.items() if token.encode() in line]
        assert token not in said
        door = Path(found["door"])
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        assert stat.S_IMODE(door.parent.stat().st_mode) == 0o700
    finally:
        for pid in browsers:
            os.kill(pid, signal.SIGKILL)
        _ended(process, signal.SIGINT)
    assert not door.exists()


def test_a_real_browser_follows_the_file_to_the_page(browser: Any, tmp_path: Path) -> None:
    process, address, _ = _started(tmp_path, "--no-open")
    try:
        (door,) = tmp_path.glob("sfumato-studio-*/open.html")
        context = browser.new_context()
        page = context.new_page()
        page.goto(door.as_uri())
        page.get_by_role("button", name="Four corners").wait_for()
        assert page.url == address
        context.close()
    finally:
        _ended(process, signal.SIGINT)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_ends_in_order_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    process, _, said = _started(tmp_path, "--no-open")
    (folder,) = tmp_path.glob("sfumato-studio-*")
    assert str(folder) in said
    _ended(process, how)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_goes_at_the_next_start_and_a_living_ones_stays(
    tmp_path: Path,
) -> None:
    killed, _, _ = _started(tmp_path, "--no-open")
    (left,) = tmp_path.glob("sfumato-studio-*")
    (left / "secret.csv").write_text("true places")
    _ended(killed, signal.SIGKILL)
    assert left.exists()
    living, _, _ = _started(tmp_path, "--no-open")
    try:
        assert not left.exists()
        (folder,) = tmp_path.glob("sfumato-studio-*")
        other, _, _ = _started(tmp_path, "--no-open")
        _ended(other, signal.SIGINT)
        assert (folder / "open.html").exists()
    finally:
        _ended(living, signal.SIGINT)


def test_nothing_of_others_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what a link names nor a folder without our lock."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / "sfumato-studio-link").symlink_to(elsewhere)
    (tmp_path / "sfumato-studio-no-lock").mkdir()
    with work_folder() as mine:
        remove_leftovers()
        assert mine.exists() and (elsewhere / "lock").exists()
        assert (tmp_path / "sfumato-studio-no-lock").exists()
    assert not mine.exists()
