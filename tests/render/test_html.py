"""The HTML report: self-contained, honest about what it holds, the same each time, and deaf to what
names would have it do."""

import base64
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from jinja2 import UndefinedError
from scipy import sparse

import sfumato as sf
from sfumato.data.joint import Joint
from sfumato.data.recipe import Recipe
from sfumato.errors import ProblemError
from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import judge_reports
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.codebook import CodebookNet
from sfumato.render.html import (
    amount,
    best_within_budgets,
    described,
    interval,
    listed,
    rendered,
    report_html,
    shown,
)
from sfumato.render.names import printable
from sfumato.study.compare import Compared, Comparison, Contender, compare

_VOID = {"meta", "img", "br", "hr", "link", "input"}
_HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></table></figure><style>*{display:none}</style>",
    "<!-- ]]> {{ 7 * 7 }} {% raw %} ${x}",
    "&lt;b&gt; javascript:alert(1)",
    "\x1b]0;owned\x07\x1b[31mred\x00\r\n",
    "\u202egnp.exe $x_1$ 日本",
)


class _Checker(HTMLParser):
    """Keeps the elements with the names of their attributes, what was addressed, headings without
    scope and pictures without words."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.poor: list[str] = []
        self.text = ""
        self.style = ""

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements[tag, tuple(name for name, _ in attrs)] += 1
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

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag, tuple(name for name, _ in attrs)] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment came of {data!r}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        elif self.open:
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


def _entries() -> list[Contender]:
    history = tuple(
        {"round": number, "payoff": 1 / (1 + number), "loss": 90.0, "accuracy_train": None}
        for number in range(3)
    )
    noise = sf.mechanism.Function(lambda truth, random: truth + random.normal(0, 80, truth.shape))
    return [
        Contender(
            "coarse", sf.mechanism.Snapped(sf.mechanism.Identity(), sf.Grid(cell_m=200)), 100.0
        ),
        Contender("noise & more", noise, 120.0, seed=3, status="Stopped.", history=history),
    ]


def _checked(page: str) -> _Checker:
    checker = _Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    checker.text = re.sub(r"\s+", " ", checker.text)
    return checker


def _written(comparison: Comparison, path: Path) -> tuple[str, _Checker]:
    comparison.html(path)
    page = path.read_text(encoding="utf-8")
    return page, _checked(page)


def _assert_self_contained(page: str, checker: _Checker) -> None:
    assert not re.search(r"https?://", page)
    assert not re.search(r"@import|url\(", checker.style)
    assert all(address.startswith(("data:image/", "#")) for address in checker.addresses)
    assert not checker.tags & {"script", "link", "iframe", "object", "embed", "base", "form"}
    assert len(page.encode()) < 2_000_000


def _row(
    name: str, *, loss: float, error: float, exposed: float, max_loss: float = 100.0
) -> Compared:
    """A row with the figures wanted."""
    row = compare([Contender(name, sf.mechanism.Identity(), max_loss)], on=_samples(2)).rows[0]
    figures = {"loss": loss, "bayes_error": error, "exposed": exposed}
    exact = {key: sf.Estimate.exact(value) for key, value in figures.items()}
    return replace(row, measured=replace(row.measured, **exact, over_grids=()))


def _page_of(*rows: Compared) -> _Checker:
    on = _samples(2)
    return _checked(report_html(Comparison(on=on, train=None, rows=rows, region=None)))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what the words of a page are: its pictures are not drawn."""
    _leave_undrawn(monkeypatch)


def _leave_undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sfumato.render.figures._address", lambda *_, **__: "data:image/png;base64,"
    )


@pytest.mark.parametrize(("mechanisms", "three"), [(3, False), (4, True), (5, False), (8, True)])
def test_no_picture_of_points_stands_alone_in_its_row(
    undrawn: None, mechanisms: int, three: bool
) -> None:
    """With the truth there is one picture more; four in a row leave one of five, or of nine."""
    entry = Contender("same", sf.mechanism.Identity(), 100.0)
    page = report_html(compare([entry] * mechanisms, on=_samples(2)))
    assert ('<div class="panels three">' in page) is three


