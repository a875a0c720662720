"""The extension's doors: pages that try to reach the true place, in Chromium with the extension and,
as a control, without it."""

import pytest

from tests.web import doors
from tests.web.doors import is_true, seen_by_pages
from tests.web.extension import serving_pages


@pytest.fixture(scope="module")
def seen(extension, without_extension):
    with serving_pages(doors.pages()) as url:
        found = {
            "with": seen_by_pages(extension, url),
            "without": seen_by_pages(without_extension, url),
        }
        settings = extension.say({"kind": "settings"})["settings"]
        extension.say({"kind": "save", "settings": {**settings, "strict": False}})
        found["not strict"] = seen_by_pages(extension, url, doors.HELD)
        extension.say({"kind": "save", "settings": settings})
    return found


@pytest.mark.parametrize("name", doors.LEAKS | doors.HELD)
def test_no_true_place_goes_through_this_door(seen, name):
    assert any(map(is_true, seen["without"][name])), "the control: without the extension it does"
    assert seen["with"][name] and not any(map(is_true, seen["with"][name])), seen["with"][name]


@pytest.mark.parametrize("name", doors.HELD)
def test_the_ways_past_that_the_guide_lists_are_open_where_strict_is_off(seen, name):
    """One that is closed there too is to be struck from the guide."""
    assert any(map(is_true, seen["not strict"][name]))


def test_the_doors_that_ask_get_a_report(seen):
    """All but the frames that are denied answer; all with the same report: one site, one place."""
    answers = [value for found in seen["with"].values() for value in found]
    places = {tuple(value) for value in answers if isinstance(value, list) and not is_true(value)}
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
