"""A channel answers truths that it has no row for by an average over those near them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from sfumato.errors import MechanismError
from sfumato.mechanism.base import load_mechanism
from sfumato.mechanism.channel import Average, Channel


def _channel(*, cap: float | None = None, tilt: float = 0.002) -> Channel:
    random = np.random.default_rng(4)
    truths, reports = random.uniform(-500, 500, (30, 2)), random.uniform(-600, 600, (12, 2))
    reports = np.vstack([reports, truths + 1.0])  # so that a cap leaves each truth a report
    matrix = random.dirichlet(np.full(len(reports), 0.3), 30)
    if cap is not None:
        matrix = np.where(cdist(truths, reports) <= cap, matrix, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    average = Average(80.0, tilt, 1.0 + np.arange(30))
    return Channel(truths, reports, matrix, max_distance=cap, average=average)


NEW = np.random.default_rng(5).uniform(-450, 450, (400, 2))


def test_known_truths_keep_their_rows_beside_new_ones():
    channel = _channel()
    both = np.vstack([channel.truths[:5], NEW[:5]])
    rows = channel.rows(both)
    assert rows is not None
    assert np.abs((rows.matrix[:5] - channel.matrix[:5]).toarray()).max() < 1e-12
    assert np.allclose(np.asarray(rows.matrix.sum(axis=1)), 1.0, atol=1e-12)
    assert channel.knows(both).tolist() == [True] * 5 + [False] * 5


def test_a_row_is_the_weighted_mean_times_the_tilt():
    """Against a loop, where no place costs more than the dearest known one."""
    channel = replace(_channel(tilt=0.01))
    place, average = NEW[0], channel.average
    assert average is not None
    wanted = np.zeros(len(channel.reports))
    for truth, weight, row in zip(
        channel.truths, average.weights, channel.matrix.toarray(), strict=True
    ):
        wanted += weight * np.exp(-((place - truth) ** 2).sum() / (2 * 80.0**2)) * row
    wanted *= np.exp(-0.01 * np.hypot(*(channel.reports - place).T))
    rows = channel.rows(place[None])
    assert rows is not None
    assert np.allclose(rows.matrix.toarray()[0], wanted / wanted.sum(), atol=1e-12)


def test_reports_are_drawn_by_the_rows():
    """40,000 draws: a share of 0.5 is off by 0.01 with a chance of 6e-5."""
    channel = _channel()
    rows = channel.rows(NEW[:3])
    assert rows is not None
    for place, row in zip(NEW[:3], rows.matrix.toarray(), strict=True):
        drawn = channel.sample(np.tile(place, (40_000, 1)), seed=1)
        shares = (cdist(drawn, channel.reports) < 1e-9).mean(axis=0)
        assert np.abs(shares - row).max() < 0.012


@pytest.mark.parametrize("cap", [None, 700.0])
def test_no_new_place_costs_more_than_the_dearest_known_one(cap):
    channel = _channel(cap=cap, tilt=-0.01)  # a tilt that would
    rows, known = channel.rows(NEW), channel.rows(channel.truths)
    assert rows is not None and known is not None
    cost = (rows.matrix.toarray() * cdist(NEW, channel.reports)).sum(axis=1)
    dearest = (known.matrix.toarray() * cdist(channel.truths, channel.reports)).sum(axis=1).max()
    assert np.all(cost <= dearest * (1 + 1e-9))
    if cap is not None:
        assert cdist(NEW, channel.reports)[rows.matrix.toarray() > 0].max() <= cap * (1 + 1e-9)


def test_far_from_all_truths_nothing_overflows():
    rows = _channel(tilt=0.05).rows(np.array([[4e5, -3e5]]))
    assert rows is not None and np.isfinite(rows.matrix.data).all()


def test_the_file_keeps_the_rule(tmp_path):
    channel = _channel()
    channel.save(tmp_path / "mechanism.npz")
    again = load_mechanism(tmp_path / "mechanism.npz")
    assert np.array_equal(again.sample(NEW, seed=3), channel.sample(NEW, seed=3))
    assert len(channel.places_in_file()) == len(channel.truths) + len(channel.reports)


@pytest.mark.parametrize(
    ("bandwidth", "weights"), [(0.0, np.ones(30)), (np.nan, np.ones(30)), (5.0, np.zeros(30))]
)
def test_a_rule_that_cannot_be_is_refused(bandwidth, weights):
    with pytest.raises(MechanismError, match="bandwidth"):
        Average(bandwidth, 0.0, weights)
    with pytest.raises(MechanismError, match="as many weights"):
        replace(_channel(), average=Average(5.0, 0.0, np.ones(7)))
