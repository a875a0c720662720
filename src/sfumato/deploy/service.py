"""A location service on this machine: the usual geolocation request in, a report out.

It answers the request and reply that browsers and phones use for network location (POST, JSON,
`location.lat`, `location.lng`, `accuracy`), so that a program can be pointed at it.  No coordinate
is logged, stored or sent.

A kept report must not be found out by asking for other places until one has the same report.  So
either nobody names a place (the machine's own is answered for), or each client has a token, reports
of its own that no other client can ask for, and few places in each period.
"""

import hashlib
import hmac
import ipaddress
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sfumato.data.grid import STICKY_CELL_M, Grid
from sfumato.deploy.clients import Clients
from sfumato.deploy.protect import Outside, Protected, protect
from sfumato.deploy.release import Release
from sfumato.deploy.spent import Budget, Ledger
from sfumato.errors import ProblemError, arg
from sfumato.mechanism.chance import PERIODS, Rows, Sticky
from sfumato.version import __version__

INTERFACE: dict[str, Any] = json.loads(
    Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")
)
INTERFACE["info"]["version"] = __version__
_BATCH = INTERFACE["paths"]["/v1/batch"]["post"]["requestBody"]["content"]["application/json"]
MOST_POINTS: int = _BATCH["schema"]["properties"]["locations"]["maxItems"]
MOST_BYTES = 64 * 1024
MOST_BATCH_BYTES = 1024 * 1024
MOST_PLACES = 50
_OWN_PLACE = "this service answers for the place of its machine alone; send no location"
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True)
class Settings:
    """How the service answers.

    `keep` is how long the same cell gets the same report; `places` is how many cells a client may
    ask for in that time; `rate` is requests per second and client, with as many in reserve.

    `place` is where this machine is: then every request is answered for it, with the same report
    for all clients, and none may name another.  Without it `clients` must say who may ask.

    `warn` is called once with a sentence when reports cost more than the run's budget by more than
    chance explains.
    """

    accuracy_m: float
    keep: str = "day"
    keep_cell_m: float = STICKY_CELL_M
    outside: Outside = "refuse"
    rate: float = 50.0
    hosts: frozenset[str] = frozenset(_LOOPBACK)
    place: tuple[float, float] | None = None
    clients: Clients | None = None
    places: int = MOST_PLACES
    warn: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if self.place is None and self.clients is None:
            raise ProblemError(
                f"say who may ask: give each client a token ({arg('token_file')}), or answer for"
                f" one place ({arg('at')})"
            )
        if not 1 <= self.places <= MOST_POINTS:
            raise ProblemError(f"{arg('places')} must be 1 to {MOST_POINTS}; got {self.places}")


@dataclass
class Bucket:
    """`rate` requests per second, with one second's worth in reserve."""

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
        headers = {"Retry-After": "1"} if self.reason == "rateLimitExceeded" else None
        return _reply(
            {"error": {"code": self.code, "message": str(self), "errors": [problem]}},
            self.code,
            headers,
        )


def _reply(content: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(
        content, status_code=code, headers={"Cache-Control": "no-store", **(headers or {})}
    )


@dataclass
class Counted:
    """Kept reports of one client, for at most `most` cells in a period.

    What was asked for is remembered as hashes until the period ends.  A client that asks for more
    is refused everything for the rest of it: else being answered would tell which cells had been
    asked for before.
    """

    kept: Sticky
    most: int
    _period: int | None = None
    _asked: set[bytes] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def asks_user(self) -> bool:
        return False

    @property
    def asks_time(self) -> bool:
        return self.kept.asks_time

    def of(self, truth: np.ndarray, rows: Rows, draws: int) -> tuple[np.ndarray, np.ndarray]:
        self._count(Grid(cell_m=self.kept.cell_m).index(truth), rows)
        return self.kept.of(truth, rows, draws)

    def _count(self, cells: np.ndarray, rows: Rows) -> None:
        length, period = PERIODS[self.kept.period], 0
        if length is not None:
            assert rows.seconds is not None
            period = int(rows.seconds.max()) // length
        wanted = {
            hashlib.blake2b(cell.tobytes(), key=self.kept.key, digest_size=16).digest()
            for cell in np.unique(cells, axis=0)
        }
        with self._lock:
            if period != self._period:
                self._period, self._asked = period, set()
            self._asked |= wanted
            if len(self._asked) > self.most:
                raise Refusal(
                    429,
                    "dailyLimitExceeded",
                    f"this client has asked for more than {self.most} places; it is answered again"
                    " when reports are drawn anew",
                )

    def words(self) -> dict[str, object]:
        return self.kept.words()


@dataclass
class Watch:
    """Losses of the reports that were given, as sums alone; says once when they are over the
    budget."""

    budget: Budget
    warn: Callable[[str], None] | None
    _losses: Ledger = field(default_factory=Ledger)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, reports: Protected) -> None:
        """Take reports in."""
        if self.warn is None:
            return
        with self._lock:
            self._losses.add(reports.draw[reports.counted], reports.cost[reports.counted])
            if self._losses.against(self.budget):
                self.warn(
                    "reports cost more than the run's budget: the places that are asked for are"
                    " unlike those that it was made for"
                )
                self.warn = None


@dataclass(frozen=True)
class Client:
    """What the service holds for one client."""

    chance: Counted
    bucket: Bucket


