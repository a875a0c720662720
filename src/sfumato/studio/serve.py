"""The studio's server: loopback only, a free port, a random token in the address."""

import asyncio
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from sfumato.errors import DataError, ProblemError
from sfumato.studio.app import Studio
from sfumato.studio.guard import Guard, policy

LOOPBACK = "127.0.0.1"


def serve(
    given: str | None, *, port: int = 0, tiles: str | None = None, ready: Callable[[str], None]
) -> None:
    """Serve until interrupted; `ready` is told the address once the server answers."""
    policy(tiles)  # refuses an address that is not one before anything starts
    if given is not None and given != "four-corners" and not Path(given).is_file():
        raise DataError(
            f"there is no file {given}; expected 'four-corners' or a SNAP, CSV or Parquet file"
        )
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((LOOPBACK, port))
    except OSError as error:
        place.close()
        raise ProblemError(
            f"port {port} cannot be used: {error.strerror}; name another, or none for a free one"
        ) from None
    port, token = place.getsockname()[1], secrets.token_urlsafe(24)
    studio = Studio(given=given, tiles=tiles, stopping=lambda: server.should_exit)
    guard = Guard(
        studio.app(), token=token, hosts=(f"{LOOPBACK}:{port}", f"localhost:{port}"), tiles=tiles
    )
    config = uvicorn.Config(
        guard,
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=3,
    )
    server = _Server(config, lambda: ready(f"http://{LOOPBACK}:{port}/{token}/"))
    try:
        asyncio.run(server.serve(sockets=[place]))
    finally:
        place.close()


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()
