"""A page that Chromium prepares before it is shown gets nothing by the leave of the page that is
shown.  Playwright switches preparing off, so this browser is driven without it."""

import asyncio
import http.server
import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tornado.websocket import websocket_connect

from sfumato.deploy.web_files import write_extension
from tests.browser import chromium

_WAIT_S = 60.0
_SHOWN = """<!doctype html><script type="speculationrules">{"prerender": [{"source": "list",
  "urls": ["http://other.site.test:PORT/prepared"], "eagerness": "immediate"}]}</script>"""
_PREPARED = """<!doctype html><script>
  const tell = (what) => fetch(`/told?prepared=${document.prerendering}&${what}`);
  navigator.geolocation.getCurrentPosition((p) => tell(`lat=${p.coords.latitude}`),
    (e) => tell(`error=${e.code}`));
  setTimeout(() => tell("later"), 4000);</script>"""


class _Site(http.server.BaseHTTPRequestHandler):
    told: list[str]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Supports-Loading-Mode", "credentialed-prerender")
        self.end_headers()
        if self.path.startswith("/told"):
            self.told.append(self.path)
            return
        port = self.headers["Host"].split(":")[1]
        text = _PREPARED if self.path == "/prepared" else _SHOWN.replace("PORT", port)
        self.wfile.write(text.encode())

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def site() -> Iterator[tuple[int, list[str]]]:
    """Its port, and what its pages told it."""
    told: list[str] = []
    handler = type("Handler", (_Site,), {"told": told})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], told
        server.shutdown()


def _until(found: Any, what: str) -> Any:
    end = time.monotonic() + _WAIT_S
    while not (value := found()):
        assert time.monotonic() < end, f"{what}: not within {_WAIT_S:g} s"
        time.sleep(0.1)
    return value


class _Browser:
    """Chromium by its own protocol."""

    def __init__(self, home: Path) -> None:
        port = _until(lambda: _first_line(home / "DevToolsActivePort"), "the browser's port")
        self.address = f"http://127.0.0.1:{port}/json"

    def pages(self) -> list[dict[str, str]]:
        with urllib.request.urlopen(f"{self.address}/list") as answer:
            return json.load(answer)

    def opened(self, url: str) -> str:
        asked = urllib.request.Request(f"{self.address}/new?{url}", method="PUT")
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)["webSocketDebuggerUrl"]

    def said(self, page: str, message: dict[str, Any]) -> Any:
        """The worker's answer to a message of one of the extension's pages."""
        asked = f"chrome.runtime.sendMessage({json.dumps(message)})"
        with ThreadPoolExecutor(1) as thread:  # this one may hold Playwright's loop
            return thread.submit(lambda: asyncio.run(_evaluated(page, asked))).result()


def _first_line(path: Path) -> str:
    return path.read_text("utf-8").partition("\n")[0] if path.exists() else ""


async def _evaluated(page: str, expression: str) -> Any:
    connection = await websocket_connect(page)
    asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
    call = {"id": 1, "method": "Runtime.evaluate", "params": asked}
    await connection.write_message(json.dumps(call))
    while True:
        answer = json.loads(str(await connection.read_message()))
        if answer.get("id") == 1:
            connection.close()
            while await connection.read_message() is not None:
                pass
            return answer["result"]["result"].get("value")


@pytest.fixture
def browser(site: tuple[int, list[str]], tmp_path: Path) -> Iterator[_Browser]:
    write_extension(tmp_path / "extension")
    profile = tmp_path / "home" / "Default"
    profile.mkdir(parents=True)
    leave = {"profile": {"default_content_setting_values": {"geolocation": 1}}}
    (profile / "Preferences").write_text(json.dumps(leave), "utf-8")
    secure = ",".join(f"http://{name}.site.test:{site[0]}" for name in ("granted", "other"))
    running = subprocess.Popen(
        [
            chromium(),
            "--no-sandbox",
            "--disable-gpu",
            "--headless=new",
            f"--user-data-dir={tmp_path / 'home'}",
            "--remote-debugging-port=0",
            f"--load-extension={tmp_path / 'extension'}",
            f"--disable-extensions-except={tmp_path / 'extension'}",
            "--disable-features=DisableLoadExtensionCommandLineSwitch",
            "--host-resolver-rules=MAP *.site.test 127.0.0.1",
            f"--unsafely-treat-insecure-origin-as-secure={secure}",
            "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _Browser(tmp_path / "home")
    finally:
        running.terminate()
        running.wait(20)
        shutil.rmtree(tmp_path / "home", ignore_errors=True)


def test_a_page_that_is_prepared_has_no_part_in_the_leave_of_the_page_that_is_shown(
    site: tuple[int, list[str]], browser: _Browser
) -> None:
    port, told = site
    worker = _until(
        lambda: [one["url"] for one in browser.pages() if one["url"].endswith("/worker.js")],
        "the extension's worker",
    )
    options = browser.opened(worker[0].replace("worker.js", "options.html"))
    asked = {"kind": "settings"}
    settings = _until(lambda: browser.said(options, asked), "the settings")["settings"]
    settings["place"] = {"latitude": 12.345, "longitude": 67.89}
    settings["leave"] = {"granted.site.test": "granted"}
    settings["sites"] = {"site.test": {"rule": "fixed", "metres": 50}}
    browser.said(options, {"kind": "save", "settings": settings})
    browser.opened(f"http://granted.site.test:{port}/shown")
    _until(lambda: [one for one in told if one.endswith("prepared=true&later")], "four seconds")
    assert not [one for one in told if "lat=" in one]
