"""A learned law is brought within its budgets by the slope alone, and the net is asked once."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.mechanism.codebook import CodebookNet
from sfumato.solver import Codebook, Problem
from sfumato.solver.codebook.calibrate import (
    Candidate,
    _without,
    calibrated,
    expected_losses,
    within_budgets,
)


@pytest.fixture
def problem() -> Problem:
    random = np.random.default_rng(0)
    secret = np.repeat([0, 1], 20)
    truth = random.normal(0, 60, (40, 2)) + np.where(secret == 0, -80, 80)[:, None]
    samples = Samples(secret=secret, truth=truth, secrets=("ann", "bob"))
    return Problem(samples, max_loss=100, cell_m=25)


@pytest.fixture
def net(problem: Problem) -> CodebookNet:
    """Six places on the grid, a net of one layer that prefers nothing."""
    grid: Grid = problem.grid
    places = grid.snap(np.array([[x, y] for x in (-80.0, 0.0, 80.0) for y in (-60.0, 60.0)]))
    layer = (np.zeros((4, 6), np.float32), np.zeros(6, np.float32))
    return CodebookNet(
        places=places, layers=(layer,), waves=np.zeros((2, 1)), grid=grid, unit_m=100.0
    )


def test_the_flattest_slope_that_keeps_the_budget_spends_it(
    problem: Problem, net: CodebookNet
) -> None:
    """Without a slope all six places are equally likely, which costs more than 100 m."""
    flat = Candidate.of(net, problem)
    assert flat.law.loss > 110 and not flat.keeps_budgets
    spent = within_budgets(flat)
    assert spent.mechanism.slope > 0 and spent.mechanism.keep == 0
    assert 100 * (1 - 1e-4) < spent.law.loss <= 100


@pytest.mark.parametrize("slope", [-0.05, 0.0, 0.02, 0.03])
def test_a_hurried_search_spends_nearly_all_of_the_budget_in_half_the_losses(
    slope: float, problem: Problem, net: CodebookNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    chances = CodebookNet.chances_by_part
    monkeypatch.setattr(
        CodebookNet, "chances_by_part", lambda *given: passes.append(1) or chances(*given)
    )
    learned = Candidate.of(replace(net, slope=slope), problem)
    found, counted = {}, {}
    for hurried in (True, False):
        passes.clear()
        found[hurried] = within_budgets(replace(learned), hurried=hurried)
        counted[hurried] = len(passes)
    assert counted[True] <= 10 and 2 * counted[True] <= counted[False] + 1
    assert 100 * (1 - 1e-4) < found[True].law.loss <= 100
    assert found[True].mechanism.slope == pytest.approx(found[False].mechanism.slope, rel=1e-3)


def test_a_hurried_search_reports_the_own_cell_where_no_slope_keeps_the_budget(
    problem: Problem, net: CodebookNet
) -> None:
    tight = Candidate.of(net, replace(problem, max_loss=20))
    both = [within_budgets(tight, hurried=hurried).mechanism for hurried in (True, False)]
    assert both[0].keep == both[1].keep > 0


def test_a_candidate_of_another_slope_has_the_law_of_the_mechanism_itself(
    problem: Problem, net: CodebookNet
) -> None:
    candidate = Candidate.of(net, problem).at(slope=0.02, keep=0.25)
    law = replace(net, slope=0.02, keep=0.25).law(problem.joint)
    assert law is not None
    np.testing.assert_array_equal(candidate.law.joint.table, law.joint.table)
    assert candidate.law.loss == law.loss


def test_losses_without_the_law_are_those_of_the_law(problem: Problem, net: CodebookNet) -> None:
    """Also of truths that repeat, and of those beyond the cap, which report their own cell."""
    for one in (replace(net, slope=0.02, keep=0.25), replace(net, max_distance=70.0)):
        truth = np.tile(problem.places, (300 // len(problem.places) + 1, 1))
        found, rows = expected_losses(one, truth, problem.loss), one.rows(truth)
        np.testing.assert_allclose(found, rows.losses(truth, problem.loss), rtol=1e-12)
        of_law = one.law(problem.joint)
        assert of_law is not None
        assert Candidate.of(one, problem).spent == pytest.approx(of_law.loss, rel=1e-12)


def test_the_net_is_evaluated_once_for_all_slopes(
    problem: Problem, net: CodebookNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[int] = []

    def counted(self: CodebookNet, truth: np.ndarray, work: Any) -> Any:
        evaluated.append(len(truth))
        return outputs(self, truth, work)

    outputs = CodebookNet._outputs
    monkeypatch.setattr(CodebookNet, "_outputs", counted)
    calibrated(net, problem, Codebook())
    assert sum(evaluated) == len(problem.places)


def test_where_no_slope_is_steep_enough_the_own_cell_is_reported(
    problem: Problem, net: CodebookNet
) -> None:
    tight = replace(problem, max_loss=20)
    released = calibrated(net, tight, Codebook())
    assert 0 < released.mechanism.keep < 1
    law = released.mechanism.law(tight.joint)
    assert law is not None and law.loss <= 20


def test_a_limit_on_the_posterior_holds_or_is_refused(problem: Problem, net: CodebookNet) -> None:
    free = within_budgets(Candidate.of(net, problem))
    highest = float(free.law.joint.posterior.max())
    released = calibrated(net, problem, Codebook(max_posterior=min(1.0, highest + 1e-9)))
    assert released.limits is not None and len(released.mechanism.places) == len(net.places)
    with pytest.raises(ProblemError, match="no mechanism of this codebook keeps"):
        calibrated(net, problem, Codebook(max_posterior=0.501))


def test_places_that_are_given_up_take_their_outputs_with_them(
    problem: Problem, net: CodebookNet
) -> None:
    weights, bias = net.layers[-1]
    layer = (weights, np.arange(6, dtype=np.float32))
    fewer = _without(replace(net, layers=(layer,)), np.array([1, 4]))
    np.testing.assert_array_equal(fewer.places, net.places[[0, 2, 3, 5]])
    np.testing.assert_array_equal(fewer.layers[-1][1], [0, 2, 3, 5])
    assert bias.shape == (6,)
