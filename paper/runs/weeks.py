"""Weeks of Foursquare check-ins in New York: how often a week is found, by what is reported and how
reports are kept.

The data of Rao, Gao, Kang and Huang (LSTM-TrajGAN, GIScience 2021): 193 users, 2,052 training weeks
that adversaries know by name and 1,027 test weeks that are to be found.  For the truth, snapping,
planar Laplace noise and our learned codebooks, made for one report and for twenty, at three losses;
then every way of keeping the reports of each, as `sfumato policy` measures it; one place or a
common week for whole weeks, chosen before a week or when it is over; and what is proved of any
release.  A week has no date in the file: weeks are numbered, and a kept week is one of them.

Codebooks are learned once and lie in runs/weeks; their figures are measured as they are.

python -m paper.runs.weeks [--again]
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import csv

from paper.experiments import RESULTS, ROOT, data_folder
from paper.tables import fill, run_module, saved, say
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.samples import Samples
from sfumato.data.traces import Traces
from sfumato.measure.estimate import Estimate
from sfumato.measure.traces import WHO, Released, Who, find_traces
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.loss import euclidean
from sfumato.mechanism.simple import Identity
from sfumato.mechanism.wrap import Snapped
from sfumato.solver import Codebook, Problem
from sfumato.solver.one_place import best_one_place
from sfumato.study.folder import load_run
from sfumato.study.policy import FOUR, choose, ways_of
from sfumato.study.record import Keeping
from sfumato.study.solve import solve
from sfumato.study.traces import chance_of, released_reports, rows_of, seeded_key

LOSSES = (818, 1994, 400)
REPORTS = (1, 20)
PER_USER = 20  # training check-ins of each user that a codebook is learned from
SOLVER = Codebook(made_for="these", places=256, steps=600, distillation=0.0)
CELL_M, SEED = 25.0, 0
_MIDDLE = 0.3825978  # mean distance to the middle of a square of side 1
_WEEK = 7 * 86_400
ANY = "any release"
ONE_PLACE = {  # chosen before a week?  the least share of each user's weeks, and parts of the week
    "one place, chosen after a week": (False, 0.0, 1),
    "one place, chosen before a week": (True, 0.0, 1),
    "common week, chosen after a week": (False, 0.0, 14),
    "common week, a fifth of each user's weeks": (False, 0.2, 14),
}
_SPREADS_M = (400.0, 600.0, 800.0, 1200.0, 1600.0)  # of a guess, for the proof
_ASCENT = 60  # steps
_APART_M = np.concatenate([np.arange(0, 4000, 25), np.arange(4000, 20_001, 250)])
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
    folder = RUNS / f"codebook-{loss_m:g}-{reports}-of-{PER_USER}"
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
    released = released_reports(traces, mechanism, chance, region())
    found = find_traces(traces, released, who)
    shares: dict[str, Any] = dict(found.shares) | {"truths": by_truths(traces, released)}
    say(f"{name}, {loss_m:g} m, {period}: {found.loss_m:.0f} m, all {found['all'].value:.3f}")
    row = _asked(name, loss_m) | {"kept": period, "loss_m": found.loss_m, "traces": found.traces}
    row["found"] = {who: [one.value, one.low, one.high] for who, one in shares.items()}
    return row | {"seconds": time.process_time() - began}


def one_place(name: str, loss_m: float) -> dict[str, Any]:
    """Whole weeks from one place, or as a common week, the others as the truth; the rule is made of
    training weeks."""
    began, traces = time.process_time(), weeks()
    before, least, parts = ONE_PLACE[name]
    truth = Snapped(Identity(), Grid(cell_m=CELL_M))
    rows = rows_of(traces)
    off = euclidean(traces.samples.truth, truth.sample(traces.samples.truth, seed=SEED))
    left = loss_m - float(off[traces.named].mean())
    best = best_one_place(traces, left, before=before, parts=parts, least_hidden=least, seed=SEED)
    keeping = Keeping("week", one_place=best.rule, max_loss=loss_m)
    chance = chance_of(keeping, seeded_key(SEED), "", seed=SEED)
    released = released_reports(traces, truth, chance, region())
    who: tuple[Who, ...] = (*(WHO if parts == 1 else FOUR), "counts")
    found = find_traces(traces, released, who)
    shares: dict[str, Any] = dict(found.shares) | {"truths": by_truths(traces, released)}
    assert released.sent_from is not None and rows.seconds is not None
    first = np.flatnonzero(np.diff(traces.trace, prepend=-1))
    hidden = (released.sent_from >= 0)[first]
    tested = ~traces.named[first]
    by_user = np.bincount(traces.users[tested], weights=hidden[tested]) / np.bincount(
        traces.users[tested]
    )
    say(f"{name}, {loss_m:g} m: {found.loss_m:.0f} m, law {found['law'].value:.3f}")
    row = _asked(name, loss_m) | {"kept": "week", "loss_m": found.loss_m, "traces": found.traces}
    row["found"] = {who: [one.value, one.low, one.high] for who, one in shares.items()}
    row |= {"loss_error_m": found.loss_error_m, "places": len(best.rule.places)}
    row["classes"] = len(best.rule.cost)
    row |= {"of_training_weeks": best.found, "at_least_of_this_kind": best.found_at_least}
    row |= {"training_loss_m": best.loss_m, "hidden": float(hidden[tested].mean())}
    row["users_never_hidden"] = int((by_user == 0).sum())
    row["users_always_hidden"] = int((by_user == 1).sum())
    return row | {"seconds": time.process_time() - began}


def _asked(name: str, loss_m: float) -> dict[str, Any]:
    return {"reported": name, "budget": loss_m, "settings": SETTINGS}


def by_truths(traces: Traces, released: Released) -> Estimate:
    """What is found by who knows true places of named weeks and takes reports for true places."""
    named = np.where(traces.named[:, None], traces.samples.truth, released.reports)
    return find_traces(traces, Released(Identity(), named), ("history",))["history"]


def chosen(name: str, loss_m: float) -> dict[str, Any]:
    """Every way of keeping the reports of a mechanism, and the one that the rule recommends."""
    began, mechanism = time.process_time(), mechanisms()[name, loss_m]()
    ways = ways_of(mechanism, region(), loss_m)
    choice = choose(name, mechanism, region(), loss_m, ways, weeks(), seed=SEED)
    say(f"{name}, {loss_m:g} m: {choice.best.keeping.words}")
    return _asked(name, loss_m) | choice.as_dict() | {"seconds": time.process_time() - began}


# What is proved -----------------------------------------------------------------------------------


def least_found(weeks: Sequence[np.ndarray], users: np.ndarray, budget_m: float) -> float:
    """The least share of weeks that are found, whatever is reported within a mean loss in metres.

    The adversary knows these weeks, not which of them a list of reports z comes from, and guesses
    the week v of as many check-ins with chance proportional to a_v exp(-D(v, z) / s), where D is
    the mean distance of check-ins and reports in order.  Where D(w, z) = d, the triangle gives
    D(v, z) >= D(w, v) - d for every other v, so w's user is named with chance at least
    S_w(d) = 1 / (1 + sum_v a_v / a_w exp((d - max(0, D(w, v) - d)) / s)) over weeks v of others.
    For every price p of a metre the share is at least
    mean_w min_d (S_w(d) + p n_w d) - p L mean_w n_w.  Any s, p and weights a will do: some s,
    the best p of some for even weights, and weights that some steps of ascent find for these.  S
    falls with d, so between the points of the grid of d its value at the next point is used.

    >>> far = [np.zeros((3, 2)), np.full((3, 2), 9000.0)]
    >>> [round(least_found(far, np.array([0, 1]), metres), 2) for metres in (0.0, 3000.0)]
    [1.0, 0.64]
    """
    lengths = np.array([len(week) for week in weeks])
    alike = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    groups = [(np.stack([weeks[one] for one in some.tolist()]), users[some]) for some in alike]
    count = lengths[np.concatenate(alike)]
    best = 0.0
    for spread_m in _SPREADS_M:
        even = [_named(_near(*some, spread_m), np.ones(len(some[1])), spread_m) for some in groups]
        named = np.vstack(even)
        tried = []
        for price in np.geomspace(1e-6, 1e-2, 81).tolist():
            share = (named + price * count[:, None] * _APART_M).min(axis=1).mean()
            tried.append((float(share - price * budget_m * count.mean()), price))
        share, price = max(tried)
        raised = sum(_raised(*some, spread_m, price) for some in groups) / len(weeks)
        best = max(best, share, raised - price * budget_m * float(count.mean()))
    return best


def _near(places: np.ndarray, users: np.ndarray, spread_m: float) -> np.ndarray:
    """What each week of another user adds to the guesses where w is reported d off, at the point of
    the grid after each; for even weights, shape (w, v, d)."""
    off = places[:, None] - places[None]
    apart = np.hypot(off[..., 0], off[..., 1]).mean(axis=2)
    apart[users[:, None] == users] = np.inf
    return np.asarray(np.exp(-np.maximum(apart[:, :, None] - _APART_M[1:], 0) / spread_m))


def _named(near: np.ndarray, weight: np.ndarray, spread_m: float) -> np.ndarray:
    """S of weeks of one length."""
    own = weight[:, None] * np.exp(-_APART_M[1:] / spread_m)
    chance = own / (own + np.einsum("v,wvd->wd", weight, near))
    return np.hstack([chance, np.zeros((len(weight), 1))])


def _raised(places: np.ndarray, users: np.ndarray, spread_m: float, price: float) -> float:
    """The sum over weeks of one length of min_d (S(d) + p n d), for weights that raise it."""
    near = np.concatenate([_near(places, users, spread_m), np.ones((len(users),) * 2 + (1,))], 2)
    row, logs, total, best = np.arange(len(users)), np.zeros(len(users)), 1e-9, 0.0
    for _ in range(_ASCENT):
        weight = np.exp(logs)
        chance = _named(near[..., :-1], weight, spread_m)
        values = chance + price * places.shape[1] * _APART_M
        at = values.argmin(axis=1)
        best = max(best, float(values.min(axis=1).sum()))
        others = weight * near[row, :, at]
        named = chance[row, at]
        share = others / np.maximum(others.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        slope = named * (1 - named) - (named * (1 - named)) @ share
        total = total + slope**2
        logs = logs + slope / np.sqrt(total)
    return best


def proved(loss_m: float) -> dict[str, Any]:
    """What whoever knows the test weeks finds at least, at a loss."""
    began, traces = time.process_time(), weeks()
    rows = [traces.rows_of(number) for number in traces.attacked.tolist()]
    own = np.array([traces.samples.secret[one.start] for one in rows])
    share = least_found([traces.samples.truth[one] for one in rows], own, loss_m)
    say(f"any release, {loss_m:g} m: at least {share:.3f}")
    row = _asked(ANY, loss_m) | {"kept": "never", "at_least": share}
    return row | {"traces": len(rows), "seconds": time.process_time() - began}


def wanted() -> list[dict[str, Any]]:
    """Every row of weeks.json, as far as it is known before it is run."""
    rows = [
        _asked(name, loss_m) | {"kept": period}
        for name, loss_m in mechanisms()
        for period in ("never", "week")
        if period == "never" or _drawn(name)
    ]
    places = [_asked(name, loss_m) | {"kept": "week"} for name in ONE_PLACE for loss_m in LOSSES]
    return rows + places + [_asked(ANY, loss_m) | {"kept": "never"} for loss_m in LOSSES]


def wanted_ways() -> list[dict[str, Any]]:
    """Every row of weeks_ways.json."""
    return [_asked(name, loss_m) for name, loss_m in mechanisms() if _drawn(name)]


def _drawn(name: str) -> bool:
    return not name.startswith(("truth", "snapped"))


def main(folder: Path = RESULTS, *, again: bool = False) -> None:
    """Measure what is not there yet; the page is made by paper.pages.weeks."""
    command = "python -m paper.runs.weeks"
    for file, todo in (("weeks.json", wanted()), ("weeks_ways.json", wanted_ways())):
        keys = ("reported", "budget", *(("kept",) if file == "weeks.json" else ()))
        tasks = {tuple(one[key] for key in keys): partial(_run, one) for one in todo}
        fill(folder / file, command, tasks, saved(folder / file, SETTINGS, *keys, again=again))


def _run(asked: dict[str, Any]) -> dict[str, Any]:
    name, loss_m = asked["reported"], asked["budget"]
    if name == ANY:
        return proved(loss_m)
    if name in ONE_PLACE:
        return one_place(name, loss_m)
    return measured(name, loss_m, asked["kept"]) if "kept" in asked else chosen(name, loss_m)


if __name__ == "__main__":
    run_module(__doc__, main, again=True)
