"""The service's server: few connections, each with little time, and no line that holds a place."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64
REQUEST_S = 10.0  # for one request from its first byte, or from the connection, to its answer
_IDLE_S = 5  # between an answer and the next request


class Bounded(H11Protocol):
    """A connection that is closed if its request is not whole and answered in time, and at once if
    there are too many."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._start()

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._start()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._stop()
        super().on_response_complete()
        if not self.cycle.response_complete:  # the next one has begun: it came along with this one
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _start(self) -> None:
        self._timer = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Announced(uvicorn.Server):
    """Says when it has started: from then on it takes signals itself, and none is lost."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()


def serve(app: Any, listening: socket.socket, *, ready: Callable[[], None]) -> None:
    """Serve until interrupted; `ready` is called once it has started.  No access log and no line
    for a bad request: either could hold what was sent."""
    config = uvicorn.Config(
        app,
        http=Bounded,
        ws="none",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=3,
    )
    with suppress(KeyboardInterrupt):  # the usual end
        Announced(config, ready).run(sockets=[listening])
