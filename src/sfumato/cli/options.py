"""Options that several commands share, and how their values are written."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import stopping
from sfumato.render.names import printable

if TYPE_CHECKING:
    from sfumato.data.recipe import Recipe

EVERY_S = 5  # of silence, before a long job says how far it is
_HIDES_MORE = 0.02  # than the best round told: a round of a game that is worth a line
_NARROWER = 0.9  # of what was told last: a better proof that is worth a line
PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


class _Seed(click.IntRange):
    """A whole number; its range is nothing that a help text need say."""

    def _describe_range(self) -> str:
        return ""


SEEDS = _Seed(min=0, max=2**31 - 1)


class Written(click.ParamType):
    """A value that is written as one text: `read` gives it, or raises ValueError with a sentence
    that says what was expected."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def number(text: str, *, least: float | None = None) -> float:
    """A number, no smaller than `least`."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a number; leave units out") from None
    if not (least is None or value >= least):
        raise ValueError(f"{text} is not at least {least:g}")
    return value


def _place(text: str) -> tuple[float, float, float]:
    """A square of the map."""
    try:
        latitude, longitude, side = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"'{text}' is not three numbers; write latitude,longitude,side in metres, as"
            " 48.8584,2.3482,4500"
        ) from None
    return latitude, longitude, side


def _share(text: str) -> tuple[int, int]:
    """Training and test check-ins per user."""
    train, plus, test = text.partition("+")
    if not train.isdecimal() or (plus and not test.isdecimal()):
        raise ValueError(f"'{text}' is not N+M; write training+test check-ins per user, as 82+20")
    return int(train), int(test or 0)


def _names(text: str, *, exact: bool) -> tuple[str, ...]:
    """With quotes about a name that holds a comma.  A blank after a comma is no part of a name,
    unless names are `exact`."""
    import csv
    import io

    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=not exact)
    try:
        names = tuple(name for row in lines for name in row)
    except csv.Error:
        raise ValueError("a name with a line end needs quotes around it") from None
    if not names:
        raise ValueError("an empty text names nothing; expected NAME,NAME,...")
    return names


def _counts(text: str) -> tuple[int, ...]:
    """Numbers of reports."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) >= 1 for part in parts):
        raise ValueError(
            f"'{text}' is not a list of numbers of reports; write whole numbers of at least 1"
            " with commas, as"
            " 1,2,5,10,50"
        )
    return tuple(int(part) for part in parts)


def _report_count(text: str) -> int | str:
    """How many reports are seen together."""
    count = text.strip()
    if count != "endless" and not (count.isdecimal() and int(count) >= 1):
        raise ValueError(
            f"'{text}' is not a number of reports; write a whole number of at least 1, or endless"
        )
    return count if count == "endless" else int(count)


def _budgets(text: str) -> dict[str, float]:
    """Metres by user; those for every user under the empty name."""
    parts = text.split(",")
    try:
        if "=" not in text:
            return {"": float(text)}
        if any(part.startswith("=") for part in parts):
            raise ValueError
        pairs = [(name, float(metres)) for name, metres in (part.rsplit("=", 1) for part in parts)]
    except ValueError:
        raise ValueError(
            f"'{text}' is not a budget; write 200 for every user, or anna=200,ben=300"
        ) from None
    budgets = dict(pairs)
    if len(budgets) < len(pairs):
        raise ValueError(
            f"'{text}' gives a user two budgets; write one for each user, as anna=200,ben=300"
        )
    return budgets


NUMBER = Written("number", number)
PLACE = Written("LAT,LON,METRES", _place)
SHARE = Written("N+M", _share)
NAMES = Written("NAME,NAME,...", partial(_names, exact=False))
EXACT_NAMES = Written("NAME,NAME,...", partial(_names, exact=True))
COUNTS = Written("N,N,...", _counts)
REPORT_COUNT = Written("N|endless", _report_count)
REPORT_COUNTS = Written(
    "N,...,endless", lambda text: tuple(_report_count(part) for part in text.split(","))
)
USER_BUDGETS = Written("METRES|NAME=METRES,...", _budgets)
_WRITTEN = (PLACE, SHARE, NAMES, COUNTS, REPORT_COUNT, REPORT_COUNTS, USER_BUDGETS)


