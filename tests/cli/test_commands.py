"""The commands do what their help says."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import _COMMANDS
from sfumato.cli.sanitize import _cost
from sfumato.data.recipe import Recipe
from sfumato.render.text import posterior
from sfumato.study.folder import load_run

KEYS = {
    "max_loss",
    "loss",
    "bayes_error",
    "information_bits",
    "exposed",
    "exposed_estimate",
    "per_user",
    "status",
    "seconds",
}
ESTIMATE = {"value", "low", "high", "kind", "cell_m", "hits"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of both baselines on some of four-corners, on coarse cells to be quick."""
    folder = tmp_path_factory.mktemp("runs")
    recipe = Recipe("four-corners", per_user=(60, 20))
    problem = sf.Problem(recipe.load().train, max_loss=173, cell_m=100)
    for solver in (sf.Laplace(), sf.Coin()):
        sf.solve(problem, solver).save(folder / solver.name, recipe=recipe)
    return folder


def test_help_answers_within_half_a_second_and_without_jax():
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "sfumato", "-h"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "demo" in done.stdout
    assert "numpy" not in done.stderr and "jax" not in done.stderr
    assert time.perf_counter() - start < 5  # 0.2 s alone; generous on a busy machine


def test_the_version_is_the_packages(sfumato):
    assert sfumato("--version").out.strip() == f"sfumato {sf.__version__}"


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_help_ends_with_an_example(sfumato, name):
    ended = sfumato(name, "-h")
    assert ended.code == 0
    assert "Example: sfumato " in ended.out.strip().splitlines()[-1]


_ELSEWHERE = ("serve", "studio", "demo", "policy")  # in tests/deploy, studio, docs, test_traces


