"""Mechanisms side by side, on the same data, each with its loss beside its leakage."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from sfumato.arguments import guided
from sfumato.data.categories import CategoricalData
from sfumato.data.frames import Tabular
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.samples import Samples, Split
from sfumato.errors import ProblemError, arg
from sfumato.files import write_text
from sfumato.measure.judge import Judgement, judge
from sfumato.measure.membership import Membership, membership_test
from sfumato.measure.objective import Bayes, objective_named
from sfumato.measure.outlook import Outlook
from sfumato.measure.prior import Priors, under_priors
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.custom import Rule, as_mechanism
from sfumato.mechanism.loss import Loss, euclidean, traits_of
from sfumato.show import Drawn, InNotebooks, Printed, page
from sfumato.solver.problem import Problem
from sfumato.study.certify import Gap, gaps_of, problem_behind
from sfumato.study.folder import Run
from sfumato.study.leave_one_out import LeftOutUser
from sfumato.study.leave_one_out import leave_one_out as solve_without_each
from sfumato.study.question import loss_of, seed_of, solver_of
from sfumato.study.record import versions
from sfumato.study.solution import Solution

GRIDS_M = (25.0, 50.0, 100.0, 500.0)


@dataclass(frozen=True, eq=False)
class Contender:
    """A mechanism of your own, or a function, to compare: its name, where it came from, what to
    judge it on.

    `max_loss` is in the unit of `loss`.

    >>> from sfumato.mechanism.simple import Identity
    >>> Contender("the truth", Identity(), max_loss=100.0).name
    'the truth'
    >>> type(Contender("mine", lambda truth, random: truth).mechanism).__name__
    'Function'
    """

    name: str
    mechanism: Mechanism
    max_loss: float | None = None
    grid: Grid | None = None
    region: Region | None = None
    loss: Loss = euclidean
    seed: int | None = None
    status: str = ""
    warnings: tuple[str, ...] = ()
    history: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", as_mechanism(self.mechanism))


Comparable = Solution | Run | Contender | Mechanism | Rule


@dataclass(frozen=True, eq=False)
class Compared:
    """A contender, measured.

    `held_out` says that it was not made from the data that it is measured on; `to_come`, what to
    expect of check-ins to come: as its run recorded it, or from that data.
    """

    contender: Contender
    measured: Judgement
    gap: Gap | None = None
    membership: Membership | None = None
    left_out: tuple[LeftOutUser, ...] = ()
    held_out: bool = False
    to_come: Outlook | None = None

    def __repr__(self) -> str:
        return f"<{self.contender.name}: {self.measured!r}>"

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.contender.name

    @property
    def loss_unit(self) -> str:
        """The unit of its loss and of its budget; empty for a table of losses."""
        return traits_of(self.contender.loss).unit

    @property
    def over_by(self) -> float:
        """How far the measured loss lies over the budget; 0 where it keeps it, has none, or is not
        known.  The mean of held-out check-ins scatters about the budget, so there a loss is over
        only by more than its interval."""
        limit, loss = self.contender.max_loss, self.measured.loss
        if self.held_out:
            loss = self.measured.loss_of_sample or loss
        return loss.value - limit if limit is not None and loss.low > limit * (1 + 1e-9) else 0.0

    @cached_property
    def priors(self) -> Priors | None:
        """The figures under other shares of the users."""
        return under_priors(self.measured)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "max_loss": self.contender.max_loss,
            "over_by": self.over_by,
            "to_come": None if self.to_come is None else self.to_come.as_dict(),
            "seed": self.contender.seed,
            "status": self.contender.status,
            "warnings": self.contender.warnings,
            **self.measured.as_dict(),
            **self.measured.tables,
            "bayes_error_over_grids": [error.as_dict() for error in self.measured.over_grids],
            "proved_on_training_data": None if self.gap is None else self.gap.as_dict(),
            "other_shares": None if self.priors is None else self.priors.as_dict(),
            "membership": None if self.membership is None else self.membership.as_dict(),
            "left_out": [user.as_dict() for user in self.left_out],
        }


@dataclass(frozen=True, eq=False)
class Comparison(Tabular, Printed, Drawn, InNotebooks):
    """Mechanisms judged on the same samples.  Prints as a table; `to_pandas` and `plot` give the
    main figures, `html` writes the report."""

    instead: ClassVar[dict[str, str]] = {
        "summary": "print(comparison)",
        "to_csv": "comparison.to_pandas().to_csv('file.csv')",
        "to_html": "comparison.html('report.html')",
        "save": "comparison.html('report.html')",
        "to_polars": "polars.DataFrame(comparison)",
        "to_dict": "comparison.as_dict()",
        "to_json": "json.dumps(comparison.as_dict())",
        "best": "max(comparison, key=lambda row: row.measured.bayes_error)",
    }

    on: Samples | CategoricalData
    train: Samples | CategoricalData | None
    rows: tuple[Compared, ...]
    region: Region | None

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(row.name for row in self.rows)}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: str | int) -> Compared:
        """A row, by the name of its mechanism or by its number."""
        if isinstance(which, int):
            return self.rows[which]
        for row in self.rows:
            if row.name == which:
                return row
        raise KeyError(f"{which!r} is not one of {', '.join(row.name for row in self.rows)}")

    @property
    def blind_error(self) -> float:
        """The error of a guess that has not seen the report."""
        return 1 - float(self.on.joint().prior.max())

    def columns(self) -> dict[str, Any]:
        """One row per mechanism: its main figures, as the table that is printed."""
        measured = [(row, row.measured) for row in self.rows]
        return {
            "mechanism": [row.name for row in self.rows],
            "max_loss": [row.contender.max_loss for row in self.rows],
            "loss": [judgement.loss.value for _, judgement in measured],
            "bayes_error": [judgement.bayes_error.value for _, judgement in measured],
            "bayes_error_low": [judgement.bayes_error.low for _, judgement in measured],
            "bayes_error_high": [judgement.bayes_error.high for _, judgement in measured],
            "kind": [judgement.bayes_error.kind for _, judgement in measured],
            "cell_m": [judgement.bayes_error.cell_m for _, judgement in measured],
            "information_bits": [judgement.information_bits.value for _, judgement in measured],
            "exposed": [judgement.exposed.value for _, judgement in measured],
            "worst_report": [judgement.worst_report for _, judgement in measured],
            "gap": [None if row.gap is None else row.gap.value for row in self.rows],
        }

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
        """Write one self-contained HTML file.  It contains true locations, says so, and can be read
        by its owner only."""
        write_text(path, page(self), private=True)


@guided(data="on", test="on")
def compare(
    solutions: Comparable | Iterable[Comparable],
    on: Samples | CategoricalData | None = None,
    *,
    train: Samples | CategoricalData | None = None,
    hits: int | None = None,
    seed: int = 0,
    leave_one_out: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Judge solutions, runs or mechanisms of your own on the same samples.

    A mechanism or a function (truth, random) -> reports is held against the budget of the first
    solution or run; name it and set its budget with `Contender`.  Where one of them carries a
    certificate, each mechanism within its budget has a gap.

    Main arguments: `on`, the data to judge on (test data, usually); for solutions it is their
    training data unless said.  Other arguments: `train`, the data that the learning adversary
    learns from; `leave_one_out`, solve again without each user (one solve per user and
    solution, told to `progress`) and judge everybody on `on`.

    Each mechanism has its loss beside its leakage: Bayes error (a probability, higher is more
    private), information (bits, lower is more private) and the rest that `Judgement` lists.

    >>> import sfumato as sf
    >>> data = sf.four_corners(seed=0)
    >>> same = sf.Contender("one place", sf.mechanism.constant((0.0, 0.0)))
    >>> truth = sf.Contender("the truth", sf.mechanism.Identity())
    >>> for row in compare([same, truth], on=data.test).rows:
    ...     row
    <one place: <Judgement: loss 213.9, Bayes error 0.750, 0.000 bits, 0.0% exposed>>
    <the truth: <Judgement: loss 0, Bayes error 0.000, 2.000 bits, 100.0% exposed>>
    """
    if isinstance(on, Split) or isinstance(train, Split):
        raise ProblemError(
            "got a Split of training and test data; say which part to compare on: on=data.test or"
            " on=data.train"
        )
    if on is not None and not isinstance(on, Samples | CategoricalData):
        raise ProblemError(
            f"expected data to compare on; got {type(on).__name__}: compare several as a list,"
            " compare([first, second], on=data.test)"
        )
    given = _contenders(solutions)
    first = next((item.problem.samples for item in given if isinstance(item, Solution)), None)
    train = first if train is None else train
    on = train if on is None else on
    if on is None:
        raise ProblemError("say what to compare on: compare(..., on=data.test)")
    if any(_on_categories(item) != isinstance(on, CategoricalData) for item in given):
        raise ProblemError(
            "mechanisms on categories and on places cannot be compared with each other; compare"
            " each kind by itself"
        )
    plane = _common_plane(given, on if train is None else train)
    on, train = on.on_plane(plane), None if train is None else train.on_plane(plane)
    contenders = [_contender(item, on) for item in given]
    regions = [contender.region for contender in contenders if contender.region is not None]
    region = next(iter(regions), None) or on.region
    if region is None and isinstance(on, Samples):
        region = Region.around(on.truth, margin_m=500)
    grids = [] if region is None else [Grid.over(region, cell_m=cell_m) for cell_m in GRIDS_M]
    fitted_on = None if train is None or train.hash == on.hash else train
    rows = []
    gaps = gaps_of(given, train, hits=hits, seed=seed)
    for item, contender, gap in zip(given, contenders, gaps, strict=True):
        measured = judge(
            contender.mechanism,
            on,
            loss=contender.loss,
            region=region,
            fitted_on=fitted_on,
            sampled_on=contender.grid or next(iter(grids), None),
            hits=hits,
            seed=seed,
            over=grids,
        )
        problem, membership = problem_behind(item, train), None
        if isinstance(on, Samples) and isinstance(fitted_on, Samples) and problem is not None:
            membership = membership_test(
                contender.mechanism, fitted_on, on, loss=contender.loss, seed=seed
            )
        left_out: tuple[LeftOutUser, ...] = ()
        if leave_one_out and isinstance(item, (Run, Solution)):
            left_out = _left_out(item, problem, on, hits, progress)
        made_from = _made_from(item)
        held_out = fitted_on is not None if made_from is None else made_from != on.hash
        known = fitted_on is not None and made_from in (None, fitted_on.hash)
        to_come = _to_come(item, measured if known else None)
        rows.append(Compared(contender, measured, gap, membership, left_out, held_out, to_come))
    return Comparison(on=on, train=train, rows=tuple(rows), region=region)


