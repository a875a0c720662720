"""Takes the pictures of the studio's guide: `.venv/bin/python docs/images/studio.py` (needs
Chromium; some minutes)."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
BUDGET = "170"
WAIT_MS = 1_200_000  # a busy machine may take long


def main() -> None:
    studio = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "studio", "--no-open"], stdout=subprocess.PIPE, text=True
    )
    assert studio.stdout is not None
    address = studio.stdout.readline().strip()
    try:
        with sync_playwright() as playwright:
            options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=options
            )
            page = browser.new_page(viewport=DESK)
            page.set_default_timeout(WAIT_MS)
            page.goto(address)
            tour(page)
            browser.close()
    finally:
        studio.terminate()
        studio.wait()


def tour(page: Page) -> None:
    """Four users in Paris through the five panels."""
    page.get_by_role("button", name="Four corners").click()
    page.get_by_text("2,400 check-ins").first.wait_for()
    shoot(page, "data")
    page.get_by_role("tab", name="Solve").click()
    page.fill("#budget-number", BUDGET)
    page.get_by_text("Refined.").wait_for()
    learned = page.evaluate(
        "[...document.querySelector('#solver').options].map(one => one.value).find(one => one ==="
        " 'codebook') ?? 'game'"
    )
    solve(page, learned, picture=True)
    page.get_by_role("tab", name="Compare").click()
    for solver in ("laplace", "exact"):
        page.get_by_role("tab", name="Solve").click()
        solve(page, solver)
    page.get_by_role("tab", name="Compare").click()
    page.locator("#figures tbody tr").nth(2).wait_for()
    page.get_by_role("button", name="next check-in").click()
    page.locator(".bars").nth(2).wait_for()
    shoot(page, "compare")
    page.get_by_role("tab", name="Attack").click()
    page.get_by_role("button", name="Begin").click()
    for number in (0, 1, 2):
        page.get_by_role("group", name="Who sent this report?").get_by_role("button").nth(
            number
        ).click()
        if number < 2:
            page.get_by_role("button", name="Next report").click()
    shoot(page, "attack")
    page.get_by_role("tab", name="Take away").click()
    page.locator("#command").wait_for()
    shoot(page, "take")


def solve(page: Page, solver: str, *, picture: bool = False) -> None:
    """Solve at the budget and keep; the picture is taken when it has ended."""
    page.fill("#budget-number", BUDGET)
    page.select_option("#solver", solver)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#result").wait_for()
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_text("Kept for comparing").wait_for()
    if picture:
        shoot(page, "solve")


def shoot(page: Page, name: str) -> None:
    """On a desk in light and dark, on a phone in light and dark."""
    for size, place in ((DESK, ""), (PHONE, "-phone")):
        for scheme, look in (("light", ""), ("dark", "-dark")):
            settings: dict[str, Any] = {"color_scheme": scheme}
            page.set_viewport_size(size)
            page.emulate_media(**settings)
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(700)
            page.screenshot(path=HERE / f"studio-{name}{place}{look}.png")
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    main()
