"""One studio and one browser for all tests here; every page is watched for errors and for requests
to elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser import launched
from tests.studio.data import checkins
from tests.studio.server import Served, served


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three users, six check-ins each."""
    return checkins(tmp_path_factory.mktemp("data") / "small.csv")


@pytest.fixture(scope="session")
def studio(small: Path) -> Iterator[Served]:
    """A studio that was given the small file."""
    with served(str(small)) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    with launched() as running:
        yield running


@pytest.fixture
def page(browser: Any, studio: Served) -> Iterator[Any]:
    """The studio's page at 1280 x 800.  Fails on any error in the page and on any request to
    another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(90_000)  # the machine may be busy
    shown = context.new_page()
    wrong: list[str] = []
    shown.on("pageerror", lambda error: wrong.append(f"error in the page: {error}"))
    shown.on(
        "console",
        lambda line: (
            wrong.append(f"console: {line.text}")
            if line.type == "error" and "400" not in line.text
            else None
        ),
    )
    shown.on(
        "request",
        lambda asked: (
            None if _here(asked.url, studio) else wrong.append(f"asked elsewhere: {asked.url}")
        ),
    )
    shown.goto(studio.address)
    shown.get_by_text("check-ins of 3 users").first.wait_for()  # the file given is opened
    yield shown
    context.close()
    assert wrong == []


def _here(url: str, studio: Served) -> bool:
    return url.startswith(("blob:", "data:")) or urlsplit(url).netloc == studio.host
