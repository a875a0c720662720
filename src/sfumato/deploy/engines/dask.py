"""The parts of a folder, or the tiles of an atlas, on a dask cluster.  Only this module imports
dask, and only when it is used."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sfumato.deploy.one_file import Protection, Tally, sanitize_part
from sfumato.deploy.sanitize import Runner, Task
from sfumato.errors import DataError, FileError, MechanismError, MissingExtra, SfumatoError
from sfumato.mechanism.chance import Secure, Sticky
from sfumato.study.atlas import Runner as TileRunner
from sfumato.study.atlas import solve_tile


class ClusterError(SfumatoError):
    """The cluster cannot be reached, or gave up."""


# A worker's error comes back as its own kind: bad data ends a job, a disk that is full does not.
_KINDS: dict[str, type[SfumatoError]] = {
    kind.__name__: kind for kind in (DataError, FileError, MechanismError)
}
_WAIT = "30s"
_KILLED_OFTEN = 10  # times a part may lose its worker before it is blamed


def on_cluster(address: str) -> Runner:
    """A runner that hands parts to the workers of a scheduler.

    The workers read and write the same paths as this machine (a shared file system).  The mechanism
    and the key, if there is one, are sent to each worker once.
    """
    distributed = _distributed()

    def run(
        protection: Protection, tasks: list[Task], progress: Callable[[int], None] | None
    ) -> Iterable[tuple[Task, Tally]]:
        with _client(distributed, address) as client:
            order = client.scatter(_order(protection), broadcast=True, hash=False)
            paths = [
                (order, str(task.source.resolve()), str(task.target.absolute())) for task in tasks
            ]
            for number, outcome in _each(distributed, client, _work, paths, what="a part"):
                tally = Tally.from_dict(outcome)
                if progress is not None:
                    progress(tally.rows_in)
                yield tasks[number], tally

    return run


def tiles_on_cluster(address: str) -> TileRunner:
    """A runner that hands the tiles of an atlas to the workers of a scheduler, which read and write
    the same paths as this machine."""
    distributed = _distributed()

    def run(work: Path, tiles: list[int]) -> Iterable[int]:
        with _client(distributed, address) as client:
            orders = [(str(work.absolute()), tile) for tile in tiles]
            for number, _ in _each(distributed, client, _solve, orders, what="a tile"):
                yield tiles[number]

    return run


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingExtra("distributed", "cluster") from None


def _client(distributed: Any, address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=_WAIT, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise ClusterError(
            f"no dask scheduler answers at {address} ({type(error).__name__}); start one and"
            " name its address"
        ) from None
    if not client.scheduler_info()["workers"]:
        _wait_for_one(client)
    return client


def _each(
    distributed: Any, client: Any, task: Any, orders: Sequence[tuple[Any, ...]], *, what: str
) -> Iterable[tuple[int, dict[str, Any]]]:
    """The number and the outcome of each order, as they are done."""
    waiting = {}
    futures = []
    for number, order in enumerate(orders):
        futures.append(client.submit(task, *order, pure=False, retries=_KILLED_OFTEN))
        waiting[futures[-1].key] = number
    for future in distributed.as_completed(futures, loop=client.loop):
        yield waiting[future.key], _outcome(future, what)


def _wait_for_one(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=30)
    except (TimeoutError, OSError):
        raise ClusterError(
            "the scheduler has no worker after 30 s; start one and run the same command again"
        ) from None


def _outcome(future: Any, what: str) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = future.result()
    except Exception as error:
        # workers that kept dying, a scheduler that went away: dask's own errors
        raise ClusterError(
            f"the cluster failed on {what} ({type(error).__name__}); mend it and run the same"
            " command"
            " again to resume"
        ) from None
    if "error" in outcome:
        raise _KINDS.get(outcome.get("kind", ""), SfumatoError)(
            outcome["error"], hint=outcome["hint"]
        )
    return outcome


def _order(protection: Protection) -> tuple[bytes, str]:
    """What a worker needs, as plain values."""
    chance = protection.chance
    if isinstance(chance, Sticky) and chance.one_place is not None:
        raise FileError(
            "the run sends some periods from one place, which is chosen on one machine;"
            " expected another way of keeping, or no cluster"
        )
    if not isinstance(chance, Secure | Sticky):
        raise FileError(
            "a cluster draws with secure randomness or with a key; these random numbers are neither"
        )
    mechanism, rest = protection.as_parts()
    return mechanism, json.dumps(rest)


def _work(order: tuple[bytes, str], source: str, target: str) -> dict[str, Any]:
    """On a worker: one part.  Writing beside and renaming makes a part that is done twice be there
    once."""
    try:
        return sanitize_part(_protection(*order), Path(source), Path(target)).as_dict()
    except SfumatoError as error:
        return {"error": str(error), "hint": error.hint, "kind": type(error).__name__}


def _solve(work: str, tile: int) -> dict[str, Any]:
    """On a worker: one tile."""
    try:
        solve_tile(work, tile)
    except SfumatoError as error:
        return {"error": str(error), "hint": error.hint, "kind": type(error).__name__}
    return {}


@lru_cache(maxsize=2)
def _protection(mechanism: bytes, rest: str) -> Protection:
    """Built once per worker; `rest` is JSON, as a cache compares texts and not dictionaries."""
    return Protection.from_parts(mechanism, json.loads(rest))
