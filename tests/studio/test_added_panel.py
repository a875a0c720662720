"""The panel of the guide to extending sfumato, added to the page as the guide says."""

import re
from pathlib import Path
from typing import Any

import sfumato.studio
from tests.studio.server import Served

_GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/extend.md"
_MAIN = Path(sfumato.studio.__file__).parent / "static/main.js"


def test_the_panel_of_the_guide_is_one_file_and_one_line(browser: Any, studio: Served) -> None:
    section = _GUIDE.read_text("utf-8").split("## A studio panel")[1]
    panel, line = (
        re.sub(r"^    ", "", block, flags=re.M)
        for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.M)
    )
    brought, entry = line.strip().splitlines()
    main = _MAIN.read_text("utf-8")
    changed = (
        brought + "\n" + main.replace("\n];\nconst counted", f"\n  {entry}\n];\nconst counted")
    )
    assert entry in changed
    context = browser.new_context()
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    served = {"main.js": changed, "panel-notes.js": panel}

    def answer(route: Any) -> None:
        name = route.request.url.rsplit("/", 1)[1]
        route.fulfill(content_type="text/javascript", body=served[name])

    for name in served:
        page.route(f"**/{name}", answer)
    page.goto(studio.address)
    page.get_by_role("tab", name="Notes").click()
    page.get_by_text("0 runs so far.").wait_for()
    assert page.get_by_role("heading", name="Notes").is_visible() and not wrong
    context.close()
