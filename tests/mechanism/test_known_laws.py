"""Laws that are kept: what is looked up is what the law says, or is left open."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanism.known_laws import OPEN, KnownLaws


def _slow(weights: np.ndarray, number: float) -> int:
    """The first place whose running sum is above the number, in whole numbers."""
    total, below = sum(weights.tolist()), 0.0
    for place, weight in enumerate(weights.tolist()):
        below += weight
        if below / total > number:
            return place
    raise AssertionError


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1e-30, 1e-9, 2.0**-21, 0.25, 1.0]), min_size=5, max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 2**32 - 1),
)
def test_a_number_falls_on_its_place_or_is_left_open(rows: list[list[float]], seed: int) -> None:
    weights = np.array(rows)
    truths = np.arange(2 * len(weights), dtype=float).reshape(-1, 2)
    halves = len(weights) // 2
    known = KnownLaws.joined(
        KnownLaws.of(truths[:halves], weights[:halves].T) if halves else KnownLaws.none(5),
        KnownLaws.of(truths[halves:], weights[halves:].T),
    )
    assert known.find(truths).tolist() == list(range(len(weights)))
    assert known.find(truths + 0.5).tolist() == [-1] * len(weights)
    assert known.alone.tolist() == (weights.sum(axis=1) == 0).tolist()
    random = np.random.default_rng(seed)
    own = np.flatnonzero(~known.alone).repeat(50)
    numbers = random.random(len(own))
    numbers[::5] = random.choice([0.0, 0.25, 0.5, 1 - 2.0**-53, 1 / 3], len(numbers[::5]))
    for truth, number, place in zip(own, numbers, known.look_up(own, numbers), strict=True):
        assert place in (OPEN, _slow(weights[truth], number))


def test_few_numbers_are_left_open() -> None:
    """Of a law of a thousand places fewer than one in three thousand, so that looking up pays."""
    random = np.random.default_rng(0)
    weights = random.exponential(size=(7, 1000)) ** 4
    known = KnownLaws.of(random.random((7, 2)), weights.T)
    found = known.look_up(random.integers(0, 7, 100_000), random.random(100_000))
    assert (found == OPEN).mean() < 3e-4


@pytest.mark.parametrize("places", [1, 2, 1024])
def test_a_law_of_one_place_with_a_chance_has_that_place(places: int) -> None:
    for place in {0, places // 2, places - 1}:
        weights = np.zeros((1, places))
        weights[0, place] = 3.0
        known = KnownLaws.of(np.zeros((1, 2)), weights.T)
        found = known.look_up(np.zeros(64, int), (np.arange(64) + 0.5) / 64)
        assert set(found.tolist()) == {place}
        assert known.size <= 2 + 128


@pytest.mark.parametrize("places", [2, 1024, 40_000])
def test_sums_that_lie_close_together_are_told_apart(places: int) -> None:
    """Places with hardly a chance stand between two likely ones, in one part of the guide; of many
    places, sums and places need longer words."""
    random = np.random.default_rng(1)
    weights = random.exponential(size=(3, places)) * 1e-6
    weights[:, 0], weights[:, -1] = 1.0, 2.0
    known = KnownLaws.of(random.random((3, 2)), weights.T)
    sums = np.cumsum(weights, axis=1)
    own, numbers = random.integers(0, 3, 20_000), random.random(20_000)
    ends = sums[own, random.integers(0, places, 20_000)] / sums[own, -1]
    numbers[::2] = np.clip(ends + random.normal(size=20_000) * 1e-5, 0, 1 - 2.0**-53)[::2]
    found = known.look_up(own, numbers)
    expected = [
        np.searchsorted(sums[law], n * sums[law, -1], "right")
        for law, n in zip(own, numbers, strict=True)
    ]
    sure = found != OPEN
    assert sure.mean() > 0.5 and np.array_equal(found[sure], np.array(expected)[sure])
