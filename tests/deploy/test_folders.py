"""Folders of parts: all or nothing, resumed only as they were begun, and nothing is left out
without a word."""

import json
import os
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet

from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import one_by_one, sanitize
from sfumato.errors import DataError, FileError
from sfumato.files import file_hash
from sfumato.mechanism.chance import Sticky
from tests.deploy.tables import checkins, write_parquet


def test_a_folder_keeps_its_parts_and_other_settings_do_not_resume_it(runs, tmp_path):
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


def test_a_finished_folder_is_done_only_as_its_job_left_it(runs, tmp_path):
    for part in range(2):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(100, seed=part))
    words = (runs / "laplace", tmp_path / "in", tmp_path / "out")
    record = sanitize(*words)
    hashes = {name: part["hash"] for name, part in record["parts"].items()}
    assert hashes == {name: file_hash(tmp_path / "out" / name) for name in hashes}
    assert sanitize(*words) == record
    one, whole = tmp_path / "out" / "1.parquet", (tmp_path / "out" / "1.parquet").read_bytes()
    for change in (lambda: one.write_bytes(whole[:-1]), one.unlink):
        change()
        with pytest.raises(FileError, match=r"1.parquet in it is not as it was written"):
            sanitize(*words)
    one.write_bytes(whole)
    shutil.copy(one, tmp_path / "out" / "2.parquet")
    with pytest.raises(FileError, match=r"2.parquet in it is not as it was written"):
        sanitize(*words)
    for parts in ([1], {"1.parquet": 3}):
        (tmp_path / "out.record.json").write_text(json.dumps({**record, "parts": parts}))
        with pytest.raises(FileError, match="does not list its parts"):
            sanitize(*words)


def test_the_record_does_not_let_a_guess_of_the_places_be_tried_cheaply(runs, tmp_path):
    """What names the job is another each time, and no plain hash of the settings and the parts."""
    write_parquet(tmp_path / "in" / "0.parquet", checkins(1))
    jobs = [sanitize(runs / "laplace", tmp_path / "in", tmp_path / f"{n}")["job"] for n in (0, 1)]
    assert jobs[0] != jobs[1] and all(len(job) == 32 + 1 + 128 for job in jobs)


def test_a_resumed_folder_says_how_many_parts_are_done_and_looks_at_them(runs, tmp_path):
    for part in range(3):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(100, seed=part))
    words, said, rows = (runs / "laplace", tmp_path / "in", tmp_path / "out"), [], []
    with pytest.raises(FileError, match="full"):
        sanitize(*words, runner=_after_one_part)
    done = tmp_path / ".out.sfumato-job" / "parts" / "0.parquet"
    whole = done.read_bytes()
    done.write_bytes(whole[:-1])
    with pytest.raises(FileError, match="stopped job with other"):
        sanitize(*words)
    done.write_bytes(whole)
    sanitize(*words, resumed=lambda *counts: said.append(counts), progress=rows.append)
    assert sum(rows) == 200  # those of this time: their speed is shown
    assert said == [(1, 3)] and (tmp_path / "out" / "0.parquet").read_bytes() == whole


def _made_for(run: Path, change: str) -> None:
    """Change what a run's reports are made with, and leave its mechanism file."""
    record = json.loads((run / "run.json").read_text())
    del record["checksum"]
    if change == "grid":
        record["grid"]["cell_m"] = 25.0
    elif change == "plane":
        record["data"]["plane"]["latitude"] += 0.001
    else:
        record["region"]["side_m"] += 100
    (run / "run.json").write_text(json.dumps(record))


def _after_one_part(protection, tasks, progress):
    """A runner whose disk fills up after a part."""
    yield from one_by_one(protection, tasks[:1], progress)
    raise FileError("the disk is full")


@pytest.mark.parametrize("change", ["grid", "plane", "region"])
def test_a_stopped_job_is_not_resumed_with_another_grid_plane_or_region(runs, tmp_path, change):
    for part in range(2):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(100, seed=part))
    shutil.copytree(runs / "bare-laplace", tmp_path / "run")

    with pytest.raises(FileError, match="full"):
        sanitize(tmp_path / "run", tmp_path / "in", tmp_path / "out", runner=_after_one_part)
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


