"""What a session answers, by the word that the page asks with: a JSON object, empty where there is
nothing to say.  Every mistake is one sentence."""

import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from sfumato.errors import ProblemError, SfumatoError
from sfumato.studio import parse
from sfumato.studio.session import PageRun, Session

if TYPE_CHECKING:
    from sfumato.data.samples import Samples

_DEFAULT_CELL_M = 25.0

Handler = Callable[[Session, dict[str, Any]], Awaitable[Any]]


async def state(session: Session, asked: dict[str, Any]) -> Any:
    return {
        "data": None if session.loaded is None else session.loaded.description,
        "runs": [
            run.as_dict()
            for run in session.runs.values()
            if run.found is not None or run.state in ("running", "interrupted")
        ],
        "curves": session.curves,
        "proved": session.proved,
        "comparison": session.comparison,
        "solvers": await run_in_threadpool(_solvers),
        "solving": session.solving,
        "processes": session.processes,
    }


# Solving ---------------------------------------------------------------------------------------


async def prove(session: Session, asked: dict[str, Any]) -> None:
    cell_m = parse.cell_m(asked)
    if session.data.description["provable"]:
        await session.prove(cell_m)


async def refine(session: Session, asked: dict[str, Any]) -> None:
    session.refine(parse.budget(asked, missing=""), parse.cell_m(asked))


async def link(session: Session, asked: dict[str, Any]) -> None:
    session.link()


async def plan(session: Session, asked: dict[str, Any]) -> Any:
    task = await _task(session, asked)
    try:
        return {"plan": await run_in_threadpool(_plan, session.data.split.train, task)}
    except SfumatoError as error:  # what does not fit; what else is wrong is said at Solve
        return {"refused": parse.in_page(error)}


async def solve(session: Session, asked: dict[str, Any]) -> Any:
    return (await session.solve(await _task(session, asked))).as_dict()


async def _task(session: Session, asked: dict[str, Any]) -> dict[str, Any]:
    """What the page asks a solver to do."""
    from sfumato.measure.objective import objective_named

    solvers = {solver["name"]: solver for solver in await run_in_threadpool(_solvers)}
    solver = parse.words(asked, "solver") or ""
    if solver not in solvers:
        raise ProblemError(
            f"there is no solver '{solver[:40]}'; expected one of {', '.join(solvers)}"
        )
    max_loss = parse.budget(asked, missing="; set the slider or fill in the number")
    objective = parse.words(asked, "objective") or "bayes"
    await run_in_threadpool(objective_named, objective, session.data.split.train.secrets)
    cell_m = parse.cell_m(asked)
    return {
        "solver": solver,
        "max_loss": max_loss,
        "objective": objective,
        "reports": parse.reports(asked),
        "cell_m": None if cell_m == _DEFAULT_CELL_M else cell_m,
        "seed": parse.whole(asked, "seed", what="the seed", default=0),
        "time_limit": parse.time_limit(asked),
        "resumable": solvers[solver]["resumable"],
    }


def _plan(train: "Samples", task: dict[str, Any]) -> str:
    """What that takes, in words; refuses what does not fit into memory."""
    from sfumato.render.brief import plan_on_page
    from sfumato.solver import DEFAULT, SOLVERS
    from sfumato.solver.outcome import FULL, NONE
    from sfumato.studio.work import problem_of
    from sfumato.study.solve import foretold, proof_limit

    solver, limit_s = SOLVERS[task["solver"]](), task["time_limit"]
    proof = FULL if task["solver"] == DEFAULT else NONE
    expected = foretold(solver, problem_of(train, task), proof)
    proof_s = proof_limit(None, limited=limit_s is not None)
    return plan_on_page(expected, proof, limit_s=limit_s, proof_s=proof_s)


async def stop(session: Session, asked: dict[str, Any]) -> None:
    session.stop()


