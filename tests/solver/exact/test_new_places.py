"""What an optimal channel does at places that it was not made for."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.measure.judge import judge
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.solver.exact.new_places import average_for

DATA = sf.four_corners(seed=0)
FRESH = sf.four_corners(seed=77).train  # drawn from the same law, none of it seen


@pytest.fixture(scope="module")
def solved() -> sf.Solution:
    some = DATA.train.take(np.arange(0, len(DATA.train), 8))  # 60 check-ins of each user
    return sf.solve(sf.Problem(some, max_loss=173, cell_m=50), sf.Exact(plane=False))


def test_new_places_keep_the_budget_and_hide_more_than_laplace_and_than_the_nearest_row(solved):
    channel = solved.mechanism
    assert isinstance(channel, Channel) and channel.average is not None
    assert not channel.knows(FRESH.truth).any()
    found = judge(channel, FRESH)
    nearest = judge(replace(channel, average=None, nearest=True), FRESH)
    laplace = judge(
        PlanarLaplace.for_loss(found.loss.value), FRESH, grid=solved.problem.grid
    ).bayes_error.value
    assert found.loss.value <= 173 * 1.02
    assert found.bayes_error.value > laplace + 0.2
    assert found.bayes_error.value > nearest.bayes_error.value + 0.02


def test_places_left_out_cost_the_budget(solved):
    """The tilt is where the loss crosses it: answered from all others, to a thousandth."""
    channel, problem = solved.mechanism, solved.problem
    assert isinstance(channel, Channel) and channel.average is not None
    spent = 0.0
    for out in range(len(channel.truths)):
        rest = np.arange(len(channel.truths)) != out
        others = replace(
            channel,
            truths=channel.truths[rest],
            matrix=channel.matrix[rest],
            average=replace(channel.average, weights=channel.average.weights[rest]),
        )
        rows = others.rows(channel.truths[out : out + 1])
        assert rows is not None
        off = np.hypot(*(rows.places - channel.truths[out]).T)
        spent += float(problem.joint.table[:, out].sum() * (rows.matrix.toarray()[0] @ off))
    assert spent == pytest.approx(173, rel=1e-3)


def test_users_with_budgets_of_their_own_keep_them_at_places_left_out():
    some = DATA.train.take(np.arange(0, len(DATA.train), 16))
    limits = dict(zip(some.secrets, (120.0, 200.0, 200.0, 200.0), strict=True))
    problem = sf.Problem(some, user_max_loss=limits, cell_m=100)
    channel = sf.solve(problem, sf.Exact(plane=False)).mechanism
    found = judge(channel, FRESH)
    for user, limit in zip(found.per_user, limits.values(), strict=True):
        assert user.loss <= limit * 1.1  # 30 check-ins each: they say the loss to some metres


def test_one_place_alone_has_no_average(solved):
    one = Channel([[0.0, 0.0]], [[0.0, 0.0]], [[1.0]])
    assert average_for(solved.problem, one) is None
