"""sfumato certify"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options import as_json, print_json, working

if TYPE_CHECKING:
    from sfumato.study.certify import Certified

_EVERY_S = 5
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
@click.option(
    "--again",
    is_flag=True,
    help="Check the certificate a second time, in rational arithmetic: slow, no rounding.",
)
@as_json
def command(
    folder: Path, other: Path | None, source: str | None, gap: float, again: bool, as_json: bool
) -> None:
    """Say how far a run's mechanism is from the best that can exist, and prove it.

    Works the run's certificate out again from the data alone.  A run that has none gets one: the
    exact solver finds it, the checker checks it, and it is kept in the run folder.
    """
    from sfumato.study.certify import certify_run

    with working(f"certifying {folder}"):
        found = certify_run(folder, other=other, source=source, gap=gap)
    second = _again(found, folder if other is None else other) if again else None
    if as_json:
        print_json(found.as_dict() | ({} if second is None else {"again": second}))
        return
    click.echo(str(found))
    if second is not None:
        plane = "" if second["bound_plane"] is None else f" / {second['bound_plane']:.4f}"
        click.echo(
            f"In rational arithmetic: {second['bound_grid']:.4f}{plane}, by a second checker in"
            f" {second['seconds']:.1f} s."
        )


def _again(found: "Certified", folder: Path) -> dict[str, Any]:
    """The bounds by the second checker; how far it is goes to stderr every few seconds."""
    from sfumato.measure.certificate import check_again

    start = said = time.monotonic()

    def tell(share: float) -> None:
        nonlocal said
        if time.monotonic() - said >= _EVERY_S:
            said = time.monotonic()
            left = (said - start) * (1 - share) / share
            click.echo(f"rational arithmetic: {share:.0%}, about {left:.0f} s left", err=True)

    second = check_again(folder / "certificate.npz", found.problem, found.gap.bounds, progress=tell)
    return {
        "bound_grid": float(second.grid),
        "bound_plane": None if second.plane is None else float(second.plane),
        "seconds": second.seconds,
    }
