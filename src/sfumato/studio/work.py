"""What a process of the studio does: one task, told as it goes.  Ends when the server's end of the
pipe closes."""

import _thread
import base64
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.data.samples import Samples
    from sfumato.solver.problem import Problem

_CLOUD_EVERY_S = 0.4
LAST_WORDS = ("done", "stopped", "failed")
_SIMPLE = (int, float, str)
_STOPPED = (
    "Stopped. This solver keeps nothing when it is stopped; with a time limit it gives its best so"
    " far."
)
_TOO_EARLY = (
    "Stopped before the first round was done: nothing is kept. With a time limit it gives its best"
    " so far."
)
_RESUMABLE = "Stopped before there was a mechanism; Resume continues after the last whole round."
_AS_IT_WAS = "Stopped: the mechanism stays as it was; Resume continues after the last whole round."
_AGAIN_S = 0.02
# the first stop ends the learning, a second one after this time what is made of it
_TWICE_S = 2.0
_AT_ONCE_S = 3.0  # after which a process that has nothing to keep is ended, whatever it is doing
STOPPING = threading.Event()
BEGUN = threading.Event()  # there is a round to keep
CLOUD = 1200  # reports of a cloud, the same check-ins each time

Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Read a task, do it, say how it ended in one line."""
    with suppress(OSError, AttributeError):
        os.nice(5)  # the page comes first
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # nothing but our lines goes down the pipe

    turn, ended = threading.Lock(), threading.Event()

    def write(message: dict[str, Any]) -> None:
        line = json.dumps(message, allow_nan=False) + "\n"
        with turn:
            if not ended.is_set():
                said.write(line)
                said.flush()
            if message["kind"] in LAST_WORDS:
                ended.set()

    def tell(message: dict[str, Any]) -> None:
        from sfumato.files import plain

        write(plain(message))

    def give_up() -> None:  # imports nothing: an import may be what does not end
        if not ended.is_set():
            write(stopped(task))
            os._exit(0)

    inbox: queue.Queue[dict[str, Any]] = queue.Queue()
    sys.unraisablehook = not_lost
    task: dict[str, Any] = {}
    try:
        threading.Thread(target=_listen, args=(inbox, give_up), daemon=True).start()
        task.update(inbox.get())
        _run(task, tell, inbox)
    except KeyboardInterrupt:
        write(stopped(task))
    except MemoryError:
        tell({"kind": "failed", "error": "out of memory; use larger cells or less data"})
    except Exception as error:
        from sfumato.errors import SfumatoError, missing_extra
        from sfumato.studio.parse import in_page

        if isinstance(error, ImportError):
            error = missing_extra(error) or error
        if STOPPING.is_set():  # an import that is interrupted may say anything
            write(stopped(task))
        elif isinstance(error, (SfumatoError, OSError)):
            tell({"kind": "failed", "error": in_page(error)})
        else:
            inside = f"{type(error).__name__}: {error}"
            said_of = f"the computation failed inside ({inside}); please report it"
            tell({"kind": "failed", "error": said_of})


def stopped(task: dict[str, Any]) -> dict[str, Any]:
    """What is said when a task was stopped, and whether the rounds that it has done are kept."""
    if task.get("checkpoint") is None:  # the exact solver has no rounds
        return {"kind": "stopped", "error": _STOPPED, "resumable": False}
    kept = Path(task["checkpoint"]).exists()
    resumable = _AS_IT_WAS if task.get("made") else _RESUMABLE
    return {"kind": "stopped", "error": resumable if kept else _TOO_EARLY, "resumable": kept}


def _listen(inbox: "queue.Queue[dict[str, Any]]", give_up: Callable[[], None]) -> None:
    stopped_at: list[float] = []
    for line in sys.stdin:
        message, now = json.loads(line), time.monotonic()
        if message["kind"] != "stop":
            inbox.put(message)
        elif not stopped_at or (len(stopped_at) == 1 and now > stopped_at[0] + _TWICE_S):
            stopped_at.append(now)
            STOPPING.set()
            if not BEGUN.is_set():
                # nothing to keep, and an import or a compiler may swallow an exception, or crash
                give_up()
            _thread.interrupt_main()
            if len(stopped_at) == 2:
                soon = threading.Timer(_AT_ONCE_S, give_up)
                soon.daemon = True
                soon.start()
    os._exit(3)  # the server is gone


def not_lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """A stop that comes while a finaliser or a callback is at work has its exception raised there,
    where Python drops it: it is sent again, a moment later."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        again = threading.Timer(_AGAIN_S, _thread.interrupt_main)
        again.daemon = True
        again.start()


