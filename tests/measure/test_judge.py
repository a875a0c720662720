"""The judge: exact where the law is known, sampled where it is not, and the same story either
way."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.data.grid import Grid, Region
from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_error
from sfumato.measure.judge import Judgement, geo_epsilon_at, judge, judge_reports
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.custom import Function
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Coin, Identity, constant
from sfumato.mechanism.wrap import Snapped

GRID = Grid(cell_m=50.0)
TWO = Samples(
    secret=[0, 0, 1, 1], truth=[[10, 10], [10, 20], [120, 10], [10, 10]], secrets=("ann", "bob")
)


def test_geo_indistinguishability_in_parts_is_that_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a report that one part always sends is never sent by another."""
    chances = np.random.default_rng(0).dirichlet(np.ones(4), size=3)
    truths, reports = np.unique(TWO.truth, axis=0), np.arange(8.0).reshape(4, 2)
    apart = np.zeros((3, 4))
    apart[(0, 1, 2), (0, 0, 1)] = 1
    for rows in (chances, apart):
        channel = Channel(truths, reports, rows)
        whole = geo_epsilon_at(channel, TWO)
        for most in (1, 2):
            monkeypatch.setattr("sfumato.measure.judge.TRUTHS_WHOLE", most)
            assert geo_epsilon_at(channel, TWO) == whole is not None


def test_a_coin_is_judged_exactly_by_hand() -> None:
    """Keep 1/2, else (10, 20).  Joint of (10,10), (10,20), (120,10): ann 1/8, 3/8, 0; bob 1/8, 1/4,
    1/8."""
    found = judge(Coin(keep=0.5, place=(10.0, 20.0)), TWO)
    assert (
        found.bayes_error.value == pytest.approx(1 - (1 / 8 + 3 / 8 + 1 / 8))
        and found.bayes_error.kind == "exact"
    )
    assert found.bayes_error.cell_m is None and found.bayes_error.hits is None
    assert found.loss.value == pytest.approx((10 + 0 + 110.4536 + 10) / 8, abs=1e-3)
    assert found.exposed.value == pytest.approx(1 / 8) and found.worst_report == 1
    by_name = {user.name: user for user in found.per_user}
    assert by_name["ann"].error == pytest.approx(
        1 - (1 / 16 + 3 / 8) / 0.5
    )  # the tie at (10, 10) is shared
    assert by_name["bob"].error == pytest.approx(1 - (1 / 16 + 1 / 8) / 0.5)
    assert by_name["bob"].exposed == pytest.approx(0.25) and by_name["ann"].exposed == 0


def test_identity_and_constant_are_the_two_ends() -> None:
    data = four_corners(0).train
    assert judge(Identity(), data).bayes_error.value == pytest.approx(0, abs=1e-12)
    nothing = judge(constant((0.0, 0.0)), data)
    assert nothing.bayes_error.value == pytest.approx(
        0.75
    ) and nothing.information_bits.value == pytest.approx(0, abs=1e-9)
    assert [user.error for user in nothing.per_user] == pytest.approx([0.75] * 4)


def test_a_law_and_its_samples_tell_the_same_story() -> None:
    """Planar Laplace on cells of 50 m: exact figures lie in the intervals that 400 hits a truth
    give."""
    data = four_corners(0).train.split(30).train
    mechanism = PlanarLaplace.for_loss(100)
    exact = judge(mechanism, data, grid=GRID)
    sampled = judge(
        Function(lambda truth, random: mechanism.report(truth, random.random((len(truth), 2)))),
        data,
        grid=GRID,
        hits=400,
    )
    assert (
        exact.bayes_error.kind == "exact"
        and sampled.bayes_error.kind == "estimate"
        and sampled.bayes_error.hits == 400
    )
    for name in ("bayes_error", "information_bits", "loss"):
        estimate = getattr(sampled, name)
        assert estimate.low - 0.002 <= getattr(exact, name).value <= estimate.high + 0.002
    assert sampled.exposed.value == pytest.approx(exact.exposed.value, abs=0.03)
    for one, other in zip(exact.per_user, sampled.per_user, strict=True):
        assert one.error == pytest.approx(other.error, abs=0.04) and one.loss == pytest.approx(
            other.loss, rel=0.05
        )