@pytest.mark.parametrize("users", [2, 30])
def test_the_page_is_whole_and_needs_nothing_from_outside(tmp_path: Path, users: int) -> None:
    on = _samples(users)
    page, checker = _written(compare(_entries(), on=on, hits=20), tmp_path / "page.html")
    _assert_self_contained(page, checker)
    assert not checker.poor
    assert len(set(checker.ids)) == len(checker.ids)
    for words in (
        "coarse",
        "noise & more",
        *on.secrets,
        on.hash,
        "≈ estimated from samples",
        "computed from the mechanism's law",
        "fixed seed",
        "Learning curves",
        "Stopped.",
    ):
        assert words in checker.text, words
    assert {address for address in checker.addresses if address.startswith("#")} == {
        f"#{name}" for name in checker.ids
    }


def test_the_page_warns_of_the_true_locations_before_it_shows_anything(
    tmp_path: Path, undrawn: None
) -> None:
    _, checker = _written(compare(_entries(), on=_samples(2), hits=20), tmp_path / "page.html")
    before, found, _ = checker.text.partition("This page contains true locations.")
    assert found and before.strip() == "How well reports hide their senders: some users"


def test_the_same_comparison_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (compare(_entries(), on=_samples(3), hits=20) for _ in range(2))
    first.html(tmp_path / "first.html")
    assert (tmp_path / "first.html").stat().st_mode & 0o077 == 0  # it has true locations
    second.html(tmp_path / "second.html")
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "second.html").read_bytes()


def _named(names: tuple[str, ...], *, data: str, mechanism: str) -> Comparison:
    on = _samples(len(names), names=names, name=data)
    entries = [Contender(mechanism, sf.mechanism.Identity(), 100.0, status=mechanism), *_entries()]
    return compare(entries, on=on, train=_samples(len(names), names=names), hits=20)


def test_no_element_and_no_attribute_comes_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, everywhere = (*_HOSTILE, "Anna"), " ".join(_HOSTILE)
    harmless = tuple(f"user {number}" for number in range(len(users)))
    hostile = _named(users, data=everywhere, mechanism=everywhere)
    page, checker = _written(hostile, tmp_path / "page.html")
    _leave_undrawn(monkeypatch)
    usual = _checked(report_html(_named(harmless, data="data", mechanism="mechanism")))
    assert checker.elements == usual.elements
    assert checker.ids == usual.ids and checker.style == usual.style
    _assert_self_contained(page, checker)
    for name in (*users, everywhere):
        assert re.sub(r"\s+", " ", printable(name)) in checker.text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page)


def test_charts_with_hostile_names_are_whole_pictures(tmp_path: Path) -> None:
    entries = [replace(_entries()[1], name=name) for name in _HOSTILE]
    _, checker = _written(compare(entries, on=_samples(2), hits=5), tmp_path / "page.html")
    start = "data:image/svg+xml;base64,"
    charts = [address for address in checker.addresses if address.startswith(start)]
    assert len(charts) == 3 + len(entries)
    for chart in charts:
        root = ElementTree.fromstring(base64.b64decode(chart.removeprefix(start)))
        assert not {element.tag.rpartition("}")[2] for element in root.iter()} & {"script", "image"}


def test_a_value_that_a_template_lacks_is_an_error_not_a_blank() -> None:
    with pytest.raises(UndefinedError, match="is undefined"):
        rendered("report.html.j2")


