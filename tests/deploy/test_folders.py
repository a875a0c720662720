"""Folders of parts: all or nothing, gone on with only as they were begun, and what is skipped is
said."""

import json
import os
import shutil
from pathlib import Path

import pytest

from sfumato.deploy.sanitize import one_by_one, sanitize
from sfumato.errors import DataError, FileError
from tests.deploy.tables import checkins, write_parquet


def test_a_folder_keeps_its_parts_and_other_settings_do_not_go_on_with_it(runs, tmp_path):
    for part in range(3):
        write_parquet(tmp_path / "in" / f"day={part}" / "part.parquet", checkins(100, seed=part))
    record = sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert record["rows_out"] == 300 and len(record["parts"]) == 3
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "out.record.json"]
    assert (
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")["job"] == record["job"]
    )  # done already: nothing is drawn again
    with pytest.raises(FileError, match="exists"):
        sanitize(runs / "coin", tmp_path / "in", tmp_path / "out")


def _made_for(run: Path, change: str) -> None:
    """Change what a run's reports are made with, and leave its mechanism file."""
    record = json.loads((run / "run.json").read_text())
    if change == "grid":
        record["grid"]["cell_m"] = 25.0
    elif change == "plane":
        record["data"]["plane"]["latitude"] += 0.001
    else:
        record["region"]["side_m"] += 100
    (run / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize("change", ["grid", "plane", "region"])
def test_a_stopped_job_does_not_go_on_with_another_grid_plane_or_region(runs, tmp_path, change):
    for part in range(2):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(100, seed=part))
    shutil.copytree(runs / "bare-laplace", tmp_path / "run")

    def stopped(release, chance, policy, tasks, progress):
        yield from one_by_one(release, chance, policy, tasks[:1], progress)
        raise FileError("the disk is full")

    with pytest.raises(FileError, match="full"):
        sanitize(tmp_path / "run", tmp_path / "in", tmp_path / "out", runner=stopped)
    _made_for(tmp_path / "run", change)
    with pytest.raises(FileError, match="stopped job with other settings"):
        sanitize(tmp_path / "run", tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_of_a_folder_that_are_skipped_are_in_the_record(runs, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20))
    write_parquet(tmp_path / "in" / "_log" / "d.parquet", checkins(20))
    for name in ("_b.csv", "c.json", ".hidden"):
        (tmp_path / "in" / name).write_text("lat,lon\n1,2\n")
    record = sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert list(record["parts"]) == ["a.parquet"]
    assert record["skipped_files"] == [".hidden", "_b.csv", "_log/d.parquet", "c.json"]
    (tmp_path / "in" / "a.parquet").unlink()
    with pytest.raises(DataError, match="no CSV or Parquet") as refused:
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "other")
    assert refused.value.hint is not None and "skipped" in refused.value.hint


def test_a_refused_part_leaves_nothing_behind(runs, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(100))
    (tmp_path / "in" / "b.csv").write_text("lat,lon\n10,10\n")
    with pytest.raises(DataError, match=r"b\.csv"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["in"]
