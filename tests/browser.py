"""A real headless Chromium for tests; without one they are skipped aloud, or fail where CI is
set."""

import atexit
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tests.requirements import wanting

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def chromium() -> str:
    """Where the browser is."""
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    reason = "no browser: Chromium is not installed, so this page was NOT tested; install chromium"
    wanting(reason)


@contextmanager
def launched(*options: str) -> Iterator[Any]:
    """A browser with a fresh profile."""
    path = chromium()
    browser = _driver().chromium.launch(
        executable_path=path, headless=True, args=[*_OPTIONS, *options]
    )
    try:
        yield browser
    finally:
        browser.close()


@cache
def _driver() -> Any:
    """One for the process: a second one beside it is refused."""
    from playwright.sync_api import sync_playwright

    driver = sync_playwright().start()
    atexit.register(driver.stop)
    return driver


def wait_until(page: Any, expression: str, *, seconds: float = 30) -> None:
    """Wait for an expression to hold in a page.  (Playwright's own way needs `eval`, which a strict
    page forbids.)"""
    until = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < until, f"after {seconds:g} s it does not hold that {expression}"
        page.wait_for_timeout(50)
