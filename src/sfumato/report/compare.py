"""Mechanisms side by side, on the same data, each with its loss beside its leakage."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato import show
from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.files import write_text
from sfumato.measure.estimate import Estimate, estimate_bayes_error
from sfumato.measure.judge import Judgement, draw_reports, geo_epsilon_at, judge_law, judge_reports
from sfumato.measure.membership import Membership, membership_test
from sfumato.measure.prior import Priors, under_priors
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import Loss, euclidean, merge_on_grid
from sfumato.report.gaps import Gap, gaps_of, problem_behind
from sfumato.report.others import shown
from sfumato.report.others_side_by_side import others_text
from sfumato.report.table import text_table
from sfumato.show import InNotebooks
from sfumato.solver.problem import Problem
from sfumato.study.folder import Run
from sfumato.study.leave_one_out import LeftOutUser
from sfumato.study.leave_one_out import leave_one_out as solve_without_each
from sfumato.study.question import loss_of, seed_of, solver_of
from sfumato.study.record import versions
from sfumato.study.solution import Solution

GRIDS_M = (25.0, 50.0, 100.0, 500.0)


@dataclass(frozen=True, eq=False)
class Entry:
    """A mechanism to compare: its name, where it came from, what to judge it on."""

    name: str
    mechanism: Mechanism
    max_loss: float | None = None
    grid: Grid | None = None
    region: Region | None = None
    loss: Loss = euclidean
    seed: int | None = None
    status: str = ""
    history: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Row:
    """One mechanism, measured."""

    entry: Entry
    measured: Judgement
    over_grids: tuple[Estimate, ...]
    gap: Gap | None = None
    membership: Membership | None = None
    left_out: tuple[LeftOutUser, ...] = ()

    @cached_property
    def priors(self) -> Priors | None:
        """The figures under other shares of the users."""
        return under_priors(self.measured)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.entry.name,
            "max_loss": self.entry.max_loss,
            "seed": self.entry.seed,
            "status": self.entry.status,
            **self.measured.as_dict(),
            "bayes_error_over_grids": [estimate.as_dict() for estimate in self.over_grids],
            "proved_on_training_data": None if self.gap is None else self.gap.as_dict(),
            "other_shares": None if self.priors is None else self.priors.as_dict(),
            "membership": None if self.membership is None else self.membership.as_dict(),
            "left_out": [one.as_dict() for one in self.left_out],
        }


@dataclass(frozen=True, eq=False)
class Comparison(InNotebooks):
    """Mechanisms judged on the same samples.  Prints as a table; `html` writes the report."""

    on: Samples | CategoricalData
    train: Samples | CategoricalData | None
    rows: tuple[Row, ...]
    region: Region | None

    def __str__(self) -> str:
        words = isinstance(self.on, CategoricalData)
        header = [
            "mechanism",
            "loss" if words else "loss m",
            "Bayes error ↑",
            "info bits ↓",
            "exposed ↓",
            "worst report ↓",
            "learnt error ↑",
            "gap ↓",
            "cell m",
        ]
        lines = []
        for row in self.rows:
            found = row.measured
            lines.append(
                [
                    row.entry.name,
                    f"{'≈' if found.loss.kind == 'estimate' else ''}{found.loss.value:.{3 if words else 1}f}"
                    + _over(row),
                    shown(found.bayes_error),
                    shown(found.information_bits),
                    f"{_about(found)}{found.exposed.value:.1%}",
                    f"{_about(found)}{_posterior(found.worst_report)}",
                    "-" if found.learnt_error is None else shown(found.learnt_error),
                    "-" if row.gap is None or row.gap.value is None else f"{row.gap.value:.3f}",
                    "own" if found.bayes_error.cell_m is None else f"{found.bayes_error.cell_m:g}",
                ]
            )
        counted = "truths and {} secrets" if words else "check-ins of {} users"
        notes = (
            f"on {self.on.name}: {len(self.on)} {counted.format(len(self.on.secrets))}; guessing"
            f" blindly errs {_blind(self.on):.3f}"
        )
        marks = "≈ estimated from samples, otherwise computed from the mechanism's law"
        if any(row.gap is not None for row in self.rows):
            marks += (
                "; gap: leakage on the training data above what no mechanism can go below (proved;"
                " for reports off the grid, on the plane)"
            )
        if any(_over(row) for row in self.rows):
            marks += "; ! over its budget here"
        return f"{text_table(header, lines)}\n{notes}\n{marks}\n\n{others_text(self.rows)}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "on": {
                "name": self.on.name,
                "rows": len(self.on),
                "users": list(self.on.secrets),
                "hash": self.on.hash,
            },
            "mechanisms": [row.as_dict() for row in self.rows],
            "versions": versions(),
        }

    def html(self, path: str | Path) -> None:
        """Write one self-contained HTML file.  It contains true locations, and says so."""
        write_text(path, show.page(self))


def _about(found: Judgement) -> str:
    return "≈" if found.exposed.kind == "estimate" else ""


def _posterior(value: float) -> str:
    """Two digits; what is not certain does not read 1.00."""
    return ">0.99" if 0.995 <= value < 1 - 1e-12 else f"{value:.2f}"


def _over(row: Row) -> str:
    limit = row.entry.max_loss
    return "!" if limit is not None and row.measured.loss.low > limit * (1 + 1e-9) else ""


def _blind(samples: Samples | CategoricalData) -> float:
    return 1 - float(samples.joint().prior.max())


def compare(
    solutions: Iterable[Solution | Run | Entry],
    *,
    on: Samples | CategoricalData | None = None,
    train: Samples | CategoricalData | None = None,
    hits: int = 500,
    seed: int = 0,
    leave_one_out: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Judge solutions, runs or mechanisms of your own on the same samples.

    Main arguments: `on`, the data to judge on (test data, usually); for solutions it is their
    training data unless said.  Other arguments: `train`, the data that the learning adversary
    learns from; `leave_one_out`, solve again without each user (one solve a user and solution, told
    to `progress`) and judge everybody on `on`.
    """
    given = list(solutions)
    if not given:
        raise ProblemError("nothing to compare; expected at least one solution or run")
    first = next((item.problem.samples for item in given if isinstance(item, Solution)), None)
    train = first if train is None else train
    on = train if on is None else on
    if on is None:
        raise ProblemError("say what to compare on: compare(..., on=data.test)")
    if any(_on_words(item) != isinstance(on, CategoricalData) for item in given):
        raise ProblemError(
            "mechanisms on words and on places cannot be compared with each other; compare each"
            " kind by itself"
        )
    plane = _common_plane(given, on if train is None else train)
    on, train = on.on_plane(plane), None if train is None else train.on_plane(plane)
    entries = [_entry(item, on) for item in given]
    region = (
        next((entry.region for entry in entries if entry.region is not None), None) or on.region
    )
    if region is None and isinstance(on, Samples):
        region = Region.around(on.truth, margin_m=500)
    fitted_on = None if train is None or train.hash == on.hash else train
    gaps = gaps_of(given, train)
    rows = []
    for item, entry, gap in zip(given, entries, gaps, strict=True):
        row = replace(_row(entry, on, region, fitted_on, hits=hits, seed=seed), gap=gap)
        problem = problem_behind(item, train)
        if isinstance(on, Samples) and isinstance(fitted_on, Samples) and problem is not None:
            row = replace(
                row,
                membership=membership_test(
                    entry.mechanism, fitted_on, on, loss=entry.loss, seed=seed
                ),
            )
        if leave_one_out and isinstance(item, (Run, Solution)):
            row = replace(row, left_out=_left_out(item, problem, on, hits, progress))
        rows.append(row)
    return Comparison(on=on, train=train, rows=tuple(rows), region=region)


