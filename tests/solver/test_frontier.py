"""The frontier brackets what direct solves find."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.grid import Region
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure.certificate import bound_on_the_grid
from sfumato.solver.exact import best_within
from sfumato.solver.frontier import Curve, frontier
from sfumato.study.trade_off import Placed, trade_off
from tests.solver.three_users import on_square


def test_the_frontier_brackets_direct_solves_and_is_monotone_and_convex() -> None:
    problem = on_square(max_loss=150.0)
    budgets = np.linspace(40.0, 160.0, 9)
    said: list[str] = []
    found = frontier(problem, budgets, gap=0.004, progress=said.append)
    errors = [line.split(": ")[1].split(", at most ") for line in said if "Bayes" in line]
    assert errors and all(0 <= float(low) <= float(high) + 1e-4 for low, high in errors)
    assert not any("-0.0" in line for line in said)
    for curve in (found.bayes, found.information):
        assert 0 <= curve.gap <= 0.004 + 1e-9
        assert np.all(np.diff(curve.reached) <= 1e-12) and np.all(np.diff(curve.bound) <= 1e-12)
        assert np.all(np.diff(curve.reached, 2) >= -1e-9)
        unit = np.log(2) if curve.objective.name == "information" else 1.0
        for at in (1, 4, 6):
            asked = replace(problem, max_loss=float(budgets[at]), objective=curve.objective)
            direct = best_within(asked, gap=1e-5)
            assert curve.bound[at] <= direct.leakage / unit + 1e-9
            assert curve.reached[at] >= direct.bound / unit - 1e-9


def test_the_bracket_of_a_frontier_narrows_while_it_is_watched() -> None:
    seen: list[Curve] = []
    found = frontier(
        on_square(max_loss=150.0), np.linspace(40.0, 160.0, 5), gap=0.01, watch=seen.append
    )
    bayes = [curve for curve in seen if curve.objective.name == "bayes"]
    assert len(bayes) == found.bayes.solves + 1 >= 2
    for before, after in pairwise(bayes):
        assert np.all(after.reached <= before.reached + 1e-12) and np.all(
            after.bound >= before.bound - 1e-12
        )
    assert np.array_equal(bayes[-1].bound, found.bayes.bound)


def test_a_frontier_below_the_smallest_loss_is_refused() -> None:
    with pytest.raises(ProblemError, match="no mechanism stays below"):
        frontier(on_square(max_loss=100.0), np.array([5.0, 60.0]))


def test_the_bound_of_a_frontier_is_over_all_cells_of_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cells that miss the hull of the truths are not in the solver's list."""
    problem = on_square(max_loss=150.0, region=Region((100.0, 80.0), 2600.0), cell_m=50.0)
    looked_at = []

    def checked(*asked: Any) -> tuple[float, int]:
        looked_at.append(bound_on_the_grid(*asked))
        return looked_at[-1]

    monkeypatch.setattr("sfumato.solver.frontier.bound_on_the_grid", checked)
    frontier(problem, np.array([100.0]), gap=0.01)
    assert looked_at and {cells for _, cells in looked_at} == {len(problem.grid.centres())}
    assert len(problem.report_places) < len(problem.grid.centres())


def test_between_its_budgets_the_bound_is_not_a_straight_line() -> None:
    problem = on_square(max_loss=150.0)
    few, many = np.array([160.0, 40.0]), np.linspace(40.0, 160.0, 13)
    found, finer = frontier(problem, few, gap=0.004), frontier(problem, many, gap=0.004)
    for rough, fine in ((found.bayes, finer.bayes), (found.information, finer.information)):
        assert np.all(rough.bound_at(many) <= fine.reached + 1e-9)
        assert np.any(np.interp(many, few[::-1], rough.bound[::-1]) > fine.reached + 1e-3)


def test_what_is_not_on_the_cells_may_pass_the_curve_and_is_named() -> None:
    """On cells of 100 m a loss of 60 m buys little; the coin, which reports the truth itself, has
    more."""
    data = four_corners(seed=0).train
    found = trade_off(
        data.take(np.arange(0, len(data), 16)),
        first=60,
        last=120,
        points=2,
        cell_m=100,
        cells=None,
        gap=0.02,
    )
    assert found.beyond == ("coin",)
    assert "coin: above the curve" in str(found)
    guessed = replace(found, placed=(Placed("mine", 100.0, 0.7, 0.1, "estimate"),))
    assert (
        "≈0.7000" in str(guessed)
        and "≈ estimated from samples" in str(guessed)
        and not guessed.beyond
    )
    assert guessed.as_dict()["placed"][0]["kind"] == "estimate" and "≈" not in str(found)


def test_what_is_reached_is_never_worse_than_the_laplace_noise_beside_it() -> None:
    """Two users all over a square: much noise hides them better than one place at times."""
    places = np.random.default_rng(0).uniform(0, 1000, (60, 2))
    data = sf.Samples(secret=[0, 1] * 30, truth=places, secrets=("ann", "bob"))
    found = trade_off(
        data, first=100, last=250, points=4, cell_m=50, cells=None, gap=0.005, time_limit=1e-6
    )
    reached = found.frontier.columns()
    laplace = [place for place in found.placed if place.name == "laplace"]
    assert len(laplace) == 4
    for at, place in enumerate(laplace):
        assert reached["bayes_error"][at] >= place.bayes_error - 1e-3
        assert reached["information_bits"][at] <= place.information_bits + 1e-3
    for curve in (found.frontier.bayes, found.frontier.information):
        heights, slopes = curve.tangents.T
        proved = (heights + slopes * curve.budgets[:, None]).max(axis=1)
        assert np.all(curve.reached >= proved - 1e-9)
