"""The frontier behind the slider: a bracket on coarse cells that narrows while it is looked at,
then one budget on fine cells, and where asked for the trade-off of linked reports."""

import queue
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import SfumatoError
from sfumato.measure.linked import ENDLESS, Reports
from sfumato.measure.objective import Bayes, Information
from sfumato.mechanism.loss import euclidean
from sfumato.randomness import generator
from sfumato.solver.baselines import cheapest_place
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import best_within
from sfumato.solver.frontier import Curve, frontier
from sfumato.solver.problem import CELL_M, Problem
from sfumato.studio.parse import in_page
from sfumato.study.linked import LinkedTradeOff, linked_trade_off

MOST_PLACES = 5000  # different truths beyond which a solve takes minutes
_COARSE_REPORTS = 130
_STEPS = 48
_NICE = (1, 2, 2.5, 5, 10)
_GAP = 0.01
_REFINED_GAP = 0.003
LINKED_COUNTS: tuple[Reports, ...] = (1, 5, 10, 50, ENDLESS)
_LINKED_BUDGETS = 8
_MOST_LINKED_CHECKINS = 240  # all users together: beyond them a budget takes many seconds

Tell = Callable[[dict[str, Any]], None]


def prove_task(task: dict[str, Any], tell: Tell, inbox: "queue.Queue[dict[str, Any]]") -> None:
    """Tell the curve as it narrows; then answer questions about single budgets until the server
    goes away."""
    data = replace(Recipe.from_dict(task["recipe"]), source=task["source"]).load().train
    coarse = coarse_problem(data, task["cell_m"])
    budgets = budgets_of(coarse)

    def on_curve(curve: Curve) -> None:
        about = {"cell_m": coarse.grid.cell_m, "objective": curve.objective.name}
        tell({"kind": "curve", **about, **curve_as_dict(curve)})

    frontier(coarse, budgets, gap=_GAP, time_limit=task["time_limit"], watch=on_curve)
    tell({"kind": "proved", "cell_m": coarse.grid.cell_m})
    warm: dict[tuple[str, float], np.ndarray] = {}
    linked = False

    def answer(asked: dict[str, Any]) -> None:
        """What was asked and whatever else has come: of budgets only the last one matters."""
        nonlocal linked
        questions = {asked["kind"]: asked}
        while not inbox.empty():
            later = inbox.get()
            questions[later["kind"]] = later
        if "refine" in questions:
            tell(refined(data, questions["refine"], warm))
        if "link" in questions and not linked:
            linked = True
            link(data, coarse, questions["link"], tell, between)

    def between() -> None:
        """Budgets that were asked for while linked reports are worked out."""
        if not inbox.empty():
            answer(inbox.get())

    while True:
        answer(inbox.get())


def link(
    data: Samples,
    coarse: Problem,
    asked: dict[str, Any],
    tell: Tell,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Tell the trade-off of linked reports, budget by budget, on the coarse cells; of much data, of
    some check-ins of each user."""
    few = thinned(data)
    budgets = budgets_of(coarse)

    def on_point(trade_off: LinkedTradeOff, *, done: bool = False) -> None:
        tell({"kind": "linked", "checkins": len(few), "done": done, **trade_off.as_dict()})
        between()

    try:
        trade_off = linked_trade_off(
            few,
            counts=LINKED_COUNTS,
            first=float(budgets[0]),
            last=float(budgets[-1]),
            points=_LINKED_BUDGETS,
            cell_m=coarse.grid.cell_m,
            gap=_GAP,
            time_limit=asked["time_limit"],
            watch=on_point,
        )
    except SfumatoError as error:
        tell({"kind": "linked", "error": in_page(error), "done": True})
        return
    on_point(trade_off, done=True)


def thinned(data: Samples) -> Samples:
    """Data with so few check-ins that linked reports are worked out in seconds: as many of each
    user, drawn by a fixed seed."""
    if len(data) <= _MOST_LINKED_CHECKINS:
        return data
    each = max(2, _MOST_LINKED_CHECKINS // len(data.secrets))
    return data.take(data.some_of_each(each, generator(0)))


def coarse_problem(data: Samples, cell_m: float | None) -> Problem:
    """The problem on the finest multiple of the cells that leaves few enough of them."""
    side = cell_m or CELL_M
    while True:
        problem = Problem(data, max_loss=farthest_budget(data), cell_m=side)
        if len(problem.report_places) <= _COARSE_REPORTS:
            return problem
        side *= 2


def farthest_budget(data: Samples) -> float:
    """What one fixed place for everybody costs: beyond it there is nothing to gain.  For much data,
    at its mean."""
    if len(data) > MOST_PLACES:
        return float(euclidean(data.truth, data.truth.mean(axis=0)).mean()) or 1.0
    wide = Problem(data, max_loss=1.0)
    losses = wide.loss(wide.places, np.array(cheapest_place(wide))[None, :])
    return float(wide.joint.place_probability @ losses) or 1.0


def budgets_of(problem: Problem) -> np.ndarray:
    """Round budgets from the smallest that can be kept to what one fixed place costs."""
    low, high = problem.smallest_loss, float(problem.max_loss or 0.0)
    rough = max(high - low, 1e-3 * high) / _STEPS
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * min(nice for nice in _NICE if nice * unit >= rough * (1 - 1e-9))
    first = np.floor(low / step + 1e-9) + 1
    return step * np.arange(first, max(np.ceil(high / step - 1e-9), first) + 1)


def curve_as_dict(curve: Curve) -> dict[str, Any]:
    """Bayes errors or bits: reached by some mechanism, and what none on the cells can pass."""
    reached, bound = curve.objective.shown(curve.reached), curve.objective.shown(curve.bound)
    return {"budgets": curve.budgets, "reached": reached, "bound": bound, "solves": curve.solves}


def refined(
    data: Samples, asked: dict[str, Any], warm: dict[tuple[str, float], np.ndarray]
) -> dict[str, Any]:
    """Both figures at one budget on the cells that will be released, started from what was found
    nearby."""
    problem = Problem(data, max_loss=asked["max_loss"], cell_m=asked["cell_m"])
    cell_m, least = problem.grid.cell_m, problem.smallest_loss
    answer: dict[str, Any] = {"kind": "refined", "max_loss": asked["max_loss"], "cell_m": cell_m}
    if not least <= asked["max_loss"]:
        said = f"on {cell_m:g} m cells no mechanism stays below {least:.4g} m"
        return {**answer, "error": said}
    for objective in (Bayes(), Information()):
        asked_problem = replace(problem, objective=objective)
        key = (objective.name, problem.grid.cell_m)
        start = (
            np.unique(cKDTree(problem.report_places).query(warm[key])[1]) if key in warm else None
        )
        gap = _REFINED_GAP * objective.nats
        optimum = best_within(
            asked_problem,
            gap=gap,
            deadline=Deadline.after(asked["time_limit"]),
            first_reports=start,
        )
        warm[key] = problem.report_places[optimum.reports]
        values = [optimum.leakage / objective.nats, optimum.bound / objective.nats]
        answer[objective.name] = [objective.shown(value) for value in values]
    return answer
