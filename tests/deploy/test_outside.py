"""Points outside the region, hard caps with kept reports, and what is said of a table's loss."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.deploy.protect import protect
from sfumato.deploy.release import Release, release
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError
from sfumato.mechanism.chance import Rows, Sticky
from tests.deploy.tables import DATA, checkins, write_parquet

KEY = bytes(range(32))


def _on_grid(made: Release, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Which written places are middles of cells of the run's grid, as written."""
    assert made.plane is not None
    middles = made.written(made.grid.snap(made.plane.to_metres(latitude, longitude)))
    return (middles[0] == latitude) & (middles[1] == longitude)


def test_a_report_does_not_show_on_which_side_of_the_edge_the_truth_was(runs):
    """The share of reports on the grid was 1.0 in the region and 0.0 beyond."""
    made = release(sf.load_run(runs / "laplace"))
    assert made.plane is not None
    half = made.region.side_m / 2
    random = np.random.default_rng(1)
    for side in (-40.0, 40.0):
        truth = np.stack(
            [np.full(500, made.region.centre[0] + half + side), random.uniform(-half, half, 500)],
            axis=1,
        )
        found = protect(made, *made.plane.to_degrees(truth), outside="laplace")
        assert (found.outside is not None) == (side > 0)
        assert _on_grid(made, found.first, found.second).all()
        off = made.plane.to_metres(found.first, found.second) - truth
        assert abs(np.hypot(*off.T).mean() - 173) < 25  # 122 m / sqrt(500) = 5.5 m


def test_the_lattice_beyond_the_plane_follows_the_report_alone(runs):
    """Truths about the plane's end, 140 km off: a report is on the grid if and only if it is this
    side of it."""
    made = release(sf.load_run(runs / "laplace"))
    assert made.plane is not None
    end = made.plane.latitude + 200_000 * 0.7 / 111_320
    latitude = end + np.linspace(-0.004, 0.004, 400)
    found = protect(made, latitude, np.full(400, made.plane.longitude), outside="laplace")
    on_grid = _on_grid(made, found.first, found.second)
    clear = np.abs(found.first - end) > 2 * made.grid.cell_m / 111_320
    assert on_grid[clear & (found.first < end)].all()
    assert not on_grid[clear & (found.first > end)].any() and (found.first[clear] > end).any()


def _capped(cap: float) -> Release:
    """A channel whose reports are up to the cap away."""
    places = (
        np.stack(np.meshgrid(np.arange(-8, 9), np.arange(-8, 9)), axis=-1).reshape(-1, 2) * 20.0
    )
    distance = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    allowed = (distance <= cap).astype(float)
    matrix = allowed / allowed.sum(axis=1, keepdims=True)
    channel = sf.mechanism.Channel(places, places, matrix, nearest=True, max_distance=cap)
    lattice = sf.Grid(side_m=340, cells=17)
    assert lattice.region is not None
    return Release(channel, None, lattice.region, lattice, {"max_loss": cap, "loss": cap})


def test_a_kept_report_is_within_the_hard_cap_of_every_place_of_its_cell():
    """It was up to half a cell's diagonal beyond."""
    made = _capped(100.0)
    random = np.random.default_rng(2)
    truth = random.uniform(-120, 120, (4000, 2))
    users = Rows(users=np.array([f"u{row}" for row in range(4000)], dtype=object))
    found = protect(made, truth[:, 0], truth[:, 1], chance=Sticky(KEY, "forever", 25.0), rows=users)
    off = np.hypot(found.first - truth[:, 0], found.second - truth[:, 1])
    assert off.max() <= 100.0 + 1e-6 and off.max() > 60.0
    with pytest.raises(DataError, match="sticky_cell_m smaller"):
        protect(made, truth[:, 0], truth[:, 1], chance=Sticky(KEY, "forever", 150.0), rows=users)


def test_a_loss_above_the_budget_by_chance_is_not_said(runs, tmp_path):
    """Laplace has the budget as its mean, so half of all tables are above it: none of ten is called
    unlike (a chance of 1e-4 each)."""
    for number in range(10):
        source = write_parquet(tmp_path / f"{number}.parquet", checkins(1500, seed=number))
        record = sanitize(runs / "laplace", source, tmp_path / f"out{number}.parquet")
        assert record["loss_over_budget"] is False


@pytest.mark.parametrize("changes", [{"keep": 0.4}, {"max_distance": 30.0}])
def test_what_is_written_is_what_is_reported(runs, changes):
    """Also where a codebook keeps the truth, or a cap leaves it none of its places: a lookup of its
    places put others into the table, with losses of the right ones."""
    made = release(sf.load_run(runs / "codebook"))
    made = replace(made, mechanism=replace(made.mechanism, **changes))
    assert made.plane is not None
    truth = np.repeat(DATA.train.truth[:50], 40, axis=0)
    found = protect(made, *made.plane.to_degrees(truth))
    off = made.plane.to_metres(found.first, found.second) - truth
    assert np.allclose(made.budget.costs(np.hypot(*off.T)), found.cost, atol=0.2)
