"""What every mechanism of the registry promises."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from registry import FIXED, GRID, MECHANISMS, SAMPLES, TRUTHS, UNSAVABLE
from scipy import stats

from sfumato.data.joint import Joint
from sfumato.errors import FileError, MechanismError
from sfumato.measure.estimate import count_hits
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.mechanism.law import Law, euclidean

MANY = np.tile(TRUTHS, (50, 1))


@pytest.fixture(params=MECHANISMS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mechanism(name: str) -> Mechanism:
    return MECHANISMS[name]()


# Shapes and chance -----------------------------------------------------------------------------------


def test_one_point_gives_one_report_and_many_give_many(mechanism: Mechanism) -> None:
    assert mechanism.sample(TRUTHS[0]).shape == mechanism.sample([0.0, 0.0], seed=1).shape == (2,)
    assert mechanism.sample(TRUTHS).shape == mechanism.sample(TRUTHS.tolist(), seed=1).shape == (4, 2)
    assert mechanism.sample(TRUTHS[:1]).shape == (1, 2)
    assert np.isfinite(mechanism.sample(MANY)).all()


def test_no_points_give_no_reports(mechanism: Mechanism) -> None:
    assert mechanism.sample(np.empty((0, 2))).shape == mechanism.sample(np.empty((0, 2)), seed=1).shape == (0, 2)


def test_the_same_seed_gives_the_same_reports_and_another_seed_others(name: str, mechanism: Mechanism) -> None:
    assert np.array_equal(mechanism.sample(MANY, seed=7), mechanism.sample(MANY, seed=7))
    assert np.array_equal(mechanism.sample(MANY, seed=7), mechanism.sample(MANY, seed=8)) == (name in FIXED)


def test_one_point_and_a_list_of_one_give_the_same_report(mechanism: Mechanism) -> None:
    assert np.array_equal(mechanism.sample(TRUTHS[1], seed=3), mechanism.sample(TRUTHS[1:2], seed=3)[0])


def test_without_a_seed_no_two_calls_are_alike(name: str, mechanism: Mechanism) -> None:
    """Two calls on 200 points agree by chance with less than 0.86^100: the likeliest repeat is 0.7^2 + 0.3^2 per random point."""
    assert np.array_equal(mechanism.sample(MANY), mechanism.sample(MANY)) == (name in FIXED)


def test_without_a_seed_chance_is_the_operating_systems_and_with_one_it_is_not(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(size: int) -> bytes:
        asked.append(size)
        return secure(size)

    secure = os.urandom
    monkeypatch.setattr(os, "urandom", counted)
    mechanism.sample(TRUTHS)
    assert sum(asked) == 8 * mechanism.draws * len(TRUTHS)
    asked.clear()
    mechanism.sample(TRUTHS, seed=7)
    assert not asked


def test_reports_are_a_function_of_the_truth_and_the_chance_alone(mechanism: Mechanism) -> None:
    chance = np.random.default_rng(0).random((len(MANY), mechanism.draws))
    assert np.array_equal(mechanism.report(MANY, chance), mechanism.report(MANY, chance))


def test_a_truth_is_not_written_to(mechanism: Mechanism) -> None:
    truth = TRUTHS.copy()
    reports = mechanism.sample(truth, seed=1)
    reports += 1
    assert np.array_equal(truth, TRUTHS)
    assert np.array_equal(mechanism.sample(truth, seed=1), reports - 1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_truth_that_is_not_finite_is_refused(mechanism: Mechanism, bad: float) -> None:
    for truth in ([bad, 0.0], [[0.0, 0.0], [0.0, bad]]):
        with pytest.raises(MechanismError, match="two finite numbers of metres; got NaN or infinity"):
            mechanism.sample(truth)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 2), ()])
def test_a_truth_of_another_shape_is_refused(mechanism: Mechanism, shape: tuple[int, ...]) -> None:
    with pytest.raises(MechanismError, match="a truth is two coordinates in metres, or n rows of two"):
        mechanism.sample(np.zeros(shape))


# Files -----------------------------------------------------------------------------------------------


def _law(mechanism: Mechanism, joint: Joint) -> Law | None:
    """On the mechanism's own reports, else on the cells of the grid."""
    return mechanism.law(joint) or mechanism.law(joint, grid=GRID)


