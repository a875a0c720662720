"""The page of all printed numbers, the check that it is made from the runs, and what the repository
must not hold."""

import json
import shutil
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from matplotlib.text import Text

from paper.experiments import CELLS, HITS, RESULTS, SEEDS, SPLITS
from paper.pages import build, game_figures, whole
from paper.pages.results_by_column import FINEST, ceilings, columns
from paper.printed import Target, figures, targets
from paper.runs.columns import SOLVERS, solver
from sfumato.files import read_json, write_json

PAGE = (RESULTS / "whole.md").read_text(encoding="utf-8")


def _tables() -> dict[str, dict[str, list[str]]]:
    """The cells of the long tables, by experiment and by their first column."""
    found: dict[str, dict[str, list[str]]] = {}
    experiment = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            number = line.removeprefix("## Experiment ")
            experiment = number[0] if number != line else ""
        if experiment and line.startswith("| "):
            name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert name not in found.setdefault(experiment, {})
            found[experiment][name] = cells
    return found


def _of_hits(cell: str) -> dict[int, str]:
    """The numbers of a cell by their hits; one number stands for all."""
    numbers = cell.split() * (len(HITS) if len(cell.split()) == 1 else 1)
    return dict(zip(HITS, numbers, strict=True))


def _printed(target: Target) -> str:
    return f"{target.bayes_error:.2f}" + ("?" if target.doubt else "")


def test_the_committed_page_has_all_272_printed_errors_in_their_rows() -> None:
    tables, seen = _tables(), 0
    for mechanism, place in (("laplace", 0), ("learned", 2)):
        for target in targets(mechanism):
            row = tables[target.experiment][f"{target.split}, {target.cells}"]
            assert _of_hits(row[place])[target.hits] == _printed(target), target
            seen += 1
    for target in targets("none"):
        start = f"| {target.experiment}, {target.split} | "
        (line,) = [line for line in PAGE.splitlines() if line.startswith(start)]
        cell = line.split("|")[2 + CELLS.index(target.cells)]
        assert cell.strip().startswith(f"{target.bayes_error:.2f}; "), target
        seen += 1
    assert seen == 272


def test_the_committed_page_has_every_other_printed_figure() -> None:
    places = {"laplace": 0, "learned": 2}
    for row in figures():
        if row["kind"] == "measured":
            name = row["quantity"].removeprefix("classifier ").partition(" at ")[0]
            label = f"{name} {row['split']}" + (", m" if row["unit"] == "m" else "")
            found = _tables()[row["experiment"]][label][places[row["mechanism"]]]
            assert found == row["value"], row
        else:
            value = row["value"] + ("?" if row["kind"] == "doubtful" else "")
            value += " m" if row["unit"] == "m" else ""
            said = f"{row['quantity'].replace('bayes', 'Bayes')} {value} ({row['kind']}"
            section = PAGE.partition(f"## Experiment {row['experiment']}")[2].partition("\n|")[0]
            assert said in section, row


def test_the_committed_page_shows_the_median_of_the_committed_runs() -> None:
    summary = {
        line[2]: [cell.strip() for cell in line.strip("|").split("|")][5:9]
        for line in PAGE.partition("## The summary")[2].splitlines()
        if line.startswith(("| 1: ", "| 2: ", "| 3: ", "| 4: "))
    }
    for number in (1, 2, 3, 4):
        found = columns(RESULTS, number)
        for split in SPLITS:
            for cells in CELLS:
                shown = _tables()[str(number)][f"{split}, {cells}"][3]
                for hits, told in _of_hits(shown).items():
                    values = found["Game.paper"].errors(split, cells, hits)
                    assert told == f"{median(values):.2f}"
        for name, told in zip(
            ("Game.paper", "Game", "Codebook", "coin"), summary[str(number)], strict=True
        ):
            assert told.startswith(f"{median(found[name].errors('test', *FINEST)):.3f}"), name


def test_no_committed_estimate_on_25_m_cells_is_above_what_is_proved() -> None:
    # Losses on training data keep the budget, so the bound holds; 500 hits of each point leave less
    # than 0.005 of noise above it.
    for number in (1, 2, 3, 4):
        top = max(ceilings(RESULTS, number)["train"])
        for column in columns(RESULTS, number).values():
            assert all(error <= top + 0.005 for error in column.errors("train", *FINEST)), (
                number,
                column.name,
            )


def test_the_committed_coin_reaches_the_blind_guess_where_it_is_the_bound() -> None:
    for number in (1, 3):
        assert all(
            abs(error - max(ceilings(RESULTS, number)["train"])) < 1e-9
            for error in columns(RESULTS, number)["coin"].law("train")
        )
    rows = read_json(RESULTS / "optimum_test.json", what="the ceilings on test data")["rows"]
    assert all(
        row.get("reached", row["coin_bayes_error"]) <= row["nobody_above"] + 1e-9 for row in rows
    )
    assert all(
        row["nobody_above"] - row.get("reached", row["coin_bayes_error"]) <= 0.001 for row in rows
    )


def test_the_committed_runs_of_experiments_3_and_4_reach_what_was_asked() -> None:
    assert median(columns(RESULTS, 3)["Game"].errors("test", *FINEST)) >= 0.80
    assert median(columns(RESULTS, 3)["Codebook"].errors("test", *FINEST)) >= 0.825
    assert median(columns(RESULTS, 4)["Game"].errors("test", *FINEST)) >= 0.38
    for number, budget in ((3, 1150), (4, 518)):
        for name in (
            "Game",
            "Codebook",
            "coin",
        ):  # exact on the law; 0.5 % is four standard errors of a mean over 500 reports a point
            assert all(
                loss <= 1.005 * budget for loss in columns(RESULTS, number)[name].losses("train")
            )


