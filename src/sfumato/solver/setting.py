"""A setting of a solver, documented once: where it stands."""

from dataclasses import field
from typing import Any


def setting(
    default: Any,
    text: str,
    *,
    option: str | None = None,
    flag: str | None = None,
) -> Any:
    """A dataclass field with its default and its help text.

    `option` makes it an option of `sfumato solve`: the word for its value in the help.  `flag` is
    the option's name where it is not the field's.

    >>> from dataclasses import dataclass, fields
    >>> @dataclass(frozen=True)
    ... class Example:
    ...     rounds: int = setting(20, "How many rounds are played.", option="N")
    >>> fields(Example)[0].metadata["help"]
    'How many rounds are played.'
    """
    return field(default=default, metadata={"help": text, "option": option, "flag": flag})
