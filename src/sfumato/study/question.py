"""What a run was asked, to a record and back: problem, solver and seed."""

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples
from sfumato.errors import DataError, FileError, SfumatoError, arg
from sfumato.files import plain
from sfumato.measure.objective import objective_named
from sfumato.mechanism.loss import LOSSES, Loss
from sfumato.solver import SOLVERS
from sfumato.solver.outcome import Solver
from sfumato.solver.problem import Problem
from sfumato.study.folder import Run


def question(problem: Problem, solver: Solver, seed: int) -> dict[str, Any]:
    """The fields of a record that say what was asked."""
    settings: Any = solver
    return {
        "solver": solver.name,
        "settings": plain(asdict(settings)),
        "seed": seed,
        "objective": problem.objective.name,
        "max_loss": problem.max_loss,
        "user_max_loss": None if problem.user_max_loss is None else dict(problem.user_max_loss),
        "max_distance": problem.max_distance,
        "min_bayes_error": problem.min_bayes_error,
        "reports": problem.reports,
        "loss_function": problem.loss.__name__,
        "region": problem.region,
        "grid": problem.released_on,
    }


def same_question(run: Run, problem: Problem, solver: Solver, seed: int) -> bool:
    """Whether a run answers just this."""
    asked = question(problem, solver, seed)
    return run.record.data.hash == problem.samples.hash and all(
        getattr(run.record, name) == value for name, value in asked.items()
    )


def loss_of(run: Run, data: Samples | CategoricalData) -> Loss:
    """The loss that a run was made with; one that is not ours is not in the folder, and no other
    stands in for it."""
    name = run.record.loss_function
    known: dict[str, Loss] = {name: traits.function for name, traits in LOSSES.items()}
    if isinstance(data, CategoricalData):
        known = {data.loss.__name__: data.loss}
    if name not in known:
        raise FileError(
            f"{run.folder} used a loss function of its own ('{name}'), which is not in the run"
            " folder; judge it in Python"
        )
    return known[name]


def problem_of(run: Run, data: Samples | CategoricalData, *, option: str = "data") -> Problem:
    """The problem that a run answered, put together again from its record and its data; `option` is
    the argument that names the data."""
    record = run.record
    if data.hash != record.data.hash:
        raise DataError(
            f"{data.name} is not the data that {run.folder} was made from (its hash differs); name"
            f" the right file with {arg(option)}"
        )
    grid, whole = record.grid, False
    # A grid named by its cells covers the region exactly; one named by a cell's side may reach
    # beyond.
    if grid is not None and grid.region is not None and record.region is not None:
        whole = grid.region.side_m == record.region.side_m
    return Problem(
        data,
        max_loss=record.max_loss,
        loss=loss_of(run, data),
        region=record.region,
        cell_m=None if grid is None or whole else grid.cell_m,
        cells=grid.cells_per_side if grid is not None and whole else None,
        user_max_loss=record.user_max_loss,
        max_distance=record.max_distance,
        objective=objective_named(record.objective, data.secrets),
        min_bayes_error=record.min_bayes_error,
        reports=record.reports,
    )


def solver_of(run: Run) -> Solver:
    """The solver of a run with its settings, put together again from the record."""
    record = run.record
    if record.solver not in SOLVERS:
        raise FileError(
            f"{run.folder} was made by a solver '{record.solver}', which this version does not"
            " know; make the run again"
        )
    try:
        solver: Solver = restored(SOLVERS[record.solver](), record.settings)
    except (KeyError, TypeError, AttributeError, SfumatoError):
        raise FileError(
            f"{run.folder}: the settings of its solver cannot be read back; leave users out in"
            " Python, with leave_one_out(problem, solver)"
        ) from None
    return solver


def seed_of(run: Run) -> int:
    """The seed of a run's solver."""
    if not isinstance(run.record.seed, int):
        raise FileError(f"{run.folder / 'run.json'} lacks its seed; make the run again")
    return run.record.seed


def restored(default: Any, stored: Mapping[str, Any]) -> Any:
    """A dataclass with stored settings; parts that are dataclasses are of the default's kind, and
    must have its fields."""
    if set(stored) != {part.name for part in fields(default)}:
        raise KeyError("other settings")
    values = {}
    for name, value in stored.items():
        part = getattr(default, name)
        if is_dataclass(part):
            values[name] = restored(part, value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return replace(default, **values)
