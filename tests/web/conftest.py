"""The runs of tests/deploy, exported."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

import sfumato as sf
from sfumato.deploy.bundle import export
from sfumato.deploy.release import NewPlaces
from tests.cli.conftest import sfumato
from tests.conftest import AGAIN
from tests.deploy.conftest import runs
from tests.deploy.tables import DATA
from tests.shared import made_once
from tests.web.extension import Protected, protected

__all__ = ["bundles", "runs", "sfumato"]
KINDS = (
    *("laplace", "coin", "net", "keeping-net", "codebook", "far-codebook", "channel"),
    "nearest-channel",
    "bare-laplace",
    "atlas",
)


_ANSWERED_S = 120  # of a test with the browser's extension, its start included


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _in_the_shared_browser(item):
            item.add_marker(pytest.mark.timeout(_ANSWERED_S))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Now and then the browser that tests share stops answering, whatever is asked of it.  A test
    that fails there is tried once more in a new browser; what fails twice has failed."""
    if not _in_the_shared_browser(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        item.session._setupstate.teardown_exact(None)  # the browser ends with its fixture
        signal.setitimer(signal.ITIMER_REAL, _ANSWERED_S)  # the limit's own clock has run out
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        reports[-1].user_properties.append((AGAIN, item.nodeid))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _in_the_shared_browser(item: pytest.Item) -> bool:
    return "extension" in getattr(item, "fixturenames", ())


def rule_of(kind: str) -> NewPlaces:
    """How a channel of a kind answers new places."""
    return "nearest" if kind.startswith("nearest") else "average"


@pytest.fixture(scope="session")
def bundles(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of each kind, with the page beside it."""

    def make(folder: Path) -> None:
        for kind in KINDS:
            export(
                runs / kind,
                folder / kind,
                reveal_truths=kind.endswith("channel"),
                new_places=rule_of(kind),
                page=True,
            )

    return made_once(tmp_path_factory, "bundles", make)


@pytest.fixture(scope="session")
def extension_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension with planar Laplace's bundle inside, as `export` writes it."""
    folder = tmp_path_factory.mktemp("extension")
    problem = sf.Problem(DATA.train, max_loss=173, cell_m=250)
    sf.solve(problem, sf.Laplace()).save(folder / "run")
    export(folder / "run", folder / "dist", extension=True)
    return folder / "dist"


@pytest.fixture(scope="session")
def extension(extension_folder: Path) -> Iterator[Protected]:
    """One browser with the extension for all tests; a test that changes settings puts them back."""
    with protected(extension_folder) as found:
        yield found


@pytest.fixture(scope="session")
def without_extension() -> Iterator[Protected]:
    """One browser without it."""
    with protected(None) as found:
        yield found