def _contenders(given: Comparable | Iterable[Comparable]) -> list[Solution | Run | Contender]:
    """What was given, with a name and the others' budget for a bare mechanism or function."""
    if isinstance(given, Mapping):
        raise ProblemError(
            "got a dictionary; expected a list: compare(list(named.values()), on=data.test), with"
            " sf.Contender(name, mechanism) for a mechanism with a name of its own"
        )
    several = isinstance(given, Iterable) and not isinstance(given, Mechanism)
    items: list[Any] = list(given) if several else [given]  # type: ignore[arg-type]
    if not items:
        raise ProblemError("nothing to compare; expected at least one solution or run")
    known = next((item for item in items if isinstance(item, Solution | Run)), None)
    behind: Any = known.problem if isinstance(known, Solution) else known
    return [
        item
        if isinstance(item, Solution | Run | Contender)
        else Contender(
            _name_of(item),
            as_mechanism(item),
            max_loss=None if behind is None else behind.max_loss,
            region=None if behind is None else behind.region,
        )
        for item in items
    ]


def _name_of(item: object) -> str:
    """A mechanism's kind, or the function's own name."""
    if isinstance(item, Mechanism):
        return getattr(item, "kind", type(item).__name__)
    name = str(getattr(item, "__name__", type(item).__name__))
    return "function" if name == "<lambda>" else name


