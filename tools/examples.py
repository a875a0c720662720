"""Docstrings on the reference pages: their examples as code, and the settings of a solver in words
beside plain defaults."""

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Fences each block that starts with `>>>`; lists what `setting` says of a solver's fields."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """A field that is made by `setting` has the default that it holds."""
        made = attr.value
        if isinstance(made, griffe.ExprCall) and str(made.function) == "setting":
            attr.value = made.arguments[0]

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None:
            return
        obj.docstring.value = _EXAMPLE.sub(
            lambda block: f"```pycon\n{block.group()}\n```", obj.docstring.value
        )
        if obj.is_class and (said := "\n".join(_settings(obj))):
            obj.docstring.value += f"\n\n{said}\n"


def _settings(obj: griffe.Object) -> list[str]:
    if obj.parent is None or not obj.parent.is_module:
        return []
    found = getattr(import_module(obj.parent.path), obj.name, None)
    if not isinstance(found, type) or not is_dataclass(found):
        return []
    return [f"- `{one.name}`: {one.metadata['help']}" for one in fields(found) if one.metadata]