def test_the_headline_names_the_best_within_the_budget_and_what_it_exposes_first(
    undrawn: None,
) -> None:
    checker = _page_of(
        _row("wary", loss=99, error=0.3, exposed=0.02),
        _row("coin", loss=99, error=0.4, exposed=0.2),
        _row("far", loss=101, error=0.45, exposed=0.01),
    )
    lead = checker.text.partition("do not publish it.")[2].strip()
    assert lead.startswith("How well reports hide their senders: some users Goal Hide which of")
    words = ("Goal", "Result", "Best possible", "Left exposed")
    assert sorted(words, key=lead.index) == list(words)
    assert "with a loss of at most 100 m on average." in lead
    assert (
        "coin hides the senders best on this data of those that keep the budget: the best guess of"
        " who sent a report is wrong with probability 0.400 (on its own reports), at a loss of 99.0 m."
    ) in lead
    assert "Nothing proved yet; sfumato certify RUN proves it." in lead
    assert "20.0% of the reports of coin: after each of these, one user is more than 90%" in lead
    assert "wary exposes least: 2.0%, at an error of 0.300" in lead
    assert "Over the budget on this data by 1.0 m: far, with an error of 0.450 and 1.0%" in lead
    assert checker.text.count("best within its budget") == 1
    assert "coinbest within its budget" in checker.text


def test_a_tag_says_why_it_is_not_on_the_largest_error(undrawn: None) -> None:
    outlook = Outlook(
        Estimate(99.0, 96.0, 104.0, "estimate"),
        *[Estimate(0.35, 0.3, 0.4, "estimate")] * 3,
        leakage=0.65,
        checkins=40,
    )
    rows = [
        replace(_row(name, loss=99, error=error, exposed=exposed), to_come=outlook)
        for name, error, exposed in (("coin", 0.41, 0.2), ("learned", 0.40, 0.06))
    ]
    text = _page_of(*rows).text
    assert "coinlargest Bayes error here" in text and "best within its budget" not in text
    assert "learnedwithin chance of the largest, exposes least" in text


def test_the_headline_leads_with_check_ins_to_come(undrawn: None) -> None:
    row = _row("learned", loss=99, error=0.4, exposed=0.0)
    loss, error = Estimate(100.0, 96.0, 104.0, "estimate"), Estimate(0.35, 0.3, 0.4, "estimate")
    outlook = Outlook(loss, error, error, error, leakage=0.65, checkins=40, folds=4)
    lead = _page_of(replace(row, to_come=outlook)).text
    first = lead.index("on check-ins to come the best guess of who sent a report is wrong")
    assert "≈0.350" in lead[first:] and "≈100.0 m" in lead[first:]
    assert first < lead.index("On this data that guess is wrong with probability 0.400")


def test_the_least_exposed_is_named_only_where_it_exposes_far_less() -> None:
    rows = [_row("a", loss=9, error=0.4, exposed=0.19), _row("b", loss=9, error=0.3, exposed=0.18)]
    assert best_within_budgets(rows)[0].less_exposed is None
    rows.append(_row("c", loss=9, error=0.2, exposed=0.05))
    assert best_within_budgets(rows)[0].less_exposed is rows[2]


def test_of_errors_that_cannot_be_told_apart_to_come_the_least_exposed_leads(undrawn: None) -> None:
    def fitted(row: Compared, low: float, high: float) -> Compared:
        error = Estimate((low + high) / 2, low, high, "estimate")
        loss = Estimate(9.0, 8.0, 10.0, "estimate")
        return replace(row, to_come=Outlook(loss, error, error, error, leakage=0.5, checkins=40))

    coin = fitted(_row("coin", loss=9, error=0.4, exposed=0.2), 0.35, 0.45)
    wary = fitted(_row("wary", loss=9, error=0.38, exposed=0.05), 0.33, 0.43)
    noise = fitted(_row("noise", loss=9, error=0.1, exposed=0.01), 0.05, 0.15)
    (group,) = best_within_budgets([coin, wary, noise])
    assert group.best is wary and group.close == (coin,)
    page = _page_of(coin, wary, noise).text
    assert "wary hides the senders as well as any, within chance:" in page
    assert (
        "The Bayes error of coin is the same within chance; of these wary exposes the fewest"
        " reports." in page
    )


