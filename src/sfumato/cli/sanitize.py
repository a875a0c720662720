"""sfumato sanitize"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import click

from sfumato.cli.options import Names, as_json, new_places_option, print_json, say_notes

_EXAMPLE = "\b\nExample: sfumato sanitize runs/laplace checkins.csv sanitized.csv --drop user"
_OUTSIDE = ("refuse", "drop", "laplace", "clamp")
_STICKY = ("hour", "day", "week", "forever")
_SHOWN = 5  # skipped files named in a note; the record names all


@click.command("sanitize", epilog=_EXAMPLE)
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--lat", metavar="COLUMN", help="Column of the latitude (or x) (lat, latitude are found alone)."
)
@click.option(
    "--lon",
    metavar="COLUMN",
    help="Column of the longitude (or y) (lon, lng, longitude are found alone).",
)
@click.option(
    "--secret",
    metavar="COLUMN",
    help="Column of the user, for --sticky (user, user_id, uid are found alone).",
)
@click.option(
    "--time",
    "time_column",
    metavar="COLUMN",
    help="Column of the time, for --sticky (time, timestamp are found alone).",
)
@click.option(
    "--drop",
    type=Names(exact=True),
    multiple=True,
    metavar="COLUMN,...",
    help="Leave these columns out; may be repeated.",
)
@click.option(
    "--keep",
    type=Names(exact=True),
    multiple=True,
    metavar="COLUMN,...",
    help="Let these columns pass although they name the user or tell the place; may be repeated.",
)
@click.option(
    "--pseudonym",
    type=click.Choice(_STICKY),
    help="Give users new names by the key of --key, others in each such period.",
)
@click.option(
    "--outside",
    type=click.Choice(_OUTSIDE),
    default="refuse",
    show_default=True,
    help="Rows outside the mechanism's region.",
)
@click.option(
    "--sticky",
    type=click.Choice(_STICKY),
    help="The same report for the same user, cell and period [default: as sfumato policy chose].",
)
@click.option(
    "--fresh", is_flag=True, help="A new draw for each row, whatever sfumato policy chose."
)
@click.option(
    "--sticky-cell-m",
    type=float,
    metavar="METRES",
    help="The cell within which a report is kept [default: 25].",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The key of --sticky and --pseudonym; made with mode 600 if it is not there.",
)
@new_places_option
@click.option(
    "--over-budget",
    is_flag=True,
    help="Write the table although its reports cost more than the run's budget.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Do the parts of a folder on this dask cluster (pip install 'sfumato[cluster]').",
)
@as_json
def command(
    run: Path,
    source: Path,
    target: Path,
    lat: str | None,
    lon: str | None,
    secret: str | None,
    time_column: str | None,
    drop: tuple[tuple[str, ...], ...],
    keep: tuple[tuple[str, ...], ...],
    pseudonym: str | None,
    outside: str,
    sticky: str | None,
    fresh: bool,
    sticky_cell_m: float | None,
    key: Path | None,
    new_places: str,
    over_budget: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Replace the places in a table by reports of a run's mechanism.

    IN is a CSV file (also .gz), a Parquet file, or a folder of them; OUT is a new one of the same
    kind. All other columns, all rows and their order stay.  OUT.record.json says what was done.

    A column that names the user, or that tells the place in another form, stops it: leave it out
    with --drop, give users new names with --pseudonym, or let it pass with --keep.

    Rows outside the mechanism's region: refuse (the default) writes nothing and says how many; drop
    leaves them out; laplace gives them planar Laplace noise of the same budget; clamp moves them to
    the region's edge first.

    A table whose reports cost more than the run's budget, by more than chance explains, is not
    written: its places are unlike those that the run was made for.  --over-budget writes it.

    Where sfumato policy chose how the run's reports are kept, they are kept so, row by row by user,
    place and period, in whatever order rows come; --key names the key.
    """
    one_thread()
    from sfumato.deploy.keeping import chance_for, forever_warning
    from sfumato.deploy.one_file import Policy
    from sfumato.deploy.pseudonym import Pseudonym, read_or_make_key
    from sfumato.deploy.sanitize import one_by_one, sanitize
    from sfumato.errors import SfumatoError
    from sfumato.study.folder import load_run
    from sfumato.study.record import NEVER

    if sticky is not None and fresh:
        raise click.UsageError("--sticky keeps reports and --fresh draws each anew; give one")
    if sticky is None and sticky_cell_m is not None:
        raise click.UsageError("--sticky-cell-m is the cell of --sticky; give --sticky as well")
    if key is None and (sticky is not None or pseudonym is not None):
        raise click.UsageError("--sticky and --pseudonym need a key; name its file with --key")
    loaded = load_run(run)
    told = loaded.record.keeping
    kept = sticky or (NEVER if fresh or told is None else told.period)
    if key is not None and kept == NEVER and pseudonym is None:
        raise click.UsageError("--key is the key of --sticky or --pseudonym; give one of them")
    made = key is not None and not key.exists()
    secret_key = None if key is None else read_or_make_key(key)
    asked = NEVER if fresh else sticky
    chance = chance_for(loaded, secret_key, period=asked, cell_m=sticky_cell_m)
    if kept == "forever":
        say_notes((forever_warning(loaded),))
    names = None if pseudonym is None else Pseudonym(secret_key or b"", pseudonym)
    runner = one_by_one
    if cluster is not None:
        from sfumato.deploy.engines.dask import on_cluster

        runner = on_cluster(cluster)
    policy = Policy(
        lat=lat,
        lon=lon,
        user=secret,
        time=time_column,
        drop=tuple(chain.from_iterable(drop)),
        keep=tuple(chain.from_iterable(keep)),
        pseudonym=names,
        outside=outside,  # type: ignore[arg-type]
        new_places=new_places,  # type: ignore[arg-type]
        over_budget=over_budget,
    )
    before = target.exists()
    try:
        with rows_per_second() as progress:
            record = sanitize(
                run, source, target, chance=chance, policy=policy, progress=progress, runner=runner
            )
    except SfumatoError:
        if made:
            say_notes((f"the new key {key} is kept, and used when the command is given again",))
        raise
    say_notes(_skipped(record.get("skipped_files", [])))
    telling = record["columns_that_tell_the_place"]
    say_notes(
        tuple(
            f"the column '{name}' tells the place; leave it out with --drop {name}"
            for name in telling
        )
    )
    if as_json:
        print_json(record)
        return
    loss = record["loss_of_this_table"]
    if before:
        click.echo("All parts were done already, with the same settings; nothing was drawn again.")
    click.echo(
        f"{target}: {record['rows_out']} of {record['rows_in']} rows"
        + ("" if loss is None else f", {loss:g} {record['loss_unit']} off on average")
    )
    if record["loss_over_budget"]:
        say_notes(
            (
                (
                    "that is more than the run's budget allows: these places are unlike those that"
                    " it was made for"
                ),
            )
        )
    if record["outside"]["rows"]:
        click.echo(
            f"outside the region: {record['outside']['rows']} rows ({record['outside']['policy']})"
        )
    if record["rows_without_place"]:
        click.echo(f"without a place: {record['rows_without_place']} rows, left empty")
    click.echo(f"record: {target}.record.json")


def _skipped(names: list[str]) -> tuple[str, ...]:
    """A note on files of a folder that are not in the output."""
    if not names:
        return ()
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return (
        (
            f"{len(names)} file(s) skipped, no CSV or Parquet file or a name that begins with . or"
            f" _: {shown}"
        ),
    )


def one_thread() -> None:
    """Small matrix products on one thread each, unless the user says otherwise: more of them wait
    for each other longer than they work."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


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
            click.echo(f"{count} rows, {count / (said - start):.0f} rows/s", err=True)

    yield tell
    if not count:
        return
    spent = max(time.perf_counter() - start, 1e-9)
    click.echo(f"{count} rows in {spent:.1f} s, {count / spent:.0f} rows/s", err=True)
