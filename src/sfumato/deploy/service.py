"""A location service on this machine: the usual geolocation request in, a report out.

It answers the request and reply that browsers and phones use for network location (POST, JSON,
`location.lat`, `location.lng`, `accuracy`), so that a program can be pointed at it.  No coordinate
is logged, stored or sent.
"""

import ipaddress
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sfumato.data.grid import STICKY_CELL_M
from sfumato.deploy.chance import Chance, Rows, Secure, Sticky
from sfumato.deploy.openapi import document
from sfumato.deploy.protect import Outside, protect
from sfumato.deploy.release import Release

MOST_BYTES = 64 * 1024
MOST_BATCH_BYTES = 1024 * 1024
MOST_POINTS = 10_000
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True)
class Settings:
    """How the service answers.

    `keep` is how long the same cell gets the same report (None draws each time); `rate` is requests
    a second, with as many in reserve; `place` is where this machine is, for requests that do not
    say.
    """

    accuracy_m: float
    keep: str | None = "day"
    keep_cell_m: float = STICKY_CELL_M
    outside: Outside = "refuse"
    rate: float = 50.0
    hosts: frozenset[str] = frozenset(_LOOPBACK)
    place: tuple[float, float] | None = None


@dataclass
class Bucket:
    """So many requests a second, with one second's worth in reserve."""

    rate: float
    clock: Callable[[], float] = time.monotonic
    left: float = field(init=False)
    at: float = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.left, self.at = max(self.rate, 1.0), self.clock()

    def take(self) -> bool:
        """Whether one more request may be answered now."""
        with self.lock:
            now = self.clock()
            self.left = min(max(self.rate, 1.0), self.left + (now - self.at) * self.rate)
            self.at = now
            if self.left < 1:
                return False
            self.left -= 1
            return True


class Refusal(Exception):
    """An answer in the form that clients of such services know; its message holds no value of the
    request."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason

    def response(self) -> Response:
        """The reply."""
        problem = {"domain": "geolocation", "reason": self.reason, "message": str(self)}
        headers = {"Retry-After": "1"} if self.code == 429 else None
        return _reply(
            {"error": {"code": self.code, "message": str(self), "errors": [problem]}},
            self.code,
            headers,
        )


def _reply(content: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(
        content, status_code=code, headers={"Cache-Control": "no-store", **(headers or {})}
    )


def service(release: Release, settings: Settings) -> Starlette:
    """The application; `uvicorn` runs it."""
    # The key lives as long as the process: kept reports cannot be worked out by anybody else, nor
    # later.
    chance: Chance = Secure()
    if settings.keep is not None:
        chance = Sticky(os.urandom(32), settings.keep, settings.keep_cell_m, by_user=False)
    bucket = Bucket(settings.rate)

    def answer(points: list[tuple[float, float]]) -> list[dict[str, Any] | None]:
        first, second = np.array(points, dtype=float).T
        seconds = np.full(len(points), int(time.time()), dtype=np.int64)
        found = protect(
            release,
            first,
            second,
            chance=chance,
            rows=Rows(seconds=seconds),
            outside=settings.outside,
        )
        lost = np.isnan(found.first) | np.isnan(found.second)
        return [
            (
                None
                if gone
                else {
                    "location": {"lat": float(lat), "lng": float(lng)},
                    "accuracy": settings.accuracy_m,
                }
            )
            for lat, lng, gone in zip(found.first, found.second, lost, strict=True)
        ]

    async def geolocate(request: Request) -> Response:
        body = await _body(request, MOST_BYTES)
        if body.get("location") is not None:
            place = _point(body["location"])
        elif settings.place is not None:
            place = settings.place
        else:
            raise Refusal(
                404,
                "notFound",
                "the request has no location, and this service was not told where the machine is",
            )
        (found,) = answer([place])
        if found is None:
            raise Refusal(
                404,
                "notFound",
                "the location is outside the region that the mechanism was made for",
            )
        return _reply(found)

    async def batch(request: Request) -> Response:
        body = await _body(request, MOST_BATCH_BYTES)
        given = body.get("locations")
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_POINTS:
            raise Refusal(
                400, "invalid", f"expected 'locations', a list of 1 to {MOST_POINTS} places"
            )
        return _reply({"reports": answer([_point(place) for place in given])})

    async def openapi(request: Request) -> Response:
        return _reply(document())

    async def health(request: Request) -> Response:
        return _reply({"status": "ok"})

    def guarded(handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def run(request: Request) -> Response:
            try:
                _check_host(request.headers, settings.hosts, request.scope.get("server"))
                if not bucket.take():
                    raise Refusal(
                        429, "rateLimitExceeded", "too many requests; ask again in a second"
                    )
                reply: Response = await handler(request)
            except Refusal as refusal:
                return refusal.response()
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception:  # whatever it is, its text may hold a place: say nothing of it
                return Refusal(500, "backendError", "the request could not be answered").response()
            return reply

        return run

    return Starlette(
        routes=[
            Route("/v1/geolocate", guarded(geolocate), methods=["POST"]),
            Route("/v1/batch", guarded(batch), methods=["POST"]),
            Route("/openapi.json", guarded(openapi), methods=["GET"]),
            Route("/health", guarded(health), methods=["GET"]),
        ]
    )


def _check_host(
    headers: Headers, hosts: frozenset[str], server: tuple[str, int | None] | None
) -> None:
    """A page of another site that has its name point here is turned away.

    Beside `hosts`, the number of the address at which the request came in is answered to, for a
    service that listens on all addresses; a name never is, whatever it points to.
    """
    name = headers.get("host", "")
    name = name[1:].split("]")[0] if name.startswith("[") else name.rsplit(":", 1)[0]
    if name.lower() not in hosts and (server is None or not _same_address(name, server[0])):
        raise Refusal(403, "forbidden", "this service answers to its own address only")
    if headers.get("origin") is not None:
        raise Refusal(403, "forbidden", "this service does not answer pages of other sites")


def _same_address(name: str, local: str) -> bool:
    """Whether both are numbers of the same address; an interface's name behind % is not
    compared."""
    try:
        return ipaddress.ip_address(name.split("%")[0]) == ipaddress.ip_address(local.split("%")[0])
    except ValueError:
        return False


async def _body(request: Request, most: int) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "invalid", "expected a body of type application/json")
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            raise Refusal(413, "invalid", f"the body is larger than {most} bytes")
    try:
        body = json.loads(bytes(data).decode("utf-8")) if data.strip() else {}
    except (ValueError, RecursionError):
        raise Refusal(400, "parseError", "the body is not JSON") from None
    if not isinstance(body, dict):
        raise Refusal(400, "parseError", "the body is not a JSON object")
    return body


def _point(place: Any) -> tuple[float, float]:
    """Latitude and longitude of a place; both must be numbers in range."""
    pair = (place.get("lat"), place.get("lng")) if isinstance(place, dict) else (None, None)
    for value, most in zip(pair, (90, 180), strict=True):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= most:
            raise Refusal(
                400,
                "invalid",
                "a place is 'lat' from -90 to 90 and 'lng' from -180 to 180, both numbers",
            )
    return float(pair[0]), float(pair[1])  # type: ignore[arg-type]
