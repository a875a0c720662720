"""The committed benchmark results meet their targets."""

from pathlib import Path

from benchmarks import large
from benchmarks.__main__ import page
from sfumato.files import read_json

_HERE = Path(__file__).resolve().parents[2] / "benchmarks"
_FOUND = read_json(_HERE / "results.json", what="the benchmark results")
_EXACT = read_json(_HERE / "exact.json", what="the results of the exact solver")
_LARGE = large.kept()


def test_the_committed_run_has_planar_laplace_100_times_faster_than_geoprivacy() -> None:
    found = _FOUND["laplace_sampling"]
    assert found["ratio"] >= 100
    assert (
        abs(found["ratio"] * found["ours_us_per_point"] / found["theirs_us_per_point"] - 1) < 1e-9
    )


def test_the_committed_run_has_the_grid_estimator_no_slower_than_histogramdd() -> None:
    found = _FOUND["grid_estimator"]
    assert found["hits"] == 1_200_000 and found["cells_per_side"] == 260
    assert found["ratio"] >= 1
    assert abs(found["ours_bayes_error"] - found["theirs_bayes_error"]) < 1e-3


def test_the_committed_run_has_memory_linear_in_hits_and_flat_in_empty_cells() -> None:
    found = _FOUND["grid_memory"]
    assert found["growth_per_hit"] <= 1.1
    assert found["growth_with_empty_cells"] <= 1.1
    assert found["most_bytes_per_hit"] <= 64


def test_the_committed_page_is_made_from_the_committed_results() -> None:
    assert (_HERE / "RESULTS.md").read_text(encoding="utf-8") == page(_FOUND, _EXACT, _LARGE)


def test_the_committed_run_has_the_exact_solver_40_times_faster_than_qif() -> None:
    rows = _EXACT["qif"]["common"]
    assert [row["n"] for row in rows] == [25, 30]
    for row in rows:
        ours, theirs = row["ours"], row["qif"]
        assert ours["gap"] == ours["leakage"] - ours["bound"] <= 0.0005
        assert row["ratio"] == theirs["processor_seconds"] / ours["processor_seconds"] >= 40
        assert theirs["leakage"] >= ours["bound"] - 1e-5 and ours["loss"] <= row["n"] / 6 * (
            1 + 1e-9
        )


def test_the_committed_runs_have_growth_at_most_linear_in_check_ins() -> None:
    found = _FOUND["crowd"]
    assert {row["users"] for row in found["runs"]} == {6, 60, 600, 6000}
    assert max(row["checkins"] for row in found["runs"]) == 10_000_000
    assert found["met"]


def test_the_committed_runs_learn_all_of_san_francisco_and_osaka_in_time() -> None:
    for one in _LARGE["city"]["mechanisms"]:
        assert one["seconds_learning"] <= 600 and one["bytes"] <= 4e9
    assert _LARGE["city"]["proof"]["users"] == 6571
    for one in _LARGE["osaka"]["rows"]:
        assert one["seconds_learning"] <= 300 and one["relative_gap"] <= 0.1


def test_the_committed_atlases_have_many_tiles_and_outlive_a_killed_worker() -> None:
    found = _LARGE["atlas"]
    assert found["city"]["tiles"] >= 25 and found["edges of coins"]["tiles"] >= 25
    country = found["country"]
    assert country["tiles_with_checkins"] >= 1000
    assert country["worker_killed"] and country["same_mechanism"] and country["same_figures"]


def test_the_committed_run_proves_sixty_by_sixty_cells_to_half_a_per_cent() -> None:
    (row,) = _EXACT["large"]["common"]
    ours = row["ours"]
    assert row["n"] == 60 and ours["truths"] == ours["reports"] == 3600
    assert ours["gap"] == ours["leakage"] - ours["bound"] <= 0.005
    assert ours["loss"] <= 60 / 6 * (1 + 1e-9)


def test_the_committed_run_has_the_exact_solver_20_times_faster_than_highs() -> None:
    rows = _EXACT["highs"]["corners"]
    assert (rows[0]["points"], rows[0]["cell_m"]) == (60, 16.0)
    assert {"ipm", "simplex", "ipm, stopped at the gap"} == set(rows[0]["highs"])
    for row in rows:
        assert row["ours"]["gap"] <= 0.001
        for one in row["highs"].values():
            assert one["cut_off"] or one["leakage"] >= row["ours"]["bound"] - 1e-5
    assert min(one["processor_seconds"] for one in rows[-1]["highs"].values()) >= 600
    assert rows[-1]["ratio"] >= 20
