"""The rules of phones and browsers: laws that fit their draws, cells that fit the Earth, and no
more hidden than the proven best at the same loss."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import MechanismError, ProblemError
from sfumato.mechanism.approximate import METRES_PER_DEGREE, DegreeSnap
from sfumato.solver.approximate import Android, Snap, WebKit

PARIS = (48.8584, 2.3482)
TRUTHS = np.random.default_rng(3).uniform(-4000, 4000, (12, 2))


def test_the_law_is_that_of_the_draws():
    """Of 40,000 draws a chance of 0.3 that were 0.32 would be nine standard deviations off."""
    snap = DegreeSnap(*PARIS, cell_m=2000.0, deviation_m=500.0)
    for truth in TRUTHS[:3]:
        rows = snap.rows(truth[None, :]).distinct()
        chances = np.asarray(rows.matrix.todense()).ravel()
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        drawn = snap.sample(np.repeat(truth[None, :], 40_000, axis=0), seed=1)
        for place, chance in zip(rows.places, chances, strict=True):
            seen = np.mean(np.hypot(*(drawn - place).T) < 1.0)
            assert seen == pytest.approx(chance, abs=0.012)


def test_reports_lie_on_whole_cells_of_degrees():
    """A row is 2000/111000 of a degree high, and a cell as wide as its own row's latitude asks."""
    plane = sf.Plane(*PARIS)
    latitude, longitude = plane.to_degrees(DegreeSnap(*PARIS, cell_m=5000.0).sample(TRUTHS))
    height = 5000.0 / METRES_PER_DEGREE
    np.testing.assert_allclose(latitude / height, np.round(latitude / height), atol=1e-6)
    width = height / np.cos(np.radians(latitude))
    np.testing.assert_allclose(longitude / width, np.round(longitude / width), atol=1e-6)


def test_no_report_is_further_than_half_a_cell_without_an_offset():
    reports = DegreeSnap(*PARIS, cell_m=5000.0).sample(TRUTHS)
    assert np.abs(reports - TRUTHS).max() < 2600 and len(np.unique(reports.round(), axis=0)) < 9


def test_the_drift_keeps_the_deviation_and_lasts_weeks():
    """Of 600 phones: the deviation of 1,200 offsets is known to 2 % (0.1 would be 5 of that), and a
    week's correlation of 0.927 to 0.004."""
    fine = DegreeSnap(*PARIS, cell_m=1.0, deviation_m=500.0)
    times = np.array([0.0, 3599.0, 7 * 86_400.0])
    phones = np.stack([fine.along(np.zeros((3, 2)), times, seed=phone) for phone in range(600)])
    np.testing.assert_array_equal(phones[:, 0], phones[:, 1])  # within an hour
    first, last = phones[:, 0].ravel(), phones[:, 2].ravel()
    assert first.std() == pytest.approx(500, rel=0.1) and last.std() == pytest.approx(500, rel=0.1)
    assert np.corrcoef(first, last)[0, 1] == pytest.approx(0.927, abs=0.02)


def test_reports_along_a_way_need_times_in_order():
    snap = DegreeSnap(*PARIS, cell_m=2000.0)
    assert snap.along(TRUTHS, np.arange(12)).tolist() == snap.sample(TRUTHS).tolist()  # no offset
    for times in (np.arange(11), np.arange(12)[::-1], np.full(12, np.nan)):
        with pytest.raises(MechanismError, match="one time for each truth"):
            snap.along(TRUTHS, times)


def _judged(solver):
    data = sf.four_corners(seed=0).test
    return sf.judge(sf.solve(sf.Problem(data, max_loss=3000), solver).mechanism, data)


def test_a_wider_snap_that_holds_the_narrower_hides_no_less():
    errors = [_judged(Snap(side)).bayes_error.value for side in (50.0, 100.0, 200.0, 800.0)]
    assert errors == sorted(errors) and errors[0] < 0.1


@pytest.mark.parametrize("solver", [Snap(1000.0), Android(), WebKit()])
def test_the_law_is_known_and_hides_no_more_than_a_blind_guess(solver):
    judged = _judged(solver)
    assert judged.bayes_error.kind == "exact" and 0 <= judged.bayes_error.value <= 0.75 + 1e-12
    assert judged.loss.value > 100


def test_a_run_is_saved_and_read_again(tmp_path):
    data = sf.four_corners(seed=0).test
    solution = sf.solve(sf.Problem(data, max_loss=2000), Android())
    solution.save(tmp_path / "run")
    read = sf.load_run(tmp_path / "run").mechanism
    np.testing.assert_array_equal(
        read.sample(TRUTHS, seed=4), solution.mechanism.sample(TRUTHS, seed=4)
    )


def test_bad_settings_are_refused():
    for bad in ({"cell_m": 0.0}, {"cell_m": float("nan")}, {"cell_m": 9.0, "deviation_m": -1.0}):
        with pytest.raises(MechanismError):
            DegreeSnap(*PARIS, **bad)
    metres = sf.Samples(secret=[0, 1], truth=[[0, 0], [9, 9]], secrets=("a", "b"))
    with pytest.raises(ProblemError, match="needs latitudes"):
        sf.solve(sf.Problem(metres, max_loss=100), Android())
