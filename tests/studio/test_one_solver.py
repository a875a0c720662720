"""Requests that come at once: one solver starts, and no job is lost sight of."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.data.recipe import Recipe
from sfumato.errors import ProblemError
from sfumato.studio import session as sessions
from sfumato.studio.session import PageRun, Session
from tests import coroutines

TASK = {
    "solver": "coin",
    "max_loss": 173.0,
    "objective": "bayes",
    "reports": 1,
    "cell_m": None,
    "seed": 0,
    "time_limit": None,
    "resumable": True,
}


class _Slow:
    """A job that takes a moment to start; knows all that were started."""

    started: list["_Slow"]
    running, pid = True, 0

    @classmethod
    async def start(cls, task: dict[str, Any], tell: Any) -> "_Slow":
        await asyncio.sleep(0.01)
        cls.started.append(cls())
        return cls.started[-1]

    async def end(self) -> None:
        await asyncio.sleep(0.01)
        self.running = False


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(sessions, "Job", _Slow)
    monkeypatch.setattr(_Slow, "started", [], raising=False)
    loaded: Any = SimpleNamespace(
        recipe=Recipe("four-corners"), source="four-corners", description={"provable": False}
    )
    return Session("page", tmp_path / "page", loaded=loaded)


def _at_work() -> int:
    return sum(job.running for job in _Slow.started)


def test_of_two_solvers_asked_for_at_once_one_starts(page: Session) -> None:
    async def both() -> None:
        page.folder.mkdir()
        folder = page.folder / "runs" / "old"
        page.runs["old"] = PageRun("old", folder, dict(TASK), kept=True, state="interrupted")
        answers = await asyncio.gather(
            page.solve(dict(TASK)),
            page.solve(dict(TASK)),
            page.resume("old", None),
            return_exceptions=True,
        )
        assert isinstance(answers[0], PageRun) and list(page.runs) == ["old", answers[0].id]
        assert all(
            isinstance(one, ProblemError) and "a solver is at work" in str(one)
            for one in answers[1:]
        )
        assert len(_Slow.started) == 1 and page.solving
        await page.close()
        assert _at_work() == 0

    coroutines.run(both())


def test_a_page_that_is_closed_or_gets_other_data_ends_the_job_that_is_starting(
    page: Session,
) -> None:
    async def one_after_the_other() -> None:
        page.folder.mkdir()
        await asyncio.gather(page.compare([]), page.compare([]))
        assert len(_Slow.started) == 2 and _at_work() == 1
        await asyncio.gather(page.solve(dict(TASK)), page.use(page.data))
        assert _at_work() == 0
        await asyncio.gather(page.solve(dict(TASK)), page.close())
        assert _at_work() == 0
        with pytest.raises(ProblemError, match="closed"):
            await page.compare([])

    coroutines.run(one_after_the_other())
