"""What all tests share: the real data, where it is at hand."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from sfumato.errors import SfumatoError
from tests import shapes
from tests.requirements import wanting

# Fixed examples, no clock (a busy machine is not a bug) and no files left behind.
settings.register_profile("fixed", max_examples=40, derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

# Bytecode is kept, also where the machine says not to: some hundred processes start here, and a
# third of the time of importing JAX is left.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Strict JAX, read when it is first imported: no silent broadcasting over a new axis, no silent
# change of dtype, no key used twice.
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ.setdefault("JAX_DEBUG_KEY_REUSE", "true")
# Nets here learn for a few steps: to optimise their code takes longer than to run it.
_LITTLE_COMPILING = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "true",
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false",
}
if not _LITTLE_COMPILING.keys() & os.environ.keys():
    os.environ.update(_LITTLE_COMPILING)
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process over them
    _CACHE = tempfile.TemporaryDirectory(prefix="sfumato-cache-")
    os.environ["XDG_CACHE_HOME"] = _CACHE.name  # what commands compile is not kept in anyone's home
shapes.switch_on()

_ROOT = Path(__file__).resolve().parent.parent
AGAIN = "tried again in a new browser"
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


@pytest.fixture
def optimised() -> dict[str, str]:
    """The environment of a command whose figures are compared with some that were written down:
    with all that XLA does for users."""
    return {
        name: value for name, value in os.environ.items() if _LITTLE_COMPILING.get(name) != value
    }


_SMALL = 30_000  # truths times cells: a tenth of a second in rational arithmetic


@pytest.fixture(scope="session", autouse=True)
def certificates_are_checked_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Every certificate that a test makes for a small problem is worked out by both checkers."""
    from sfumato.measure.certificate import Certificate, check_again

    path = tmp_path_factory.mktemp("again") / "certificate.npz"
    make = Certificate.of

    def made(*arguments: Any, **named: Any) -> Certificate:
        certificate: Certificate = make(*arguments, **named)
        problem = arguments[0]
        cells = 0 if certificate.on_plane is None else len(certificate.on_plane.cells)
        all_cells = (problem.grid.cells_per_side or 0) ** 2 if problem.loss_is_distance else 0
        if (cells + all_cells + len(problem.report_places)) * len(problem.places) <= _SMALL:
            try:
                bounds = certificate.bound(problem)
            except SfumatoError:
                return certificate  # the test will hear of it
            certificate.save(path)
            exact = check_again(path, problem, bounds)
            assert exact.grid - 1e-6 < bounds.grid <= exact.grid
        return certificate

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Certificate, "of", made)
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of the real data, also when there were none, and
    which were tried again in a new browser."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if _WANT in str(report.longrepr)
    ]
    terminalreporter.write_line(f"skipped for want of real data (SFUMATO_DATA): {len(skipped)}")
    for report in terminalreporter.getreports(""):
        for name, value in report.user_properties:
            if name == AGAIN:
                terminalreporter.write_line(f"{AGAIN}: {value}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test first: begun near the end, it keeps one core busy while the other waits."""
    items.sort(key=lambda item: item.name != "test_the_readmes_table_is_what_the_demo_prints")
