"""A job runs our modules, whatever lies in the folder that the studio was started in, and says how it
ended also where its process crashes."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.studio.jobs import Job
from tests import coroutines


def test_modules_of_the_folder_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the folder on its path the job imports this file in place of the standard library's."""
    (tmp_path / "json.py").write_text("open('was run', 'w').close()\nraise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    said: list[dict[str, Any]] = []

    async def run() -> None:
        job = await Job.start({"kind": "nothing of this name"}, said.append)
        while job.running:
            await asyncio.sleep(0.05)
        await job.end()

    coroutines.run(asyncio.wait_for(run(), 60))
    assert not (tmp_path / "was run").exists()
    assert said[-1]["kind"] == "failed" and "exit code" not in said[-1]["error"]


@pytest.mark.parametrize(("lines", "ends"), [(1, "failed"), (2, "stopped")])
def test_a_crash_is_a_failure_and_after_a_stop_it_is_the_stop(lines: int, ends: str) -> None:
    said: list[dict[str, Any]] = []
    code = f"import os, sys; [sys.stdin.readline() for _ in range({lines})]; os.abort()"

    async def run() -> None:
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, **pipes)
        task = {"kind": "solve", "checkpoint": None}
        job = Job(process, task, said.append)
        for message in (task, {"kind": "stop"})[:lines]:
            job.say(message)
        while job.running:
            await asyncio.sleep(0.02)
        await job.end()

    coroutines.run(asyncio.wait_for(run(), 60))
    assert [message["kind"] for message in said] == [ends]
