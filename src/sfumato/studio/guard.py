"""Who may ask: whoever knows the token, from this page, on this machine, with a body of bounded
size."""

import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import ProblemError

LARGEST_FILE = 256 * 2**20
LARGEST_WORDS = 2**20
_FROM_HERE = {"same-origin", "none"}


class TooLarge(Exception):
    """A body beyond its limit, which is the first argument."""


def policy(tiles: str | None) -> str:
    """The page's content-security policy: nothing from outside, no inline script; pictures also
    from the tile address, if one is given."""
    pictures = "img-src 'self' data: blob:" + ("" if tiles is None else f" {tile_origin(tiles)}")
    rest = "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return f"default-src 'none'; script-src 'self'; style-src 'self'; {pictures}; {rest}"


def tile_origin(tiles: str) -> str:
    """Scheme and host of a tile address; refuses one that is not a template."""
    parts = urlsplit(tiles)
    whole = (
        parts.scheme in ("http", "https")
        and parts.hostname
        and all(word in tiles for word in ("{z}", "{x}", "{y}"))
    )
    if not whole or any(sign in parts.netloc for sign in ";, {}'\"@"):
        raise ProblemError(
            f"'{tiles}' is not a tile address; expected one as"
            " https://tiles.example/{z}/{x}/{y}.png"
        )
    return f"{parts.scheme}://{parts.netloc}"


class Guard:
    """Refuses requests without the token, for another host, from another origin or too large; puts
    safe headers on every answer.

    The token is the first part of every path, so no cookie is needed and another page cannot ride
    on one.
    """

    def __init__(
        self, app: ASGIApp, *, token: str, hosts: Iterable[str], tiles: str | None = None
    ) -> None:
        self.app, self.token, self.hosts = app, token, frozenset(hosts)
        self.headers = {
            "content-security-policy": policy(tiles),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "geolocation=(), camera=(), microphone=()",
            "cache-control": "no-store",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in self.headers.items()),
                ]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await JSONResponse({"error": refusal}, status_code=403)(
                scope, receive, send_with_headers
            )
            return
        limit = LARGEST_FILE if scope["path"].endswith("/file") else LARGEST_WORDS
        declared = next(
            (value for name, value in scope["headers"] if name == b"content-length"), b"0"
        )
        if not (declared.isdigit() and int(declared) <= limit):
            await too_large(limit)(scope, receive, send_with_headers)
            return
        inner = {**scope, "path": scope["path"][len(self.token) + 1 :]}
        await self.app(inner, _limited(receive, limit), send_with_headers)

    def _refusal(self, scope: Scope) -> str | None:
        heads = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host = heads.get("host", "")
        if host not in self.hosts:
            return "this address is not the studio's; open the one that `sfumato studio` printed"
        first, _, rest = scope["path"][1:].partition("/")
        if (
            not hmac.compare_digest(first.encode(), self.token.encode())
            or len(scope["path"]) <= len(self.token) + 1
        ):
            return (
                "the token is missing or wrong; open the whole address that `sfumato studio`"
                " printed"
            )
        origin, unsafe = heads.get("origin"), scope["method"] not in ("GET", "HEAD")
        if (origin is not None or unsafe) and origin != f"http://{host}":
            return "this request comes from another page; the studio answers its own page only"
        # The file that opens the page counts as another site; it is given the page and no more.
        opens = heads.get("sec-fetch-mode") == "navigate" and rest == ""
        if heads.get("sec-fetch-site", "none") not in _FROM_HERE and not opens:
            return "this request comes from another site; the studio answers its own page only"
        return None


def too_large(limit: int) -> JSONResponse:
    """The answer to a body beyond its limit."""
    said = (
        f"this is larger than the {limit // 2**20} MB that the studio takes; select less, or use"
        " the command line"
    )
    return JSONResponse({"error": said}, status_code=413, headers={"connection": "close"})


def _limited(receive: Receive, limit: int) -> Receive:
    """Counts the body as it comes, whatever length was declared."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise TooLarge(limit)
        return message

    return counted
