"""Places that a mechanism was not made for are answered by a measured rule, or refused."""

import json
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.deploy.bundle import export
from sfumato.deploy.one_file import Policy
from sfumato.deploy.protect import protect
from sfumato.deploy.release import accuracy, release
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError, FileError
from sfumato.mechanism.chance import Sticky
from tests.deploy.tables import checkins, write_parquet

KEY = bytes(range(32))


@pytest.fixture
def half_known(runs, tmp_path):
    """80 rows, every other at a place of the channel's list."""
    truths = sf.load_run(runs / "channel").mechanism.truths
    plane = sf.load_run(runs / "channel").record.data.plane
    places = np.repeat(truths, 2, axis=0) + np.tile([[0.0, 0.0], [7.0, 5.0]], (40, 1))
    latitude, longitude = plane.to_degrees(places)
    table = pa.table({"lat": latitude, "lon": longitude, "number": np.arange(80)})
    return write_parquet(tmp_path / "in.parquet", table)


def test_a_run_without_a_rule_refuses_new_places_with_count_and_rows(runs, half_known, tmp_path):
    with pytest.raises(
        DataError, match=r"40 of 80 rows .* \(data rows 2, 4, 6, 8, 10, …\)"
    ) as refused:
        sanitize(runs / "nearest-channel", half_known, tmp_path / "out.parquet")
    assert "new_places" in (refused.value.hint or "")
    assert os.listdir(tmp_path) == ["in.parquet"]
    policy = Policy(new_places="nearest")
    record = sanitize(runs / "nearest-channel", half_known, tmp_path / "o.parquet", policy=policy)
    assert record["rows_out"] == 80


def test_known_places_alone_are_written(runs, half_known, tmp_path):
    table = parquet.read_table(half_known).filter(np.arange(80) % 2 == 0)
    source = write_parquet(tmp_path / "known.parquet", table)
    record = sanitize(runs / "nearest-channel", source, tmp_path / "out.parquet")
    assert record["rows_out"] == 40


def test_a_run_with_a_rule_answers_new_places_unless_told_not_to(runs, half_known, tmp_path):
    assert sanitize(runs / "channel", half_known, tmp_path / "a.parquet")["rows_out"] == 80
    with pytest.raises(DataError, match="40 of 80"):
        sanitize(
            runs / "channel", half_known, tmp_path / "b.parquet", policy=Policy(new_places="refuse")
        )


def test_a_folder_with_new_places_leaves_nothing(runs, tmp_path):
    for part in range(2):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(50, seed=part))
    with pytest.raises(DataError, match="not made for"):
        sanitize(runs / "nearest-channel", tmp_path / "in", tmp_path / "out")
    assert os.listdir(tmp_path) == ["in"]


def test_rows_without_a_place_are_no_new_places(runs, half_known, tmp_path):
    table = parquet.read_table(half_known)
    latitude = [None if row % 2 else value for row, value in enumerate(table["lat"].to_pylist())]
    source = write_parquet(
        tmp_path / "some.parquet", table.set_column(0, "lat", pa.array(latitude, pa.float64()))
    )
    record = sanitize(runs / "nearest-channel", source, tmp_path / "out.parquet")
    assert record["rows_without_place"] == 40


def test_kept_reports_answer_the_middle_of_a_cell_which_is_new(runs):
    """So a run without a rule refuses them, too."""
    loaded = sf.load_run(runs / "nearest-channel")
    made = release(loaded)
    latitude, longitude = made.plane.to_degrees(loaded.mechanism.truths)
    chance = Sticky(KEY, "forever", by_user=False)
    assert protect(made, latitude, longitude).new is None
    found = protect(made, latitude, longitude, chance=chance)
    assert found.new is not None and found.new.all() and np.isnan(found.first).all()
    assert "made for" in accuracy(loaded, made)["accuracy_means"]


def test_a_bundle_of_a_run_without_a_rule_is_refused(runs, tmp_path):
    with pytest.raises(FileError, match="no answer for places") as refused:
        export(runs / "nearest-channel", tmp_path / "dist", reveal_truths=True)
    assert "new_places" in (refused.value.hint or "") and not os.listdir(tmp_path)


def test_the_commands_take_the_option(runs, half_known, typed):
    words = ("sanitize", runs / "nearest-channel", "in.parquet", "out.parquet")
    ended = typed(*words)
    assert ended.returncode == 2 and "--new-places nearest" in ended.stderr
    ended = typed(*words, "--new-places", "nearest", "--json")
    assert ended.returncode == 0 and json.loads(ended.stdout)["rows_out"] == 80
