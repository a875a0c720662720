"""sfumato compare"""

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import (
    PATH,
    as_json,
    check_file,
    details,
    hits,
    option,
    print_json,
    say_notes,
    seed_option,
    working,
)

_EXAMPLE = "\b\nExample: sfumato compare runs/laplace runs/coin --html report.html"


@click.command("compare", epilog=_EXAMPLE)
@click.argument("runs", metavar="RUN|PAIRS.csv...", nargs=-1, required=True, type=PATH)
@option("--data DATA", "Judge on all of this data instead of the first run's test data.", "source")
@hits
@seed_option("sampled reports")
@option("--html FILE", "Also write the report; it contains true locations.")
@option(
    "--leave-one-out",
    "Also solve again without each user and measure all users: one solve per user and run.",
)
@details
@as_json
def command(
    runs: tuple[Path, ...],
    source: str | None,
    html: Path | None,
    details: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Put runs side by side on the same data, each with its loss beside its leakage.

    They are judged on the first run's test data (its training data where it has none), or on
    --data. A file of pairs (truth_x, truth_y, report_x, report_y in metres, or truth_lat,
    truth_lon, report_lat, report_lon) is a mechanism too, and so is a file of reports with their
    truths.
    """
    from sfumato.data.categories import CategoricalData
    from sfumato.errors import require
    from sfumato.mechanism.custom import Recorded
    from sfumato.study.compare import Contender, compare
    from sfumato.study.folder import load_run
    from sfumato.study.measure import data_of_runs

    if html is not None:
        check_file("html", html, ".html", ".htm")
        require("report", bring="report")
    folders = {path: load_run(path) for path in runs if not path.is_file()}
    known = list(folders.values())
    plane = known[0].mechanism.plane if known else None
    loaded = [
        folders.get(path) or Contender(path.stem, Recorded.read(path, plane=plane)) for path in runs
    ]
    for path, one in zip(runs, loaded, strict=True):
        recorded = one.mechanism
        if isinstance(recorded, Recorded) and path.is_file() and recorded.recorded_once:
            say_notes([f"{path.name}: {recorded.given_again}; sfumato measure counts the pairs"])
    for run in known[1:]:
        if run.record.data.hash != known[0].record.data.hash:
            say_notes(
                [
                    f"{run.folder} was made from other data than {known[0].folder}: what is test"
                    " data for one may be training data for it"
                ]
            )
    with working(f"comparing {len(loaded)} mechanism{'s' * (len(loaded) > 1)}") as tell:
        on, train = data_of_runs(known, source=source)
        comparison = compare(loaded, on=on, train=train, progress=tell, **options)
    if as_json:
        print_json(comparison.as_dict())
    elif details:
        click.echo(str(comparison))
    else:
        from sfumato.render import brief

        click.echo(brief.compared_text(comparison))
        if html is None:
            report = "" if isinstance(on, CategoricalData) else ", --html FILE writes the report"
            click.echo(f"More: --details prints every table{report}")
    if html is not None:
        comparison.html(html)
        if not as_json:
            click.echo(f"report: {html} (contains true locations)")
