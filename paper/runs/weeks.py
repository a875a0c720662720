"""Weeks of Foursquare check-ins in New York: how often a week is found, by what is reported and how
reports are kept.

The data of Rao, Gao, Kang and Huang (LSTM-TrajGAN, GIScience 2021): 193 users, 2,052 training weeks
that adversaries know by name and 1,027 test weeks that are to be found.  For the truth, snapping,
planar Laplace noise and our learned codebooks, made for one report and for twenty, at three losses.
A week has no date in the file: weeks are numbered, and a kept week is one of them.

`--ways` measures every way of keeping planar Laplace reports of 818 m, as `sfumato policy` does.
Codebooks are learned once and lie in runs/weeks; their figures are measured as they are.

python -m paper.runs.weeks [--ways] [--again]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import csv

from paper.experiments import RESULTS, ROOT, data_folder
from paper.tables import fill, saved, say
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.samples import Samples
from sfumato.data.traces import Traces
from sfumato.files import write_json
from sfumato.measure.traces import WHO, find_traces
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Identity
from sfumato.mechanism.wrap import Snapped
from sfumato.solver import Codebook, Problem
from sfumato.study.folder import load_run
from sfumato.study.policy import FOUR, choose, ways_of
from sfumato.study.record import Keeping
from sfumato.study.solve import solve
from sfumato.study.traces import chance_of, released_reports, seeded_key

LOSSES = (818, 1994, 400)
REPORTS = (1, 20)
PER_USER = 10  # training check-ins of each user that a codebook is learned from
SOLVER = Codebook(made_for="these", places=256, steps=600, distillation=0.0)
CELL_M, SEED = 25.0, 0
_MIDDLE = 0.3825978  # mean distance to the middle of a square of side 1
_WEEK = 7 * 86_400
CHAINS = {("truth", 0), ("planar laplace", 818)}
SETTINGS = f"cells of {CELL_M:g} m, seed {SEED}, codebooks of {PER_USER} check-ins per user"
RUNS = ROOT / "runs" / "weeks"


@cache
def weeks() -> Traces:
    """The traces of the file, on a plane about their middle."""
    table = csv.read_csv(data_folder() / "foursquare-nyc-weeks.csv.gz")
    latitude, longitude, week, day, hour = (
        np.array(table[name]) for name in ("lat", "lon", "trace", "day", "hour")
    )
    plane = Plane(
        float(latitude.min() + latitude.max()) / 2, float(longitude.min() + longitude.max()) / 2
    )
    names, user = np.unique(np.array(table["user"]), return_inverse=True)
    truth = plane.to_metres(latitude, longitude)
    samples = Samples(user, truth, tuple(map(str, names)), plane=plane, name="weeks")
    return Traces.of(
        samples,
        week,
        seconds=week * _WEEK + day * 86_400 + hour * 3600,
        named=np.array(table["part"].to_pylist()) == "train",
    )


def region() -> Region:
    """Where reports may lie: the data's square, 2 km wider on each side."""
    return Region.around(weeks().samples.truth, margin_m=2000.0)


def codebook(loss_m: float, reports: int) -> Mechanism:
    """The learned codebook for a budget and a number of reports, from runs/weeks or learned now."""
    folder = RUNS / f"codebook-{loss_m:g}-{reports}"
    if not folder.exists():
        named = weeks().samples.take(weeks().named)
        train = replace(named.split(PER_USER, seed=SEED).train, region=region())
        problem = Problem(train, max_loss=loss_m, reports=reports, cell_m=100.0)
        began = time.process_time()
        solve(problem, SOLVER, seed=SEED, proof="none").save(folder)
        say(f"{folder.name} learned in {time.process_time() - began:.0f} s of processor time")
    return load_run(folder).mechanism


def mechanisms() -> dict[tuple[str, float], Callable[[], Mechanism]]:
    """What is reported, by its name and its loss in metres (0 for what has none to choose)."""
    grid = Grid(cell_m=CELL_M)
    made: dict[tuple[str, float], Callable[[], Mechanism]] = {
        ("truth", 0): lambda: Snapped(Identity(), grid)
    }
    for loss_m in LOSSES:
        made["planar laplace", loss_m] = partial(Snapped, PlanarLaplace.for_loss(loss_m), grid)
    for side_m in (2000.0, 5000.0):
        square = Grid(cell_m=side_m)
        made[f"snapped to {side_m / 1000:g} km", 0] = partial(Snapped, Identity(), square)
    for loss_m in LOSSES:
        made["snapped", loss_m] = partial(Snapped, Identity(), Grid(cell_m=loss_m / _MIDDLE))
    for loss_m in LOSSES:
        for reports in REPORTS:
            name = f"codebook for {reports} report{'s' if reports > 1 else ''}"
            made[name, loss_m] = partial(codebook, loss_m, reports)
    return made


def measured(name: str, loss_m: float, period: str) -> dict[str, Any]:
    """One row: what adversaries find; the chain of some only, for time."""
    began, traces = time.process_time(), weeks()
    mechanism = mechanisms()[name, loss_m]()
    chance = chance_of(Keeping(period), seeded_key(SEED), "", seed=SEED)
    who = WHO if period == "never" and (name, loss_m) in CHAINS else FOUR
    found = find_traces(traces, released_reports(traces, mechanism, chance, region()), who)
    row = {
        "reported": name,
        "budget": loss_m,
        "kept": period,
        "loss_m": found.loss_m,
        "traces": found.traces,
        "found": {who: [one.value, one.low, one.high] for who, one in found.shares.items()},
        "seconds": time.process_time() - began,
        "settings": SETTINGS,
    }
    say(f"{name}, {loss_m:g} m, {period}: {found.loss_m:.0f} m, all {found['all'].value:.3f}")
    return row


def all_ways(folder: Path) -> None:
    """Every way of keeping planar Laplace reports of 818 m, into weeks_ways.json."""
    noise = Snapped(PlanarLaplace.for_loss(818), Grid(cell_m=CELL_M))
    ways = ways_of(noise, region(), 818)
    choice = choose("planar laplace", noise, region(), 818, ways, weeks(), seed=SEED, progress=say)
    command = "python -m paper.runs.weeks --ways"
    write_json(folder / "weeks_ways.json", {"command": command, **choice.as_dict()})


def main(folder: Path = RESULTS, *, again: bool = False) -> None:
    """Measure what is not there yet; the page is made by paper.pages.weeks."""
    path = folder / "weeks.json"
    known = saved(path, SETTINGS, "reported", "budget", "kept", again=again)
    todo = {
        (name, loss_m, period): partial(measured, name, loss_m, period)
        for name, loss_m in mechanisms()
        for period in (("never",) if name.startswith(("truth", "snapped")) else ("never", "week"))
    }
    fill(path, "python -m paper.runs.weeks", todo, known)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m paper.runs.weeks", description=__doc__)
    parser.add_argument("--ways", action="store_true", help="every way of keeping, at 818 m")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    asked = parser.parse_args()
    if asked.ways:
        all_ways(RESULTS)
    else:
        main(again=asked.again)
