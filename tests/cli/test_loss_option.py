"""`sfumato solve --loss`: the loss is chosen by name, and its unit follows into every table."""

import json
from pathlib import Path

import pytest

from sfumato.mechanism.loss import LOSSES

WORDS = Path(__file__).resolve().parents[2] / "examples/words"


@pytest.mark.parametrize("solver", ["coin", "laplace"])
def test_a_squared_loss_is_solved_recorded_and_shown_in_square_metres(sfumato, tmp_path, solver):
    run = tmp_path / "run"
    asked = ("four-corners", "--per-user", "50+20", "--loss", "squared", "--max-loss", 40_000)
    solved = sfumato("solve", *asked, "--cell-m", 100, "--solver", solver, "--out", run)
    assert solved.code == 0
    assert "budget 40000 m² " in solved.out and "loss m²" in solved.out
    record = json.loads((run / "run.json").read_text("utf-8"))
    assert record["loss_function"] == "squared"
    measured = sfumato("measure", run)
    loss = sfumato("measure", run, "--json").document["loss"]["value"]
    assert 30_000 < loss <= 40_000 * (1 + 1e-9)
    assert "loss m²" in measured.out and "loss m " not in measured.out
    assert "loss m²" in sfumato("compare", run).out


def test_runs_with_different_losses_each_show_their_own_unit(sfumato, tmp_path):
    for loss, budget in (("euclidean", 173), ("squared", 40_000)):
        asked = ("four-corners", "--loss", loss, "--max-loss", budget, "--cell-m", 100)
        assert sfumato("solve", *asked, "--solver", "coin", "--out", tmp_path / loss).code == 0
    table = sfumato("compare", tmp_path / "euclidean", tmp_path / "squared").out
    shown = {line.split()[0]: line.split()[2] for line in table.splitlines()[1:3]}
    assert shown == {"euclidean": "m", "squared": "m²"}


def test_every_loss_is_recorded_under_the_name_that_it_is_chosen_by():
    assert {name: traits.function.__name__ for name, traits in LOSSES.items()} == {
        name: name for name in LOSSES
    }


def test_an_unknown_loss_and_a_loss_for_words_are_refused(sfumato, tmp_path):
    unknown = ("solve", "four-corners", "--loss", "cubed", "--max-loss", 173)
    ended = sfumato(*unknown, "--out", tmp_path / "run")
    assert ended.code == 2 and "'cubed' is not one of 'euclidean', 'squared'" in ended.err
    words = ("solve", WORDS / "survey.csv", "--losses", WORDS / "losses.csv", "--max-loss", 1)
    ended = sfumato(*words, "--loss", "euclidean", "--out", tmp_path / "run")
    assert ended.code == 2 and "--loss is for places" in ended.err
    assert not (tmp_path / "run").exists()


def test_a_frontier_of_a_squared_loss_has_budgets_in_square_metres(sfumato):
    asked = ("frontier", "four-corners", "--loss", "squared", "--per-user", 10, "--cell-m", 200)
    ended = sfumato(*asked, "--from", 40_000, "--to", 60_000, "--points", 2, "--gap", 0.1)
    assert ended.code == 0 and "max loss m²" in ended.out and "loss m²" in ended.out
    assert "at 40000 m²" in ended.err
    ended = sfumato(*asked, "--from", 1, "--to", 60_000, "--points", 2)
    assert ended.code == 2 and "1 m²" in ended.err
