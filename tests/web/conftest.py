"""The runs of tests/deploy, exported."""

from pathlib import Path

import pytest

from sfumato.deploy.bundle import export
from sfumato.deploy.release import NewPlaces
from tests.deploy.conftest import runs

__all__ = ["bundles", "runs"]
KINDS = (
    *("laplace", "coin", "net", "keeping-net", "codebook", "far-codebook", "channel"),
    "nearest-channel",
    "bare-laplace",
)


def rule_of(kind: str) -> NewPlaces:
    """How a channel of a kind answers new places."""
    return "nearest" if kind.startswith("nearest") else "average"


@pytest.fixture(scope="session")
def bundles(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of each kind, with the page beside it."""
    folder = tmp_path_factory.mktemp("bundles")
    for kind in KINDS:
        export(
            runs / kind,
            folder / kind,
            reveal_truths=kind.endswith("channel"),
            new_places=rule_of(kind),
            page=True,
        )
    return folder
