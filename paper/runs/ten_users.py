"""Ten users with 5,000 points each: leakage that `Game()` reaches in one and in five minutes,
beside the coin and planar Laplace.

Made-up users: each has eight places in a 4 km square, normal clouds of 60 m, visited with uneven
chances; three of the places are shared with others.  4,000 points of each train, 1,000 test.  The
clock is the solver's (compiling and validation inside).

python -m paper.runs.ten_users [--minutes 1 5] [--again]
"""

from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import RESULTS
from paper.tables import arguments, say
from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.files import read_json, write_json
from sfumato.measure.judge import judge
from sfumato.solver import Coin, Game, Laplace, Problem
from sfumato.study.solve import solve

USERS, POINTS, TEST = 10, 5_000, 1_000
MAX_LOSS_M = 500.0
SIDE_M = 4_000.0
SEED = 0


def samples() -> tuple[Samples, Samples]:
    """Training and test points of the ten."""
    random = np.random.default_rng(SEED)
    shared = random.uniform(-SIDE_M / 3, SIDE_M / 3, (3, 2))
    secret, truth = [], []
    for user in range(USERS):
        places = np.vstack([random.uniform(-SIDE_M / 2.5, SIDE_M / 2.5, (5, 2)), shared])
        visits = random.choice(len(places), POINTS, p=random.dirichlet(np.ones(len(places))))
        truth.append(places[visits] + random.normal(0.0, 60.0, (POINTS, 2)))
        secret.append(np.full(POINTS, user))
    where, who = np.stack(truth), np.stack(secret)
    names, region = (
        tuple(f"user {number}" for number in range(USERS)),
        Region(centre=(0.0, 0.0), side_m=SIDE_M),
    )
    parts = (slice(None, POINTS - TEST), slice(POINTS - TEST, None))
    one, other = (
        Samples(
            secret=who[:, rows].ravel(),
            truth=where[:, rows].reshape(-1, 2),
            secrets=names,
            region=region,
        )
        for rows in parts
    )
    return one, other


def main(
    folder: Path = RESULTS, *, minutes: tuple[float, ...] = (1, 5), again: bool = False
) -> None:
    path = folder / "ten_users.json"
    if path.exists() and not again:
        say(
            f"{path.name} is there: {len(read_json(path, what='the game of ten users')['rows'])}"
            " rows"
        )
        return
    train, test = samples()
    problem = Problem(train, max_loss=MAX_LOSS_M)
    rows: list[dict[str, Any]] = []
    todo: list[tuple[str, Any, float | None]] = [
        ("planar Laplace", Laplace(), None),
        ("coin", Coin(), None),
    ]
    todo += [(f"Game(), {limit:g} min", Game(), 60.0 * limit) for limit in minutes]
    for name, solver, seconds in todo:
        found = solve(problem, solver, seed=SEED, time_limit=seconds)
        measured = judge(found.mechanism, test, grid=problem.grid)
        row = {
            "name": name,
            "seconds": found.seconds,
            "rounds": len(found.history),
            "training_loss_m": found.loss,
            "status": "  ".join([found.status, *found.warnings]),
            "ended": found.ending.ended.value,
        }
        row |= {"loss_m": measured.loss.value, "bayes_error": measured.bayes_error.value}
        rows.append({**row, "information_bits": measured.information_bits.value})
        say(
            f"{name}: Bayes error {rows[-1]['bayes_error']:.3f} at {rows[-1]['loss_m']:.1f} m,"
            f" {rows[-1]['seconds']:.0f} s"
        )
        write_json(
            path,
            {
                "max_loss_m": MAX_LOSS_M,
                "users": USERS,
                "points": POINTS,
                "seed": SEED,
                "rows": rows,
            },
        )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, nargs="+", default=[1, 5])
    parser.add_argument(
        "--again", action="store_true", help="run again what an earlier run has saved"
    )
    chosen = parser.parse_args()
    main(minutes=tuple(chosen.minutes), again=chosen.again)
