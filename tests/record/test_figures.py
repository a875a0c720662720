"""The figures of the command line are those that were recorded, to a hundred-thousandth: another
processor sums in another order, which moved some by three in ten million."""

import subprocess
import sys

import pytest

from tests.record.figures import CASES, ROOT, Case, differences


def _check(case: Case, request: pytest.FixtureRequest) -> None:
    if case.real:
        request.getfixturevalue("gowalla_paris")
    if not case.learned:
        assert not differences(case)
        return
    ended = subprocess.run(
        [sys.executable, "-m", "tests.record.figures", case.name],
        cwd=ROOT,
        env=request.getfixturevalue("optimised"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.quick], ids=str)
def test_a_quick_solve_gives_the_recorded_figures(
    case: Case, request: pytest.FixtureRequest
) -> None:
    _check(case, request)


@pytest.mark.paper
@pytest.mark.parametrize("case", [case for case in CASES.values() if not case.quick], ids=str)
def test_a_long_solve_gives_the_recorded_figures(
    case: Case, request: pytest.FixtureRequest
) -> None:
    _check(case, request)
