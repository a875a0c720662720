"""The gap of each compared mechanism to the proven bound, on the training data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples
from sfumato.measure.certificate import Bounds, Certificate, load_certificate
from sfumato.solver.problem import Problem
from sfumato.study.folder import Run
from sfumato.study.question import problem_of
from sfumato.study.solution import Solution


@dataclass(frozen=True)
class Gap:
    """A leakage on the training data beside what no mechanism within the budget can go below."""

    objective: str
    leakage: float
    bounds: Bounds

    on_grid: bool = True

    @property
    def value(self) -> float | None:
        """Leakage less the bound: the grid's for reports on the grid, the plane's for others (None
        where it was not proved)."""
        if self.on_grid:
            return self.leakage - self.bounds.grid
        return None if self.bounds.plane is None else self.leakage - self.bounds.plane

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "objective": self.objective,
            "leakage": self.leakage,
            "bound_grid": self.bounds.grid,
            "bound_plane": self.bounds.plane,
            "gap": self.value,
            "reports_on_grid": self.on_grid,
        }


def gaps_of(items: Sequence[object], train: Samples | CategoricalData | None) -> list[Gap | None]:
    """A gap for each solution or run whose problem one of them carries a certificate for."""
    problems = [problem_behind(item, train) for item in items]
    proved: dict[tuple[Any, ...], Bounds] = {}
    for item, problem in zip(items, problems, strict=True):
        certificate = None if problem is None else _certificate(item)
        if problem is not None and certificate is not None:
            bounds, known = certificate.bound(problem), proved.get(_key(problem))
            proved[_key(problem)] = bounds if known is None else known.or_better(bounds)
    found: list[Gap | None] = []
    for item, problem in zip(items, problems, strict=True):
        best = None if problem is None else proved.get(_key(problem))
        law = None
        if problem is not None and best is not None and isinstance(item, (Solution, Run)):
            law = item.mechanism.law(problem.joint, loss=problem.loss)
        if problem is None or best is None or law is None:
            found.append(None)
        else:
            found.append(
                Gap(
                    problem.objective.name,
                    problem.objective.leakage(law.joint),
                    best,
                    problem.names_cells(law.joint),
                )
            )
    return found


def problem_behind(item: object, train: Samples | CategoricalData | None) -> Problem | None:
    """The problem that a solution or a run of this training data answers; None for anything
    else."""
    if isinstance(item, Solution):
        return item.problem
    if isinstance(item, Run) and train is not None and train.hash == item.record.data.hash:
        return problem_of(item, train)
    return None


def _certificate(item: object) -> Certificate | None:
    if isinstance(item, Solution):
        return item.certificate
    if isinstance(item, Run) and (item.folder / "certificate.npz").exists():
        return load_certificate(item.folder / "certificate.npz")
    return None


def _key(problem: Problem) -> tuple[Any, ...]:
    limits = None if problem.user_limits is None else tuple(problem.user_limits)
    grid = None if problem.region is None else problem.grid
    loss = (
        None if isinstance(problem.samples, CategoricalData) else problem.loss
    )  # a table's hash covers its losses
    return (
        problem.samples.hash,
        problem.objective.name,
        problem.max_loss,
        limits,
        problem.max_distance,
        grid,
        loss,
    )
