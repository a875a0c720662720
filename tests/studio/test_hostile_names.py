"""Names of users and files that are markup, keys of objects or endless stay names."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from tests.studio.server import served

NAMES = (
    "<img src=x onerror='window.done = 1'>",
    '"><script>window.done = 1</script>',
    "__proto__",
    "constructor",
    "${window.done = 1}",
    "a" * 3000,
)


def _file(folder: Path) -> Path:
    path = folder / "<b onclick='x'>&amp;.csv"
    random = np.random.default_rng(7)
    with path.open("w", newline="") as target:
        rows = csv.writer(target)
        rows.writerow(["user", "lat", "lon"])
        for name in NAMES:
            middle = random.normal((48.857, 2.347), 0.004)
            rows.writerows([name, *place] for place in random.normal(middle, 0.002, (8, 2)))
    return path


def test_no_panel_runs_or_is_widened_by_a_name(browser: Any, tmp_path: Path) -> None:
    source = _file(tmp_path)
    with served(str(source)) as studio:
        context = browser.new_context(viewport={"width": 390, "height": 844}, accept_downloads=True)
        page = context.new_page()
        page.goto(studio.address)
        page.get_by_text("check-ins of 6 users").first.wait_for()
        page.get_by_role("tab", name="Solve").click()
        page.locator("#solver").select_option("coin")
        page.get_by_role("button", name="Solve", exact=True).click()
        page.get_by_role("button", name="Keep", exact=True).click()
        page.get_by_role("tab", name="Compare").click()
        page.get_by_text("Each user: loss").wait_for()
        page.get_by_role("tab", name="Attack").click()
        page.get_by_role("button", name="Begin").click()
        page.get_by_role("button", name="__proto__").click()
        page.get_by_role("button", name="Next report").wait_for()
        for tab in page.get_by_role("tab").all():
            tab.click()
            page.locator("#panel h2").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab.inner_text()
            assert page.evaluate("window.done") is None
            assert page.locator("#panel img, #panel script, #panel b").count() == 0
        with page.expect_download() as download:
            page.get_by_role("link", name="Download report.html").click()
        download.value.save_as(tmp_path / "report.html")
        page.goto((tmp_path / "report.html").as_uri())
        page.get_by_text("How to read it").first.wait_for()
        assert page.evaluate("window.done") is None

        source.unlink()  # while the page is open
        page.goto(studio.address)
        page.get_by_text("Your work on this page was restored").wait_for()
        page.get_by_role("tab", name="Solve").click()
        page.locator("#solver").select_option("laplace")
        page.get_by_role("button", name="Solve", exact=True).click()
        page.get_by_role("alert").get_by_text("There is no file").wait_for()
        context.close()
