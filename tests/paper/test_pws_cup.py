"""The contest's scores, held against its own printed rows."""

import csv

import numpy as np
import pytest

from paper.experiments import data_folder
from paper.pws_cup import SIDE, STEP_M, USERS, contest, found, near, regions_of, scores
from tests.requirements import wanting


@pytest.fixture(scope="module")
def printed():
    path = data_folder() / "pwscup-printed.csv"
    if not path.is_file():
        wanting(f"no {path.name}: the contest's scores were NOT held against its printed rows")
    with path.open() as lines:
        return {row["Ano"]: row for row in csv.DictReader(lines)}


def test_without_protection_the_scores_are_the_printed_ones(printed):
    """I3 has no chance in it; 4.5 standard errors of the others, from 2,000 traces, are 0.02."""
    ours = scores(contest().original, np.eye(SIDE * SIDE), seed=0)
    theirs = {name: float(printed["A1"][name]) for name in ("I2", "I3", "T2", "T3")}
    assert ours["utility"] == 1 and ours["I3"] == pytest.approx(theirs["I3"], abs=0.0005)
    for name in ("I2", "T2", "T3"):
        assert ours[name] == pytest.approx(theirs[name], abs=0.02)
    assert ours["T2"] < float(printed["A1"]["T1"]) - 0.05  # far from a blind guess


def test_a_place_lies_in_its_own_region_and_nearness_falls_with_the_distance(printed):
    places = contest().places
    assert np.array_equal(regions_of(places + 0.4 * STEP_M), np.arange(len(places)))
    assert regions_of(np.array([[-1e6, 1e6]])).tolist() == [(SIDE - 1) * SIDE]
    assert near(np.array(0), np.array([0, 1, SIDE - 1])) == pytest.approx([1, 1 - 341.25 / 2000, 0])


def test_no_user_has_two_traces_where_that_is_asked_for(printed):
    logs, traces = np.zeros((USERS, 1)), np.zeros((USERS, 1), dtype=int)
    use = np.ones((USERS, 1), dtype=bool)
    assert set(found(traces, logs, use, once=False).tolist()) == {0}  # ties go to the first
    assert sorted(found(traces, logs, use, once=True).tolist()) == list(range(USERS))
