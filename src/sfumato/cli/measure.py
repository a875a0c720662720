"""sfumato measure"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import SEEDS, Counts, as_json, grid_options, print_json, say_notes, working
from sfumato.errors import FileError

_EXAMPLE = "\b\nExample: sfumato measure runs/coin --cell-m 100"
_ATTACKS = ("cells", "neighbours", "neural")


@click.command("measure", epilog=_EXAMPLE)
@click.argument("target", metavar="RUN|REPORTS.csv", type=click.Path(path_type=Path))
@click.option(
    "--data", "source", metavar="DATA", help="Judge on all of this data instead of the run's own."
)
@click.option(
    "--secret", metavar="COLUMN", help="Column of the secret, for a file of reports or for --data."
)
@click.option(
    "--lat", metavar="COLUMN", help="Column of the latitude, for a file of reports or for --data."
)
@click.option(
    "--lon", metavar="COLUMN", help="Column of the longitude, for a file of reports or for --data."
)
@partial(grid_options, default="as released; 25 for a file of reports")
@click.option(
    "--hits",
    type=click.IntRange(min=1),
    metavar="N",
    help="Reports a truth, where the law is not known [default: 500].",
)
@click.option(
    "--attack",
    "attacks",
    type=click.Choice(_ATTACKS),
    multiple=True,
    help="Train this adversary on reports; may be repeated.",
)
@click.option(
    "--gain",
    metavar="GAIN",
    help="Also the g-vulnerability: bayes, two-guesses, guess-or-pass or target:USER.",
)
@click.option(
    "--seed", type=SEEDS, default=0, metavar="N", help="Seed of sampled reports and adversaries."
)
@click.option(
    "--reports-per-user",
    "reports",
    type=Counts(),
    help="Also the Bayes error when so many reports of one user are seen.",
)
@click.option(
    "--sticky-cell-m",
    type=float,
    metavar="METRES",
    help="The cell within which a report is kept [default: 25].",
)
@click.option(
    "--leave-one-out",
    is_flag=True,
    help="Also solve again without each user and judge everybody: one solve a user.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the runs of --leave-one-out here, and go on from them.",
)
@as_json
def command(
    target: Path,
    source: str | None,
    as_json: bool,
    reports: tuple[int, ...],
    sticky_cell_m: float | None,
    leave_one_out: bool,
    keep: Path | None,
    **options: Any,
) -> None:
    """Measure the loss and the leakage of a run, or of any reports in a CSV file.

    A file of reports needs a column for the secret and the report's place (latitude and longitude,
    or x and y in metres), and may have truth_x and truth_y (metres) for the loss.  With --data, a
    file of pairs (truth_x, truth_y, report_x, report_y in metres) is judged as a mechanism.  A run
    is judged on its own training data, with the test data beside it, or on all of --data.  For a
    run, other shares of the users and what the mechanism's file tells about its training points are
    printed as well.
    """
    from sfumato.report.further import Asked
    from sfumato.report.measured import measure_reports, measure_run
    from sfumato.report.summary import measured_text

    start = time.perf_counter()
    if not target.exists():
        raise FileError(f"there is no {target}; expected a run folder, or a file of reports")
    with working(f"measuring {target}") as tell:
        asked = Asked(reports or (), sticky_cell_m, leave_one_out, keep, tell)
        measured = measure_run if target.is_dir() else measure_reports
        result = measured(target, source=source, asked=asked, **options)
    say_notes(result.notes)
    if as_json:
        print_json({**result.as_dict(), "seconds": time.perf_counter() - start})
    else:
        click.echo(measured_text(result.name, result.judged, max_loss=result.max_loss))
        if result.extra_text:
            click.echo(result.extra_text)
