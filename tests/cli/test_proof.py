"""`solve --proof`: what is said, in which order, and what is refused."""

from pathlib import Path
from typing import Any

_SMALL = ("four-corners", "--per-user", "15+5", "--max-loss", "173", "--cell-m", "100")


def test_the_figures_are_printed_before_the_proof(sfumato: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ended = sfumato("solve", *_SMALL, "--solver", "coin", "--proof", "quick", "--out", out)
    assert ended.code == 0, ended.err
    assert f"{out} is written and can be used" in ended.err
    assert "the least leakage possible on this grid lies between" in ended.err
    figures, proof = ended.out.split(f"Written to {out}")
    assert "Bayes error" in figures and "Best possible: " in proof and "proved" not in figures
    again = sfumato("solve", *_SMALL, "--solver", "coin", "--out", out, "--replace", "--details")
    assert "user, test data" in again.out and "Best possible" not in again.out


def test_the_document_says_how_the_proof_ended(sfumato: Any, tmp_path: Path) -> None:
    words = ("solve", *_SMALL, "--solver", "coin", "--json", "--out", tmp_path / "run")
    assert sfumato(*words, "--proof", "quick").document["proof"] == "quick"
    assert sfumato(*words, "--proof", "none", "--replace").document["proof"] is None


def test_the_exact_solver_takes_no_effort_of_proof(sfumato: Any, tmp_path: Path) -> None:
    words = ("solve", *_SMALL, "--solver", "exact", "--proof", "none", "--out", tmp_path / "run")
    ended = sfumato(*words)
    assert ended.code == 2 and "leave --proof out" in ended.err
    assert not (tmp_path / "run").exists()