def for_each(budgets: dict[str, float], secrets: tuple[str, ...]) -> dict[str, float]:
    """The budgets by user; one number alone is for every user."""
    return dict.fromkeys(secrets, budgets[""]) if set(budgets) == {""} else budgets


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

# what an option takes, by the word behind it; texts have other words
_TAKES: dict[str, Any] = {
    **dict.fromkeys(("N", "K"), COUNT),
    **dict.fromkeys(("METRES", "LOSS", "GAP", "SHARE", "B", "C", "S", "W"), NUMBER),
    **dict.fromkeys(("FILE", "DIR", "RUN", "RUN2"), PATH),
    **{kind.name: kind for kind in _WRITTEN},
    "COLUMN,...": EXACT_NAMES,
}


def option(written: str, text: str, *names: str, **settings: Any) -> Decorator:
    """An option as its help writes it: `--port N`, `--keep day|week` for one of these words,
    `--fresh` alone for a flag.  `text` is what the help says of it; a default is shown behind it.
    """
    flag, _, word = written.partition(" ")
    if word in _TAKES:
        settings = {"type": _TAKES[word], **settings}
    elif "|" in word:
        settings["type"], word = click.Choice(word.split("|")), ""
    elif not word and "type" not in settings:
        settings["is_flag"] = True
    shown = {"metavar": word or None, "show_default": True, **settings}
    return click.option(flag, *names, help=text, **shown)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def columns(**helps: str) -> Decorator:
    """Options that name a column of a table, each with what is in it."""
    return together(
        *(option(f"--{name} COLUMN", f"Column of {text}.") for name, text in helps.items())
    )


# the steps from a file to samples, in the order in which they are applied
selection = together(
    columns(
        secret="the user, who is the secret [default: user, user_id or uid]",
        lat="the latitude [default: lat or latitude]",
        lon="the longitude [default: lon, lng or longitude]",
    ),
    option(
        "--square LAT,LON,METRES",
        "Keep the check-ins in this square (middle and side) and centre the plane there.",
    ),
    option("--users NAME,NAME,...", "Keep these users."),
    option("--top-users K", "Keep the K users with the most check-ins."),
    option(
        "--pool-below N",
        "Pool the users with fewer than N check-ins into one secret, 'everybody else'"
        " [default of solve: 4, if there are more than 200 users].",
    ),
    option(
        "--per-user N+M",
        "Draw N training and M test check-ins of each user; N alone: no test check-ins.",
    ),
    option(
        "--overlap-weight W",
        "With --per-user: weight of check-ins in cells that another user visits more often, 0 to 1"
        " [default: 1].",
    ),
    option("--data-seed S", "Seed of the draw (and of four-corners).", type=SEEDS, default=0),
)


def recipe_of(source: str, options: dict[str, Any], **more: Any) -> "Recipe":
    """Take the selection out of a command's options."""
    from sfumato.data.recipe import Recipe

    steps = [step.name for step in fields(Recipe) if step.name in options]
    return Recipe(source=source, **{name: options.pop(name) for name in steps}, **more)


def foreseen(run: Path, recipe: "Recipe") -> tuple[str, ...]:
    """The columns that sanitize would refuse in the table that a run was made of, so that the next
    command can name them; none where sanitize itself is to say what it finds."""
    from sfumato.errors import SfumatoError
    from sfumato.render.commands import sanitizes_itself

    if not sanitizes_itself(recipe):
        return ()
    from sfumato.deploy.one_file import Policy, columns_to_drop
    from sfumato.deploy.release import release
    from sfumato.study.folder import load_run

    policy = Policy(user=recipe.secret, lat=recipe.lat, lon=recipe.lon)
    try:
        return columns_to_drop(release(load_run(run)), policy, Path(recipe.source))
    except (SfumatoError, OSError):
        return ()


