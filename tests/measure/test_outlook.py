"""What held-out check-ins say of check-ins to come."""

import json

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.data.samples import Samples
from sfumato.files import plain
from sfumato.measure.estimate import Estimate, wilson
from sfumato.measure.judge import judge
from sfumato.measure.objective import Bayes
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import euclidean
from sfumato.mechanism.simple import constant


@pytest.fixture(scope="module")
def held_out() -> Samples:
    return sf.four_corners(0).test


def _channel() -> Mechanism:
    return sf.mechanism.Snapped(sf.mechanism.PlanarLaplace(0.02), sf.Grid(cell_m=100))


def test_the_loss_has_the_interval_of_the_mean_of_expected_losses(held_out: Samples) -> None:
    mechanism = constant((300.0, 0.0))
    cost = euclidean(held_out.truth, np.array([[300.0, 0.0]]))
    low, high = stats.t.interval(0.95, len(cost) - 1, cost.mean(), stats.sem(cost))
    loss = judge(mechanism, held_out).loss_of_sample
    assert loss is not None
    assert (loss.value, loss.low, loss.high) == pytest.approx((cost.mean(), low, high))


def test_a_law_over_cells_and_drawn_reports_have_the_same_spread(held_out: Samples) -> None:
    grid = sf.Grid(cell_m=100)
    known = judge(_channel(), held_out)
    rng = np.random.default_rng(0)
    drawn = judge(
        sf.mechanism.Function(lambda truth, random: truth + rng.normal(0, 1, truth.shape)),
        held_out,
        sampled_on=grid,
        hits=200,
    )
    # Noise on cells costs nearly the same everywhere; 1 m of it is off by 0.65 / sqrt(200) a mean.
    assert known.loss_deviation == pytest.approx(0.0, abs=10)
    assert drawn.loss_deviation == pytest.approx(0.655 / 200**0.5, rel=0.2)


def test_the_bayes_error_reaches_up_to_the_guesses_learnt_on_training_data() -> None:
    data = sf.four_corners(0)
    judged = judge(_channel(), data.test, fitted_on=data.train)
    outlook = Outlook.held_out(judged, Bayes())
    assert outlook is not None and judged.learnt_error is not None
    error, count = outlook.bayes_error, len(data.test)
    assert error.low == wilson(judged.bayes_error.value, count)[0]
    assert error.high == pytest.approx(wilson(judged.learnt_error.value, count)[1])
    assert outlook.how == "held-out" and outlook.checkins == count and outlook.folds == 0
    assert outlook.leakage == pytest.approx(1 - error.value)
    assert Outlook.from_dict(json.loads(json.dumps(plain(outlook.as_dict())))) == outlook


def test_categories_are_no_sample() -> None:
    joint = sf.data.Joint(np.eye(2) / 2, secrets=("a", "b"))
    table = sf.CategoricalData(joint, ("x", "y"), ("x", "y"), 1 - np.eye(2))
    solution = sf.solve(sf.Problem(table, max_loss=0.3), sf.Exact())
    assert solution.measured.loss_of_sample is None
    assert Outlook.held_out(solution.measured, Bayes()) is None


@pytest.mark.parametrize(
    ("half", "little", "needed"),
    [(10.0, False, 54), (30.0, False, 480), (30.1, True, 490), (300.0, True, 48_000)],
)
def test_check_ins_that_would_do_grow_with_the_square_of_the_width(
    half: float, little: bool, needed: int
) -> None:
    other = Estimate.exact(0.5)
    loss = Estimate(310.0, 310 - half, 310 + half, "estimate")
    outlook = Outlook(loss, other, other, other, leakage=0.5, checkins=120)
    assert outlook.says_little(300) is little
    assert outlook.checkins_for(300) == needed  # 120 (half / 15)^2
    assert outlook.over(300) is (310 - half > 300)
