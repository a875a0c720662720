"""sfumato certify"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import stopping
from sfumato.cli.options import (
    EVERY_S,
    PATH,
    SEEDS,
    as_json,
    option,
    print_json,
    rounds_to,
    say_notes,
    working,
)

if TYPE_CHECKING:
    from sfumato.study.certify import Certified

_EXAMPLE = "\b\nExample: sfumato certify runs/coin"


@click.command("certify", epilog=_EXAMPLE)
@click.argument("folder", metavar="RUN", type=PATH)
@option("--with RUN2", "Use the certificate of this run on the same data.", "other")
@option(
    "--data HELD-OUT",
    "Say what these held-out check-ins prove about check-ins to come; 'test': the test part of the"
    " run's data; 'train': a bound for every mechanism from the training part, cross-fitted.",
    "held",
)
@option("--confidence C", "Confidence of the statements about check-ins to come [default: 0.95].")
@option("--data-seed S", "Seed of --data, for four-corners [default: 0].", type=SEEDS)
@option("--train DATA", "Where the run's own data is now, if it moved.", "train")
@option(
    "--gap GAP",
    "How far the leakage may stay above the bound of a new certificate, as a probability or in"
    " bits.",
    default=1e-3,
)
@option(
    "--again", "Check the certificate a second time, in rational arithmetic: slow, no rounding."
)
@as_json
def command(
    folder: Path,
    held: str | None,
    confidence: float | None,
    data_seed: int | None,
    again: bool,
    as_json: bool,
    **proof: Any,
) -> None:
    """Prove how far a run's mechanism is from the best that can exist.

    Checks the run's certificate against the data alone.  A run that has none, or one from a
    proof that was quick or ended early, gets a new one: the exact solver finds it, the checker
    checks it, and it is kept in the run folder.  Ctrl-C keeps the best bound so far.

    With --data it says, with a confidence, what holds for check-ins to come: how well this
    mechanism hides at least, what it costs, and how well any mechanism within the budget can hide
    at most.
    """
    from sfumato.study.certify import certify_run

    if held is not None:
        if again:
            raise click.UsageError(
                "--again checks the certificate itself; it does not go with --data"
            )
        said = 0.95 if confidence is None else confidence
        _to_come(folder, held, said, data_seed, as_json, proof)
        return
    if confidence is not None or data_seed is not None:
        given = "--confidence" if confidence is not None else "--data-seed"
        raise click.UsageError(f"{given} goes with --data, which names held-out check-ins")
    try:
        with working(f"certifying {folder}") as tell:
            source = proof.pop("train")
            heard = rounds_to(tell, unit="")
            certified = certify_run(folder, source=source, **proof, progress=heard)
    except KeyboardInterrupt:  # with a bound, certify_run keeps it
        click.echo("stopped before a bound was found; the run is as it was", err=True)
        raise
    second = _again(certified, proof["other"] or folder) if again else None
    samples = certified.problem.samples  # the record of the run says what was taken of a file
    say_notes([f"certified on {samples.described}", *samples.notes])
    if as_json:
        print_json(certified.as_dict() | ({} if second is None else {"again": second}))
        return
    click.echo(str(certified))
    if certified.stopped:
        click.echo("The proof was stopped: the best bound so far is kept.")
        raise click.exceptions.Exit(stopping.exit_code())
    if second is not None:
        plane = "" if second["bound_plane"] is None else f" / {second['bound_plane']:.4f}"
        click.echo(
            f"In rational arithmetic: {second['bound_grid']:.4f}{plane}, by a second checker in"
            f" {second['seconds']:.1f} s."
        )


def _to_come(
    folder: Path,
    held_out: str,
    confidence: float,
    data_seed: int | None,
    as_json: bool,
    proof: dict[str, Any],
) -> None:
    """What holds for check-ins to come."""
    from sfumato.study.population import TRAIN, certify_to_come, cross_fit_run

    if held_out == TRAIN and not Path(TRAIN).exists():
        if proof["other"] is not None or data_seed is not None:
            raise click.UsageError("--data train goes with neither --with nor --data-seed")
        with working(f"cross-fitting certificates of {folder}") as tell:
            train = proof["train"]
            bound = cross_fit_run(folder, train=train, confidence=confidence, progress=tell)
        if as_json:
            print_json(bound.as_dict())
        else:
            from sfumato.show import text

            click.echo(text(bound))
        return
    with working(f"certifying {folder} for check-ins to come"):
        seed = data_seed or 0
        certified = certify_to_come(
            folder, held_out, confidence=confidence, data_seed=seed, **proof
        )
    notes = []
    if certified.left_out:
        notes.append(
            f"{certified.left_out} check-ins of users that the run does not know are left out"
        )
    if not certified.made_now:
        notes.append(
            "this holds if the certificate was made without these check-ins, which no checker can"
            " tell; where somebody else made it, remove certificate.npz, and certify makes it again"
        )
    say_notes(notes)
    if as_json:
        print_json(certified.as_dict())
    else:
        click.echo(str(certified))


def _again(certified: "Certified", folder: Path) -> dict[str, Any]:
    """The bounds by the second checker; how far it is goes to stderr every few seconds."""
    from sfumato.measure.certificate import check_again

    start = said = time.monotonic()

    def tell(share: float) -> None:
        nonlocal said
        if time.monotonic() - said >= EVERY_S:
            said = time.monotonic()
            left = (said - start) * (1 - share) / share
            click.echo(f"rational arithmetic: {share:.0%}, about {left:.0f} s left", err=True)

    second = check_again(
        folder / "certificate.npz", certified.problem, certified.gap.bounds, progress=tell
    )
    return {
        "bound_grid": float(second.grid),
        "bound_plane": None if second.plane is None else float(second.plane),
        "seconds": second.seconds,
    }
