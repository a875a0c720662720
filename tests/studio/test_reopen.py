"""A run folder that is named on the command line is opened again."""

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.errors import DataError, ProblemError
from sfumato.studio.preview import report_table
from sfumato.studio.reopen import reopened
from sfumato.study.atlas import AtlasPlan, solve_atlas
from sfumato.study.solve import solve_and_save
from tests.studio.server import Page, served

RECIPE = Recipe("four-corners", per_user=(12, 6))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, folder = RECIPE.load(), tmp_path_factory.mktemp("runs") / "mine"
    problem = sf.Problem(data.train, max_loss=173, cell_m=100)
    solve_and_save(problem, sf.Coin(), folder, recipe=RECIPE, test=data.test)
    return folder


def test_its_data_figures_and_table_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    loaded, opened = reopened(run, tmp_path)
    assert loaded.split.train.hash == RECIPE.load().train.hash
    shown: dict[str, Any] = opened.as_dict()
    assert shown["kept"] and shown["state"] == "done" and shown["cell_m"] == 100
    assert shown["solver"] == "coin" and shown["max_loss"] == 173
    assert 0 < shown["solution"]["leakage"] < 1 and shown["solution"]["test"] is not None
    assert shown["solution"]["to_come"]["how"] == "held-out"
    assert opened.folder.parent == tmp_path / "runs" and (run / "run.json").exists()
    table = report_table(opened.folder)
    assert table.chance.sum() == pytest.approx(1)


def test_an_atlas_is_opened_as_a_run_is(tmp_path: Path) -> None:
    data, plan = RECIPE.load(), AtlasPlan(sf.Coin(), users_per_tile=3, fewest_checkins=4)
    made = solve_atlas(data.train, tmp_path / "atlas", max_loss=100, plan=plan, recipe=RECIPE)
    opened = reopened(made.run.folder, tmp_path)[1]
    shown: dict[str, Any] = opened.as_dict()
    assert len(made.mechanism.tiling) > 1 and shown["solver"] == "atlas"
    assert shown["solution"]["status"] == made.run.record.status
    assert report_table(opened.folder).chance.sum() == pytest.approx(1)


def test_the_answer_has_the_keys_of_a_run_that_was_solved_here(run: Path, tmp_path: Path) -> None:
    solved = sf.solve(sf.Problem(RECIPE.load().train, max_loss=173, cell_m=100), sf.Coin())
    opened = reopened(run, tmp_path)[1]
    assert opened.found is not None
    assert {*solved.as_dict(), "test", "warnings", "to_come_note"} <= set(opened.found)


def test_a_run_without_a_budget_or_without_its_data_is_refused(run: Path, tmp_path: Path) -> None:
    data = RECIPE.load().train
    budgets = dict.fromkeys(data.secrets, 173.0)
    per_user = sf.Problem(data, user_max_loss=budgets, cell_m=200)
    sf.solve(per_user, sf.Exact(gap=0.2)).save(tmp_path / "each", recipe=RECIPE)
    with pytest.raises(ProblemError, match="no average budget"):
        reopened(tmp_path / "each", tmp_path)
    sf.solve(sf.Problem(data, max_loss=173, cell_m=100), sf.Coin()).save(tmp_path / "lost")
    with pytest.raises(DataError, match="does not say where its data is"):
        reopened(tmp_path / "lost", tmp_path)


def test_the_studio_opens_compares_and_plays_it(run: Path) -> None:
    with served(str(run)) as studio, Page(studio) as page:
        (opened,) = page.ask("data", {"source": "given"})["opened"]
        assert [one["id"] for one in page.ask("state")["runs"]] == [opened["id"]]
        page.ask("compare")
        found = page.wait_for("compare-done")["comparison"]["mechanisms"]
        assert [one["name"] for one in found] == [opened["id"]]
        assert page.ask("attack", {"run": opened["id"]})["run"] == opened["id"]
        assert "sfumato measure" in page.ask("download", {"run": opened["id"]})["command"]


def test_its_figures_are_under_solve(run: Path, browser: Any) -> None:
    with served(str(run)) as studio:
        page = browser.new_page()
        page.goto(studio.address)
        page.get_by_text("check-ins of 4 users").first.wait_for()
        page.get_by_role("tab", name="Solve").click()
        page.locator("#result").get_by_text("of 173 m").wait_for()
        page.get_by_role("button", name="Next: compare").wait_for()
        page.close()
