"""sfumato serve"""

import os
import shlex
import socket
from functools import partial
from pathlib import Path

import click

from sfumato.cli import machine
from sfumato.cli.options import PATH, Written, new_places_option, number, option, say_notes

_RATE = Written("rate", partial(number, least=0.1))
_EXAMPLE = "\b\nExample: sfumato serve runs/laplace --token-file clients.json --client phone"


@click.command("serve", epilog=_EXAMPLE)
@click.argument("run", metavar="RUN", type=PATH)
@option(
    "--port N",
    "Port to listen on; 0 takes any free one.",
    type=click.IntRange(0, 65535),
    default=8765,
)
@option(
    "--host ADDRESS",
    "Address to listen on; another than loopback needs --open-to-network.",
    default="127.0.0.1",
)
@option("--open-to-network", "Listen on an address that other machines can reach.")
@option(
    "--at FILE",
    'Where this machine is: {"lat": …, "lng": …}.  Every request is answered for it, and none'
    " may name another place.",
)
@option(
    "--token-file FILE",
    "File of clients and their tokens; made, readable by you alone, if missing.",
)
@option(
    "--client NAME",
    "Add a client to the token file, if it is not in it; may be repeated.",
    "add",
    multiple=True,
)
@option(
    "--places N",
    "Most cells that one client may ask for while reports are kept.",
    type=click.IntRange(1, 1000),
    default=50,
)
@option(
    "--keep hour|day|week|forever",
    "How long a cell gets the same report [default: as sfumato policy chose, else day].",
)
@option(
    "--outside refuse|laplace|clamp",
    "What to do with places outside the region: refuse them, add planar Laplace noise of the"
    " same budget, or move them to its edge first.",
    default="refuse",
)
@new_places_option
@option("--rate N", "Most requests per second and client, at least 0.1.", type=_RATE, default=50.0)
def command(
    run: Path,
    port: int,
    host: str,
    open_to_network: bool,
    at: Path | None,
    token_file: Path | None,
    add: tuple[str, ...],
    places: int,
    keep: str | None,
    outside: str,
    new_places: str,
    rate: float,
) -> None:
    """Answer geolocation requests on this machine with reports of a run's mechanism.

    Either for the place of this machine (--at), or for places that clients name, each with the
    token that --token-file holds for it ('Authorization: Bearer TOKEN' or ?key=TOKEN).

    POST /v1/geolocate takes {"location": {"lat": …, "lng": …}} and gives {"location": {"lat",
    "lng"}, "accuracy"}; POST /v1/batch takes {"locations": […]}; GET /openapi.json describes both.
    No coordinate is logged.
    """
    import ipaddress

    machine.one_thread(tables=True)
    from sfumato.deploy.clients import read_clients
    from sfumato.deploy.keeping import forever_warning, kept_by_service
    from sfumato.deploy.release import accuracy, release
    from sfumato.deploy.server import serve
    from sfumato.deploy.service import Settings, service
    from sfumato.errors import FileError
    from sfumato.study.folder import load_run

    try:
        near = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise click.UsageError(
            f"'{host}' is not an address; write 127.0.0.1 or another number"
        ) from None
    if not near and not open_to_network:
        raise click.UsageError(
            f"{host} can be reached by other machines, and requests hold true locations; add"
            " --open-to-network to allow it"
        )
    if at is None and token_file is None:
        raise click.UsageError(
            "say who may ask: name clients with --token-file FILE and --client NAME (each gets a"
            " token), or answer for this machine's own place with --at FILE"
        )
    if add and token_file is None:
        raise click.UsageError("--client adds to a token file; name it with --token-file FILE")
    place = None if at is None else _place(at)
    loaded = load_run(run)
    released = release(loaded, new_places=new_places)  # type: ignore[arg-type]
    if released.plane is None:
        raise FileError(
            f"{run} is in plane metres; the service needs degrees: solve with latitude and"
            " longitude"
        )
    kept = kept_by_service(loaded)
    if (keep or kept.period) == "forever":
        say_notes([forever_warning(loaded)])
    with _listening(host, port) as listening:  # before a token file is made
        settings = Settings(
            accuracy_m=accuracy(loaded, released)["accuracy_m"],
            keep=keep or kept.period,
            keep_cell_m=kept.cell_m,
            outside=outside,  # type: ignore[arg-type]
            rate=rate,
            hosts=frozenset({"127.0.0.1", "localhost", "::1", host}),
            place=place,
            clients=None if token_file is None else read_clients(token_file, add=add),
            places=places,
            warn=lambda sentence: say_notes([sentence]),
        )
        app = service(released, settings)
        here = f"[{host}]" if ":" in host else host
        address = f"http://{here}:{listening.getsockname()[1]}"
        request = _try(address, token_file, names_place=place is None)
        said = f"listening on {address}; Ctrl-C ends it; {request}"
        serve(app, listening, ready=lambda: click.echo(said, err=True))


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error.strerror
        raise click.UsageError(
            f"cannot listen on port {port} of {host}: {why}; name another with"
            " --port, or 0 for any free one"
        ) from None


def _try(address: str, token_file: Path | None, *, names_place: bool) -> str:
    """A request to try it with, on a line of its own."""
    words, body, fill = ["curl", "-H", "Content-Type: application/json"], "{}", ""
    if token_file is not None:
        words += ["-H", "Authorization: Bearer TOKEN"]
        fill = f", with a TOKEN of {token_file}"
    if names_place:
        body = '{"location": {"lat": LAT, "lng": LNG}}'
        fill += ", a LAT and a LNG in the region"
    return f"try it{fill}:\n{shlex.join([*words, '-d', body, f'{address}/v1/geolocate'])}"


def _place(path: Path) -> tuple[float, float]:
    """The machine's place from a file, so that it does not stand in the list of processes."""
    from sfumato.errors import FileError
    from sfumato.files import read_json

    if not path.exists():
        raise FileError(f'there is no file {path}; write {{"lat": degrees, "lng": degrees}} in it')
    document = read_json(path, what="file of a place")
    try:
        place = (float(document["lat"]), float(document["lng"]))
    except (KeyError, TypeError, ValueError):
        place = (float("nan"), float("nan"))
    if not (abs(place[0]) <= 90 and abs(place[1]) <= 180):
        raise FileError(f'{path} holds no place; expected {{"lat": degrees, "lng": degrees}}')
    return place
