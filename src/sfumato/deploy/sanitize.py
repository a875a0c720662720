"""Sanitize a file or a folder of parts: whole or not at all, and a stopped folder goes on where it
was."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from sfumato.deploy.chance import Chance, Secure
from sfumato.deploy.one_file import Policy, Tally, is_table, open_table, sanitize_file
from sfumato.deploy.release import Release, release
from sfumato.errors import DataError, FileError, SfumatoError
from sfumato.files import locked, plain, read_json, write_json
from sfumato.solver.run import load_run
from sfumato.version import __version__

FORMAT = "sfumato sanitize record 1"
_ENOUGH_ROWS = (
    1000  # with fewer, the loss of this table is not recorded: it would tell about single rows
)


@dataclass(frozen=True)
class Task:
    """One part of a folder: its name, where it is and where it goes."""

    name: str
    source: Path
    target: Path


class Runner(Protocol):
    """Sanitizes parts in some order, here or elsewhere."""

    def __call__(
        self,
        release: Release,
        chance: Chance,
        policy: Policy,
        tasks: list[Task],
        progress: Callable[[int], None] | None,
    ) -> Iterable[tuple[Task, Tally]]:
        """Each finished part with its counts."""
        ...


def one_by_one(
    release: Release,
    chance: Chance,
    policy: Policy,
    tasks: list[Task],
    progress: Callable[[int], None] | None,
) -> Iterable[tuple[Task, Tally]]:
    """On this machine, part after part."""
    for task in tasks:
        yield (
            task,
            sanitize_file(release, chance, policy, task.source, task.target, progress=progress),
        )


def sanitize(
    run: str | Path,
    source: str | Path,
    target: str | Path,
    *,
    chance: Chance | None = None,
    policy: Policy | None = None,
    progress: Callable[[int], None] | None = None,
    runner: Runner = one_by_one,
) -> dict[str, Any]:
    """Replace the places in a table by reports of a run's mechanism; gives the record that is
    written beside.

    Main arguments: `run`, a run folder; `source`, a CSV or Parquet file or a folder of them;
    `target`, a new file or folder.  Without `chance` each row is drawn with the operating system's
    randomness.

    Other arguments: `policy`, columns and what to do with points outside the region; `progress` is
    called with numbers of rows; `runner` does the parts of a folder, on this machine unless another
    is given.
    """
    given, wanted = Path(source), Path(target)
    released = release(load_run(run))
    asked, drawn = policy or Policy(), chance or Secure()
    record_path = wanted.with_name(wanted.name + ".record.json")
    if wanted.resolve() == given.resolve():
        raise FileError(f"{target} is the file to be read; name another to be written")
    if given.is_dir():
        return _folder(released, drawn, asked, given, wanted, record_path, progress, runner)
    _check_new(wanted, given)
    open_table(given).close()
    ((_, tally),) = runner(released, drawn, asked, [Task(given.name, given, wanted)], progress)
    record = _record(released, drawn, asked, {given.name: tally}, [])
    write_json(record_path, record)
    return record


def _check_new(target: Path, source: Path) -> None:
    if target.exists():
        raise FileError(
            f"{target} exists; a second draw of the same rows tells more than one: name a new file,"
            " or remove the old one"
        )
    kinds = [
        "Parquet" if path.name.lower().endswith((".parquet", ".pq")) else "CSV"
        for path in (source, target)
    ]
    if not is_table(target) or kinds[0] != kinds[1]:
        raise FileError(
            f"{target.name} must be of the same kind as {source.name}; expected the ending of a"
            f" {kinds[0]} file"
        )


def _folder(
    released: Release,
    chance: Chance,
    policy: Policy,
    source: Path,
    target: Path,
    record_path: Path,
    progress: Callable[[int], None] | None,
    runner: Runner,
) -> dict[str, Any]:
    """All parts go to a working folder beside the target, which gets its name when the last part is
    done."""
    found = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    names = sorted(
        path.as_posix()
        for path in found
        if is_table(path) and not any(part.startswith((".", "_")) for part in path.parts)
    )
    skipped = sorted({path.as_posix() for path in found} - set(names))
    if not names:
        hint = "names that begin with . or _ are skipped" if any(map(is_table, found)) else None
        raise DataError(
            f"{source} holds no CSV or Parquet file; expected a folder of parts", hint=hint
        )
    if source.resolve() in target.resolve().parents:
        raise FileError(f"{target} lies in the folder to be read; name a folder elsewhere")
    job = {name: _stamp(source / name) for name in names}
    mark = _fingerprint(released, chance, policy, job)
    if target.exists():
        if (
            record_path.exists()
            and read_json(record_path, what="sanitize record").get("job") == mark
        ):
            return read_json(record_path, what="sanitize record")
        raise FileError(
            f"{target} exists; a second draw of the same rows tells more than one: name a new"
            " folder, or remove the old one"
        )
    work = target.with_name(f".{target.name}.sfumato-job")
    with ExitStack() as held:
        _open_job(work, mark, held)
        (work / "parts").mkdir(exist_ok=True)
        (work / "done").mkdir(exist_ok=True)
        tallies: dict[str, Tally] = {}
        for name in names:
            note = work / "done" / f"{_short(name)}.json"
            if note.exists() and (work / "parts" / name).exists():
                tallies[name] = Tally(**read_json(note, what="note of a finished part")["tally"])
                if progress is not None:
                    progress(tallies[name].rows_in)
        _clear_leftovers(work / "parts")
        tasks = [
            Task(name, source / name, work / "parts" / name)
            for name in names
            if name not in tallies
        ]
        try:
            for task, tally in runner(released, chance, policy, tasks, progress):
                write_json(
                    work / "done" / f"{_short(task.name)}.json",
                    {"part": task.name, "tally": tally.as_dict()},
                )
                tallies[task.name] = tally
        except SfumatoError as error:
            if (
                isinstance(error, DataError) or not tallies
            ):  # else what is done stays, to go on from
                shutil.rmtree(work, ignore_errors=True)
            raise
        _clear_leftovers(work / "parts")
        record = _record(
            released, chance, policy, {name: tallies[name] for name in names}, skipped
        ) | {"job": mark}
        write_json(record_path, record)
        os.replace(work / "parts", target)
        shutil.rmtree(work, ignore_errors=True)
    return record


def _open_job(work: Path, mark: str, held: ExitStack) -> None:
    """Take hold of the working folder; a job that was stopped is gone on with if it is the same
    job."""
    held.enter_context(
        locked(work / "lock", busy=f"another sanitize is at work in {work}; wait for it to end")
    )
    note = work / "job.json"
    if not note.exists():
        write_json(note, {"job": mark})
    elif read_json(note, what="note of a stopped job").get("job") != mark:
        raise FileError(
            f"{work} holds a stopped job with other settings or other data; finish that one, or"
            " remove the folder"
        )


def _clear_leftovers(parts: Path) -> None:
    """Half-written files of a process that was killed."""
    for path in parts.rglob(".*.part"):
        path.unlink(missing_ok=True)


def _stamp(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _short(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _fingerprint(
    released: Release, chance: Chance, policy: Policy, job: dict[str, list[int]]
) -> str:
    """Tells one job from another: all that decides the reports, and the parts' names, sizes and
    times."""
    _, rest = released.as_parts()  # the mechanism's own hash is among its figures
    whole = [rest, released.decimals, chance.words(), asdict(policy), job]
    return hashlib.sha256(
        json.dumps(plain(whole), sort_keys=True).encode("utf-8", "surrogateescape")
    ).hexdigest()


def _record(
    released: Release, chance: Chance, policy: Policy, parts: dict[str, Tally], skipped: list[str]
) -> dict[str, Any]:
    """What was done.  It holds no place: no region, no plane, no row."""
    whole = Tally()
    for tally in parts.values():
        whole.add(tally)
    enough = whole.loss_rows >= _ENOUGH_ROWS
    return {
        "format": FORMAT,
        "sfumato": __version__,
        "mechanism": {**released.figures, "hash": released.figures["mechanism_hash"]},
        "rows_in": whole.rows_in,
        "rows_out": whole.rows_out,
        "rows_without_place": whole.without_place,
        "outside": {"policy": policy.outside, "rows": whole.outside},
        "dropped_columns": list(policy.drop),
        "columns_that_tell_the_place": whole.betraying,
        "chance": chance.words(),
        "decimals": released.decimals,
        "loss_of_this_table": round(whole.loss_sum / whole.loss_rows, 1) if enough else None,
        "parts": {
            name: {"rows_in": tally.rows_in, "rows_out": tally.rows_out}
            for name, tally in parts.items()
        },
        "skipped_files": skipped,
    }
