"""A process that has everything imported and starts commands of sfumato in milliseconds.

It forks before JAX does anything: JAX starts its threads in the child.  A line of JSON on stdin
names the command's words, the file for what it says, and a signal to send it after some seconds;
the answer is its exit code.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path


def _serve() -> None:
    import jax  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import sfumato.cli.sanitize
    import sfumato.cli.solve
    import sfumato.deploy.sanitize
    import sfumato.solver.codebook.training
    import sfumato.solver.game.training
    import sfumato.study.solve  # noqa: F401
    from sfumato.solver import SOLVERS, Codebook
    from tests.solver.game.tiny import TINY, always

    alone = Codebook(made_for="these", distillation=0.0)
    small = replace(alone, places=12, steps=48, hidden=(8,), waves=4)
    SOLVERS["game"], SOLVERS["codebook"] = always(replace(TINY, rounds=3)), always(small)
    warnings.simplefilter("ignore")  # JAX warns of forks; none of its threads runs yet
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            _command(order["words"], order["log"])
        if order["stop"] is not None:
            time.sleep(order["after"])
            os.kill(child, order["stop"])  # nobody has waited for it, so the number is its own
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _command(words: list[str], log: str) -> None:
    """In the child: what `sfumato WORDS` does."""
    from sfumato.cli import main

    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for handle in (1, 2):
        os.dup2(said, handle)
    os.close(0)
    sys.argv = ["sfumato", *words]
    code: object = 99
    try:
        main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


class Warm:
    """The process, from outside."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self.log = process, log

    def run(self, *words: object, stop: int | None = None, after: float = 0.0) -> int:
        """Run a command, and send it the signal `stop` `after` seconds; its exit code."""
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"words": [str(word) for word in words], "log": str(self.log)}
        order |= {"stop": stop, "after": after}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def warm(folder: Path) -> Iterator[Warm]:
    """Start the process; what JAX compiles is kept in the folder."""
    root = Path(__file__).resolve().parents[2]
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join((str(root), os.environ.get("PYTHONPATH", ""))),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.warm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **kept},
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield Warm(process, folder / "said.txt")
        process.stdin.close()


if __name__ == "__main__":
    _serve()
