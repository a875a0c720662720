"""Sanitize a file or a folder of parts: whole or not at all, and a folder that was stopped is
resumed."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sfumato.deploy.keeping import chance_for
from sfumato.deploy.known import KnownUsers
from sfumato.deploy.one_file import (
    ENOUGH_ROWS,
    Policy,
    Protection,
    Tally,
    is_table,
    open_table,
    refuse_columns,
    refuse_over_budget,
    rows_of_file,
    sanitize_file,
    sanitize_part,
)
from sfumato.deploy.release import release
from sfumato.errors import DataError, FileError, arg
from sfumato.files import (
    check_can_be_made,
    clear_drafts,
    file_hash,
    locked,
    make_folder,
    plain,
    read_json,
    rename,
    write_json,
)
from sfumato.mechanism.chance import Chance, Rows, Sticky
from sfumato.study.folder import load_run
from sfumato.version import __version__

FORMAT = "sfumato sanitize record 1"
_SLOW = 2**14  # of scrypt: some 50 ms for each guess at a part's content


@dataclass(frozen=True)
class Task:
    """One part of a folder: its name, where it is and where it goes."""

    name: str
    source: Path
    target: Path


class Runner(Protocol):
    """Sanitizes parts in some order, here or elsewhere."""

    def __call__(
        self, protection: Protection, tasks: list[Task], progress: Callable[[int], None] | None
    ) -> Iterable[tuple[Task, Tally]]:
        """Each finished part with its counts."""
        ...


def one_by_one(
    protection: Protection, tasks: list[Task], progress: Callable[[int], None] | None
) -> Iterable[tuple[Task, Tally]]:
    """On this machine, part after part."""
    for task in tasks:
        yield task, sanitize_part(protection, task.source, task.target, progress=progress)


def sanitize(
    run: str | Path,
    source: str | Path,
    target: str | Path,
    *,
    chance: Chance | None = None,
    policy: Policy | None = None,
    progress: Callable[[int], None] | None = None,
    runner: Runner = one_by_one,
    resumed: Callable[[int, int], None] | None = None,
    others: Callable[[int, int], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Replace the places in a table by reports of a run's mechanism; gives the record that is
    written beside.

    Main arguments: `run`, a run folder; `source`, a CSV or Parquet file or a folder of them;
    `target`, a new file or folder.  Without `chance` each row is drawn with the operating system's
    randomness; a run whose record says that its reports are kept needs one, with its key.

    Other arguments: `lat`, `lon`, `user`, `time` name columns; `drop` leaves columns out, `keep`
    lets them pass although they name the user or tell the place; `pseudonym`, `outside`,
    `new_places`, `over_budget`; or all of these as a `policy`.  `progress` is called with numbers
    of rows; `runner` does the parts of a folder, on this machine unless another is given; `resumed`
    is called with the number of parts that a stopped job had done, and of all; `others` with the
    number of rows of users whom the run was not made for, where there are any, and of all.  The
    record has the loss in metres.

    >>> import sfumato as sf
    >>> from tempfile import TemporaryDirectory
    >>> data = sf.four_corners(seed=0)
    >>> solution = sf.solve(sf.Problem(data.train, max_loss=173), sf.Coin())
    >>> with TemporaryDirectory() as folder:
    ...     solution.save(f"{folder}/run")
    ...     _ = Path(folder, "in.csv").write_text("user,lat,lon\\nann,48.86,2.35\\n")
    ...     record = sanitize(f"{folder}/run", f"{folder}/in.csv", f"{folder}/out.csv", drop="user")
    >>> record["rows_out"]
    1
    """
    for path in (source, target):
        if not isinstance(path, str | Path):
            raise FileError(
                f"expected the name of a file or a folder; got a {type(path).__name__}:"
                " sf.deploy.report answers data frames"
            )
    given, wanted = Path(source), Path(target)
    if policy is not None and options:
        raise TypeError(f"'{min(options)}' belongs in the policy that was given")
    asked, loaded = policy or Policy.of(**options), load_run(run)
    released = release(loaded, new_places=asked.new_places)
    job = _Job(
        protection=Protection(
            released, chance or chance_for(loaded, None), asked, KnownUsers.of(loaded.record)
        ),
        source=given,
        target=wanted,
        record=wanted.with_name(wanted.name + ".record.json"),
        progress=progress,
        resumed=resumed,
        others=others,
    )
    if wanted.resolve() == given.resolve():
        raise FileError(f"{target} is the file to be read; name another to be written")
    for path in (wanted, job.record):
        check_can_be_made(path)
    if given.is_dir():
        names, skipped = _parts_of(given)
        paths = [given / name for name in names]
        job = replace(job, protection=_whole_periods(job.protection, paths))
        if given.resolve() in wanted.resolve().parents:
            raise FileError(f"{target} lies in the folder to be read; name a folder elsewhere")
        _refuse_copies(given, names, job.protection.chance)
        with _alone(job):
            return _sanitize_folder(job, names, skipped, runner)
    if runner is not one_by_one:
        raise FileError(
            f"{given.name} is no folder, and only the parts of a folder can be sanitized on a"
            " cluster;"
            " sanitize it on this machine"
        )
    open_table(given).close()
    _check_kind(given, wanted)
    job = replace(job, protection=_whole_periods(job.protection, [given]))
    with _alone(job):
        return _sanitize_one(job)


