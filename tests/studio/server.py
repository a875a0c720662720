"""A studio in a process of its own, as a user starts it, and plain requests to it."""

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Served:
    """A running studio."""

    address: str
    process: subprocess.Popen[str]
    seconds: float

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def token(self) -> str:
        return urlsplit(self.address).path.strip("/")

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request with exactly these headers (and the Host of the address, unless one is
        given)."""
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return (
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        finally:
            connection.close()

    def ask(self, path: str, question: Any = None, *, body: bytes | None = None) -> Any:
        """A question as the page asks it; fails on any answer but 200."""
        status, answer = self.try_to_ask(path, question, body=body)
        assert status == 200, answer
        return answer

    def try_to_ask(
        self, path: str, question: Any = None, *, body: bytes | None = None
    ) -> tuple[int, Any]:
        """A question as the page asks it; the status and the answer."""
        sent = json.dumps(question or {}).encode() if body is None else body
        status, _, answer = self.request(
            "POST", f"/{self.token}/{path}", body=sent, headers={"Origin": f"http://{self.host}"}
        )
        return status, json.loads(answer)


@contextmanager
def served(*options: str) -> Iterator[Served]:
    """`sfumato studio --no-open` and what it was given."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "sfumato", "studio", "--no-open", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        yield Served(address, process, time.perf_counter() - begin)
    finally:
        process.terminate()
        process.wait(15)
        process.stdout.close()


class Page:
    """A page without a browser: a session with its stream of events."""

    def __init__(self, studio: Served, previous: str | None = None) -> None:
        self.studio = studio
        self.id = studio.ask("api/session", {"previous": previous})["session"]
        self.events: list[dict[str, Any]] = []
        self._connection = http.client.HTTPConnection(studio.host, timeout=60)
        self._connection.request("GET", f"/{studio.token}/api/{self.id}/events")
        self._socket: socket.socket | None = self._connection.sock
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _read(self) -> None:
        try:
            while line := self._answer.readline():
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line[6:]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return

    def ask(self, what: str, question: Any = None, *, body: bytes | None = None) -> Any:
        return self.studio.ask(f"api/{self.id}/{what}", question, body=body)

    def refused(self, what: str, question: Any = None, *, body: bytes | None = None) -> str:
        status, answer = self.studio.try_to_ask(f"api/{self.id}/{what}", question, body=body)
        assert status == 400, answer
        return answer["error"]

    def wait_for(self, kind: str, *, seconds: float = 60) -> dict[str, Any]:
        """The first event of a kind that has not been waited for yet."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for event in self.events:
                if event["kind"] == kind:
                    self.events.remove(event)
                    return event
                assert not event["kind"].endswith("failed"), event
            time.sleep(0.05)
        raise AssertionError(f"no event '{kind}' in {seconds} s")

    def close(self) -> None:
        """As a browser does when the page is closed: the connection goes."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._reader.join(5)
            self._answer.close()
            self._connection.close()
            self._socket = None
