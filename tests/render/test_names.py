"""Names are shown as they are, but for what a terminal would obey."""

import pytest

from sfumato.render.names import printable


@pytest.mark.parametrize(
    "name", ["Anna", "", "Zoë 日本", "می\u200cخواهم", "👩\u200d💻", "a b\u00a0c"]
)
def test_an_ordinary_name_is_shown_as_it_is(name: str) -> None:
    assert printable(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb\nc\td\x00", r"a\rb\nc\td\x00"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\u2066a\u2069\u200e", r"\u2066a\u2069\u200e"),
        ("\udc80", r"\udc80"),
        ("a\u2028b\u2029c\u0085", r"a\u2028b\u2029c\x85"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(name: str, shown: str) -> None:
    assert printable(name) == shown
    printable(name).encode("utf-8")


def test_names_that_differ_in_what_cannot_be_seen_look_different() -> None:
    assert len({printable(name) for name in ("Anna", "Anna\u200b", "Anna\u202c", "Anna\x08")}) == 4
