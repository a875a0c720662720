"""A run folder: what came out, and how.

run.json         inputs with hashes, settings, seed, versions, figures
mechanism.npz    the mechanism
certificate.npz  what no mechanism within the budget can go below, where it was proved
history.jsonl    one line per round, where the solver has rounds
checkpoint.npz   learning between two rounds, to resume from; until the first run ends, the only
                 file there
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.data.grid import Grid, Region
from sfumato.data.recipe import Recipe
from sfumato.errors import FileError, arg
from sfumato.files import (
    clear_drafts,
    file_hash,
    folder_beside,
    locked,
    open_regular,
    plain,
    read_json,
    rename,
    write_text,
)
from sfumato.measure.certificate import Certificate, load_certificate
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.study.record import FORMAT, Keeping, RunRecord

RECORD, _MECHANISM, _HISTORY = "run.json", "mechanism.npz", "history.jsonl"
CERTIFICATE = "certificate.npz"
CHECKPOINT = "checkpoint.npz"
_ASIDE = f".{CHECKPOINT}.old"


@dataclass(frozen=True, eq=False)
class Run:
    """A run folder, read back."""

    folder: Path
    record: RunRecord
    mechanism: Mechanism

    def __repr__(self) -> str:
        return f"Run('{self.folder}', solver='{self.record.solver}')"

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """What the solver noted as it went, one record per round."""
        path = self.folder / _HISTORY
        if not path.exists():
            return ()
        try:
            with open_regular(path) as source:
                return tuple(json.loads(line) for line in source)
        except FileError:
            raise
        except (ValueError, RecursionError):
            raise FileError(f"{path} is damaged; make the run again") from None

    @property
    def certificate(self) -> Certificate | None:
        """The run's own certificate, where it has one."""
        path = self.folder / CERTIFICATE
        return load_certificate(path) if path.exists() else None

    @property
    def recipe(self) -> Recipe | None:
        """How the run's data was got; None when it was given in memory."""
        return self.record.data.recipe

    @property
    def max_loss(self) -> float | None:
        """The average budget in metres, where there is one."""
        return self.record.max_loss

    @property
    def grid(self) -> Grid | None:
        """The cells that reports were released on; None for categories."""
        return self.record.grid

    @property
    def region(self) -> Region | None:
        """Where reports may lie; None for categories."""
        return self.record.region


def load_run(folder: str | Path) -> Run:
    """Read a run folder, checking that it is whole.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> load_run("run").mechanism.kind
    'coin'
    """
    if not isinstance(folder, str | Path):
        raise FileError(
            f"expected the name of a run folder; got a {type(folder).__name__}: write one with"
            " solution.save('run') and give 'run'"
        )
    source = Path(folder)
    if not source.is_dir():
        raise FileError(f"there is no run folder {source}; expected one that sfumato solve wrote")
    if stopped_learning(source):
        raise FileError(
            f"{source} holds learning that was stopped, and no run yet; resume it with sfumato"
            " solve (-h says how), or name another"
        )
    record = RunRecord.read(source / RECORD)
    mechanism = load_mechanism(source / _MECHANISM)
    if file_hash(source / _MECHANISM) != record.mechanism_hash:
        raise FileError(
            f"{source / _MECHANISM} is not the mechanism that the run record names; make the"
            " run again"
        )
    run = Run(source, record, mechanism.on_plane(record.data.plane))
    _ = run.history  # a damaged one is refused now, not when it is drawn
    return run


def save_run(
    folder: str | Path,
    record: RunRecord,
    mechanism: Mechanism,
    *,
    certificate: Certificate | None = None,
    history: Sequence[dict[str, Any]] = (),
    resumable: bool = False,
) -> None:
    """Write a run folder beside and rename it: whole or not at all.  An older run of that name is
    replaced; its checkpoint stays where the run is `resumable`."""
    target = Path(folder)
    with claimed(target), folder_beside(target, replaces=True) as beside:
        check_target(target, replace=True)
        mechanism.save(beside / _MECHANISM)
        if certificate is not None:
            certificate.save(beside / CERTIFICATE)
        if history:
            write_text(
                beside / _HISTORY, "".join(json.dumps(plain(line)) + "\n" for line in history)
            )
        replace(record, mechanism_hash=file_hash(beside / _MECHANISM)).write(beside / RECORD)
        if resumable and (target / CHECKPOINT).exists():
            shutil.copy2(target / CHECKPOINT, beside / CHECKPOINT)


def keep_reports(run: Run, keeping: Keeping) -> Run:
    """Write into a run's record how its reports are to be kept; all else stays."""
    with claimed(run.folder):
        record = replace(RunRecord.read(run.folder / RECORD), keeping=keeping)
        record.write(run.folder / RECORD)
    return replace(run, record=record)


def claimed(target: Path) -> AbstractContextManager[None]:
    """Keep other processes from writing the same run folder, for as long as the block lasts."""
    busy = f"another sfumato is at work on {target}; wait for it to end or name another folder"
    return locked(target.absolute().parent / f".{target.name}.lock", busy=busy)


def check_target(target: Path, *, replace: bool) -> None:
    """Refuse, before any work is done, a place that holds something other than a run of ours, and
    a run that is not to be replaced."""
    if target.exists() and not target.is_dir():
        raise FileError(f"{target} is a file; name a new folder for the run")
    names = {path.name for path in target.iterdir()} if target.is_dir() else set()
    names = {name for name in names if not _of_checkpoint(name)}
    if not names:
        return  # an empty folder, too: a killed job leaves one if it had not begun to learn
    known = {RECORD, _MECHANISM, CERTIFICATE, _HISTORY}
    if (
        RECORD not in names
        or not names <= known
        or read_json(target / RECORD, what="run record").get("format") != FORMAT
    ):
        raise FileError(f"{target} holds other files and is not a run folder; name a new one")
    if not replace:
        raise FileError(
            f"{target} holds a run; name another folder, or set {arg('replace')} to write over it"
        )


def stopped_learning(folder: Path) -> bool:
    """Whether a folder holds a checkpoint, and no run yet."""
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:  # there is none, or it cannot be read: who opens the record says so
        return False
    return RECORD not in names and any(map(_of_checkpoint, names))


def _of_checkpoint(name: str) -> bool:
    """A checkpoint, or what a kill leaves of one: the older one set aside, or half of a newer
    one."""
    return name in (CHECKPOINT, _ASIDE) or (
        name.startswith(f".{CHECKPOINT}.") and name.endswith(".part")
    )


@contextmanager
def checkpoint_in(folder: Path, *, resume: bool) -> Iterator[Path]:
    """Where the rounds are kept.  Without `resume` an older checkpoint is set aside, and comes
    back if the new run writes none."""
    path, aside = folder / CHECKPOINT, folder / _ASIDE
    clear_drafts(path)
    if aside.exists() and not path.exists():  # a new run was killed before its first checkpoint
        rename(aside, path)
    if resume and not path.exists():
        raise FileError(
            f"there is no {CHECKPOINT} in {folder}; nothing to resume: start it with {arg('out')}"
        )
    try:
        if not resume and path.exists():
            rename(path, aside)
        yield path
    finally:
        if path.exists():
            with suppress(OSError):  # the next run removes it
                aside.unlink(missing_ok=True)
        elif aside.exists():
            rename(aside, path)