@dataclass(frozen=True)
class _Job:
    """What is asked for."""

    protection: Protection
    source: Path
    target: Path
    record: Path
    progress: Callable[[int], None] | None
    resumed: Callable[[int, int], None] | None
    others: Callable[[int, int], None] | None


def _whole_periods(protection: Protection, paths: list[Path]) -> Protection:
    """With the chance of a job; where one place is chosen for periods that are over, it has seen
    all of their rows."""
    chance = protection.chance
    if not isinstance(chance, Sticky) or chance.one_place is None:
        return protection
    if protection.policy.outside == "laplace":
        raise DataError(
            "the run sends whole periods from one place, and noise for places outside would tell"
            f" them apart; expected {arg('outside')} drop, clamp or refuse"
        )
    if chance.one_place.before:
        return protection
    files = [rows_of_file(protection, path) for path in paths]
    truth, users, seconds, known = (np.concatenate(parts) for parts in zip(*files, strict=True))
    return replace(protection, chance=chance.with_periods(truth, Rows(users, seconds), known))


@contextmanager
def _alone(job: _Job) -> Iterator[None]:
    """Only one job writes to a target, and what a killed one left of it is cleared first."""
    busy = f"another sanitize is at work on {job.target}; wait for it to end, or name another"
    lock = job.target.absolute().with_name(f".{job.target.name}.lock")
    with locked(lock, busy=busy, again=False):
        for path in (job.target, job.record):
            clear_drafts(path)
        yield


def _check_kind(source: Path, target: Path) -> None:
    kinds = [
        "Parquet" if path.name.lower().endswith((".parquet", ".pq")) else "CSV"
        for path in (source, target)
    ]
    if not is_table(target) or kinds[0] != kinds[1]:
        raise FileError(
            f"{target.name} must be of the same kind as {source.name}; expected the ending of a"
            f" {kinds[0]} file"
        )


def _exists(target: Path, what: str) -> FileError:
    return FileError(
        f"{target} exists; a second draw of the same rows reveals more than one: name a new {what},"
        " or remove the old one"
    )


def _refuse_whole(job: _Job, tally: Tally) -> None:
    """What can be said only of all rows: that there are none, that a column names the user who is
    alone in a part, or that they lose too much."""
    if not tally.rows_in:
        raise DataError(f"{job.source.name} has 0 rows; expected at least one")
    refuse_columns(job.source.name, [], tally.users.naming(), {})
    refuse_over_budget(job.protection, tally, source=job.source.name)


