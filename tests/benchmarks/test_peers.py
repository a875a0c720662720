"""The comparison page is what the committed JSON gives, and the JSON is plausible."""

from pathlib import Path

import pytest

from benchmarks import peers
from sfumato.files import read_json


def test_the_page_is_made_from_the_runs() -> None:
    assert peers.PAGE.read_text("utf-8") == peers.page()


def test_both_compute_the_same_bayes_error_and_the_interval_holds_the_law() -> None:
    found = read_json(Path(peers.HERE, "peers.json"), what="peers.json")
    both = [found["channel"][name]["bayes_error"] for name in ("sfumato", "qif")]
    assert both[0] == pytest.approx(both[1], abs=1e-12)
    ours = found["samples"]["sfumato"]
    assert ours["low"] <= found["samples"]["law"] <= ours["high"]


def test_our_side_of_the_channel_is_computed_as_recorded() -> None:
    found = read_json(Path(peers.HERE, "peers.json"), what="peers.json")
    assert peers.ours_of(peers.random_channel())["bayes_error"] == pytest.approx(
        found["channel"]["sfumato"]["bayes_error"], abs=1e-12
    )