def _run(task: dict[str, Any], tell: Tell, inbox: "queue.Queue[dict[str, Any]]") -> None:
    if task["kind"] == "solve":
        solve_task(task, tell)
    elif task["kind"] == "compare":
        compare_task(task, tell)
    else:
        from sfumato.studio.prove import prove_task

        prove_task(task, tell, inbox)


def solve_task(task: dict[str, Any], tell: Tell) -> None:
    """Find a mechanism, write its run folder, and beside it P(secret, report) for the page."""
    from sfumato.data.recipe import Recipe
    from sfumato.data.samples import Samples
    from sfumato.render.text import outlook_note, proof_text
    from sfumato.solver import SOLVERS
    from sfumato.studio.preview import save_table
    from sfumato.study.certify import gaps_of
    from sfumato.study.solve import solve_and_save

    asked = Recipe.from_dict(task["recipe"])
    here, train, test = replace(asked, source=task["source"]).prepared()
    recipe = replace(here, source=asked.source)
    assert isinstance(train, Samples)  # the page brings check-ins
    problem = problem_of(train, task)
    out = Path(task["out"])
    truth = cloud_truths(train.truth)
    shown = 0.0

    def on_round(record: dict[str, Any]) -> None:
        nonlocal shown
        if "proof_stopped" in record:
            return
        if STOPPING.is_set():  # the stop itself was lost in somebody's code
            raise KeyboardInterrupt
        if "round" in record:
            BEGUN.set()
        if not {"round", "proof_bound"} & set(record):  # the exact solver's progress is text
            return
        mechanism = record.get("mechanism")
        simple = {key: value for key, value in record.items() if isinstance(value, _SIMPLE)}
        message: dict[str, Any] = {"kind": "round", "record": simple}
        if mechanism is not None and time.monotonic() - shown > _CLOUD_EVERY_S:
            message["cloud"] = packed(mechanism.sample(truth, seed=0))
            shown = time.monotonic()
        tell(message)

    kept = solve_and_save(
        problem,
        SOLVERS[task["solver"]](),
        out,
        recipe=recipe,
        test=test,
        seed=task["seed"],
        time_limit=task["time_limit"],
        progress=on_round,
        resume=task.get("resume", False),
    )
    save_table(out, kept.solution.measured.joint)
    proved = ""
    if kept.solution.ending.proof is not None:
        proved = proof_text(kept.solution, gaps_of([kept.solution], None)[0])
    tell(
        {
            "kind": "done",
            "solution": {
                **kept.as_dict(),
                "to_come_note": outlook_note(kept.to_come, task["max_loss"]),
                "proved": proved,
            },
            "resumable": kept.solution.ending.resumable,
            "cell_m": problem.grid.cell_m,
            "cloud": packed(kept.solution.mechanism.sample(truth, seed=0)),
        }
    )


def problem_of(train: "Samples", task: dict[str, Any]) -> "Problem":
    """The problem that the page asks for."""
    from sfumato.measure.objective import objective_named
    from sfumato.solver import Problem

    return Problem(
        train,
        max_loss=task["max_loss"],
        cell_m=task["cell_m"],
        objective=objective_named(task["objective"], train.secrets),
        reports=task["reports"],
    )


def compare_task(task: dict[str, Any], tell: Tell) -> None:
    """Judge runs side by side on the same data and write the report."""
    from sfumato.data.recipe import Recipe
    from sfumato.study.compare import compare
    from sfumato.study.folder import load_run

    split = replace(Recipe.from_dict(task["recipe"]), source=task["source"]).load()
    runs = [load_run(folder) for folder in task["runs"]]
    on = split.train if split.test is None else split.test
    comparison = compare(runs, on=on, train=split.train)
    comparison.html(task["report"])
    truth = cloud_truths(split.train.truth)
    clouds = [packed(run.mechanism.sample(truth, seed=0)) for run in runs]
    tell({"kind": "done", "comparison": comparison.as_dict(), "clouds": clouds})


def cloud_rows(count: int) -> Any:
    """Which check-ins a cloud shows: the same ones each time, spread over all users."""
    from sfumato.randomness import generator

    return generator(0).permutation(count)[:CLOUD]


def cloud_truths(truth: Any) -> Any:
    """The true places of a cloud."""
    return truth[cloud_rows(len(truth))]


def packed(points: Any) -> str:
    """Points as base64 of little-endian single precision: x and y in turn."""
    return base64.b64encode(points.astype("<f4").tobytes()).decode()


if __name__ == "__main__":
    main()
