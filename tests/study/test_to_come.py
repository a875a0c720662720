"""Figures on check-ins to come lead: in solve, measure, compare, the report and the frontier."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples, Split
from sfumato.measure.estimate import Estimate
from sfumato.measure.outlook import Outlook
from sfumato.render.figures import draw_frontier
from sfumato.render.html import report_html
from sfumato.render.text import comparison_text, kept_text, measured_text, trade_off_text
from sfumato.study.compare import compare
from sfumato.study.folder import load_run, save_run
from sfumato.study.measure import measure
from sfumato.study.solution import Solution
from sfumato.study.solve import Kept, solve_and_save
from sfumato.study.trade_off import TradeOff, trade_off

RECIPE = Recipe("four-corners", per_user=(12, 6))
NARROW = Outlook(
    Estimate(172.0, 168.0, 176.0, "estimate"),
    Estimate(0.512, 0.481, 0.543, "estimate"),
    Estimate(0.61, 0.5, 0.72, "estimate"),
    Estimate(0.2, 0.1, 0.3, "estimate"),
    leakage=0.488,
    checkins=48,
    folds=4,
    baselines={"the coin": 0.61},
)


def _with_loss(low: float, value: float, high: float) -> Outlook:
    return replace(NARROW, loss=Estimate(value, low, high, "estimate"))


@pytest.fixture(scope="module")
def data() -> Split:
    return RECIPE.load()


@pytest.fixture(scope="module")
def kept(data: Split, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A coin, with held-out check-ins."""
    folder = tmp_path_factory.mktemp("to-come") / "coin"
    problem = sf.Problem(data.train, max_loss=173)
    return solve_and_save(problem, sf.Coin(), folder, recipe=RECIPE, test=data.test)


@pytest.fixture(scope="module")
def cross_fitted(kept: Kept, data: Split) -> Solution:
    """As if the solver had cross-fitted it."""
    folder = kept.folder.parent / "fitted"
    solution = replace(kept.solution, outlook=NARROW)
    solution.save(folder, recipe=RECIPE, test=kept.test)
    assert load_run(folder).record.to_come == NARROW
    return solution


def test_without_cross_fitting_the_held_out_check_ins_speak(kept: Kept, data: Split) -> None:
    to_come = kept.to_come
    assert isinstance(data.test, Samples) and kept.test is not None and to_come is not None
    assert to_come.how == "held-out" and to_come.checkins == len(data.test)
    assert load_run(kept.folder).record.to_come == to_come
    text = kept_text(kept, seconds=1.0)
    assert text.startswith("on check-ins to come")
    assert f"Measured on {len(data.test)} check-ins that were held out." in text
    assert kept.as_dict()["to_come"]["how"] == "held-out"


def test_measure_leads_with_what_the_run_recorded(kept: Kept, cross_fitted: Solution) -> None:
    measured = measure(kept.folder.parent / "fitted")
    text = measured_text(measured)
    assert text.startswith("on check-ins to come") and "budget 173" in text.splitlines()[1]
    assert text.index("≈172.0 [168.0, 176.0]") < text.index("training data")
    assert "Cross-fitted: measured on 4 folds of 48 check-ins" in text
    assert measured.as_dict()["to_come"]["loss"]["low"] == 168.0


def test_a_run_that_recorded_nothing_is_told_from_its_held_out_check_ins(kept: Kept) -> None:
    older = kept.folder.parent / "older"
    run = load_run(kept.folder)
    save_run(older, replace(run.record, to_come=None), run.mechanism)
    assert measure(older).to_come == kept.to_come
    assert measure(older, data="four-corners").to_come is None


def test_compare_has_two_columns_first_and_a_dash_where_nothing_is_known(
    kept: Kept, cross_fitted: Solution, data: Split
) -> None:
    on_held_out = compare([kept.solution, cross_fitted], on=data.test)
    text = comparison_text(on_held_out)
    head, coin, fitted = text.splitlines()[:3]
    assert head.split("  ")[0] == "mechanism" and head.index("to come: loss m") < head.index(
        "info bits"
    )
    assert "(h)" in coin and "≈172.0 [168.0, 176.0]" in fitted and "(h)" not in fitted
    assert "24 held-out check-ins of 4 users" in text and "(h) on held-out check-ins" in text
    on_training = comparison_text(compare([kept.solution, cross_fitted]))
    assert on_training.splitlines()[1].split()[1:3] == ["-", "-"]
    assert "held-out check-ins of" not in on_training
    first, second = on_held_out.as_dict()["mechanisms"]
    assert first["to_come"]["how"] == "held-out" and second["to_come"]["folds"] == 4
    assert "to come" not in comparison_text(compare([kept.solution]))


def test_other_data_than_the_run_s_own_is_not_taken_for_held_out_check_ins(
    kept: Kept, data: Split
) -> None:
    row = compare([replace(load_run(kept.folder))], on=sf.four_corners(1).test).rows[0]
    assert row.held_out and row.to_come == kept.to_come  # as recorded, not from that data


