"""Other shares of the users: by hand, by theorem, and not where nothing is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_vulnerability
from sfumato.measure.judge import judge
from sfumato.measure.prior import bayes_capacity, reweighted, under_priors
from sfumato.mechanism.custom import Function
from sfumato.mechanism.simple import Coin, Identity
from tests.measure.chains import joints

TWO = Samples(
    secret=[0, 0, 0, 1], truth=[[0, 0], [0, 0], [0, 30], [100, 0]], secrets=("ann", "bob")
)


def test_a_coin_under_other_shares_by_hand() -> None:
    """Keep 1/2, else (0, 0).  ann sends (0,0) with 5/6 and (0,30) with 1/6 and loses 5 m; bob half
    each and loses 50 m."""
    found = under_priors(judge(Coin(keep=0.5, place=(0.0, 0.0)), TWO))
    assert found is not None
    assert found.given.loss == pytest.approx(
        0.75 * 5 + 0.25 * 50
    ) and found.given.blind == pytest.approx(0.25)
    assert found.given.bayes_error.value == pytest.approx(0.25 * 0.5)
    assert found.equal.loss == pytest.approx(27.5) and found.equal.blind == 0.5
    assert found.equal.bayes_error.value == pytest.approx(1 - (5 / 12 + 1 / 12 + 1 / 4))
    by_name = {one.name: one for one in found.doubled}
    assert by_name["ann"].bayes_error.value == pytest.approx(1 / 7 * 0.5)  # 6 to 1
    assert by_name["bob"].loss == pytest.approx(0.6 * 5 + 0.4 * 50)  # 3 to 2
    assert found.easiest.name == "ann" and found.dearest.name == "bob"
    assert found.capacity == pytest.approx(
        5 / 6 + 1 / 6 + 1 / 2
    ) and found.largest_loss == pytest.approx(50)
    assert found.as_dict()["doubled"][1]["prior"] == "bob"


@given(joints(), st.lists(st.integers(0, 9), min_size=5, max_size=5))
def test_no_shares_make_the_best_guess_more_than_capacity_times_better(
    joint: Joint, weights: list[int]
) -> None:
    shares = np.array(weights[: len(joint.prior)]) * (joint.prior > 0)
    if not shares.sum():
        return
    shares = shares / shares.sum()
    assert bayes_vulnerability(reweighted(joint, shares)) <= bayes_capacity(
        joint
    ) * shares.max() * (1 + 1e-9)


@given(joints())
def test_equal_shares_attain_the_capacity(joint: Joint) -> None:
    present = joint.prior > 0
    equal = reweighted(joint, present / present.sum())
    assert bayes_vulnerability(equal) * present.sum() == pytest.approx(bayes_capacity(joint))


@given(joints())
def test_the_datas_own_shares_change_nothing(joint: Joint) -> None:
    assert reweighted(joint, joint.prior).table == pytest.approx(joint.table)


def test_users_who_are_not_there_get_no_share() -> None:
    absent = Samples(secret=[0, 1], truth=[[0, 0], [5, 5]], secrets=("ann", "bob", "cid"))
    found = under_priors(judge(Identity(), absent))
    assert found is not None and found.equal.blind == pytest.approx(0.5) and len(found.doubled) == 2
    with pytest.raises(ProblemError, match="nothing is known of its reports"):
        reweighted(absent.joint(), np.array([0.5, 0.25, 0.25]))
    with pytest.raises(ProblemError, match="1 in all"):
        reweighted(absent.joint(), np.array([0.5, 0.25, 0.0]))
    with pytest.raises(ProblemError, match="1 in all"):
        reweighted(absent.joint(), np.array([0.5, np.nan, 0.5]))


def test_sampled_figures_are_not_weighted_anew() -> None:
    assert (
        under_priors(
            judge(Function(lambda truth, random: truth), TWO, grid=Grid(cell_m=50), hits=5)
        )
        is None
    )
