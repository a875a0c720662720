"""A job in a process of its own: a task goes in as one JSON line, what it has to say comes out as
JSON lines."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from sfumato.studio.work import LAST_WORDS, stopped

_LONGEST_LINE = 64 * 2**20
_PATIENCE_S = 3.0  # between asking a process to end and ending it

Tell = Callable[[dict[str, Any]], None]


class Job:
    """A running process.  `tell` gets every line it says; the last one is of kind "done", "stopped"
    or "failed"."""

    def __init__(
        self, process: asyncio.subprocess.Process, task: dict[str, Any], tell: Tell
    ) -> None:
        self._process, self._task, self._tell = process, task, tell
        self._said_last = self._stopping = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, task: dict[str, Any], tell: Tell) -> "Job":
        """Start a process on a task."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # modules of the folder that the studio was started in are not ours
            "-m",
            "sfumato.studio.work",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            # Ctrl-C in the terminal is for the server, which then ends its jobs
            start_new_session=True,
        )
        job = cls(process, task, tell)
        job.say(task)
        return job

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not said its last word yet."""
        return not self._said_last and self._process.returncode is None

    def say(self, message: dict[str, Any]) -> None:
        """Send one line to the process."""
        self._stopping |= message["kind"] == "stop"
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def end(self) -> None:
        """End the process, whatever it is doing."""
        self._tell = lambda message: None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _PATIENCE_S)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
        await asyncio.gather(self._reader, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # a line cut short, or too long
            while line := await self._process.stdout.readline():
                message = json.loads(line)
                self._said_last = message["kind"] in LAST_WORDS
                self._tell(message)
        code = await self._process.wait()
        if not self._said_last:
            self._said_last = True
            if self._stopping:  # a stop can crash compiled code: what was asked for has come
                self._tell(stopped(self._task))
                return
            why = f"the computation ended without an answer (exit code {code}); perhaps"
            self._tell({"kind": "failed", "error": f"{why} memory ran out"})
