"""How values show themselves, without knowing the room that words them.

A class that can be shown calls `text`, `html`, `page` or `figure` on itself; `sfumato.render`
registers what each answers, per class (`html.register`).  Which modules do so stands in
`sfumato/__init__.py` (`worded_by`); they are imported one after the other, until one knows the
value: a terminal table needs none of what pages need.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato.errors import MissingExtra, missing_extra

_waiting: list[Callable[[], object]] = []


def worded_by(load: Callable[[], object]) -> None:
    """Call `load`, which registers, before a value is shown that nobody knows yet."""
    _waiting.append(load)


@singledispatch
def text(value: object) -> str:
    """A table for a terminal."""
    return str(_registered(text, value))


@singledispatch
def html(value: object) -> str:
    """A small table for a notebook; never a coordinate of the data."""
    return str(_registered(html, value))


@singledispatch
def page(value: object) -> str:
    """A whole page of HTML."""
    return str(_registered(page, value))


@singledispatch
def figure(value: object) -> Any:
    """A figure of Matplotlib."""
    return _registered(figure, value)


def _registered(show: Any, value: object) -> Any:
    while show.dispatch(type(value)) is show.dispatch(object) and _waiting:
        try:
            _waiting[0]()
        except ImportError as error:
            raise missing_extra(error) or error from None
        del _waiting[0]
    if show.dispatch(type(value)) is show.dispatch(object):
        raise TypeError(f"nothing says how to show a {type(value).__name__}")
    return show(value)


class InNotebooks:
    """What notebooks show as the table of `html`.  `instead` has what to type in place of names
    that it is often asked for and does not have."""

    instead: ClassVar[dict[str, str]] = {}

    if not TYPE_CHECKING:  # it would make any name pass

        def __getattr__(self, name):
            kind = type(self)
            if hasattr(kind, name):  # a property that failed says why
                return object.__getattribute__(self, name)
            said = f"; type {kind.instead[name]}" if name in kind.instead else ""
            raise AttributeError(f"a {kind.__name__} has no '{name}'{said}", name=name, obj=self)

    def _repr_html_(self) -> str | None:
        try:
            return html(self)
        except MissingExtra:  # a plain install: the notebook shows `repr`
            return None


class Printed:
    """What prints as the table, or the sentences, of `text`."""

    def __str__(self) -> str:
        return text(self)


class Drawn:
    """What can be drawn."""

    def plot(self) -> Any:
        """A figure, which notebooks show; `plot().savefig("figure.png")` writes it to a file."""
        return figure(self)
