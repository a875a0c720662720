"""Figures show the values that they were given, and look the same each time."""

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.errors import FileError
from sfumato.render.figures import (
    bars_figure,
    check_figure,
    draw_frontier,
    fan_out,
    grids_figure,
    history_figure,
    look_of,
    points_figure,
    swatch,
    window_of,
)
from sfumato.study.trade_off import TradeOff, trade_off


def _written_words(address: str) -> list[str]:
    """What a chart says: text is drawn as paths, each below a comment that holds it."""
    svg = base64.b64decode(address.removeprefix("data:image/svg+xml;base64,")).decode()
    ElementTree.fromstring(svg)
    return re.findall("<!-- (.*?) -->", svg)


def test_56_users_look_different() -> None:
    assert len({look_of(user) for user in range(56)}) == 56


def test_a_swatch_has_the_user_s_colour_and_lies_within_its_box() -> None:
    for user in range(8):
        found = swatch(user)
        assert found.colour == look_of(user)[0]
        numbers = [float(number) for number in re.findall(r"-?[0-9.]+", found.outline)]
        assert max(map(abs, numbers)) <= -float(found.box.split()[0])


def test_points_at_one_place_fan_out_and_others_stay() -> None:
    points = np.array([[0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]])
    spread = fan_out(points, 1.0)
    assert np.array_equal(spread[:2], points[:2])
    assert np.allclose(np.hypot(*spread[2:].T), np.sqrt([1, 2]))


def test_the_window_holds_all_truths_and_grows_with_the_budget_up_to_half_its_side() -> None:
    truth = np.array([[0.0, 0.0], [1000.0, 200.0]])
    near, far, farther = (window_of(truth, budget) for budget in (10.0, 300.0, 1e6))
    assert near.contains(truth).all()
    assert near.side_m < far.side_m < farther.side_m == pytest.approx(2000)


def test_points_are_drawn_as_the_same_picture_each_time() -> None:
    points = np.array([[0.0, 0.0], [5.0, 5.0]])
    first, second = (
        points_figure(points, np.array([0, 1]), window_of(points, 1.0), dpi=50) for _ in range(2)
    )
    assert first == second and first.startswith("data:image/png;base64,")


def test_bars_say_their_values_and_what_is_the_most_possible() -> None:
    values = [sf.Estimate.exact(0.1234), sf.Estimate(0.5, 0.4, 0.6, "estimate")]
    words = _written_words(
        bars_figure(["a", "b"], values, label="bits", most=2.0, most_label="all there is, 2.00")
    )
    assert {"a", "b", "0.123", "0.500", "bits (dotted: all there is, 2.00)"} <= set(words)
    words = _written_words(
        bars_figure(["a"], values[:1], label="share", most=1.0, most_label="all", percent=True)
    )
    assert {"12.3%", "100%"} <= set(words)


def test_the_grids_chart_names_every_side_every_mechanism_and_the_ceiling() -> None:
    rows = [[sf.Estimate.exact(0.3, cell_m=side) for side in (25.0, 500.0)]] * 2
    words = _written_words(grids_figure(["a", "b" * 40], rows, 0.75))
    assert {"25", "500", "a", "b" * 23 + "…", "blind guess, 0.750"} <= set(words)


def test_rounds_are_whole_numbers() -> None:
    history = [{"round": number, "payoff": 0.1 * number, "loss": 90.0} for number in range(4)]
    address = history_figure(history, 100.0, unit="m²")
    assert address is not None
    words = _written_words(address)
    rounds = words[words.index("payoff") + 1 : words.index("round")]
    assert rounds == ["0", "1", "2", "3"]
    assert {"loss, m²", "budget"} <= set(words)


def test_the_rounds_of_folds_are_no_part_of_the_curves() -> None:
    net = [{"round": number, "payoff": 0.1 * number, "loss": 90.0} for number in range(4)]
    folds = [{"round": number, "done": 0.1, "folds": 4} for number in range(10)]
    assert history_figure([*folds, *net], 100.0) == history_figure(net, 100.0)
    assert history_figure(folds, 100.0) is None


def test_a_history_without_figures_has_no_curve() -> None:
    assert history_figure([{"round": 1, "note": "x"}], None) is None


@pytest.fixture(scope="module")
def crossing() -> TradeOff:
    data = Recipe("four-corners", per_user=(8, 0)).load().train
    return trade_off(data, first=100, last=200, points=3, cell_m=100, cells=None, gap=0.05)


def test_the_frontier_names_its_data_its_band_and_every_mechanism(
    crossing: TradeOff, tmp_path: Path
) -> None:
    draw_frontier(crossing, tmp_path / "frontier.svg")
    words = re.findall("<!-- (.*?) -->", (tmp_path / "frontier.svg").read_text())
    for text in (
        crossing.frontier.problem.samples.name,
        "proved: nothing on 100 m cells passes this",
        "reached by a mechanism on 100 m cells",
        "the best lies within",
        "laplace",
        "coin",
    ):
        assert words.count(text) == 1, text


def test_the_frontier_is_drawn_as_png_too(crossing: TradeOff, tmp_path: Path) -> None:
    draw_frontier(crossing, tmp_path / "frontier.PNG")
    assert (tmp_path / "frontier.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["figure.pdf", "figure", "figure.html"])
def test_an_ending_that_is_not_drawn_is_refused(name: str) -> None:
    with pytest.raises(FileError, match=r"expected \.png or \.svg"):
        check_figure(Path(name))
