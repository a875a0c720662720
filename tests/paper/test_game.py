"""The committed results of the game reach what was asked of them, and the page is made from
them."""

from statistics import median

import pytest

from paper.experiments import RESULTS, SEEDS
from paper.pages import game
from paper.runs import alice_and_bob
from sfumato.files import read_json

_FOUND = {
    number: read_json(RESULTS / f"game_{number}.json", what="a table of the game")
    for number in (1, 2, 3, 4)
}
_PAPER = {
    number: read_json(RESULTS / f"paper_{number}.json", what="a table of the game")
    for number in (1, 2)
}


def _errors(number: int, cells: int) -> list[float]:
    return [run["estimates"]["test"][f"{cells} cells, 500 hits"] for run in _FOUND[number]["runs"]]


@pytest.mark.parametrize("cells", [65, 130, 260])
def test_the_committed_runs_of_experiment_1_hide_everybody(cells: int) -> None:
    assert median(_errors(1, cells)) >= 0.74
    assert median(run["classifier"]["test"][0] for run in _FOUND[1]["runs"]) <= 0.28


def test_the_committed_runs_of_experiment_2_hide_better_than_the_paper_at_equal_loss() -> None:
    assert median(_errors(2, 260)) >= 0.45


def test_the_committed_runs_hide_gowalla_as_well_as_asked() -> None:
    assert median(_errors(3, 260)) >= 0.80
    assert median(_errors(4, 260)) >= 0.38


def test_the_committed_runs_of_the_papers_recipe_beat_planar_laplace_at_less_loss() -> None:
    for number, least in ((1, 0.6), (2, 0.3)):
        for run in _PAPER[number]["runs"]:
            assert run["estimates"]["test"]["260 cells, 500 hits"] >= least
            assert (
                run["game"]["bayes_error"] > run["laplace"]["bayes_error"]
                and run["game"]["training_loss_m"] < run["laplace"]["loss_m"]
            )
            assert (
                "to keep the budget" not in run["status"]
                and {"calibrated", "unsnapped"} <= run.keys()
            )


@pytest.mark.parametrize("number", [1, 2])
def test_the_committed_runs_have_every_seed_within_the_budget_and_no_error_above_a_blind_guess(
    number: int,
) -> None:
    runs = _FOUND[number]["runs"]
    assert [run["seed"] for run in runs] == list(SEEDS)
    for run in runs:
        assert run["game"]["training_loss_m"] <= _FOUND[number]["max_loss_m"] * (1 + 1e-9)
        assert run["game"]["bayes_error"] <= 0.75 + 1e-9 and "exceeded" not in run["status"]
    assert len(_FOUND[number]["rows"]) == 32


def test_the_page_is_made_from_the_results_and_alice_and_bob_play_as_recorded() -> None:
    assert (RESULTS / "game.md").read_text(encoding="utf-8") == game.page()
    assert (
        read_json(RESULTS / "alice_and_bob.json", what="the game of Alice and Bob")
        == alice_and_bob.run()
    )
