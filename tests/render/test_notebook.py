"""What a notebook shows of a value holds its figures and none of the data's coordinates."""

import re
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.show import html
from sfumato.solver.frontier import Frontier
from sfumato.study.compare import Comparison, Contender
from sfumato.study.measure import Measured
from sfumato.study.trade_off import Placed, TradeOff

_AWAY = np.array([71234.5, -83456.7])  # places whose numbers come from nowhere else
_NAMES = ("<script>alert(1)</script>", "\x1b[31mBen")


def _samples(name: str = "some <b>users</b>") -> sf.Samples:
    secret = np.repeat([0, 1], [3, 5])
    truth = _AWAY + 400.0 * secret[:, None] + np.arange(16).reshape(8, 2)
    return sf.Samples(secret=secret, truth=truth, secrets=_NAMES, name=name)


@pytest.fixture(scope="module")
def solution() -> sf.Solution:
    return sf.solve(sf.Problem(_samples(), max_loss=150, cell_m=100), sf.Exact(), seed=3)


@pytest.fixture(scope="module")
def comparison(solution: sf.Solution) -> Comparison:
    return sf.compare(
        [solution, Contender("<i>away</i>", sf.mechanism.constant(tuple(_AWAY)), 5.0)],
        on=_samples(),
    )


@pytest.fixture(scope="module")
def values(solution: sf.Solution, comparison: Comparison) -> list[object]:
    frontier = sf.frontier(solution.problem, np.array([80.0, 150.0]), gap=0.05)
    certificate = solution.certificate
    assert certificate is not None
    split = sf.Split(_samples(), _samples())
    measured = Measured(name="<u>run</u>", judged={"training data": solution.measured})
    placed = Placed("<i>run</i>", 100.0, 0.2, 0.3)
    beside = TradeOff(frontier, (placed, replace(placed, loss=400.0, kind="estimate")))
    return [_samples(), split, solution, comparison, frontier, certificate, measured, beside]


def test_no_coordinate_is_shown(values: list[object]) -> None:
    for value in values:
        shown = html(value)
        assert not re.search(r"7[12]\d{3}|8[23]\d{3}", re.sub("[0-9a-f]{12}…", "", shown)), shown


def test_each_is_one_table_in_which_names_are_text(values: list[object]) -> None:
    for value in values:
        shown = html(value)
        assert value._repr_html_() == shown  # type: ignore[attr-defined]
        assert set(re.findall(r"<(\w+)", shown)) <= {
            *("table", "caption", "thead", "tbody", "tr", "th", "td")
        }
        assert shown.startswith("<table>") and shown.count("<table>") == 1
        assert "\x1b" not in shown and shown.endswith("</table>")


def _cells(shown: str) -> list[str]:
    return [cell.strip() for cell in re.findall(r"<td>(.*?)</td>", shown, re.DOTALL)]


def test_data_shows_its_size() -> None:
    assert _cells(html(_samples())) == ["8", "2", "3 to 5", "plane metres"]
    assert _cells(html(sf.Split(_samples(), None))) == ["8", "2", "3 to 5"]
    table = sf.CategoricalData(
        sf.data.Joint(np.full((2, 3), 1 / 6), secrets=("a", "b")),
        tuple("xyz"),
        ("u",),
        np.ones((3, 1)),
    )
    assert _cells(html(table)) == ["2", "3", "1"]


def test_a_solution_shows_loss_and_leakage_beside_its_budget(solution: sf.Solution) -> None:
    shown = html(solution)
    assert "Solution: exact, seed 3" in shown
    assert f"{solution.loss:.1f}\u00a0m (budget 150\u00a0m)" in shown
    assert f"{solution.measured.bayes_error.value:.3f}" in _cells(shown)


def test_a_comparison_marks_what_is_over_its_budget(comparison: Comparison) -> None:
    shown = html(comparison)
    ours, away = (_cells(line) for line in shown.split("<tr>")[2:])
    assert "!" not in ours[0] and away[0].endswith("! (budget 5\u00a0m)")
    assert ours[1] == f"{comparison.rows[0].measured.bayes_error.value:.3f}"
    assert comparison.rows[0].gap is not None and ours[-1] == f"{comparison.rows[0].gap.value:.4f}"
    assert away[-1] == "–"


def test_a_frontier_shows_what_is_reached_and_what_none_passes(values: list[object]) -> None:
    frontier = values[4]
    assert isinstance(frontier, Frontier)
    reached, most, bits, least = map(float, _cells(html(frontier))[:4])
    assert reached == pytest.approx(1 - frontier.bayes.reached[0], abs=1e-4)
    assert reached <= most and bits >= least


def test_a_certificate_says_for_whom_it_holds(solution: sf.Solution) -> None:
    shown = html(solution.certificate)
    assert "150 on average" in shown and "reports on its grid and anywhere on the plane" in shown


def test_what_was_measured_shows_one_column_per_data_set(solution: sf.Solution) -> None:
    judged = {"training data": solution.measured, "test data": solution.measured}
    shown = html(Measured(name="run", judged=judged, max_loss=150.0))
    assert re.findall(r'<th scope="col">(.+?)</th>', shown) == ["figure", *judged]
    assert _cells(shown)[:2] == [f"{solution.loss:.1f}\u00a0m (budget 150\u00a0m)"] * 2
    assert _cells(shown)[2] == f"{solution.measured.bayes_error.value:.3f}"


def test_a_trade_off_shows_mechanisms_beside_what_none_passes_at_their_loss(
    values: list[object],
) -> None:
    trade_off = values[7]
    assert isinstance(trade_off, TradeOff)
    first, second = (_cells(line) for line in html(trade_off).split("<tr>")[2:])
    bound = 1 - trade_off.frontier.bayes.bound_at(np.array([100.0]))[0]
    assert first[:3] == ["100.0", "0.2000", f"{bound:.4f}"]
    assert second[0] == "400.0" and second[1].startswith("≈") and second[2] == second[4] == "–"
