"""Options that several commands share, and how their values are written."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sfumato.render.names import printable

if TYPE_CHECKING:
    from sfumato.data.recipe import Recipe

EVERY_S = 5  # of silence, before a long job says how far it is
_SELECTION = (
    "pool_below",
    "secret",
    "lat",
    "lon",
    "square",
    "users",
    "top_users",
    "per_user",
    "overlap_weight",
    "data_seed",
    "test",
)


class Place(click.ParamType):
    """LAT,LON,METRES: a square of the map."""

    name = "LAT,LON,METRES"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float, float]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        try:
            latitude, longitude, side = (float(part) for part in parts)
        except ValueError:
            self.fail(
                f"'{value}' is not three numbers; write latitude,longitude,side in metres, as"
                " 48.8584,2.3482,4500",
                param,
                ctx,
            )
        return latitude, longitude, side


class Share(click.ParamType):
    """N+M: training and test check-ins per user."""

    name = "N+M"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        train, plus, test = str(value).partition("+")
        if not train.isdecimal() or (plus and not test.isdecimal()):
            self.fail(
                f"'{value}' is not N+M; write training+test check-ins per user, as 82+20",
                param,
                ctx,
            )
        return int(train), int(test or 0)


class _Seed(click.IntRange):
    """A whole number; its range is nothing that a help text need say."""

    def _describe_range(self) -> str:
        return ""


SEEDS = _Seed(min=0, max=2**31 - 1)


class Names(click.ParamType):
    """NAME,NAME: with quotes about a name that holds a comma.  A blank after a comma is no part of
    a name, unless names are `exact`."""

    name = "NAME,NAME,..."

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        import csv

        lines = csv.reader(str(value).splitlines(), skipinitialspace=not self._exact)
        names = tuple(name for row in lines for name in row)
        if not names:
            self.fail("an empty text names nothing; expected NAME,NAME,...", param, ctx)
        return names


class Counts(click.ParamType):
    """N,N,...: numbers of reports."""

    name = "N,N,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and int(part) >= 1 for part in parts):
            self.fail(
                f"'{value}' is not numbers of reports; write whole numbers of at least 1 with"
                " commas, as 1,2,5,10,50",
                param,
                ctx,
            )
        return tuple(int(part) for part in parts)


class ReportCount(click.ParamType):
    """N or endless: how many reports are seen together."""

    name = "N|endless"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        text = str(value).strip()
        if text == "endless" or (text.isdecimal() and int(text) >= 1):
            return text if text == "endless" else int(text)
        self.fail(
            f"'{value}' is not a number of reports; write a whole number of at least 1, or endless",
            param,
            ctx,
        )


class ReportCounts(click.ParamType):
    """N,N,...,endless: several of them."""

    name = "N,...,endless"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | str, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(ReportCount().convert(part, param, ctx) for part in str(value).split(","))


class UserBudgets(click.ParamType):
    """METRES for every user, or NAME=METRES,NAME=METRES."""

    name = "METRES|NAME=METRES,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        if isinstance(value, dict):
            return value
        try:
            if "=" not in str(value):
                return {"": float(value)}
            if any(part.startswith("=") for part in str(value).split(",")):
                raise ValueError
            pairs = [
                (name, float(metres))
                for name, metres in (part.rsplit("=", 1) for part in str(value).split(","))
            ]
        except ValueError:
            self.fail(
                f"'{value}' is not a budget; write 200 for every user, or anna=200,ben=300",
                param,
                ctx,
            )
        budgets = dict(pairs)
        if len(budgets) < len(pairs):
            self.fail(
                f"'{value}' gives a user two budgets; write one for each user, as anna=200,ben=300",
                param,
                ctx,
            )
        return budgets


def for_each(budgets: dict[str, float], secrets: tuple[str, ...]) -> dict[str, float]:
    """The budgets by user; one number alone is for every user."""
    return dict.fromkeys(secrets, budgets[""]) if set(budgets) == {""} else budgets


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The steps from a file to samples, in the order in which they are applied."""
    steps: list[Any] = [
        click.option(
            "--secret",
            metavar="COLUMN",
            help="Column of the user, who is the secret [default: user, user_id or uid].",
        ),
        click.option(
            "--lat",
            metavar="COLUMN",
            help="Column of the latitude [default: lat or latitude].",
        ),
        click.option(
            "--lon",
            metavar="COLUMN",
            help="Column of the longitude [default: lon, lng or longitude].",
        ),
        click.option(
            "--square",
            type=Place(),
            help="Keep the check-ins in this square and centre the plane there.",
        ),
        click.option("--users", type=Names(), help="Keep these users."),
        click.option(
            "--top-users",
            type=click.IntRange(min=1),
            metavar="K",
            help="Keep the K users with the most check-ins.",
        ),
        click.option(
            "--pool-below",
            type=click.IntRange(min=1),
            metavar="N",
            help="Make one secret, 'everybody else', of the users with fewer than N check-ins"
            " [default of solve: 4, if there are more than 200 users].",
        ),
        click.option(
            "--per-user", type=Share(), help="Draw N training and M test check-ins of each user."
        ),
        click.option(
            "--overlap-weight",
            type=float,
            metavar="W",
            help="With --per-user: draw check-ins in cells that another user visits more often with"
            " this weight, 0 to 1 [default: 1].",
        ),
        click.option(
            "--data-seed",
            type=SEEDS,
            default=0,
            metavar="S",
            help="Seed of the draw (and of four-corners).",
        ),
    ]
    for step in reversed(steps):
        command = step(command)
    return command


