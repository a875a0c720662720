"""How far a run's mechanism is from the best that can exist: what `sfumato certify` prints."""

from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from sfumato.data.recipe import Recipe
from sfumato.errors import DataError, ProblemError
from sfumato.measure.certificate import Bounds, Certificate, load_certificate, refuse_above
from sfumato.mechanism.law import Law
from sfumato.solver.exact.solver import Exact
from sfumato.solver.problem import Problem
from sfumato.study.folder import Run, load_run
from sfumato.study.question import problem_of


@dataclass(frozen=True, eq=False)
class Certified:
    """A mechanism's leakage beside what no mechanism can go below."""

    run: Run
    problem: Problem
    leakage: float
    kind: str
    bounds: Bounds
    made_now: bool
    on_grid: bool

    @property
    def gap(self) -> float:
        """Leakage less the bound on the grid."""
        return self.leakage - self.bounds.grid

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        unit = {"bayes": "", "information": " bits"}.get(self.problem.objective.name, "")
        where = (
            "makes these reports"
            if self.problem.region is None
            else f"reports on this {self.problem.grid.cell_m:g} m grid"
        )
        text = (
            f"This mechanism leaks {self.leakage:.4f}{unit} ({self.kind}, on its own reports); no"
            f" mechanism within {_budget(self.problem)} that {where} can leak less than"
            f" {max(self.bounds.grid, 0.0):.4f}{unit}"
        )
        if self.bounds.plane is not None:
            text += f"; anywhere on the plane, less than {max(self.bounds.plane, 0.0):.4f}{unit}"
            text += f"; gap {self.gap:.4f} / {self.leakage - self.bounds.plane:.4f}."
        else:
            text += f"; gap {self.gap:.4f}."
        if self.bounds.all_cells is not None and self.bounds.cells < self.bounds.all_cells:
            text += (
                f" Of the grid's {self.bounds.all_cells} cells the {self.bounds.cells} about the"
                " truths' hull were looked at; the bound on the grid holds for reports there."
            )
        return (
            text
            if self.on_grid
            else (
                f"{text} It does not report on that grid, so only what holds on the plane holds"
                " for it."
            )
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON; leakage, bounds and gaps in the objective's unit."""
        return {
            "leakage": self.leakage,
            "kind": self.kind,
            "bound_grid": self.bounds.grid,
            "bound_plane": self.bounds.plane,
            "gap": self.gap,
            "gap_plane": None if self.bounds.plane is None else self.leakage - self.bounds.plane,
            "objective": self.problem.objective.name,
            "unit": self.problem.objective.unit,
            "max_loss": self.problem.max_loss,
            "user_max_loss": (
                None if self.problem.user_max_loss is None else dict(self.problem.user_max_loss)
            ),
            "max_distance": self.problem.max_distance,
            "data_hash": self.problem.samples.hash,
            "cells_checked": self.bounds.cells,
            "cells_of_grid": self.bounds.all_cells,
            "reports_on_grid": self.on_grid,
            "sentence": self.sentence,
        }


def certify_run(
    folder: Path, *, other: Path | None = None, source: str | None = None, gap: float = 1e-3
) -> Certified:
    """Check a run's certificate against its data; make one where there is none."""
    if not (gap > 0 and isfinite(gap)):
        raise ProblemError(f"the gap must be above 0 and finite; got {gap}")
    run = load_run(folder)
    problem = problem_of(run, _recipe(run, source).data()[0])
    if problem.min_bayes_error is not None:
        raise ProblemError(
            "this run asked for the smallest loss, and its status says what is proved; certify a"
            " run with a budget"
        )
    path = (folder if other is None else other) / "certificate.npz"
    made_now = other is None and not path.exists()
    certificate = _new_certificate(problem, gap) if made_now else load_certificate(path)
    bounds = certificate.bound(problem)
    if made_now:
        certificate.save(path)
    law = run.mechanism.law(problem.joint, loss=problem.loss)
    if law is None:
        law = run.mechanism.law(problem.joint, grid=problem.grid, loss=problem.loss)
    if law is None:
        raise ProblemError(
            "the law of this run's mechanism is not known, so its leakage can only be estimated",
            hint="sfumato measure",
        )
    leakage, on_grid = problem.objective.leakage(law.joint), problem.names_cells(law.joint)
    proved = bounds.grid if on_grid else bounds.plane
    if proved is not None and _keeps_budgets(problem, law):
        refuse_above(proved, leakage)
    return Certified(run, problem, leakage, "exact", bounds, made_now, on_grid)


def _keeps_budgets(problem: Problem, law: Law) -> bool:
    """Whether it is known that the run's own mechanism is within the budgets."""
    return (
        problem.max_distance is None
        and law.missing == 0
        and (problem.max_loss is None or law.loss <= problem.max_loss)
        and (problem.user_limits is None or bool((law.loss_of <= problem.user_limits).all()))
    )


def _recipe(run: Run, source: str | None) -> Recipe:
    """How the run's data was got, with the file where it lies now."""
    if run.recipe is None:
        if source is None:
            raise DataError(
                f"{run.folder} does not say where its data is; name it", hint="--data FILE"
            )
        return Recipe(source)
    return run.recipe if source is None else replace(run.recipe, source=source)


def _new_certificate(problem: Problem, gap: float) -> Certificate:
    found = Exact(gap=gap).solve(problem, seed=0)
    assert found.certificate is not None
    return found.certificate


def _budget(problem: Problem) -> str:
    unit = "" if problem.region is None else " m"
    parts = [] if problem.max_loss is None else [f"{problem.max_loss:g}{unit}"]
    if problem.user_max_loss is not None:
        parts.append("the budgets per user")
    if problem.max_distance is not None:
        parts.append(f"{problem.max_distance:g}{unit} at most")
    return " and ".join(parts)
