"""Tables of one's own: held-out check-ins in a file, reports beside truths, pairs in degrees."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf

PLANE = sf.Plane(48.85, 2.35)
TRUTHS = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [400.0, 400.0]])


def _degrees(points: np.ndarray) -> list[str]:
    return [f"{lat:.9f},{lon:.9f}" for lat, lon in zip(*PLANE.to_degrees(points), strict=True)]


def _write(path: Path, header: str, *columns: list[str]) -> Path:
    rows = [",".join(cells) for cells in zip(*columns, strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return _write(tmp_path / "train.csv", "user,lat,lon", list("abab"), _degrees(TRUTHS))


@pytest.fixture
def test(tmp_path: Path) -> Path:
    users = ["b", "zoe", "a", "b"]
    return _write(tmp_path / "test.csv", "user,lat,lon", users, _degrees(TRUTHS + 5.0))


def test_a_file_of_held_out_check_ins_is_judged_on_the_plane_of_the_training_file(
    sfumato, tmp_path, train, test
):
    words = ("--max-loss", 150, "--cell-m", 50, "--solver", "coin")
    ended = sfumato("solve", train, "--test", test, *words, "--out", tmp_path / "run", "--json")
    assert ended.code == 0 and "1 of 4 test check-ins, of other users, left out" in ended.err
    again = sfumato("measure", tmp_path / "run", "--json").document
    assert again["test"]["loss"] == ended.document["test"]["loss"]
    samples = sf.read_checkins(train)
    coin = sf.load_run(tmp_path / "run").mechanism
    held_out = sf.read_checkins(test, plane=samples.plane).of_users(("a", "b"))
    assert again["test"]["loss"]["value"] == pytest.approx(sf.judge(coin, held_out).loss.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [(("--per-user", "1+1"), "--test or from --per-user"), (("--users", "q"), "no user 'q'")],
)
def test_held_out_check_ins_come_from_one_place(sfumato, tmp_path, train, test, more, words):
    out = tmp_path / "run"
    ended = sfumato("solve", train, "--test", test, "--max-loss", 150, *more, "--out", out)
    assert ended.code == 2 and words in ended.err and not out.exists()


@pytest.mark.parametrize("new", [0, 1])
@pytest.mark.parametrize("timed", [False, True])
def test_a_test_file_of_training_check_ins_is_refused_with_their_number(
    sfumato, tmp_path, new, timed
):
    """A figure of training check-ins is not one of held-out check-ins."""
    truths = np.random.default_rng(0).uniform(0, 900, (40, 2))
    more = [[str(row) for row in range(40)]] if timed else []
    header, users = "user,lat,lon" + ",time" * timed, list("ab") * 20
    train = _write(tmp_path / "train.csv", header, users, _degrees(truths), *more)
    truths[:new] += 5.0
    test = _write(tmp_path / "test.csv", header, users, _degrees(truths), *more)
    words = ("--max-loss", 150, "--cell-m", 50, "--solver", "coin", "--out", tmp_path / "run")
    ended = sfumato("solve", train, "--test", test, *words)
    assert ended.code == 2 and f"{40 - new} " in ended.err and "training check-ins" in ended.err
    assert "Measured" not in ended.out and not (tmp_path / "run").exists()


def test_held_out_check_ins_of_nobody_known_are_refused(sfumato, tmp_path, train):
    other = _write(tmp_path / "other.csv", "user,lat,lon", list("qr"), _degrees(TRUTHS[:2]))
    ended = sfumato("solve", train, "--test", other, "--max-loss", 150, "--out", tmp_path / "run")
    assert ended.code == 2 and "none of the training data's users" in ended.err


def test_truths_in_degrees_beside_reports_give_the_loss(sfumato, tmp_path):
    header = "user,lat,lon,truth_lat,truth_lon"
    moved = TRUTHS + np.array([30.0, 40.0])
    path = _write(tmp_path / "r.csv", header, list("abab"), _degrees(moved), _degrees(TRUTHS))
    assert sfumato("measure", path, "--json").document["loss"]["value"] == pytest.approx(
        50, abs=0.1
    )


def test_every_table_has_the_intervals_that_the_main_figures_have(sfumato, tmp_path):
    path = _write(tmp_path / "r.csv", "user,lat,lon", list("abab"), _degrees(TRUTHS))
    main, every = sfumato("measure", path).out, sfumato("measure", path, "--details").out
    interval = main.split("%]")[0].rpartition("[")[2]
    (exposed,) = (line for line in every.splitlines() if line.startswith("exposed reports"))
    assert "%" in interval and f"[{interval}%]" in exposed
    assert every.splitlines()[0].split() == ["r.csv", "its", "reports"]


def test_reports_without_truths_say_which_columns_give_the_loss(sfumato, tmp_path):
    for header, reports, wanted in (
        ("user,lat,lon", _degrees(TRUTHS), "truth_lat and truth_lon"),
        ("user,x,y", ["0,0", "1,1", "2,2", "3,3"], "truth_x and truth_y"),
    ):
        ended = sfumato("measure", _write(tmp_path / "r.csv", header, list("abab"), reports))
        assert ended.code == 0 and "not known" in ended.out
        assert f"without columns {wanted} the loss is not known" in ended.err


def test_truths_in_other_units_than_the_reports_are_refused(sfumato, tmp_path):
    for header, reports in (
        ("user,x,y,truth_lat,truth_lon", ["0,0", "9,9"]),
        ("user,lat,lon,truth_x,truth_y", _degrees(TRUTHS[:2])),
    ):
        path = _write(tmp_path / "r.csv", header, list("ab"), reports, _degrees(TRUTHS[:2]))
        ended = sfumato("measure", path)
        assert ended.code == 2 and "gives truths as" in ended.err and ended.out == ""


def test_half_a_truth_and_truths_elsewhere_are_refused(sfumato, tmp_path):
    reports = ["59.33,18.06"] * 2
    for header, truths, said in (
        ("truth_lat", ["59.33"] * 2, "'truth_lat' of its truths alone; expected truth_lat and"),
        ("truth_lat,truth_lon", ["18.06,59.33"] * 2, "truth_lon are probably swapped"),
        (
            "truth_lat,truth_lon",
            ["59.33,18.06", "0,0"],
            "truth of data row 2 lies more than 200 km",
        ),
    ):
        path = _write(tmp_path / "r.csv", f"user,lat,lon,{header}", list("ab"), reports, truths)
        ended = sfumato("measure", path)
        assert ended.code == 2 and said in ended.err and ended.out == "", ended.err


def test_pairs_in_degrees_are_a_mechanism(sfumato, tmp_path, train):
    header = "truth_lat,truth_lon,report_lat,report_lon"
    moved = TRUTHS[:3] + np.array([30.0, 40.0])
    pairs = _write(tmp_path / "p.csv", header, _degrees(TRUTHS[:3]), _degrees(moved))
    ended = sfumato("measure", pairs, "--data", train, "--hits", 2)
    assert ended.code == 0 and "1 of 4 check-ins lie more than 1 m" in ended.out + ended.err
    assert "100% of the recorded truths have one report, which is always given again" in ended.err
    again = [*_degrees(moved), *_degrees(moved + 9)]
    drawn = _write(tmp_path / "twice.csv", header, _degrees(TRUTHS[:3]) * 2, again)
    assert "always given again" not in sfumato("measure", drawn, "--data", train, "--hits", 2).err
    named = _write(
        tmp_path / "r.csv", "truth_lat,truth_lon,lat,lon", _degrees(TRUTHS[:3]), _degrees(moved)
    )
    for path in (pairs, named):
        ended = sfumato("compare", path, "--data", train, "--hits", 2, "--json")
        assert ended.document["mechanisms"][0]["loss"]["value"] > 49
        assert ended.err.count(f"{path.name}: 100% of the recorded truths have one report") == 1
    ended = sfumato("measure", pairs)
    assert ended.code == 2 and "holds pairs of truth and report" in ended.err
    assert "--data DATA" in ended.err


def test_pairs_that_name_the_user_are_reports(sfumato, tmp_path):
    header = "user,truth_lat,truth_lon,report_lat,report_lon"
    moved = TRUTHS + np.array([30.0, 40.0])
    path = _write(tmp_path / "p.csv", header, list("abab"), _degrees(TRUTHS), _degrees(moved))
    found = sfumato("measure", path, "--json").document
    assert found["loss"]["value"] == pytest.approx(50, abs=0.1) and found["name"] == "p.csv"


def test_reports_by_names_of_their_own_need_no_truth_and_no_second_place(sfumato, tmp_path):
    places = _degrees(TRUTHS)
    path = _write(tmp_path / "r.csv", "user,report_lat,report_lon", list("abab"), places)
    found = sfumato("measure", path, "--json")
    assert found.code == 0 and found.document["name"] == "r.csv", found.err
    path = _write(tmp_path / "t.csv", "user,lat,lon,report_lat,report_lon", "abab", places, places)
    ended = sfumato("measure", path)
    assert ended.code == 2 and "has 'lat' beside 'report_lat'; expected the place" in ended.err
    assert sfumato("measure", path, "--lat", "report_lat", "--lon", "report_lon").code == 0


@pytest.mark.parametrize("renamed", [False, True])
def test_the_next_command_after_a_solve_works_as_typed(sfumato, tmp_path, monkeypatch, renamed):
    """Also where further columns name the users, or have other names than the usual ones."""
    monkeypatch.chdir(tmp_path)
    users = list("abc") * 12
    random = np.random.default_rng(3)
    places = random.normal(0, 300, (36, 2)).round(1)
    header = "who,mail,tablet,y,x,note" if renamed else "user,mail,tablet,lat,lon,note"
    named = [users, [f"{one}@example.org" for one in users], [str(ord(one)) for one in users]]
    notes = random.choice(["in", "out"], 36).tolist()
    _write(tmp_path / "own log.csv", header, *named, _degrees(places), notes)
    words = ("--max-loss", 150, "--solver", "laplace", "--out", "run")
    columns = ("--secret", "who", "--lat", "y", "--lon", "x") if renamed else ()
    ended = sfumato("solve", "own log.csv", *columns, *words)
    typed = shlex.split(ended.out.splitlines()[-1].removeprefix("Next: ").partition(";")[0])
    assert typed[:2] == ["sfumato", "sanitize"] and typed[typed.index("--drop") + 1].count(",") == 2
    assert sfumato(*typed[1:]).code == 0
    written = (tmp_path / "reports.csv").read_text().splitlines()
    assert written[0] == ("y,x,note" if renamed else "lat,lon,note") and len(written) == 37
