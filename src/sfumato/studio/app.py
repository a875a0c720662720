"""What the page may ask for.  Every answer is JSON or bytes; every mistake is one sentence."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sfumato.errors import ProblemError, SfumatoError
from sfumato.studio import ask
from sfumato.studio.guard import TooLarge, too_large
from sfumato.studio.session import Run, Session, Sessions
from sfumato.studio.words import in_page
from sfumato.version import __version__

STATIC = Path(__file__).parent / "static"
_HEARTBEAT_S = 1.0
_DEFAULT_CELL_M = 25.0

Answer = Callable[[Session, dict[str, Any]], Awaitable[Any]]


class Studio:
    """The answers; `given` is the data named on the command line, `tiles` a tile address or None."""

    def __init__(self, *, given: str | None, tiles: str | None, stopping: Callable[[], bool]) -> None:
        self.given, self.tiles, self.stopping = given, tiles, stopping
        self.sessions = Sessions()

    def app(self) -> Starlette:
        """The application behind the guard."""
        asked: dict[str, Answer] = {
            "state": self.state,
            "data": self.choose_data,
            "prove": self.prove,
            "refine": self.refine,
            "solve": self.solve,
            "stop": self.stop,
            "resume": self.resume,
            "keep": self.keep,
            "compare": self.compare,
            "look": self.look,
            "attack": self.attack,
            "guess": self.guess,
            "take": self.take,
        }
        routes = [
            Route("/", lambda request: FileResponse(STATIC / "index.html")),
            Route("/api/session", self._plainly(self.enter), methods=["POST"]),
            Route("/api/{session}/events", self._plainly(self.events)),
            Route("/api/{session}/file", self._plainly(self.receive_file), methods=["POST"]),
            Route("/api/{session}/points", self._plainly(self.points)),
            Route("/api/{session}/files/{run}/{what}", self._plainly(self.files)),
            *[Route(f"/api/{{session}}/{name}", self._plainly(self._asked(answer)), methods=["POST"]) for name, answer in asked.items()],
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            threading.Thread(target=_import_the_rest, daemon=True).start()  # a daemon: the end does not wait for it
            yield
            await self.sessions.close()

        return Starlette(routes=routes, lifespan=lifespan)

    # How answers are given -------------------------------------------------------------------------

    def _plainly(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except SfumatoError as error:
                return JSONResponse({"error": in_page(str(error))}, status_code=400)
            except TooLarge as error:
                return too_large(error.args[0])
            except ClientDisconnect:
                return Response(status_code=400)
            except OSError as error:
                return JSONResponse({"error": f"a file cannot be used: {error.strerror or error}"}, status_code=400)
            except MemoryError:
                return JSONResponse({"error": "out of memory; use larger cells or less data"}, status_code=400)

        return answered

    def _asked(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            from sfumato.files import plain

            try:
                document = json.loads(await request.body() or b"{}")
            except ValueError:
                document = None
            if not isinstance(document, dict):
                raise ProblemError("this request is not a JSON object; load the page again")
            return JSONResponse(plain(await answer(self._session(request), document)))

        return answered

    def _session(self, request: Request) -> Session:
        return self.sessions.get(request.path_params["session"])

    # Pages and their events ------------------------------------------------------------------------

    async def enter(self, request: Request) -> Response:
        document = json.loads(await request.body() or b"{}")
        session = self.sessions.enter(document.get("previous") if isinstance(document, dict) else None)
        given = None if self.given is None else Path(self.given).name
        return JSONResponse({"session": session.id, "given": given, "tiles": self.tiles, "version": __version__})

    async def events(self, request: Request) -> Response:
        session = self._session(request)
        stream = self.sessions.attach(session)

        async def lines() -> AsyncIterator[str]:
            from sfumato.files import plain

            try:
                yield "retry: 1000\n\n"
                while not self.stopping():
                    try:
                        event = await asyncio.wait_for(stream.get(), _HEARTBEAT_S)
                    except TimeoutError:
                        yield ": still here\n\n"
                        continue
                    if event is None:
                        return
                    yield f"data: {json.dumps(plain(event), allow_nan=False)}\n\n"
            finally:
                self.sessions.detach(session, stream)

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def state(self, session: Session, asked: dict[str, Any]) -> Any:
        return {
            "data": None if session.loaded is None else session.loaded.description,
            "runs": [run.as_dict() for run in session.runs.values() if run.found is not None or run.state == "running"],
            "curves": session.curves,
            "comparison": session.comparison,
            "solvers": await run_in_threadpool(_solvers),
            "solving": session.solving,
            "processes": session.processes,
        }

    # Data ------------------------------------------------------------------------------------------

    async def receive_file(self, request: Request) -> Response:
        """Write the body to the session's folder; it is read when it is chosen."""
        session = self._session(request)
        name = Path(request.query_params.get("name", "").replace("\\", "/")).name
        if not name or name.startswith(".") or any(ord(sign) < 32 for sign in name) or len(name.encode()) > 200:
            raise ProblemError("the file has no usable name; expected one as checkins.csv")
        folder = session.folder / "data"
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.part").open("wb") as target:
            async for chunk in request.stream():
                target.write(chunk)
        session.uploaded = (folder / f"{name}.part").replace(folder / name)
        return JSONResponse({"name": name})

    async def choose_data(self, session: Session, asked: dict[str, Any]) -> Any:
        from sfumato.studio import desk

        which = asked.get("source")
        if which == "four-corners":
            source = name = "four-corners"
        elif which == "given" and self.given is not None:
            source = name = self.given
        elif which == "file" and session.uploaded is not None:
            source, name = str(session.uploaded), session.uploaded.name
        else:
            raise ProblemError("choose four-corners or a file first")
        loaded = await run_in_threadpool(desk.load, ask.recipe_of(asked, name), source)
        await session.use(loaded)
        return loaded.description

    async def points(self, request: Request) -> Response:
        return Response(self._session(request).data.points, media_type="application/octet-stream")

    # Solving ---------------------------------------------------------------------------------------

    async def prove(self, session: Session, asked: dict[str, Any]) -> Any:
        cell_m = ask.number(asked, "cell_m", what="the side of a cell, in metres,", above=0)
        if session.data.description["provable"]:
            await session.prove(cell_m)
        return {}

    async def refine(self, session: Session, asked: dict[str, Any]) -> Any:
        max_loss = ask.number(asked, "max_loss", what="the budget, in metres,", above=0)
        if max_loss is None:
            raise ProblemError("a budget in metres is missing")
        session.refine(max_loss, ask.number(asked, "cell_m", what="the side of a cell, in metres,", above=0))
        return {}

    async def solve(self, session: Session, asked: dict[str, Any]) -> Any:
        found = {solver["name"]: solver for solver in await run_in_threadpool(_solvers)}
        solver = ask.words(asked, "solver") or ""
        if solver not in found:
            raise ProblemError(f"there is no solver '{solver[:40]}'; expected one of {', '.join(found)}")
        max_loss = ask.number(asked, "max_loss", what="the budget, in metres,", above=0)
        if max_loss is None:
            raise ProblemError("a budget in metres is missing; set the slider or fill in the number")
        data = session.data
        objective = ask.words(asked, "objective") or "bayes"
        await run_in_threadpool(_check_objective, objective, data.split.train.secrets)
        cell_m = ask.number(asked, "cell_m", what="the side of a cell, in metres,", above=0)
        task = {
            "solver": solver,
            "max_loss": max_loss,
            "objective": objective,
            "cell_m": None if cell_m == _DEFAULT_CELL_M else cell_m,
            "seed": ask.whole(asked, "seed", what="the seed", default=0),
            "time_limit": ask.number(asked, "time_limit", what="the time limit, in seconds,", above=0),
            "resumable": found[solver]["resumable"],
        }
        return (await session.solve(task)).as_dict()

    async def stop(self, session: Session, asked: dict[str, Any]) -> Any:
        session.stop()
        return {}

    async def resume(self, session: Session, asked: dict[str, Any]) -> Any:
        run = session.run(asked.get("run"))
        run.task["time_limit"] = ask.number(asked, "time_limit", what="the time limit, in seconds,", above=0)
        await session.resume(run)
        return run.as_dict()

    async def keep(self, session: Session, asked: dict[str, Any]) -> Any:
        session.run(asked.get("run")).kept = asked.get("kept") is not False
        return {}

    # Looking ---------------------------------------------------------------------------------------

    async def compare(self, session: Session, asked: dict[str, Any]) -> Any:
        if not session.kept:
            raise ProblemError("nothing is kept yet; solve and keep a run first")
        await session.compare(session.kept)
        return {}

    async def look(self, session: Session, asked: dict[str, Any]) -> Any:
        import numpy as np

        from sfumato.studio import look

        train = session.data.split.train
        at = [ask.number(asked, axis, what=f"the place's {axis}, in metres,") for axis in ("x", "y")]
        if None in at:
            raise ProblemError("a place is two numbers of metres")
        row = int(np.argmin(((train.truth - np.array(at, dtype=float)) ** 2).sum(axis=1)))
        runs = [session.run(name) for name in asked.get("runs", [])][:8]
        answers = [await run_in_threadpool(look.look, run.folder, train.truth[row]) for run in runs]
        found = {run.id: answer | {"cell_m": run.cell_m} for run, answer in zip(runs, answers, strict=True)}
        return {"truth": train.truth[row], "user": train.secrets[train.secret[row]], "runs": found}

    async def attack(self, session: Session, asked: dict[str, Any]) -> Any:
        from sfumato.studio.guess import Game
        from sfumato.studio.look import seen_of

        run = session.run(asked.get("run"))
        found = await run_in_threadpool(seen_of, run.folder)
        session.game = await run_in_threadpool(Game.deal, run.id, found, session.data.split.train)
        return session.game.state()

    async def guess(self, session: Session, asked: dict[str, Any]) -> Any:
        if session.game is None:
            raise ProblemError("no game has begun; choose a run and begin")
        return session.game.guess(asked.get("user"))

    # Taking away -----------------------------------------------------------------------------------

    async def take(self, session: Session, asked: dict[str, Any]) -> Any:
        from sfumato.studio.take import bundle_of, command_line

        run = session.run(asked.get("run"))
        command = command_line(run.task, session.data.recipe, out=f"runs/{run.id}")
        refused = await run_in_threadpool(bundle_of, run.folder, _bundle(session, run))
        return {"command": command, "report": self._report_is_of(session, run), "bundle": refused is None, "bundle_refused": refused}

    def _report_is_of(self, session: Session, run: Run) -> bool:
        return session.comparison is not None and run.id in session.comparison["runs"]

    async def files(self, request: Request) -> Response:
        from sfumato.studio.take import zipped

        session, what = self._session(request), request.path_params["what"]
        run = session.run(request.path_params["run"])
        if what == "run.zip":
            content, name = await run_in_threadpool(zipped, run.folder), f"{run.id}.zip"
        elif what == "bundle.zip" and _bundle(session, run).is_dir():
            content, name = await run_in_threadpool(zipped, _bundle(session, run)), f"{run.id}-device.zip"
        elif what == "report.html" and self._report_is_of(session, run):
            content, name = (session.folder / "report.html").read_bytes(), "report.html"
        else:
            raise ProblemError("there is no such file; compare first to make the report")
        return Response(content, media_type="application/octet-stream", headers={"content-disposition": f'attachment; filename="{name}"'})


def _bundle(session: Session, run: Run) -> Path:
    return session.folder / "bundles" / f"{run.id}-device"


def _solvers() -> list[dict[str, Any]]:
    """Every solver that the library has, with the first line of what it says of itself."""
    import inspect

    from sfumato.solver import DEFAULT, RESUMABLE, SOLVERS

    return [
        {
            "name": name,
            "words": (inspect.getdoc(solver) or "").splitlines()[0].replace("`", ""),
            "resumable": issubclass(solver, RESUMABLE),
            "default": name == DEFAULT,
        }
        for name, solver in SOLVERS.items()
    ]


def _check_objective(name: str, secrets: tuple[str, ...]) -> None:
    from sfumato.measure.objective import objective_named

    objective_named(name, secrets)


def _import_the_rest() -> None:
    """What the first requests need, read while the page is drawn."""
    import sfumato.solver
    import sfumato.studio.desk
    import sfumato.studio.look  # noqa: F401
