"""A generator as it would be released: its lattice, its loss, and how often it keeps the truth."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.measure.exact import bayes_error
from sfumato.mechanism.generator import GeneratorNet
from sfumato.nets import Layer, Net
from sfumato.solver.game.candidate import Candidate
from sfumato.solver.game.frame import frame_of, lattice_of

SAMPLES = sf.four_corners(seed=0).test
CELL_M = 50.0
AWAY_M = 600.0  # how far the net below moves every report to the east


def _candidate(
    max_loss: float, *, cells: int = 1, spread: float = 0.0, loss: float = AWAY_M
) -> Candidate:
    """A net of one layer: the truth moved `loss` metres to the east, and by up to `spread` metres
    more as its seed says."""
    problem = sf.Problem(SAMPLES, max_loss=max_loss, cell_m=CELL_M)
    frame = frame_of(SAMPLES.truth, problem.grid, cells=cells, region_m=None)
    unit = float(frame.unit)
    weights = np.array([[1, 0], [0, 1], [spread / unit, 0]], np.float32)
    net = Net((Layer(weights, np.array([loss / unit, 0], np.float32)),))
    return Candidate.of(net, frame, cells=cells, problem=problem, learning=SAMPLES, levels=8)


def test_the_released_net_is_the_learned_one_in_metres() -> None:
    candidate = _candidate(173.0)
    assert isinstance(candidate.net, GeneratorNet) and candidate.net.levels == 8
    reports = candidate.net.sample(SAMPLES.truth, seed=1)
    np.testing.assert_allclose(reports - SAMPLES.truth, [[AWAY_M, 0.0]] * len(SAMPLES), atol=0.01)


@pytest.mark.parametrize("cells", [1, 3])
def test_reports_are_points_of_the_lattice_and_middles_of_the_problems_cells(cells: int) -> None:
    candidate = _candidate(173.0, cells=cells)
    grid = candidate.problem.grid
    reports = candidate.mechanism.sample(SAMPLES.truth, seed=1)
    np.testing.assert_allclose(reports, grid.snap(reports))
    lattice = lattice_of(SAMPLES.truth, grid, cells=cells)
    np.testing.assert_allclose(reports, lattice.snap(reports), atol=1e-6)


def test_the_loss_of_all_seeds_is_that_of_the_law_and_close_to_that_of_a_few() -> None:
    candidate = _candidate(173.0, spread=400.0)
    reports = candidate.mechanism.sample(np.repeat(SAMPLES.truth, 200, axis=0), seed=3)
    off = np.linalg.norm(reports - np.repeat(SAMPLES.truth, 200, axis=0), axis=1).mean()
    # 96,000 reports whose losses spread by about 115 m: a loss off by 2 m (five errors) is seen
    assert candidate.loss() == pytest.approx(off, abs=2.0)
    assert candidate.loss(levels=4) == pytest.approx(candidate.loss(), rel=0.02)
    assert candidate.loss(levels=4) != candidate.loss()


def test_a_net_within_its_budget_keeps_no_truth() -> None:
    candidate = _candidate(AWAY_M + CELL_M)
    assert candidate.calibrated().net.keep == 0.0
    hidden, score = candidate.score(SAMPLES)
    law = candidate.mechanism.law(SAMPLES.joint())
    assert law is not None and hidden == score == bayes_error(law.joint)


@pytest.mark.parametrize("cells", [1, 3])
def test_a_net_over_its_budget_keeps_the_truth_just_as_often_as_needed(cells: int) -> None:
    candidate = _candidate(173.0, cells=cells, spread=300.0)
    assert candidate.loss() > 173.0
    calibrated = candidate.calibrated()
    assert 0 < calibrated.net.keep < 1
    assert calibrated.loss() == pytest.approx(173.0, abs=1e-6) and calibrated.loss() <= 173.0
    less = replace(calibrated, net=replace(calibrated.net, keep=calibrated.net.keep - 1e-3))
    assert less.loss() > 173.0
    # what is left of the Bayes error is what the coin leaves: a kept truth hides nobody
    hidden, score = candidate.score(SAMPLES)
    assert score == pytest.approx(hidden * (1 - calibrated.net.keep), rel=0.02)


def test_a_budget_that_the_lattice_itself_breaks_keeps_every_truth() -> None:
    coarse = _candidate(15.0, cells=3)  # points of its lattice are 150 m apart
    assert coarse.calibrated().net.keep == 1.0