def test_who_exposes_more_on_check_ins_to_come_does_not_lead_by_what_is_exposed_here(
    undrawn: None,
) -> None:
    rows = []
    for name, error, here, to_come in (("learned", 0.43, 0.05, 0.03), ("noise", 0.41, 0.04, 0.06)):
        errors = Estimate(error, error - 0.05, error + 0.05, "estimate")
        exposed = Estimate(to_come, 0.0, 0.2, "estimate")
        outlook = Outlook(
            loss=Estimate(9.0, 8.0, 10.0, "estimate"),
            bayes_error=errors,
            information_bits=errors,
            exposed=exposed,
            leakage=1 - error,
            checkins=40,
        )
        rows.append(replace(_row(name, loss=9, error=error, exposed=here), to_come=outlook))
    (group,) = best_within_budgets(rows)
    assert group.best is rows[0] and group.close == (rows[1],)
    text = _page_of(*rows).text
    assert "The Bayes error of noise is the same within chance." in text
    assert "exposes the fewest" not in text and "learnedbest within its budget" in text


def test_errors_within_each_others_intervals_are_said_not_to_be_told_apart(undrawn: None) -> None:
    noise = sf.mechanism.Function(lambda truth, random: truth + random.normal(0, 300, truth.shape))
    entries = [Contender("one", noise, 900.0), Contender("two", noise, 900.0)]
    compared = compare(entries, on=_samples(3), hits=5)
    (group,) = best_within_budgets(compared.rows)
    assert {group.best, *group.close} == set(compared.rows)
    assert "is the same within chance; " in _checked(report_html(compared)).text


def test_each_budget_has_its_own_best(undrawn: None) -> None:
    rows = [
        _row("near", loss=9, error=0.1, exposed=0.0, max_loss=10),
        _row("far", loss=99, error=0.4, exposed=0.0, max_loss=100),
    ]
    assert [group.best for group in best_within_budgets(rows)] == rows
    assert "No report of near makes one user more than 90% likely." in _page_of(*rows).text


def test_a_loss_that_is_not_known_is_said_and_wins_nothing(tmp_path: Path) -> None:
    on = _samples(2)
    grid = sf.Grid(cell_m=25)
    measured = judge_reports(on.secret, on.truth, grid, names=on.secrets)
    row = Compared(Contender("recorded", sf.mechanism.Recorded(on.truth, on.truth)), measured)
    region = sf.data.Region.around(on.truth, margin_m=100)
    page, checker = _written(
        Comparison(on=on, train=None, rows=(row,), region=region), tmp_path / "page.html"
    )
    _assert_self_contained(page, checker)
    assert "not known" in checker.text and "so none is the best" in checker.text
    assert not re.search(r"\bnan\b", checker.text, re.IGNORECASE)


def test_infinite_geo_indistinguishability_is_shown_as_infinite(
    tmp_path: Path, undrawn: None
) -> None:
    _, checker = _written(
        compare([Contender("identity", sf.mechanism.Identity(), 10.0)], on=_samples(2)),
        tmp_path / "page.html",
    )
    assert "∞no guarantee" in checker.text


def test_who_breaks_the_budget_does_not_win(tmp_path: Path, undrawn: None) -> None:
    entries = [
        Contender("far", sf.mechanism.constant((0.0, 0.0)), 5.0),
        Contender("near", sf.mechanism.Snapped(sf.mechanism.Identity(), sf.Grid(cell_m=5)), 5.0),
    ]
    _, checker = _written(compare(entries, on=_samples(3)), tmp_path / "page.html")
    assert (
        "With near the best guess of who sent a report is wrong with"
        " probability 0.000" in checker.text
    )
    assert re.search(r"Over the budget on this data by [0-9.]+ m: far", checker.text)


def test_all_over_the_budget_is_said(undrawn: None) -> None:
    rows = [_row(name, loss=120, error=0.4, exposed=0.01) for name in ("far", "away")]
    one, two = _page_of(rows[0]), _page_of(*rows)
    assert "None keeps the budget: it loses more on this data." in one.text
    assert "None keeps the budget: all lose more on this data." in two.text
    assert "by 20.0 m: far, with an error of 0.400 and 1.0% exposed" in one.text
    assert "20.0 m over 100 m" in one.text and "best within its budget" not in one.text + two.text