def recipe_of(
    source: str, options: dict[str, Any], *, losses: str | None = None, wide: bool | None = None
) -> "Recipe":
    """Take the selection out of a command's options."""
    from sfumato.data.recipe import Recipe

    return Recipe(
        source=source,
        losses=losses,
        wide=wide,
        region=options.pop("region", None),
        **{name: options.pop(name) for name in _SELECTION if name in options},
    )


def grid_options(command: Callable[..., Any], *, default: str = "25") -> Callable[..., Any]:
    """The side of a cell, or how many cells lie along a side of the region."""
    cells: Any = click.option(
        "--cells",
        type=click.IntRange(min=1),
        metavar="N",
        help="Cells along a side of the region, instead of --cell-m.",
    )
    cell_m: Any = click.option(
        "--cell-m", type=float, metavar="METRES", help=f"Side of a cell [default: {default}]."
    )
    decorated: Callable[..., Any] = cell_m(cells(command))
    return decorated


def loss_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The loss, by its name."""
    from sfumato.mechanism.loss import LOSSES

    return click.option(
        "--loss",
        type=click.Choice(list(LOSSES)),
        help="What a report costs; budgets are in its unit [default: euclidean, in metres].",
    )(command)


test_file = click.option(
    "--test",
    metavar="FILE",
    help="Held-out check-ins of the same users, in place of the M of --per-user.",
)
region = click.option(
    "--region",
    type=Place(),
    help="Square in which reports may lie [default: the data's, widened by the budget].",
)
new_places_option = click.option(
    "--new-places",
    type=click.Choice(("average", "nearest", "refuse")),
    default="average",
    show_default=True,
    help="For an exact run, places that it was not made for: answer them by an average over near"
    " places (if the run has one), as the nearest place, or not at all.",
)
details = click.option(
    "--details", is_flag=True, help="Print every table, not the main figures alone."
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


@contextmanager
def working(message: str) -> Iterator[Callable[[str], None]]:
    """Say on stderr what is going on: a spinner on a terminal, a line elsewhere.

    Gives what to call with news.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        click.echo(printable(f"{message} …"), err=True)
        yield lambda news: click.echo(printable(news), err=True)
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(f"{message} …"))) as status:
        yield lambda news: status.update(Text(printable(news)))


def rounds_to(tell: Callable[[str], None], *, unit: str) -> Callable[[dict[str, Any]], None]:
    """What to give a solver as `progress`: tells every round, and of the exact solver's steps one
    in five seconds."""
    from sfumato.render.text import round_text

    said = time.monotonic()

    def heard(line: dict[str, Any]) -> None:
        nonlocal said
        text = round_text(line, unit=unit)
        if text is None and time.monotonic() - said >= EVERY_S:
            text = line.get("progress")
        if text is not None:
            said = time.monotonic()
            tell(text)

    return heard


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    import json

    from sfumato.files import plain

    click.echo(json.dumps(plain(document), indent=2, allow_nan=False))


def say_notes(notes: tuple[str, ...]) -> None:
    """What the user should know about the data, on stderr."""
    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)
