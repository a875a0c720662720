"""Approximate location as phones and browsers have it, on the check-ins of three cities and on
Foursquare weeks, beside planar Laplace, the default codebook and what is proved at the same metres.

Rules look at no data.  Each is measured on both parts of the draw that `paper.runs.linked` has; its
loss on training check-ins, rounded up to a metre, is the budget of the others beside it, and so are
533 m and 564 m (1,750 and 1,850 feet).  On a phone Android's offset drifts: there all reports of a
user share one offset, taken on a lattice of 50 m.

python -m paper.runs.approximate
"""

import math
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS
from paper.runs import linked, weeks
from paper.tables import fill, run_module, saved, say
from sfumato.data.samples import Samples
from sfumato.measure.estimate import estimate_mean
from sfumato.measure.judge import judge
from sfumato.measure.repeated import linked_bayes_error
from sfumato.measure.traces import Released, find_traces
from sfumato.mechanism.approximate import DegreeSnap
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.simple import Identity
from sfumato.randomness import generator
from sfumato.solver import Android, Codebook, Laplace, Snap, Solver, WebKit
from sfumato.solver.exact.solver import certificate_for
from sfumato.study.policy import FOUR
from sfumato.study.record import Keeping
from sfumato.study.solve import solve
from sfumato.study.traces import chance_of, released_reports, seeded_key

CITIES = ("paris", "stockholm", "san-francisco")
COUNTS = (1, 5, 10, 50)
RULES: dict[str, Solver] = {
    "snap to 2 km": Snap(2000.0),
    "Android": Android(),
    "snap to 5 km": Snap(5000.0),
    "WebKit": WebKit(),
}
THRESHOLDS = (533, 564)
BESIDE: dict[str, Solver] = {"planar laplace": Laplace(), "codebook": Codebook()}
DRIFTING = "Android, offset drifts"
SETTINGS = f"draw {linked.DRAW}, {Codebook()!r}"
_KEYS = ("data", "reported", "budget_m")
_GAP = 0.005  # of a proof
_LATTICE_M, _REACH = 50.0, 4.0  # the lattice of offsets, to 4 deviations


def ruled(city: str, rule: str) -> dict[str, Any]:
    """A rule, or the truth, on both parts of the draw."""
    clock = time.process_time()
    if rule == "truth":
        return _row(city, rule, 0, Identity(), clock)
    problem = linked.problem_of(city, 1000.0, 1)
    found = _row(city, rule, 0, solve(problem, RULES[rule]).mechanism, clock)
    if rule == "Android":
        for part in ("train", "test"):
            samples = getattr(linked.split_of(city), part)
            found[part]["drifting"] = shared_offset_errors(samples, COUNTS)
    return found


def beside(city: str, name: str, budget: int) -> dict[str, Any]:
    """Planar Laplace or the codebook within a budget in metres."""
    clock = time.process_time()
    problem = linked.problem_of(city, float(budget), 1)
    mechanism = solve(problem, BESIDE[name], seed=linked.DRAW, proof="none").mechanism
    return _row(city, name, budget, mechanism, clock)


def proved(city: str, budget: int) -> dict[str, Any]:
    """What no mechanism within the budget goes beyond on the training check-ins, anywhere."""
    clock, problem = time.process_time(), linked.problem_of(city, float(budget), 1)
    certificate = certificate_for(problem, seed=linked.DRAW, gap=_GAP)
    assert certificate is not None
    bounds = certificate.bound(problem)
    return _finished(city, "proof", budget, clock, {"bounds": [bounds.grid, bounds.plane]})


def _row(city: str, name: str, budget: int, mechanism: Mechanism, clock: float) -> dict[str, Any]:
    split = linked.split_of(city)
    assert split.test is not None
    parts = {"train": _figures(mechanism, split.train), "test": _figures(mechanism, split.test)}
    return _finished(city, name, budget, clock, parts)


def _finished(
    city: str, name: str, budget: int, clock: float, found: dict[str, Any]
) -> dict[str, Any]:
    seconds = time.process_time() - clock
    say(f"{city}, {name}, {budget} m: {seconds:.1f} s; {found}")
    asked = {"data": city, "reported": name, "budget_m": budget, "settings": SETTINGS}
    return asked | found | {"processor_seconds": seconds}


def _figures(mechanism: Mechanism, samples: Samples) -> dict[str, Any]:
    """One report, and several of independent check-ins; the adversary knows the law."""
    found = judge(mechanism, samples)
    assert found.bayes_error.kind == "exact"
    errors = linked_bayes_error(found.joint, COUNTS)
    return {
        "loss_m": found.loss.value,
        "bayes_error": found.bayes_error.value,
        "blind": 1 - float(found.joint.prior.max()),
        "information_bits": found.information_bits.value,
        "worst_report": found.worst_report,
        "linked": [[one.kind, one.value, one.low, one.high] for one in errors],
    }


