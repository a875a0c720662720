"""The frame of the nets, the lattice of their reports, and the noise that a game starts from."""

import jax
import numpy as np
import pytest

from sfumato.data.grid import Grid
from sfumato.solver.game.frame import Frame, frame_of, lattice_of, wide_cells
from sfumato.solver.game.pretrain import laplace_spiral

GRID = Grid(side_m=1000, cells=40)
TRUTH = np.random.default_rng(2).normal((30.0, -70.0), 80.0, (200, 2))


def _frame(cells: int) -> Frame:
    return frame_of(TRUTH, GRID, cells=cells, region_m=None)


def test_the_data_has_mean_0_and_root_mean_square_distance_1() -> None:
    scaled = _frame(1).scale(TRUTH.astype(np.float32))
    assert np.abs(scaled.mean(axis=0)).max() < 1e-5
    assert (scaled**2).sum(axis=1).mean() == pytest.approx(1, abs=1e-4)
    back = _frame(1).metres(scaled)
    np.testing.assert_allclose(back, TRUTH, atol=1e-3)


def test_a_region_is_scaled_to_its_corners() -> None:
    frame = frame_of(TRUTH, GRID, cells=1, region_m=(10.0, 20.0, 500.0))
    corners = np.array([[-490, -480], [510, 520]], np.float32)
    np.testing.assert_allclose(frame.scale(corners), [[-1, -1], [1, 1]], atol=1e-6)


@pytest.mark.parametrize("cells", [1, 3, 7])
def test_snapped_reports_are_those_of_the_lattice_and_middles_of_cells(cells: int) -> None:
    frame = _frame(cells)
    snapped = np.asarray(frame.metres(frame.snap(frame.scale(TRUTH.astype(np.float32)))))
    lattice = lattice_of(TRUTH, GRID, cells=cells)
    np.testing.assert_allclose(snapped, lattice.snap(TRUTH), atol=1e-3)
    np.testing.assert_allclose(snapped, GRID.snap(snapped), atol=1e-3)


def test_the_slope_passes_through_the_snapping() -> None:
    frame = _frame(3)
    point = np.array([[0.3, -0.2]], np.float32)
    slope = jax.grad(lambda at: (3.0 * frame.snap(at)).sum())(point)
    np.testing.assert_allclose(slope, [[3.0, 3.0]], rtol=1e-6)


def test_a_lattice_point_is_shown_anywhere_in_its_cell_and_nowhere_else() -> None:
    frame = _frame(5)
    point = np.zeros((1000, 2), np.float32)
    smear = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    off = np.asarray(frame.show(point, smear)) * float(frame.unit)
    half = 5 * GRID.cell_m / 2
    assert np.abs(off).max() <= half + 1e-3 and np.abs(off).max() > 0.98 * half
    assert np.abs(off.mean(axis=0)).max() < 0.1 * half


def test_a_lattice_is_an_odd_number_of_cells_wide_and_within_its_share() -> None:
    for share in (0.0, 0.2, 0.43, 1.0):
        cells = wide_cells(share, max_loss=173, cell_m=25)
        assert cells % 2 == 1 and (cells == 1 or cells * 25 <= share * 173 + 25)
    assert wide_cells(1.0, max_loss=173, cell_m=25) == 7


def test_the_spiral_has_the_radii_of_planar_laplace_noise_and_no_direction() -> None:
    seed = (np.arange(20_000) + 0.5) / 20_000
    noise = laplace_spiral(seed, mean_loss=100.0, turns=6.0)
    radius = np.hypot(*noise.T)
    assert radius.mean() == pytest.approx(100, rel=1e-3)  # 2 / epsilon
    scaled = radius / 50
    np.testing.assert_allclose(1 - (1 + scaled) * np.exp(-scaled), seed, atol=1e-9)
    assert np.abs(noise.mean(axis=0)).max() < 10