def _left_out(
    item: Solution | Run,
    problem: Problem | None,
    on: Samples | CategoricalData,
    hits: int,
    progress: Callable[[str], None] | None,
) -> tuple[LeftOutUser, ...]:
    """Everybody on `on`, by the mechanisms that each saw all users but one."""
    if problem is None or isinstance(on, CategoricalData):
        raise ProblemError(
            f"{item.name}: users can be left out of places alone, and of the data that the run was"
            " made from, without --data"
        )
    solver, seed = (
        (item.solver, item.seed) if isinstance(item, Solution) else (solver_of(item), seed_of(item))
    )
    tell = None if progress is None else lambda text: progress(f"{item.name}: {text}")
    return solve_without_each(
        problem, solver, on={on.name: on}, seed=seed, hits=hits, progress=tell
    )


def _common_plane(
    given: list[Solution | Run | Entry], data: Samples | CategoricalData
) -> Plane | None:
    """The plane that the mechanisms were made on; the data's, where none of them knows its own."""
    planes = {
        item.mechanism.plane
        for item in given
        if item.mechanism.plane is not None or not isinstance(item, Entry)
    }
    if len(planes) > 1:
        raise ProblemError(
            "the mechanisms lie on planes with different centres; solve them on the same data, or"
            " on data brought to one plane with on_plane"
        )
    return planes.pop() if planes else data.plane


