"""Linked reports in the studio: one curve per number of reports, the endless budget, and a
mechanism for the number that the slider chooses."""

import queue
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.data.samples import Samples
from sfumato.studio import prove
from sfumato.studio.work import solve_task
from sfumato.study.folder import load_run
from tests.studio.data import checkins


def test_the_slider_shows_a_curve_per_number_and_solves_for_the_chosen_one(page: Any) -> None:
    page.get_by_role("tab", name="Solve").click()
    page.fill("#cell", "100")
    page.fill("#budget-number", "120")
    slider = page.get_by_role("slider", name="Reports seen together")
    slider.focus()
    for words in ("5 reports", "10 reports"):
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == words
        assert page.locator("#reports-now").inner_text() == words
    page.locator("#linked dl").wait_for()
    page.get_by_text(re.compile(r"on the training check-ins\.$")).wait_for()  # all budgets
    chart = page.get_by_role("img", name=re.compile("1, 5, 10, 50 linked reports; from"))
    assert chart.locator("path.line").count() == 4 and chart.locator("path.chosen").count() == 1
    assert chart.get_by_text("linking is useless").count() == 1
    said = page.locator("#linked").inner_text()
    least, most = (
        float(re.search(rf"([\d.]+){words}", said.replace("\n", " "))[1])
        for words in (" is reached; 1", " at most")
    )
    assert 0 < least <= most < 1
    assert re.search(r"From \d+ m on linking is useless", said)
    # The number of reports is what is kept small: nothing else can be chosen beside it.
    assert page.locator("#objective").is_disabled()
    page.select_option("#solver", "exact")
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#result-linked").wait_for()
    assert "10 reports seen together: Bayes error" in page.locator("#result-linked").inner_text()
    page.get_by_role("tab", name="Take away").click()
    page.select_option("#which", label="exact, 120 m, 10 reports (not kept)")
    page.locator("#command").get_by_text("--solver exact").wait_for()
    command = shlex.split(page.locator("#command").inner_text())
    assert command[command.index("--reports") + 1] == "10"


def test_figures_between_budgets_are_those_that_hold(page: Any) -> None:
    def point(loss: float, overlap: float, bound: float) -> dict[str, Any]:
        return {"max_loss": loss, "bayes_errors": [], "overlap": overlap, "overlap_bound": bound}

    linked = {"points": [point(100, 0.4, 0.5), point(200, 0.7, 0.8)]}
    found = page.evaluate(
        """async linked => { const { linkedAt } = await import("./static/linked.js");
        return [90, 100, 150, 250].map(at => linkedAt(linked, at)); }""",
        linked,
    )
    assert found[0] is None
    assert [(one["overlap"], one["bound"]) for one in found[1:]] == [
        (0.4, 0.5),
        (0.4, 0.8),  # reached at the smaller budget, bounded at the larger
        (0.7, 1),
    ]


def test_budgets_that_are_asked_for_meanwhile_are_answered_between_and_linking_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkins(tmp_path / "small.csv", users=2, each=3)
    monkeypatch.setattr(prove, "LINKED_COUNTS", (2, "endless"))
    monkeypatch.setattr(prove, "_LINKED_BUDGETS", 2)
    inbox: queue.Queue[Any] = queue.Queue()
    refine = {"kind": "refine", "max_loss": 100.0, "cell_m": 100.0, "time_limit": None}
    told: list[dict[str, Any]] = []

    def tell(message: dict[str, Any]) -> None:
        told.append(message)
        if message["kind"] == "linked" and sum(one["kind"] == "linked" for one in told) == 1:
            inbox.put(refine)
            inbox.put({"kind": "link", "time_limit": None})
        if message["kind"] == "linked" and message["done"]:
            raise KeyboardInterrupt  # the page went away

    inbox.put({"kind": "link", "time_limit": None})
    task = {"recipe": {"source": str(path)}, "source": str(path), "cell_m": 200.0}
    with pytest.raises(KeyboardInterrupt):
        prove.prove_task({**task, "time_limit": 30}, tell, inbox)
    kinds = [message["kind"] for message in told if message["kind"] in ("linked", "refined")]
    assert kinds.index("refined") == 1 and kinds.count("refined") == 1
    assert [one["done"] for one in told if one["kind"] == "linked"][-2:] == [False, True]


def test_much_data_is_thinned_and_too_many_users_are_refused_in_words() -> None:
    random = np.random.default_rng(0)
    secret = np.arange(1000) % 4
    many = Samples(secret=secret, truth=random.normal(0, 100, (1000, 2)), secrets=tuple("abcd"))
    few = prove.thinned(many)
    assert few.counts.tolist() == [60] * 4
    assert {tuple(row) for row in few.truth} <= {tuple(row) for row in many.truth}
    names = tuple(f"user{number}" for number in range(30))
    crowd = Samples(secret=np.arange(90) % 30, truth=many.truth[:90], secrets=names)
    told: list[dict[str, Any]] = []
    prove.link(crowd, prove.coarse_problem(crowd, 200.0), {"time_limit": None}, told.append)
    assert len(told) == 1 and "at most 24 users; got 30" in told[0]["error"]


def test_a_run_for_endless_reports_is_kept_as_one(tmp_path: Path) -> None:
    path = checkins(tmp_path / "small.csv", users=2, each=3)
    task = {"recipe": {"source": str(path)}, "source": str(path), "solver": "exact"}
    task |= {"max_loss": 100.0, "objective": "bayes", "reports": "endless", "cell_m": 100.0}
    told: list[dict[str, Any]] = []
    solve_task({**task, "seed": 0, "time_limit": None, "out": str(tmp_path / "run")}, told.append)
    assert told[-1]["solution"]["linked"]["reports"] == "endless"
    assert load_run(tmp_path / "run").record.reports == "endless"
