"""sfumato sanitize"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import click

from sfumato.cli import machine
from sfumato.cli.options import (
    PATH,
    as_json,
    columns,
    new_places_option,
    option,
    print_json,
    resumable,
    say_notes,
    sticky_cell,
)

_EXAMPLE = "\b\nExample: sfumato sanitize runs/laplace checkins.csv sanitized.csv --drop user"
_SHOWN = 5  # skipped files named in a note; the record names all


@click.command("sanitize", epilog=_EXAMPLE)
@click.argument("run", metavar="RUN", type=PATH)
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@columns(
    lat="the latitude, or x [default: lat or latitude]",
    lon="the longitude, or y [default: lon, lng or longitude]",
    secret="the user [default: user, user_id or uid]",
    time="the time, in ISO 8601 or seconds since 1970, for --sticky and --pseudonym [default: time"
    " or timestamp]",
)
@option("--drop COLUMN,...", "Leave these columns out; may be repeated.", multiple=True)
@option(
    "--keep COLUMN,...",
    "Let these columns pass although they name the user or reveal the place; may be repeated.",
    multiple=True,
)
@option(
    "--pseudonym hour|day|week|forever",
    "Replace users by pseudonyms made with --key, new ones in each such period.",
)
@option(
    "--outside refuse|drop|laplace|clamp",
    "What to do with rows outside the mechanism's region, as explained above.",
    default="refuse",
)
@option(
    "--sticky hour|day|week|forever",
    "Give the same user, cell and period the same report [default: as sfumato policy chose].",
)
@option("--fresh", "A new draw for each row, whatever sfumato policy chose.")
@sticky_cell
@option(
    "--key FILE",
    "File of the key for --sticky and --pseudonym; made, readable by you alone, if missing.",
)
@new_places_option
@option("--over-budget", "Write the table although its reports cost more than the run's budget.")
@option(
    "--cluster ADDRESS",
    "Sanitize the parts of a folder on this dask cluster (pip install 'sfumato[cluster]').",
)
@as_json
def command(
    run: Path,
    source: Path,
    target: Path,
    secret: str | None,
    drop: tuple[tuple[str, ...], ...],
    keep: tuple[tuple[str, ...], ...],
    pseudonym: str | None,
    sticky: str | None,
    fresh: bool,
    sticky_cell_m: float | None,
    key: Path | None,
    cluster: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Replace the places in a table by reports of a run's mechanism.

    IN is a CSV or SNAP file (also .gz), a Parquet file, or a folder of them; OUT is a new one of
    the same kind. All other columns, all rows and their order stay.  OUT.record.json says what was
    done.

    A column that names the user, or that reveals the place in another form, stops the command:
    leave it out with --drop, give users new names with --pseudonym, or let it pass with --keep.

    Rows outside the mechanism's region: refuse (the default) writes nothing and says how many; drop
    leaves them out; laplace gives them planar Laplace noise of the same budget; clamp moves them to
    the region's edge first.

    A table whose reports cost more than the run's budget, by more than chance explains, is not
    written: its places are unlike those that the run was made for.  --over-budget writes it.

    If sfumato policy chose how long the run's reports are kept, sanitize follows it: the same user,
    place and period get the same report, whatever the order of the rows; --key names the key.
    """
    machine.one_thread(tables=True)
    from sfumato.deploy.keeping import chance_for, forever_warning
    from sfumato.deploy.one_file import Policy
    from sfumato.deploy.pseudonym import Pseudonym
    from sfumato.deploy.sanitize import one_by_one, sanitize
    from sfumato.render.names import listed, shell_word
    from sfumato.study.folder import load_run
    from sfumato.study.record import NEVER

    if sticky is not None and fresh:
        raise click.UsageError("--sticky keeps reports and --fresh draws each anew; give one")
    if sticky is None and sticky_cell_m is not None:
        raise click.UsageError("--sticky-cell-m is the cell of --sticky; give --sticky as well")
    if key is None and (sticky is not None or pseudonym is not None):
        raise click.UsageError("--sticky and --pseudonym need a key; name its file with --key")
    loaded = load_run(run)
    keeping = loaded.record.keeping
    kept = sticky or (NEVER if fresh or keeping is None else keeping.period)
    if key is not None and kept == NEVER and pseudonym is None:
        raise click.UsageError("--key is the key of --sticky or --pseudonym; give one of them")
    runner = one_by_one
    if cluster is not None:
        from sfumato.deploy.engines.dask import on_cluster

        runner = on_cluster(cluster)
    before = target.exists()
    with (
        resumable(source.is_dir()),
        _key_of(key, target) as secret_key,
        rows_per_second() as progress,
    ):
        asked = NEVER if fresh else sticky
        chance = chance_for(loaded, secret_key, period=asked, cell_m=sticky_cell_m)
        if kept == "forever":
            say_notes([forever_warning(loaded)])
        policy = Policy(
            user=secret,
            drop=tuple(chain.from_iterable(drop)),
            keep=tuple(chain.from_iterable(keep)),
            pseudonym=None if pseudonym is None else Pseudonym(secret_key or b"", pseudonym),
            **options,
        )
        record = sanitize(
            run,
            source,
            target,
            chance=chance,
            policy=policy,
            progress=progress,
            runner=runner,
            resumed=lambda done, parts: say_notes(
                [f"resumed: {done} of {parts} parts are done already"]
            ),
            others=lambda rows, of: say_notes(
                [
                    f"{rows:,} of {of:,} rows are of users whom the run was not made for, so its"
                    " figures do not hold for them; sfumato measure --leave-one-out measures how"
                    " well such users are hidden (docs/concepts/other-people.md)"
                ]
            ),
        )
    notes = [
        f"the column '{name}' reveals the place; leave it out with --drop"
        f" {shell_word(listed([name]))}"
        for name in record["columns_that_tell_the_place"]
    ]
    if record.get("rows_of_one_user_together"):
        notes.append(
            "rows of one user are next to each other, so that their order shows which belong"
            " together; shuffle the rows of the table first, if that is to be hidden"
        )
    if linking := record.get("columns_that_link_rows"):
        shown = ", ".join(f"'{name}'" for name in linking)
        notes.append(
            f"rows with the same value of {shown} are of one user, which shows that they belong"
            f" together; leave out with --drop {shell_word(listed(linking))}, if that is to be"
            " hidden"
        )
    if record.get("rows_in_order_of_place"):
        notes.append(
            "the rows are in the order of a true coordinate, which the order reveals;"
            " shuffle the rows of the table first"
        )
    say_notes(_skipped(record.get("skipped_files", [])) + notes)
    if as_json:
        print_json(record)
        return
    if before:
        click.echo("All parts were done already, with the same settings; nothing was drawn again.")
    click.echo(f"{target}: {record['rows_out']:,} of {record['rows_in']:,} rows{_cost(record)}")
    if record["loss_over_budget"]:
        say_notes(
            [
                "that is over the run's budget by more than chance explains: these places are"
                " unlike those that it was made for"
            ]
        )
    if outside := record["outside"]["rows"]:
        click.echo(f"outside the region: {outside:,} rows ({record['outside']['policy']})")
    if record["rows_without_place"]:
        click.echo(f"without a place: {record['rows_without_place']:,} rows, left empty")
    click.echo(f"record: {target}.record.json")


