"""A record says what was written, or is refused."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.errors import FileError
from sfumato.study.record import RunRecord
from tests.solver.three_users import three_users


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The record of a coin with every kind of field set, and its bytes."""
    folder = tmp_path_factory.mktemp("record") / "run"
    problem = sf.Problem(three_users(), max_loss=60, max_distance=500, cell_m=20)
    solution = sf.solve(problem, sf.Exact(gap=0.05), seed=3)
    solution.save(folder, recipe=Recipe("three.csv", users=("a", "b")), test=solution.measured)
    return folder, (folder / "run.json").read_bytes()


def test_a_record_is_read_as_it_was_written(written):
    folder, _ = written
    record = RunRecord.read(folder / "run.json")
    record.write(folder.parent / "again.json")
    assert RunRecord.read(folder.parent / "again.json") == record
    assert (folder.parent / "again.json").read_bytes() == (folder / "run.json").read_bytes()
    assert record.seed == 3 and record.max_distance == 500 and record.test == record.train


def test_no_flipped_bit_changes_what_is_read(written, tmp_path):
    folder, whole = written
    right = RunRecord.read(folder / "run.json")
    for at in np.random.default_rng(0).choice(8 * len(whole), 1500, replace=False):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << (at % 8)
        (tmp_path / "run.json").write_bytes(bytes(flipped))
        with suppress(FileError):
            assert RunRecord.read(tmp_path / "run.json") == right, at


@pytest.mark.parametrize("field, value", [("max_loss", 600.0), ("seed", 4), ("status", "Best.")])
def test_an_edited_record_is_refused(written, tmp_path, field, value):
    document = {**json.loads(written[1]), field: value}
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="changed after it was written"):
        RunRecord.read(tmp_path / "run.json")


@pytest.mark.parametrize("kept", ["checksum", None])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_that_is_not_finite_is_refused(written, tmp_path, value, kept):
    document = {**json.loads(written[1]), "max_loss": value}
    if kept is None:
        del document["checksum"]
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="not finite"):
        RunRecord.read(tmp_path / "run.json")


@pytest.mark.parametrize("warnings", ["Over.", {"Over.": 1}, [1], None])
def test_warnings_that_are_no_list_of_texts_are_refused(written, tmp_path, warnings):
    document = {**json.loads(written[1]), "warnings": warnings}
    del document["checksum"]
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="is damaged"):
        RunRecord.read(tmp_path / "run.json")


@pytest.mark.parametrize(
    "where, value",
    [
        (("user_max_loss",), 2),
        (("user_max_loss",), {"a": -1.0}),
        (("max_distance",), 0),
        (("max_distance",), "far"),
        (("train",), -91),
        (("settings",), "x"),
        (("region", "centre"), []),
        (("region", "centre"), {}),
        (("region", "centre"), [0.0]),
    ],
)
def test_a_field_of_another_kind_is_refused(written, tmp_path, where, value):
    document = json.loads(written[1])
    del document["checksum"]
    *above, last = where
    inner = document
    for name in above:
        inner = inner[name]
    inner[last] = value
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="is damaged"):
        RunRecord.read(tmp_path / "run.json")


def test_a_record_without_a_checksum_is_read_unless_it_holds_what_none_ever_held(written, tmp_path):
    document = json.loads(written[1])
    del document["checksum"], document["user_max_loss"], document["min_bayes_error"]
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert RunRecord.read(tmp_path / "run.json") == replace(
        RunRecord.read(written[0] / "run.json"), user_max_loss=None, min_bayes_error=None
    )
    (tmp_path / "run.json").write_text(json.dumps({**document, "checksun": "x"}))
    with pytest.raises(FileError, match="unknown 'checksun'"):
        RunRecord.read(tmp_path / "run.json")
