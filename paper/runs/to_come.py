"""The default codebook on check-ins to come: held-out loss and Bayes error beside the budget, the
cross-fitted estimate, planar Laplace and the coin, draw by draw.

Settings were chosen on draws 10 to 13 of experiment 4 and on draws 100 and 101 of San Francisco,
the learning of large areas on draws 30 to 34 of the city with ten users; no draw below is among
them.
Each draw is solved in expectation and with a confidence of 95 %, on the same folds; where the
former is known already, the latter alone.

python -m paper.runs.to_come [SETTING ...]
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS, data_folder, load
from paper.tables import arguments, fill, saved, say
from sfumato.data.grid import Grid
from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import PAPER_REGION
from sfumato.measure.exact import bayes_error
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.solver import Codebook, Coin, Problem
from sfumato.solver.baselines import first_epsilon
from sfumato.solver.codebook.calibrate import calibrated
from sfumato.solver.codebook.run import CrossFittedTraining, States, best_on_folds
from sfumato.solver.deadline import NEVER
from sfumato.solver.learner import train
from sfumato.study.solve import solve

STOCKHOLM = (59.3326, 18.0649, 4500.0)
CONFIDENCES = (None, 0.95)
_CELLS = 260
_REACH = 20  # budgets that noise reaches, on both sides together
_QUIET: Any = {"deadline": NEVER, "progress": None, "checkpoint": None}


@dataclass(frozen=True)
class Setting:
    """Data by draw, a budget in metres, the draws; `square` is the paper's region and grid."""

    data: Callable[[int], Split]
    budget: float
    draws: tuple[int, ...]
    square: bool = True


def _stockholm(draw: int) -> Split:
    around = read_checkins(data_folder() / "gowalla-stockholm.csv.gz", square=STOCKHOLM)
    return around.top_users(6).split(82, 20, seed=draw, overlap_weight=0.15)


@cache
def _san_francisco(users: int) -> Samples:
    return read_checkins(data_folder() / "gowalla-sanfrancisco.csv.gz").top_users(users)


def _city(users: int, train_each: int, test_each: int, draw: int) -> Split:
    return _san_francisco(users).split(train_each, test_each, seed=draw)


def _settings() -> dict[str, Setting]:
    found = {
        "experiment-2": Setting(partial(load, "synthetic"), 173.0, tuple(range(10))),
        "experiment-4": Setting(partial(load, "gowalla"), 518.0, tuple(range(20, 44))),
    }
    for budget in (300.0, 518.0):
        found[f"stockholm-{budget:.0f}"] = Setting(_stockholm, budget, tuple(range(20, 28)))
        for users in (6, 20):
            found[f"san-francisco-{users}-{budget:.0f}"] = Setting(
                partial(_city, users, 82, 200), budget, tuple(range(20, 28)), square=False
            )
    for budget in (300.0, 1000.0):
        for users, per_user in ((10, (200, 50)), (100, (60, 20))):
            found[f"city-{users}-{budget:.0f}"] = Setting(
                partial(_city, users, *per_user), budget, tuple(range(20, 24)), square=False
            )
    return found


SETTINGS = _settings()
# the rows were named so when the proof was a setting
SOLVER = f"{repr(Codebook())[:-1]}, certify=False), decision 0026"
PROMISE = "a quarter as many check-ins"  # what the confidence is for
_MOST_TERMS = 6e8  # cells times check-ins for planar Laplace, some seconds


def draw(name: str, number: int, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """One draw: the folds once, the net for each confidence, the baselines at the budget; of a
    `known` row, whose confidence is for another period, that net alone."""
    setting = SETTINGS[name]
    data = setting.data(number)
    assert data.test is not None
    problem = Problem(
        data.train,
        max_loss=setting.budget,
        region=PAPER_REGION if setting.square else None,
        cells=_CELLS if setting.square else None,
    )
    clock, folds = time.process_time(), None
    rows: dict[str, dict[str, Any]] = {}
    for confidence in CONFIDENCES if known is None else CONFIDENCES[1:]:
        solver = Codebook(confidence=confidence)
        both = CrossFittedTraining(solver, problem, number)
        if folds is None:
            folds = train(both.folds, **_QUIET).state
        fitted = both.fitted(States(folds, both.first().net))
        state = train(both.net, **_QUIET).state
        mechanism: Mechanism = calibrated(
            both.net.on_the_grid(state), both.net.problem, solver
        ).mechanism
        outlook, better, mechanism = best_on_folds(fitted, solver, mechanism, seed=number)
        rows["expected" if confidence is None else "confident"] = {
            "train": _figures(mechanism, data.train),
            "test": _figures(mechanism, data.test),
            "cross_fitted": outlook.as_dict(),
            "scale": float(fitted.scale[0]),
            "returned": "codebook" if better is None else better.name,
        }
        now = rows["expected" if confidence is None else "confident"]
        if confidence is not None:
            now["promise"] = PROMISE
        say(
            f"{name}, draw {number}, confidence {confidence}: held-out"
            f" {now['test']['loss_m']:.0f} m, Bayes error {now['test']['bayes_error']:.3f}"
        )
    seconds = time.process_time() - clock
    if known is not None:
        return {**known, **rows}
    noise = PlanarLaplace(first_epsilon(problem))
    cells = _cells_of_noise(data.test, problem)
    coin = solve(problem, Coin()).mechanism
    return {
        "setting": name,
        "draw": number,
        "settings": SOLVER,
        "budget_m": setting.budget,
        "checkins": {"train": len(data.train), "test": len(data.test)},
        **rows,
        "laplace_test": _figures(noise, data.test, cells),
        "laplace_cell_m": cells.cell_m,
        "coin_test": _figures(coin, data.test),
        "processor_seconds": seconds,
    }


def _cells_of_noise(samples: Samples, problem: Problem) -> Grid:
    """The grid that reports are snapped to; where that is too much, a sixth of the budget."""
    reach_m = np.ptp(samples.truth, axis=0).max() + _REACH * problem.scale_m
    if (reach_m / problem.grid.cell_m) ** 2 * len(samples) <= _MOST_TERMS:
        return problem.grid
    return Grid(cell_m=max(problem.grid.cell_m, problem.scale_m / 6))


def _figures(mechanism: Mechanism, samples: Samples, grid: Grid | None = None) -> dict[str, float]:
    law = mechanism.law(samples.joint(), grid=grid)
    if law is None:  # noise that was snapped to many cells
        law = mechanism.law(samples.joint(), grid=Grid(cell_m=50.0))
    assert law is not None
    return {"loss_m": law.loss, "bayes_error": bayes_error(law.joint)}


def main(folder: Path = RESULTS, names: tuple[str, ...] = tuple(SETTINGS)) -> None:
    """What the folder does not hold yet."""
    path = folder / "to_come.json"
    todo = {
        (name, number): partial(draw, name, number)
        for name in names
        for number in SETTINGS[name].draws
    }
    known = saved(path, SOLVER, "setting", "draw")
    stale = [key for key in todo if key in known and not _promised(known[key])]
    todo |= {key: partial(draw, *key, known[key]) for key in stale}
    fill(path, "python -m paper.runs.to_come", todo, known, stale)


def _promised(row: dict[str, Any]) -> bool:
    """Whether the row's confidence is for the period that is promised now."""
    return row["confident"].get("promise") == PROMISE


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("settings", nargs="*", choices=[[], *SETTINGS], metavar="SETTING")
    main(names=tuple(parser.parse_args().settings or SETTINGS))
