"""Each bad input gives one sentence, exit code 2, and leaves nothing behind."""

import numpy as np
import pytest

import sfumato as sf

HEADER = "user,lat,lon\n"
PARIS = "a,48.85,2.34\na,48.86,2.35\nb,48.87,2.36\nb,48.85,2.35\n"


def table(rows: str, header: str = HEADER) -> str:
    return header + rows


BAD_TABLES = {
    "nan": (
        table(PARIS + "a,nan,2.3\n"),
        ["latitude", "not finite", "data row 5", "remove or repair"],
    ),
    "infinite": (table(PARIS + "a,48.8,inf\n"), ["longitude", "not finite", "data row 5"]),
    "no value": (table(PARIS + "a,,2.3\n"), ["latitude", "not finite"]),
    "latitude beyond 90": (table(PARIS + "a,95.0,120.0\n"), ["latitude 95.0", "beyond 90"]),
    "longitude beyond 180": (table(PARIS + "a,48.0,195.0\n"), ["longitude 195.0", "beyond 180"]),
    "swapped": (table("a,120.5,31.2\nb,121.5,31.3\n"), ["beyond 90", "probably swapped"]),
    "column twice": (
        table("a,48.8,2.3,2.4\nb,48.8,2.3,2.4\n", "user,lat,lon,lon\n"),
        ["'lon' twice"],
    ),
    "column missing": (
        table("a,48.8\nb,48.9\n", "user,lat\n"),
        ["no columns for the place", "'user'"],
    ),
    "user missing": (table("48.8,2.3\n48.9,2.3\n", "lat,lon\n"), ["no column for the user"]),
    "one user": (table("a,48.8,2.3\na,48.9,2.3\n"), ["one user", "at least two"]),
    "only a header": (HEADER, ["holds no rows"]),
    "empty": ("", ["is empty"]),
    "text": (table(PARIS + "a,north,2.3\n"), ["'north'", "not a number"]),
    "user empty": (table(PARIS + ",48.8,2.3\n"), ["no value in 'user'"]),
    "both sides of the antimeridian": (table("a,0.1,179.9\nb,0.1,-179.9\n"), ["antimeridian"]),
    "a whole country": (table("a,43.3,5.4\nb,50.6,3.1\n"), ["select a smaller area"]),
    "at the pole": (table("a,89.9,10.0\nb,89.9,11.0\n"), ["poles"]),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_sentence_and_code_2(sfumato, tmp_path, name):
    text, words = BAD_TABLES[name]
    (tmp_path / "bad.csv").write_text(text)
    ended = sfumato("solve", tmp_path / "bad.csv", "--max-loss", 100, "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.out == ""
    error = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(error) == 1, ended.err
    assert all(word in error[0] for word in words), error[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


BAD_OPTIONS = {
    "negative budget": (["--max-loss", -5], ["--max-loss must be", "above 0 metres", "-5"]),
    "a unit": (
        ["--max-loss", 100, "--time-limit", "1s"],
        ["--time-limit", "'1s' is not a number; leave units out"],
    ),
    "no reports": (
        ["--max-loss", 100, "--reports", 0],
        ["--reports", "'0' is not a number of reports", "or endless"],
    ),
    "half a report": (["--max-loss", 100, "--reports", 1.5], ["'1.5' is not a number of reports"]),
    "too many reports": (["--max-loss", 100, "--reports", 10001], ["--reports", "from 1 to 10000"]),
    "reports and information": (
        ["--max-loss", 100, "--reports", 2, "--objective", "information"],
        ["--reports goes with a budget and the objective bayes", "got information"],
    ),
    "reports without a budget": (["--reports", 5], ["needs a budget"]),
    "zero budget": (["--max-loss", 0], ["above 0 metres"]),
    "budget not a number": (["--max-loss", "nan"], ["above 0 metres", "nan"]),
    "budget in words": (["--max-loss", "much"], ["--max-loss", "'much' is not a number"]),
    "endless budget": (["--max-loss", "inf"], ["finite"]),
    "no budget": ([], ["needs a budget", "--max-loss, --user-max-loss or --max-distance"]),
    "impossible budget": (
        ["--max-loss", 5],
        ["no mechanism", "smallest possible loss is", "cells smaller"],
    ),
    "more users than there are": (
        ["--max-loss", 100, "--top-users", 9],
        ["4 user(s)", "9 were asked"],
    ),
    "fewer samples than asked": (
        ["--max-loss", 100, "--per-user", "900+100"],
        ["has 600 check-ins", "900+100 were asked"],
    ),
    "empty selection": (
        ["--max-loss", 100, "--square", "10,10,100"],
        ["none of", "widen the square"],
    ),
    "half a square": (["--max-loss", 100, "--square", "10,10"], ["three numbers"]),
    "half a split": (["--max-loss", 100, "--per-user", "a+b"], ["N+M"]),
    "weight without a draw": (["--max-loss", 100, "--overlap-weight", "0.1"], ["overlap weight"]),
    "weight beyond one": (
        ["--max-loss", 100, "--per-user", "10+2", "--overlap-weight", "7"],
        ["between 0 and 1"],
    ),
    "cell of no width": (["--max-loss", 100, "--cell-m", 0], ["above 0 metres"]),
    "cell named twice": (["--max-loss", 100, "--cell-m", 25, "--cells", 10], ["not by both"]),
    "truths outside the region": (
        ["--max-loss", 100, "--region", "48.8584,2.3482,100"],
        ["outside the region"],
    ),
    "region elsewhere": (
        ["--max-loss", 100, "--region", "2.3482,48.8584,4500"],
        ["middle of the region, 2.3482,48.8584,", "200 km from the data", "latitude,longitude,"],
    ),
    "no time": (["--max-loss", 100, "--time-limit", 0], ["time limit"]),
    "unknown option": (
        ["--max-loss", 100, "--sede", 1],
        ["No such option", "Did you mean", "--seed"],
    ),
    "unknown solver": (["--max-loss", 100, "--solver", "magic"], ["'magic'", "laplace", "coin"]),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_one_sentence_and_code_2(sfumato, tmp_path, name):
    options, words = BAD_OPTIONS[name]
    ended = sfumato("solve", "four-corners", *options, "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.out == ""
    error = next(line for line in ended.err.splitlines() if line.startswith("error: "))
    assert all(word in error for word in words), ended.err
    assert not list(tmp_path.iterdir())


_CORNERS = ("four-corners", "--max-loss", 100)
_IN_A_FILE = ["cannot write", "in a folder that can be written"]
# "file" is a file, so that nothing can be written below it
BAD_ELSEWHERE = {
    "report below a file": (["compare", "run", "--html", "file/report.html"], _IN_A_FILE),
    "figure below a file": (
        ["frontier", "four-corners", "--from", 100, "--to", 200, "--figure", "file/f.png"],
        _IN_A_FILE,
    ),
    "assessment below a file": (["assess", "run", "--out", "file/a.md"], _IN_A_FILE),
    "assessment that is a folder": (["assess", "run", "--out", "a.md"], ["a.md", "directory"]),
    "map below a file": (
        ["atlas", *_CORNERS, "--out", "new", "--report", "file/map.html"],
        _IN_A_FILE,
    ),
    "run below a file": (
        ["solve", *_CORNERS, "--solver", "coin", "--out", "file/run"],
        ["cannot write", "file: ", "in a folder that can be written"],
    ),
    "distance to no places": (
        ["assess", "run", "--out", "new.md", "--sensitive-m", 10],
        ["--sensitive-m goes with --sensitive"],
    ),
    "report over a table": (["compare", "run", "--html", "log.csv"], ["--html must end in .html"]),
    "map over a table": (
        ["atlas", *_CORNERS, "--out", "new", "--report", "log.csv"],
        ["--report must end in .html"],
    ),
    "run that is a file": (
        ["solve", *_CORNERS, "--solver", "coin", "--out", "file"],
        ["file is a file; name a new folder"],
    ),
    "demo that is a file": (["demo", "--out", "file"], ["file is a file; name a new folder"]),
    "machine that is nowhere": (["serve", "run", "--at", "here.json"], ["no file", '"lat"']),
    "nobody may ask": (["serve", "run"], ["say who may ask", "--token-file", "--at"]),
}


@pytest.mark.parametrize("name", BAD_ELSEWHERE)
def test_a_bad_input_of_another_command_is_refused_before_any_work(
    sfumato, tmp_path, monkeypatch, name
):
    words, said = BAD_ELSEWHERE[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "a.md").mkdir()
    ended = sfumato(*words)
    assert ended.code == 2 and ended.out == ""
    (error,) = (line for line in ended.err.splitlines() if line.startswith("error: "))
    assert all(word in error for word in said) and ".lock" not in error, error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "file"]


def test_a_misspelt_command_is_met_with_the_right_one(sfumato):
    ended = sfumato("mesure", "x")
    assert ended.code == 2 and "'measure'" in ended.err


def test_a_missing_file_is_named(sfumato, tmp_path):
    ended = sfumato("solve", tmp_path / "none.csv", "--max-loss", 100, "--out", tmp_path / "run")
    assert ended.code == 2 and "there is no file" in ended.err


def test_swapped_coordinates_are_noticed_by_an_empty_square(sfumato, tmp_path):
    (tmp_path / "swapped.csv").write_text("user,lat,lon\na,2.34,48.85\nb,2.35,48.86\n")
    ended = sfumato(
        "solve",
        tmp_path / "swapped.csv",
        "--square",
        "48.8584,2.3482,4500",
        "--max-loss",
        100,
        "--out",
        tmp_path / "run",
    )
    assert ended.code == 2 and "probably swapped" in ended.err


def test_a_truncated_archive_is_refused(sfumato, tmp_path):
    import gzip

    whole = gzip.compress(("user,lat,lon\n" + PARIS * 5000).encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    ended = sfumato("solve", tmp_path / "cut.csv.gz", "--max-loss", 100, "--out", tmp_path / "run")
    assert ended.code == 2 and "cannot be read" in ended.err


@pytest.fixture
def run(sfumato, tmp_path):
    sfumato(
        "solve", "four-corners", "--max-loss", 173, "--solver", "coin", "--out", tmp_path / "run"
    )
    return tmp_path / "run"


@pytest.mark.parametrize("name", ["run.json", "mechanism.npz"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_truncated_run_is_refused(sfumato, run, name, share):
    whole = (run / name).read_bytes()
    (run / name).write_bytes(whole[: int(share * len(whole))])
    ended = sfumato("measure", run)
    assert ended.code == 2
    assert ended.err.count("error: ") == 1 and "Traceback" not in ended.err


def test_a_mechanism_of_another_run_is_refused(sfumato, run):
    np.savez(
        run / "mechanism.npz",
        format="sfumato mechanism 2",
        kind="coin",
        keep=0.5,
        place=np.zeros(2),
    )
    ended = sfumato("measure", run)
    assert ended.code == 2 and "not the mechanism" in ended.err


def test_solve_does_not_replace_what_is_not_a_run(sfumato, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("keep me")
    ended = sfumato(
        "solve", "four-corners", "--max-loss", 173, "--solver", "coin", "--out", tmp_path / "mine"
    )
    assert ended.code == 2 and "not a run folder" in ended.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "keep me"


def test_solve_replaces_an_older_run(sfumato, run):
    ended = sfumato(
        "solve",
        "four-corners",
        "--max-loss",
        100,
        "--solver",
        "coin",
        "--out",
        run,
        "--replace",
        "--json",
    )
    assert ended.code == 0
    assert sfumato("measure", run, "--json").document["max_loss"] == 100
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_a_run_whose_data_changed_is_not_measured_silently(sfumato, tmp_path):
    sfumato("data", "four-corners", "--out", tmp_path / "d.csv")
    sfumato(
        "solve",
        tmp_path / "d.csv",
        "--max-loss",
        173,
        "--solver",
        "coin",
        "--out",
        tmp_path / "run",
    )
    sfumato("data", "four-corners", "--data-seed", 9, "--out", tmp_path / "d.csv")
    ended = sfumato("measure", tmp_path / "run")
    assert ended.code == 2 and "has changed" in ended.err


_TOO_LONG = "r" * 245  # a folder may have the name; what is written beside it first may not


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "missing.csv", "--max-loss", 173, "--solver", "coin", "--out"),
        ("atlas", "missing.csv", "--max-loss", 100, "--out"),
        ("demo", "--out"),
        ("export", "run"),
        ("sanitize", "run", "in.csv", "--drop", "user"),
    ],
    ids=lambda words: words[0],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    sfumato, tmp_path, monkeypatch, words
):
    """Before the data is read, where there is data to read."""
    monkeypatch.chdir(tmp_path)
    sf.solve(sf.Problem(sf.four_corners(0).train, max_loss=173, cell_m=250), sf.Coin()).save("run")
    (tmp_path / "in.csv").write_text("user,lat,lon\na,48.86,2.35\n")
    for work in ("deploy.bundle.graph_of", "deploy.sanitize.sanitize_file", "study.solve._Task"):
        monkeypatch.setattr(f"sfumato.{work}", None)  # what calls it ends in another error
    before = sorted(tmp_path.rglob("*"))
    ending = ".csv" if words[0] == "sanitize" else ""
    ended = sfumato(*words, _TOO_LONG[: 245 - len(ending)] + ending)
    assert ended.code == 2 and ended.out == ""
    assert "error: cannot write" in ended.err and "File name too long" in ended.err
    assert sorted(tmp_path.rglob("*")) == before