def test_a_saved_mechanism_comes_back_with_the_same_reports_and_the_same_law(name: str, mechanism: Mechanism, tmp_path: Path) -> None:
    if name in UNSAVABLE:
        with pytest.raises(MechanismError, match="cannot be saved"):
            mechanism.save(tmp_path / "mechanism.npz")
        assert not list(tmp_path.iterdir())
        return
    mechanism.save(tmp_path / "mechanism.npz")
    back = load_mechanism(tmp_path / "mechanism.npz")
    assert type(back) is type(mechanism)
    assert np.array_equal(back.sample(MANY, seed=7), mechanism.sample(MANY, seed=7))
    before, after = _law(mechanism, SAMPLES.joint()), _law(back, SAMPLES.joint())
    if before is None:
        assert after is None
        return
    assert after is not None and after.loss == before.loss and after.cell_m == before.cell_m
    assert np.array_equal(after.joint.table, before.joint.table)
    assert np.array_equal(after.joint.places, before.joint.places)  # type: ignore[arg-type]


def test_nothing_in_a_mechanism_file_is_pickled(name: str, mechanism: Mechanism, tmp_path: Path) -> None:
    if name in UNSAVABLE:
        return
    mechanism.save(tmp_path / "mechanism.npz")
    with zipfile.ZipFile(tmp_path / "mechanism.npz") as archive:
        for part in archive.namelist():
            with archive.open(part) as stored:
                assert np.lib.format.read_array(stored, allow_pickle=False).dtype != object


def test_a_truncated_file_is_refused(name: str, mechanism: Mechanism, tmp_path: Path) -> None:
    if name in UNSAVABLE:
        return
    path = tmp_path / "mechanism.npz"
    mechanism.save(path)
    whole = path.read_bytes()
    for size in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FileError, match="is not a whole mechanism file"):
            load_mechanism(path)


def test_a_file_with_a_part_left_out_or_bent_is_refused(name: str, mechanism: Mechanism, tmp_path: Path) -> None:
    if name in UNSAVABLE:
        return
    path = tmp_path / "mechanism.npz"
    mechanism.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    for left_out in [part for part in arrays if part not in ("format", "kind")]:
        with path.open("wb") as target:
            np.savez(target, **{part: array for part, array in arrays.items() if part != left_out})
        with pytest.raises(FileError):
            load_mechanism(path)
        with path.open("wb") as target:
            np.savez(target, **{**arrays, left_out: np.array(["bent", "twice"])})
        with pytest.raises((FileError, MechanismError)):
            load_mechanism(path)


def _foreign_npz(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, weights=np.zeros(3))


def _other_version(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, format=np.array("sfumato mechanism 99"), kind=np.array("identity"))


def _unknown_kind(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, format=np.array("sfumato mechanism 1"), kind=np.array("crystal ball"))


def _pickled(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, format=np.array([{"a": 1}], dtype=object), kind=np.array("identity"))


