"""Runs and page of check-ins to come: what is run again, and how much a draw scatters."""

from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from paper.pages.to_come import _noise, _scatter
from paper.runs import to_come
from sfumato.files import read_json, write_json


def _row(number: int, **confident: str) -> dict[str, Any]:
    return {
        "setting": "stockholm-300",
        "draw": number,
        "settings": to_come.SOLVER,
        "confident": confident,
    }


def test_a_row_for_another_period_is_run_again_with_its_confidence_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [_row(20), _row(21, promise=to_come.PROMISE), _row(22, promise="an hour")]
    write_json(tmp_path / "to_come.json", {"rows": rows})
    calls = {}

    def draw(name: str, number: int, known: dict[str, Any] | None = None) -> dict[str, Any]:
        calls[number] = known
        return _row(number, promise=to_come.PROMISE)

    monkeypatch.setattr(to_come, "draw", draw)
    to_come.main(tmp_path, ("stockholm-300",))
    assert calls == {20: rows[0], 22: rows[2]} | dict.fromkeys(range(23, 28))
    written = read_json(tmp_path / "to_come.json", what="results")["rows"]
    assert [row["draw"] for row in written] == list(range(20, 28))
    assert all(row["confident"]["promise"] == to_come.PROMISE for row in written)


def test_a_draw_scatters_by_the_folds_and_by_its_held_out_check_ins() -> None:
    # a standard deviation of 2 budgets: 0.2 of 100 training, 0.4 of 25 held-out check-ins
    half = float(stats.t.ppf(0.975, 99)) * 0.2 * 300
    row = {
        **_row(20),
        "budget_m": 300.0,
        "checkins": {"train": 100, "test": 25},
        "expected": {
            "test": {"loss_m": 340.0},
            "cross_fitted": {
                "loss": {"low": 290 - half, "high": 290 + half},
                "confidence": 0.95,
                "checkins": 100,
            },
        },
    }
    assert _scatter(row) == pytest.approx((0.2**2 + 0.4**2) ** 0.5)
    chance = stats.norm.cdf(0.1 / 0.2**0.5) ** 2
    assert f"all draws stay below it with probability {chance:.2f}" in _noise([row, row])
    assert "Stockholm, 300 m, draw 20" in _noise([row])
