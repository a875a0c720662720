"""sfumato policy"""

from pathlib import Path
from typing import Any, Literal

import click

from sfumato.cli.options import (
    PATH,
    as_json,
    columns,
    option,
    print_json,
    seed_option,
    sticky_cell,
    working,
)

_EXAMPLE = "\b\nExample: sfumato policy runs/learned checkins.csv --trace week --time time"


@click.command("policy", epilog=_EXAMPLE)
@click.argument("run", metavar="RUN", type=PATH)
@click.argument("traces", metavar="TRACES", type=PATH)
@option("--trace COLUMN", "Column of the trace.", required=True)
@option("--time COLUMN", "Column of the time, in ISO 8601 or seconds since 1970.  [required]")
@option(
    "--split COLUMN",
    "Column with the words train (known by name) and test (to be found) [default: the last"
    " third of each user's traces is to be found].",
)
@columns(secret="the user", lat="the latitude", lon="the longitude")
@sticky_cell
@option(
    "--lattice-m METRES",
    "Side of the lattice that reports are moved to, if they can lie anywhere [default: a"
    " quarter of the budget].",
)
@option(
    "--one-place before|after",
    "Also measure sending some weeks from one place, chosen before a week or after it.",
)
@option(
    "--parts 1|14",
    "In how many parts of the week --one-place has a place of its own: 14 are the middle (7 to"
    " 18 h) and the rest of each day.",
    default="1",
)
@option(
    "--max-loss METRES",
    "The budget of --one-place, required with it: above what the run's reports cost.",
)
@option(
    "--least-hidden SHARE",
    "The least share, 0 to 1, of each user's weeks that --one-place sends from one place.",
    default=0.0,
)
@seed_option("the reports that are measured")
@option("--no-write", "Print the table and leave the run as it is.")
@as_json
def command(
    run: Path,
    traces: Path,
    sticky_cell_m: float | None,
    lattice_m: float | None,
    one_place: Literal["before", "after"] | None,
    parts: str,
    max_loss: float | None,
    least_hidden: float,
    seed: int,
    no_write: bool,
    as_json: bool,
    **named: Any,
) -> None:
    """Choose how long reports are kept, by how often whole traces reveal their user.

    TRACES is a table of check-ins with times and a column that says which rows belong together.
    Each way of keeping reports is measured against four adversaries: one knows the law, one has
    named reports of other traces, one knows the law but sees a new
    name in each period, and one sees all.  A way is judged by
    the adversary who finds most traces; the way with the lowest such share is written into the run,
    so that sanitize, serve, export and the page follow it.  With --one-place some weeks are sent
    whole from one place and the others as usual; serve and export refuse that.
    """
    from sfumato.data.traces import read_traces
    from sfumato.study.folder import keep_reports, load_run
    from sfumato.study.policy import choose_policy

    loaded = load_run(run)
    with working(f"measuring ways of keeping reports of {run}") as tell:
        read = read_traces(traces, plane=loaded.record.data.plane, **named)
        choice = choose_policy(
            loaded,
            read,
            cell_m=sticky_cell_m,
            lattice_m=lattice_m,
            one_place=one_place,
            parts=int(parts),
            max_loss=max_loss,
            least_hidden=least_hidden,
            seed=seed,
            progress=tell,
        )
        if not no_write:
            keep_reports(loaded, choice.keeping)
    if as_json:
        print_json({**choice.as_dict(), "written": not no_write})
        return
    click.echo(str(choice))
    if not no_write:
        follow = "sanitize follows it, serve and export refuse it"
        if choice.keeping.one_place is None:
            follow = "sanitize, serve and export follow it"
        click.echo(f"Written into {run}: {follow}.")
