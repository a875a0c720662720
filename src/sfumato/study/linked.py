"""The trade-off for linked reports: how well n reports of one user can be hidden at each budget,
how similar users can be made, and from which loss on linking is useless."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sfumato.data.categories import CategoricalData
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.measure.certificate import Proof, bound_on_the_grid
from sfumato.measure.estimate import Estimate
from sfumato.measure.linked import ENDLESS, Reports
from sfumato.measure.repeated import linked_bayes_error
from sfumato.mechanism.loss import Loss, euclidean, traits_of
from sfumato.show import Printed
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import best_within, equal_laws, joint_of, laws_for, program_of
from sfumato.solver.outcome import EndlessProved
from sfumato.solver.problem import BAYES, Problem
from sfumato.study.trade_off import Foretold, check_range


@dataclass(frozen=True)
class LinkedPoint:
    """One budget: the Bayes errors of mechanisms made for each number of reports, the largest least
    overlap that was reached, and what no mechanism on the grid goes beyond."""

    max_loss: float
    bayes_errors: tuple[Estimate, ...]
    overlap: float
    overlap_bound: float


@dataclass(frozen=True, eq=False)
class LinkedTradeOff(Printed):
    """Bayes error against budget for each number of reports in `counts`, on the training data.

    `blind` is the Bayes error of a guess that sees no report; `endless` the loss from which on
    linking is useless, None where it was not asked for.
    """

    problem: Problem
    counts: tuple[int, ...]
    points: tuple[LinkedPoint, ...]
    blind: float
    endless: EndlessProved | None

    @property
    def loss_unit(self) -> str:
        """The unit of losses and budgets."""
        return traits_of(self.problem.loss).unit

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "reports": list(self.counts),
            "points": [asdict(point) for point in self.points],
            "blind_bayes_error": self.blind,
            "endless_budget": None if self.endless is None else asdict(self.endless),
            "cell_m": self.problem.grid.cell_m,
            "data_hash": self.problem.samples.hash,
        }


def linked_trade_off(
    data: Samples | CategoricalData,
    *,
    counts: Sequence[Reports],
    first: float,
    last: float,
    points: int,
    cell_m: float | None = None,
    cells: int | None = None,
    gap: float = 0.005,
    loss: Loss = euclidean,
    time_limit: float | None = None,
    progress: Callable[[str], None] = lambda text: None,
    watch: Callable[[LinkedTradeOff], None] = lambda trade_off: None,
    foretold: Foretold | None = None,
) -> LinkedTradeOff:
    """Solve at each budget for each number of reports; `first` and `last` are in the unit of
    `loss`, `gap` is of overlaps and, as a share, of the endless budget, which is one of the budgets
    where it lies between them.

    After `time_limit` seconds the budgets that are left are left out.  `watch` is given what is
    known after each budget; `foretold` is called before, with nothing: what it takes is not known.
    """
    check_range(data, first, last)
    deadline = Deadline.after(time_limit)
    numbers = tuple(sorted({count for count in counts if isinstance(count, int)}))
    problem = Problem(data, max_loss=last, cell_m=cell_m, cells=cells, loss=loss, reports=ENDLESS)
    problem.check_feasible()
    if foretold is not None:
        foretold(problem, None)
    one_law, endless = None, None
    if ENDLESS in counts:
        about = "the loss from which linking is useless"
        progress(about)
        one_law = equal_laws(
            problem, gap=gap, deadline=deadline, progress=lambda news: progress(f"{about}: {news}")
        )
        own = replace(problem, max_loss=None)
        bound = bound_on_the_grid(own, Proof(own.report_places, one_law.scores, np.ones(1)))[0]
        endless = EndlessProved(one_law.loss, bound)
    curve: list[LinkedPoint] = []
    blind = 1 - float(problem.joint.prior.max())

    def so_far() -> LinkedTradeOff:
        return LinkedTradeOff(problem, numbers, tuple(curve), blind, endless)

    budgets = np.linspace(first, last, points)
    if one_law is not None and first < one_law.loss < last:
        budgets = np.union1d(budgets, one_law.loss)
    for number, budget in enumerate(budgets, 1):
        if deadline.passed and curve:
            break
        if one_law is not None and one_law.loss <= budget:
            told_nothing = (Estimate.exact(blind),) * len(numbers)
            curve.append(LinkedPoint(float(budget), told_nothing, 1.0, 1.0))
            watch(so_far())
            continue
        asked = replace(problem, max_loss=float(budget))
        where = f"budget {number} of {len(budgets)}"

        def tell(news: str, where: str = where) -> None:
            progress(f"{where}: {news}")

        point = _point(asked, numbers, gap=gap, deadline=deadline, progress=tell)
        if curve:  # what keeps a smaller budget keeps this one
            pairs = zip(curve[-1].bayes_errors, point.bayes_errors, strict=True)
            best = tuple(max(pair, key=lambda error: error.value) for pair in pairs)
            point = replace(point, bayes_errors=best)
        curve.append(point)
        watch(so_far())
    return so_far()


def _point(
    asked: Problem,
    counts: tuple[int, ...],
    *,
    gap: float,
    deadline: Deadline,
    progress: Callable[[str], None],
) -> LinkedPoint:
    """All numbers of reports at one budget: every law that is found is tried for each."""
    assert asked.max_loss is not None
    task = program_of(asked)
    progress("the largest least overlap")
    least = best_within(asked, gap=gap, deadline=deadline)
    proof = Proof(asked.report_places, least.scores, least.multipliers, least.pair_weights)
    bound = bound_on_the_grid(asked, proof)[0]  # by the checker, not the solver
    progress("the best law for one report")
    alone = best_within(
        replace(asked, reports=1, objective=BAYES),
        gap=gap,
        deadline=deadline,
        first_reports=least.reports,
    )
    several = tuple(count for count in counts if count > 1)
    made = laws_for(task, several, [least], gap=gap, deadline=deadline, progress=progress)
    laws = [*made, alone]
    tables: list[Joint] = [joint_of(task, law) for law in laws]
    overlap = 1 - least.leakage
    progress(f"Bayes errors of {len(laws)} laws")
    errors = [linked_bayes_error(table, counts) for table in tables] if counts else []
    best = tuple(
        max((of_law[at] for of_law in errors), key=lambda error: error.value)
        for at in range(len(counts))
    )
    return LinkedPoint(asked.max_loss, best, overlap, max(overlap, 1 - max(bound, 0.0)))
