"""Channels, coins, wrappers and mechanisms of the user's own: closed forms and edges."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.errors import MechanismError
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.mechanism.channel import Average, Channel
from sfumato.mechanism.custom import Function, Recorded
from sfumato.mechanism.law import Law
from sfumato.mechanism.loss import squared
from sfumato.mechanism.simple import Coin, Identity, constant
from sfumato.mechanism.wrap import Clamped, Remapped, Snapped

PLACES = np.array([[0.0, 0.0], [100.0, 0.0]])
TWO = Joint(np.eye(2) / 2, places=PLACES, secrets=("alice", "bob"))


def _law(
    mechanism: Identity | Coin | Channel | Remapped | Snapped | Clamped, joint: Joint = TWO
) -> Law:
    law = mechanism.law(joint)
    assert law is not None
    return law


def test_identity_leaks_all_and_costs_nothing() -> None:
    law = _law(Identity())
    assert law.loss == 0 and bayes_error(law.joint) == 0 and mutual_information(law.joint) == 1


def test_constant_leaks_nothing() -> None:
    law = _law(constant((50.0, 0.0)))
    assert law.loss == 50 and bayes_error(law.joint) == 0.5 and mutual_information(law.joint) == 0


def test_swapping_with_chance_two_fifths_costs_40_m_and_errs_two_times_in_five() -> None:
    """The two-person example: a and b 100 m apart, a budget of 40 m."""
    law = _law(Channel(truths=PLACES, reports=PLACES, matrix=[[0.6, 0.4], [0.4, 0.6]]))
    assert law.loss == pytest.approx(40) and bayes_error(law.joint) == pytest.approx(0.4)


def test_no_two_by_two_mechanism_within_40_m_errs_more_than_two_times_in_five() -> None:
    """Exact fractions over a lattice of all 2 x 2 mechanisms that has the optimum on it."""
    best = Fraction(0)
    for first in range(21):
        for second in range(21):
            p, q = Fraction(first, 20), Fraction(second, 20)  # chances to swap
            if 100 * (p + q) / 2 <= 40:
                best = max(best, 1 - (max(1 - p, q) + max(p, 1 - q)) / 2)
    assert best == Fraction(2, 5)


def test_a_coin_that_lands_on_a_truth_adds_up() -> None:
    """Keep 1/4, else report a: P(alice, a) = 1/2, P(bob, a) = 3/8, P(bob, b) = 1/8."""
    law = _law(Coin(keep=0.25, place=(0.0, 0.0)))
    assert law.joint.table.tolist() == [[0.5, 0.0], [0.375, 0.125]]
    assert law.loss == 37.5 and law.loss_of.tolist() == [0, 75]


@pytest.mark.parametrize("keep", [-0.1, 1.1, float("nan")])
def test_a_coin_with_an_impossible_chance_is_refused(keep: float) -> None:
    with pytest.raises(MechanismError, match="lies between 0 and 1"):
        Coin(keep=keep, place=(0.0, 0.0))


def test_a_coin_with_no_place_is_refused() -> None:
    with pytest.raises(MechanismError, match="two finite numbers of metres"):
        Coin(keep=0.5, place=(float("nan"), 0.0))


@pytest.mark.parametrize(
    "matrix",
    [[[0.5, 0.4], [0.5, 0.5]], [[1.5, -0.5], [0.5, 0.5]], [[float("nan"), 1.0], [0.5, 0.5]]],
)
def test_a_channel_whose_rows_are_no_distributions_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(MechanismError, match="probabilities that sum to 1"):
        Channel(truths=PLACES, reports=PLACES, matrix=matrix)  # type: ignore[arg-type]


def test_a_channel_of_another_shape_is_refused() -> None:
    with pytest.raises(MechanismError, match="2 truths and 2 reports need a matrix of that shape"):
        Channel(truths=PLACES, reports=PLACES, matrix=np.eye(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("far", [1e308, 1e300, np.nan])
def test_a_channel_refuses_what_distances_overflow_at(far: float) -> None:
    with pytest.raises(MechanismError, match="finite numbers of metres"):
        Channel(truths=[[far, far]], reports=[[0, 0]], matrix=[[1]])
    with pytest.raises(MechanismError, match="a bandwidth"):
        Average(far, 0.0, np.ones(1))


def test_a_channel_refuses_a_truth_that_it_does_not_know() -> None:
    with pytest.raises(
        MechanismError, match=r"1 truth\(s\) are not among the 2 that this channel knows"
    ):
        Channel.identity(PLACES).sample([50.0, 0.0])


def test_a_channel_reaches_the_ends_of_its_rows_and_never_an_impossible_report() -> None:
    matrix = np.array([[0.0, 0.5, 0.5, 0.0], [0.1, 0.0, 0.0, 0.9]])
    reports = np.arange(8.0).reshape(4, 2)
    channel = Channel(truths=PLACES, reports=reports, matrix=matrix)  # type: ignore[arg-type]
    for chance, expected in [
        (0.0, (1, 0)),
        (0.0999, (1, 0)),
        (0.1, (1, 3)),
        (0.4999, (1, 3)),
        (0.5, (2, 3)),
        (1 - 2.0**-53, (2, 3)),
    ]:
        drawn = channel.report(PLACES, np.full((2, 1), chance))
        assert drawn.tolist() == reports[list(expected)].tolist()


def test_many_rows_do_not_blur_a_channels_chances() -> None:
    """30,000 rows of 1/3, 1/3, 1/3: the last row still turns at its thirds."""
    truths = np.stack([np.arange(30_000.0), np.zeros(30_000)], axis=1)
    channel = Channel(
        truths=truths,
        reports=np.repeat([[0.0], [1.0], [2.0]], 2, axis=1),
        matrix=np.full((30_000, 3), 1 / 3),
    )  # type: ignore[arg-type]
    drawn = channel.report(
        truths[[-1] * 4], np.array([[1 / 3 - 1e-9], [1 / 3 + 1e-9], [2 / 3 - 1e-9], [2 / 3 + 1e-9]])
    )
    assert drawn[:, 0].tolist() == [0, 1, 1, 2]


# Wrappers -----------------------------------------------------------------------------------------

weights = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)


@settings(max_examples=40)
@given(
    rows=st.lists(weights, min_size=5, max_size=5),
    masses=st.lists(st.integers(1, 9), min_size=5, max_size=5),
    seed=st.integers(0, 99),
)
def test_a_bayesian_remap_never_costs_more_and_never_leaks_more(
    rows: list[list[int]], masses: list[int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    truths, reports = (
        random.integers(0, 6, (5, 2)) * 40.0 + np.arange(5)[:, None],
        random.integers(0, 4, (4, 2)) * 60.0,
    )
    matrix = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    channel = Channel(truths=truths, reports=reports, matrix=matrix)  # type: ignore[arg-type]
    table = np.zeros((2, 5))
    table[random.integers(0, 2, 5), np.arange(5)] = np.array(masses) / sum(masses)
    joint = Joint(table, places=truths)
    for inner in (
        channel,
        Snapped(channel, Grid(cell_m=100)),
        Snapped(Identity(), Grid(cell_m=100)),
        Clamped(channel, Region((60, 60), 60)),
    ):
        before = inner.law(joint)
        after = Remapped.bayesian(inner, joint).law(joint)
        assert before is not None and after is not None
        assert after.loss <= before.loss + 1e-9
        assert bayes_error(after.joint) >= bayes_error(before.joint) - 1e-12
        assert mutual_information(after.joint) <= mutual_information(before.joint) + 1e-12


def test_a_bayesian_remap_finds_the_median_by_hand() -> None:
    """Three people report one cell: from 0, 10 and 100 m on a line the best single place is 10
    m."""
    places = np.array([[0.0, 0.0], [10.0, 0.0], [100.0, 0.0]])
    joint = Joint(np.eye(3) / 3, places=places)
    remap = Remapped.bayesian(Snapped(Identity(), Grid(cell_m=1000)), joint)
    assert remap.sample(places).tolist() == [[10, 0]] * 3
    assert _law(remap, joint).loss == pytest.approx(100 / 3)  # 10, 0 and 90 m


def test_a_bayesian_remap_follows_the_loss_and_keeps_to_a_grid() -> None:
    places = np.array([[0.0, 0.0], [10.0, 0.0], [100.0, 0.0]])
    joint = Joint(np.diag([0.25, 0.25, 0.5]), places=places)
    snapped = Snapped(Identity(), Grid(cell_m=1000))
    assert Remapped.bayesian(snapped, joint, loss=squared).sample(places[0]).tolist() == [
        10,
        0,
    ]  # the mean is 52.5 m; no truth is nearer
    assert Remapped.bayesian(snapped, joint, grid=Grid(cell_m=8)).sample(
        places[0], seed=0
    ).tolist() == [12, 4]


def test_a_remap_without_a_finite_law_is_refused() -> None:
    with pytest.raises(MechanismError, match="finitely many reports per truth"):
        Remapped.bayesian(Function(lambda truth, random: truth), TWO)


def test_snapped_reports_are_cell_middles_and_clamped_ones_lie_inside() -> None:
    truths = np.random.default_rng(0).normal(0, 300, (500, 2))
    grid, region = Grid(cell_m=40, corner=(3, 1)), Region((20.0, -10.0), 250.0)
    snapped = Snapped(
        Function(lambda truth, random: truth + random.normal(0, 80, truth.shape)), grid
    ).sample(truths)
    assert np.array_equal(grid.snap(snapped), snapped)
    assert region.contains(Clamped(Identity(), region).sample(truths)).all()


def test_cells_too_small_to_be_numbered_by_one_word_stay_apart_in_the_law() -> None:
    # cells of 2e-6 m: in a number of 64 bits, 2^32 columns of 2^32 rows are column 0 again
    side = 2e-6
    truths = np.array([[0.0, 0.0], [2**32 * side, 0.0], [0.0, (2**32 - 1) * side]]) + side / 2
    mechanism = Snapped(Identity(), Grid(cell_m=side))
    rows = mechanism.rows(truths)
    assert rows is not None
    reports = mechanism.sample(truths, seed=0)
    np.testing.assert_array_equal((rows.matrix @ rows.places), reports)
    users = Joint(np.eye(3) / 3, places=truths, secrets=("ann", "bob", "cid"))
    law = mechanism.law(users)
    assert law is not None and bayes_error(law.joint) == pytest.approx(0.0)


def test_a_law_says_how_much_falls_outside_the_region() -> None:
    assert _law(Coin(keep=0.25, place=(0.0, 0.0))).outside(Region((0.0, 0.0), 60.0)) == 0.125


# The user's own -----------------------------------------------------------------------------------


def test_recorded_pairs_answer_with_each_report_as_often_as_it_was_recorded() -> None:
    """Report 1 twice in three: over 9000 draws the share has a standard error of 0.005."""
    recorded = Recorded(
        truths=np.array([[0, 0], [5, 5], [0, 0], [0, 0]]),
        reports=np.array([[1, 1], [9, 9], [1, 1], [2, 2]]),
    )
    drawn = recorded.sample(np.zeros((9000, 2)), seed=2)
    assert set(drawn[:, 0]) == {1, 2}
    assert np.mean(drawn[:, 0] == 1) == pytest.approx(2 / 3, abs=0.025)
    assert recorded.sample([4.0, 4.0]).tolist() == [9, 9]  # the nearest truth that was recorded


def test_recorded_pairs_that_do_not_pair_are_refused() -> None:
    with pytest.raises(MechanismError, match="n truths and n reports"):
        Recorded(truths=np.zeros((2, 2)), reports=np.zeros((3, 2)))
    with pytest.raises(MechanismError, match="NaN or infinity"):
        Recorded(truths=np.zeros((1, 2)), reports=np.full((1, 2), np.nan))


def test_a_function_that_loses_or_spoils_reports_is_refused() -> None:
    for rule, said in (
        (lambda truth, random: truth[:1], r"a report for each truth, shape .*; got \(1, 2\)"),
        (lambda truth, random: truth * np.nan, "got NaN or infinity"),
    ):
        with pytest.raises(MechanismError, match=said):
            Function(rule).sample(PLACES)