def test_reports_beyond_the_window_are_counted(tmp_path: Path, undrawn: None) -> None:
    on = _samples(2)
    _, checker = _written(
        compare([Contender("away", sf.mechanism.constant((9e6, 0.0)), 50.0)], on=on),
        tmp_path / "page.html",
    )
    assert (
        "600 reports; 600 (100.0%) beyond this window, not shown. 100% of them at one place."
        in checker.text
    )


def test_whiskers_are_explained_where_there_are_some(tmp_path: Path) -> None:
    pairs = [
        sf.mechanism.Identity(),
        lambda truth, random: truth + random.normal(0, 9, (len(truth), 2)),
    ]
    exact, _ = _written(compare(pairs[:1], on=_samples(2)), tmp_path / "exact.html")
    drawn, _ = _written(compare(pairs, on=_samples(2), hits=20), tmp_path / "drawn.html")
    assert "coarser cells errs no less" in exact and "Whiskers" not in exact
    assert "Whiskers: 95% intervals of estimates." in drawn


def test_a_wide_table_says_that_it_can_be_scrolled(undrawn: None) -> None:
    few = _page_of(_row("one", loss=9, error=0.1, exposed=0.0)).text
    many = [_row(str(number), loss=9, error=0.1, exposed=0.0) for number in range(5)]
    assert "sideways" in few  # on phones
    assert _page_of(*many).text.count("sideways") > few.count("sideways")


def test_of_very_many_users_those_who_are_easiest_to_guess_are_listed(
    monkeypatch: pytest.MonkeyPatch, undrawn: None
) -> None:
    monkeypatch.setattr("sfumato.render.html._MOST_USERS", 1)
    monkeypatch.setattr("sfumato.render.html._MOST_NAMED", 2)
    places = np.array([[0.0, 0.0], [10.0, 0.0], [5000.0, 0.0], [0.0, 10.0]])
    on = sf.Samples(
        secret=np.repeat(np.arange(4), 3),
        truth=np.repeat(places, 3, axis=0),
        secrets=("anna", "ben", "eve", "dan"),
    )
    grid = sf.Grid(cell_m=200)
    checker = _checked(
        report_html(
            compare([Contender("a", sf.mechanism.Snapped(sf.mechanism.Identity(), grid))], on=on)
        )
    )
    assert "The 1 of 4 users who are easiest to guess." in checker.text
    assert "and 2 more users; colours and markers repeat" in checker.text
    table = checker.text.partition("For each user:")[2].partition("Worst cases")[0]
    assert "eve" in table and "anna" not in table


def test_a_table_that_is_held_sparse_has_the_same_worst_cases(
    monkeypatch: pytest.MonkeyPatch, undrawn: None
) -> None:
    on = sf.four_corners(seed=0).test.split(12, 0, seed=0).train
    whole = compare([Contender("noise", sf.mechanism.PlanarLaplace.for_loss(173))], on=on)
    row = whole.rows[0]
    joint = row.measured.joint
    monkeypatch.setattr("sfumato.data.joint.MOST_DENSE", 10)
    held = Joint(sparse.csr_matrix(joint.table), joint.places, joint.secrets)
    assert held.sparse is not None
    other = replace(whole, rows=(replace(row, measured=replace(row.measured, joint=held)),))

    def worst(comparison: Comparison) -> str:
        return _checked(report_html(comparison)).text.rpartition("Worst cases")[2]

    assert worst(other) == worst(whole)


