"""Planar Laplace and the codebook in the PWS Cup of 2019 (`paper.pws_cup` has its scores).

Codebooks are learned from the reference traces of all users: for one report, for the Bayes error or
for the information, and for a whole trace.  They protect the original traces; reports are brought
to the nearest region.

python -m paper.runs.pws_cup
"""

import csv
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS, data_folder
from paper.pws_cup import EVENTS, MIX, SIDE, STEP_M, USERS, contest, regions_of, scores
from paper.tables import fill, run_module, saved, say
from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.measure.objective import Bayes, Information
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.solver import Codebook, Problem
from sfumato.study.solve import solve

SEEDS = (0, 1, 2)  # of draws and of the order of traces
DRAWS = 2000
LAPLACE = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)  # per kilometre, as in the printed rows A4
BUDGETS = (500.0, 1000.0)
OBJECTIVES = ((1, "bayes"), (1, "information"), (EVENTS, "overlap"))
SOLVER = Codebook(made_for="these", places=SIDE * SIDE, steps=1500, distillation=0.0)
JUDGED = repr((SEEDS, MIX, DRAWS))
SETTINGS = repr((SOLVER, SEEDS, MIX, DRAWS))


def judged(mechanism: Mechanism | None) -> dict[str, Any]:
    """All seeds of one mechanism (None: the truth)."""
    places, truth = contest().places, contest().original
    law, runs = np.eye(len(places)), []
    if mechanism is not None:
        drawn = regions_of(mechanism.sample(np.repeat(places, DRAWS, axis=0), seed=9))
        law = np.stack(
            [np.bincount(row, minlength=len(places)) for row in drawn.reshape(-1, DRAWS)]
        )
        law = law / DRAWS
    for seed in SEEDS:
        reports = truth
        if mechanism is not None:
            sent = mechanism.sample(places[truth].reshape(-1, 2), seed=seed)
            reports = regions_of(sent).reshape(truth.shape)
        runs.append(scores(reports, law, seed))
    loss = float(np.mean(np.linalg.norm(places[truth] - places[reports], axis=-1)))
    return {"loss_m": loss, **{name: [run[name] for run in runs] for name in runs[0]}}


def learned(budget: float, made_for: int, objective: str) -> Mechanism:
    """The codebook for an objective, made for this number of reports."""
    places = contest().places
    samples = Samples(
        secret=np.repeat(np.arange(USERS), EVENTS),
        truth=places[contest().reference.ravel()],
        secrets=tuple(f"user {user + 1}" for user in range(USERS)),
    )
    middle = tuple(places.mean(axis=0).tolist())
    region = Region(side_m=float(np.ptp(places, axis=0).max() + STEP_M.max()), centre=middle)
    problem = Problem(
        samples,
        max_loss=budget,
        region=region,
        cells=SIDE,
        reports=made_for,
        objective=Information() if objective == "information" else Bayes(),
    )
    return solve(problem, SOLVER, seed=0, proof="none").mechanism


def row(name: str) -> dict[str, Any]:
    """One mechanism by its name."""
    clock, (kind, *numbers) = time.process_time(), name.split("-")
    mechanism: Mechanism | None = None
    if kind == "laplace":
        mechanism = PlanarLaplace(float(numbers[0]) / 1000)
    elif kind == "codebook":
        mechanism = learned(float(numbers[0]), int(numbers[1]), numbers[2])
    settings = SETTINGS if kind == "codebook" else JUDGED
    result = {"name": name, "settings": settings, **judged(mechanism)}
    say(str(result))
    return result | {"processor_seconds": time.process_time() - clock}


def printed() -> dict[str, dict[str, float]]:
    """The contest's own table, by the names of its rows."""
    with (data_folder() / "pwscup-printed.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    return {each["Ano"]: {k: float(v) for k, v in each.items() if k != "Ano"} for each in rows}


def names() -> list[str]:
    """Of our own rows."""
    made = [
        f"codebook-{budget:g}-{count}-{objective}"
        for budget in BUDGETS
        for count, objective in OBJECTIVES
    ]
    return [*made, "none", *(f"laplace-{each:g}" for each in LAPLACE)]


def main(folder: Path = RESULTS) -> None:
    """What the folder does not hold yet."""
    todo: dict[tuple, Callable[[], dict[str, Any]]] = {(n,): partial(row, n) for n in names()}
    for name, figures in printed().items():
        kept = {"name": name, "settings": JUDGED, "printed": figures}
        todo[(name,)] = partial(dict, kept)
    path = folder / "pws_cup.json"
    known = saved(path, SETTINGS, "name") | saved(path, JUDGED, "name")
    fill(path, "python -m paper.runs.pws_cup", todo, known)


if __name__ == "__main__":
    run_module(__doc__, main)
