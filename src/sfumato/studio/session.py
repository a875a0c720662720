"""One piece of work: its folder, its data, its runs and its jobs, and the pages that show it."""

import asyncio
import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import DataError, ProblemError
from sfumato.studio.jobs import Job

if TYPE_CHECKING:
    from sfumato.studio.attack_game import AttackGame
    from sfumato.studio.dataset import Loaded

GRACE_S = 5.0  # how long a page that is loaded again has to come back to its work
_UNSEEN_S = 30.0
_PROOF_S = 90.0
_REFINING_S = 25.0
_LINKING_S = 120.0
_JOBS = ("prove", "solve", "compare")
_ASKED = ("solver", "max_loss", "objective", "reports", "seed", "time_limit", "resumable")


@dataclass
class PageRun:
    """A run of this page: what was asked, what came out, where it lies."""

    id: str
    folder: Path
    task: dict[str, Any]
    kept: bool = False
    state: str = "running"
    found: dict[str, Any] | None = None
    said: str = ""
    cell_m: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For the page."""
        return {
            "id": self.id,
            "state": self.state,
            "kept": self.kept,
            "said": self.said,
            "solution": self.found,
            **{name: self.task[name] for name in _ASKED},
            "cell_m": self.cell_m or self.task["cell_m"],
        }


@dataclass
class Session:
    """Everything of one page, and of others that show the same."""

    id: str
    folder: Path
    loaded: "Loaded | None" = None
    uploaded: Path | None = None
    runs: dict[str, PageRun] = field(default_factory=dict)
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)
    proved: float | None = None  # the cells of the frontier, once it is done
    comparison: dict[str, Any] | None = None
    game: "AttackGame | None" = None
    streams: "set[asyncio.Queue[dict[str, Any] | None]]" = field(default_factory=set)
    closed: bool = False
    resting: bool = False
    _jobs: dict[str, Job] = field(default_factory=dict)
    _count: int = 0
    _choices: int = 0
    _beginning: bool = False
    # one job is started or ended at a time: none is lost sight of
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event to every page that shows this."""
        for stream in self.streams:
            stream.put_nowait(event)

    def tell_others(self) -> None:
        """One page has changed something: where there are others, they ask for all of it."""
        if len(self.streams) > 1:
            self.tell({"kind": "changed"})

    @property
    def data(self) -> "Loaded":
        """The data chosen."""
        if self.loaded is None:
            raise DataError("no data is chosen yet; choose some under Data")
        return self.loaded

    def run(self, name: Any) -> PageRun:
        """A run of this page that has ended well."""
        run = self.runs.get(name) if isinstance(name, str) else None
        if run is None or run.found is None:
            raise ProblemError("there is no such run on this page; solve first")
        return run

    @property
    def worth_keeping(self) -> bool:
        """Whether there is work that only the person may drop: kept runs, and stopped ones that can
        be resumed."""
        return bool(self.kept) or any(run.state == "interrupted" for run in self.runs.values())

    @property
    def kept(self) -> list[PageRun]:
        """The runs that were kept, in order."""
        return [run for run in self.runs.values() if run.kept and run.found is not None]

    # Data -----------------------------------------------------------------------------------------

    async def use(self, loaded: "Loaded") -> None:
        """Use other data: what was found for the old is forgotten, and proving begins
        anew."""
        for name in _JOBS:
            await self._end(name)
        self._choices += 1
        loaded.description["choice"] = self._choices  # by which a page sees that it has others
        self.loaded, self.game, self.comparison = loaded, None, None
        self.runs.clear()
        self._forget_proof()
        if loaded.description["provable"]:
            await self.prove(None)

    async def prove(self, cell_m: float | None) -> None:
        """Prove the frontier again, on cells derived from `cell_m`."""
        await self._end("prove")
        self._forget_proof()
        await self._start(
            "prove", {"kind": "prove", "cell_m": cell_m, "time_limit": _PROOF_S}, self._on_proof
        )

    def _forget_proof(self) -> None:
        self.curves.clear()
        self.proved = None

    def refine(self, max_loss: float, cell_m: float | None) -> None:
        """Ask the prover for one budget on the cells that will be released."""
        asked = {"max_loss": max_loss, "cell_m": cell_m, "time_limit": _REFINING_S}
        self._ask_prover({"kind": "refine", **asked})

    def link(self) -> None:
        """Ask the prover for the trade-off of linked reports, once per frontier."""
        self._ask_prover({"kind": "link", "time_limit": _LINKING_S})

    def _ask_prover(self, question: dict[str, Any]) -> None:
        if "prove" in self._jobs and self._jobs["prove"].running:
            self._jobs["prove"].say(question)

    def _on_proof(self, message: dict[str, Any]) -> None:
        if message["kind"] == "curve":
            self.curves[message["objective"]] = message
        elif message["kind"] == "linked":
            self.curves["linked"] = message
        elif message["kind"] == "proved":
            self.proved = message["cell_m"]
        self.tell({**message, "kind": f"prove-{message['kind']}"})

    # Solving --------------------------------------------------------------------------------------

    async def solve(self, task: dict[str, Any]) -> PageRun:
        """Begin a run; one at a time."""
        if self.solving:
            raise ProblemError("a solver is at work on this page; stop it first")
        self.runs = {
            name: run
            for name, run in self.runs.items()
            if run.kept or (run.state == "interrupted" and run.found is not None)
        }
        self._count += 1
        several = "" if task["reports"] == 1 else f"-{task['reports']}-reports"
        name = f"{task['solver']}-{task['max_loss']:g}m{several}-{self._count}"
        run = PageRun(name, self.folder / "runs" / name, {**task, "kind": "solve", "resume": False})
        self.runs[name] = run
        await self._begin(run)
        return run

    async def resume(self, name: Any, time_limit: float | None) -> PageRun:
        """Go on with a run that was stopped."""
        run = self.runs.get(name) if isinstance(name, str) else None
        if run is None or (run.found is None and run.state != "interrupted"):
            raise ProblemError("there is no such run on this page; solve first")
        if self.solving:
            raise ProblemError("a solver is at work on this page; stop it first")
        if not run.task["resumable"]:
            raise ProblemError(
                f"the solver '{run.task['solver']}' has no rounds to resume; start it again"
            )
        run.task = {**run.task, "resume": True, "time_limit": time_limit}
        await self._begin(run)
        return run

    async def _begin(self, run: PageRun) -> None:
        from sfumato.study.folder import CHECKPOINT

        run.state = "running"
        run.folder.parent.mkdir(exist_ok=True)
        checkpoint = str(run.folder / CHECKPOINT) if run.task["resumable"] else None

        def on_message(message: dict[str, Any]) -> None:
            kind = message["kind"]
            if kind == "done":
                run.found, run.cell_m = message["solution"], message["cell_m"]
                run.said = run.found["status"]
                run.state = "interrupted" if message["resumable"] else "done"
            elif kind in ("failed", "stopped"):
                run.said = message["error"]
                run.state = "interrupted" if message.get("resumable") else kind
            self.tell({**message, "kind": f"solve-{kind}", "run": run.as_dict()})

        self._beginning = True  # before the first wait: a second request finds a solver at work
        try:
            made = {"out": str(run.folder), "made": run.found is not None}
            await self._start("solve", {**run.task, **made, "checkpoint": checkpoint}, on_message)
        finally:
            self._beginning = False

    @property
    def solving(self) -> bool:
        """Whether a solver is at work, or about to be."""
        return self._beginning or ("solve" in self._jobs and self._jobs["solve"].running)

    def stop(self) -> None:
        """Ask the solver to stop as Ctrl-C does: a learner then keeps its best round."""
        if "solve" in self._jobs and self._jobs["solve"].running:
            self._jobs["solve"].say({"kind": "stop"})
            self.tell({"kind": "solve-stopping"})

    # Comparing ------------------------------------------------------------------------------------

    async def compare(self, runs: list[PageRun]) -> None:
        """Judge runs side by side; the answer comes as an event."""
        await self._end("compare")
        report = self.folder / "report.html"

        def on_message(message: dict[str, Any]) -> None:
            if message["kind"] == "done":
                message["runs"] = [run.id for run in runs]
                self.comparison = message
            self.tell({**message, "kind": f"compare-{message['kind']}"})

        await self._start(
            "compare",
            {"kind": "compare", "runs": [str(run.folder) for run in runs], "report": str(report)},
            on_message,
        )

    # Jobs -----------------------------------------------------------------------------------------

    async def _start(self, name: str, task: dict[str, Any], tell: Any) -> None:
        async with self._turn:
            if self.closed:
                raise ProblemError("this page was closed; load it again")
            await self._end_held(name)
            data = self.data
            whole = {**task, "recipe": data.recipe.as_dict(), "source": data.source}
            self._jobs[name] = await Job.start(whole, tell)

    async def _end(self, name: str) -> None:
        async with self._turn:
            await self._end_held(name)

    async def _end_held(self, name: str) -> None:
        job = self._jobs.pop(name, None)
        if job is not None:
            await job.end()

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes at work for this page."""
        return [job.pid for job in self._jobs.values() if job.running]

    async def rest(self) -> None:
        """End all jobs; runs and data stay."""
        from sfumato.study.folder import CHECKPOINT

        for name in _JOBS:
            await self._end(name)
        self.resting = True
        for run in self.runs.values():
            run.state = "interrupted" if run.state == "running" else run.state
        self.runs = {
            name: run
            for name, run in self.runs.items()
            if run.found is not None or (run.folder / CHECKPOINT).exists()
        }

    async def wake(self) -> None:
        """Prove again, if the page was at rest."""
        if self.resting and self.loaded is not None and self.loaded.description["provable"]:
            self.resting = False
            await self.prove(None)

    async def close(self) -> None:
        """End all jobs and remove the folder."""
        self.closed = True
        await self.rest()
        shutil.rmtree(self.folder, ignore_errors=True)


class Sessions:
    """All pages of one server, each with a folder in `folder`.

    A page that went away is closed after a moment of grace; if it holds runs worth keeping, its
    jobs end and the rest stays until a page takes it up again or the person discards it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Session] = {}
        self._waiting: set[asyncio.Task[None]] = set()

    def get(self, name: str) -> Session:
        """An open session."""
        session = self._open.get(name)
        if session is None:
            raise ProblemError("this page was closed or has slept too long; load it again")
        return session

    async def enter(self, previous: Any) -> Session:
        """The session of a page: its previous one if the page was loaded again, was copied, or
        takes up the work of another one, else a new one."""
        old = self._open.get(previous) if isinstance(previous, str) else None
        if old is not None and not old.closed:
            self._close_later(old.id, _UNSEEN_S)
            await old.wake()
            return old
        name = secrets.token_urlsafe(16)
        self._open[name] = Session(name, Path(tempfile.mkdtemp(prefix="page-", dir=self._folder)))
        self._close_later(name, _UNSEEN_S)
        return self._open[name]

    def left(self) -> list[dict[str, Any]]:
        """For the page that comes next: pages that went away and hold runs worth keeping, and those
        that are open."""
        return [
            {
                "session": session.id,
                "data": "" if session.loaded is None else session.loaded.description["name"],
                "runs": len(session.runs),
                "folder": str(session.folder),
                "open": bool(session.streams),
            }
            for session in self._open.values()
            if not session.closed
            and (session.loaded is not None if session.streams else session.worth_keeping)
        ]

    async def discard(self, name: Any) -> None:
        """Drop what a page that went away has left."""
        session = self._open.get(name) if isinstance(name, str) else None
        if session is None or session.streams:
            raise ProblemError("there is no page of this name that was closed")
        del self._open[session.id]
        await session.close()

    def attach(self, session: Session) -> "asyncio.Queue[dict[str, Any] | None]":
        """Begin a stream of events."""
        stream: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        session.streams.add(stream)
        return stream

    def detach(self, session: Session, stream: "asyncio.Queue[dict[str, Any] | None]") -> None:
        """A page is gone, perhaps only for a moment."""
        session.streams.discard(stream)
        if not session.streams:
            self._close_later(session.id, GRACE_S)

    def _close_later(self, name: str, after_s: float) -> None:
        async def close() -> None:
            await asyncio.sleep(after_s)
            session = self._open.get(name)
            if session is None or session.streams:
                return
            if session.worth_keeping:
                await session.rest()
            else:
                del self._open[name]
                await session.close()

        task = asyncio.create_task(close())
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def close(self) -> None:
        """Close every page: the server ends."""
        for task in self._waiting:
            task.cancel()
        for session in self._open.values():
            for stream in session.streams:
                stream.put_nowait(None)
            await session.close()
        self._open.clear()
