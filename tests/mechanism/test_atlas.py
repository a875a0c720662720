"""An atlas: its law is the blend of its tiles' laws, at home and across a country."""

from pathlib import Path

import numpy as np

from sfumato.data.grid import Grid, Region
from sfumato.data.plane import COUNTRY_M, Plane
from sfumato.data.samples import Samples
from sfumato.data.tiles import Tiling
from sfumato.measure.judge import judge
from sfumato.mechanism.atlas import Atlas
from sfumato.mechanism.base import load_mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Coin, constant
from sfumato.mechanism.wrap import Snapped

QUARTERS = np.array([[1, column, row] for row in (0, 1) for column in (0, 1)])
GRID = Grid(cell_m=25.0)


def _at_home(*mechanisms: object, overlap_m: float = 100.0) -> Atlas:
    tiling = Tiling(Region((0.0, 0.0), 4000.0), QUARTERS, overlap_m)
    return Atlas(tiling, mechanisms, np.arange(4) % len(mechanisms), GRID)  # type: ignore[arg-type]


def test_the_loss_of_the_blend_is_the_blend_of_losses() -> None:
    left, right = constant((-500.0, 0.0)), constant((700.0, 0.0))
    atlas = _at_home(left, right)
    truth = np.array([[-300.0, 10.0], [0.0, 10.0], [50.0, 10.0]])
    rows = atlas.rows(truth)
    assert rows is not None
    share = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    off = np.stack([np.hypot(*(truth - GRID.snap(np.array(one.place))).T) for one in (left, right)])
    distance = np.hypot(*(truth[:, None, :] - rows.places[None, :, :]).transpose(2, 0, 1))
    found = np.asarray(rows.matrix.multiply(distance).sum(axis=1)).ravel()
    assert np.allclose(found, (share * off.T).sum(axis=1))


def test_the_same_noise_in_all_tiles_is_that_noise() -> None:
    """No tile shows where nothing differs: the law is that of the noise alone."""
    noise = PlanarLaplace(epsilon=0.02)
    random = np.random.default_rng(0)
    samples = Samples(random.integers(0, 3, 30), random.normal(0.0, 200.0, (30, 2)))
    blend = judge(_at_home(noise, noise), samples)
    alone = judge(Snapped(noise, GRID), samples)
    assert blend.bayes_error.kind == alone.bayes_error.kind == "exact"
    assert abs(blend.bayes_error.value - alone.bayes_error.value) <= 2e-5
    assert abs(blend.loss.value - alone.loss.value) <= 1e-3


def test_tiles_of_a_country_work_in_metres_of_their_own() -> None:
    """900 km from the middle the plane's metres are 1 % short along one axis; the noise of a tile is
    not, and the loss says so.  Off by chance by less than 4 standard errors, sqrt(2)/epsilon/200 = 0.7 m."""
    plane = Plane(46.0, 2.0, COUNTRY_M)
    tiles = np.array([[3, column, row] for row in range(8) for column in range(8)])
    tiling = Tiling(Region((0.0, 0.0), 1_400_000.0), tiles, 1000.0)
    noise = PlanarLaplace(epsilon=0.01)
    atlas = Atlas(tiling, (noise,), np.zeros(64, dtype=int), GRID).on_plane(plane)
    far = np.array([[640_000.0, 640_000.0]])
    assert atlas.plane_of(int(tiling.locate(far)[0])) != plane
    truth = np.repeat(far, 40_000, axis=0)
    reports = atlas.sample(truth, seed=1)
    distance = plane.distance(truth, reports).mean()
    assert abs(distance - 200.0) < 2.9
    assert 0.8 < distance - np.hypot(*(truth - reports).T).mean() < 1.2
    two = Samples(np.array([0, 1]), np.vstack([far, far + 50.0]), plane=plane)
    judged = judge(atlas, two, sampled_on=GRID, hits=20_000)
    assert abs(judged.loss.value - 200.0) < 2.9


def test_an_atlas_of_a_country_is_read_back_whole(tmp_path: Path) -> None:
    plane = Plane(46.0, 2.0, COUNTRY_M)
    tiling = Tiling(Region((0.0, 0.0), 300_000.0), QUARTERS, 500.0)
    coins = tuple(Coin(keep=0.1 * number, place=(0.0, 10.0 * number)) for number in range(3))
    atlas = Atlas(tiling, coins, np.array([0, 1, 2, 0]), GRID).on_plane(plane)
    path = tmp_path / "mechanism.npz"
    atlas.save(path)
    again = load_mechanism(path)
    assert again.plane == plane
    truth = np.random.default_rng(2).uniform(-150_000.0, 150_000.0, (200, 2))
    chance = np.random.default_rng(3).random((200, atlas.draws))
    assert np.array_equal(again.report(truth, chance), atlas.report(truth, chance))
    rows, local = atlas.rows(truth), atlas.places_in_file()
    assert rows is not None and np.allclose(rows.matrix.sum(axis=1), 1.0)
    middles = plane.to_degrees(tiling.middles)
    assert np.allclose(plane.to_metres(*middles)[0], local[0], atol=1e-6)