def test_a_held_out_loss_is_over_only_by_more_than_its_interval(kept: Kept, data: Split) -> None:
    row = compare([kept.solution], on=data.test).rows[0]
    loss = row.measured.loss_of_sample
    assert loss is not None and loss.low < loss.value < loss.high
    within = replace(row.contender, max_loss=(loss.low + loss.value) / 2)
    beyond = replace(row.contender, max_loss=loss.low - 1)
    assert replace(row, contender=within).over_by == 0
    assert replace(row, contender=within, held_out=False).over_by > 0
    assert replace(row, contender=beyond).over_by == pytest.approx(loss.value - loss.low + 1)


def test_the_report_leads_with_check_ins_to_come_and_warns(
    kept: Kept, cross_fitted: Solution, data: Split, tmp_path: Path
) -> None:
    over = _with_loss(180.0, 190.0, 200.0)
    failed = replace(
        cross_fitted,
        outlook=over,
        ending=replace(cross_fitted.ending, over_to_come=(over.loss, 173.0)),
    )
    page = report_html(compare([kept.solution, failed], on=data.test))
    assert page.index('id="to_come"') < page.index('id="figures"')
    assert "4 folds of 48 training check-ins" in page and "24 held-out check-ins" in page
    assert 'class="over">over 173 m' in page
    warned = page.index('class="warned"')
    assert warned < page.index('id="to_come"')
    sentence = "on check-ins to come the loss is 190.0 m (180.0 to 200.0), over the budget of 173 m"
    assert sentence in page[warned:]
    assert sentence in comparison_text(compare([failed]))
    assert sentence in kept_text(replace(kept, solution=failed), seconds=1.0)
    failed.save(tmp_path / "run")
    assert load_run(tmp_path / "run").record.warnings == failed.warnings
    assert 'id="to_come"' not in report_html(compare([kept.solution]))


def test_few_check_ins_say_how_many_would_do(kept: Kept) -> None:
    wide = _with_loss(132.0, 172.0, 212.0)
    text = kept_text(replace(kept, to_come=wide), seconds=1.0)
    wanted = (
        "to within 23% of the budget either way; about 1,100 check-ins would narrow that to 5%."
    )
    assert wanted in text
    assert "would narrow" not in kept_text(replace(kept, to_come=NARROW), seconds=1.0)


def test_the_frontier_places_runs_on_check_ins_to_come(
    kept: Kept, cross_fitted: Solution, data: Split, tmp_path: Path
) -> None:
    runs = (kept.folder.parent / "fitted",)
    options = {"first": 150, "last": 200, "points": 2, "cell_m": 200, "cells": None, "gap": 0.3}
    found = trade_off(data.train, runs=runs, **options)
    text = trade_off_text(found)
    assert "to come: loss m" in text and "≈172.0 [168.0, 176.0]" in text
    draw_frontier(found, tmp_path / "frontier.svg")
    words = (tmp_path / "frontier.svg").read_text()
    assert "on check-ins to come" in words and "on these check-ins" in words
    assert "reached on check-ins to come (runs and coin, 95 % interval)" in words
    placed = {one["name"]: one["to_come"] for one in found.as_dict()["placed"]}
    assert placed["coin"] is None and placed["fitted"]["bayes_error"]["low"] == 0.481
    without = TradeOff(found.frontier, found.placed[:-1])
    draw_frontier(without, tmp_path / "without.svg")
    assert "to come" not in trade_off_text(without)
    words = (tmp_path / "without.svg").read_text()
    assert "reached on check-ins to come (coin, 95 % interval)" in words
    assert "on these check-ins" not in words  # no marker is hollow


def test_what_is_reached_to_come_leads_over_the_runs_to_one_place(kept: Kept, data: Split) -> None:
    runs = (kept.folder.parent / "fitted",)
    options = {"first": 150, "last": 900, "points": 2, "cell_m": 200, "cells": None, "gap": 0.3}
    found = trade_off(data.train, runs=runs, **options)
    outlook = found.cross_fitted[0]
    budgets = np.array([outlook.loss.low, outlook.loss.high, 900.0])
    ends = found.reached_to_come(budgets)
    errors, bits = ends["bayes_error"], ends["information_bits"]
    assert errors[0, 1] == pytest.approx(outlook.bayes_error.low)
    assert errors[1, 0] == pytest.approx(outlook.bayes_error.high)
    assert bits[0, 1] == pytest.approx(outlook.information_bits.high)
    assert bits[1, 0] == pytest.approx(outlook.information_bits.low)
    assert np.all(errors[:, 2] == 0.75) and np.all(bits[:, 2] == 0)  # one place for all
    assert np.all(errors[0] <= errors[1]) and np.all(bits[0] >= bits[1])
    alone = TradeOff(found.frontier, found.placed[:-1])
    coin = next(place for place in alone.placed if place.name == "coin")
    low, high = alone.reached_to_come(np.array([coin.loss]))["bayes_error"][:, 0]
    assert low < coin.bayes_error < high
    assert found.as_dict()["to_come"]["bayes_error"][-1] == [0.75, 0.75]