def _sanitize_one(job: _Job) -> dict[str, Any]:
    """One file: its record is written first, so a file that is there has one."""
    if os.path.lexists(job.target):
        raise _exists(job.target, "file")
    record: dict[str, Any] = {}

    def write_record(tally: Tally) -> None:
        _refuse_whole(job, tally)
        record.update(_record(job.protection, {job.source.name: tally}, []))
        write_json(job.record, record)

    with _record_goes_with(job):
        tally = sanitize_file(
            job.protection,
            job.source,
            job.target,
            replaces=False,
            before_naming=write_record,
            progress=job.progress,
        )
    _say_others(job, tally.of_others, tally.rows_in)
    return record


def _say_others(job: _Job, rows: int | None, of: int) -> None:
    if rows and job.others is not None:
        job.others(rows, of)


@contextmanager
def _record_goes_with(job: _Job) -> Iterator[None]:
    """No record without its table."""
    try:
        yield
    except BaseException:
        if not job.target.exists():
            with suppress(OSError):
                job.record.unlink(missing_ok=True)
        raise


def _parts_of(source: Path) -> tuple[list[str], list[str]]:
    """Names of the parts in a folder, and of what is skipped.

    What cannot be looked into, and a linked folder, is refused: its rows would be missing without a
    word.  So is a file that is there under two names: its rows would be drawn twice.
    """
    names: dict[tuple[int, int], str] = {}
    skipped: list[str] = []
    for place, folders, files in os.walk(source, onerror=_cannot_list):
        for name in sorted(folders) + sorted(files):
            path = Path(place, name)
            relative = path.relative_to(source)
            if name in folders and not path.is_symlink():
                continue
            table = name in folders or is_table(path)
            if not table or any(part.startswith((".", "_")) for part in relative.parts):
                skipped.append(relative.as_posix())
                continue
            if not path.is_file():
                kind = "a link to a folder" if path.is_dir() else "a broken link, pipe or device"
                raise DataError(
                    f"{path} is {kind}; expected files in folders of their own: copy what it"
                    " stands for into the folder, or sanitize that by itself"
                )
            status = path.stat()
            other = names.setdefault((status.st_dev, status.st_ino), relative.as_posix())
            if other != relative.as_posix():
                raise DataError(
                    f"{path} is the same file as {other}, so its rows would be drawn twice; leave"
                    " one of them out"
                )
    if not names:
        hidden = any(is_table(Path(name)) for name in skipped)
        raise DataError(
            f"{source} holds no CSV or Parquet file; expected a folder of parts",
            hint="names that begin with . or _ are skipped" if hidden else None,
        )
    return sorted(names.values()), sorted(skipped)


def _refuse_copies(source: Path, names: list[str], chance: Chance) -> None:
    """Refuse a part that is there twice under two names: two draws of the same rows tell more than
    one.  Kept reports are the same in both, and parts without a row tell nothing."""
    if isinstance(chance, Sticky):
        return
    sizes: dict[int, list[str]] = {}
    for name in names:
        sizes.setdefault((source / name).stat().st_size, []).append(name)
    for alike in sizes.values():
        known: dict[str, str] = {}
        for name in alike if len(alike) > 1 else []:
            other = known.setdefault(file_hash(source / name), name)
            if other != name and _has_rows(source / name):
                raise DataError(
                    f"{source / name} is a copy of {other}, so its rows would be drawn twice, which"
                    " reveals more than one draw; leave one of them out",
                    hint=f"or draw the same report for both with {arg('sticky')}",
                )


def _has_rows(path: Path) -> bool:
    table = open_table(path)
    try:
        return any(len(block) for block in table.blocks())
    finally:
        table.close()


def _cannot_list(error: OSError) -> None:
    raise DataError(
        f"cannot look into {error.filename}: {error.strerror}; make it readable, or move it away"
    )


