"""Every solver says what a problem takes, and refuses what does not fit into memory."""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure.objective import Information
from sfumato.solver import SOLVERS, Exact, Game, Problem
from sfumato.solver.outcome import Foretelling

DATA = four_corners(0).train
SMALL, LARGE = (Problem(DATA.split(each).train, max_loss=173) for each in (20, 480))


@pytest.mark.parametrize("name", SOLVERS)
def test_more_check_ins_take_longer(name: str) -> None:
    solver = SOLVERS[name]()
    assert isinstance(solver, Foretelling)
    small, large = solver.expected(SMALL), solver.expected(LARGE)
    assert small is not None and large is not None
    assert 0 < small.seconds <= large.seconds < 600 and 1e8 < small.bytes <= large.bytes < 2e9


@pytest.mark.parametrize("name", SOLVERS)
def test_what_does_not_fit_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = SOLVERS[name]()
    assert isinstance(solver, Foretelling)
    monkeypatch.setattr("sfumato.memory.free_bytes", lambda: 5e7)
    with pytest.raises(ProblemError, match=r"needs about 0\.\d GB of memory and 0\.1 GB are free"):
        solver.expected(LARGE)


def test_the_exact_solver_refuses_thousands_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.data.samples.MOST_DENSE", 40)
    monkeypatch.setattr("sfumato.data.joint.MOST_DENSE", 40)
    problem = Problem(DATA.split(20).train, max_loss=173)
    for attempt in (Exact().expected, lambda given: sf.solve(given, Exact())):
        with pytest.raises(
            ProblemError, match=r"4 users with \d+ places: keep fewer with top_users"
        ):
            attempt(problem)


def test_rounds_and_bits_take_longer_and_linked_reports_are_not_foretold() -> None:
    few, many = Game(rounds=2).expected(LARGE), Game(rounds=40).expected(LARGE)
    assert many.seconds > 4 * few.seconds
    bits = Exact().expected(replace(LARGE, objective=Information()))
    plain = Exact().expected(LARGE)
    assert bits is not None and plain is not None and bits.seconds > 3 * plain.seconds
    assert plain.fastest < 25 < plain.slowest  # some 24 s of one core (`benchmarks.exact`)
    assert Exact().expected(replace(LARGE, reports=3)) is None
