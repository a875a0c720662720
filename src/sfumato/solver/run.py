"""A run folder: what came out, and how.

run.json         inputs with hashes, settings, seed, versions, figures
mechanism.npz    the mechanism
history.jsonl    one line a round, where the solver has rounds
checkpoint.npz   the learning between two rounds, to go on from; while it lasts, the only file there
"""

import json
import platform
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import DataError, FileError
from sfumato.files import file_hash, folder_beside, locked, plain, read_json, write_json, write_text
from sfumato.measure.judge import Judgement
from sfumato.measure.objective import objective_named
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.mechanism.law import Loss, euclidean, squared
from sfumato.solver.codebook import Codebook
from sfumato.solver.game import Game
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Solution
from sfumato.version import __version__

FORMAT = "sfumato run 1"
CHECKPOINT = "checkpoint.npz"
ASIDE = f".{CHECKPOINT}.old"
_LOSSES: dict[str, Loss] = {"euclidean": euclidean, "squared": squared}


@dataclass(frozen=True, eq=False)
class Run:
    """A run folder, read back."""

    folder: Path
    record: dict[str, Any]
    mechanism: Mechanism

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """What the solver noted as it went, one record a round."""
        path = self.folder / "history.jsonl"
        return (
            tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
            if path.exists()
            else ()
        )

    @property
    def recipe(self) -> Recipe | None:
        """How the run's data was got; None when it was given in memory."""
        stored = self.record["data"].get("recipe")
        return None if stored is None else Recipe.from_dict(stored)

    @property
    def max_loss(self) -> float | None:
        """The average budget in metres, where there is one."""
        return self.record["max_loss"]

    @property
    def grid(self) -> Grid | None:
        """The cells that reports were released on; None for words."""
        return None if self.record["grid"] is None else Grid.from_dict(self.record["grid"])

    @property
    def region(self) -> Region | None:
        """Where reports may lie; None for words."""
        stored = self.record["region"]
        return (
            None
            if stored is None
            else Region(centre=tuple(stored["centre"]), side_m=stored["side_m"])
        )


def versions() -> dict[str, str]:
    """What computed the figures."""
    found = {"sfumato": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "jax"):
        found[package] = metadata.version(package)
    return found


def save_solution(
    solution: Solution,
    folder: str | Path,
    *,
    recipe: Recipe | None = None,
    test: Judgement | None = None,
) -> None:
    """Write a run folder beside and rename it: whole or not at all.  An older run of that name is
    replaced."""
    target = Path(folder)
    with claimed(target), folder_beside(target, replaces=True) as beside:
        check_target(target)
        solution.mechanism.save(beside / "mechanism.npz")
        if solution.certificate is not None:
            solution.certificate.save(beside / "certificate.npz")
        if solution.history:
            write_text(
                beside / "history.jsonl",
                "".join(json.dumps(plain(line)) + "\n" for line in solution.history),
            )
        write_json(
            beside / "run.json",
            _record(solution, recipe, test, mechanism_hash=file_hash(beside / "mechanism.npz")),
        )
        if isinstance(solution.solver, (Codebook, Game)) and (target / CHECKPOINT).exists():
            shutil.copy2(target / CHECKPOINT, beside / CHECKPOINT)


def claimed(target: Path) -> AbstractContextManager[None]:
    """Keep other processes from writing the same run folder, for as long as the block lasts."""
    busy = f"another sfumato is at work on {target}; wait for it to end or name another folder"
    return locked(target.absolute().parent / f".{target.name}.lock", busy=busy)


def check_target(target: Path) -> None:
    """Refuse a place that holds something other than a run of ours, before any work is done."""
    if not target.exists() or _only_checkpoint(target):
        return
    known = {"run.json", "mechanism.npz", "certificate.npz", "history.jsonl"}
    names = (
        {path.name for path in target.iterdir() if not _of_checkpoint(path.name)}
        if target.is_dir()
        else {target.name}
    )
    if (
        "run.json" not in names
        or not names <= known
        or read_json(target / "run.json", what="run record").get("format") != FORMAT
    ):
        raise FileError(f"{target} exists and is not a run folder of ours alone; name a new folder")


def _only_checkpoint(target: Path) -> bool:
    """A folder of learning that was stopped before its end."""
    entries = list(target.iterdir()) if target.is_dir() else []
    return bool(entries) and all(_of_checkpoint(entry.name) for entry in entries)


def _of_checkpoint(name: str) -> bool:
    """A checkpoint, or what a kill leaves of one: the older one set aside, or half of a newer
    one."""
    return name in (CHECKPOINT, ASIDE) or (
        name.startswith(f".{CHECKPOINT}.") and name.endswith(".part")
    )


