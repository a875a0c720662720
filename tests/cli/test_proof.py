"""`solve --proof`: what is said, in which order, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.cli import options
from sfumato.cli.options import rounds_to

_SMALL = ("four-corners", "--per-user", "15+5", "--max-loss", "173", "--cell-m", "100")


def test_the_figures_are_printed_before_the_proof(sfumato: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ended = sfumato("solve", *_SMALL, "--solver", "coin", "--proof", "quick", "--out", out)
    assert ended.code == 0, ended.err
    assert f"{out} is written and can be used" in ended.err
    assert "the largest Bayes error possible on this grid lies between" in ended.err
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


def test_a_solve_without_a_run_folder_says_how_to_name_one(sfumato: Any) -> None:
    ended = sfumato("solve", *_SMALL, "--solver", "coin")
    assert ended.code == 2 and "name a new run folder, --out runs/mine" in ended.err


def test_of_a_proof_what_narrows_it_visibly_is_told() -> None:
    told: list[str] = []
    heard = rounds_to(told.append, unit="m")
    for bound in (0.30, 0.301, 0.305, 0.311, 0.3111, 0.36):  # 0.1 apart, then 0.089, then 0.04
        line = {"proof_bound": bound, "proof_least": 0.4, "proof_gap": 0.01}
        heard({**line, "certificate": SimpleNamespace(objective="information")})
    assert [line.split()[9] for line in told] == ["0.3000", "0.3110", "0.3600"]


def test_of_a_game_the_rounds_that_hide_clearly_more_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A round each 0.4 s: of the first, the Bayes error grows by 0.02 in four; then it stays, and
    silence is broken after 5 s."""
    told: list[str] = []
    now = 0.0
    monkeypatch.setattr(options.time, "monotonic", lambda: now)
    heard = rounds_to(told.append, unit="m")
    notes = {"loss": 150.0, "payoff": 1.0, "accuracy_train": 0.5, "accuracy_validation": 0.4}
    for number in range(30):
        now += 0.4
        error = 0.1 + 0.0051 * min(number, 8)
        line = {**notes, "round": number, "lattice_m": 25.0, "validation_bayes_error": error}
        heard(line)
    assert [line.split(",")[0] for line in told] == [f"round {n}" for n in (1, 5, 9, 22)]


def test_a_proof_that_stands_still_is_told_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that differ behind the digits shown; each comes after the silence that asks for news."""
    told: list[str] = []
    clock = iter(range(0, 10_000, options.EVERY_S))
    monkeypatch.setattr(options.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(options.time, "strftime", lambda _: "14:02:31")
    heard = rounds_to(told.append, unit="m")
    for bound in (0.3, *(0.300001 + step / 1e7 for step in range(20)), 0.301, 0.301, 0.301):
        line = {"proof_bound": bound, "proof_least": 0.4, "proof_gap": 0.01}
        heard({**line, "certificate": SimpleNamespace(objective="information")})
    first, still, second, again = told
    assert "between 0.3000" in first and "between 0.3010" in second
    assert still == f"{first}; not moved since 14:02:31, the proof continues"
    assert again.startswith(second) and "not moved since" in again
