"""The mechanism is written first; the proof follows, and can be stopped, limited and taken up."""

from pathlib import Path
from typing import Any

import pytest

from sfumato.data.recipe import Recipe
from sfumato.errors import ProblemError
from sfumato.render import brief, text
from sfumato.render.text import round_text
from sfumato.solver import Codebook, Coin, Problem
from sfumato.solver.deadline import Deadline
from sfumato.solver.outcome import Proving
from sfumato.study import solve as study
from sfumato.study.certify import certify_run
from sfumato.study.folder import load_run
from sfumato.study.solve import Kept, solve, solve_and_save

RECIPE = Recipe("four-corners", per_user=(15, 5))
PROBLEM = Problem(RECIPE.load().train, max_loss=173, cell_m=100)


def _stop(line: dict[str, Any]) -> None:
    if "proof_bound" in line:
        raise KeyboardInterrupt


def test_nothing_is_proved_after_a_baseline_unless_it_is_asked_for() -> None:
    plain = solve(PROBLEM, Coin())
    assert plain.certificate is None and plain.ending.proof is None
    quick = solve(PROBLEM, Coin(), proof="quick")
    assert quick.certificate is not None and quick.ending.proof is Proving.QUICK
    assert quick.certificate.on_plane is None
    full = solve(PROBLEM, Coin(), proof="full")
    assert full.certificate is not None and full.certificate.on_plane is not None
    quick_bound, full_bound = quick.certificate.bound(PROBLEM), full.certificate.bound(PROBLEM)
    assert 0 <= full_bound.grid - quick_bound.grid <= 0.01


def test_only_a_full_proof_that_was_asked_for_has_no_limit_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan offers the quick proof as the shorter one: it ends no later than the default's."""
    seen: list[bool] = []

    def certificate_for(*_: Any, deadline: Deadline, **__: Any) -> None:
        seen.append(deadline.limited)

    monkeypatch.setattr(study, "certificate_for", certificate_for)
    solve(PROBLEM, Coin(), proof="quick")
    solve(PROBLEM, Coin(), proof="full")
    solve(PROBLEM, Coin(), proof="full", time_limit=60)
    assert seen == [True, False, True]
    assert study.proof_limit(None, limited=False) == study.proof_limit("quick", limited=False)


def test_an_effort_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(ProblemError, match="none, quick or full"):
        solve(PROBLEM, Coin(), proof="some")  # type: ignore[arg-type]


def test_the_run_is_whole_before_the_proof_begins(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    def written(kept: Kept) -> None:
        run = load_run(kept.folder)
        seen.append((run.mechanism.kind, run.certificate is None))
        assert kept.solution.ending.proof is None  # not yet known how it ends

    kept = solve_and_save(
        PROBLEM, Coin(), tmp_path / "run", recipe=RECIPE, proof="quick", written=written
    )
    assert seen == [("coin", True)]
    assert kept.solution.ending.proof is Proving.QUICK
    run = load_run(tmp_path / "run")
    assert run.certificate is not None and run.record.proof == "quick"


def test_a_proof_stopped_by_hand_keeps_its_bound_and_is_taken_up(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []

    def progress(line: dict[str, Any]) -> None:
        told.append(line)
        _stop(line)

    kept = solve_and_save(
        PROBLEM, Coin(), tmp_path / "run", recipe=RECIPE, proof="full", progress=progress
    )
    assert "proof_stopped" in told[-1]  # said at once
    assert kept.solution.ending.proof is Proving.STOPPED
    run = load_run(tmp_path / "run")
    assert run.record.proof == "stopped" and run.certificate is not None
    early = run.certificate.bound(PROBLEM).grid
    assert certify_run(run.folder, finish=False).gap.bounds.grid == early  # as an export reads it
    again = certify_run(run.folder)
    assert again.made_now and not again.stopped and again.gap.bounds.grid >= early
    assert load_run(run.folder).record.proof == "full"
    assert not certify_run(run.folder).made_now


def test_a_proof_stopped_before_its_first_bound_keeps_none_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "certificate_for", stopped)
    told: list[dict[str, Any]] = []
    kept = solve_and_save(
        PROBLEM, Coin(), tmp_path / "run", recipe=RECIPE, proof="full", progress=told.append
    )
    assert round_text(told[-1], unit="m") == "the proof is stopped"
    for said in (brief.proof_text(kept, None), text.proof_text(kept.solution, None)):
        assert "stopped before its first bound" in said and "so far" not in said


def test_a_proof_left_out_for_memory_is_not_said_to_be_made_by_certify(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sfumato.solver.exact.solver.free_bytes", lambda: 1e7)
    kept = solve_and_save(PROBLEM, Coin(), tmp_path / "run", recipe=RECIPE, proof="full")
    assert load_run(kept.folder).record.proof == Proving.NO_MEMORY.value
    said = brief.proof_text(kept, None)
    assert "certify" not in said and "more memory than is free" in said
    monkeypatch.setattr("sfumato.memory.free_bytes", lambda: 1e7)
    with pytest.raises(ProblemError, match=r"^a proof with 4 users at .*larger cells") as refused:
        certify_run(kept.folder)
    assert refused.value.field is None  # certify has neither --top-users nor --cell-m


def test_stopping_the_second_attempt_keeps_the_better_bound(tmp_path: Path) -> None:
    solve_and_save(PROBLEM, Coin(), tmp_path / "run", recipe=RECIPE, proof="quick")
    before = certify_run(tmp_path / "run", finish=False).gap.bounds.grid
    told: list[dict[str, Any]] = []

    def progress(line: dict[str, Any]) -> None:
        told.append(line)
        _stop(line)

    found = certify_run(tmp_path / "run", progress=progress)
    assert "proof_stopped" in told[-1]  # said at once
    assert found.stopped and found.gap.bounds.grid >= before
    assert load_run(tmp_path / "run").record.proof == "stopped"


def test_a_time_limit_limits_the_proof_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "_LEAST_PROOF_S", 0.0)
    kept = solve_and_save(
        PROBLEM, Coin(), tmp_path / "run", recipe=RECIPE, proof="full", time_limit=1e-6
    )
    assert kept.solution.ending.proof is Proving.TIME_LIMIT
    assert kept.solution.certificate is None
    assert load_run(tmp_path / "run").record.proof == "time limit"


def test_a_proof_that_nobody_asked_for_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "_LEAST_PROOF_S", 0.0)
    monkeypatch.setattr(study, "PROOF_S", 1e-9)
    net = Codebook(places=4, steps=20)
    found = solve(PROBLEM, net)
    assert found.ending.proof is Proving.TIME_LIMIT and found.certificate is None
    asked = solve(PROBLEM, net, proof="full")
    assert asked.ending.proof is Proving.FULL and asked.certificate is not None
