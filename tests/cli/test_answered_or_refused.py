"""Odd data, runs and options: each is answered with the right number or refused with a sentence."""

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import FileError, ProblemError


@pytest.fixture
def small(tmp_path):
    """Three users of two points each, in plane metres."""
    path = tmp_path / "small.csv"
    path.write_text("user,x,y\na,0,0\na,30,10\nb,100,0\nb,120,20\nc,50,90\nc,60,100\n")
    return path


def test_a_folder_with_a_run_json_of_somebody_else_is_not_replaced(sfumato, small, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "run.json").write_text('{"tool": "other"}')
    (tmp_path / "project" / "thesis.txt").write_text("precious")
    ended = sfumato(
        "solve", small, "--max-loss", 50, "--solver", "coin", "--out", tmp_path / "project"
    )
    assert ended.code == 2 and (tmp_path / "project" / "thesis.txt").read_text() == "precious"


def test_an_earlier_run_is_replaced_only_when_asked(sfumato, small, tmp_path):
    asked = ("solve", small, "--max-loss", 50, "--solver")
    first = sfumato(*asked, "laplace", "--out", tmp_path / "run")
    second = sfumato(*asked, "coin", "--out", tmp_path / "run")
    assert first.code == 0 and second.code == 2
    assert "holds a run; name another folder, or set --replace" in second.err
    assert sf.load_run(tmp_path / "run").record.solver == "laplace"
    assert sfumato(*asked, "coin", "--out", tmp_path / "run", "--replace").code == 0
    assert sf.load_run(tmp_path / "run").record.solver == "coin"


def test_an_empty_folder_is_written_to(sfumato, small, tmp_path):
    (tmp_path / "run").mkdir()  # as a job leaves it that was killed before its first checkpoint
    asked = ("solve", small, "--max-loss", 50, "--solver", "coin", "--out", tmp_path / "run")
    assert sfumato(*asked).code == 0
    assert sf.load_run(tmp_path / "run").record.solver == "coin"


def test_a_cap_keeps_cells_outside_the_hull():
    truth = np.array(
        [
            [-968.7744386211364, -206.5473850375109],
            [983.8114101027495, 226.35965274684153],
            [982.8329526431986, 226.15296215719297],
        ]
    )
    samples = sf.Samples(secret=[0, 1, 1], truth=truth, secrets=("a", "b"))
    problem = sf.Problem(
        samples, max_distance=1000.6123125366787, region=sf.data.Region((0.0, 0.0), 2200.0)
    )
    solution = sf.solve(problem, sf.Exact(plane=False))
    assert solution.leakage == pytest.approx(
        2 / 3, abs=2e-3
    )  # one cell within the cap of all three: a blind guess


def test_runs_of_another_plane_are_not_compared_silently(sfumato, tmp_path):
    random = np.random.default_rng(1)
    rows = [
        f"{user},{48.85 + 0.01 * north},{2.31 + 0.01 * east}"
        for user in "ab"
        for north, east in random.normal(0, 1, (9, 2))
    ]
    (tmp_path / "ll.csv").write_text("user,lat,lon\n" + "\n".join(rows) + "\n")
    sfumato(
        "solve", tmp_path / "ll.csv", "--max-loss", 100, "--solver", "coin", "--out", tmp_path / "A"
    )
    sfumato(
        "solve",
        tmp_path / "ll.csv",
        "--square",
        "48.855,2.31,9000",
        "--max-loss",
        100,
        "--solver",
        "coin",
        "--out",
        tmp_path / "B",
    )
    ended = sfumato("compare", tmp_path / "A", tmp_path / "B")
    assert ended.code == 2 and "planes with different centres" in ended.err


def test_a_gain_that_nothing_can_change_is_refused():
    samples = sf.Samples(
        secret=[0, 1], truth=np.array([[0.0, 0.0], [100.0, 0.0]]), secrets=("a", "b")
    )
    with pytest.raises(ProblemError, match="leaks the same whatever is reported"):
        sf.solve(
            sf.Problem(samples, max_loss=50, objective=sf.measure.Gain("two-guesses")), sf.Exact()
        )


def test_a_law_too_large_to_work_out_is_sampled(monkeypatch):
    monkeypatch.setattr("sfumato.mechanism.laplace._MOST_CELLS", 1.0)
    data = sf.four_corners(0).train.split(20).train
    solution = sf.solve(sf.Problem(data, max_loss=173, cell_m=100), sf.Laplace())
    assert solution.measured.bayes_error.kind == "estimate"


def test_007_and_7_are_two_users(sfumato, tmp_path):
    (tmp_path / "p.csv").write_text("person,x,y\n007,0,0\n007,1,0\n7,100,0\n7,101,3\nNA,5,5\n")
    found = sfumato(
        "data", tmp_path / "p.csv", "--secret", "person", "--out", tmp_path / "q.csv", "--json"
    ).document
    assert found["users"] == {"007": 2, "7": 2, "NA": 1}


def test_words_are_kept_apart_and_weights_are_checked(tmp_path):
    losses = tmp_path / "losses.csv"
    losses.write_text(
        "truth,report,loss\n"
        + "".join(
            f"{truth},{report},{int(truth != report)}\n"
            for truth in ("01", "1")
            for report in ("01", "1")
        )
    )
    table = tmp_path / "table.csv"
    table.write_text("secret,truth,probability\na,01,0.5\nb,1,0.5\n")
    assert sf.read_categories(table, losses).truths == ("01", "1")
    table.write_text("secret,truth,probability\na,01,-0.1\na,01,0.6\nb,1,0.5\n")
    with pytest.raises(sf.SfumatoError, match="negative"):
        sf.read_categories(table, losses)
    table.write_text("secret,truth,probability\na,01,0.1\nb,1,0.2\n")
    with pytest.raises(sf.SfumatoError, match=r"sum to 0\.3"):
        sf.read_categories(table, losses)


