"""The paper's Gowalla selection, on the real check-ins."""

from pathlib import Path

import numpy as np
import pytest

from paper.gowalla import gowalla_of_the_paper
from sfumato.data.grid import Grid
from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples
from sfumato.data.synthetic import PAPER_REGION
from sfumato.measure.exact import bayes_error

SQUARE = (48.8584, 2.3482, 4500.0)
CELLS = (13, 65, 130, 260)
TOP = {"3003": 430, "39199": 431, "1671": 306, "7570": 207, "39222": 153, "30243": 135}
PAPER = np.array([0.12, 0.06, 0.04, 0.03])  # no noise, training data


@pytest.fixture(scope="module")
def paris(gowalla_paris: Path) -> Samples:
    return read_checkins(gowalla_paris, square=SQUARE)


def test_the_square_holds_about_7600_check_ins(paris: Samples) -> None:
    assert 7550 <= len(paris) <= 7650


def test_the_six_most_frequent_users_are_the_papers(paris: Samples) -> None:
    six = paris.top_users(6)
    assert dict(zip(six.secrets, six.counts.tolist(), strict=True)) == TOP


@pytest.mark.parametrize(("north_m", "east_m"), [(300, 0), (-300, 0), (0, 300), (0, -290)])
def test_the_six_are_the_same_for_a_centre_300_m_off(
    gowalla_paris: Path, north_m: float, east_m: float
) -> None:
    moved = (SQUARE[0] + north_m / 111_200, SQUARE[1] + east_m / 73_200, SQUARE[2])
    assert set(read_checkins(gowalla_paris, square=moved).top_users(6).secrets) == set(TOP)


def _without_noise(six: Samples, weight: float) -> np.ndarray:
    """Mean over 10 draws of the Bayes error of the plain truth, on the paper's four grids."""
    grids = [Grid(side_m=6500, cells=cells) for cells in CELLS]
    drawn = [six.split(82, 20, seed=seed, overlap_weight=weight).train for seed in range(10)]
    return np.mean([[bayes_error(train.on(grid)) for grid in grids] for train in drawn], axis=0)


def test_without_noise_the_thinned_selection_comes_near_the_papers_bayes_errors(
    paris: Samples,
) -> None:
    """Within 0.03 on every grid; plain random choice is more than 0.05 off on every grid."""
    assert np.abs(_without_noise(paris.top_users(6), 0.15) - PAPER).max() < 0.03
    assert np.abs(_without_noise(paris.top_users(6), 1.0) - PAPER).min() > 0.05


def test_plain_random_choice_gives_the_bayes_errors_noted_with_the_data(paris: Samples) -> None:
    assert _without_noise(paris.top_users(6), 1.0) == pytest.approx(
        [0.31, 0.15, 0.10, 0.09], abs=0.025
    )


def test_a_draw_has_82_and_20_check_ins_of_each_user(paris: Samples, gowalla_paris: Path) -> None:
    split = gowalla_of_the_paper(gowalla_paris)
    assert split.test is not None
    assert split.train.hash == paris.top_users(6).split(82, 20, overlap_weight=0.15).train.hash
    assert split.train.region == split.test.region == PAPER_REGION
    assert split.train.counts.tolist() == [82] * 6 and split.test.counts.tolist() == [20] * 6


def test_the_stockholm_table_is_read_with_its_header(gowalla_stockholm: Path) -> None:
    samples = read_checkins(gowalla_stockholm)
    assert len(samples) == 18_177 and len(samples.secrets) == 350
    assert np.ptp(samples.truth, axis=0).max() < 6600