@contextmanager
def _key_of(path: Path | None, target: Path) -> Iterator[bytes | None]:
    """The key in a file.  One that was made goes again where nothing was drawn with it."""
    from sfumato.deploy.pseudonym import read_or_make_key
    from sfumato.deploy.sanitize import working_folder

    if path is None:
        yield None
        return
    new, there = not path.exists(), target.exists()
    try:
        yield read_or_make_key(path)
    except BaseException:
        drawn = working_folder(target).exists() or (target.exists() and not there)
        if new and not drawn:
            path.unlink(missing_ok=True)
        raise


def _cost(record: dict[str, Any]) -> str:
    """How far off the reports are on average, beside the budget."""
    from sfumato.deploy.one_file import ENOUGH_ROWS

    loss, unit = record["loss_of_this_table"], record["loss_unit"]
    if loss is None:
        return (
            f"; no mean loss: of fewer than {ENOUGH_ROWS:,} rows inside the region it could reveal"
            " single places"
        )
    budget = record["mechanism"]["max_loss"]
    beside = "" if budget is None else f" (budget {budget:g} {unit}".rstrip()
    if budget is not None and loss >= 1.001 * budget:
        beside += f", {loss / budget - 1:.1%} over it"
        beside += "" if record["loss_over_budget"] else ", which chance explains"
    return f", {loss:g} {unit}".rstrip() + f" off on average{beside}{')' * bool(beside)}"


def _skipped(names: list[str]) -> list[str]:
    """A note on files of a folder that are not in the output."""
    if not names:
        return []
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return [
        f"{len(names)} file(s) skipped, no CSV or Parquet file or a name that begins with . or _:"
        f" {shown}"
    ]


@contextmanager
def rows_per_second() -> Iterator[Callable[[int], None]]:
    """A count of rows on stderr, with its speed: a line that moves on a terminal, now and then a
    line elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.completed:,.0f} rows"),
            TextColumn("{task.speed:,.0f} rows/s"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("rows", total=None)
            yield lambda rows: bar.update(task, advance=rows)
        return
    start = said = time.perf_counter()
    count = 0

    def tell(rows: int) -> None:
        nonlocal said, count
        count += rows
        if time.perf_counter() - said > 10:
            said = time.perf_counter()
            click.echo(f"{count:,} rows, {count / (said - start):,.0f} rows/s", err=True)

    yield tell
    if not count:
        return
    spent = max(time.perf_counter() - start, 1e-9)
    click.echo(f"{count:,} rows in {spent:.1f} s, {count / spent:,.0f} rows/s", err=True)
