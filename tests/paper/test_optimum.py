"""The committed optima of experiments 2 and 4 keep what the page says of them."""

import json
from pathlib import Path

import pytest

from paper.experiments import EXPERIMENTS, RESULTS, SEEDS, load
from paper.pages.optimum import page
from sfumato.files import read_json, write_text

ROWS = read_json(RESULTS / "optimum.json", what="the optima")["rows"]


def test_the_committed_optima_have_every_experiment_objective_and_seed() -> None:
    found = {(row["experiment"], row["objective"], row["seed"]) for row in ROWS}
    assert found == {
        (number, objective, seed)
        for number in (2, 4)
        for objective in ("bayes", "information")
        for seed in SEEDS
    }


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['experiment']}-{row['objective']}-{row['seed']}"
)
def test_the_committed_optima_keep_their_limits_of_gap_time_and_memory(row: dict) -> None:
    assert 0 <= row["gap"] <= (0.001 if row["objective"] == "bayes" else 0.01 * row["leakage"])
    assert row["bound_plane"] <= row["bound_grid"] + 1e-9
    assert row["loss_m"] <= row["max_loss_m"] * (1 + 1e-9)
    assert row["bound_grid"] - row["bound_plane"] <= 0.01
    assert row.get("processor_seconds", row["seconds"]) <= 300 and row["peak_mb"] <= 4096
    assert row["pairs_touched"] <= row["pairs"] < row["variables"] == 260**4


def test_the_committed_optimum_of_experiment_2_is_above_the_papers_half_and_the_coin() -> None:
    for row in ROWS:
        if row["experiment"] == 2 and row["objective"] == "bayes":
            assert 1 - row["leakage"] > 0.61 > 0.5


def test_the_committed_page_of_optima_is_made_from_the_committed_json() -> None:
    assert (RESULTS / "optimum.md").read_text(encoding="utf-8") == page(RESULTS)


def test_a_quick_run_without_information_has_its_page(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["objective"] == "bayes" and row["seed"] == 0]
    write_text(tmp_path / "optimum.json", json.dumps({"rows": rows}))
    text = page(tmp_path)
    assert "| 4: Bayes error | 0." in text and "information, bits" not in text


def test_the_synthetic_data_is_the_data_of_the_proof() -> None:
    for row in ROWS:
        if row["experiment"] == 2:
            assert load(EXPERIMENTS[1].data, row["seed"]).train.hash == row["data_hash"]