def _made_from(item: Solution | Run | Contender) -> str | None:
    """The hash of the data that a mechanism was made from."""
    if isinstance(item, Contender):
        return None
    return item.record.data.hash if isinstance(item, Run) else item.problem.samples.hash


def _to_come(item: Solution | Run | Contender, held_out: Judgement | None) -> Outlook | None:
    """As the solver or the run has it, else from the judgement on its held-out check-ins."""
    if isinstance(item, Contender):
        return None if held_out is None else Outlook.held_out(held_out, Bayes())
    outlook = item.record.to_come if isinstance(item, Run) else item.outlook
    if outlook is not None or held_out is None:
        return outlook
    name = item.record.objective if isinstance(item, Run) else item.problem.objective.name
    return Outlook.held_out(held_out, objective_named(name, held_out.joint.secrets))


def _left_out(
    item: Solution | Run,
    problem: Problem | None,
    on: Samples | CategoricalData,
    hits: int | None,
    progress: Callable[[str], None] | None,
) -> tuple[LeftOutUser, ...]:
    """Everybody on `on`, by the mechanisms that each saw all users but one."""
    if problem is None or isinstance(on, CategoricalData):
        raise ProblemError(
            f"{item.name}: users can be left out of places alone, and of the data that the run was"
            f" made from, without {arg('data')}"
        )
    solver, seed = (
        (item.solver, item.seed) if isinstance(item, Solution) else (solver_of(item), seed_of(item))
    )
    tell = None if progress is None else lambda text: progress(f"{item.name}: {text}")
    return solve_without_each(
        problem, solver, on={on.name: on}, seed=seed, hits=hits, progress=tell
    )


def _common_plane(
    given: list[Solution | Run | Contender], data: Samples | CategoricalData
) -> Plane | None:
    """The plane that the mechanisms were made on; the data's, where none of them knows its own."""
    planes = {
        item.mechanism.plane
        for item in given
        if item.mechanism.plane is not None or not isinstance(item, Contender)
    }
    if len(planes) > 1:
        raise ProblemError(
            "the mechanisms lie on planes with different centres; solve them on the same data, or"
            " on data brought to one plane with on_plane"
        )
    return planes.pop() if planes else data.plane


def _on_categories(item: Solution | Run | Contender) -> bool:
    return (
        not isinstance(item, Contender)
        and (item if isinstance(item, Run) else item.problem).region is None
    )


def _contender(item: Solution | Run | Contender, on: Samples | CategoricalData) -> Contender:
    if isinstance(item, Contender):
        return item
    asked: Any = item if isinstance(item, Run) else item.problem
    source: Any = item.record if isinstance(item, Run) else item
    return Contender(
        item.name,
        item.mechanism,
        asked.max_loss,
        None if asked.region is None else asked.grid,
        asked.region,
        loss_of(item, on) if isinstance(item, Run) else item.problem.loss,
        source.seed,
        source.status,
        source.warnings,
        item.history,
    )
