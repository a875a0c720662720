"""sfumato studio"""

from contextlib import suppress
from pathlib import Path

import click

from sfumato.cli import machine
from sfumato.cli.options import option

_EXAMPLE = "\b\nExample: sfumato studio checkins.csv"


@click.command("studio", epilog=_EXAMPLE)
@click.argument("source", metavar="[DATA|RUN]", required=False)
@option(
    "--port N",
    "Port on this machine [default: a free one].",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
)
@option(
    "--tiles ADDRESS",
    "Street tiles, as https://host/{z}/{x}/{y}.png; the host then learns where you look.",
)
@option("--streets FILE", "GeoJSON lines to draw below the map; nothing is fetched from elsewhere.")
@option("--no-open", "Print the address and do not open a browser.")
def command(
    source: str | None, port: int, tiles: str | None, streets: Path | None, no_open: bool
) -> None:
    """Open a page on this machine: bring data, set a budget, watch, compare, attack, take away.

    The page opens with DATA chosen; a RUN is opened again, with its data.

    The page answers on this machine only, to anyone with the printed address.  Ctrl-C ends
    it and removes what the page kept: take away what you want to have.
    """
    machine.keep_compiled()  # the jobs of all pages inherit it
    from sfumato.errors import require

    require("serve", "learn", "report", bring="studio")
    from sfumato.studio.serve import Opening, serve

    def ready(opening: Opening) -> None:
        click.echo(opening.address)
        click.echo(f"runs and data are in {opening.folder} until Ctrl-C ends the studio", err=True)
        if not no_open:
            import threading
            import webbrowser

            # Not the address: it holds a secret, and others can read command lines.
            door = opening.door.as_uri()
            threading.Thread(target=webbrowser.open, args=(door,), daemon=True).start()

    with suppress(KeyboardInterrupt):  # the usual end
        serve(source, port=port, tiles=tiles, streets=streets, ready=ready)
