"""Run every benchmark: `python -m benchmarks` writes benchmarks/results.json and
benchmarks/RESULTS.md.

`python -m benchmarks game grid_memory` runs these alone and keeps the other results as they are.
"""

import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import (
    codebook,
    crowd,
    default_solve,
    engines,
    exact,
    extension,
    folds,
    foretold,
    game,
    game_level,
    grid_estimator,
    grid_memory,
    laplace_sampling,
    large,
    sanitize,
)
from sfumato.files import read_json, write_json, write_text

_HERE = Path(__file__).resolve().parent
SCRIPTS = {
    script.__name__.rpartition(".")[2]: script
    for script in (
        laplace_sampling,
        grid_estimator,
        grid_memory,
        exact,
        game,
        game_level,
        codebook,
        crowd,
        default_solve,
        folds,
        foretold,
        sanitize,
        engines,
        extension,
    )
}


def game_rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Rows of the game, where it was run."""
    rows = []
    if one := found.get("game"):
        against = "one round of Game.paper(2): times faster than PyTorch 2.13.0"
        rows += [
            (f"{against}, {how}", f"{ratio:.1f}", f"at least {one['at_least']:g}", one)
            for how, ratio in one["ratios"].items()
        ]
        rows += [
            (
                "the same: share of one core's peak floating-point rate",
                f"{one['share_of_peak']:.0%}",
                "",
                one,
            )
        ]
    if climb := found.get("game_level"):
        name = (
            "Game(): times faster than Game.paper(2) to a validation Bayes error of"
            f" {climb['level']:.3f}"
        )
        rows += [(name, f"{climb['ratio']:.0f}", f"at least {climb['at_least']:g}", climb)]
        rows += [
            (
                "processor seconds to that error, Game.paper(2)",
                f"{climb['seconds']['paper']:.0f}",
                "",
                climb,
            )
        ]
        rows += [
            (
                "processor seconds to that error, Game()",
                f"{climb['seconds']['game']:.1f}",
                "",
                climb,
            )
        ]
    return rows


def page(found: dict[str, Any], kept: dict[str, Any], many: dict[str, Any]) -> str:
    """RESULTS.md, from results.json, exact.json and those of thousands of users and of tiles."""
    laplace, grid, memory, machine = (
        found["laplace_sampling"],
        found["grid_estimator"],
        found["grid_memory"],
        found["machine"],
    )
    growth = f"at most {memory['at_most_growth']}"
    faster = "times faster than GeoPrivacy 0.0.4"
    rows = [
        (f"planar Laplace, seeded: {faster}", f"{laplace['ratio']:.0f}", f"at least {laplace['at_least']}", laplace),
        (f"planar Laplace, secure randomness: {faster}", f"{laplace['ratio_secure']:.0f}", "", laplace),
        ("microseconds per point, ours seeded", f"{laplace['ours_us_per_point']:.3f}", "", laplace),
        ("microseconds per point, ours secure", f"{laplace['ours_secure_us_per_point']:.3f}", "", laplace),
        ("microseconds per point, GeoPrivacy", f"{laplace['theirs_us_per_point']:.2f}", "", laplace),
        ("Bayes error with interval: times faster than histogramdd", f"{grid['ratio']:.1f}", f"at least {grid['at_least']:g}", grid),
        ("counting hits alone: times faster than histogramdd", f"{grid['ratio_count_hits']:.1f}", "", grid),
        ("bytes per hit: ratio of the largest to the smallest, 0.3 to 2.4 million hits", f"{memory['growth_per_hit']:.2f}", growth, memory),
        ("the same, 2,600 to 260,000 cells per side", f"{memory['growth_with_empty_cells']:.2f}", growth, memory),
        ("most bytes per hit, on any of these grids", f"{memory['most_bytes_per_hit']:.0f}", f"at most {memory['at_most_bytes']}", memory),
        *game_rows(found),
        *codebook.rows(found),
        *crowd.rows(found),
        *default_solve.rows(found),
        *folds.rows(found),
        *foretold.rows(found),
        *sanitize.rows(found),
        *engines.rows(found),
        *extension.rows(found),
    ]  # fmt: skip
    lines = [
        "# Benchmarks",
        "",
        (
            "This page shows what each part costs, beside its goal. Made by `make bench` from"
            " results.json. Where two sides are compared, they run in turn in one run. Figures are"
        ),
        "medians of processor time (one thread each) or peaks of allocated memory.",
    ]
    lines += [
        f"Machine: {machine['cores']} cores, {machine['system']}, Python {machine['python']}, NumPy"
        f" {machine['numpy']}."
    ]
    lines += [
        f"Work: {laplace['points']:,} points, {laplace['repeats']} times; {grid['hits']:,} hits of"
        " four users on "
    ]
    lines[-1] += (
        f"{grid['cells_per_side']} x {grid['cells_per_side']} cells, {grid['repeats']} times."
    )
    lines += ["", "| figure | measured | goal | command |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {value} | {wanted} | `{source['command']}` |"
        for name, value, wanted, source in rows
    ]
    lines += [
        "",
        (
            "![Processor time and memory of learning against check-ins and"
            " users](../docs/images/crowd-growth.png)"
        ),
        "",
        "## Thousands of users, and tiles",
        "",
        (
            "Made from city.json, osaka.json and atlas.json, which the commands below write. The"
            " relative gap is the share of the vulnerability that is above the proven least."
        ),
        "",
        "| figure | measured | goal | command |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {value} | {wanted} | `{command}` |"
        for name, value, wanted, command in large.rows_of(many)
    ]
    lines += [
        "",
        "## The exact optimum",
        "",
        (
            "Made from exact.json. Each command below writes its part of it (together they take half an"
            " hour or more). Each solve runs in a process"
        ),
        (
            "of its own with one thread; ratios are of processor seconds, both sides in one run."
            " T(n): n x n unit cells as truths and reports,"
        ),
        (
            "four users, Gaussian about the quarter points, a budget of n / 6. Four corners: a budget of 173 m;"
            " HiGHS gets the same truths and the"
        ),
        (
            f"same cells, and is stopped at {exact.ENOUGH_S:.0f} s (its slower methods at"
            f" {exact.SLOW_S:.0f} s;"
        ),
        "a method that needed a third of that is not run at larger sizes).",
        "",
        "| figure | measured | goal | command |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {value} | {wanted} | `{command}` |"
        for name, value, wanted, command in exact.rows_of(kept)
    ]
    lines += [
        "",
        (
            "![Processor time and memory against truths, reports and"
            " users](../docs/images/exact-growth.png)"
        ),
    ]
    return "\n".join([*lines, ""])


def main() -> int:
    machine = {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    chosen = sys.argv[1:] or list(SCRIPTS)
    if unknown := [name for name in chosen if name not in SCRIPTS]:
        print(
            f"there is no benchmark {', '.join(unknown)}; expected {', '.join(SCRIPTS)}",
            file=sys.stderr,
        )
        return 2
    kept = read_json(_HERE / "results.json", what="the benchmark results") if sys.argv[1:] else {}
    found: dict[str, Any] = {**kept, "machine": machine}
    for name in chosen:
        print(f"benchmark: {name}", file=sys.stderr, flush=True)
        found[name] = SCRIPTS[name].run()
    write_json(_HERE / "results.json", found)
    optimum = read_json(_HERE / "exact.json", what="the results of the exact solver")
    text = page(found, optimum, large.kept())
    write_text(_HERE / "RESULTS.md", text)
    print(text)
    missed = [
        entry["name"] for name, entry in found.items() if name != "machine" and not entry["met"]
    ]
    if missed:
        print(f"not met: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