@pytest.mark.parametrize("name", [name for name in _COMMANDS if name not in _ELSEWHERE])
def test_the_examples_of_the_help_run(sfumato, name, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name in ("measure", "compare", "certify", "assess", "sanitize", "export"):
        (tmp_path / "runs").symlink_to(runs)
    else:  # the same four corners, fewer points
        monkeypatch.setattr("sfumato.data.synthetic._TRAIN", 60)
        monkeypatch.setattr("sfumato.data.synthetic._TEST", 20)
    if name == "sanitize":
        (tmp_path / "checkins.csv").write_text("user,lat,lon\nann,48.857,2.347\n")
    last = sfumato(name, "-h").out.strip().splitlines()[-1]
    example = shlex.split(last.strip().removeprefix("Example: "))
    # the demo runs it whole
    quick = ("--steps", "20", "--proof", "none") if name == "solve" else ()
    ended = sfumato(*example[1:], *quick)
    assert ended.code == 0, ended.err


def test_solve_json_is_one_document_with_the_promised_keys(sfumato, tmp_path):
    ended = sfumato(
        "solve",
        "four-corners",
        "--max-loss",
        173,
        "--solver",
        "coin",
        "--out",
        tmp_path / "run",
        "--json",
    )
    assert ended.code == 0
    assert ended.document.keys() >= KEYS
    for name in ("loss", "bayes_error", "information_bits"):
        assert ended.document[name].keys() >= ESTIMATE
        assert ended.document[name]["kind"] == "exact"
    assert ended.document["bayes_error"]["value"] == pytest.approx(
        0.609, abs=0.005
    )  # notes: the coin in experiment 2
    assert ended.document["loss"]["value"] <= 173 * (1 + 1e-9)
    assert [user["user"] for user in ended.document["per_user"]] == [
        "blue",
        "red",
        "green",
        "yellow",
    ]
    assert (
        ended.document["test"]["learnt_error"]["value"]
        >= ended.document["test"]["bayes_error"]["value"] - 1e-12
    )


def test_measure_of_a_run_repeats_what_solve_said(sfumato, runs):
    record = json.loads((runs / "laplace" / "run.json").read_text())
    ended = sfumato("measure", runs / "laplace", "--json")
    assert ended.document.keys() >= KEYS
    assert ended.document["bayes_error"]["value"] == pytest.approx(
        record["train"]["bayes_error"]["value"], abs=1e-12
    )
    assert ended.document["loss"]["value"] == pytest.approx(
        record["train"]["loss"]["value"], abs=1e-9
    )


def test_measure_on_larger_cells_never_lowers_the_bayes_error(sfumato, runs):
    fine = sfumato("measure", runs / "laplace", "--json").document["bayes_error"]
    coarse = sfumato("measure", runs / "laplace", "--cell-m", 500, "--json").document["bayes_error"]
    assert coarse["cell_m"] == 500 and fine["cell_m"] == 100
    assert coarse["value"] >= fine["value"]


def test_measure_takes_reports_of_any_mechanism(sfumato, tmp_path):
    random = np.random.default_rng(3)
    rows = ["secret,x,y,truth_x,truth_y"]
    for secret, centre in (("anna", 0.0), ("ben", 1000.0)):
        rows += [
            f"{secret},{centre + x:.3f},{y:.3f},{centre},0"
            for x, y in random.normal(0, 5, (400, 2))
        ]
    (tmp_path / "reports.csv").write_text("\n".join(rows))
    found = sfumato(
        "measure", tmp_path / "reports.csv", "--attack", "cells", "--attack", "neighbours", "--json"
    ).document
    assert found["bayes_error"]["value"] == 0 and found["bayes_error"]["kind"] == "estimate"
    assert found["information_bits"]["value"] == pytest.approx(1)
    assert found["loss"]["value"] == pytest.approx(
        5 * np.sqrt(np.pi / 2), rel=0.1
    )  # mean of a Rayleigh law
    assert all(attack["test"]["accuracy"] == 1 for attack in found["adversaries"])


def test_measure_judges_on_all_of_another_file(sfumato, runs, tmp_path):
    assert (
        sfumato("data", "four-corners", "--data-seed", 5, "--out", tmp_path / "other.parquet").code
        == 0
    )
    found = sfumato(
        "measure", runs / "laplace", "--data", tmp_path / "other.parquet", "--json"
    ).document
    assert found["on"] == "other.parquet" and found["test"] is None
    assert found["loss"]["value"] == pytest.approx(173, rel=0.01)


def test_compare_writes_a_table_and_a_page(sfumato, runs, tmp_path):
    ended = sfumato("compare", runs / "laplace", runs / "coin", "--html", tmp_path / "report.html")
    assert ended.code == 0
    assert "laplace" in ended.out and "coin" in ended.out and "loss" in ended.out
    assert "true locations" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_data_written_can_be_read_again(sfumato, tmp_path, ending):
    path = tmp_path / f"four.{ending}"
    assert sfumato("data", "four-corners", "--out", path, "--json").document["train"] == 1920
    again, data = sf.read_checkins(path), sf.four_corners(0)
    assert len(again) == 2400
    assert np.ptp(again.truth[:, 0]) == pytest.approx(np.ptp(data.all.truth[:, 0]), abs=0.01)


def test_a_split_written_without_asking_is_all_training_data_and_says_so(sfumato, tmp_path):
    path = tmp_path / "four.csv"
    sfumato("data", "four-corners", "--out", path)
    ended = sfumato(
        "solve", path, "--max-loss", 173, "--solver", "coin", "--out", tmp_path / "run", "--json"
    )
    assert ended.document["test"] is None
    assert "split" in ended.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["data"]["rows"] == 2400


def test_run_folder_holds_no_pickle(runs):
    for path in Path(runs).rglob("*"):
        assert path.suffix in ("", ".json", ".npz", ".jsonl")
    np.load(runs / "coin" / "mechanism.npz", allow_pickle=False).close()


def test_solve_says_where_the_data_lie_so_that_swapped_columns_show(sfumato, tmp_path):
    (tmp_path / "in.csv").write_text(
        "user,lat,lon\na,18.061,59.331\na,18.063,59.331\nb,18.061,59.333\nb,18.063,59.333\n"
    )
    ended = sfumato(
        "solve",
        tmp_path / "in.csv",
        "--max-loss",
        300,
        "--solver",
        "coin",
        "--out",
        tmp_path / "run",
    )
    assert "4 check-ins of 2 users around latitude 18.06, longitude 59.33" in ended.err
    assert "; it takes about 10 seconds of one core and 0.2 GB of memory" in ended.err


def test_measure_says_what_other_data_take_and_refuses_what_does_not_fit(
    sfumato, runs, monkeypatch
):
    asked = ("measure", runs / "coin", "--data", "four-corners")
    ended = sfumato(*asked)
    assert "plan: measure coin on 2,400 check-ins of 4 users" in ended.err
    assert "; it takes about 10 seconds of one core and 0.2 GB of memory" in ended.err
    assert "plan:" not in sfumato("measure", runs / "coin").err  # judged when it was made
    monkeypatch.setattr("sfumato.memory.free_bytes", lambda: 1e8)
    refused = sfumato(*asked)
    assert refused.code == 2
    assert "measuring on 2,400 check-ins of 4 users needs about 0.2 GB" in refused.err
    assert "take larger cells (--cell-m), or measure on fewer users" in refused.err


SOON_LEARNED = (
    *("solve", "four-corners", "--per-user", "30+10", "--max-loss", 150, "--cell-m", 50),
    *("--places", 12, "--steps", 100, "--proof", "none"),
)


def test_learning_stopped_by_hand_is_kept_and_says_how_to_go_on(sfumato, tmp_path, monkeypatch):
    def stop(line, **options):
        if "folds" not in line:
            raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.render.text.round_text", stop)
    ended = sfumato(*SOON_LEARNED, "--out", tmp_path / "run")
    assert ended.code == 130 and "Stopped by hand at 5%" in ended.out
    assert f"--resume {tmp_path / 'run'} in place of --out" in ended.err


def test_cross_fitting_stopped_by_hand_is_resumed(sfumato, tmp_path, monkeypatch):
    def stop(line, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.render.text.round_text", stop)
        patch.setattr("os._exit", sys.exit)  # this process goes on
        ended = sfumato(*SOON_LEARNED, "--out", tmp_path / "run")
    assert ended.code == 130 and not (tmp_path / "run" / "run.json").exists()
    assert f"--resume {tmp_path / 'run'} in place of --out" in ended.err
    ended = sfumato(*SOON_LEARNED, "--resume", tmp_path / "run")
    assert ended.code == 0 and "\n10% of the" not in f"\n{ended.err}"  # it does not begin anew
    assert "20% of the learning on 4 folds" in ended.err and "100% learned" in ended.err


def test_a_worst_report_that_is_not_certain_does_not_read_as_certain():
    assert [posterior(value) for value in (0.917, 0.9949, 0.998, 1 - 1e-9, 1.0)] == [
        "0.92",
        "0.99",
        ">0.99",
        ">0.99",
        "1.00",
    ]


def test_export_says_how_to_open_the_page(sfumato, runs, tmp_path):
    ended = sfumato("export", runs / "laplace", tmp_path / "dist", "--page")
    assert f"python -m http.server --bind localhost --directory {tmp_path / 'dist'}" in ended.out
    assert "warning" not in ended.out


def test_one_mechanism_is_compared_and_an_absent_one_is_named(sfumato, runs, tmp_path):
    assert "comparing 1 mechanism …" in sfumato("compare", runs / "coin").err
    absent = sfumato("measure", tmp_path / "nowhere").err
    assert f"there is no file or folder {tmp_path / 'nowhere'}; expected a run folder" in absent


def test_export_warns_of_a_mechanism_that_reports_the_truth(sfumato, runs, tmp_path):
    ended = sfumato("export", runs / "coin", tmp_path / "dist")
    share = load_run(runs / "coin").mechanism.keep
    assert f"warning: it reports the true place {share:.1%} of the time" in ended.out


def test_a_refused_table_leaves_no_new_key_and_spares_an_old_one(sfumato, runs, tmp_path):
    table, key = tmp_path / "far.csv", tmp_path / "key"
    table.write_text("user,time,lat,lon\nann,2010-10-19T23:55:27Z,10.0,2.347\n")
    words = ("sanitize", runs / "laplace", table, tmp_path / "out.csv", "--drop", "user")
    for more in ((), ("--sticky-cell-m", "-5")):
        ended = sfumato(*words, "--sticky", "day", "--key", key, *more)
        assert ended.code == 2 and not key.exists() and key.name not in ended.err
    key.write_text("00" * 32 + "\n")
    key.chmod(0o600)
    assert sfumato(*words, "--sticky", "day", "--key", key).code == 2
    assert key.read_text() == "00" * 32 + "\n"


@pytest.mark.parametrize("told", [True, False])
def test_rows_in_the_order_of_a_coordinate_are_named(sfumato, runs, tmp_path, told):
    """The reports are noise about a rising line, which whoever has all of them finds."""
    rows = [f"{48.85 + k / 5000:.4f},{2.34 + k * 7 % 30 / 5000:.4f}\n" for k in range(30)]
    rows = rows if told else rows[15:] + rows[:15]
    (tmp_path / "in.csv").write_text("lat,lon\n" + "".join(rows))
    words = ("sanitize", runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    ended = sfumato(*words, "--outside", "laplace")
    assert ended.code == 0 and ("in the order of a true coordinate" in ended.err) is told
    record = json.loads((tmp_path / "out.csv.record.json").read_text())
    assert record["rows_in_order_of_place"] is told


@pytest.mark.parametrize(("order", "told"), [("users", True), ("mixed", False)])
def test_rows_that_stay_together_by_user_are_named(sfumato, runs, tmp_path, order, told):
    rows = [f"{user},48.85{k}7,2.34{k}7\n" for user in ("ann", "bob", "cy") for k in range(9)]
    rows = rows if order == "users" else [row for k in range(9) for row in rows[k::9]]
    (tmp_path / "in.csv").write_text("user,lat,lon\n" + "".join(rows))
    words = ("sanitize", runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    ended = sfumato(*words, "--drop", "user", "--outside", "laplace")
    assert ended.code == 0 and ("rows of one user are next to each other" in ended.err) is told
    record = json.loads((tmp_path / "out.csv.record.json").read_text())
    assert record["rows_of_one_user_together"] is told


@pytest.mark.parametrize(("user", "told"), [("--drop", True), ("--keep", False)])
def test_a_column_that_links_rows_of_a_dropped_user_is_named(sfumato, runs, tmp_path, user, told):
    rows = [
        f"user{k % 9},48.85{k % 7}7,2.34{k % 5}7,{hash((k % 9, k // 27)) % 10**6},{k % 4}\n"
        for k in range(189)
    ]
    (tmp_path / "in.csv").write_text("user,lat,lon,trace,price\n" + "".join(rows))
    words = ("sanitize", runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    ended = sfumato(*words, user, "user", "--outside", "laplace")
    assert ended.code == 0, ended.err
    said = "rows with the same value of 'trace' are of one user"
    assert (said in ended.err) is told and ("--drop trace" in ended.err) is told
    record = json.loads((tmp_path / "out.csv.record.json").read_text())
    assert record["columns_that_link_rows"] == ["trace"] * told


def test_a_table_a_little_over_its_budget_says_by_how_much_and_a_short_one_why_it_does_not():
    record = {"loss_unit": "m", "mechanism": {"max_loss": 200.0}, "loss_over_budget": False}
    said = [
        _cost({**record, "loss_of_this_table": loss, "loss_over_budget": over})
        for loss, over in ((None, False), (199.0, False), (205.4, False), (230.0, True))
    ]
    assert said == [
        "; no mean loss: of fewer than 1,000 rows inside the region it could reveal single places",
        ", 199 m off on average (budget 200 m)",
        ", 205.4 m off on average (budget 200 m, 2.7% over it, which chance explains)",
        ", 230 m off on average (budget 200 m, 15.0% over it)",
    ]
