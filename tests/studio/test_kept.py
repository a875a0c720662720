"""Kept runs outlive their page; only the person drops them."""

import time
from pathlib import Path
from typing import Any

from sfumato.studio.session import GRACE_S
from tests.studio.server import Page, Served


def _kept_run(page: Page) -> str:
    page.ask("data", {"source": "given"})
    page.ask("solve", {"solver": "coin", "max_loss": 150})
    run = page.wait_for("solve-done")["run"]["id"]
    page.ask("keep", {"run": run})
    return str(run)


def _left(studio: Served, name: str) -> dict[str, Any] | None:
    left = studio.ask("api/session")["left"]
    return next((one for one in left if one["session"] == name), None)


def test_a_kept_run_is_there_when_the_page_is_opened_again_and_goes_when_it_is_discarded(
    studio: Served,
) -> None:
    with Page(studio) as page:
        run = _kept_run(page)
        assert (_left(studio, page.id) or {})["open"]  # it can be shown, and not discarded
    time.sleep(GRACE_S + 3)
    left = _left(studio, page.id)
    assert (
        left is not None and not left["open"] and left["runs"] == 1 and left["data"] == "small.csv"
    )
    folder = Path(left["folder"])
    assert (folder / "runs" / run / "run.json").exists()
    assert studio.ask("api/session", {"previous": page.id})["session"] == page.id
    state = page.ask("state")
    assert [one["id"] for one in state["runs"]] == [run] and state["runs"][0]["kept"]
    assert "small.csv" in page.ask("download", {"run": run})["command"]
    studio.ask("api/discard", {"session": page.id})
    assert not folder.exists() and _left(studio, page.id) is None
    status, answer = studio.try_to_ask("api/discard", {"session": page.id})
    assert status == 400 and "no page of this name" in answer["error"]


def test_the_work_of_an_open_page_cannot_be_discarded_by_another(studio: Served) -> None:
    with Page(studio) as page:
        run = _kept_run(page)
        assert studio.try_to_ask("api/discard", {"session": page.id})[0] == 400
        assert [one["id"] for one in page.ask("state")["runs"]] == [run]
        page.ask("keep", {"run": run, "kept": False})


def test_other_data_does_not_drop_a_kept_run_unless_the_person_says_so(studio: Served) -> None:
    with Page(studio) as page:
        run = _kept_run(page)
        assert "would drop them" in page.refused("data", {"source": "four-corners"})
        assert [one["id"] for one in page.ask("state")["runs"]] == [run]
        page.ask("data", {"source": "four-corners", "discard": True})
        assert page.ask("state")["runs"] == []


def test_the_page_offers_the_work_of_a_closed_one(browser: Any, studio: Served) -> None:
    with Page(studio) as page:
        run = _kept_run(page)
    while (_left(studio, page.id) or {}).get("open", True):  # until the server knows it is gone
        time.sleep(0.05)
    context = browser.new_context()
    shown = context.new_page()
    shown.goto(studio.address)
    offer = shown.locator(".left").filter(has_text="small.csv").last
    offer.get_by_role("button", name="Take up again").click()
    shown.get_by_text("Your work on this page was restored").wait_for()
    shown.get_by_role("tab", name="Take away").click()
    shown.get_by_role("link", name=f"Download {run}.zip").wait_for()
    # Other data is asked about; what is refused stays.
    shown.get_by_role("tab", name="Data").click()
    asked: list[str] = []

    def refuse(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    shown.on("dialog", refuse)
    shown.get_by_role("button", name="Four corners").click()
    shown.get_by_role("tab", name="Take away").click()
    shown.get_by_role("link", name=f"Download {run}.zip").wait_for()
    assert len(asked) == 1 and "drops" in asked[0]
    context.close()
