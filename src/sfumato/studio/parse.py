"""What the page sends, checked: a sentence for every value that makes no sense."""

from math import isfinite
from typing import TYPE_CHECKING, Any

from sfumato.errors import ProblemError

if TYPE_CHECKING:
    from sfumato.data.recipe import Recipe


def number(
    asked: dict[str, Any],
    name: str,
    *,
    what: str,
    above: float | None = None,
    default: float | None = None,
) -> float | None:
    """A finite number, or the default where nothing was said."""
    value = asked.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ProblemError(f"{what} is a number; got '{str(value)[:40]}'")
    if above is not None and not value > above:
        raise ProblemError(f"{what} must be above {above:g}; got {value:g}")
    return float(value)


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


def words(asked: dict[str, Any], name: str) -> str | None:
    """A piece of text, or None."""
    value = asked.get(name)
    if value is not None and not isinstance(value, str):
        raise ProblemError(f"'{name}' is text; got {type(value).__name__}")
    return value or None


def recipe_of(asked: dict[str, Any], source: str) -> "Recipe":
    """The selection that the Data panel describes."""
    from sfumato.data.recipe import Recipe

    square = None
    if asked.get("square") is not None:
        parts = (
            dict(zip(("lat", "lon", "side"), asked["square"], strict=False))
            if isinstance(asked["square"], list)
            else {}
        )
        names = {
            "lat": "the region's latitude",
            "lon": "the region's longitude",
            "side": "the region's side",
        }
        values = [number(parts, name, what=what) for name, what in names.items()]
        if None in values:
            raise ProblemError(
                "a region is a latitude, a longitude and a side in metres; fill in all three, or"
                " none"
            )
        square = (values[0] or 0.0, values[1] or 0.0, values[2] or 0.0)
    users = asked.get("users")
    if users is not None and not (
        isinstance(users, list) and all(isinstance(name, str) for name in users)
    ):
        raise ProblemError("users are a list of names")
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
