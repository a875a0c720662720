"""The HTML report: self-contained, honest about what it holds, and the same each time."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.measure.judge import judge_reports
from sfumato.report.compare import Comparison, Entry, Row, compare
from sfumato.report.figures import fan_out, look_of
from sfumato.report.html import described

_VOID = {"meta", "img", "br", "hr", "link", "input"}


class _Checker(HTMLParser):
    """Keeps the open tags, what was addressed, headings without scope and pictures without
    words."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.poor: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.addresses += [
            value or ""
            for name, value in attrs
            if name in {"src", "href", "srcset", "action", "data", "xlink:href"}
        ]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if (tag == "th" and "scope" not in found) or (tag == "img" and not found.get("alt")):
            self.poor.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def _samples(users: int, *, names: tuple[str, ...] = (), name: str = "some users") -> sf.Samples:
    random = np.random.default_rng(users)
    secret = np.repeat(np.arange(users), 6)
    truth = random.uniform(-500, 500, (users, 2))[secret] + random.normal(0, 30, (len(secret), 2))
    return sf.Samples(
        secret=secret,
        truth=truth,
        secrets=names or tuple(f"user {user}" for user in range(users)),
        name=name,
    )


def _entries() -> list[Entry]:
    history = tuple(
        {"round": number, "payoff": 1 / (1 + number), "loss": 90.0, "accuracy_train": None}
        for number in range(3)
    )
    noise = sf.Function(lambda truth, random: truth + random.normal(0, 80, truth.shape))
    return [
        Entry("coarse", sf.Snapped(sf.Identity(), sf.Grid(cell_m=200)), 100.0),
        Entry("noise & more", noise, 120.0, seed=3, status="Stopped.", history=history),
    ]


def _written(comparison: Comparison, path: Path) -> tuple[str, _Checker]:
    comparison.html(path)
    page = path.read_text(encoding="utf-8")
    checker = _Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return page, checker


def _assert_self_contained(page: str, checker: _Checker) -> None:
    assert not re.search(r"https?://", page)
    assert not re.search(r"@import|url\(", page)
    assert all(address.startswith(("data:image/", "#")) for address in checker.addresses)
    assert not checker.tags & {"script", "link", "iframe", "object", "embed", "base", "form"}
    assert len(page.encode()) < 2_000_000


@pytest.mark.parametrize("users", [2, 30])
def test_the_page_is_whole_and_needs_nothing_from_outside(tmp_path: Path, users: int) -> None:
    on = _samples(users)
    page, checker = _written(compare(_entries(), on=on, hits=20), tmp_path / "page.html")
    _assert_self_contained(page, checker)
    assert not checker.poor
    assert len(set(checker.ids)) == len(checker.ids)
    assert "This page contains true locations." in checker.text
    for words in (
        "coarse",
        "noise & more",
        *on.secrets,
        on.hash,
        "estimate",
        "exact",
        "fixed seed",
        "Learning curves",
        "Stopped.",
    ):
        assert words in checker.text, words
    assert {address for address in checker.addresses if address.startswith("#")} == {
        f"#{name}" for name in checker.ids
    }


def test_the_same_comparison_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (compare(_entries(), on=_samples(3), hits=20) for _ in range(2))
    first.html(tmp_path / "first.html")
    second.html(tmp_path / "second.html")
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()


def test_names_are_text_never_markup(tmp_path: Path) -> None:
    on = _samples(3, names=("<script>", 'a"b&c', "$x_1$ 日本"), name="<img src=x>")
    entries = [Entry('<b onclick="x">$\\frac$', sf.Identity(), 100.0), *_entries()]
    page, checker = _written(compare(entries, on=on, hits=20), tmp_path / "page.html")
    _assert_self_contained(page, checker)
    assert "b" not in checker.tags
    for name in (*on.secrets, on.name, entries[0].name):
        assert name in checker.text


def test_a_loss_that_is_not_known_is_said_and_wins_nothing(tmp_path: Path) -> None:
    on = _samples(2)
    grid = sf.Grid(cell_m=25)
    measured = judge_reports(on.secret, on.truth, grid, names=on.secrets)
    row = Row(Entry("recorded", sf.Recorded(on.truth, on.truth)), measured, over_grids=())
    region = sf.Region.around(on.truth, margin_m=100)
    page, checker = _written(
        Comparison(on=on, train=None, rows=(row,), region=region), tmp_path / "page.html"
    )
    _assert_self_contained(page, checker)
    assert "not known" in checker.text and "nobody wins" in checker.text
    assert not re.search(r"\bnan\b", checker.text, re.IGNORECASE)


def test_infinite_geo_indistinguishability_is_shown_as_infinite(tmp_path: Path) -> None:
    _, checker = _written(
        compare([Entry("identity", sf.Identity(), 10.0)], on=_samples(2)), tmp_path / "page.html"
    )
    assert "∞no guarantee" in checker.text


def test_who_breaks_the_budget_does_not_win(tmp_path: Path) -> None:
    entries = [
        Entry("far", sf.constant((0.0, 0.0)), 5.0),
        Entry("near", sf.Snapped(sf.Identity(), sf.Grid(cell_m=5)), 5.0),
    ]
    _, checker = _written(compare(entries, on=_samples(3)), tmp_path / "page.html")
    assert "Within 5 m, the best guess against near errs 0.000" in checker.text
    assert "Over the budget on this data: far" in checker.text


def test_reports_beyond_the_window_are_counted(tmp_path: Path) -> None:
    on = _samples(2)
    _, checker = _written(
        compare([Entry("away", sf.constant((9e6, 0.0)), 50.0)], on=on), tmp_path / "page.html"
    )
    assert (
        "600 reports; 600 (100.0%) beyond this window, not shown. 100% of them at one place."
        in checker.text
    )


def test_56_users_look_different() -> None:
    assert len({look_of(user) for user in range(56)}) == 56


def test_points_at_one_place_fan_out_and_others_stay() -> None:
    points = np.array([[0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]])
    spread = fan_out(points, 1.0)
    assert np.array_equal(spread[:2], points[:2])
    assert np.allclose(np.hypot(*spread[2:].T), np.sqrt([1, 2]))


def test_a_description_holds_no_address_in_memory() -> None:
    assert described(sf.Function(lambda truth, random: truth)) == "function(rule=<lambda>)"
    assert described(sf.Snapped(sf.PlanarLaplace(0.01), sf.Grid(cell_m=25))).startswith(
        "snapped(inner=planar laplace(epsilon=0.01"
    )


def test_many_mechanisms_and_users_stay_below_two_megabytes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    secret = np.repeat(np.arange(30), 70)
    truth = random.uniform(-2000, 2000, (30, 2))[secret] + random.normal(0, 300, (len(secret), 2))
    on = sf.Samples(secret=secret, truth=truth, secrets=tuple(map(str, range(30))))
    noise = [
        sf.Function(lambda truth, random, by=by: truth + random.normal(0, by, truth.shape))
        for by in range(100, 180, 10)
    ]
    comparison = compare(
        [Entry(f"noise {number}", mechanism) for number, mechanism in enumerate(noise)],
        on=on,
        hits=1,
    )
    _assert_self_contained(*_written(comparison, tmp_path / "page.html"))
