"""Linked reports on four data sets: the Bayes error of 1, 5, 10 and 50 reports for mechanisms made
for 1, 5, 10 and endless ones, on training and held-out check-ins, beside what is proved.

Every mechanism is `Codebook()`, on a draw that no setting was chosen on; the proofs are exact.  In
cities, those for ten and for one report are made on four draws.

python -m paper.runs.linked [DATA ...]
"""

import argparse
import time
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS
from paper.runs import to_come
from paper.tables import fill, saved, say
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import PAPER_REGION
from sfumato.measure.certificate import Proof, bound_on_the_grid
from sfumato.measure.linked import ENDLESS, Reports, least_overlap
from sfumato.measure.repeated import linked_bayes_error
from sfumato.mechanism.base import Mechanism
from sfumato.solver import Codebook, Problem
from sfumato.solver.exact import best_within, equal_laws
from sfumato.solver.outcome import Learned
from sfumato.study.solve import solve

DRAW = 20
FURTHER = (21, 22, 23)  # draws, of cities: what ten reports tell scatters between draws
_RATIO = ("1", "10")  # made for
MADE_FOR: tuple[Reports, ...] = (10, 1, ENDLESS, 5)
COUNTS = (1, 5, 10, 50)
DATA = {  # which of `to_come`'s settings it is, and the budgets in metres
    "paris": ("experiment-4", (300.0, 518.0)),
    "stockholm": ("stockholm-300", (300.0, 518.0)),
    "san-francisco": ("san-francisco-6-300", (300.0, 518.0)),
    "four-corners": ("experiment-2", (173.0, 300.0, 518.0)),
}
SOLVER = Codebook()
SETTINGS = repr(SOLVER)
_CELLS = 260  # of 25 m, of the paper's region
_GAP, _ENDLESS_GAP = 0.005, 0.008  # of a proof; of the endless budget, as a share


@cache
def split_of(data: str, draw: int = DRAW) -> Split:
    """A draw of a data set."""
    return to_come.SETTINGS[DATA[data][0]].data(draw)


def problem_of(data: str, budget: float | None, reports: Reports, *, draw: int = DRAW) -> Problem:
    """What is solved; budget in metres."""
    square = to_come.SETTINGS[DATA[data][0]].square
    return Problem(
        split_of(data, draw).train,
        max_loss=budget,
        region=PAPER_REGION if square else None,
        cells=_CELLS if square else None,
        reports=reports,
    )


def made(asked: dict[str, Any]) -> dict[str, Any]:
    """A wanted row: one mechanism on both parts of the draw."""
    draw = asked["draw"]
    clock, split = time.process_time(), split_of(asked["data"], draw)
    count: Reports = ENDLESS if asked["made_for"] == ENDLESS else int(asked["made_for"])
    problem = problem_of(asked["data"], asked["budget_m"], count, draw=draw)
    solution = solve(problem, SOLVER, seed=draw, proof="none")
    mechanism, facts = solution.mechanism, solution.ending.facts
    single = isinstance(facts, Learned) and facts.reports is not None
    assert split.test is not None
    parts = {"train": _figures(mechanism, split.train), "test": _figures(mechanism, split.test)}
    say(f"{asked}: {parts}")
    learned = {"learned_for": "1" if single else asked["made_for"]}
    return asked | parts | learned | {"processor_seconds": time.process_time() - clock}


def _figures(mechanism: Mechanism, samples: Samples) -> dict[str, Any]:
    """Loss, Bayes errors and least overlap; the adversary knows the law of these samples."""
    law = mechanism.law(samples.joint())
    assert law is not None
    errors = [asdict(error) for error in linked_bayes_error(law.joint, COUNTS)]
    return {"loss_m": law.loss, "bayes_errors": errors, "overlap": least_overlap(law.joint)}


def proved(asked: dict[str, Any]) -> dict[str, Any]:
    """What no mechanism on the grid passes, by the checker: the Bayes error of one report and the
    least overlap within the budget; and the loss from which linking is useless."""
    clock, found = time.process_time(), dict(_endless(asked["data"]))
    counts: tuple[Reports, ...] = (1, ENDLESS)
    for reports, name in zip(counts, ("bayes_error_at_most", "overlap_at_most"), strict=True):
        problem = problem_of(asked["data"], asked["budget_m"], reports)
        best = best_within(problem, gap=_GAP)
        found[name] = 1 - _bound(problem, best.scores, best.multipliers, best.pair_weights)
    say(f"{asked}: {found}")
    return asked | found | {"processor_seconds": time.process_time() - clock}


@cache
def _endless(data: str) -> dict[str, float]:
    problem = problem_of(data, None, ENDLESS)
    found = equal_laws(problem, gap=_ENDLESS_GAP)
    bound = _bound(problem, found.scores, np.ones(1))
    return {"endless_m": found.loss, "endless_at_least_m": bound}


def _bound(problem: Problem, *proof: Any) -> float:
    return bound_on_the_grid(problem, Proof(problem.report_places, *proof))[0]


def wanted(names: tuple[str, ...] = tuple(DATA)) -> list[dict[str, Any]]:
    """Every row, as far as it is known before it is run."""
    settings = [(name, budget) for name in names for budget in DATA[name][1]]
    first = [(made_for, DRAW) for made_for in (*map(str, MADE_FOR), "proof")]
    further = [(made_for, draw) for draw in FURTHER for made_for in _RATIO]
    return [
        {"data": name, "budget_m": budget, "made_for": made_for, "draw": draw, "settings": SETTINGS}
        for made_for, draw in (*first, *further)
        for name, budget in settings
        if draw == DRAW or name != "four-corners"
    ]


def main(folder: Path = RESULTS, names: tuple[str, ...] = tuple(DATA)) -> None:
    """What the folder does not hold yet."""
    keys = ("data", "budget_m", "made_for", "draw")
    todo = {
        tuple(one[key] for key in keys): partial(
            proved if one["made_for"] == "proof" else made, one
        )
        for one in wanted(names)
    }
    known = saved(folder / "linked.json", SETTINGS, *keys)
    fill(folder / "linked.json", "python -m paper.runs.linked", todo, known)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m paper.runs.linked", description=__doc__)
    parser.add_argument("data", nargs="*", choices=[[], *DATA], metavar="DATA")
    main(names=tuple(parser.parse_args().data or DATA))
