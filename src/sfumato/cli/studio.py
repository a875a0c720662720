"""sfumato studio"""

from contextlib import suppress

import click

_EXAMPLE = "\b\nExample: sfumato studio checkins.csv"


@click.command("studio", epilog=_EXAMPLE)
@click.argument("source", metavar="[DATA]", required=False)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port on this machine [default: a free one].",
)
@click.option(
    "--tiles",
    metavar="ADDRESS",
    help="Street tiles, as https://host/{z}/{x}/{y}.png; the host then learns where you look.",
)
@click.option("--no-open", is_flag=True, help="Print the address and do not open a browser.")
def command(source: str | None, port: int, tiles: str | None, no_open: bool) -> None:
    """Open a page on this machine: bring data, set a budget, watch, compare, attack, take away.

    The page answers on this machine only, to whoever has the address that is printed.  Ctrl-C ends
    it.
    """
    from sfumato.studio.serve import serve

    def ready(address: str) -> None:
        click.echo(address)
        if not no_open:
            import webbrowser

            webbrowser.open(address)

    with suppress(KeyboardInterrupt):  # the usual end
        serve(source, port=port, tiles=tiles, ready=ready)
