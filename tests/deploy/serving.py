"""`sfumato serve` in a process of its own, and plain requests to it."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JSON = {"Content-Type": "application/json"}


@dataclass
class Served:
    """A running service."""

    port: int
    log: Path
    process: subprocess.Popen[bytes]
    address: str = "127.0.0.1"
    tokens: dict[str, str] = field(default_factory=dict)

    def raw(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """One request as it is."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=20)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask(
        self, path: str, body: Any, headers: dict[str, str] | None = None, *, client: str = "phone"
    ) -> tuple[int, Any]:
        """A POST of JSON by a client."""
        status, answer = self.raw(
            "POST", path, json.dumps(body).encode(), {**self.headers(client), **(headers or {})}
        )
        return status, json.loads(answer)

    def headers(self, client: str = "phone") -> dict[str, str]:
        """What a client sends."""
        token = self.tokens.get(client)
        return JSON if token is None else {**JSON, "Authorization": f"Bearer {token}"}

    def get(self, path: str) -> tuple[int, Any]:
        """A GET of JSON."""
        status, answer = self.raw("GET", path, None, {})
        return status, json.loads(answer)


@contextmanager
def serving(
    run: Path, log: Path, *options: str, clients: tuple[str, ...] = ("phone",)
) -> Iterator[Served]:
    """Start it on a free port with tokens for some clients, and end it with Ctrl-C."""
    tokens = log.with_name(f"{log.name}.clients.json")
    if clients:
        options = (*options, "--token-file", str(tokens))
    for name in clients:
        options = (*options, "--client", name)
    command = [sys.executable, "-m", "sfumato", "serve", str(run), "--port", "0", *options]
    with log.open("wb") as target:
        process = subprocess.Popen(command, stdout=target, stderr=subprocess.PIPE)
        assert process.stderr is not None
        try:
            line = process.stderr.readline().decode()
            assert line.startswith(
                ("listening on http://127.0.0.1:", "listening on http://0.0.0.0:")
            ), line
            held = json.loads(tokens.read_text())["clients"] if clients else {}
            port = int(line.split(":")[2].split(";")[0])
            yield Served(port, log, process, tokens=held)
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            process.wait(timeout=20)
            process.stderr.close()
            target.write(line.encode() + rest)
