"""Secrets and truths that are words: solved within losses of their own."""

from typing import Any

import numpy as np
import pytest

from sfumato.data.categories import CategoricalData, read_categories
from sfumato.data.joint import Joint
from sfumato.errors import DataError, MechanismError, ProblemError
from sfumato.solver import Coin, Exact, Laplace, Problem
from sfumato.study.solve import solve
from tests.solver.three_users import SQUARE, proved


def words() -> CategoricalData:
    joint = Joint(np.array([[0.25, 0.15, 0.10], [0.05, 0.15, 0.30]]), secrets=("smoker", "not"))
    return CategoricalData(
        joint,
        ("low", "middle", "high"),
        ("high", "low", "unknown"),
        np.array([[2, 0, 1.5], [1, 1, 1], [0, 2, 1.5]]),
    )


def test_words_are_solved_within_their_own_losses() -> None:
    table = words()
    with pytest.raises(
        ProblemError, match=r"smallest possible loss is 0\.3"
    ):  # 'middle' costs 1 whatever is said
        solve(Problem(table, max_loss=0.2), Exact())
    problem = Problem(table, max_loss=0.6)
    solution = solve(problem, Exact(gap=1e-6))
    assert solution.measured.loss.value <= 0.6 * (1 + 1e-9)
    assert 0 <= solution.leakage - proved(solution) <= 2e-6
    said = table.report_name(
        solution.mechanism.sample(table.truth_place(["low", "middle", "high"]), seed=3)
    )
    assert set(said) <= set(table.reports)
    with pytest.raises(DataError, match="'huge' is not a truth"):
        table.truth_place(["huge"])
    with pytest.raises(MechanismError, match="not among the 3"):
        solution.mechanism.sample(np.array([[7.0, 0.0]]))


def test_words_that_cost_nothing_to_hide_are_hidden() -> None:
    solution = solve(Problem(words(), max_loss=1.5), Exact(gap=1e-6))
    assert solution.leakage == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("solver", [Coin(), Laplace()], ids=["coin", "laplace"])
def test_solvers_for_places_refuse_words(solver: Coin | Laplace) -> None:
    with pytest.raises(ProblemError, match="holds categories"):
        solve(Problem(words(), max_loss=0.6), solver)


def test_words_take_no_cells_and_no_region() -> None:
    for options in ({"cell_m": 5.0}, {"cells": 3}, {"region": SQUARE}):
        with pytest.raises(ProblemError, match="it takes no cells and no region"):
            Problem(words(), max_loss=0.6, **options)  # type: ignore[arg-type]


def test_a_geo_promise_is_not_made_for_words() -> None:
    assert solve(Problem(words(), max_loss=0.6), Exact()).measured.geo_epsilon is None


@pytest.mark.parametrize(
    ("losses", "reason"),
    [
        ("a,a,0\na,b,1\nb,a,1\nb,b,0\na,b,2\n", "'a' and report 'b' twice"),
        ("a,a,0\na,b,1\nb,a,1\n", "no loss for truth 'b' and report 'b'"),
        ("a,a,0\na,b,1\n", "no loss for the truth 'b'"),
        ("a,a,0\na,b,inf\nb,a,1\nb,b,0\n", "finite numbers of at least 0"),
        ("a,a,0\na,b,-1\nb,a,1\nb,b,0\n", "finite numbers of at least 0"),
        ("a,a,0\na,b,dear\nb,a,1\nb,b,0\n", "something other than numbers"),
    ],
)
def test_losses_that_are_not_one_number_a_pair_are_refused(
    tmp_path: Any, losses: str, reason: str
) -> None:
    (tmp_path / "p.csv").write_text("secret,truth,count\nx,a,3\ny,b,2\n")
    (tmp_path / "l.csv").write_text("truth,report,loss\n" + losses)
    with pytest.raises(DataError, match=reason):
        read_categories(tmp_path / "p.csv", tmp_path / "l.csv")