def test_a_part_that_changed_is_noticed_by_its_content(runs, tmp_path):
    """Size and time of change are as they were."""
    for part in range(2):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{part}.csv").write_text(f"lat,lon\n48.85{part},2.34\n")
    with pytest.raises(FileError, match="full"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out", runner=_after_one_part)
    first = tmp_path / "in" / "0.csv"
    before = first.stat()
    first.write_text("lat,lon\n48.860,2.35\n")
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert first.stat().st_size == before.st_size
    with pytest.raises(FileError, match="other data"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    first.write_text("lat,lon\n48.850,2.34\n")  # as it was, at another time: the same job
    drawn = (tmp_path / ".out.sfumato-job" / "parts" / "0.csv").read_bytes()
    sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out" / "0.csv").read_bytes() == drawn
    first.write_text("lat,lon\n48.86,2.35\n")
    with pytest.raises(FileError, match="exists"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")


def test_a_stopped_job_without_a_finished_part_is_in_nobodys_way(runs, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20))
    (tmp_path / ".out.sfumato-job" / "done").mkdir(parents=True)
    (tmp_path / ".out.sfumato-job" / "job.json").write_text('{"job": "of other settings"}')
    sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "out.record.json"]


def test_what_is_left_of_a_job_killed_as_it_cleared_up_is_in_nobodys_way(runs, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20))
    (tmp_path / ".out.sfumato-job" / "done").mkdir(parents=True)
    (tmp_path / ".out.sfumato-job" / "done" / "0badcafe.json").write_text("{}")
    sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "out.record.json"]


def test_a_stopped_job_with_other_parts_is_kept(runs, tmp_path):
    for part in range(2):
        write_parquet(tmp_path / "in" / f"{part}.parquet", checkins(20, seed=part))
    with pytest.raises(FileError, match="full"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out", runner=_after_one_part)
    write_parquet(tmp_path / "other" / "a.parquet", checkins(20))
    with pytest.raises(FileError, match="other settings or other data"):
        sanitize(runs / "laplace", tmp_path / "other", tmp_path / "out")
    assert (tmp_path / ".out.sfumato-job" / "parts" / "0.parquet").exists()


def test_a_linked_folder_is_refused_and_a_linked_file_followed(runs, tmp_path):
    write_parquet(tmp_path / "elsewhere" / "day" / "b.parquet", checkins(20))
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20, seed=1))
    (tmp_path / "in" / "c.parquet").symlink_to(tmp_path / "elsewhere" / "day" / "b.parquet")
    (tmp_path / "in" / "_later").symlink_to(tmp_path / "elsewhere")
    record = sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert list(record["parts"]) == ["a.parquet", "c.parquet"] and record["rows_out"] == 40
    assert record["skipped_files"] == ["_later"]
    (tmp_path / "in" / "day").symlink_to(tmp_path / "elsewhere" / "day")
    with pytest.raises(DataError, match="day is a link to a folder"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def _broken_link(path: Path) -> None:
    path.symlink_to("nowhere.parquet")


@pytest.mark.parametrize("make", [_broken_link, os.mkfifo])
def test_a_part_that_is_no_file_is_refused(runs, tmp_path, make):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20))
    make(tmp_path / "in" / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet is a broken link, pipe or device"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_under_two_names_is_not_drawn_twice(runs, tmp_path, link):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20))
    link(tmp_path / "in" / "a.parquet", tmp_path / "in" / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet is the same file as a\.parquet"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")


def test_a_folder_that_cannot_be_looked_into_is_refused(runs, tmp_path, monkeypatch):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(20))
    write_parquet(tmp_path / "in" / "day" / "b.parquet", checkins(20))
    whole = os.scandir

    def closed(path):
        if Path(path).name == "day":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(DataError, match=r"cannot look into .*day: Permission denied"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")


def test_a_copy_of_a_part_is_not_drawn_twice(runs, tmp_path):
    """By its content, whatever its name; the mean of two draws is nearer to the truth."""
    table = checkins(100)
    for name in ("a", "b"):
        write_parquet(tmp_path / "in" / f"{name}.parquet", table)
        write_parquet(tmp_path / "in" / f"empty-{name}.parquet", table.slice(0, 0))
    with pytest.raises(
        DataError, match=r"is a copy of a\.parquet, so its rows would be drawn twice"
    ):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert os.listdir(tmp_path) == ["in"]
    policy = Policy(keep=("user",)) if "user" in table.column_names else None
    sanitize(
        runs / "laplace",
        tmp_path / "in",
        tmp_path / "out",
        chance=Sticky(bytes(32), "forever", by_user=False),
        policy=policy,
    )
    drawn = [parquet.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("a", "b")]
    assert drawn[0].equals(drawn[1])
    (tmp_path / "in" / "b.parquet").unlink()  # parts without a row may be alike
    assert sanitize(runs / "laplace", tmp_path / "in", tmp_path / "once")["rows_out"] == 100


def test_a_folder_without_a_row_is_refused_and_leaves_nothing(runs, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", checkins(5).slice(0, 0))
    with pytest.raises(DataError, match="0 rows"):
        sanitize(runs / "laplace", tmp_path / "in", tmp_path / "out")
    assert os.listdir(tmp_path) == ["in"]
