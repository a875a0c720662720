"""What the page sends, checked: a sentence for every value that makes no sense, in the page's own
words."""

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

from sfumato.errors import ProblemError, SfumatoError

if TYPE_CHECKING:
    from sfumato.data.recipe import Recipe

_LARGEST = 2**53  # beyond it a page cannot tell two whole numbers apart
_FIELDS = {
    "square": "Region",
    "top_users": "Most frequent users",
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


def document(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; an empty one for none.

    >>> document(b'{"seed": 1}')
    {'seed': 1}
    """
    try:
        content = json.loads(body or b"{}")
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()  # whole letters, no NaN
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ProblemError("this request is not a JSON object; load the page again")
    return content


def number(
    asked: dict[str, Any], name: str, *, what: str, above: float | None = None
) -> float | None:
    """A finite number, or None where nothing was said."""
    value = asked.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ProblemError(f"{what} is a number; got '{str(value)[:40]}'")
    if not (abs(value) <= _LARGEST and isfinite(value)):
        raise ProblemError(f"{what} is a number of ordinary size; got one beyond {_LARGEST:.0e}")
    if above is not None and not value > above:
        raise ProblemError(f"{what} must be above {above:g}; got {value:g}")
    return float(value)


def cell_m(asked: dict[str, Any]) -> float | None:
    """The side of a cell, where one was asked for."""
    return number(asked, "cell_m", what="the side of a cell, in metres,", above=0)


def time_limit(asked: dict[str, Any]) -> float | None:
    """After how many seconds a solver is to end, where it is."""
    return number(asked, "time_limit", what="the time limit, in seconds,", above=0)


def budget(asked: dict[str, Any], *, missing: str) -> float:
    """The budget; `missing` is what to do where there is none."""
    max_loss = number(asked, "max_loss", what="the budget, in metres,", above=0)
    if max_loss is None:
        raise ProblemError(f"a budget in metres is missing{missing}")
    return max_loss


def whole(
    asked: dict[str, Any], name: str, *, what: str, least: int = 0, default: int | None = None
) -> int | None:
    """A whole number of at least `least`, or the default."""
    value = number(asked, name, what=what)
    if value is None:
        return default
    if not (value >= least and value == int(value)):
        raise ProblemError(f"{what} is a whole number, {least} or more; got {value:g}")
    return int(value)


def reports(asked: dict[str, Any]) -> int | str:
    """How many reports of one user are seen together: a whole number, or "endless"; 1 unless said.

    >>> reports({"reports": "endless"}), reports({})
    ('endless', 1)
    """
    if asked.get("reports") == "endless":
        return "endless"
    count = whole(asked, "reports", what="the number of linked reports", least=1, default=1)
    assert count is not None
    return count


def words(asked: dict[str, Any], name: str) -> str | None:
    """A piece of text, or None."""
    value = asked.get(name)
    if value is not None and not isinstance(value, str):
        raise ProblemError(f"'{name}' is text; got {type(value).__name__}")
    return value or None


def texts(asked: dict[str, Any], name: str) -> list[str]:
    """A list of pieces of text; an empty one where nothing was said."""
    value = asked.get(name)
    if value is None:
        return []
    if not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise ProblemError(f"'{name}' is a list of texts; got {type(value).__name__}")
    return value


def recipe_of(asked: dict[str, Any], source: str) -> "Recipe":
    """The selection that the Data panel describes."""
    from sfumato.data.recipe import Recipe

    square = asked.get("square")
    if square is not None:
        names = ("the region's latitude", "the region's longitude", "the region's side")
        given = dict(zip(names, square if isinstance(square, list) else (), strict=False))
        square = tuple(number(given, name, what=name) for name in names)
        if None in square:
            raise ProblemError(
                "a region is a latitude, a longitude and a side in metres; fill in all three, or"
                " none"
            )
    users = None if asked.get("users") is None else texts(asked, "users")
    train = whole(asked, "train", what="training check-ins per user", least=1)
    test = whole(asked, "test", what="test check-ins per user", default=0)
    if train is None and test:
        raise ProblemError("say how many training check-ins per user go with the test check-ins")
    return Recipe(
        source=source,
        square=square,
        users=None if users is None else tuple(users),
        top_users=whole(asked, "top_users", what="the number of users to keep", least=1),
        per_user=None if train is None else (train, test or 0),
        secret=words(asked, "secret"),
        lat=words(asked, "lat"),
        lon=words(asked, "lon"),
    )
