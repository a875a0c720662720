"""Sentences of the library as the page says them."""

from sfumato.errors import SfumatoError

_FIELDS = {
    "square": "Region",
    "top_users": "Users",
    "max_loss": "Budget",
    "cell_m": "Cell",
    "reports": "Reports seen together",
}


def in_page(error: Exception) -> str:
    """An error's sentence, with the page's own fields in place of arguments.

    >>> from sfumato.errors import arg
    >>> in_page(SfumatoError(f"select a smaller area with {arg('square')}"))
    'select a smaller area with the field Region'
    """
    if not isinstance(error, SfumatoError):
        return str(error)
    return error.sentence(
        lambda name: f"the field {_FIELDS[name]}" if name in _FIELDS else name.replace("_", " ")
    )
