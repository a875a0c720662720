"""Foursquare weeks: the page is what the JSON gives, and the proof holds for releases whose share
of weeks found is known."""

import numpy as np
import pytest

from paper.experiments import RESULTS
from paper.pages.weeks import page
from paper.runs.weeks import ANY, by_truths, least_found, wanted, wanted_ways
from paper.steps import steps
from sfumato.data.samples import Samples
from sfumato.data.traces import Traces
from sfumato.files import read_json, write_json
from sfumato.measure.traces import Released
from sfumato.mechanism.simple import Identity


def test_the_page_is_what_the_json_gives():
    assert (RESULTS / "weeks.md").read_text("utf-8") == page()


def test_the_step_of_make_paper_knows_whether_all_rows_are_there(tmp_path):
    (step,) = (one for one in steps() if one.name == "Foursquare weeks")
    write_json(tmp_path / "weeks.json", {"rows": wanted()})
    write_json(tmp_path / "weeks_ways.json", {"rows": wanted_ways()})
    assert step.done(tmp_path)
    write_json(tmp_path / "weeks_ways.json", {"rows": wanted_ways()[1:]})
    assert not step.done(tmp_path)


def test_nothing_that_was_measured_is_found_less_than_is_proved():
    """Who knows the law has less than who knows the weeks, and yet finds as many."""
    rows = read_json(RESULTS / "weeks.json", what="weeks")["rows"]
    proved = {row["budget"]: row["at_least"] for row in rows if row["reported"] == ANY}
    assert 0.2 < proved[1994] < proved[818] < proved[400] < 1
    for row in (row for row in rows if row["reported"] != ANY):
        for budget, share in proved.items():
            if row["loss_m"] <= budget:
                assert row["found"]["law"][0] >= share


@pytest.fixture(scope="module")
def lists():
    """40 lists of 3 or 5 check-ins, of 20 users, and how far apart those of one length are."""
    random = np.random.default_rng(4)
    return [random.normal(0, 3000, (3 + 2 * (one % 2), 2)) for one in range(40)]


@pytest.mark.parametrize("merged", [0, 2, 5, 10, 20])
def test_a_release_that_merges_weeks_is_found_at_least_as_often_as_is_proved(lists, merged):
    """Some weeks of one length are all reported as their middle: of these, one is found."""
    users = np.arange(40) // 2
    some = np.flatnonzero([len(one) == 3 for one in lists])[:merged]
    reports = list(lists)
    middle = np.mean([lists[one] for one in some], axis=0) if merged else None
    for one in some:
        reports[one] = middle
    off = [np.hypot(*(a - b).T) for a, b in zip(lists, reports, strict=True)]
    loss = float(np.concatenate(off).mean())
    found = (40 - merged + (merged > 0)) / 40
    bound = least_found(lists, users, loss)
    assert bound <= found + 1e-12
    assert bound > 0.9 if merged == 0 else bound < 1


def test_two_weeks_that_are_alike_are_told_apart_by_nobody():
    same = [np.zeros((4, 2)), np.zeros((4, 2)), np.full((4, 2), 9e4)]
    assert least_found(same, np.array([0, 1, 2]), 0.0) <= 2 / 3
    assert least_found(same, np.array([0, 0, 2]), 0.0) > 0.99


def test_who_learnt_from_truths_finds_truths_and_loses_weeks_that_are_moved_to_others():
    truth = np.repeat([[0.0, 0.0], [900.0, 0.0]], 4, axis=0)
    weeks = Samples(np.repeat([0, 1], 4), truth, ("ann", "bob"))
    named = np.array([True, True, False, False] * 2)
    traces = Traces.of(weeks, np.repeat(np.arange(4), 2), named=named)
    assert by_truths(traces, Released(Identity(), truth)).value == 1
    assert by_truths(traces, Released(Identity(), truth[::-1])).value == 0