def grid_options(default: str = "25") -> Decorator:
    """The side of a cell, or how many cells lie along a side of the region."""
    return together(
        option("--cell-m METRES", f"Side of a cell [default: {default}]."),
        option("--cells N", "Cells along a side of the region, instead of --cell-m."),
    )


def seed_option(text: str) -> Decorator:
    """The seed of what a command draws."""
    return option("--seed N", f"Seed of {text}.", type=SEEDS, default=0)


def loss_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The loss, by its name."""
    from sfumato.mechanism.loss import LOSSES

    return option(
        "--loss",
        "What a report costs; budgets are in its unit [default: euclidean, in metres].",
        type=click.Choice(list(LOSSES)),
    )(command)


test_file = option(
    "--test FILE",
    "Held-out check-ins of the same users, in place of the M of --per-user.",
    type=str,
)
region = option(
    "--region LAT,LON,METRES",
    "Square (middle and side) in which reports may lie [default: the data's, widened by the"
    " budget].",
)
hits = option(
    "--hits N",
    "Reports per truth, where the law is not known [default: 500, fewer for many check-ins].",
)
sticky_cell = option(
    "--sticky-cell-m METRES", "Side of the cell within which a report is kept [default: 25]."
)
new_places_option = option(
    "--new-places average|nearest|refuse",
    "What an exact run does with places that it was not made for: average over near places (if"
    " the run can), treat them as the nearest place, or refuse them.",
    default="average",
)
details = option("--details", "Print every table, not the main figures alone.")
as_json = option("--json", "Print one JSON document and nothing else.", "as_json")


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
    """What to give a solver as `progress`: tells every part of a codebook's learning; of steps that
    are texts one in five seconds, of a game's rounds those that hide clearly more than any told
    before too, and of better proofs those that narrow what was told last by a tenth too.  A proof
    that is no better in the digits that are shown is told once more, with the time since when."""
    from sfumato.render.text import round_text, unmoved_text

    said, apart, hidden = time.monotonic(), float("inf"), float("-inf")
    proof: str | None = None  # that was told last
    moved = ""  # when it was; nothing once that has been told too

    def heard(line: dict[str, Any]) -> None:
        nonlocal said, apart, hidden, proof, moved
        silent = time.monotonic() - said >= EVERY_S
        text = round_text(line, unit=unit)
        if "proof_bound" in line:
            now = line["proof_least"] - line["proof_bound"]
            same = text == proof
            if not (silent or now <= _NARROWER * apart) or (same and not moved):
                return
            if same:
                text, moved = unmoved_text(str(proof), since=moved), ""
            else:
                apart, proof, moved = now, text, time.strftime("%H:%M:%S")
        if "lattice_m" in line:  # a round of a game
            now = line["validation_bayes_error"]
            if not (silent or now >= hidden + _HIDES_MORE):
                return
            hidden = max(hidden, now)
        if text is None and silent:
            text = line.get("progress")
        if text is not None:
            said = time.monotonic()
            tell(text)

    return heard


@contextmanager
def resumable(can: bool = True) -> Iterator[None]:
    """Say how to resume a job that is stopped, if it `can` be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        if can:
            raise stopping.Resumable from None
        raise


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    import json

    from sfumato.files import plain

    click.echo(json.dumps(plain(document), indent=2, allow_nan=False))


def check_file(name: str, target: Path, *endings: str) -> None:
    """Refuse, before any work, to write over a file of another kind, and what cannot be written."""
    from sfumato.files import check_writable

    if target.suffix.lower() not in endings:
        raise click.UsageError(f"--{name} must end in {', '.join(endings)}; got {target.name}")
    check_writable(target)


def say_notes(notes: Sequence[str]) -> None:
    """What the user should know about the data, on stderr."""
    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)
