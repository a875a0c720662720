"""sfumato certify"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import stopping
from sfumato.cli.options import EVERY_S, PATH, SEEDS, as_json, print_json, say_notes, working

if TYPE_CHECKING:
    from sfumato.study.certify import Certified

_EXAMPLE = "\b\nExample: sfumato certify runs/coin"


@click.command("certify", epilog=_EXAMPLE)
@click.argument("folder", metavar="RUN", type=PATH)
@click.option(
    "--with",
    "other",
    metavar="RUN2",
    type=PATH,
    help="Use the certificate of this run on the same data.",
)
@click.option(
    "--data",
    "held",
    metavar="HELD-OUT",
    help="Say what these held-out check-ins prove of check-ins to come; 'test': the test part of"
    " the run's data; 'train': a bound for every mechanism from the training part, cross-fitted.",
)
@click.option(
    "--confidence",
    type=float,
    metavar="C",
    help="Confidence of what is said of check-ins to come [default: 0.95].",
)
@click.option(
    "--data-seed", type=SEEDS, metavar="S", help="Seed of --data, for four-corners [default: 0]."
)
@click.option(
    "--train", "train", metavar="DATA", help="Where the run's own data is now, if it moved."
)
@click.option(
    "--gap",
    type=float,
    default=1e-3,
    show_default=True,
    metavar="GAP",
    help="How far the leakage may stay above the bound of a new certificate, as a probability or"
    " in bits.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Check the certificate a second time, in rational arithmetic: slow, no rounding.",
)
@as_json
def command(
    folder: Path,
    other: Path | None,
    held: str | None,
    confidence: float | None,
    data_seed: int | None,
    train: str | None,
    gap: float,
    again: bool,
    as_json: bool,
) -> None:
    """Prove how far a run's mechanism is from the best that can exist.

    Checks the run's certificate against the data alone.  A run that has none, or one from a
    proof that was quick or ended early, gets one: the exact solver finds it, the checker checks it,
    and it is kept in the run folder.  Ctrl-C keeps the best bound so far.

    With --data it says, with a confidence, what holds for check-ins to come: how well this
    mechanism hides at least, what it costs, and what no mechanism within the budget goes beyond.
    """
    from sfumato.study.certify import certify_run

    if held is not None:
        _to_come(folder, held, other, train, gap, confidence, data_seed, again, as_json)
        return
    if confidence is not None or data_seed is not None:
        given = "--confidence" if confidence is not None else "--data-seed"
        raise click.UsageError(f"{given} goes with --data, which names held-out check-ins")
    try:
        with working(f"certifying {folder}"):
            found = certify_run(folder, other=other, source=train, gap=gap, progress=_heard)
    except KeyboardInterrupt:  # with a bound, certify_run keeps it
        click.echo("stopped before a bound was found; the run is as it was", err=True)
        raise
    second = _again(found, folder if other is None else other) if again else None
    if as_json:
        print_json(found.as_dict() | ({} if second is None else {"again": second}))
        return
    click.echo(str(found))
    if found.stopped:
        click.echo("The proof was stopped: the best bound so far is kept.")
        raise click.exceptions.Exit(stopping.exit_code())
    if second is not None:
        plane = "" if second["bound_plane"] is None else f" / {second['bound_plane']:.4f}"
        click.echo(
            f"In rational arithmetic: {second['bound_grid']:.4f}{plane}, by a second checker in"
            f" {second['seconds']:.1f} s."
        )


def _heard(line: dict[str, Any]) -> None:
    """How far a new proof is, on stderr."""
    from sfumato.render.text import proof_round_text

    if text := proof_round_text(line):
        click.echo(text, err=True)


def _to_come(
    folder: Path,
    held: str,
    other: Path | None,
    train: str | None,
    gap: float,
    confidence: float | None,
    data_seed: int | None,
    again: bool,
    as_json: bool,
) -> None:
    """What holds for check-ins to come."""
    from sfumato.study.population import TRAIN, certify_to_come, cross_fit_run

    if again:
        raise click.UsageError("--again checks the certificate itself; it does not go with --data")
    confidence = 0.95 if confidence is None else confidence
    if held == TRAIN and not Path(TRAIN).exists():
        if other is not None or data_seed is not None:
            raise click.UsageError("--data train goes with neither --with nor --data-seed")
        with working(f"cross-fitting certificates of {folder}") as tell:
            bound = cross_fit_run(folder, train=train, confidence=confidence, progress=tell)
        if as_json:
            print_json(bound.as_dict())
        else:
            from sfumato.show import text

            click.echo(text(bound))
        return
    with working(f"certifying {folder} for check-ins to come"):
        found = certify_to_come(
            folder,
            held,
            confidence=confidence,
            other=other,
            train=train,
            data_seed=data_seed or 0,
            gap=gap,
        )
    if found.left_out:
        say_notes([f"{found.left_out} check-ins of users that the run does not know are left out"])
    if as_json:
        print_json(found.as_dict())
    else:
        click.echo(str(found))


def _again(found: "Certified", folder: Path) -> dict[str, Any]:
    """The bounds by the second checker; how far it is goes to stderr every few seconds."""
    from sfumato.measure.certificate import check_again

    start = said = time.monotonic()

    def tell(share: float) -> None:
        nonlocal said
        if time.monotonic() - said >= EVERY_S:
            said = time.monotonic()
            left = (said - start) * (1 - share) / share
            click.echo(f"rational arithmetic: {share:.0%}, about {left:.0f} s left", err=True)

    second = check_again(folder / "certificate.npz", found.problem, found.gap.bounds, progress=tell)
    return {
        "bound_grid": float(second.grid),
        "bound_plane": None if second.plane is None else float(second.plane),
        "seconds": second.seconds,
    }