def working_folder(target: Path) -> Path:
    """Where the parts of a folder are until the last one is done."""
    return target.with_name(f".{target.name}.sfumato-job")


def _sanitize_folder(
    job: _Job, names: list[str], skipped: list[str], runner: Runner
) -> dict[str, Any]:
    """All parts go to a working folder beside the target, which gets its name when the last part is
    done."""
    work = working_folder(job.target)
    settings = _settings(job, names)
    if os.path.lexists(job.target):
        return _done_before(job, names, settings, work)
    parts, notes = work / "parts", work / "done"
    tallies = _resumed(job, names, settings, work)
    if tallies and job.resumed is not None:
        job.resumed(len(tallies), len(names))
    try:
        for folder in (parts, notes):
            make_folder(folder)
        write_json(work / "job.json", {"job": settings})
        users = _together(tallies).users
        tasks = [
            Task(name, job.source / name, parts / name) for name in names if name not in tallies
        ]
        for task, tally in runner(job.protection, tasks, job.progress):
            write_json(notes / _note(task.name), {"part": task.name, "tally": tally.as_dict()})
            tallies[task.name] = tally
            users.add(tally.users)
            refuse_columns(job.source.name, [], users.naming(sure=True), {})
        _clear_leftovers(parts)
        ordered = {name: tallies[name] for name in names}
        _refuse_whole(job, _together(ordered))
        record = _record(job.protection, ordered, skipped) | {
            "job": _mark(
                settings,
                {name: tally.source_hash for name, tally in ordered.items()},
                salt=os.urandom(16),
            )
        }
        with _record_goes_with(job):
            write_json(job.record, record)
            rename(parts, job.target)
    except BaseException as error:
        if isinstance(error, DataError) or not tallies:  # else the parts that are done stay
            shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work, ignore_errors=True)
    whole = _together(ordered)
    _say_others(job, whole.of_others, whole.rows_in)
    return record


def _done_before(job: _Job, names: list[str], settings: str, work: Path) -> dict[str, Any]:
    """The record of the same job on the same content, which is not drawn again."""
    if job.record.exists():
        record = read_json(job.record, what="sanitize record")
        content = {name: file_hash(job.source / name) for name in names}
        if record.get("job") == _mark(settings, content, salt=_salt_of(record)):
            _refuse_changed(job.target, record)
            shutil.rmtree(work, ignore_errors=True)  # a job that was killed as it ended
            _say_others(job, record.get("rows_of_other_users"), record["rows_in"])
            return record
    raise _exists(job.target, "folder")


def _refuse_changed(target: Path, record: dict[str, Any]) -> None:
    """Refuse a finished folder that is not as its job left it."""
    try:
        written = {name: part.get("hash") for name, part in record["parts"].items()}
    except (AttributeError, KeyError):
        raise FileError(
            f"the record of {target} does not list its parts; restore it, or name a new folder"
        ) from None
    there = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    wrong = sorted(there ^ written.keys()) or [
        name for name, known in written.items() if file_hash(target / name) != known
    ]
    if wrong:
        raise FileError(
            f"{target} is the output of this command, but {wrong[0]} in it is not as it was"
            " written; restore the folder, or name a new one"
        )


def _resumed(job: _Job, names: list[str], settings: str, work: Path) -> dict[str, Tally]:
    """Counts of the parts that a stopped job has done; it is resumed only with the same settings
    and the same content."""
    tallies = {}
    for name in names:
        note = work / "done" / _note(name)
        if note.exists() and (work / "parts" / name).exists():
            tallies[name] = _tally(note)
    noted = any((work / "done").glob("*.json"))
    if not noted or not any(path.is_file() for path in (work / "parts").rglob("*")):
        shutil.rmtree(work, ignore_errors=True)  # nothing was done, or all of it and handed over
        return {}
    same = read_json(work / "job.json", what="note of a stopped job").get("job") == settings
    if not same or any(
        file_hash(job.source / name) != tally.source_hash
        or file_hash(work / "parts" / name) != tally.target_hash
        for name, tally in tallies.items()
    ):
        raise FileError(
            f"{work} holds a stopped job with other settings or other data; finish that one, or"
            " remove the folder"
        )
    _clear_leftovers(work / "parts")
    return tallies