def _on_words(item: Solution | Run | Entry) -> bool:
    return (
        not isinstance(item, Entry)
        and (item if isinstance(item, Run) else item.problem).region is None
    )


def _entry(item: Solution | Run | Entry, on: Samples | CategoricalData) -> Entry:
    if isinstance(item, Entry):
        return item
    if isinstance(item, Run):
        seed, status = item.record.seed, item.record.status
        return Entry(
            item.name,
            item.mechanism,
            item.max_loss,
            item.grid,
            item.region,
            loss_of(item, on),
            seed,
            status,
            item.history,
        )
    problem = item.problem
    grid = None if problem.region is None else problem.grid
    return Entry(
        item.name,
        item.mechanism,
        problem.max_loss,
        grid,
        problem.region,
        problem.loss,
        item.seed,
        item.status,
        item.history,
    )


def _row(
    entry: Entry,
    on: Samples | CategoricalData,
    region: Region | None,
    fitted_on: Samples | CategoricalData | None,
    *,
    hits: int,
    seed: int,
) -> Row:
    """The law is worked out once, or the reports drawn once, and seen through every grid."""
    grids = [] if region is None else [Grid.over(region, cell_m=cell_m) for cell_m in GRIDS_M]
    law = entry.mechanism.law(on.joint(), loss=entry.loss)
    if law is not None:
        learnt = (
            None if fitted_on is None else entry.mechanism.law(fitted_on.joint(), loss=entry.loss)
        )
        epsilon = geo_epsilon_at(entry.mechanism, on)
        measured = judge_law(law, region=region, fitted_on=learnt, geo_epsilon=epsilon)
        return Row(
            entry,
            measured,
            tuple(judge_law(merge_on_grid(law, grid)).bayes_error for grid in grids),
        )
    reports, secret, cost = draw_reports(entry.mechanism, on, hits=hits, seed=seed, loss=entry.loss)
    other = None
    if fitted_on is not None:
        other = draw_reports(entry.mechanism, fitted_on, hits=hits, seed=seed + 1, loss=entry.loss)[
            :2
        ]
    measured = judge_reports(
        secret,
        reports,
        entry.grid or grids[0],
        names=on.secrets,
        hits=hits,
        cost=cost,
        region=region,
        learnt_on=other,
        learnt_names=None if fitted_on is None else fitted_on.secrets,
    )
    secrets = len(on.secrets)
    over = tuple(
        estimate_bayes_error(secret, reports, grid, secrets=secrets, hits=hits) for grid in grids
    )
    return Row(entry, measured, over)
