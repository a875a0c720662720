"""solve exact, certify and frontier from the command line, on places and on words."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.solver.exact import plane_proof
from sfumato.study.folder import load_run

KEYS = {"leakage", "bound_grid", "bound_plane", "gap", "objective", "max_loss", "data_hash"}
EXACT = ("--solver", "exact", "--cell-m", 70)


@pytest.fixture(autouse=True)
def short_plane_proofs(monkeypatch):
    """Two rounds of splitting: on cells as coarse as these more would not come close, and take
    minutes."""
    monkeypatch.setattr(plane_proof, "_MAX_ROUNDS", 2)


@pytest.fixture
def places(tmp_path):
    """Three users, 15 points each, in metres."""
    return _three_users(tmp_path / "three.csv", seed=5)


def _three_users(path, seed, each=15):
    rng = np.random.default_rng(seed)
    rows = ["user,x,y"]
    for user, centre in (("anna", (0, 0)), ("ben", (250, 0)), ("cleo", (120, 220))):
        rows += [
            f"{user},{centre[0] + x:.1f},{centre[1] + y:.1f}"
            for x, y in rng.normal(0, 60, (each, 2))
        ]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def survey(tmp_path):
    """A table of words and its losses."""
    (tmp_path / "table.csv").write_text(
        "secret,truth,count\nx,low,5\nx,mid,3\nx,high,1\ny,low,1\ny,mid,2\ny,high,4\n"
    )
    pairs = [
        (truth, report, abs(at - to))
        for at, truth in enumerate(("low", "mid", "high"))
        for to, report in enumerate(("low", "high"))
    ]
    (tmp_path / "losses.csv").write_text(
        "truth,report,loss\n" + "".join(f"{t},{r},{cost}\n" for t, r, cost in pairs)
    )
    return tmp_path / "table.csv", tmp_path / "losses.csv"


def test_certify_says_of_whom_the_bound_is(sfumato, places, tmp_path):
    """A record from somebody else can name other users, or pool them, and the bound then is of
    these."""
    lines = places.read_text().splitlines()
    few = [f"{user},{10 * row},60" for row, user in enumerate(("dora", "emil"))]
    places.write_text("\n".join([*lines[:40], *few]) + "\n")
    pooled = ("--pool-below", 4, "--users", "anna,ben,dora,emil")
    solved = sfumato("solve", places, "--max-loss", 90, *EXACT, *pooled, "--out", tmp_path / "run")
    assert solved.code == 0, solved.err
    ended = sfumato("certify", tmp_path / "run", "--train", places, "--json")
    assert "note: certified on 32 check-ins of 3 users" in ended.err
    assert "2 users with fewer than 4 check-ins" in ended.err and "everybody else" in ended.err
    found = ended.document
    assert (found["check_ins"], found["users"]) == (32, 3) and "everybody else" in found["notes"][0]


def test_an_exact_run_is_certified_with_the_promised_keys(sfumato, places, tmp_path):
    solved = sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "run", "--json")
    assert solved.code == 0, solved.err
    ended = sfumato("certify", tmp_path / "run", "--json")
    found = ended.document
    assert ended.code == 0 and found.keys() >= KEYS
    assert found["leakage"] == pytest.approx(solved.document["leakage"], abs=1e-12)
    assert found["bound_plane"] < found["bound_grid"] <= found["leakage"]
    assert (
        0 <= found["gap"] <= 1.1e-3
    )  # what the solver promised holds for the grid that the run was solved on
    assert found["gap"] == pytest.approx(found["leakage"] - found["bound_grid"])
    assert (found["objective"], found["max_loss"], found["kind"], found["reports_on_grid"]) == (
        "bayes",
        90,
        "exact",
        True,
    )
    assert (
        found["data_hash"]
        == json.loads((tmp_path / "run" / "run.json").read_text())["data"]["hash"]
    )


def test_a_second_checker_in_rational_arithmetic_says_the_same(sfumato, places, tmp_path):
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "run")
    found = sfumato("certify", tmp_path / "run", "--again", "--json").document
    for name in ("bound_grid", "bound_plane"):
        assert 0 <= found["again"][name] - found[name] < 1e-6
    said = sfumato("certify", tmp_path / "run", "--again").out
    assert (
        f"In rational arithmetic: {found['bound_grid']:.4f} / {found['bound_plane']:.4f}, by a"
        " second checker in " in said
    )
    assert "again" not in sfumato("certify", tmp_path / "run", "--json").document


def test_a_grid_too_large_to_look_at_whole_is_said(sfumato, places, tmp_path, monkeypatch):
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "run")
    whole = sfumato("certify", tmp_path / "run", "--json").document
    assert whole["cells_checked"] == whole["cells_of_grid"] and "looked at" not in whole["sentence"]
    monkeypatch.setattr("sfumato.measure.certificate._MOST_PAIRS", 10)
    monkeypatch.setattr("sfumato.solver.problem._FEW_CELLS", 10)
    part = sfumato("certify", tmp_path / "run", "--json").document
    assert part["cells_checked"] < part["cells_of_grid"] == whole["cells_of_grid"]
    assert (
        f"Of the grid's {part['cells_of_grid']} cells the {part['cells_checked']} about the truths'"
        " hull were checked" in part["sentence"]
    )


@pytest.mark.parametrize("grid", [("--cell-m", 70), ("--cell-m", 100), ("--cells", 7)])
def test_a_run_is_certified_on_the_grid_that_it_was_solved_on(sfumato, places, tmp_path, grid):
    """A cell's side seldom divides the region's; the grid reaches a little beyond it, and the run
    remembers that."""
    sfumato(
        "solve", places, "--max-loss", 90, "--solver", "exact", *grid, "--out", tmp_path / "run"
    )
    found = sfumato("certify", tmp_path / "run", "--json").document
    assert found["gap"] <= 1.1e-3 and found["reports_on_grid"]
    if grid[0] == "--cell-m":
        assert f"on this {grid[1]} m grid" in found["sentence"]


def test_certify_says_leakage_bound_and_gap_in_a_sentence(sfumato, places, tmp_path):
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "run")
    said = sfumato("certify", tmp_path / "run").out
    assert (
        said.startswith("This mechanism leaks 0.")
        and "no mechanism within 90 m that reports on this 70 m grid" in said
    )
    assert "anywhere on the plane, less than 0." in said and "gap 0.00" in said


def test_a_run_without_a_certificate_gets_one_and_keeps_it(sfumato, places, tmp_path):
    sfumato(
        "solve",
        places,
        "--max-loss",
        90,
        "--cell-m",
        70,
        "--solver",
        "coin",
        "--out",
        tmp_path / "coin",
    )
    kept = tmp_path / "coin" / "certificate.npz"
    assert not kept.exists()
    first = sfumato("certify", tmp_path / "coin", "--json").document
    assert kept.exists() and first["gap"] > 0.01
    stamp = kept.stat().st_mtime_ns
    assert sfumato("certify", tmp_path / "coin", "--json").document == first
    assert kept.stat().st_mtime_ns == stamp
    assert (
        not first["reports_on_grid"]
        and "only the bound on the plane holds for it" in first["sentence"]
    )  # the coin says the truth itself


def test_a_run_is_certified_with_the_certificate_of_another(sfumato, places, tmp_path):
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "exact")
    sfumato(
        "solve",
        places,
        "--max-loss",
        90,
        "--cell-m",
        70,
        "--solver",
        "laplace",
        "--out",
        tmp_path / "laplace",
    )
    exact = sfumato("certify", tmp_path / "exact", "--json").document
    found = sfumato(
        "certify", tmp_path / "laplace", "--with", tmp_path / "exact", "--json"
    ).document
    assert found["bound_grid"] == exact["bound_grid"] and found["leakage"] > exact["leakage"]
    assert not (tmp_path / "laplace" / "certificate.npz").exists()
    missing = sfumato("certify", tmp_path / "exact", "--with", tmp_path / "laplace")
    assert missing.code == 2 and "there is no certificate file" in missing.err


def test_a_certificate_copied_from_another_run_is_refused(sfumato, places, tmp_path):
    other = _three_users(tmp_path / "other.csv", seed=6)
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "run")
    cases = {
        "data": ([other, "--max-loss", 90], "is for other data"),
        "budget": (
            [places, "--max-loss", 95],
            "is for the budget 95 on average, not 90 on average",
        ),
        "objective": (
            [places, "--max-loss", 90, "--objective", "information"],
            "is for the objective information, not bayes",
        ),
    }
    for name, (arguments, reason) in cases.items():
        assert sfumato("solve", *arguments, *EXACT, "--out", tmp_path / name).code == 0
        shutil.copy(tmp_path / name / "certificate.npz", tmp_path / "run" / "certificate.npz")
        ended = sfumato("certify", tmp_path / "run", "--json")
        assert ended.code == 2 and reason in ended.err and ended.out == ""


def test_a_cut_certificate_and_changed_data_are_refused(sfumato, places, tmp_path):
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "run")
    kept = tmp_path / "run" / "certificate.npz"
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    ended = sfumato("certify", tmp_path / "run")
    assert ended.code == 2 and "not a whole certificate file" in ended.err
    kept.write_bytes(whole)
    moved = shutil.move(places, tmp_path / "moved.csv")
    assert sfumato("certify", tmp_path / "run").code == 2
    assert sfumato("certify", tmp_path / "run", "--train", moved).code == 0
    ended = sfumato(
        "certify", tmp_path / "run", "--train", _three_users(tmp_path / "new.csv", seed=7)
    )
    assert ended.code == 2 and "its hash differs" in ended.err


def test_a_run_is_certified_for_check_ins_to_come(sfumato, places, tmp_path):
    run = tmp_path / "run"
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", run)
    held = _three_users(tmp_path / "held.csv", seed=6, each=150)
    ended = sfumato("certify", run, "--data", held, "--json")
    assert ended.code == 0, ended.err
    found = ended.document
    assert found["kind"] == "population" and found["checkins"] == 450 and found["left_out"] == 0
    assert found["bayes_error_at_least"] < found["best_bayes_error_at_most"] < 2 / 3
    assert found["loss"]["low"] < found["loss"]["value"] < found["loss"]["high"]
    condition = "this holds if the certificate was made without these check-ins"
    assert not found["certificate_made_now"] and condition in ended.err
    (run / "certificate.npz").unlink()
    ended = sfumato("certify", run, "--data", held, "--confidence", 0.8)
    assert condition not in ended.err
    said = ended.out
    assert said.startswith("On check-ins to come, with 80 % confidence (by 450 held-out check-ins")
    held.write_text(held.read_text() + "dora,10,10\n")
    noted = sfumato("certify", run, "--data", held)
    assert noted.code == 0 and "1 check-ins of users that the run does not know" in noted.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--data", "three.csv"], "is the data that"),
        (["--data", "part.csv"], "10 of 10 held-out check-ins are training check-ins"),
        (["--data", "test"], "has no test part"),
        (["--data", "absent.csv"], "there is no file"),
        (["--data", "others.csv"], "holds none of the 3 users"),
        (["--data", "held.csv", "--confidence", 95], "--confidence lies between 0 and 1"),
        (["--data", "held.csv", "--again"], "does not go with --data"),
        (["--confidence", 0.9], "goes with --data"),
    ],
)
def test_what_proves_nothing_about_check_ins_to_come_is_refused(
    sfumato, places, tmp_path, monkeypatch, arguments, reason
):
    monkeypatch.chdir(tmp_path)
    sfumato("solve", places, "--max-loss", 90, "--cell-m", 70, "--solver", "coin", "--out", "run")
    lines = places.read_text().splitlines()
    Path("part.csv").write_text("\n".join([lines[0], *lines[2:42:4]]) + "\n")
    Path("others.csv").write_text("user,x,y\ndora,1,2\ndora,3,5\nemil,7,9\n")
    _three_users(Path("held.csv"), seed=6)
    ended = sfumato("certify", "run", *arguments)
    assert ended.code == 2 and reason in ended.err and ended.out == ""
    assert not Path("run/certificate.npz").exists()


def test_a_record_that_names_training_check_ins_as_its_test_part_is_refused(
    sfumato, places, tmp_path, monkeypatch
):
    """solve refuses such a file; a record may have been edited after it."""
    monkeypatch.chdir(tmp_path)
    _three_users(Path("held.csv"), seed=6)
    asked = [places, "--test", "held.csv", "--max-loss", 90, "--cell-m", 70, "--solver", "coin"]
    assert sfumato("solve", *asked, "--out", "run").code == 0
    lines = places.read_text().splitlines()
    Path("part.csv").write_text("\n".join([lines[0], *lines[2:42:4]]) + "\n")
    record = json.loads(Path("run/run.json").read_text())
    del record["checksum"]
    record["data"]["recipe"]["test"] = "part.csv"
    Path("run/run.json").write_text(json.dumps(record))
    ended = sfumato("certify", "run", "--data", "test")
    assert ended.code == 2 and "10 of 10 held-out check-ins are training check-ins" in ended.err


def test_information_is_certified_in_bits(sfumato, places, tmp_path):
    ended = sfumato(
        "solve",
        places,
        "--max-loss",
        90,
        *EXACT,
        "--objective",
        "information",
        "--out",
        tmp_path / "run",
        "--json",
    )
    found = sfumato("certify", tmp_path / "run", "--json").document
    assert found["objective"] == "information" and found["unit"] == "bits"
    assert found["leakage"] == pytest.approx(ended.document["information_bits"]["value"], abs=1e-9)
    assert 0 <= found["gap"] <= 0.01 * found["leakage"]


def test_budgets_per_user_and_a_cap_are_kept_and_certified(sfumato, places, tmp_path):
    budgets = ("--user-max-loss", "anna=120,ben=60,cleo=90", "--max-distance", 200)
    ended = sfumato("solve", places, *budgets, *EXACT, "--out", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    for user in ended.document["per_user"]:
        assert user["loss"] <= {"anna": 120, "ben": 60, "cleo": 90}[user["user"]] * (1 + 1e-9)
    found = sfumato("certify", tmp_path / "run", "--json").document
    assert (
        found["max_loss"] is None
        and found["max_distance"] == 200
        and found["user_max_loss"] == {"anna": 120, "ben": 60, "cleo": 90}
    )
    assert 0 <= found["gap"] <= 1.1e-3
    assert "the budgets per user and 200 m at most" in found["sentence"]


def test_one_budget_for_every_user_is_named_once(sfumato, places, tmp_path):
    sfumato("solve", places, "--user-max-loss", 90, *EXACT, "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["user_max_loss"] == {"anna": 90, "ben": 90, "cleo": 90}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--max-loss", 5], "the smallest possible loss is"),
        (["--max-distance", 5], "the smallest possible cap is"),
        (
            ["--user-max-loss", "anna=200,ben=3,cleo=200"],
            "keep user ben within 3 m: the smallest possible budget is",
        ),
        (["--user-max-loss", "anna=200,dora=200"], "no user is called 'dora'"),
        (["--user-max-loss", "anna=200,ben=200"], "'cleo' has none"),
        (["--min-bayes-error", 0.9], "largest possible is 0.666"),
        (["--min-bayes-error", 0.5, "--max-loss", 90], "does not go with --max-loss"),
        (["--min-bayes-error", 0.5, "--objective", "information"], "goes with the objective bayes"),
        ([], "a problem needs a budget"),
        (["--max-loss", 90, "--objective", "entropy"], "unknown objective 'entropy'"),
    ],
)
def test_what_cannot_be_kept_is_said_in_one_sentence(sfumato, places, tmp_path, arguments, reason):
    ended = sfumato("solve", places, *arguments, *EXACT, "--out", tmp_path / "run")
    assert ended.code == 2 and reason in ended.err and not (tmp_path / "run").exists()


def test_the_smallest_loss_for_a_bayes_error(sfumato, places, tmp_path):
    ended = sfumato(
        "solve", places, "--min-bayes-error", 0.45, *EXACT, "--out", tmp_path / "run", "--json"
    )
    assert ended.document["bayes_error"]["value"] >= 0.45 - 1e-9
    assert "no mechanism on this grid reaches it below" in ended.document["status"]
    refused = sfumato("certify", tmp_path / "run")
    assert refused.code == 2 and "its status says what is proved" in refused.err


def test_words_go_through_solve_measure_compare_and_certify(sfumato, survey, tmp_path):
    table, losses = survey
    for objective in ("bayes", "information"):
        arguments = (
            table,
            "--losses",
            losses,
            "--max-loss",
            0.6,
            "--objective",
            objective,
            "--solver",
            "exact",
        )
        ended = sfumato("solve", *arguments, "--out", tmp_path / objective, "--json")
        assert ended.code == 0, ended.err
        assert ended.document["loss"]["value"] <= 0.6 * (1 + 1e-9)
    measured = sfumato("measure", tmp_path / "bayes", "--gain", "guess-or-pass", "--json").document
    assert measured["bayes_error"]["kind"] == "exact" and measured["geo_epsilon"] is None
    compared = sfumato("compare", tmp_path / "bayes", tmp_path / "information", "--json").document
    errors = [row["bayes_error"]["value"] for row in compared["mechanisms"]]
    assert errors[0] >= errors[1] - 1e-3
    assert all(row["proved_on_training_data"]["gap"] < 2e-3 for row in compared["mechanisms"])
    assert "3 truths and 2 secrets" in sfumato("compare", tmp_path / "bayes").out
    found = sfumato("certify", tmp_path / "bayes", "--json").document
    assert found.keys() >= KEYS and found["bound_plane"] is None and 0 <= found["gap"] <= 1.1e-3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--solver", "laplace"], "holds categories"),
        (["--solver", "coin"], "holds categories"),
        (["--solver", "exact", "--cell-m", 25], "takes no cells"),
        (["--solver", "exact", "--top-users", 2], "takes no selection"),
    ],
)
def test_what_makes_no_sense_for_words_is_refused(sfumato, survey, tmp_path, arguments, reason):
    ended = sfumato(
        "solve",
        survey[0],
        "--losses",
        survey[1],
        "--max-loss",
        0.6,
        *arguments,
        "--out",
        tmp_path / "run",
    )
    assert ended.code == 2 and reason in ended.err


def test_the_frontier_as_json_and_as_a_figure(sfumato, places, tmp_path):
    sfumato("solve", places, "--max-loss", 90, *EXACT, "--out", tmp_path / "mine")
    options = (
        "--from",
        60,
        "--to",
        150,
        "--points",
        4,
        "--cell-m",
        70,
        "--run",
        tmp_path / "mine",
        "--figure",
        tmp_path / "f.svg",
    )
    ended = sfumato("frontier", places, *options, "--json")
    assert ended.code == 0, ended.err
    plan, news = ended.err.index("plan: a frontier at 4 budgets"), ended.err.index("at most ")
    assert plan < news and "GB of memory" in ended.err  # before minutes are spent
    found = ended.document
    assert [point["max_loss"] for point in found["points"]] == [60, 90, 120, 150]
    for point in found["points"]:
        assert point["bayes_error"]["value"] <= point["bayes_error"]["bound"] + 1e-12
        assert point["information_bits"]["value"] >= point["information_bits"]["bound"] - 1e-12
    errors = [point["bayes_error"]["value"] for point in found["points"]]
    assert errors == sorted(errors)
    assert found["gap"]["bayes_error"] <= 0.005 + 1e-9 and found["cell_m"] == 70
    placed = {one["name"]: one for one in found["placed"]}
    assert placed.keys() == {"coin", "laplace", "mine"}
    assert placed["mine"]["bayes_error"] == pytest.approx(errors[1], abs=0.006)
    assert Path(tmp_path / "f.svg").read_text().lstrip().startswith("<?xml")
    asked = ("--from", 60, "--to", 75, "--points", 2, "--cell-m", 70)
    hurried = sfumato("frontier", places, *asked, "--time-limit", 0.001)
    assert "the time was up before both curves were within 0.005" in hurried.err


def test_the_frontier_of_linked_reports(sfumato, places, tmp_path):
    options = ("--from", 40, "--to", 90, "--points", 2, "--cell-m", 70, "--reports", "3,endless")
    figure = tmp_path / "linked.svg"
    ended = sfumato("frontier", places, *options, "--json", "--figure", figure)
    assert ended.code == 0, ended.err
    assert "how long it takes is not known beforehand" in ended.err
    found = json.loads(ended.out)
    assert found["reports"] == [3] and len(found["points"]) in (2, 3)
    assert found["endless_budget"]["bound"] <= found["endless_budget"]["loss"]
    assert "linking is useless" in figure.read_text()
    ended = sfumato("frontier", places, *options, "--run", tmp_path)
    assert ended.code == 2 and "does not go with --run" in ended.err
    ended = sfumato("frontier", places, *options[:-1], "1,few")
    assert ended.code == 2 and "'few' is not a number of reports" in ended.err


def test_the_frontier_prints_a_table_and_draws_a_figure(sfumato, places, tmp_path):
    ended = sfumato(
        "frontier",
        places,
        "--from",
        80,
        "--to",
        120,
        "--points",
        2,
        "--cell-m",
        70,
        "--figure",
        tmp_path / "f.png",
    )
    assert (
        "max loss m" in ended.out
        and "users; reports on 70 m cells; proved to 0.0" in ended.out
        and "coin" in ended.out
    )
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--from", 5, "--to", 100], "no mechanism stays below"),
        (["--from", 100, "--to", 50], "expected the first below the last"),
        (["--from", 80, "--to", 120, "--figure", "f.gif"], "expected .png or .svg"),
    ],
)
def test_a_frontier_that_cannot_be_is_refused(
    sfumato, places, tmp_path, monkeypatch, arguments, reason
):
    monkeypatch.chdir(tmp_path)
    ended = sfumato("frontier", places, *arguments, "--points", 2, "--cell-m", 70)
    assert ended.code == 2 and reason in ended.err


def test_a_mechanism_over_the_budget_that_its_record_names_is_called_so(sfumato, places, tmp_path):
    """The record is rewritten, checksum and all, for a smaller budget: its gap would look better
    than any mechanism's can be."""
    run = tmp_path / "run"
    solved = sfumato("solve", places, "--max-loss", 90, "--solver", "coin", "--out", run)
    assert solved.code == 0, solved.err
    honest = sfumato("certify", run, "--gap", 0.05, "--json")
    assert honest.document["within_budgets"] is True and "over its own" not in honest.out
    (run / "certificate.npz").unlink()
    replace(load_run(run).record, max_loss=40.0).write(run / "run.json")
    ended = sfumato("certify", run, "--gap", 0.05, "--json")
    assert ended.code == 0, ended.err
    assert ended.document["within_budgets"] is False
    assert ended.document["loss"] == pytest.approx(90, abs=0.5)
    assert "It is over its own budget (its average loss is 9" in ended.document["sentence"]