def service(release: Release, settings: Settings) -> Starlette:
    """The application; `uvicorn` runs it."""
    # The key lives as long as the process: kept reports cannot be worked out by anybody else, nor
    # later.  Clients that name places share none; for one place all get the same report, else those
    # that compare theirs would have several draws to average.
    master = os.urandom(32)
    everybody = Bucket(settings.rate)
    watch = Watch(release.budget, settings.warn)
    names = [""] if settings.clients is None else list(settings.clients.tokens)
    known = {
        name: Client(
            Counted(
                Sticky(
                    _client_key(master, name if settings.place is None else ""),
                    settings.keep,
                    settings.keep_cell_m,
                    by_user=False,
                ),
                settings.places,
            ),
            Bucket(settings.rate),
        )
        for name in names
    }

    def client_of(request: Request) -> Client:
        if settings.clients is None:
            return known[""]
        name = settings.clients.named_by(_token(request))
        if name is None:
            raise Refusal(
                401,
                "authError",
                "the token is missing or unknown; send 'Authorization: Bearer TOKEN' or ?key=TOKEN",
            )
        return known[name]

    def answer(client: Client, points: list[tuple[float, float]]) -> list[dict[str, Any] | None]:
        first, second = np.array(points, dtype=float).T
        seconds = np.full(len(points), int(time.time()), dtype=np.int64)
        reports = protect(
            release,
            first,
            second,
            chance=client.chance,
            rows=Rows(seconds=seconds),
            outside=settings.outside,
        )
        watch.add(reports)
        lost = np.isnan(reports.first) | np.isnan(reports.second)
        places = zip(reports.first.tolist(), reports.second.tolist(), lost.tolist(), strict=True)
        accuracy = settings.accuracy_m
        return [
            None if gone else {"location": {"lat": lat, "lng": lng}, "accuracy": accuracy}
            for lat, lng, gone in places
        ]

    async def geolocate(request: Request, client: Client) -> Response:
        body = await _body(request, MOST_BYTES)
        if settings.place is not None:
            if body.get("location") is not None:
                raise Refusal(400, "invalid", _OWN_PLACE)
            place = settings.place
        elif body.get("location") is not None:
            place = _point(body["location"])
        else:
            raise Refusal(
                404,
                "notFound",
                "the request has no location, and this service was not told where the machine is;"
                ' send {"location": {"lat": LAT, "lng": LNG}}',
            )
        (report,) = answer(client, [place])
        if report is None:
            raise Refusal(
                404,
                "notFound",
                "the location is outside the region, or not one of the places, that the mechanism"
                " was made for",
            )
        return _reply(report)

    async def batch(request: Request, client: Client) -> Response:
        body = await _body(request, MOST_BATCH_BYTES)
        if settings.place is not None:
            raise Refusal(400, "invalid", _OWN_PLACE)
        given = body.get("locations")
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_POINTS:
            raise Refusal(
                400, "invalid", f"expected 'locations', a list of 1 to {MOST_POINTS} places"
            )
        return _reply({"reports": answer(client, [_point(place) for place in given])})

    async def openapi(request: Request) -> Response:
        return _reply(INTERFACE)

    async def health(request: Request) -> Response:
        return _reply({"status": "ok"})

    async def nothing(request: Request) -> Response:
        raise Refusal(
            404,
            "notFound",
            "unknown address; use POST /v1/geolocate, or GET /openapi.json for a description",
        )

    def answered_client(request: Request) -> Client:
        try:
            client = client_of(request)
        except Refusal:
            _take(everybody)  # who guesses tokens does so at the rate of all strangers together
            raise
        _take(client.bucket)
        return client

    def guarded(handler: Callable[..., Any], *, for_clients: bool) -> Callable[[Request], Any]:
        async def run(request: Request) -> Response:
            try:
                _check_host(request.headers, settings.hosts, request.scope.get("server"))
                if for_clients:
                    reply: Response = await handler(request, answered_client(request))
                else:
                    _take(everybody)
                    reply = await handler(request)
            except Refusal as refusal:
                return refusal.response()
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception:  # whatever it is, its text may hold a place: say nothing of it
                return Refusal(500, "backendError", "the request could not be answered").response()
            return reply

        return run

    elsewhere = guarded(nothing, for_clients=False)

    async def not_found(request: Request, error: Exception) -> Response:
        return await elsewhere(request)

    async def other_method(request: Request) -> Response:
        raise Refusal(
            405,
            "httpMethodNotAllowed",
            "this path takes another method; GET /openapi.json says which",
        )

    otherwise = guarded(other_method, for_clients=False)

    async def not_allowed(request: Request, error: Exception) -> Response:
        reply: Response = await otherwise(request)
        if reply.status_code == 405:
            reply.headers.update(getattr(error, "headers", None) or {})
        return reply

    return Starlette(
        routes=[
            Route("/v1/geolocate", guarded(geolocate, for_clients=True), methods=["POST"]),
            Route("/v1/batch", guarded(batch, for_clients=True), methods=["POST"]),
            Route("/openapi.json", guarded(openapi, for_clients=False), methods=["GET"]),
            Route("/health", guarded(health, for_clients=False), methods=["GET"]),
        ],
        exception_handlers={404: not_found, 405: not_allowed},
    )


def _take(bucket: Bucket) -> None:
    if not bucket.take():
        raise Refusal(429, "rateLimitExceeded", "too many requests; ask again in a second")


def _client_key(master: bytes, name: str) -> bytes:
    """A key for each client, none of which tells another."""
    return hmac.new(master, b"sfumato client\0" + name.encode(), hashlib.sha256).digest()


def _token(request: Request) -> str:
    """As the header that is usual, or as the `key` that programs with a fixed address send."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else request.query_params.get("key", "")


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
        raise Refusal(415, "invalid", "expected JSON; send 'Content-Type: application/json'")
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
