"""Two pages that show one piece of work, and one that is loaded again while a solver works."""

from typing import Any

import pytest

from tests.studio.server import Served


def _solve_slowly(page: Any) -> None:
    page.get_by_role("tab", name="Solve").click()
    page.locator("#solver").select_option("game")  # a codebook may be learned before the Stop
    page.get_by_role("button", name="Solve", exact=True).click()
    page.get_by_role("heading", name="At work").wait_for()


def _stop(page: Any) -> Any:
    return page.get_by_role("button", name="Stop", exact=True)


def test_stop_is_at_hand_after_the_page_was_loaded_again(page: Any) -> None:
    _solve_slowly(page)
    page.reload()
    page.get_by_text("Your work on this page was restored").wait_for()
    page.get_by_role("tab", name="Solve").click()
    assert page.get_by_role("button", name="Solve", exact=True).is_disabled()
    _stop(page).click()
    page.locator(".said").get_by_text("Stopped").wait_for()


def test_a_result_can_be_kept_after_the_page_was_loaded_again(page: Any) -> None:
    page.get_by_role("tab", name="Solve").click()
    page.locator("#solver").select_option("coin")
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#result").wait_for()
    page.reload()
    page.get_by_text("Your work on this page was restored").wait_for()
    page.get_by_role("tab", name="Solve").click()
    page.locator("#result").wait_for()
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("button", name="Next: compare").wait_for()


@pytest.mark.parametrize("stopper", [0, 1])
def test_a_second_page_shows_the_job_and_a_stop_in_one_is_seen_in_the_other(
    page: Any, studio: Served, stopper: int
) -> None:
    _solve_slowly(page)
    second = page.context.new_page()
    second.goto(studio.address)
    offer = second.locator(".left").filter(has_text="Another page works on small.csv")
    offer.get_by_role("button", name="Show it here too").first.click()
    second.get_by_text("Your work on this page was restored").wait_for()
    second.get_by_role("tab", name="Solve").click()
    second.get_by_role("heading", name="At work").wait_for()
    both = (page, second)
    _stop(both[stopper]).click()
    for one in both:
        one.locator(".said").get_by_text("Stopped").wait_for()
        assert _stop(one).is_disabled()
    # What one chooses, solves and keeps is in the other, too.
    page.locator("#solver").select_option("coin")
    page.get_by_role("button", name="Solve", exact=True).click()
    page.get_by_role("button", name="Keep", exact=True).click()
    second.get_by_role("tab", name="Take away").click()
    second.get_by_role("link", name="Download coin").first.wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("tab", name="Data").click()
    page.get_by_role("button", name="Four corners").click()
    second.get_by_role("tab", name="Data").click()
    second.get_by_text("check-ins of 4 users").first.wait_for()
    second.close()


def test_from_the_keyboard_solve_leads_to_stop_and_stop_to_solve(page: Any) -> None:
    page.get_by_role("tab", name="Solve").click()
    page.locator("#solver").select_option("game")
    page.locator("#solve").press("Enter")
    page.locator("#stop:focus").wait_for()
    page.keyboard.press("Enter")
    page.locator("#solve:focus").wait_for()
