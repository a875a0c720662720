"""The committed benchmark results meet their targets."""

from pathlib import Path

from benchmarks.__main__ import page
from sfumato.files import read_json

_HERE = Path(__file__).resolve().parents[2] / "benchmarks"
_FOUND = read_json(_HERE / "results.json", what="the benchmark results")


def test_planar_laplace_is_at_least_100_times_faster_than_geoprivacy() -> None:
    found = _FOUND["laplace_sampling"]
    assert found["ratio"] >= 100
    assert abs(found["ratio"] * found["ours_us_per_point"] / found["theirs_us_per_point"] - 1) < 1e-9


def test_the_grid_estimator_is_not_slower_than_histogramdd_and_gives_the_same_number() -> None:
    found = _FOUND["grid_estimator"]
    assert found["hits"] == 1_200_000 and found["cells_per_side"] == 260
    assert found["ratio"] >= 1
    assert abs(found["ours_bayes_error"] - found["theirs_bayes_error"]) < 1e-3


def test_memory_is_linear_in_hits_and_flat_in_empty_cells() -> None:
    found = _FOUND["grid_memory"]
    assert found["growth_per_hit"] <= 1.1
    assert found["growth_with_empty_cells"] <= 1.1
    assert found["most_bytes_per_hit"] <= 64


def test_the_page_is_made_from_the_results() -> None:
    assert (_HERE / "RESULTS.md").read_text(encoding="utf-8") == page(_FOUND)