def question(problem: Problem, solver: Any, seed: int) -> dict[str, Any]:
    """What a run's record says of what was asked."""
    region = problem.region
    return {
        "solver": solver.name,
        "settings": asdict(solver),
        "seed": seed,
        "objective": problem.objective.name,
        "max_loss": problem.max_loss,
        "user_max_loss": None if problem.user_max_loss is None else dict(problem.user_max_loss),
        "max_distance": problem.max_distance,
        "min_bayes_error": problem.min_bayes_error,
        "loss_function": problem.loss.__name__,
        "region": None if region is None else {"centre": region.centre, "side_m": region.side_m},
        "grid": None if region is None else problem.grid.as_dict(),
    }


def _record(
    solution: Solution, recipe: Recipe | None, test: Judgement | None, *, mechanism_hash: str
) -> dict[str, Any]:
    problem = solution.problem
    return {
        "format": FORMAT,
        **question(problem, solution.solver, solution.seed),
        "data": {
            "name": problem.samples.name,
            "hash": problem.samples.hash,
            "rows": len(problem.samples),
            "users": list(problem.samples.secrets),
            "plane": (
                None
                if isinstance(problem.samples, CategoricalData) or problem.samples.plane is None
                else asdict(problem.samples.plane)
            ),
            "recipe": None if recipe is None else recipe.as_dict(),
        },
        "mechanism_hash": mechanism_hash,
        "status": solution.status,
        "seconds": solution.seconds,
        "train": solution.measured.as_dict(),
        "test": None if test is None else test.as_dict(),
        "versions": versions(),
    }


def loss_of(run: Run, data: Samples | CategoricalData) -> Loss:
    """The loss that a run was made with; one that is not ours is not in the folder, and no other
    stands in for it."""
    name = run.record["loss_function"]
    known: dict[str, Loss] = (
        {data.loss.__name__: data.loss} if isinstance(data, CategoricalData) else _LOSSES
    )
    if name not in known:
        raise FileError(
            f"{run.folder} used a loss function of its own ('{name}'), which is not in the run"
            " folder; judge it in Python"
        )
    return known[name]


def problem_of(run: Run, data: Samples | CategoricalData) -> Problem:
    """The problem that a run answered, put together again from its record and its data."""
    if data.hash != run.record["data"]["hash"]:
        raise DataError(
            f"{data.name} is not the data that {run.folder} was made from (its hash differs); name"
            " the right file with --data"
        )
    record = run.record
    grid, whole = (
        run.grid,
        False,
        # a grid named by its cells covers the region exactly; one named by a cell's side may reach
        # beyond
    )
    if grid is not None and grid.region is not None and run.region is not None:
        whole = grid.region.side_m == run.region.side_m
    return Problem(
        data,
        max_loss=record["max_loss"],
        loss=loss_of(run, data),
        region=run.region,
        cell_m=None if grid is None or whole else grid.cell_m,
        cells=grid.cells_per_side if grid is not None and whole else None,
        user_max_loss=record.get("user_max_loss"),
        max_distance=record.get("max_distance"),
        objective=objective_named(record.get("objective", "bayes"), data.secrets),
        min_bayes_error=record.get("min_bayes_error"),
    )


def load_run(folder: str | Path) -> Run:
    """Read a run folder, checking that it is whole."""
    source = Path(folder)
    if not source.is_dir():
        raise FileError(
            f"there is no run folder {source}; expected one that `sfumato solve --out {source}`"
            " wrote"
        )
    record = read_json(source / "run.json", what="run record")
    if record.get("format") != FORMAT:
        raise FileError(
            f"{source / 'run.json'} is not a run record of this version; expected '{FORMAT}'"
        )
    missing = {
        "solver",
        "max_loss",
        "region",
        "grid",
        "data",
        "mechanism_hash",
        "status",
    } - record.keys()
    if missing:
        raise FileError(f"{source / 'run.json'} lacks '{sorted(missing)[0]}'; make the run again")
    mechanism = load_mechanism(source / "mechanism.npz")
    if file_hash(source / "mechanism.npz") != record["mechanism_hash"]:
        raise FileError(
            f"{source / 'mechanism.npz'} is not the mechanism that the run record speaks of; make"
            " the run again"
        )
    run = Run(folder=source, record=record, mechanism=mechanism)
    try:
        sound = run.max_loss is None or run.max_loss > 0
        sound &= isinstance(record["data"]["hash"], str) and isinstance(
            record["loss_function"], str
        )
        _ = run.recipe, run.grid, run.region, run.history  # each reads its part of the record
        plane = record["data"].get("plane")
        run = replace(run, mechanism=mechanism.on_plane(None if plane is None else Plane(**plane)))
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        sound = False
    if not sound:
        raise FileError(f"{source / 'run.json'} is damaged; make the run again")
    return run