@pytest.mark.parametrize("gap", ["nan", "-5", "0"])
def test_a_frontier_to_no_gap_is_refused(sfumato, small, gap):
    ended = sfumato("frontier", small, "--from", 30, "--to", 60, "--points", 3, "--gap", gap)
    assert ended.code == 2 and "the gap must be above 0" in ended.err


@pytest.mark.parametrize(
    "name, value",
    [
        ("data", []),
        ("region", 5),
        ("grid", {"cell_m": 25}),
        ("max_loss", "fifty"),
        ("loss_function", 3),
    ],
)
def test_a_damaged_run_record_is_refused(sfumato, small, tmp_path, name, value):
    sfumato("solve", small, "--max-loss", 50, "--solver", "coin", "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**record, name: value}))
    with pytest.raises(FileError):
        sf.load_run(tmp_path / "run")


def test_text_in_a_truth_column_is_named(sfumato, tmp_path):
    (tmp_path / "t.csv").write_text("user,x,y,truth_x,truth_y\na,0,0,foo,1\nb,5,5,2,3\n")
    ended = sfumato("measure", tmp_path / "t.csv")
    assert ended.code == 2 and "'foo'" in ended.err


def test_rounding_does_not_make_a_channel_refuse_a_truth():
    reports = [[37, 83], [40, 78], [31, 23], [79, 87], [7, 5], [67, 33]]
    channel = sf.mechanism.Channel(
        [[4, 8]], reports, [[0.1, 0.2, 0.3, 0.40000000000000024, 0, 0]], nearest=True
    )
    assert channel.sample([57.0, 15.0], seed=1).shape == (2,)


def test_a_mechanism_off_the_grid_is_held_against_the_plane():
    data = sf.four_corners(0).train.split(10).train
    problem = sf.Problem(data, max_loss=173, cell_m=100)
    coin, exact = sf.compare([sf.solve(problem, sf.Coin()), sf.solve(problem, sf.Exact())]).rows
    assert exact.gap is not None and exact.gap.on_grid and 0 <= exact.gap.value <= 2e-3
    assert (
        coin.gap is not None
        and not coin.gap.on_grid
        and coin.gap.value == coin.gap.leakage - coin.gap.bounds.plane > 0
    )


def test_pairs_are_a_mechanism_for_measure_and_compare(sfumato, tmp_path):
    data = sf.four_corners(0).train
    pairs = np.hstack([data.truth, np.zeros_like(data.truth)])
    np.savetxt(
        tmp_path / "pairs.csv",
        pairs,
        delimiter=",",
        header="truth_x,truth_y,report_x,report_y",
        comments="",
    )
    found = sfumato(
        "measure", tmp_path / "pairs.csv", "--data", "four-corners", "--hits", 2, "--json"
    ).document
    assert found["bayes_error"]["value"] == pytest.approx(0.75) and found["loss"][
        "value"
    ] == pytest.approx(214, abs=3)
    ended = sfumato("compare", tmp_path / "pairs.csv", "--data", "four-corners", "--hits", 2)
    assert ended.code == 0 and "pairs" in ended.out


def test_adversaries_are_trained_on_pairs_too(sfumato, tmp_path):
    data = sf.four_corners(0).train.split(20).train
    pairs = np.hstack([data.truth, data.truth])
    np.savetxt(
        tmp_path / "pairs.csv",
        pairs,
        delimiter=",",
        header="truth_x,truth_y,report_x,report_y",
        comments="",
    )
    (found,) = sfumato(
        "measure",
        tmp_path / "pairs.csv",
        "--data",
        "four-corners",
        "--hits",
        2,
        "--attack",
        "cells",
        "--json",
    ).document["adversaries"]
    assert (
        found["adversary"] == "cells" and found["validation"]["accuracy"] > 0.9
    )  # the truth is sent: four users far apart


def test_hits_of_reports_that_were_drawn_already_are_refused(sfumato, small):
    ended = sfumato("measure", small, "--hits", 7)
    assert (
        ended.code == 2
        and ended.out == ""
        and "small.csv holds reports that were drawn already; leave --hits out" in ended.err
    )


@pytest.mark.parametrize("column", ["--secret", "--lat", "--lon"])
def test_four_corners_has_no_columns_to_name(sfumato, tmp_path, column):
    ended = sfumato("data", "four-corners", column, "who", "--out", tmp_path / "data.csv")
    assert (
        ended.code == 2
        and "four-corners has no columns to choose from" in ended.err
        and not list(tmp_path.iterdir())
    )


def test_two_budgets_of_one_user_are_refused(sfumato, small, tmp_path):
    ended = sfumato(
        "solve",
        small,
        "--user-max-loss",
        "a=200,b=90,c=90,a=300",
        "--solver",
        "exact",
        "--out",
        tmp_path / "run",
    )
    assert (
        ended.code == 2
        and "gives a user two budgets; write one for each user" in ended.err
        and not (tmp_path / "run").exists()
    )


def test_sfumato_alone_prints_its_help(sfumato):
    ended = sfumato()
    assert ended.code == 0 and "Commands:" in ended.out and "error" not in ended.err