def test_snapping_is_judged_on_its_own_cells_and_costs_a_little() -> None:
    data = four_corners(0).train.split(20).train
    plain, snapped = (
        judge(PlanarLaplace(0.02), data, grid=GRID),
        judge(Snapped(PlanarLaplace(0.02), GRID), data),
    )
    assert (
        snapped.bayes_error.value == pytest.approx(plain.bayes_error.value, abs=1e-9)
        and snapped.bayes_error.cell_m == 50
    )
    assert plain.loss.value == 100 and 100 < snapped.loss.value < 104


def test_a_law_that_is_not_known_needs_a_grid() -> None:
    with pytest.raises(ProblemError, match="expected a grid to count its reports on"):
        judge(Function(lambda truth, random: truth), TWO)
    with pytest.raises(ProblemError, match="hits must be at least 1"):
        judge(Function(lambda truth, random: truth), TWO, grid=GRID, hits=0)


def test_one_user_is_not_judged() -> None:
    with pytest.raises(ProblemError, match=r"holds one user \(\w+\); expected at least two"):
        judge(Identity(), TWO.take(np.array([0, 1])))


def test_reports_outside_the_region_are_counted() -> None:
    assert judge(
        Coin(keep=0.5, place=(10.0, 20.0)), TWO, region=Region((0.0, 0.0), 100.0)
    ).outside == pytest.approx(1 / 8)


def _learnt(judged: Samples, fitted: Samples, sampled: bool) -> Judgement:
    mechanism = Function(lambda truth, random: truth) if sampled else Identity()
    return judge(mechanism, judged, grid=Grid(cell_m=1.0), hits=50, fitted_on=fitted)


@pytest.mark.parametrize("sampled", [False, True])
def test_an_adversary_learnt_on_training_data_is_judged_on_test_data(sampled: bool) -> None:
    """Learnt: ann at (0,0), bob at (5,5).  Judged: ann once at (0,0), bob at (0,0), (5,5) and,
    never seen, (9,9): guessed as (5,5)."""
    train = Samples(secret=[0, 1], truth=[[0, 0], [5, 5]], secrets=("ann", "bob"))
    test = Samples(
        secret=[0, 1, 1, 1], truth=[[0, 0], [0, 0], [5, 5], [9, 9]], secrets=("ann", "bob")
    )
    found = _learnt(test, train, sampled)
    assert found.learnt_error is not None and found.learnt_error.value == pytest.approx(
        (0 + 1 + 0 + 0) / 4
    )
    assert found.learnt_error.value >= found.bayes_error.value


@pytest.mark.parametrize("sampled", [False, True])
def test_users_of_training_and_test_data_are_matched_by_name(sampled: bool) -> None:
    """Training knows cid and numbers the users otherwise; bob is still bob."""
    train = Samples(secret=[0, 1, 2], truth=[[7, 7], [5, 5], [0, 0]], secrets=("cid", "bob", "ann"))
    test = Samples(secret=[0, 1, 1], truth=[[0, 0], [5, 5], [7, 7]], secrets=("ann", "bob"))
    found = _learnt(test, train, sampled)
    assert found.learnt_error is not None and found.learnt_error.value == pytest.approx(
        1 / 3
    )  # bob at (7, 7) is taken for cid
    assert [user.name for user in found.per_user] == ["ann", "bob"]


def test_plain_reports_are_judged_without_a_truth() -> None:
    data = four_corners(0).train
    found = judge_reports(data.secret, data.truth, Grid(cell_m=25), names=data.secrets)
    assert found.bayes_error.value == 0 and found.bayes_error.kind == "estimate"
    assert "Bayes error ≈0.000, ≈2.000 bits, ≈100.0% exposed" in repr(found)
    assert np.isnan(found.loss.value) and "truth is not in the file" in found.loss.errs
    with pytest.raises(ProblemError, match="at least two"):
        judge_reports(np.zeros(3, dtype=int), np.zeros((3, 2)), Grid(cell_m=25), names=("ann",))


def test_the_judgement_as_json_has_every_figure() -> None:
    record = judge(Coin(keep=0.5, place=(10.0, 20.0)), TWO, fitted_on=replace(TWO)).as_dict()
    assert {
        "loss",
        "bayes_error",
        "information_bits",
        "exposed",
        "exposed_estimate",
        "per_user",
        "worst_report",
        "outside",
        "learnt_error",
    } <= set(record)
    for name in ("bayes_error", "exposed_estimate"):
        assert {"value", "low", "high", "kind", "cell_m", "hits"} <= set(record[name])
    assert record["exposed"] == record["exposed_estimate"]["value"]
    assert record["learnt_error"]["value"] == pytest.approx(
        bayes_error(judge(Coin(keep=0.5, place=(10.0, 20.0)), TWO).joint)
    )
