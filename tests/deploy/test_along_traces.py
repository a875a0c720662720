"""`sanitize` along traces: as the run's policy says, whatever the order of rows, and the same bytes
when a stopped job is resumed."""

import shutil

import numpy as np
import pytest

from sfumato.deploy.keeping import chance_for
from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import one_by_one, sanitize
from sfumato.errors import FileError, ProblemError
from sfumato.study.folder import keep_reports, load_run
from sfumato.study.record import Keeping
from tests.deploy.test_sticky import KEY

ROWS = [
    f"{user},2010-10-{day:02d}T{hour:02d}:00:00Z,{48.857 + hour / 4000:.5f},2.347\n"
    for user in ("ann", "ben")
    for day in (4, 6, 12)
    for hour in (8, 12, 8)
]
HEADER = "user,time,lat,lon\n"
KEPT = Policy(keep=("user",), over_budget=True)


@pytest.fixture(params=[None, 400.0], ids=["grid", "lattice"])
def run(request, runs, tmp_path):
    """A run whose reports are kept for a week."""
    shutil.copytree(runs / "laplace", tmp_path / "run")
    keep_reports(load_run(tmp_path / "run"), Keeping("week", lattice_m=request.param))
    return tmp_path / "run"


def _sanitized(run, path, rows):
    path.write_text(HEADER + "".join(rows))
    out = path.with_suffix(".out.csv")
    sanitize(run, path, out, chance=chance_for(load_run(run), KEY), policy=KEPT)
    return out.read_text().splitlines(keepends=True)[1:]


def test_rows_in_any_order_have_the_same_reports(run, tmp_path):
    order = np.random.default_rng(1).permutation(len(ROWS))
    straight = _sanitized(run, tmp_path / "one.csv", ROWS)
    shuffled = _sanitized(run, tmp_path / "two.csv", [ROWS[row] for row in order])
    assert shuffled == [straight[row] for row in order]
    reports = [line.split(",")[2:] for line in straight]
    assert reports[0] == reports[2] == reports[3]  # again at that place, and two days later
    # The week after: of two users at two places, one lattice cell may be drawn again by chance.
    assert [reports[row] for row in (0, 1, 9, 10)] != [reports[row] for row in (6, 7, 15, 16)]
    assert len({tuple(report) for report in reports}) > 3


def _after_one_part(protection, tasks, progress):
    yield from one_by_one(protection, tasks[:1], progress)
    raise FileError("the disk is full")


def test_a_resumed_job_gives_the_same_bytes(run, tmp_path):
    for part in range(3):
        path = tmp_path / "in" / f"{part}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEADER + "".join(ROWS[part::3]))
    told = {"chance": chance_for(load_run(run), KEY), "policy": KEPT}
    with pytest.raises(FileError, match="full"):
        sanitize(run, tmp_path / "in", tmp_path / "late", **told, runner=_after_one_part)
    sanitize(run, tmp_path / "in", tmp_path / "late", **told)
    sanitize(run, tmp_path / "in", tmp_path / "once", **told)
    for part in range(3):
        late, once = (tmp_path / name / f"{part}.csv" for name in ("late", "once"))
        assert late.read_bytes() == once.read_bytes()


def test_a_run_that_keeps_reports_is_not_drawn_anew_by_oversight(run, tmp_path):
    (tmp_path / "in.csv").write_text(HEADER + "".join(ROWS))
    with pytest.raises(ProblemError, match="come from a key"):
        sanitize(run, tmp_path / "in.csv", tmp_path / "out.csv", policy=KEPT)
    assert not (tmp_path / "out.csv").exists()