def _tally(note: Path) -> Tally:
    try:
        return Tally.from_dict(read_json(note, what="note of a finished part")["tally"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FileError(
            f"{note.parent.parent} holds a stopped job of another version; remove the folder"
        ) from None


def _clear_leftovers(parts: Path) -> None:
    """Half-written files of a process that was killed."""
    for path in parts.rglob(".*.part"):
        path.unlink(missing_ok=True)


def _note(part: str) -> str:
    """The name of a part's note."""
    return f"{hashlib.sha256(part.encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"


def _settings(job: _Job, names: list[str]) -> str:
    """Tells one job from another: all that decides the reports, and the parts' names."""
    release, chance = job.protection.release, job.protection.chance
    _, rest = release.as_parts()  # the mechanism's own hash is among its figures
    decisive = [rest, release.decimals, chance.words(), job.protection.policy.words(), names]
    if isinstance(chance, Sticky) and chance.sent_from is not None:
        decisive.append(sorted(chance.sent_from.items()))  # a week is from one place in all parts
    return _hash_of(decisive)


def _mark(settings: str, hashes: dict[str, str], *, salt: bytes) -> str:
    """A job with the content of its parts.  The record is published with the reports: who guesses
    the places of a short part must not find out cheaply whether the guess is right."""
    slow = hashlib.scrypt(_hash_of([settings, hashes]).encode(), salt=salt, n=_SLOW, r=8, p=1)
    return f"{salt.hex()}:{slow.hex()}"


def _salt_of(record: dict[str, Any]) -> bytes:
    try:
        return bytes.fromhex(str(record.get("job")).partition(":")[0])
    except ValueError:
        return b""


def _hash_of(value: Any) -> str:
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _record(protection: Protection, parts: dict[str, Tally], skipped: list[str]) -> dict[str, Any]:
    """What was done.  It holds no place: no region, no plane, no row."""
    released, policy = protection.release, protection.policy
    whole = _together(parts)
    spent = whole.losses.whole
    enough = spent.count >= ENOUGH_ROWS
    over = whole.losses.against(released.budget)
    return {
        "format": FORMAT,
        "sfumato": __version__,
        "made": datetime.now(UTC).date().isoformat(),
        "mechanism": {
            **released.figures,
            "max_loss": released.budget.max_loss or released.figures["max_loss"],
        },
        "rows_in": whole.rows_in,
        "rows_out": whole.rows_out,
        "rows_of_other_users": whole.of_others if enough else None,
        "rows_without_place": whole.without_place,
        "outside": {"policy": policy.outside, "rows": whole.outside},
        "dropped_columns": list(policy.drop),
        "kept_columns": list(policy.keep),
        "pseudonym": policy.words()["pseudonym"],
        "columns_that_tell_the_place": whole.betraying,
        "rows_of_one_user_together": whole.together,
        "columns_that_link_rows": whole.linking,
        "rows_in_order_of_place": whole.by_place,
        "chance": protection.chance.words(),
        "decimals": released.decimals,
        "loss_of_this_table": round(spent.mean, 1) if enough else None,
        "loss_unit": released.budget.unit,
        "loss_over_budget": enough and (over.passed or bool(over)),
        "parts": {
            name: {"rows_in": tally.rows_in, "rows_out": tally.rows_out, "hash": tally.target_hash}
            for name, tally in parts.items()
        },
        "skipped_files": skipped,
    }


def _together(parts: dict[str, Tally]) -> Tally:
    if len(parts) == 1:
        return next(iter(parts.values()))
    whole = Tally()
    for tally in parts.values():
        whole.add(tally)
    return whole
