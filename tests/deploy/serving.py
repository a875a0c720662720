"""`sfumato serve` in a process of its own, and plain requests to it."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

    def ask(self, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """A POST of JSON."""
        status, answer = self.raw(
            "POST", path, json.dumps(body).encode(), {**JSON, **(headers or {})}
        )
        return status, json.loads(answer)

    def get(self, path: str) -> tuple[int, Any]:
        """A GET of JSON."""
        status, answer = self.raw("GET", path, None, {})
        return status, json.loads(answer)


@contextmanager
def serving(run: Path, log: Path, *options: str) -> Iterator[Served]:
    """Start it on a free port, and end it with Ctrl-C."""
    command = [sys.executable, "-m", "sfumato", "serve", str(run), "--port", "0", *options]
    with log.open("wb") as target:
        process = subprocess.Popen(command, stdout=target, stderr=subprocess.PIPE)
        assert process.stderr is not None
        try:
            line = process.stderr.readline().decode()
            assert line.startswith(
                ("listening on http://127.0.0.1:", "listening on http://0.0.0.0:")
            ), line
            yield Served(int(line.split(":")[2].split(";")[0]), log, process)
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            process.wait(timeout=20)
            process.stderr.close()
            target.write(line.encode() + rest)
