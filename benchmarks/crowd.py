"""How learning grows with users and check-ins: processor seconds and peak memory of `solve`, each
in a process of its own on one thread, compiling included, no proof: with a small codebook (256
places, 300 steps, for these check-ins alone), and apart from that with the default one.

Synthetic town: venues spread normally over 6 km, n / 20 of them (50 at least, 50,000 at most);
every user has four favourites and spends a third of the check-ins elsewhere; a budget of 300 m.

python -m benchmarks crowd, which draws docs/images/crowd-growth.png
python -m benchmarks.crowd default, which writes benchmarks/crowd_default.json
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.alone import alone
from sfumato.files import write_json

SIZES = (  # users, check-ins
    (6, 1_000),
    (60, 10_000),
    (600, 10_000),
    (600, 100_000),
    (6_000, 100_000),
    (6_000, 1_000_000),
    (6_000, 10_000_000),
)
_DEFAULT = Path(__file__).resolve().parent / "crowd_default.json"
_FIGURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "crowd-growth.png"
_PER_CHECKIN, _BASE = 60, 500e6  # bytes wanted, at most


def town(users: int, checkins: int) -> Any:
    """Check-ins of users with favourites, by a fixed seed."""
    import numpy as np

    from sfumato.data.samples import Samples

    random = np.random.default_rng(users + checkins)
    venues = np.round(random.normal(0, 3000, (max(50, min(50_000, checkins // 20)), 2)))
    favourites = random.integers(len(venues), size=(users, 4))
    secret = (np.arange(checkins, dtype=np.int32) % users).astype(np.int32)
    chosen = random.integers(4, size=checkins).astype(np.int8)
    chosen = favourites.astype(np.int32)[secret, chosen]
    away = random.random(checkins) < 1 / 3
    np.copyto(chosen, random.integers(len(venues), size=checkins), where=away, casting="unsafe")
    return Samples(secret, venues[chosen], tuple(map(str, range(users))))


def _small(users: int, checkins: int) -> dict[str, float]:
    """Of a small codebook for these check-ins alone."""
    from sfumato.solver import Codebook

    return _one(
        users, checkins, Codebook(made_for="these", places=256, steps=300, distillation=0.0)
    )


def _default(users: int, checkins: int) -> dict[str, float]:
    """Of the default codebook."""
    from sfumato.solver import Codebook

    return _one(users, checkins, Codebook())


def _one(users: int, checkins: int, settings: Any) -> dict[str, float]:
    """Seconds and bytes of one solve, in this process."""
    import resource
    import time

    from sfumato.solver import Problem
    from sfumato.study.solve import solve

    problem = Problem(town(users, checkins), max_loss=300)
    found = solve(problem, settings, proof="none")
    return {
        "seconds": time.process_time(),
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        "vulnerability": 1 - found.measured.bayes_error.value,
        "blind": float(problem.joint.prior.max()),
    }


def run() -> dict[str, Any]:
    """All sizes, one after another."""
    found = _all(_small, SIZES)
    plot(found, _FIGURE)
    return {
        "name": "growth with users and check-ins",
        "command": "python -m benchmarks crowd",
        "runs": found,
        "bytes_per_checkin": _PER_CHECKIN,
        "base_bytes": _BASE,
        "met": all(row["bytes"] <= _BASE + _PER_CHECKIN * row["checkins"] for row in found)
        and all(ratio <= 10 for ratio in _tenfold(found).values()),
    }


def default() -> None:
    """The default codebook, for fewer check-ins: it takes minutes."""
    sizes = [(users, checkins) for users, checkins in SIZES if checkins < 10_000_000]
    command = "python -m benchmarks.crowd default"
    write_json(_DEFAULT, {"command": command, "runs": _all(_default, sizes)})


def _all(
    one: Callable[..., dict[str, float]], sizes: Iterable[tuple[int, int]]
) -> list[dict[str, Any]]:
    found = []
    for users, checkins in sizes:
        line = {"users": users, "checkins": checkins, **alone(one, users, checkins)}
        print(line, file=sys.stderr, flush=True)
        found.append(line)
    return found


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    """Processor seconds and peak memory against check-ins, a line for each number of users."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for users in sorted({row["users"] for row in runs}):
        mine = [row for row in runs if row["users"] == users]
        checkins = [row["checkins"] for row in mine]
        axes[0].loglog(checkins, [row["seconds"] for row in mine], marker="o", label=f"{users:,}")
        axes[1].loglog(checkins, [row["bytes"] / 1e6 for row in mine], marker="o")
    sizes = [10.0**power for power in range(3, 8)]
    allowed = [(_BASE + _PER_CHECKIN * size) / 1e6 for size in sizes]
    axes[1].loglog(sizes, allowed, "k--", label="500 MB and 60 bytes per check-in")
    axes[0].set_ylabel("processor seconds, one thread")
    axes[1].set_ylabel("peak memory, MB")
    axes[0].legend(title="users", fontsize=8)
    axes[1].legend(fontsize=8)
    for axis in axes:
        axis.set_xlabel("check-ins")
        axis.grid(alpha=0.3)
        axis.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 4, 6)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
    figure.savefig(path, dpi=120)


def _tenfold(runs: list[dict[str, Any]]) -> dict[tuple[int, int], float]:
    """By what ten times the check-ins multiply the seconds, by users and the smaller number."""
    seconds = {(row["users"], row["checkins"]): row["seconds"] for row in runs}
    return {
        (users, checkins): seconds[users, 10 * checkins] / spent
        for (users, checkins), spent in seconds.items()
        if (users, 10 * checkins) in seconds
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Lines of RESULTS.md, where this was run."""
    if not (own := found.get("crowd")):
        return []
    lines = []
    for row in own["runs"]:
        size = f"{row['users']:,} users, {row['checkins']:,} check-ins"
        wanted = own["base_bytes"] + own["bytes_per_checkin"] * row["checkins"]
        lines += [
            (
                f"300 steps of a codebook, {size}: processor seconds",
                f"{row['seconds']:.0f}",
                "",
                own,
            ),
            (
                f"the same, {size}: peak memory, MB",
                f"{row['bytes'] / 1e6:.0f}",
                f"at most {wanted / 1e6:.0f}",
                own,
            ),
        ]
    for (users, checkins), ratio in _tenfold(own["runs"]).items():
        text = (
            f"{users:,} users, from {checkins:,} to {10 * checkins:,} check-ins: ratio of seconds"
        )
        lines.append((text, f"{ratio:.1f}", "at most 10", own))
    return lines


if __name__ == "__main__" and sys.argv[1:] == ["default"]:
    default()
