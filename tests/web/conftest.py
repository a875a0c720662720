"""The runs of tests/deploy, exported."""

from pathlib import Path

import pytest

from sfumato.deploy.bundle import export
from tests.deploy.conftest import runs

__all__ = ["bundles", "runs"]
KINDS = ("laplace", "coin", "net", "keeping-net", "codebook", "channel", "bare-laplace")


@pytest.fixture(scope="session")
def bundles(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of each kind, with the page beside it."""
    folder = tmp_path_factory.mktemp("bundles")
    for kind in KINDS:
        export(runs / kind, folder / kind, reveal_truths=kind == "channel", page=True)
    return folder
