"""The extension's doors: pages that try to reach the true place, in Chromium with the extension and,
as a control, without it."""

import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from tests.web import doors
from tests.web.extension import TRUTH, serving_pages

_WAIT_S = 60.0


def _true(value: Any) -> bool:
    """Whether a page got the true place.  Reports lie on a grid whose points are 5 m from it at
    least; a report of five decimals is told from the truth by a millionth of a degree."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(part, float) for part in value)
        and abs(value[0] - TRUTH["latitude"]) < 1e-6
        and abs(value[1] - TRUTH["longitude"]) < 1e-6
    )


def _seen(browser: Any, url: str, names: Iterable[str] = doors.ALL) -> dict[str, list[Any]]:
    """What every page got: all are opened at once, and read when each has something and 1.5 s have
    passed."""
    wanted = {url + doors.address(name): name for name in names}
    opener = browser.opened(f"{url}/opener")
    opener.evaluate("(all) => all.forEach((one) => open(one, '_blank', 'noopener'))", [*wanted])
    until = time.monotonic() + _WAIT_S
    opener.wait_for_timeout(1500)
    found: dict[str, list[Any]] = {}
    while len(found) < len(wanted):
        for page in browser.context.pages:
            name = wanted.get(page.url)
            if name is None or name in found:
                continue
            seen = json.loads(page.evaluate("JSON.stringify(seen)"))
            if seen or time.monotonic() > until:
                found[name] = seen
        assert time.monotonic() < until + _WAIT_S, set(wanted.values()) - set(found)
        opener.wait_for_timeout(100)
    for page in browser.context.pages:
        if page.url.startswith("http"):
            page.close()
    return found


@pytest.fixture(scope="module")
def seen(extension, without_extension):
    with serving_pages(doors.pages()) as url:
        found = {"with": _seen(extension, url), "without": _seen(without_extension, url)}
        settings = extension.say({"kind": "settings"})["settings"]
        extension.say({"kind": "save", "settings": {**settings, "strict": False}})
        found["not strict"] = _seen(extension, url, doors.HELD)
        extension.say({"kind": "save", "settings": settings})
    return found


@pytest.mark.parametrize("name", doors.LEAKS | doors.HELD)
def test_no_true_place_goes_through_this_door(seen, name):
    assert any(map(_true, seen["without"][name])), "the control: without the extension it does"
    assert seen["with"][name] and not any(map(_true, seen["with"][name])), seen["with"][name]


@pytest.mark.parametrize("name", doors.HELD)
def test_the_ways_past_that_the_guide_lists_are_open_where_strict_is_off(seen, name):
    """One that is closed there too is to be struck from the guide."""
    assert any(map(_true, seen["not strict"][name]))


def test_the_doors_that_ask_get_a_report(seen):
    """All but the frames that are denied answer; all with the same report: one site, one place."""
    answers = [value for found in seen["with"].values() for value in found]
    places = {tuple(value) for value in answers if isinstance(value, list) and not _true(value)}
    pairs = {place for place in places if len(place) == 2}
    assert len(pairs) == 1
    answered = sum(any(isinstance(v, list) for v in seen["with"][name]) for name in doors.LEAKS)
    assert answered >= len(doors.LEAKS) - 8


def test_a_sandboxed_frame_is_denied(seen):
    assert seen["with"]["a sandboxed frame"] == ["error 1"]


def test_workers_have_no_geolocation(seen):
    assert seen["with"]["workers"] == ["undefined", "undefined"]


def test_permissions_query_tells_the_browsers_own_state(seen):
    assert seen["with"]["permissions.query"] == seen["without"]["permissions.query"] == ["granted"]


def test_replaced_functions_look_as_they_did_and_show_no_source(seen):
    here, there, *rest = seen["with"]["texts of replaced functions"]
    was, _, *before = seen["without"]["texts of replaced functions"]
    assert here == was and rest == before
    assert set(there) <= {"function () { [native code] }", *was}  # from another realm: nameless