def shared_offset_errors(
    samples: Samples, counts: tuple[int, ...], *, lists: int = 2000
) -> list[list[Any]]:
    """Bayes errors of n reports of n check-ins of one user whose phone has one offset for all.

    B_n = 1 - E max_x P(x | z_1..z_n),  P(x, z_1..z_n) = p(x) sum_o w(o) prod_i q_x(z_i | o), with
    offsets o on a lattice.  Lists are drawn; estimates with 1.96 standard errors.
    """
    assert samples.plane is not None
    corner = DegreeSnap(samples.plane.latitude, samples.plane.longitude, Android().accuracy_m)
    deviation = corner.cell_m / 4
    line = np.arange(-_REACH * deviation, _REACH * deviation + 1, _LATTICE_M)
    offsets = np.array([(east, north) for east in line for north in line])
    weights = np.exp(-0.5 * (offsets**2).sum(axis=1) / deviation**2)
    weights /= weights.sum()
    moved = (samples.truth[None, :, :] + offsets[:, None, :]).reshape(-1, 2)
    reports, number = np.unique(corner.sample(moved).round(3), axis=0, return_inverse=True)
    number = number.reshape(len(offsets), len(samples))  # of each offset and check-in, its report
    prior = np.bincount(samples.secret) / len(samples)
    users = [np.flatnonzero(samples.secret == user) for user in range(len(prior))]
    logs = np.stack(
        [[_log_shares(row[own], len(reports)) for own in users] for row in number]
    )  # offsets, users, reports
    random = generator(0)
    errors = np.empty((lists, len(counts)))
    for one in range(lists):
        user = random.choice(len(prior), p=prior)
        offset = random.choice(len(offsets), p=weights)
        reported = number[offset, random.choice(users[user], size=counts[-1])]
        for column, count in enumerate(counts):
            times = np.bincount(reported[:count], minlength=len(reports))
            some = np.flatnonzero(times)
            height = logs[:, :, some] @ times[some]  # offsets, users
            chance = prior * (weights @ np.exp(height - height.max()))
            errors[one, column] = 1 - chance.max() / chance.sum()
    means = [estimate_mean(column) for column in errors.T]
    return [["estimate", one.value, one.low, one.high] for one in means]


def _log_shares(reports: np.ndarray, size: int) -> np.ndarray:
    shares = np.bincount(reports, minlength=size) / len(reports)
    return np.log(shares, where=shares > 0, out=np.full(size, -1e30))


def found_weeks(name: str) -> dict[str, Any]:
    """How often a Foursquare week is found; the other mechanisms are in weeks.json."""
    clock, traces = time.process_time(), weeks.weeks()
    plane = traces.samples.plane
    assert plane is not None and traces.seconds is not None
    cell_m, deviation_m = (5000.0, 0.0) if name == "WebKit" else (2000.0, 500.0)
    rule = DegreeSnap(plane.latitude, plane.longitude, cell_m, deviation_m).on_plane(plane)
    chance = chance_of(Keeping("never"), seeded_key(weeks.SEED), "", seed=weeks.SEED)
    released = released_reports(traces, rule, chance, None)
    if name == DRIFTING:
        reports = np.empty_like(traces.samples.truth)
        for user in range(len(traces.samples.secrets)):
            rows = np.flatnonzero(traces.samples.secret == user)
            rows = rows[np.argsort(traces.seconds[rows], kind="stable")]
            reports[rows] = rule.along(traces.samples.truth[rows], traces.seconds[rows], seed=user)
        released = Released(rule, reports)
    found = find_traces(traces, released, FOUR)
    shares = {who: [one.value, one.low, one.high] for who, one in found.shares.items()}
    measured = {"loss_m": found.loss_m, "traces": found.traces, "found": shares}
    return _finished("weeks", name, 0, clock, measured)


def wanted(path: Path) -> Iterator[tuple[str, str, int]]:
    """What is solved at the metres of a rule, rounded up, and at the thresholds, city by city;
    planar Laplace and the codebook, for time, at those of the rules of 2 km and at 564 m."""
    rows = saved(path, SETTINGS, *_KEYS)
    for city in CITIES:
        spent = [math.ceil(rows[city, rule, 0]["train"]["loss_m"]) for rule in RULES]
        few = sorted({*spent[:2], THRESHOLDS[-1]})
        for budget in sorted({*spent, *THRESHOLDS}):
            yield city, "proof", budget
        for name in BESIDE:
            yield from ((city, name, budget) for budget in few)


def main(folder: Path = RESULTS) -> None:
    """What the folder does not hold yet; the page is made by paper.pages.approximate."""
    path, command = folder / "approximate.json", "python -m paper.runs.approximate"
    first = {
        (city, rule, 0): partial(ruled, city, rule) for city in CITIES for rule in ("truth", *RULES)
    }
    first |= {
        ("weeks", rule, 0): partial(found_weeks, rule) for rule in ("Android", DRIFTING, "WebKit")
    }
    fill(path, command, first, saved(path, SETTINGS, *_KEYS))
    todo = {
        (city, name, budget): partial(proved, city, budget)
        if name == "proof"
        else partial(beside, city, name, budget)
        for city, name, budget in wanted(path)
    }
    fill(path, command, todo, saved(path, SETTINGS, *_KEYS))


if __name__ == "__main__":
    run_module(__doc__, main)
