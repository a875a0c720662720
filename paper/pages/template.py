"""Pages are templates in paper/templates; the words stand there, the numbers come from JSON."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, meta

_FOLDER = Path(__file__).resolve().parent.parent / "templates"
_TEMPLATES = Environment(  # Markdown of our own numbers, so nothing is escaped
    loader=FileSystemLoader(_FOLDER),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def filled(name: str, **values: Any) -> str:
    """The page made from a template, which uses every value; lists of lines are joined."""
    used = meta.find_undeclared_variables(_TEMPLATES.parse((_FOLDER / name).read_text("utf-8")))
    if unused := values.keys() - used:
        raise ValueError(f"paper/templates/{name} does not use {', '.join(sorted(unused))}")
    joined = {
        key: "\n".join(value) if isinstance(value, list) else value for key, value in values.items()
    }
    return _TEMPLATES.get_template(name).render(joined).rstrip() + "\n"
