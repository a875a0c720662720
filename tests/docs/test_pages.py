"""The pages that show code show what it prints."""

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["concepts/alice-and-bob.md"])
def test_a_page_prints_what_it_says(page: str) -> None:
    result = doctest.testfile(str(PAGES / page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0


def test_the_pages_tables_are_the_papers() -> None:
    """Figure "Payoff tables": success of the classification above; I(X;Y) in bold and 1 - B(X|Y) hollow below."""
    lines = (PAGES / "concepts/alice-and-bob.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split()[2:] for line in lines if line.startswith("A->")]
    assert [[float(cell) for cell in row] for row in rows[:3]] == [[1, 0.5, 0.5, 0], [0.5] * 4, [0, 0.5, 0.5, 1]]
    told, blind = [1, 1, 0, 0.5, 0, 0.5, 1, 1], [0, 0.5] * 4
    assert [[float(cell) for cell in row] for row in rows[3:]] == [told, blind, told]
