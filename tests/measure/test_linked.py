"""Linked reports: overlaps, and what they say of the Bayes error of n reports."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given

from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.linked import least_overlap, linked_bounds, overlaps
from sfumato.measure.repeated import linked_bayes_error
from tests.measure.chains import Chain, chains


def _seen(chain: Chain) -> Joint:
    table = chain.joint.table @ chain.mechanism
    places = np.arange(2.0 * table.shape[1]).reshape(-1, 2)
    return Joint(table / table.sum(), places=places)


def _by_hand(seen: Joint, count: int) -> float:
    """Every ordered list of reports."""
    prior = seen.prior
    law = seen.table / np.where(prior > 0, prior, 1)[:, None]
    lists = product(range(law.shape[1]), repeat=count)
    return 1 - sum(float((prior * law[:, list(one)].prod(axis=1)).max()) for one in lists)


@given(chains())
def test_linked_errors_are_those_of_every_ordered_list(chain: Chain) -> None:
    seen = _seen(chain)
    for count, found in zip((1, 2, 3), linked_bayes_error(seen, (1, 2, 3)), strict=True):
        assert found.kind == "exact" and found.value == pytest.approx(
            _by_hand(seen, count), abs=1e-9
        )


@given(chains())
def test_the_bounds_from_overlaps_hold(chain: Chain) -> None:
    seen = _seen(chain)
    for count in (1, 2, 4):
        low, high = linked_bounds(seen, count)
        assert low - 1e-9 <= _by_hand(seen, count) <= high + 1e-9


@given(chains())
def test_merging_reports_never_lowers_an_overlap(chain: Chain) -> None:
    seen = _seen(chain)
    if seen.table.shape[1] > 1:
        merged = np.column_stack([seen.table[:, :2].sum(axis=1), seen.table[:, 2:]])
        assert least_overlap(Joint(merged)) >= least_overlap(seen) - 1e-12


def test_the_overlap_is_one_for_one_law_and_zero_for_reports_apart() -> None:
    assert least_overlap(Joint.uniform(secrets=3, places=5)) == pytest.approx(1)
    assert least_overlap(Joint(np.eye(3) / 3)) == 0


def test_a_user_who_never_occurs_decides_nothing() -> None:
    joint = Joint(np.array([[0.25, 0.25], [0.0, 0.0], [0.25, 0.25]]))
    assert least_overlap(joint) == pytest.approx(1)
    assert overlaps(joint)[1].tolist() == [0, 0, 0]


def test_no_reports_are_refused() -> None:
    with pytest.raises(ProblemError, match="at least 1; got 0"):
        linked_bounds(Joint(np.eye(2) / 2), 0)
