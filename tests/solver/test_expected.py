"""Every solver says what a problem takes, and refuses what does not fit into memory."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure.objective import Gain, Information, objective_named
from sfumato.solver import SOLVERS, Exact, Game, Problem
from sfumato.solver.exact import certificate_for, proof_bytes
from sfumato.solver.outcome import Foretelling
from sfumato.study.solve import foretold

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


def _users(count: int, each: int = 1) -> sf.Samples:
    """As many users, with as many check-ins each, all at one place."""
    secret = np.repeat(np.arange(count), each)
    names = tuple(f"u{number}" for number in range(count))
    return sf.Samples(secret=secret, truth=np.zeros((len(secret), 2)), secrets=names)


def test_the_exact_solver_refuses_matrices_of_users_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3,000 users at one place are a small table; at each report there is a matrix of users, which
    took 39 GB where 0.3 were foretold."""
    monkeypatch.setattr("sfumato.memory.free_bytes", lambda: 30e9)
    problem = Problem(_users(3_000), max_loss=300)
    for attempt in (Exact().expected, lambda given: sf.solve(given, Exact())):
        with pytest.raises(ProblemError, match=r"3,000 users at 1 place needs about \d{3}\.\d GB"):
            attempt(problem)


def test_a_proof_that_does_not_fit_is_left_out_and_its_memory_is_foretold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """11,175 pairs of 150 users took more memory than there is, after the run was written."""
    pairs = Problem(_users(150), max_loss=300, objective=Gain("two-guesses"))
    assert proof_bytes(pairs) > 1e12
    monkeypatch.setattr("sfumato.solver.exact.solver.free_bytes", lambda: 3e9)
    assert certificate_for(pairs, seed=0) is None
    one = Problem(_users(150, 20), max_loss=300)
    without, followed = (foretold(sf.Codebook(), one, effort) for effort in ("none", "full"))
    assert without is not None and followed is not None
    assert followed.bytes == proof_bytes(one) > without.bytes
    assert foretold(sf.Codebook(), pairs, "full") == foretold(sf.Codebook(), pairs, "none")


def test_pairs_of_thousands_of_users_are_refused() -> None:
    users = tuple(map(str, range(3_000)))
    with pytest.raises(ProblemError, match=r"^two-guesses has 4,498,500 pairs of 3,000 users"):
        objective_named("two-guesses", users)
    with pytest.raises(
        ProblemError, match=r"no user 'ann' to target; expected one of 0, .* 11, …$"
    ):
        objective_named("target:ann", users)


def test_the_game_says_what_users_take_and_refuses_thousands() -> None:
    few, many = (Problem(_users(count, 8), max_loss=300) for count in (10, 1_000))
    cost = [Game().expected(problem) for problem in (few, many)]
    # 1.2 s a turn, and 1.1 GB in all
    assert cost[1].seconds > 300 + cost[0].seconds and cost[1].bytes > 1e9
    with pytest.raises(ProblemError, match=r"at most 1,000 users.*got 1,001: keep fewer"):
        Game().expected(Problem(_users(1_001, 8), max_loss=300))


def test_the_game_refuses_users_with_too_few_check_ins_before_it_begins() -> None:
    problem = Problem(_users(4, 3), max_loss=300)
    for attempt in (Game().expected, lambda given: sf.solve(given, Game())):
        with pytest.raises(ProblemError, match=r"share of 0\.125 leaves a user with 3 check-ins"):
            attempt(problem)
