"""What all tests share: the real data, where it is at hand."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.requirements import wanting

# Fixed examples, no clock (a busy machine is not a bug) and no files left behind.
settings.register_profile("fixed", max_examples=40, derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

_ROOT = Path(__file__).resolve().parent.parent
_WANT = "real data is absent"


def _real(name: str) -> Path:
    """A file of real check-ins; without it the test is skipped and counted, or fails where CI is
    set."""
    folder = Path(os.environ.get("SFUMATO_DATA", "../shared/data"))
    path = (folder if folder.is_absolute() else _ROOT / folder) / name
    if path.is_file():
        return path
    reason = f"{_WANT}: {name} is not in {folder}; set SFUMATO_DATA to the folder that holds it"
    wanting(reason)


@pytest.fixture(scope="session")
def gowalla_paris() -> Path:
    """Gowalla check-ins around Paris in SNAP's format."""
    return _real("gowalla-paris.txt.gz")


@pytest.fixture(scope="session")
def gowalla_stockholm() -> Path:
    """Gowalla check-ins in Stockholm as CSV with a header."""
    return _real("gowalla-stockholm.csv.gz")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of the real data, also when there were none."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if _WANT in str(report.longrepr)
    ]
    terminalreporter.write_line(f"skipped for want of real data (SFUMATO_DATA): {len(skipped)}")
