"""Pages are templates in paper/templates; the words stand there, the numbers come from JSON."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Environment(  # Markdown of our own numbers, so nothing is escaped
    loader=FileSystemLoader(Path(__file__).resolve().parent.parent / "templates"),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def filled(name: str, **values: Any) -> str:
    """The page made from a template; lists of lines are joined."""
    joined = {
        key: "\n".join(value) if isinstance(value, list) else value for key, value in values.items()
    }
    return _TEMPLATES.get_template(name).render(joined).rstrip() + "\n"
