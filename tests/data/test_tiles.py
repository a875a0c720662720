"""Tiles: they cover their region once, follow the people, and their weights blend neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.grid import Region
from sfumato.data.tiles import NARROWEST, Tiling
from sfumato.errors import MechanismError, ProblemError

REGION = Region(centre=(100.0, -50.0), side_m=1600.0)


def _crowd(seed: int, users: int = 40) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    secret = random.integers(0, users, 400)
    spread = np.where(random.random(400) < 0.7, 60.0, 350.0)[:, None]
    points = np.array(REGION.centre) + random.normal(0.0, 1.0, (400, 2)) * spread
    return REGION.clamp(points), secret


def _tiling(seed: int = 0, overlap_m: float = 20.0) -> Tiling:
    return Tiling.of(REGION, *_crowd(seed), users_per_tile=8, overlap_m=overlap_m)


@given(seed=st.integers(0, 50), overlap_m=st.sampled_from([0.0, 1.0, 25.0, 90.0]))
def test_weights_sum_to_one_and_are_those_of_a_point_moved_at_random(
    seed: int, overlap_m: float
) -> None:
    """Against a slow loop: the share of a fine lattice of moved points that each tile holds.  A
    lattice of 64 by 64 is off by at most two of its lines on each axis."""
    tiling = _tiling(seed, overlap_m)
    points = np.random.default_rng(seed).uniform(-800.0, 900.0, (8, 2))
    weights = tiling.weights(points).toarray()
    assert np.allclose(weights.sum(axis=1), 1.0)
    steps = ((np.arange(64) + 0.5) / 32 - 1) * overlap_m
    moves = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    for point, row in zip(points, weights, strict=True):
        counted = np.bincount(tiling.locate(point + moves), minlength=len(tiling)) / len(moves)
        assert np.abs(counted - row).max() <= 4 / 64
    shares = np.stack([tiling.share(tile, points) for tile in range(len(tiling))], axis=1)
    assert np.allclose(shares, weights)


def test_each_point_lies_in_the_square_that_is_named() -> None:
    tiling = _tiling(3)
    points = np.random.default_rng(1).uniform(-690.0, 740.0, (500, 2))
    tile = tiling.locate(points)
    off = points - tiling.corners[tile]
    assert np.all((off >= 0) & (off < tiling.sides_m[tile][:, None]))
    assert np.isclose((tiling.sides_m**2).sum(), REGION.side_m**2)


def test_a_square_is_quartered_until_few_enough_users_were_there() -> None:
    points, secret = _crowd(2)
    tiling = Tiling.of(REGION, points, secret, users_per_tile=8, overlap_m=20.0)
    users = [len(np.unique(secret[tiling.locate(points) == tile])) for tile in range(len(tiling))]
    narrow = tiling.sides_m / 2 < NARROWEST * 20.0
    assert np.all((np.array(users) <= 8) | narrow)
    assert narrow.any() and not narrow.all() and tiling.sides_m.min() >= NARROWEST * 20.0
    apart = Tiling.of(REGION, points, secret, users_per_tile=999, overlap_m=20.0)
    assert len(apart) == 1
    wide = Tiling.of(REGION, points, secret, users_per_tile=999, overlap_m=20.0, widest_m=800.0)
    assert len(wide) == 4


def test_weights_sum_to_one_on_edges_far_away_and_for_a_small_overlap() -> None:
    region = Region(centre=(1e7 / 3, -2e7 / 7), side_m=1e5 / 9)
    squares = [[1, 1, 0], [1, 0, 1], [1, 1, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1], [2, 1, 1]]
    tiling = Tiling(region, np.array(squares), overlap_m=1e-3)
    edges = np.vstack([tiling.corners, tiling.corners + tiling.sides_m[:, None], tiling.middles])
    near = [edges, np.nextafter(edges, -np.inf), edges + 4e-4, edges + 1e9]
    weights = tiling.weights(np.vstack(near)).toarray()
    assert np.allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_what_covers_the_region_twice_or_not_at_all_is_refused() -> None:
    with pytest.raises(MechanismError, match="do not cover"):
        Tiling(REGION, np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0]]))
    with pytest.raises(MechanismError, match="do not cover"):
        Tiling(REGION, np.array([[0, 0, 0], [1, 0, 0]]))
    for beyond in ([1, 1 + 2**20, 1], [1, 1, 1 + 2**40], [1, 3, 1]):  # 21 bits on, it looks alike
        with pytest.raises(MechanismError, match="do not cover"):
            Tiling(REGION, np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], beyond]))
    for overlap_m in (900.0, -1.0, 1e-300, np.nan):
        with pytest.raises(ProblemError, match="half the side of the"):
            Tiling(REGION, np.array([[0, 0, 0]]), overlap_m=overlap_m)
    with pytest.raises(ProblemError, match="at least 1; got 0"):
        Tiling.of(REGION, *_crowd(0), users_per_tile=0, overlap_m=1.0)


@pytest.mark.parametrize("centre, side", [((10.0, 5.0), 1e300), ((1e17, 0.0), 800.0)])
def test_tiles_whose_edges_are_rounded_are_refused(centre: tuple[float, float], side: float):
    quarters = np.array([[1, column, row] for row in (0, 1) for column in (0, 1)])
    with pytest.raises(MechanismError, match="within 1e"):
        Tiling(Region(centre, side), quarters, 30.0)