def test_a_mechanism_beyond_the_cap_that_its_record_names_is_called_so(sfumato, places, tmp_path):
    run = tmp_path / "run"
    solved = sfumato("solve", places, "--max-loss", 90, "--solver", "coin", "--out", run)
    assert solved.code == 0, solved.err
    replace(load_run(run).record, max_distance=150.0).write(run / "run.json")
    ended = sfumato("certify", run, "--gap", 0.05, "--json")
    assert ended.code == 0, ended.err
    assert ended.document["within_budgets"] is False
    assert "It is over its own cap on the distance" in ended.document["sentence"]


def test_the_training_part_alone_proves_what_any_mechanism_can_do(sfumato, places, tmp_path):
    asked = ("solve", places, "--max-loss", 120, *EXACT, "--out", tmp_path / "run")
    solved = sfumato(*asked, "--bound-to-come", "--json")
    assert solved.code == 0
    ended = sfumato("certify", tmp_path / "run", "--data", "train", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert solved.document["bound_to_come"] == found
    assert found["kind"] == "population, cross-fitted" and found["confidence"] == 0.95
    assert 0 < found["judged"] < 45
    assert 1 / 3 <= found["least_leakage"] <= 1
    ended = sfumato("certify", tmp_path / "run", "--data", "train")
    assert "no mechanism on this grid within the budgets" in ended.out
    refused = sfumato("certify", tmp_path / "run", "--data", "train", "--data-seed", 1)
    assert refused.code == 2 and "goes with neither" in refused.err


@pytest.mark.parametrize(
    "other", [("--losses", "losses.csv"), ("--min-bayes-error", 0.5), ("--reports", 3)]
)
def test_a_bound_to_come_needs_check_ins_and_a_budget(sfumato, places, tmp_path, other):
    ended = sfumato("solve", places, *other, "--bound-to-come", "--out", tmp_path / "run")
    assert ended.code == 2 and f"does not go with {other[0]}" in ended.err
    assert not (tmp_path / "run").exists()
