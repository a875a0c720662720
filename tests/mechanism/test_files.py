"""Mechanisms come back from their files as they were; what is no whole file of ours is refused."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import FileError, MechanismError, SfumatoError
from sfumato.mechanism.approximate import DegreeSnap
from sfumato.mechanism.base import Mechanism, load_mechanism
from tests.mechanism.registry import MECHANISMS, SAMPLES, TRUTHS, UNSAVABLE, law_of

MANY = np.tile(TRUTHS, (50, 1))


def test_a_saved_mechanism_comes_back_with_the_same_reports_and_the_same_law(
    name: str, mechanism: Mechanism, tmp_path: Path
) -> None:
    if name in UNSAVABLE:
        with pytest.raises(MechanismError, match="cannot be saved"):
            mechanism.save(tmp_path / "mechanism.npz")
        assert not list(tmp_path.iterdir())
        return
    mechanism.save(tmp_path / "mechanism.npz")
    back = load_mechanism(tmp_path / "mechanism.npz")
    assert type(back) is type(mechanism)
    assert np.array_equal(back.sample(MANY, seed=7), mechanism.sample(MANY, seed=7))
    before, after = law_of(mechanism, SAMPLES.joint()), law_of(back, SAMPLES.joint())
    if before is None:
        assert after is None
        return
    assert after is not None and after.loss == before.loss and after.cell_m == before.cell_m
    assert np.array_equal(after.joint.table, before.joint.table)
    assert np.array_equal(after.joint.places, before.joint.places)  # type: ignore[arg-type]


def test_nothing_in_a_mechanism_file_is_pickled(
    name: str, mechanism: Mechanism, tmp_path: Path
) -> None:
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


def test_a_file_with_a_part_left_out_or_bent_is_refused(
    name: str, mechanism: Mechanism, tmp_path: Path
) -> None:
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
        np.savez(target, format=np.array("sfumato mechanism 1"), kind=np.array("identity"))


def _unknown_kind(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, format=np.array("sfumato mechanism 2"), kind=np.array("crystal ball"))


def _pickled(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, format=np.array([{"a": 1}], dtype=object), kind=np.array("identity"))


def _kind_of_numbers(path: Path) -> None:
    with path.open("wb") as target:
        np.savez(target, format=np.array("sfumato mechanism 2"), kind=np.eye(9))


def _least_cell(path: Path) -> None:
    snap = DegreeSnap(48.86, 2.35, cell_m=200.0, deviation_m=50.0)
    snap.save(path)
    with np.load(path) as stored:
        arrays = {**stored, "cell": np.array(5e-324)}
    with path.open("wb") as target:
        np.savez(target, **arrays)


FOREIGN = {
    "text": (lambda path: path.write_text("not a mechanism"), "is not a whole mechanism file"),
    "array": (
        lambda path: np.lib.format.write_array(path.open("wb"), np.zeros(3)),
        "is not a whole mechanism file",
    ),
    "archive": (_foreign_npz, "is not a mechanism file of this version"),
    "version": (_other_version, "expected 'sfumato mechanism 2'"),
    "kind": (_unknown_kind, "kind 'crystal ball', which this version does not know"),
    "numbers": (_kind_of_numbers, "which this version does not know$"),
    "cell": (_least_cell, "a cell must be above 0 metres"),
    "pickle": (_pickled, "is not a whole mechanism file"),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("written", "words"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_file_is_refused(written, words: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    written(tmp_path / "mechanism.npz")
    with pytest.raises(SfumatoError, match=words) as refused:
        load_mechanism(tmp_path / "mechanism.npz")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "grid", [[0.0, 1.0, 1.0, 100.0], [25.0, 1.0, 1.0, np.inf], [25.0, 1.0], [-25.0, 0.0, 0.0]]
)
def test_numbers_that_make_no_grid_are_refused(grid: list[float], tmp_path: Path) -> None:
    MECHANISMS["snapped coin"]().save(tmp_path / "mechanism.npz")
    with np.load(tmp_path / "mechanism.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "mechanism.npz", **{**arrays, "grid": np.array(grid)})
    with pytest.raises(SfumatoError):
        load_mechanism(tmp_path / "mechanism.npz")


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no mechanism file"):
        load_mechanism(tmp_path / "none.npz")


def test_a_saved_mechanism_is_known_to_a_process_that_has_imported_nothing_else(tmp_path):
    MECHANISMS["recorded"]().save(tmp_path / "mechanism.npz")
    code = (
        "import sys; from sfumato.mechanism.base import load_mechanism;"
        " print(load_mechanism(sys.argv[1]).kind)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "mechanism.npz")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "recorded"
