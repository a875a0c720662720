"""How values show themselves, without knowing the room that words them.

A class that can be shown calls `text`, `html`, `page` or `figure` on itself; `sfumato.render`
registers what each answers, per class (`html.register`).  Which modules do so stands in
`sfumato/__init__.py` (`worded_by`); they are imported one after the other, until one knows the
value: a terminal table needs none of what pages need.
"""

from abc import ABCMeta
from collections.abc import Callable
from difflib import get_close_matches
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


class _Guiding(ABCMeta):
    """A name that a class does not have is answered as on its values: `Solution.load`."""

    if not TYPE_CHECKING:  # it would make any name pass

        def __getattr__(cls, name):
            raise AttributeError(_not_there(cls, name), name=name, obj=cls)


class Guided(metaclass=_Guiding):
    """What answers a name that it does not have with the one to type: that of `instead`, which
    holds what it is often asked for, or the nearest that it has, or all."""

    instead: ClassVar[dict[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            kind = type(self)
            if hasattr(kind, name):  # a property that failed says why
                return object.__getattribute__(self, name)
            raise AttributeError(_not_there(kind, name), name=name, obj=self)


def _not_there(kind: type[Guided], name: str) -> str:
    sentence = f"a {kind.__name__} has no '{name}'"
    if name.startswith("_"):  # Python asks for these, not a person
        return sentence
    if name in kind.instead:
        return f"{sentence}; type {kind.instead[name]}"
    fields = getattr(kind, "__dataclass_fields__", {})
    names = sorted(
        own for own in {*dir(kind), *fields} if own != "instead" and not own.startswith("_")
    )
    near = get_close_matches(name, names, n=1, cutoff=0.62)
    return f"{sentence}; " + (
        f"did you mean '{near[0]}'?" if near else f"it has {', '.join(names)}"
    )


class InNotebooks(Guided):
    """What notebooks show as the table of `html`."""

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
