"""The membership test finds what a file lists, and nothing where a file says nothing."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.measure.membership import (
    CHEAP,
    NEAR,
    SURE,
    area_under_curve,
    membership_test,
)
from sfumato.mechanism.simple import Coin

DATA = sf.four_corners(0)
FEW = DATA.train.split(40, 20, seed=3)
assert FEW.test is not None
INSIDE, OUTSIDE = FEW.train, FEW.test


def test_a_channel_that_lists_its_truths_gives_them_away() -> None:
    channel = sf.mechanism.Channel(
        INSIDE.truth, [[0.0, 0.0]], np.ones((len(INSIDE), 1)), nearest=True
    )
    found = membership_test(channel, INSIDE, OUTSIDE)
    assert found.points == 80 and found.listed == 1
    assert found.scores[NEAR].value == 1 and 0.9 < found.scores[NEAR].low < 1
    assert found.telling is not None and found.telling[0] == NEAR
    assert "lists its training points" in found.verdict and found.as_dict()["listed"] == 1


@pytest.mark.parametrize(
    "mechanism",
    [
        Coin(keep=0.3, place=(0.0, 0.0)),
        sf.mechanism.Snapped(sf.mechanism.Identity(), sf.Grid(cell_m=100)),
    ],
)
def test_a_mechanism_that_saw_no_data_tells_nothing(mechanism: sf.Mechanism) -> None:
    """30 splits by other seeds: intervals of 95 % hold 0.5 in 26 or more (fewer by chance once in
    60; a score that favoured one side by 0.15 would be held in about 10)."""
    held = 0
    for seed in range(30):
        split = DATA.train.split(15, 15, seed=seed)
        assert split.test is not None
        found = membership_test(mechanism, split.train, split.test, seed=seed)
        assert found.listed == 0
        auc = found.scores[CHEAP]
        held += auc.low <= 0.5 <= auc.high
    assert held >= 26


def test_a_mechanism_that_is_surer_where_it_was_trained_is_caught() -> None:
    """Rows at training points are certain, rows elsewhere are not; the file lists no training
    point."""
    chances = np.vstack(
        [np.tile([1.0, 0.0], (len(INSIDE), 1)), np.tile([0.5, 0.5], (len(OUTSIDE), 1))]
    )

    class Peaked(sf.mechanism.Channel):
        def arrays(self) -> dict[str, np.ndarray]:
            return {}

    peaked = Peaked(np.vstack([INSIDE.truth, OUTSIDE.truth]), [[0.0, 0.0], [1.0, 1.0]], chances)
    found = membership_test(peaked, INSIDE, OUTSIDE)
    assert found.scores[SURE].value == 1 and found.listed == 0
    assert "distinguishes training points" in found.verdict


def test_places_seen_twice_are_left_out_and_too_few_are_not_tested() -> None:
    twice = sf.Samples([0, 1, 1], [[0, 0], [1, 1], [1, 1]], ("ann", "bob"))
    other = sf.Samples([0, 1], [[0, 0], [2, 2]], ("ann", "bob"))
    found = membership_test(sf.mechanism.Identity(), twice, other)
    assert found.points == 0 and not found.scores and found.telling is None
    assert "Not tested" in found.verdict


def test_an_unknown_law_is_judged_by_its_file_alone() -> None:
    recorded = sf.mechanism.Recorded(INSIDE.truth, np.zeros_like(INSIDE.truth))
    found = membership_test(recorded, INSIDE, OUTSIDE)
    assert set(found.scores) == {NEAR} and found.listed == 1
    unsaved = membership_test(sf.mechanism.Function(lambda truth, random: truth), INSIDE, OUTSIDE)
    assert not unsaved.scores and unsaved.listed == 0


def test_weights_of_nets_are_not_places() -> None:
    net = sf.mechanism.GeneratorNet(
        ((np.ones((3, 4)), np.ones(4)), (np.ones((4, 2)), np.ones(2))), centre_m=(7.0, 8.0)
    )
    assert {tuple(place) for place in net.places_in_file()} <= {(7.0, 8.0)}


def test_the_area_is_the_chance_of_the_higher_score() -> None:
    found = area_under_curve(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    assert found.value == pytest.approx((1 + 1 + 0 + 0.5) / 4) and found.hits == 2
    assert area_under_curve(np.zeros(9), np.zeros(9)).value == 0.5
    assert area_under_curve(np.arange(9.0) + 9, np.arange(9.0)).low < 1


def test_a_certificate_of_sparse_data_tells_its_points_and_one_of_nothing_does_not() -> None:
    """60 points over some kilometres; 0.72 to 0.81 over seeds, and 120 places give an interval of
    about 0.12 either way: a test that looked at the wrong cells would give 0.5."""
    from sfumato.measure.cells import Cells
    from sfumato.measure.certificate import Certificate, PlaneProof, Proof
    from sfumato.measure.membership import GUESSED, SMALL, certificate_membership

    random = np.random.default_rng(1)
    centres = np.array([[0.0, 0.0], [1500.0, 0.0], [700.0, 1300.0]])
    secret = np.repeat(np.arange(3), 20)
    train, test = (
        sf.Samples(
            secret, np.round(centres[secret] + random.normal(0, 500, (60, 2)), 1), ("a", "b", "c")
        )
        for _ in range(2)
    )
    problem = sf.Problem(train, max_loss=150.0, cell_m=100.0)
    certificate = sf.solve(problem, sf.Exact(), seed=0).certificate
    assert certificate is not None and certificate.on_plane is not None
    found = certificate_membership(certificate, train, test)
    assert found.scores[GUESSED].low > 0.5 and found.scores[SMALL].low > 0.5
    assert "better than a coin toss" in found.verdict and found.listed == 0
    count = len(problem.report_places)
    level = Proof(problem.report_places, np.full((count, 3), 1 / 3), np.zeros(1))
    cells = PlaneProof(
        Cells.over(problem.grid, problem.report_places), level.shares, level.multipliers
    )
    nothing = certificate_membership(Certificate.of(problem, level, cells), train, test)
    assert nothing.scores[GUESSED].value == 0.5
    assert nothing.scores[SMALL].low <= 0.5  # that a place lies outside all cells tells a little
