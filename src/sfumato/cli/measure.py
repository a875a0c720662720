"""sfumato measure"""

import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import (
    PATH,
    as_json,
    columns,
    details,
    grid_options,
    hits,
    option,
    print_json,
    say_notes,
    seed_option,
    sticky_cell,
    working,
)

_EXAMPLE = "\b\nExample: sfumato measure runs/coin --cell-m 100"


@click.command("measure", epilog=_EXAMPLE)
@click.argument("target", metavar="RUN|REPORTS.csv", type=PATH)
@option("--data DATA", "Judge on all of this data instead of the run's own.")
@columns(
    secret="the user (reports, --data, --traces)",
    lat="the latitude (reports, --data, --traces)",
    lon="the longitude (reports, --data, --traces)",
)
@grid_options(default="as released; 25 for a file of reports")
@hits
@option(
    "--attack cells|neighbours|neural",
    "Train this adversary on reports; may be repeated.",
    "attacks",
    multiple=True,
)
@option(
    "--gain GAIN", "Also the g-vulnerability: bayes, two-guesses, guess-or-pass or target:USER."
)
@seed_option("sampled reports and adversaries")
@option(
    "--reports-per-user N,N,...",
    "Also the Bayes error when n reports of one user are seen together.",
    default=(),
)
@sticky_cell
@option(
    "--traces FILE",
    "Also how often the user of a whole trace in this table is found; rows in any order.",
)
@columns(
    trace="the trace, in --traces",
    time="the time, in --traces, in ISO 8601 or seconds since 1970",
)
@option(
    "--split COLUMN",
    "Column with the words train (known by name) and test (to be found), in --traces"
    " [default: the last third of each user's traces is to be found].",
)
@option(
    "--leave-one-out",
    "Also solve again without each user and measure all users: one solve per user.",
)
@option("--keep DIR", "Keep the runs of --leave-one-out here, and resume from them.")
@details
@as_json
def command(target: Path, details: bool, as_json: bool, **options: Any) -> None:
    """Measure the loss and the leakage of a run, or of any reports in a CSV file.

    A file of reports needs a column for the secret and the report's place (latitude and longitude,
    or x and y in metres), and may have truth_lat and truth_lon, or truth_x and truth_y, for the
    loss.  With --data, a file of pairs (truth_lat, truth_lon, report_lat, report_lon; or truth_x,
    truth_y, report_x, report_y in metres) is judged as a mechanism.  A run is judged on its own
    training and test data, or on all of --data.  --details has the users one by one, other measures
    and, for a run, other shares of the users and what the mechanism's file reveals about its
    training points.
    """
    from sfumato.errors import require
    from sfumato.study.measure import Extras, measure

    if "neural" in options["attacks"]:
        require("learn", bring="learn")

    def plan(samples: Any, expected: Any) -> None:
        from sfumato.render import brief

        click.echo(brief.measuring_text(target.name, samples, expected), err=True)

    start = time.perf_counter()
    with working(f"measuring {target}") as tell:
        extras = Extras(**{part.name: options.pop(part.name) for part in fields(Extras)})
        measured = measure(target, extras=extras, progress=tell, foretold=plan, **options)
    say_notes(measured.notes)
    if as_json:
        print_json({**measured.as_dict(), "seconds": time.perf_counter() - start})
    elif details:
        click.echo(str(measured))
    else:
        from sfumato.render import brief

        click.echo(brief.measured_text(measured))
        click.echo("More: --details prints every table")
