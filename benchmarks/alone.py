"""A function in a process of its own, so that its time and memory are no other's."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

_ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def alone(function: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """What `function` gives for arguments that `repr` writes, on one thread."""
    module = function.__module__
    if module == "__main__":  # begun by python -m
        module = sys.modules[module].__spec__.name  # type: ignore[union-attr]
    code = (
        f"import json; from {module} import {function.__name__} as one;"
        f" print(json.dumps(one(*{given!r})))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | _ONE_THREAD,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found