async def resume(session: Session, asked: dict[str, Any]) -> Any:
    return (await session.resume(asked.get("run"), parse.time_limit(asked))).as_dict()


async def keep(session: Session, asked: dict[str, Any]) -> None:
    session.run(asked.get("run")).kept = asked.get("kept") is not False


# Looking ---------------------------------------------------------------------------------------


async def compare(session: Session, asked: dict[str, Any]) -> None:
    if not session.kept:
        raise ProblemError("nothing is kept yet; solve and keep a run first")
    await session.compare(session.kept)


async def preview(session: Session, asked: dict[str, Any]) -> Any:
    import numpy as np

    from sfumato.studio.preview import preview as preview_of

    train = session.data.split.train
    at = [parse.number(asked, axis, what=f"the place's {axis}, in metres,") for axis in ("x", "y")]
    if None in at:
        raise ProblemError("a place is two numbers of metres")
    row = int(np.argmin(((train.truth - np.array(at, dtype=float)) ** 2).sum(axis=1)))
    runs = [session.run(name) for name in parse.texts(asked, "runs")][:8]
    answers = [await run_in_threadpool(preview_of, run.folder, train.truth[row]) for run in runs]
    previews = {
        run.id: answer | {"cell_m": run.cell_m} for run, answer in zip(runs, answers, strict=True)
    }
    return {"truth": train.truth[row], "user": train.secrets[train.secret[row]], "runs": previews}


async def attack(session: Session, asked: dict[str, Any]) -> Any:
    from sfumato.studio.attack_game import AttackGame
    from sfumato.studio.preview import report_table

    run = session.run(asked.get("run"))
    table = await run_in_threadpool(report_table, run.folder)
    session.game = await run_in_threadpool(AttackGame.deal, run.id, table, session.data.split.train)
    return session.game.state()


async def guess(session: Session, asked: dict[str, Any]) -> Any:
    if session.game is None:
        raise ProblemError("no game has begun; choose a run and begin")
    return session.game.guess(asked.get("user"))


# Taking away -----------------------------------------------------------------------------------


async def download(session: Session, asked: dict[str, Any]) -> Any:
    from sfumato.studio.download import bundle_of, command_line

    run = session.run(asked.get("run"))
    opened = run.task.get("opened")  # its settings may be others than the page can ask for
    command = command_line(run.task, session.data.recipe, out=f"runs/{run.id}")
    if opened is not None:
        command = f"sfumato measure {shlex.quote(opened)} --details"
    refused = await run_in_threadpool(bundle_of, run.folder, bundle_folder(session, run))
    return {
        "command": command,
        "report": report_is_of(session, run),
        "bundle": refused is None,
        "bundle_refused": refused,
    }


def report_is_of(session: Session, run: PageRun) -> bool:
    """Whether the last comparison, whose report is kept, shows this run."""
    return session.comparison is not None and run.id in session.comparison["runs"]


def bundle_folder(session: Session, run: PageRun) -> Path:
    """Where the bundle of a run is put together."""
    return session.folder / "bundles" / f"{run.id}-device"


def _solvers() -> list[dict[str, Any]]:
    """Every solver that the library has, with the first sentence of what it says of itself."""
    import inspect

    from sfumato.solver import DEFAULT, SOLVERS

    return [
        {
            "name": name,
            "words": _first_sentence(inspect.getdoc(solver) or ""),
            "resumable": solver.resumable,
            "default": name == DEFAULT,
        }
        for name, solver in SOLVERS.items()
    ]


def _first_sentence(text: str) -> str:
    """Also where it goes on in a second line."""
    return " ".join(text.split()).partition(". ")[0].removesuffix(".").replace("`", "") + "."


_ALL = (
    state,
    prove,
    refine,
    link,
    plan,
    solve,
    stop,
    resume,
    keep,
    compare,
    preview,
    attack,
    guess,
)
HANDLERS: dict[str, Handler] = {handler.__name__: handler for handler in (*_ALL, download)}
