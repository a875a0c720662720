"""A file of many users: each can be found, fewer are proposed; and every figure is explained."""

from pathlib import Path
from typing import Any

from tests.studio.data import checkins


def test_many_users_are_searched_and_fewer_are_proposed(page: Any, tmp_path: Path) -> None:
    page.set_input_files("#file", str(checkins(tmp_path / "many.csv", users=140, each=2)))
    page.get_by_text("280 check-ins of 140 users", exact=False).first.wait_for()
    assert page.locator(".users label").count() == 100
    assert page.get_by_text("The 100 most frequent of 140 users").is_visible()
    page.fill("#find-user", "USER13")
    assert page.locator(".users label").count() == 11  # 13 and 130 to 139
    page.get_by_role("button", name="Untick those found").click()
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_text("258 check-ins of 129 users", exact=False).first.wait_for()
    page.get_by_role("button", name="Tick those found", exact=True).click()
    page.get_by_role("button", name="Keep the 6 most frequent").click()
    page.get_by_text("12 check-ins of 6 users", exact=False).first.wait_for()
    assert page.get_by_role("button", name="Keep the 6 most frequent").count() == 0


def test_every_panel_says_what_the_figures_mean(page: Any) -> None:
    page.get_by_role("button", name="Four corners").click()
    page.get_by_text("2,400 check-ins of 4 users", exact=False).first.wait_for()
    for panel in ("Data", "Solve", "Compare", "Attack", "Take away"):
        page.get_by_role("tab", name=panel).click()
        assert page.get_by_text("What do the figures mean?").is_visible()
    page.get_by_text("What do the figures mean?").click()
    terms = page.locator(".glossary dt").all_inner_texts()
    assert {"Bayes error ↑", "Exposed ↓", "Gap ↓", "Budget", "Blind guess"} <= set(terms)
