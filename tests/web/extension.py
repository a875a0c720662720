"""The browser extension in a real Chromium, loaded unpacked, with a faked true place; pages that try
its doors are served on this machine."""

import http.server
import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.browser import _driver, chromium

TRUTH = {"latitude": 48.857, "longitude": 2.347}
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--headless=new")
# Chromium obeys the last list of features alone, so Playwright's own list would be lost: what of it
# counts here, most of it asking hosts that are not there, stands beside the one that forbids
# extensions to be named on the command line.
_WITHOUT = (
    "DisableLoadExtensionCommandLineSwitch",
    *("AimEnabled", "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose"),
    *("HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "MediaRouter", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "PaintHolding", "PreconnectToSearch"),
)
_SLOW_S = 120.0
_UNTIL_THERE = """async ({ latitude }) => { for (;;) { const found = await
  chrome.runtime.sendMessage({ kind: "place" }).catch(() => null);
  if (found?.position?.coords.latitude === latitude) return; } }"""
_TRICKLE_S = 1.0


class _Pages(http.server.BaseHTTPRequestHandler):
    """`/` plus a name from `pages`; `/never` never answers, `/trickle` sends its headers a second
    before its body, `/forbids` has a policy against geolocation."""

    pages: dict[str, str]
    over: threading.Event

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path == "/never":
            self.over.wait(_SLOW_S)
            return
        text = self.pages.get(path, "<!doctype html><p>nothing")
        self.send_response(200)
        script = path.endswith(".js")
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        if path == "/forbids":
            self.send_header("Permissions-Policy", "geolocation=()")
        self.end_headers()
        if path == "/trickle":
            self.wfile.flush()
            self.over.wait(_TRICKLE_S)
        self.wfile.write(text.encode())

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving_pages(pages: dict[str, str]) -> Iterator[str]:
    """Pages on a port of this machine; more can be put into `pages` while it runs."""
    over = threading.Event()
    handler = type("Handler", (_Pages,), {"pages": pages, "over": over})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


_SAY = """(message) => Promise.race([chrome.runtime.sendMessage(message),
  new Promise((_, fail) => setTimeout(() => fail(new Error(`no answer to ${message.kind}`)), 60000))])"""


class Protected:
    """A browser with the extension; `context` is Playwright's, `own` opens the extension's pages."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.id = ""
        self.control = context.browser.new_browser_cdp_session()
        self._hidden = ""

    def own(self, name: str) -> Any:
        """One of the extension's own pages."""
        page = self.context.new_page()
        page.goto(f"chrome-extension://{self.id}/{name}")
        return page

    def say(self, message: dict[str, Any]) -> Any:
        """What the worker answers the extension's own pages; a failure where it never does."""
        return self.page.evaluate(_SAY, message)

    def opened(self, address: str, *, until: str = "domcontentloaded") -> Any:
        """A page of a site.  (Before its first tag, a test's own questions would come before any
        script of the extension.)"""
        page = self.context.new_page()
        page.goto(address, wait_until=until)
        return page

    def ready(self) -> None:
        """With the true place in the document that nobody sees, and with leave for this machine's
        pages."""
        if not self.context.service_workers:  # Playwright hears of it only while it waits
            self.context.wait_for_event("serviceworker", timeout=90_000)
        self.id = self.context.service_workers[0].url.split("/")[2]
        self.page = self.own("options.html")
        self.page.evaluate("() => chrome.runtime.sendMessage({ kind: 'settings' })")
        for host in ("127.0.0.1", "localhost"):
            said = {"kind": "leave", "url": f"http://{host}/", "leave": "granted"}
            assert self.say(said) == {}
        self.page.evaluate(
            "() => chrome.offscreen.createDocument({ url: 'place.html', reasons: ['GEOLOCATION'],"
            " justification: 'a test' })"
        )
        targets = self.control.send("Target.getTargets")["targetInfos"]
        hidden = next(one["targetId"] for one in targets if one["url"].endswith("/place.html"))
        attached = self.control.send("Target.attachToTarget", {"targetId": hidden})
        self._hidden = attached["sessionId"]
        self.move(TRUTH)

    def move(self, place: dict[str, float]) -> None:
        """Another true place, for pages and for the extension."""
        self.context.set_geolocation(place)
        if not self._hidden:
            return
        override = {**place, "accuracy": 5}
        for method, params in (("Emulation.setGeolocationOverride", override), ("Page.reload", {})):
            message = json.dumps({"id": 1, "method": method, "params": params})
            self.control.send(
                "Target.sendMessageToTarget", {"sessionId": self._hidden, "message": message}
            )
        self.page.evaluate(_UNTIL_THERE, place)  # a place of before is good for some seconds

    def browser_says(self, setting: str) -> None:
        """The browser's leave for the extension itself: granted, denied or prompt."""
        self.control.send(
            "Browser.setPermission",
            {
                "permission": {"name": "geolocation"},
                "setting": setting,
                "origin": f"chrome-extension://{self.id}",
            },
        )


@contextmanager
def protected(
    folder: Path | None, *, profile: Path | None = None, ours: bool = True
) -> Iterator[Protected]:
    """A browser with the extension of a folder; without one, as a control, if it is None.  Its user
    lets every site have the place.  One that is not ours is loaded and left alone."""
    options = list(_OPTIONS)
    if folder is not None:
        options += [f"--load-extension={folder}", f"--disable-extensions-except={folder}"]
        options += [f"--disable-features={','.join(_WITHOUT)}"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as fresh:
        home = profile or Path(fresh)
        preferences = home / "Default" / "Preferences"
        if not preferences.exists():
            preferences.parent.mkdir(parents=True, exist_ok=True)
            allow = {"default_content_setting_values": {"geolocation": 1}}
            preferences.write_text(json.dumps({"profile": allow}))
        context = _driver().chromium.launch_persistent_context(
            home,
            executable_path=chromium(),
            headless=False,
            args=options,
            ignore_default_args=["--disable-extensions"],
            geolocation=TRUTH,
        )
        try:
            found = Protected(context)
            if folder is not None and ours:
                found.ready()
            yield found
        finally:
            with suppress(Exception):  # a test may have killed it
                context.close()