FOREIGN = {
    "text": (lambda path: path.write_text("not a mechanism"), "is not a whole mechanism file"),
    "array": (lambda path: np.lib.format.write_array(path.open("wb"), np.zeros(3)), "is not a whole mechanism file"),
    "archive": (_foreign_npz, "is not a mechanism file of this version"),
    "version": (_other_version, "expected 'sfumato mechanism 1'"),
    "kind": (_unknown_kind, "kind 'crystal ball', which this version does not know"),
    "pickle": (_pickled, "is not a whole mechanism file"),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("written", "words"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_file_is_refused(written, words: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    written(tmp_path / "mechanism.npz")
    with pytest.raises(FileError, match=words):
        load_mechanism(tmp_path / "mechanism.npz")


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no mechanism file"):
        load_mechanism(tmp_path / "none.npz")


# The law ---------------------------------------------------------------------------------------------

HITS = 16_000  # reports a check-in, 80,000 in all


def test_the_law_is_what_sampling_gives(name: str, mechanism: Mechanism) -> None:
    """Chi-square over P(secret, report) with a false alarm of one in a million.

    A law d off in total variation has a noncentrality of at least 4 d^2 n; with n = 80,000, at most
    1000 cells and d = 0.04 that is 512, caught 999 times in 1000.
    """
    law = _law(mechanism, SAMPLES.joint())
    if law is None:
        return
    assert law.joint.places is not None
    secret = np.repeat(SAMPLES.secret, HITS)
    reports = mechanism.sample(np.repeat(SAMPLES.truth, HITS, axis=0), seed=11)
    if name == "planar laplace":
        reports = GRID.snap(reports)
    places, column = np.unique(np.vstack([law.joint.places, reports]).round(6), axis=0, return_inverse=True)
    column = column.ravel()
    expected = np.zeros((3, len(places)))
    np.add.at(expected.T, column[: len(law.joint.places)], law.joint.table.T * len(reports))
    seen = np.zeros_like(expected)
    np.add.at(seen, (secret, column[len(law.joint.places) :]), 1)
    common = expected >= 8
    assert common.sum() <= 1000
    rest = expected[~common].sum(), seen[~common].sum()
    statistic = np.sum((seen[common] - expected[common]) ** 2 / expected[common])
    if rest[0] >= 8:
        statistic += (rest[1] - rest[0]) ** 2 / rest[0]
    else:
        assert rest[1] <= stats.poisson.isf(1e-6, rest[0]) if rest[0] > 1e-6 else rest[1] == 0
    assert statistic <= stats.chi2.isf(1e-6, common.sum())


def test_the_laws_loss_is_the_sampled_loss(mechanism: Mechanism) -> None:
    """Within 5 standard errors, of each secret and over all: at most 0.5 m where the law's loss is up to 100 m.

    Losing the snap, the clamp or a factor in epsilon moves the loss of some entry by metres.
    """
    law = _law(mechanism, SAMPLES.joint())
    if law is None:
        return
    truth = np.repeat(SAMPLES.truth, HITS, axis=0)
    cost = euclidean(truth, mechanism.sample(truth, seed=12))
    assert law.loss == pytest.approx(cost.mean(), abs=5 * cost.std() / len(cost) ** 0.5 + 1e-3)
    for number, expected in enumerate(law.loss_of):
        own = cost[np.repeat(SAMPLES.secret, HITS) == number]
        assert expected == pytest.approx(own.mean(), abs=5 * own.std() / len(own) ** 0.5 + 1e-3)


def test_a_law_is_a_distribution_that_keeps_the_prior(mechanism: Mechanism) -> None:
    law = _law(mechanism, SAMPLES.joint())
    if law is not None:
        assert law.joint.prior == pytest.approx(SAMPLES.joint().prior, abs=1e-9)
        assert law.joint.secrets == SAMPLES.secrets
        assert law.joint.prior @ law.loss_of == pytest.approx(law.loss, abs=1e-9)


def test_a_law_on_a_grid_is_the_law_merged_into_its_cells(name: str, mechanism: Mechanism) -> None:
    law = mechanism.law(SAMPLES.joint())
    if law is None:
        return
    wide = GRID.__class__(cell_m=75.0, centre=(5.0, 5.0))
    merged = mechanism.law(SAMPLES.joint(), grid=wide)
    assert merged is not None and merged.cell_m == 75 and merged.loss == law.loss
    assert law.joint.places is not None and merged.joint.places is not None
    for cell, column in zip(merged.joint.places, merged.joint.table.T, strict=True):
        inside = np.all(wide.snap(law.joint.places) == cell, axis=1)
        assert law.joint.table[:, inside].sum(axis=1) == pytest.approx(column, abs=1e-12)


def test_a_law_needs_places(mechanism: Mechanism) -> None:
    with pytest.raises((MechanismError, AssertionError)):
        mechanism.law(Joint.uniform(secrets=2, places=2), grid=GRID)


def test_hits_and_law_agree_on_who_is_where_for_the_truth_itself() -> None:
    law = MECHANISMS["identity"]().law(SAMPLES.joint(), grid=GRID)
    assert law is not None
    counts = count_hits(SAMPLES.secret, SAMPLES.truth, GRID, secrets=3)
    assert np.array_equal(law.joint.places, counts.places)  # type: ignore[arg-type]
    assert law.joint.table == pytest.approx(counts.joint().table)


def test_a_saved_mechanism_is_known_to_a_process_that_has_imported_nothing_else(tmp_path):
    MECHANISMS["recorded"]().save(tmp_path / "mechanism.npz")
    code = "import sys; from sfumato.mechanism.base import load_mechanism; print(load_mechanism(sys.argv[1]).kind)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "mechanism.npz")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "recorded"
