"""Bundles in Node and in Chromium: real ones, driven from Python."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.requirements import wanting

WEB = Path(__file__).resolve().parents[2] / "web"


def node() -> str:
    """Where Node is; without it a test is skipped aloud, or fails where CI is set."""
    found = shutil.which("node")
    if found:
        return found
    reason = "no Node: it is not installed, so the module was NOT tested; install nodejs"
    wanting(reason)


def in_node(script: str, given: Any = None, *, timeout: float = 240) -> Any:
    """Run a module's text in Node with `given` as JSON on stdin; it must print one JSON
    document."""
    head = (
        f'import {{ load }} from "{WEB.as_uri()}/sfumato.js";\nimport {{ readFileSync }} from'
        ' "node:fs";\n'
    )
    head += 'const given = JSON.parse(readFileSync(0, "utf-8"));\n'
    command = [node(), "--input-type=module", "-e", head + script]
    done = subprocess.run(
        command,
        check=False,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder on a port of this machine."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
