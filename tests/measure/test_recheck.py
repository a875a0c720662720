"""The second checker: it agrees with the first, and refuses on its own."""

from fractions import Fraction
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.categories import CategoricalData
from sfumato.data.joint import Joint
from sfumato.errors import SfumatoError
from sfumato.measure.certificate import (
    Certificate,
    check_again,
    load_certificate,
    question_of,
)
from sfumato.measure.objective import Gain, Information
from sfumato.measure.recheck import _SCORE, RecheckError, _log, recheck
from sfumato.mechanism.loss import euclidean, squared
from sfumato.solver import Exact, Problem
from sfumato.study.solve import solve
from tests.measure.test_certificate import problem_of
from tests.measure.test_forged_certificates import Case, cases, forge, write
from tests.solver.three_users import three_users

__all__ = ["cases"]
USERS = {"anna": 90.0, "ben": 60.0, "cleo": 70.0}


def certificate_of(problem: Problem) -> Certificate:
    certificate = solve(problem, Exact()).certificate
    assert certificate is not None
    return certificate


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": Information()},
        {"objective": Gain("guess-or-pass")},
        {"objective": Gain("two-guesses")},
        {"max_loss": None, "user_max_loss": USERS},
        {"user_max_loss": USERS, "max_distance": 180.0, "objective": Information()},
        {"loss": squared, "max_loss": 4000.0},
        {"loss": lambda truth, report: euclidean(truth, report) ** 0.5, "max_loss": 8.0},
        {"reports": 3},
        {"reports": "endless"},
        {"reports": "endless", "max_loss": None},
    ],
    ids=[
        *("bayes", "information", "pass", "two", "per user", "all budgets", "squared", "own loss"),
        *("three reports", "endless reports", "endless budget"),
    ],
)
def test_both_checkers_agree_and_the_first_is_never_above_the_second(
    options: dict[str, Any], tmp_path: Path
) -> None:
    problem = problem_of(three_users(points=3), **options)
    certificate_of(problem).save(tmp_path / "one.npz")
    bounds = load_certificate(tmp_path / "one.npz").bound(problem)
    heard: list[float] = []
    exact = check_again(tmp_path / "one.npz", problem, bounds, progress=heard.append)
    assert bounds.grid <= exact.grid < bounds.grid + 1e-6
    assert (exact.plane is None) == (bounds.plane is None)
    if bounds.plane is not None and exact.plane is not None:
        assert bounds.plane <= exact.plane < bounds.plane + 1e-6
        assert heard == sorted(heard) and 0 < heard[-1] <= 1


def test_both_checkers_agree_on_a_table_of_categories(tmp_path: Path) -> None:
    joint = Joint(np.array([[0.3, 0.1, 0.1], [0.1, 0.1, 0.3]]), secrets=("yes", "no"))
    losses = np.array([[0, 1, 2, 3], [1, 0, 1, 3], [2, 1, 0, 3.0]])
    table = CategoricalData(joint, ("a", "b", "c"), ("a", "b", "c", "none"), losses)
    problem = Problem(table, max_loss=0.4)
    certificate_of(problem).save(tmp_path / "one.npz")
    bounds = load_certificate(tmp_path / "one.npz").bound(problem)
    exact = check_again(tmp_path / "one.npz", problem, bounds)
    assert bounds.grid <= exact.grid < bounds.grid + 1e-6 and exact.plane is None


def test_the_second_checker_hears_of_a_bound_that_is_too_high(tmp_path: Path) -> None:
    from dataclasses import replace

    problem = problem_of(three_users(points=3))
    certificate = certificate_of(problem)
    certificate.save(tmp_path / "one.npz")
    bounds = certificate.bound(problem)
    for false in (replace(bounds, grid=bounds.grid + 1e-9), replace(bounds, plane=0.9)):
        with pytest.raises(SfumatoError, match="the two checkers disagree"):
            check_again(tmp_path / "one.npz", problem, false)


def test_a_proof_of_two_people_is_exact(tmp_path: Path) -> None:
    """0 and 128 m apart, 32 m allowed, shares and prices that floats hold: 1 - 32/128."""
    from sfumato.data.samples import Samples
    from sfumato.measure.certificate import Proof

    samples = Samples(np.array([0, 1]), np.array([[-64.0, 0.0], [64.0, 0.0]]), ("a", "b"))
    problem = Problem(samples, max_loss=32.0, cells=1)
    certificate = Certificate.of(
        problem, Proof(problem.report_places, np.array([[0.5, 0.5]]), np.array([1 / 128]))
    )
    certificate.save(tmp_path / "one.npz")
    exact = recheck(tmp_path / "one.npz", question_of(problem))
    assert exact.grid == Fraction(3, 4)  # 0.5 + 64/128 - 32/128: nothing is on the grid but 0


