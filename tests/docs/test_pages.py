"""The pages that show code show what it prints."""

import doctest
import re
from dataclasses import fields
from pathlib import Path

import pytest

from sfumato.cli.data import command
from sfumato.data.recipe import Recipe

PAGES = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["concepts/alice-and-bob.md"])
def test_a_page_prints_what_it_says(page: str) -> None:
    result = doctest.testfile(str(PAGES / page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0


def test_the_steps_of_a_selection_stand_in_the_order_of_the_options() -> None:
    text = (PAGES / "guides/bring-data.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(--[a-z-]+)", text, re.MULTILINE)
    steps = {step.name for step in fields(Recipe)} - {"source"}
    options = [option.opts[0] for option in command.params if option.name in steps]
    assert told == [
        option for option in options if option not in ("--secret", "--lat", "--lon")
    ]  # these name columns


def test_the_pages_tables_are_the_papers() -> None:
    """Figure "Payoff tables": success of the classification above; I(X;Y) in bold and 1 - B(X|Y)
    hollow below."""
    lines = (PAGES / "concepts/alice-and-bob.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split()[2:] for line in lines if line.startswith("A->")]
    assert [[float(cell) for cell in row] for row in rows[:3]] == [
        [1, 0.5, 0.5, 0],
        [0.5] * 4,
        [0, 0.5, 0.5, 1],
    ]
    told, blind = [1, 1, 0, 0.5, 0, 0.5, 1, 1], [0, 0.5] * 4
    assert [[float(cell) for cell in row] for row in rows[3:]] == [told, blind, told]