def test_users_left_out_are_shown_or_said_to_be_missing(undrawn: None) -> None:
    problem = sf.Problem(Recipe("four-corners", per_user=(12, 0)).load().train, max_loss=173)
    solution = sf.solve(problem, sf.Coin())
    assert "not measured in this comparison" in _checked(report_html(compare([solution]))).text
    checker = _checked(report_html(compare([solution], leave_one_out=True)))
    assert "coin: each user left out of training in turn" in checker.text
    assert "not measured in this comparison" not in checker.text


def test_a_number_is_marked_where_it_is_estimated() -> None:
    assert shown(sf.Estimate.exact(0.5)) == "0.500" and interval(sf.Estimate.exact(0.5)) == ""
    rough = sf.Estimate(0.5, 0.4, 0.6, "estimate")
    assert (shown(rough), interval(rough)) == ("≈0.500", "0.400 to 0.600")
    assert interval(sf.Estimate.exact(0.5, within=0.1), "{:.1f}") == "0.4 to 0.6"


def test_small_amounts_do_not_read_zero_and_names_make_a_list() -> None:
    assert [amount(value) for value in (172.94, 0.0021, 0)] == ["172.9", "0.0021", "0"]
    assert listed(["a"]) == "a" and listed("abc") == "a, b and c"
    assert listed("abcd", most=2) == "a, b and 2 more"


def test_a_loss_at_its_budget_is_not_over_it() -> None:
    assert _row("at", loss=100, error=0.1, exposed=0.0).over_by == 0
    assert _row("over", loss=101, error=0.1, exposed=0.0).over_by == pytest.approx(1)


def test_a_description_holds_no_address_in_memory() -> None:
    assert described(sf.mechanism.Function(lambda truth, random: truth)) == "function (<lambda>)"
    assert described(
        sf.mechanism.Snapped(sf.mechanism.PlanarLaplace(0.01), sf.Grid(cell_m=25))
    ).startswith("snapped (planar laplace (epsilon 0.01 per metre)")


def test_a_description_names_settings_in_words_and_leaves_out_those_at_their_default() -> None:
    grid, places = sf.Grid(cell_m=25), np.array([[0.0, 0.0], [25.0, 0.0]])
    layers = ((np.ones((4, 2)), np.zeros(2)),)
    made = CodebookNet(places, layers, np.ones((2, 1)), grid, unit_m=200.0, max_distance=400.0)
    assert described(made) == (
        "codebook net (25 m cells, unit 200 m, never further off than 400 m, 16 numbers)"
    )
    for usual in (made, sf.mechanism.Coin(keep=0.2, place=(3.0, 4.0))):
        assert not re.search(r"=|None|_| 0[,)]", described(usual))


def test_a_description_counts_the_numbers_of_arrays_and_shows_none() -> None:
    text = described(sf.mechanism.Recorded(np.full((7, 2), 12.5), np.full((7, 2), 13.5)))
    assert "28 numbers" in text and "array" not in text and ".5" not in text


def test_many_mechanisms_and_users_stay_below_two_megabytes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    secret = np.repeat(np.arange(30), 70)
    truth = random.uniform(-2000, 2000, (30, 2))[secret] + random.normal(0, 300, (len(secret), 2))
    on = sf.Samples(secret=secret, truth=truth, secrets=tuple(map(str, range(30))))
    noise = [
        sf.mechanism.Function(
            lambda truth, random, by=by: truth + random.normal(0, by, truth.shape)
        )
        for by in range(100, 180, 10)
    ]
    comparison = compare(
        [Contender(f"noise {number}", mechanism) for number, mechanism in enumerate(noise)],
        on=on,
        hits=1,
    )
    _assert_self_contained(*_written(comparison, tmp_path / "page.html"))


def test_a_comparison_of_categories_has_no_report() -> None:
    table = sf.CategoricalData(
        sf.data.Joint(np.eye(2) / 2, secrets=("a", "b")), ("x", "y"), ("x", "y"), 1 - np.eye(2)
    )
    comparison = compare([sf.solve(sf.Problem(table, max_loss=0.25), sf.Exact())], on=table)
    with pytest.raises(ProblemError, match="has no map"):
        report_html(comparison)