def test_forgeries_that_the_first_checker_accepts_are_never_above_the_second(
    cases: list[Case],
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(61)
    path = tmp_path / "forged.npz"
    compared = 0
    for number in range(500):
        case = cases[number % len(cases)]
        arrays = dict(case.arrays)
        forge(rng, arrays, cases[(number + 1) % len(cases)].arrays)
        if str(arrays.get("format")) != "sfumato certificate 2":
            continue  # the second checker reads no cells of the former version
        write(path, arrays)
        try:
            bounds = load_certificate(path).bound(case.problem)
        except SfumatoError:
            try:
                exact = recheck(path, question_of(case.problem))
            except SfumatoError:
                continue
            assert exact.grid <= case.on_grid + 1e-9
            assert exact.plane is None or exact.plane <= case.on_plane + 1e-9
            continue
        try:
            check_again(path, case.problem, bounds)
        except RecheckError:
            continue  # an array in column order: refused is never too much
        compared += 1
    assert compared > 45


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_logarithms_are_rounded_down_and_by_little(above: int, below: int) -> None:
    found = Fraction(_log(above, below), 2**_SCORE)
    assert abs(found - Fraction(log(above) - log(below))) < Fraction(1, 10**12)
    # e^found <= above/below by the series of e to 1/found, term by term, with all terms positive
    if 0 < found < 1:
        term = total = Fraction(1)
        for n in range(1, 30):
            term *= found / n
            total += term
        assert total <= Fraction(above, below)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("plane.cells", lambda cells: cells[:-1], "for each cell"),
        ("plane.root", lambda root: root * [1, 1, 0.5], "do not cover"),
        ("plane.root", lambda root: root * 1e5, "over 1024 times"),
        ("plane.root", lambda root: root * 1e15, "a corner and a side"),
        ("plane.cells", lambda cells: cells + np.array([[0, 512, 0]]), "below 2\\^level"),
        ("grid.shares", lambda shares: shares * 0.9, "sum to 1"),
        ("grid.shares", lambda shares: shares * np.nan, "at least 0"),
        ("grid.multipliers", lambda prices: -prices, "multipliers"),
        ("grid.multipliers", lambda prices: prices[:0], "multipliers"),
        ("grid.places", lambda places: places[:, :1], "no array grid.places"),
    ],
)
def test_the_second_checker_refuses_on_its_own(
    name: str, change: Any, reason: str, tmp_path: Path
) -> None:
    problem = problem_of(three_users(points=3))
    certificate_of(problem).save(tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as stored:
        arrays = dict(stored)
    write(tmp_path / "bad.npz", {**arrays, name: change(arrays[name])})
    with pytest.raises(RecheckError, match=reason):
        recheck(tmp_path / "bad.npz", question_of(problem))


def test_the_second_checker_refuses_an_endless_bound_that_was_scaled(tmp_path: Path) -> None:
    problem = problem_of(three_users(points=3), reports="endless", max_loss=None)
    certificate_of(problem).save(tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as stored:
        arrays = dict(stored)
    for name in ("grid.shares", "grid.multipliers"):
        arrays[name] = arrays[name] * 10
    write(tmp_path / "scaled.npz", arrays)
    with pytest.raises(RecheckError, match="its multiplier is 1"):
        recheck(tmp_path / "scaled.npz", question_of(problem))


def test_the_second_checker_refuses_rounded_cells_of_the_first_format(tmp_path: Path) -> None:
    problem = problem_of(three_users(points=3))
    certificate_of(problem).save(tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as stored:
        arrays = {name: array for name, array in stored.items() if not name.startswith("plane.")}
    arrays |= {"plane.places": np.zeros((1, 2)), "plane.half_sides": np.ones(1)}
    write(tmp_path / "former.npz", arrays)
    with pytest.raises(RecheckError, match="of format 1, with rounded cells; expected format 2"):
        recheck(tmp_path / "former.npz", question_of(problem))


@pytest.mark.parametrize("part", ["grid", "plane"])
def test_both_checkers_refuse_a_posterior_of_nothing(part: str, tmp_path: Path) -> None:
    problem = problem_of(three_users(points=3), objective=Information())
    certificate_of(problem).save(tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as stored:
        arrays = dict(stored)
    shares = arrays[f"{part}.shares"].copy()
    shares[:] = [0.0, 0.5, 0.5]
    write(tmp_path / "bad.npz", {**arrays, f"{part}.shares": shares})
    with pytest.raises(SfumatoError, match="a posterior of 0 where the secret occurs"):
        load_certificate(tmp_path / "bad.npz").bound(problem)
    with pytest.raises(RecheckError, match="a posterior of 0 where the secret occurs"):
        recheck(tmp_path / "bad.npz", question_of(problem))


def test_too_large_a_certificate_is_refused_with_the_time_it_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of(three_users(points=3))
    certificate_of(problem).save(tmp_path / "one.npz")
    monkeypatch.setattr("sfumato.measure.recheck.MOST_PAIRS", 100)
    with pytest.raises(RecheckError, match="minutes in rational arithmetic"):
        recheck(tmp_path / "one.npz", question_of(problem))
