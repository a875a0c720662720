"""The schedule of a codebook's learning, and what its compiled steps compute."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from sfumato.data.joint import Joint
from sfumato.data.synthetic import four_corners
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.solver import Codebook, Problem
from sfumato.solver.codebook.learn import (
    astray,
    features,
    leakage,
    net_outputs,
    recalled,
    sine_and_cosine,
)
from sfumato.solver.codebook.run import CrossFittedTraining
from sfumato.solver.codebook.training import PARTS, CodebookTraining, until
from sfumato.solver.deadline import Deadline
from sfumato.solver.learner import Clock


class _Left:
    """A deadline with a fixed number of seconds left."""

    limited = True

    def __init__(self, seconds: float) -> None:
        self.left = seconds


def _clock(took: list[float], left: float) -> Any:
    clock: Any = Clock(Deadline(), took)
    clock.deadline = _Left(left)
    return clock


def test_the_time_of_compiling_does_not_hurry_what_follows() -> None:
    """The first part took 8 s, mostly to compile; 12 s are left for 19 parts.  Later parts are
    taken at their word."""
    assert until(1, 0.05, _clock([8.0], 12.0), PARTS) < 0.2
    assert until(2, 0.1, _clock([8.0, 6.0], 12.0), PARTS) == pytest.approx(0.1 + 0.9 / 2)
    assert until(1, 0.05, _clock([8.0], -1.0), PARTS) == 1


def test_where_there_is_hardly_time_for_one_part_it_is_the_whole() -> None:
    assert until(0, 0.0, _clock([], 12.0), PARTS, 5.0) == 1
    assert until(0, 0.0, _clock([], 30.0), PARTS, 5.0) == pytest.approx(1 / PARTS)


def test_without_a_time_limit_all_parts_are_even() -> None:
    assert until(3, 0.15, Clock(Deadline(), [100.0] * 3), PARTS) == pytest.approx(0.2)
    assert until(0, 0.0, Clock(Deadline()), PARTS, 1e9) == pytest.approx(1 / PARTS)


def test_no_fewer_steps_are_taken_than_were_asked_for() -> None:
    problem, settings = Problem(four_corners(0).train, max_loss=173), Codebook(steps=150)
    training = CodebookTraining(settings, problem, 0, capacity=settings.capacity(problem))
    assert training.part_steps * PARTS == 160


def test_more_places_take_more_steps_unless_users_have_few_checkins() -> None:
    square = four_corners(0).train  # 480 check-ins of each user
    city = replace(square, truth=20 * square.truth, region=None)
    few = city.split(100, 0, seed=0).train
    taken = [Codebook().capacity(Problem(data, max_loss=173)) for data in (square, city, few)]
    assert [one.steps for one in taken] == [1500, 8000, 1500]
    assert taken[0].places == 128 and taken[1].places > taken[2].places > 128


def _city_training(each: int) -> CrossFittedTraining:
    square = four_corners(0).train
    data = replace(square, truth=20 * square.truth, region=None).split(each, 0, seed=0).train
    return CrossFittedTraining(Codebook(), Problem(data, max_loss=173), 0)


def test_folds_learn_as_the_net_does_where_users_just_have_many_checkins() -> None:
    """With 200 check-ins per user a fold has 150 of them, which alone would count as few."""
    for each, remembered in ((200, True), (199, False)):
        both = _city_training(each)
        trainings = [both._start, *(fold.training for fold in both.folds.folds)]
        assert {one.config.remembered is not None for one in trainings} == {remembered}


def test_moved_checkins_go_as_far_as_a_users_own_lie_apart() -> None:
    """Corners are apart by many budgets, so that of two users at one corner each has the other's
    check-ins between the own ones."""
    training = _city_training(200)._start
    units = (training.samples.truth - training.centre) / training.unit_m
    user = training.samples.secret
    apart = np.linalg.norm(units[:, None] - units[None], axis=-1)
    apart[(user[:, None] != user[None]) | np.eye(len(user), dtype=bool)] = np.inf
    furthest = 3 * 173 / training.unit_m
    np.testing.assert_allclose(
        np.sort(training.data.gaps),
        np.sort(np.minimum(apart.min(axis=1), furthest)),
        rtol=1e-5,
        atol=1e-6,
    )


def test_the_table_of_the_last_steps_has_the_slope_of_this_one() -> None:
    """Three steps: a weighted mean of their tables; with a mean of one kind for all steps, or the
    slope divided by the memory, this fails."""
    tables = np.random.default_rng(0).dirichlet(np.ones(6), size=3).reshape(3, 2, 3)
    mean = np.zeros((2, 3))
    for steps, table in enumerate(tables):
        whole, mean = recalled(table, mean, np.float32(steps))
    weights = 0.9 ** np.arange(3)[::-1]
    expected = np.tensordot(weights / weights.sum(), tables, axes=1)
    np.testing.assert_allclose(whole, expected, rtol=1e-5)
    slope = jax.grad(lambda table: recalled(table, np.zeros((2, 3)), 5.0)[0][0, 1])(tables[0])
    np.testing.assert_allclose(slope, [[0, 1, 0], [0, 0, 0]], atol=1e-7)


def test_what_learning_takes_follows_from_steps_and_places() -> None:
    problem = Problem(four_corners(0).train, max_loss=173)
    little, much = (Codebook(steps=steps).expected(problem) for steps in (100, 1500))
    assert 5 < little.seconds < 20 and 30 < much.seconds < 100 and much.bytes > 4e8
    more = Codebook(made_for="these", places=512).expected(problem)
    assert more.seconds > Codebook(made_for="these").expected(problem).seconds


@pytest.mark.parametrize("seed", range(4))
def test_the_smoothed_leakage_tends_to_the_measured_one(seed: int) -> None:
    """At sharpness 1e4 the smoothed maximum over 3 users is at most ln 3 / 1e4 above the maximum, in
    float32."""
    table = np.random.default_rng(seed).dirichlet(np.ones(15)).reshape(3, 5)
    gains = np.eye(3)
    sharp = float(leakage(table, gains, 1e4, 0.0))
    assert -1e-6 <= sharp - (1 - bayes_error(Joint(table))) <= 2e-4
    nats = float(leakage(table, gains, 1e4, 1.0))
    assert nats == pytest.approx(mutual_information(Joint(table)) * np.log(2), abs=1e-5)


def test_sines_and_cosines_are_right_to_the_last_digit() -> None:
    """A wrong coefficient or quarter would be off by 1e-5 and more."""
    angle = np.linspace(-4000, 4000, 200_001).astype(np.float32)
    sine, cosine = sine_and_cosine(angle)
    assert np.abs(sine - np.sin(angle.astype(float))).max() < 2e-7
    assert np.abs(cosine - np.cos(angle.astype(float))).max() < 2e-7


def _training(**settings: Any) -> CodebookTraining:
    problem = Problem(four_corners(seed=0).train.take(np.arange(0, 1920, 24)), max_loss=100)
    codebook = Codebook(places=8, **settings)
    return CodebookTraining(codebook, problem, 0, capacity=codebook.capacity(problem))


def test_arrays_of_other_sizes_have_one_shape_and_the_same_law() -> None:
    given, rounded = (_training(made_for=whom).data for whom in ("these", "new"))
    count = len(given.truths)
    assert count % 64 and len(rounded.truths) == 128
    np.testing.assert_array_equal(rounded.table[:, :count], given.table)
    assert not np.any(rounded.table[:, count:]) and not np.any(rounded.charges[:, count:])
    assert np.all(rounded.height[:, count - 1 :] >= 1 - 1e-6)  # no truth of no weight is redrawn


def test_truths_that_are_sent_far_away_are_charged_what_exceeds_two_budgets() -> None:
    training = _training()
    weights, data = training.first().weights, training.data
    truths = np.zeros((3, 2), np.float32)
    inputs = features(truths, data.waves)

    def cost(budgets_away: float) -> float:
        places = np.tile([[budgets_away * float(data.reach), 0.0]], (8, 1)).astype(np.float32)
        sent = weights._replace(places=places)
        outputs, distance = net_outputs(sent, inputs, truths, data.cap)
        return float(astray(jax.nn.softmax(outputs), distance, data))

    assert cost(5) == pytest.approx(5 - 2, rel=1e-4)
    assert cost(1) == 0
