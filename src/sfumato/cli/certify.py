"""sfumato certify"""

from pathlib import Path

import click

from sfumato.cli.options import as_json, print_json, working

_EXAMPLE = "\b\nExample: sfumato certify runs/coin"


@click.command("certify", epilog=_EXAMPLE)
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--with",
    "other",
    metavar="RUN2",
    type=click.Path(path_type=Path),
    help="Use the certificate of this run on the same data.",
)
@click.option("--data", "source", metavar="DATA", help="Where the run's data is now, if it moved.")
@click.option(
    "--gap",
    type=float,
    default=1e-3,
    show_default=True,
    help="How tight a new certificate is to be.",
)
@as_json
def command(
    folder: Path, other: Path | None, source: str | None, gap: float, as_json: bool
) -> None:
    """Say how far a run's mechanism is from the best that can exist, and prove it.

    Works the run's certificate out again from the data alone.  A run that has none gets one: the
    exact solver finds it, the checker checks it, and it is kept in the run folder.
    """
    from sfumato.report.certified import certify_run

    with working(f"certifying {folder}"):
        found = certify_run(folder, other=other, source=source, gap=gap)
    if as_json:
        print_json(found.as_dict())
    else:
        click.echo(found.sentence)
