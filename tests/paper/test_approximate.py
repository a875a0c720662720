"""Approximate location: the page is what the JSON gives, and no rule is beyond what is proved."""

import math

import numpy as np
import pytest

import sfumato as sf
from paper.experiments import RESULTS
from paper.pages.approximate import page
from paper.runs.approximate import CITIES, RULES, shared_offset_errors
from sfumato.files import read_json


@pytest.fixture(scope="module")
def rows():
    found = read_json(RESULTS / "approximate.json", what="results")["rows"]
    return {(row["data"], row["reported"], row["budget_m"]): row for row in found}


def test_the_page_is_what_the_json_gives():
    assert (RESULTS / "approximate.md").read_text("utf-8") == page()


def test_no_rule_hides_more_than_is_proved_at_its_metres(rows):
    for city in CITIES:
        for rule in RULES:
            found = rows[city, rule, 0]["train"]
            proof = rows[city, "proof", math.ceil(found["loss_m"])]
            assert found["bayes_error"] <= 1 - proof["bounds"][1] + 1e-9


def test_one_report_with_one_offset_is_one_report(rows):
    """2,000 lists: the interval holds the law's figure unless 2 in 100 draws come; the slack of
    0.01 is the lattice's."""
    for city in CITIES:
        found = rows[city, "Android", 0]["train"]
        _, _, low, high = found["drifting"][0]
        assert low - 0.01 <= found["bayes_error"] <= high + 0.01


def test_users_of_one_place_are_not_told_apart_and_users_far_apart_are():
    plane = sf.Plane(48.8584, 2.3482)
    for apart, wanted in ((0.0, 0.5), (30_000.0, 0.0)):
        truth = np.array([[0.0, 0.0], [apart, 0.0]]).repeat(3, axis=0)
        samples = sf.Samples(np.arange(2).repeat(3), truth, ("a", "b"), plane=plane)
        errors = shared_offset_errors(samples, (1, 3), lists=20)
        assert [value for _, value, *_ in errors] == pytest.approx([wanted, wanted])
