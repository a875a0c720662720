"""The addresses that the page may ask: files in and out, events, and what a session answers.  Every
mistake is one sentence."""

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

from sfumato.deploy.web_files import web_folder
from sfumato.errors import ProblemError, SfumatoError
from sfumato.files import plain
from sfumato.render.glossary import STUDIO_TERMS
from sfumato.studio import parse
from sfumato.studio.guard import TooLarge, too_large
from sfumato.studio.handlers import HANDLERS, Handler, bundle_folder, report_is_of
from sfumato.studio.session import Session, Sessions
from sfumato.version import __version__

STATIC = Path(__file__).parent / "static"
_HEARTBEAT_S = 1.0
_CHANGING = ("choose_data", "solve", "resume", "keep", "prove")  # what other pages must see


class Studio:
    """The server's side of the page; `given` is the data named on the command line, `tiles` a tile
    address or None, `streets` lines to draw below the map, `folder` where pages keep their work."""

    def __init__(
        self,
        *,
        given: str | None,
        tiles: str | None,
        streets: list[list[list[float]]],
        folder: Path,
        stopping: Callable[[], bool],
    ) -> None:
        self.given, self.tiles, self.streets, self.stopping = given, tiles, streets, stopping
        self.sessions = Sessions(folder)

    def app(self) -> Starlette:
        """The application behind the guard."""
        asked = {**HANDLERS, "data": self.choose_data}
        routes = [
            Route("/", lambda request: FileResponse(STATIC / "index.html")),
            Route("/api/session", self._plainly(self.enter), methods=["POST"]),
            Route("/api/discard", self._plainly(self.discard), methods=["POST"]),
            Route("/api/streets", lambda request: JSONResponse(self.streets)),
            Route("/api/{session}/events", self._plainly(self.events)),
            Route("/api/{session}/file", self._plainly(self.receive_file), methods=["POST"]),
            Route("/api/{session}/points", self._plainly(self.points)),
            Route("/api/{session}/files/{run}/{what}", self._plainly(self.files)),
            *[
                Route(
                    f"/api/{{session}}/{name}", self._plainly(self._asked(answer)), methods=["POST"]
                )
                for name, answer in asked.items()
            ],
            Route("/static/plane.js", lambda request: FileResponse(web_folder() / "plane.js")),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            # a daemon: the end does not wait for it
            threading.Thread(target=_import_the_rest, daemon=True).start()
            yield
            await self.sessions.close()

        return Starlette(routes=routes, lifespan=lifespan)

    # How answers are given ------------------------------------------------------------------------

    def _plainly(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except SfumatoError as error:
                said, code = parse.in_page(error), 400
            except TooLarge as error:
                return too_large(error.args[0])
            except ClientDisconnect:
                return Response(status_code=400)
            except OSError as error:
                said, code = f"a file cannot be used: {error.strerror or error}", 400
            except MemoryError:
                said, code = "out of memory; use larger cells or less data", 400
            except Exception as error:  # its text may hold a place: only its kind is said
                said = f"the studio failed inside ({type(error).__name__}); please report it"
                code = 500
            return JSONResponse({"error": said}, status_code=code)

        return answered

    def _asked(self, answer: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            session, document = self._session(request), parse.document(await request.body())
            reply = await answer(session, document)
            if answer.__name__ in _CHANGING:  # that a comparison is done is an event
                session.tell_others()
            return JSONResponse(plain({} if reply is None else reply))

        return answered

    def _session(self, request: Request) -> Session:
        return self.sessions.get(request.path_params["session"])

    # Pages and their events -----------------------------------------------------------------------

    async def enter(self, request: Request) -> Response:
        document = parse.document(await request.body())
        session = await self.sessions.enter(document.get("previous"))
        given = None if self.given is None else Path(self.given).name
        return JSONResponse(
            {
                "session": session.id,
                "given": given,
                "tiles": self.tiles,
                "streets": bool(self.streets),
                "version": __version__,
                "terms": STUDIO_TERMS,
                "folder": str(session.folder),
                "left": [entry for entry in self.sessions.left() if entry["session"] != session.id],
            }
        )

    async def discard(self, request: Request) -> Response:
        """Drop the work of a page that was closed: the person has asked for it."""
        await self.sessions.discard(parse.document(await request.body()).get("session"))
        return JSONResponse({})

    async def events(self, request: Request) -> Response:
        session = self._session(request)
        stream = self.sessions.attach(session)

        async def lines() -> AsyncIterator[str]:
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

    # Data -----------------------------------------------------------------------------------------

    async def receive_file(self, request: Request) -> Response:
        """Write the body to the session's folder; it is read when it is chosen."""
        session = self._session(request)
        name = Path(request.query_params.get("name", "").replace("\\", "/")).name
        if (
            not name
            or name.startswith(".")
            or any(ord(sign) < 32 for sign in name)
            or len(name.encode()) > 200
        ):
            raise ProblemError("the file has no usable name; expected one as checkins.csv")
        folder = session.folder / "data"
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.part").open("wb") as target:
            async for chunk in request.stream():
                target.write(chunk)
        session.uploaded = (folder / f"{name}.part").replace(folder / name)
        return JSONResponse({"name": name})

    async def choose_data(self, session: Session, asked: dict[str, Any]) -> Any:
        from sfumato.studio import dataset

        which = asked.get("source")
        if which == "four-corners":
            source = name = "four-corners"
        elif which == "given" and self.given is not None:
            source = name = self.given
        elif which == "file" and session.uploaded is not None:
            source, name = str(session.uploaded), session.uploaded.name
        else:
            raise ProblemError("choose four-corners or a file first")
        if session.worth_keeping and asked.get("discard") is not True:
            raise ProblemError(
                "this page holds kept or unfinished runs, and other data would drop them; take them"
                " away first, or say that they may be dropped"
            )
        if which == "given" and Path(source).is_dir():
            from sfumato.studio.reopen import reopened

            loaded, run = await run_in_threadpool(reopened, Path(source), session.folder)
            await session.use(loaded)
            session.runs[run.id] = run
            return {**loaded.description, "opened": [run.as_dict()]}
        loaded = await run_in_threadpool(dataset.load, parse.recipe_of(asked, name), source)
        await session.use(loaded)
        return loaded.description

    async def points(self, request: Request) -> Response:
        return Response(self._session(request).data.points, media_type="application/octet-stream")

    # Taking away ----------------------------------------------------------------------------------

    async def files(self, request: Request) -> Response:
        from sfumato.studio.download import zipped

        session, what = self._session(request), request.path_params["what"]
        run = session.run(request.path_params["run"])
        if what == "run.zip":
            content, name = await run_in_threadpool(zipped, run.folder), f"{run.id}.zip"
        elif what == "bundle.zip" and bundle_folder(session, run).is_dir():
            bundle = bundle_folder(session, run)
            content, name = await run_in_threadpool(zipped, bundle), f"{run.id}-device.zip"
        elif what == "report.html" and report_is_of(session, run):
            content, name = (session.folder / "report.html").read_bytes(), "report.html"
        else:
            raise ProblemError("there is no such file; compare first to make the report")
        return Response(
            content,
            media_type="application/octet-stream",
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


def _import_the_rest() -> None:
    """What the first requests need, read while the page is drawn."""
    import sfumato.solver
    import sfumato.studio.dataset
    import sfumato.studio.preview  # noqa: F401
