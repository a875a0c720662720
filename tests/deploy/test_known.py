"""Rows of users whom a run was not made for are counted, and nobody is named."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.deploy.known import KnownUsers
from sfumato.deploy.one_file import Policy, Protection
from sfumato.deploy.release import release
from sfumato.deploy.sanitize import sanitize
from sfumato.mechanism.chance import Secure
from tests.deploy.tables import DATA

USERS = ("1", "2", "007", "ann")
HEAD = "user,lat,lon,note\n"
NOTE = "rows are of users whom the run was not made for"


@pytest.fixture
def run(tmp_path):
    """A run made for `USERS`."""
    problem = sf.Problem(replace(DATA.train, secrets=USERS), max_loss=173)
    sf.solve(problem, sf.Coin()).save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("column", "others"),
    [
        (pa.array([1, 2, 3, 7, -1, 10**12]), 4),
        (pa.array([1, 2, 3, None]), 1),
        (pa.array([1, 9], pa.int8()), 1),
        (pa.array([2, 2**63], pa.uint64()), 1),
        (pa.array([], pa.int64()), 0),
        (pa.array(["1", "007", "7", "ann", "Ann", "", None]), 2),
        (pa.array(["ann", "bob", "bob"]).dictionary_encode(), 2),
        (pa.array([b"ann", b"bob", b"\xff"]), 2),
        (pa.array(["ann", "bob"], pa.large_string()), 1),
        (pa.array([{"name": "ann"}]), None),
    ],
)
def test_a_name_is_the_same_as_text_and_as_a_number_and_no_name_is_nobody(column, others):
    assert KnownUsers(USERS).others(column) == others


def test_numbers_too_large_to_be_looked_up_are_compared_as_text():
    assert KnownUsers(("5", str(10**12))).others(pa.array([5, 10**12, 10**12 + 1])) == 1


@pytest.mark.parametrize("kind", ["csv", "quoted", "number", "folder", "kept", "keyed"])
def test_sanitize_says_how_many_rows_are_of_others(run, tmp_path, typed, kind):
    said = "2010-10-19T23:55:27Z" if kind in ("kept", "keyed") else "x"
    head = HEAD.replace("note", "time") if kind in ("kept", "keyed") else HEAD
    rows = [f"{user},48.857,2.347,{said}\n" for user in ("1", "2", "1", "3", "4711")]
    source, target = tmp_path / "in.csv", "out.csv"
    if kind == "folder":
        source, target = tmp_path / "in", "out"
        source.mkdir()
        (source / "b.csv").write_text(head + "".join(rows[4:]))
        (source / "a.csv").write_text(head + "".join(rows[:4]))
    elif kind == "number":
        source, target = tmp_path / "in.parquet", "out.parquet"
        users, places = [1, 2, 1, 3, 4711], {"lat": [48.857] * 5, "lon": [2.347] * 5}
        parquet.write_table(pa.table({"user": users, **places}), source)
    else:
        rows[0] = rows[0].replace("x", '"x"') if kind == "quoted" else rows[0]
        source.write_text(head + "".join(rows))
    more = {"kept": ("--sticky", "day", "--key", "key")}.get(kind, ())
    drop = ("--pseudonym", "day", "--key", "key") if kind == "keyed" else ("--drop", "user")
    ended = typed("sanitize", run, source, target, *drop, *more)
    assert ended.returncode == 0, ended.stderr
    (note,) = [line for line in ended.stderr.splitlines() if NOTE in line]
    assert note.startswith(f"note: 2 of 5 {NOTE}") and "--leave-one-out" in note
    record = (tmp_path / f"{target}.record.json").read_text()
    assert "4711" not in ended.stderr + ended.stdout + record
    assert json.loads(record)["rows_of_other_users"] is None  # of few rows it tells too much
    again = typed("sanitize", run, source, target, *drop, *more)
    assert (again.returncode == 0) is (kind == "folder")


@pytest.mark.parametrize(
    "table", ["lat,lon\n48.857,2.347\n", HEAD + "1,48.857,2.347,x\n007,48.857,2.347,y\n"]
)
def test_nothing_is_said_without_a_column_of_users_or_of_known_ones(run, tmp_path, typed, table):
    (tmp_path / "in.csv").write_text(table)
    drop = ("--drop", "user") if "user" in table else ()
    ended = typed("sanitize", run, "in.csv", "out.csv", *drop)
    assert ended.returncode == 0 and NOTE not in ended.stderr


def test_the_record_counts_them_where_rows_are_many(run, tmp_path):
    users = np.where(np.arange(1500) % 3, "ann", "bob").tolist()
    places = {"lat": [48.857] * 1500, "lon": [2.347] * 1500}
    parquet.write_table(pa.table({"user": users, **places}), tmp_path / "in.parquet")
    said = []
    record = sanitize(
        run,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        drop="user",
        others=lambda rows, of: said.append((rows, of)),
    )
    assert record["rows_of_other_users"] == 500 and said == [(500, 1500)]


def test_pooled_users_may_be_anybody(tmp_path):
    """The run does not know their names, so nobody can be said to be unknown."""
    few = np.concatenate([np.arange(2), np.full(40, 2), np.full(40, 3)])
    truth = DATA.train.truth[: len(few)]
    pooled = sf.Samples(few, truth, ("a", "b", "c", "d"), plane=DATA.train.plane).pooled(4)
    sf.solve(sf.Problem(pooled, max_loss=173), sf.Coin()).save(tmp_path / "run")
    assert KnownUsers.of(sf.load_run(tmp_path / "run").record) is None


def test_workers_elsewhere_count_them_too(run):
    loaded = sf.load_run(run)
    known = KnownUsers.of(loaded.record)
    assert known is not None and known.names == USERS
    there = Protection.from_parts(
        *Protection(release(loaded), Secure(), Policy(), known).as_parts()
    )
    assert there.known == known
