"""`sfumato sanitize` as it is typed: exit codes, one sentence, notes, JSON."""

import json
import os
import sys
from datetime import UTC, date, datetime, timedelta

import pytest

from sfumato import cli

HEAD = "user,lat,lon,venue\n"


def test_a_table_with_json_and_a_note_on_a_column_that_tells(runs, tmp_path, typed):
    rows = [
        f"u{row},{48.85 + row % 9 / 1000},{2.34 + row % 9 / 1000},v{'371805264'[row % 9]}\n"
        for row in range(90)
    ]
    (tmp_path / "in.csv").write_text(HEAD + "".join(rows))
    ended = typed("sanitize", runs / "laplace", "in.csv", "out.csv", "--keep", "user")
    assert ended.returncode == 2 and "'venue' (values that go with one place each)" in ended.stderr
    assert os.listdir(tmp_path) == ["in.csv"]
    ended = typed(
        "sanitize",
        runs / "laplace",
        "in.csv",
        "out.csv",
        "--keep",
        "user",
        "--keep",
        "venue",
        "--json",
        "--sticky",
        "forever",
        "--key",
        "key",
    )
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert record["rows_out"] == 90 and record["chance"]["sticky"] == "forever"
    assert datetime.now(UTC).date() - date.fromisoformat(record["made"]) <= timedelta(1)
    assert "--drop venue" in ended.stderr and "rows/s" in ended.stderr
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "key", "out.csv", "out.csv.record.json"]
    assert oct((tmp_path / "key").stat().st_mode & 0o777) == "0o600"


def test_a_note_names_the_files_of_a_folder_that_are_skipped(runs, tmp_path, typed):
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "_b.csv", *(f"c{number}.json" for number in range(6))):
        (tmp_path / "in" / name).write_text(HEAD + "blue,48.857,2.347,v\n")
    ended = typed("sanitize", runs / "laplace", "in", "out", "--drop", "user")
    assert ended.returncode == 0 and os.listdir(tmp_path / "out") == ["a.csv"]
    (note,) = [line for line in ended.stderr.splitlines() if line.startswith("note: ")]
    assert (
        note.startswith("note: 7 file(s) skipped")
        and "_b.csv, c0.json" in note
        and note.endswith("c3.json, …")
    )
    again = typed("sanitize", runs / "laplace", "in", "out", "--drop", "user")
    assert again.returncode == 0 and "rows in" not in again.stderr
    first, second, *_ = again.stdout.splitlines()
    assert "All parts were done already" in first
    assert second.startswith("out: 1 of 1 rows; no mean loss: of fewer than 1,000 rows")


def test_a_refusal_is_one_sentence_one_hint_and_code_2(runs, tmp_path, typed):
    (tmp_path / "in.csv").write_text(HEAD + "u,48.857,2.347,v\nu,10.731,2.347,v\n")
    ended = typed("sanitize", runs / "laplace", "in.csv", "out.csv", "--keep", "user")
    assert ended.returncode == 2 and ended.stdout == ""
    lines = ended.stderr.strip().splitlines()
    assert (
        [line.split(":")[0] for line in lines] == ["error", "hint"]
        and "1 of 2 rows" in lines[0]
        and "10.731" not in ended.stderr
    )
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    "words",
    [
        ["--sticky", "day"],
        ["--pseudonym", "day"],
        ["--key", "key"],
        ["--sticky-cell-m", "50"],
        ["--outside", "keep"],
    ],
)
def test_options_that_do_not_go_together_are_refused(runs, tmp_path, typed, words):
    (tmp_path / "in.csv").write_text(HEAD + "u,48.857,2.347,v\n")
    ended = typed("sanitize", runs / "laplace", "in.csv", "out.csv", "--keep", "user", *words)
    assert (
        ended.returncode == 2
        and ended.stderr.startswith("error: ")
        and os.listdir(tmp_path) == ["in.csv"]
    )


def test_the_users_column_stops_it_until_somebody_says_what_to_do(runs, tmp_path, typed):
    rows = [f"{'ab'[row % 2]}nn,{48.85 + row % 7 / 991},{2.34 + row / 977}" for row in range(30)]
    rows = [f"{row},{row.split(',')[2]}\n" for row in rows]
    (tmp_path / "in.csv").write_text('uid,lat,lon,"a,b"\n' + "".join(rows))
    ended = typed("sanitize", runs / "laplace", "in.csv", "out.csv")
    assert ended.returncode == 2 and os.listdir(tmp_path) == ["in.csv"]
    error, hint = ended.stderr.strip().splitlines()
    assert "names the user in its column 'uid'" in error and "'a,b' (a copy of a c" in error
    assert hint.startswith("hint: leave out with --drop 'uid,\"a,b\"', give new names to")
    for words, says in (("", "names nothing"), ('uid, "a,b"', "no column ' \"a'")):
        ended = typed("sanitize", runs / "laplace", "in.csv", "out.csv", "--drop", words)
        assert ended.returncode == 2 and says in ended.stderr, ended.stderr
    copied = ["--drop", '"a,b"']
    for number, words in enumerate(
        (
            ["--drop", 'uid,"a,b"'],
            ["--keep", "uid", *copied],
            ["--pseudonym", "forever", "--key", "key", *copied],
        )
    ):
        ended = typed("sanitize", runs / "laplace", "in.csv", f"{number}.csv", *words)
        assert ended.returncode == 0, ended.stderr
    dropped, kept, named = (
        [line.split(",") for line in (tmp_path / f"{number}.csv").read_text().splitlines()[1:]]
        for number in range(3)
    )
    assert {len(line) for line in dropped} == {2} and {line[0] for line in kept} == {"ann", "bnn"}
    assert len({line[0] for line in named}) == 2 and {len(line[0]) for line in named} == {20}


def test_a_stopped_folder_says_how_to_resume_it(runs, tmp_path, monkeypatch, capsys):
    def stop(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.deploy.sanitize.sanitize", stop)
    monkeypatch.setattr("os._exit", sys.exit)
    (tmp_path / "in").mkdir()
    (tmp_path / "in.csv").write_text(HEAD)
    for name, said in (("in", True), ("in.csv", False)):
        words = ["sanitize", runs / "laplace", tmp_path / name, tmp_path / "out"]
        monkeypatch.setattr("sys.argv", ["sfumato", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 130
        lines = capsys.readouterr().err.strip().splitlines()
        assert lines[0] == "error: stopped; what was not finished was not written"
        assert lines[1:] == ["hint: the same command again resumes it"] * said
