"""How often what is said of check-ins to come holds: populations with a known law, three sizes of
data.

Each population has two to five users about the corners of a polygon, as in four-corners, with other
radii, distances and budgets; in half of them a part of the check-ins is at places that users share.
It is finite (seven places per user and three that are shared), so its best mechanism on the grid,
and each mechanism's loss and Bayes error, are computed and not estimated.  A training set and a
held-out set are drawn from it.  From the training set come a certificate and a mechanism: the exact
channel, or (every second population) the coin on the grid.  The held-out set bounds both, at 95 %.

python -m paper.runs.coverage [--widths]
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS
from paper.tables import arguments, say
from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.files import write_json
from sfumato.measure.exact import bayes_error
from sfumato.measure.interval import Users, lower_mean
from sfumato.measure.population import certify_population
from sfumato.measure.to_come import figures_to_come
from sfumato.mechanism.wrap import Snapped
from sfumato.solver import Coin, Exact, Problem
from sfumato.solver.exact import best_within
from sfumato.study.population import cross_fitted_bound
from sfumato.study.solve import solve

POPULATIONS, SIZES = 510, (25, 100, 400)  # check-ins per user, of each set
CONFIDENCE = 0.95
_PLACES, _COMMON, _WHOLE, _CELLS = 7, 3, 400, 6
_EXACT = Exact(gap=0.004, plane=False)
SETTINGS = f"{_EXACT}, {_PLACES} places, {_CELLS} cells, sizes {SIZES}"


def population(seed: int) -> tuple[Samples, float, dict[str, Any]]:
    """A law, as samples of which each is as likely as any other of its user; its budget; and what
    was drawn."""
    random = np.random.default_rng((17, seed))
    users = int(random.integers(2, 6))
    radius, side = random.uniform(25, 130), random.uniform(200, 450)
    shared, budget = random.choice([0.0, random.uniform(0.05, 0.5)]), random.uniform(0.3, 0.9)
    angle = 2 * np.pi * np.arange(users) / users
    centres = side / 2**0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    truth = np.empty((users, _WHOLE, 2))
    common = centres[random.integers(0, users, _COMMON)] / 2
    common += random.uniform(-radius, radius, (_COMMON, 2))
    for user in range(users):
        way, turn = radius * np.sqrt(random.random(_PLACES)), 2 * np.pi * random.random(_PLACES)
        own = centres[user] + np.stack([way * np.cos(turn), way * np.sin(turn)], axis=1)
        there = random.choice(_PLACES, _WHOLE, p=random.dirichlet(np.ones(_PLACES)))
        truth[user] = own[there]
        together = random.random(_WHOLE) < shared
        truth[user, together] = common[random.integers(0, _COMMON, int(together.sum()))]
    names = tuple(f"user {number}" for number in range(users))
    whole = Samples(np.repeat(np.arange(users), _WHOLE), truth.reshape(-1, 2), names)
    region = Region.around(whole.truth, margin_m=20.0)
    metres = budget * float(np.linalg.norm(whole.truth - whole.truth.mean(axis=0), axis=1).mean())
    drawn = {"users": users, "radius_m": radius, "side_m": side, "shared": shared, "budget": metres}
    return replace(whole, region=region, name=f"population {seed}"), metres, drawn


def drawn_from(whole: Samples, each: int, seed: tuple[int, ...]) -> Samples:
    """`each` independent check-ins of each user."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, _WHOLE, (len(whole.secrets), each))
    return whole.take((rows + _WHOLE * np.arange(len(whole.secrets))[:, None]).ravel())


def trials(seed: int) -> list[dict[str, Any]]:
    """One row per size of data: what was said, and what is true."""
    whole, metres, drawn = population(seed)
    best = best_within(Problem(whole, max_loss=metres, cells=_CELLS), gap=1e-3)
    rows = []
    for size, each in enumerate(SIZES):
        train, held_out = (drawn_from(whole, each, (seed, size, part)) for part in (0, 1))
        problem = Problem(train, max_loss=metres, cells=_CELLS)
        exact = solve(problem, _EXACT)
        assert exact.certificate is not None
        mechanism, kind = exact.mechanism, "exact"
        if seed % 2:
            mechanism, kind = Snapped(solve(problem, Coin()).mechanism, problem.grid), "coin"
        found = certify_population(exact.certificate, problem, mechanism, held_out)
        figures = figures_to_come(mechanism, held_out, train)
        law = mechanism.law(whole.joint(), loss=problem.loss)
        fitted = (
            cross_fitted_bound(problem, folds=4, seed=seed) if size == 1 and seed % 3 == 0 else None
        )
        assert law is not None and found.error is not None and found.best_error is not None
        row = {
            "population": seed,
            **drawn,
            "mechanism": kind,
            "checkins": len(held_out),
            "loss": [law.loss, found.loss.low, found.loss.high],
            "error": [bayes_error(law.joint), found.error],
            "best": [1 - best.leakage, found.best_error],
            "interval": [figures.bayes_error.low, figures.bayes_error.high],
            "width": found.width,
            "fitted": None if fitted is None else fitted.best_error,
        }
        rows.append({name: _short(value) for name, value in row.items()})
    return rows


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(one) for one in value]
    return round(float(value), 6) if isinstance(value, (float, np.floating)) else value


def widths() -> None:
    """How far lower bounds lie below the mean, by three inequalities."""
    random = np.random.default_rng(4)
    for count, spread in ((480, 0.05), (480, 0.2), (1920, 0.2), (1920, 0.45)):
        size = 0.25 / spread**2 - 1
        values = random.beta(size / 2, size / 2, count)
        bets = lower_mean(values, Users.alike(count), low=0, high=1, delta=0.05, spread=spread)
        log = np.log(2 / 0.05)
        empirical = np.sqrt(2 * values.var(ddof=1) * log / count) + 7 * log / 3 / (count - 1)
        hoeffding = np.sqrt(np.log(1 / 0.05) / 2 / count)
        print(f"{count}, {spread}: {values.mean() - bets:.3f}, {hoeffding:.3f}, {empirical:.3f}")


def main(folder: Path = RESULTS, seeds: range = range(POPULATIONS)) -> None:
    clock, rows = time.process_time(), []
    for seed in seeds:
        rows += trials(seed)
        if seed % 50 == 49:
            say(f"{seed + 1} populations, {time.process_time() - clock:.0f} s")
    document = {
        "command": "python -m paper.runs.coverage",
        "settings": SETTINGS,
        "confidence": CONFIDENCE,
        "seconds": time.process_time() - clock,
        "rows": rows,
    }
    write_json(folder / "coverage.json", document)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--widths", action="store_true", help="only the widths of three bounds")
    if parser.parse_args().widths:
        widths()
    else:
        main()
