"""The studio's server: loopback only, a free port, a random token in the address.

The token never stands in a command line, which every user of the machine can read: a browser is
given a file that only this user can read and that leads to the address.
"""

import asyncio
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from jinja2 import Template

from sfumato.deploy.server import Announced
from sfumato.errors import DataError, ProblemError
from sfumato.files import flock
from sfumato.studio.app import Studio
from sfumato.studio.guard import Guard, policy
from sfumato.studio.streets import read_streets

LOOPBACK = "127.0.0.1"
_DOOR = Path(__file__).with_name("open.html.j2")


@dataclass(frozen=True)
class Opening:
    """How to reach the page: its address, which holds the token; a file that leads there and may
    be named in a command line; and the folder of all that pages keep."""

    address: str
    door: Path
    folder: Path


def serve(
    given: str | None,
    *,
    port: int = 0,
    tiles: str | None = None,
    streets: Path | None = None,
    ready: Callable[[Opening], None],
) -> None:
    """Serve until interrupted; `ready` is told how to reach the page once the server answers."""
    policy(tiles)  # refuses an address that is not one before anything starts
    is_run = given is not None and (Path(given) / "run.json").is_file()
    if given not in (None, "four-corners") and not is_run and not Path(given or "").is_file():
        raise DataError(
            f"there is no file {given}; expected 'four-corners', a SNAP, CSV or Parquet file, or a"
            " run folder"
        )
    lines = [] if streets is None else read_streets(streets)
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with place, work_folder() as folder:
        try:
            place.bind((LOOPBACK, port))
        except OSError as error:
            raise ProblemError(
                f"port {port} cannot be used: {error.strerror}; name another, or none for a free"
                " one"
            ) from None
        port, token = place.getsockname()[1], secrets.token_urlsafe(24)
        opening = _opening(f"http://{LOOPBACK}:{port}/{token}/", folder)
        studio = Studio(
            given=given,
            tiles=tiles,
            streets=lines,
            folder=folder,
            stopping=lambda: server.should_exit,
        )
        hosts = (f"{LOOPBACK}:{port}", f"localhost:{port}")
        config = uvicorn.Config(
            Guard(studio.app(), token=token, hosts=hosts, tiles=tiles),
            log_level="critical",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=3,
        )
        server = _Server(config, lambda: ready(opening))
        # The server hands the signal on when it has ended; the folder goes first.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            asyncio.run(server.serve(sockets=[place]))
        finally:
            signal.signal(signal.SIGTERM, before)


def _opening(address: str, folder: Path) -> Opening:
    """Write the file that leads to the address, readable by its owner alone."""
    door = folder / "open.html"
    handle = os.open(door, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as target:
        target.write(Template(_DOOR.read_text("utf-8"), autoescape=True).render(address=address))
    return Opening(address, door, folder)


class _Server(Announced):
    """Ends in order when its terminal is closed, too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # before the server says that it has started: a signal that comes at once is not lost
        hangup = getattr(signal, "SIGHUP", None)
        if hangup is None or threading.current_thread() is not threading.main_thread():
            with super().capture_signals():
                yield
            return
        before = signal.signal(hangup, lambda *_: setattr(self, "should_exit", True))
        try:
            with super().capture_signals():
                yield
        finally:
            signal.signal(hangup, before)


_PREFIX = "sfumato-studio-"
_LOCK = "lock"


@contextmanager
def work_folder() -> Iterator[Path]:
    """A new folder that its owner alone can read; removed in the end, as are those left over."""
    remove_leftovers()
    draft = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
    handle = os.open(draft / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        flock(handle)
        folder = draft.rename(draft.with_name(draft.name[1:]))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(handle)


def remove_leftovers() -> None:
    """Remove the folders of this user's servers that are no more."""
    if sys.platform == "win32":  # without such locks nothing tells the living from the dead
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if flock(handle, without=False):
                    shutil.rmtree(folder)
            finally:
                os.close(handle)
