"""The runs of tests/deploy, exported."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.deploy.bundle import export
from sfumato.deploy.release import NewPlaces
from tests.cli.conftest import sfumato
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
