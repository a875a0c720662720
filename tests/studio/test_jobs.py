"""A job runs our modules, whatever lies in the folder that the studio was started in."""

import asyncio
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
