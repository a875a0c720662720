"""sfumato export"""

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import PATH, as_json, new_places_option, option, print_json, working

_EXAMPLE = "\b\nExample: sfumato export runs/laplace dist"


@click.command("export", epilog=_EXAMPLE)
@click.argument("run", metavar="RUN", type=PATH)
@click.argument("target", metavar="DIST", type=PATH)
@option("--page", "Put the page and its modules into the bundle's folder.")
@option("--extension", "Write a browser extension with the bundle inside.")
@option("--reveal-truths", "Export a mechanism whose file lists true locations of its data.")
@option(
    "--with-certificate",
    "Put the run's certificate into the bundle; it can reveal places of the data.",
)
@option(
    "--tile N", "Export one tile of an atlas, by its number on the map.", type=click.IntRange(min=0)
)
@new_places_option
@as_json
def command(
    run: Path, target: Path, page: bool, extension: bool, as_json: bool, **options: Any
) -> None:
    """Write a bundle for devices: mechanism.onnx, manifest.json and vectors.json.

    The random numbers are an input of the mechanism; web/sfumato.js draws them with the browser's
    secure randomness.
    """
    from sfumato.deploy.bundle import export

    with working(f"exporting {run}"):
        manifest = export(run, target, page=page, extension=extension, **options)
    if as_json:
        print_json(manifest)
        return
    folder = target / "bundle" if extension else target
    size = sum(
        path.stat().st_size
        for path in (folder / name for name in ("manifest.json", *manifest["files"]))
    )
    click.echo(
        f"{target}: {manifest['kind']}, {size / 1000:.1f} kB; a site is told an accuracy of"
        f" {manifest['accuracy_m']:g} m"
    )
    to_come = manifest["to_come"]
    blind = to_come.get("blind_error")
    beside = "" if blind is None else f" ({blind:.0%} for a blind guess)"
    click.echo(
        f"check-ins to come: {to_come['why']}"
        if to_come["loss"] is None
        else f"check-ins to come: {to_come['loss']['value']:.0f} m off on average, the best guess"
        f" wrong {to_come['bayes_error']['value']:.0%} of the time{beside}, by {to_come['from']}"
    )
    if manifest["truth_share"]:
        click.echo(
            f"warning: it reports the true place {manifest['truth_share']:.1%} of the time; a"
            " codebook (sfumato solve) mixes users instead"
        )
    if page:
        click.echo(
            f"open it: python -m http.server --bind localhost --directory {target},"
            " http://localhost:8000"
        )
    if extension:
        click.echo(
            f"load it: chrome://extensions, developer mode, Load unpacked, {target.resolve()}"
        )
    if manifest["holds_true_locations"]:
        click.echo("this bundle lists true locations")
    if manifest["holds_certificate"]:
        click.echo("this bundle contains the certificate, which reveals places of the data")
