"""The committed results of sanitizing four million rows keep what was reached."""

from pathlib import Path

import pytest

from benchmarks.sanitize import rows
from sfumato.files import read_json

_HERE = Path(__file__).resolve().parents[2] / "benchmarks"
_FOUND = read_json(_HERE / "results.json", what="the benchmark results")


def test_the_committed_run_sanitizes_within_the_allowed_ratio_to_copying() -> None:
    found = _FOUND["sanitize"]
    assert found["rows"] == 4_000_000
    for name, most in (("laplace", 3), ("learned", 8)):
        assert (
            found["ratio"][name]
            == found["cpu_seconds"][name] / found["cpu_seconds"]["copy"]
            <= most
        )


@pytest.mark.parametrize("name", ["laplace", "learned"])
def test_the_committed_run_has_memory_that_does_not_grow_with_the_rows(name: str) -> None:
    found = _FOUND["sanitize"]
    assert found["peak_bytes"][name] < 1e9
    assert (
        found["growth"][name]
        == found["peak_bytes"][name] / found["peak_bytes_at_a_tenth"][name]
        <= 1.1
    )


def test_the_lines_of_the_committed_run_stand_in_the_committed_page() -> None:
    page = (_HERE / "RESULTS.md").read_text(encoding="utf-8")
    assert all(
        f"| {name} | {value} | {wanted} | `{source['command']}` |" in page
        for name, value, wanted, source in rows(_FOUND)
    )