def test_the_committed_results_bear_out_what_readers_of_the_paper_are_told() -> None:
    for number in (1, 2, 3, 4):
        runs = columns(RESULTS, number)["Game"].runs
        learned, noise = (
            median(run[name]["bayes_error"] for run in runs) for name in ("game", "laplace")
        )
        assert learned > noise, "learned beats planar Laplace"
        key = (str(number), "test", *FINEST)
        (printed,) = [
            one.bayes_error
            for one in targets("learned")
            if (one.experiment, one.split, one.cells, one.hits) == key
        ]
        assert median(columns(RESULTS, number)["coin"].errors("test", *FINEST)) > printed - 0.005, (
            "the coin is not behind"
        )
    clouds = read_json(RESULTS / "cross_entropy.json", what="the curves of cross entropy")[
        "experiments"
    ]["1"]
    swapped, settled = (
        clouds[name]["history"][-1]["validation_bayes_error"]
        for name in ("cross entropy", "mutual information")
    )
    assert swapped < 0.05 < 0.5 < settled
    net = read_json(RESULTS / "precision.json", what="a net by the side of the cells")
    errors = [*net["bayes_error_by_cell_m"].values(), net["bayes_error"]]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-9


def test_the_committed_columns_are_of_todays_recipe() -> None:
    rows = read_json(RESULTS / "columns.json", what="the columns of codebook and coin")["rows"]
    assert all(row["settings"] == repr(solver(row["solver"], row["experiment"])) for row in rows)
    assert len(rows) == 4 * len(SOLVERS) * len(SEEDS), (
        "python -m paper.runs.columns runs what is missing"
    )


def test_the_committed_pages_and_figures_are_what_the_json_gives() -> None:
    assert build.check() == []


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for path in RESULTS.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.glob("*.json")))
def test_without_the_json_of_a_run_the_check_fails_and_names_it(name: str, copied: Path) -> None:
    (copied / name).unlink()
    assert any(name in problem for problem in build.check(copied))


def test_a_changed_number_a_changed_page_and_a_changed_picture_are_noticed(copied: Path) -> None:
    runs = read_json(copied / "game_4.json", what="a table of the game")
    for run in runs["runs"]:
        run["estimates"]["test"]["260 cells, 500 hits"] -= 0.1
        run["game"]["bayes_error"] -= 0.1
    write_json(copied / "game_4.json", runs)
    (copied / "readings.md").write_text("# Other words\n", encoding="utf-8")
    shutil.copy(copied / "scatter_1.png", copied / "scatter_2.png")
    wrong = {problem.split()[0] for problem in build.check(copied)}
    assert {
        "whole.md",
        "game.md",
        "readings.md",
        "scatter_2.png",
    } <= wrong and "optimum.md" not in wrong


@pytest.mark.parametrize(("parts", "panels"), [(2, 5), (1, 4)])
def test_letters_of_scatter_figures_can_be_read_at_the_width_of_a_page(
    parts: int, panels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of the site is 688 px wide; at that width no letter is below 11 px, and no two titles
    meet."""
    drawn: list[Any] = []
    monkeypatch.setattr(game_figures, "save", lambda figure, path: drawn.append(figure))
    data = game_figures.load("synthetic", 0)
    samples = game_figures.shown(data, "test")
    row = [("planar Laplace", samples.truth + 700.0)] * panels
    game_figures.draw([("test", samples, row)] * parts, 600.0, tmp_path / "figure.png")
    (figure,) = drawn
    figure.canvas.draw()
    shrunk = 688 / (figure.get_figwidth() * figure.dpi)
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    points = min(text.get_fontsize() for text in texts)
    assert len(texts) > 20 and points * figure.dpi / 72 * shrunk >= 11
    titles = [axes.title.get_window_extent() for axes in figure.axes if axes.axison]
    assert len(titles) == parts * panels
    assert not any(one.overlaps(other) for one, other in combinations(titles, 2))


def test_pictures_may_differ_by_a_shade_but_not_by_a_point(tmp_path: Path) -> None:
    import numpy as np
    from matplotlib.image import imread, imsave

    picture = imread(RESULTS / "scatter_1.png")[..., :3]
    imsave(tmp_path / "one.png", picture)
    imsave(tmp_path / "shade.png", np.clip(picture + 0.02, 0, 1))
    picture = picture.copy()
    picture[100:140, 100:140] = 0.0
    imsave(tmp_path / "moved.png", picture)
    assert build.same(tmp_path / "one.png", tmp_path / "shade.png") and not build.same(
        tmp_path / "one.png", tmp_path / "moved.png"
    )


def test_the_committed_results_hold_no_reports_of_real_people() -> None:
    def holds_reports(node: object) -> bool:
        if isinstance(node, dict):
            return any("reports_m" in key or holds_reports(value) for key, value in node.items())
        return isinstance(node, list) and any(map(holds_reports, node))

    for path in RESULTS.glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        for row in document.get("rows", []):
            assert row.get("experiment") not in (3, 4) or not holds_reports(row), path.name
        assert document.get("experiment") not in (3, 4) or not holds_reports(document), path.name


def test_the_page_speaks_of_what_was_run_only(tmp_path: Path) -> None:
    for name in ("laplace.json", "no_noise.json", "game_1.json"):
        shutil.copy(RESULTS / name, tmp_path)
    page = whole.page(tmp_path)
    assert (
        "The learned mechanism, by `Game.paper(n)`: not run." in page
        and "`columns.json`" not in page
        and "`game_1.json`" in page
    )
