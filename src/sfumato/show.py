"""How values show themselves, without knowing the room that words them.

A class that can be shown calls `text`, `html` or `page` on itself; `sfumato.render` registers what
each answers, per class (`html.register`).  Which modules do so stands in `sfumato/__init__.py`
(`worded_by`); they are imported one after the other, until one knows the value: a terminal table
needs none of what pages need.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

_waiting: list[Callable[[], object]] = []


def worded_by(load: Callable[[], object]) -> None:
    """Call `load`, which registers, before a value is shown that nobody knows yet."""
    _waiting.append(load)


@singledispatch
def text(value: object) -> str:
    """A table for a terminal."""
    return _registered(text, value)


@singledispatch
def html(value: object) -> str:
    """A small table for a notebook; never a coordinate of the data."""
    return _registered(html, value)


@singledispatch
def page(value: object) -> str:
    """A whole page of HTML."""
    return _registered(page, value)


def _registered(show: Any, value: object) -> str:
    while show.dispatch(type(value)) is show.dispatch(object) and _waiting:
        _waiting.pop(0)()
    if show.dispatch(type(value)) is show.dispatch(object):
        raise TypeError(f"nothing says how to show a {type(value).__name__}")
    return str(show(value))


class InNotebooks:
    """What notebooks show as the table of `html`."""

    def _repr_html_(self) -> str:
        return html(self)
