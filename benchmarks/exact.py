"""The exact solver against qif and HiGHS, and how its time and memory grow.

Each solve runs in a process of its own with one thread, the two sides in turn. Ratios are of
processor seconds, so that other load on the machine affects both sides alike; the load average is
recorded with them.

- `python -m benchmarks.exact`: T(25) against qif and the smallest four corners against HiGHS (some
  minutes)
- `python -m benchmarks.exact qif`: T(25) and T(30) against qif
- `python -m benchmarks.exact large`: T(60), which no peer solves
- `python -m benchmarks.exact highs`: four corners against HiGHS, in growing sizes until HiGHS needs
  ten minutes of processor time
- `python -m benchmarks.exact growth`: time and memory against truths, reports and users, drawn in
  docs/images/exact-growth.png; `growth users` runs that size alone
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.peer import python_with
from sfumato.files import read_json, write_json

PACKAGE = "qif==1.6.0"
TIMES_FASTER_THAN_QIF, TIMES_FASTER_THAN_HIGHS = 40, 20
COMMON_GAP, LARGE_GAP, CORNERS_GAP = 0.0005, 0.005, 0.001
SIZES = ((60, 16.0), (100, 10.0), (180, 5.0), (240, 4.0))  # points a user, metres a cell
ENOUGH_S = 600.0  # processor seconds of HiGHS at which the sizes stop growing and it is cut off
SLOW_S = (
    120.0  # its slower methods are stopped here; one that needed a third of this is not run again
)
WAYS: dict[str, dict[str, Any]] = {
    "ipm, stopped at the gap": {"method": "ipm", "tolerance": CORNERS_GAP},
    "ipm": {"method": "ipm"},
    "simplex": {"method": "simplex"},
}
_ROOT = Path(__file__).resolve().parent.parent
_RESULTS = Path(__file__).resolve().parent / "exact.json"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Theirs: T(n) with their best setting; prints the same figures as ours. Vulnerability and loss are
# recomputed from the law.
_PEER = """
import json, resource, sys, time
import numpy as np, qif
n = int(sys.argv[1])
axis = np.arange(n) + 0.5
places = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
centres = [(x, y) for x in (n / 4, 3 * n / 4) for y in (n / 4, 3 * n / 4)]
joint = np.array([np.exp(-((places - c) ** 2).sum(axis=1) / (2 * (n / 5) ** 2)) for c in centres])
joint /= joint.sum(axis=1, keepdims=True) * 4
mass = joint.sum(axis=0)
posterior, loss = joint / mass, np.sqrt(((places[:, None] - places) ** 2).sum(axis=-1))
qif.lp.defaults.solver, qif.lp.defaults.method = "CLP", "INTERIOR"
start, processor = time.perf_counter(), time.process_time()
law = np.array(qif.mechanism.g_vuln.min_vuln_given_max_loss(
    mass, n * n, 4, n / 6, lambda a, w: float(posterior[a, w]), lambda w, z: float(loss[w, z])))
found = {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - processor}
found |= {"leakage": float((joint @ law).max(axis=0).sum()), "loss": float(mass @ (law * loss).sum(axis=1))}
print(json.dumps(found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def against_qif(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """T(n) by both, in turn."""
    rows = []
    for n in sizes:
        theirs = _child([str(python_with(PACKAGE, "numpy", home="qif")), "-c", _PEER, str(n)])
        ours = _solve("ours", common=n, gap=COMMON_GAP)
        rows.append({"n": n, "ours": ours, "qif": theirs, "ratio": _ratio(theirs, ours)})
    return rows


def against_highs(sizes: tuple[tuple[int, float], ...]) -> list[dict[str, Any]]:
    """Four corners by both, in turn, larger until HiGHS needs ten minutes with the best of its
    ways.

    HiGHS's interior point is also let off early: it may stop at the gap that we prove, without
    going on to a vertex. Where its best way was cut off, the ratio is a lower bound.
    """
    rows = []
    slow: set[str] = set()
    for points, cell_m in sizes:
        where = {"points": points, "cell_m": cell_m}
        print(
            f"four corners, {points} points a user, {cell_m:g} m cells", file=sys.stderr, flush=True
        )
        ours = _solve("ours", **where, gap=CORNERS_GAP)
        theirs = {}
        for way, options in WAYS.items():
            if way not in slow:
                first = way == next(iter(WAYS))
                theirs[way] = _solve(
                    "highs", **where, **options, limit_s=ENOUGH_S if first else SLOW_S
                )
                if not first and theirs[way]["processor_seconds"] > SLOW_S / 3:
                    slow.add(way)
        best = min(theirs.values(), key=lambda one: (one["cut_off"], one["processor_seconds"]))
        rows.append(
            {
                **where,
                "ours": ours,
                "highs": theirs,
                "ratio": _ratio(best, ours),
                "at_least": best["cut_off"],
            }
        )
        if best["processor_seconds"] >= ENOUGH_S:
            break
    return rows


GROWTH: dict[str, list[dict[str, Any]]] = {
    "truths": [{"points": points, "cell_m": 20.0} for points in (30, 60, 120, 240, 480)],
    "reports": [{"points": 60, "cell_m": cell_m} for cell_m in (40.0, 20.0, 10.0, 5.0, 2.5)],
    "users": [{"common": 16, "users": users} for users in (2, 4, 6, 12, 24)],
    "truths and reports": [{"common": n} for n in (8, 12, 16, 20, 25, 35, 50)],
}


def growth(only: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """Our time and memory against one size at a time, the others fixed; `only` names one size, and
    the others stay as they were measured."""
    kept = read_json(_RESULTS, what="the results")["growth"] if only else {}
    return {
        name: [_solve("ours", **size, gap=CORNERS_GAP) for size in sizes]
        if only in (None, name)
        else kept[name]
        for name, sizes in GROWTH.items()
    }


def plot(found: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Processor seconds and peak memory, a line for each size that grows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    sizes = {
        "truths": "truths",
        "reports": "reports",
        "users": "users",
        "truths and reports": "truths",
    }
    notes = {
        "truths": "four corners, 20 m cells",
        "reports": "four corners, 240 truths",
        "users": "T(16)",
        "truths and reports": "T(n)",
    }
    for name, rows in found.items():
        across = [row[sizes[name]] for row in rows]
        for axis, figure_of in zip(axes, ("processor_seconds", "peak_mb"), strict=True):
            axis.loglog(
                across,
                [row[figure_of] for row in rows],
                marker="o",
                label=f"{name} ({notes[name]})",
            )
    axes[0].set_ylabel("processor seconds, one thread")
    axes[1].set_ylabel("peak memory, MB (75 MB before the solve)")
    for axis in axes:
        axis.set_xlabel("number of truths, reports or users")
        axis.grid(alpha=0.3)
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].legend(fontsize=8)
    axes[1].yaxis.set_major_formatter("{x:g}")
    axes[1].yaxis.set_minor_formatter("{x:g}")
    figure.savefig(path, dpi=120)


def run() -> dict[str, Any]:
    """The short run: T(25) against qif, the smallest four corners against HiGHS."""
    qif, highs = against_qif((25,)), against_highs(SIZES[:1])
    met = qif[0]["ratio"] > 1 and qif[0]["ours"]["gap"] <= COMMON_GAP and highs[0]["ratio"] > 1
    command = "python -m benchmarks.exact"
    return {
        "name": "exact optimum against qif and HiGHS",
        "command": command,
        "qif": qif,
        "highs": highs,
        "met": met,
    }


def main(part: str = "short", only: str | None = None) -> dict[str, Any]:
    """Run one part, print its ratios and keep them in exact.json; `only` names one size of the
    growth or of qif."""
    load = os.getloadavg()[0]
    if part == "short":
        found = run()
    elif part == "qif":
        before = read_json(_RESULTS, what="the results")["qif"]["common"] if only else []
        rows = against_qif((25, 30) if only is None else (int(only),))
        new = {row["n"]: row for row in [*before, *rows]}
        found = {"common": [new[n] for n in sorted(new)]}
    elif part == "large":
        found = {"common": [{"n": 60, "ours": _solve("ours", common=60, gap=LARGE_GAP)}]}
    elif part == "highs":
        found = {"corners": against_highs(SIZES)}
    elif part == "growth":
        found = dict(growth(only))
        plot(found, _ROOT / "docs" / "images" / "exact-growth.png")
    else:
        raise SystemExit(f"unknown part {part!r}; expected short, qif, large, highs or growth")
    found["load_average"] = [round(load, 1), round(os.getloadavg()[0], 1)]
    kept = read_json(_RESULTS, what="the results") if _RESULTS.exists() else {}
    write_json(_RESULTS, {**kept, part: found})
    for rows in found.values():
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and "ours" in row:
                size = (
                    f"T({row['n']})"
                    if "n" in row
                    else f"four corners, {row['points']} points a user, {row['cell_m']:g} m cells"
                )
                more = "more than " if row.get("at_least") else ""
                faster = f"{more}{row['ratio']:.1f} times faster, " if "ratio" in row else ""
                ours = row["ours"]
                print(
                    f"{size}: {faster}gap {ours['gap']:.5f}, {ours['processor_seconds']:.1f} s,"
                    f" {ours['peak_mb']:.0f} MB"
                )
    return found


def rows_of(kept: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Rows for RESULTS.md from exact.json: figure, measured, wanted, command."""
    rows = []
    command = "python -m benchmarks.exact "
    for row in kept["qif"]["common"]:
        name, ours = f"T({row['n']})", row["ours"]
        rows.append(
            (
                f"{name}: times faster than qif 1.6 (CLP, interior)",
                f"{row['ratio']:.0f}",
                f"at least {TIMES_FASTER_THAN_QIF}",
                command + "qif",
            )
        )
        rows.append(
            (
                f"{name}: certified gap",
                _small(ours["gap"]),
                f"at most {COMMON_GAP}",
                command + "qif",
            )
        )
        rows.append(
            (
                f"{name}: processor seconds, ours and qif's",
                f"{_time(ours)} and {_time(row['qif'])}",
                "",
                command + "qif",
            )
        )
    for row in kept["large"]["common"]:
        name, ours = f"T({row['n']}), {_size(row['ours'])}", row["ours"]
        rows.append(
            (
                f"{name}: certified gap",
                _small(ours["gap"]),
                f"at most {LARGE_GAP}",
                command + "large",
            )
        )
        rows.append(
            (
                f"{name}: processor seconds, peak MB",
                f"{_time(ours)}, {ours['peak_mb']:.0f}",
                "",
                command + "large",
            )
        )
    corners = kept["highs"]["corners"]
    for row in corners:
        name = f"four corners, {_size(row['ours'])}"
        more, wanted = (
            ("more than " if row["at_least"] else ""),
            (f"at least {TIMES_FASTER_THAN_HIGHS}" if row is corners[-1] else ""),
        )
        rows.append(
            (
                f"{name}: times faster than HiGHS's best method",
                f"{more}{row['ratio']:.0f}",
                wanted,
                command + "highs",
            )
        )
        ways = "; ".join(
            f"{way} {'more than ' if one['cut_off'] else ''}{_time(one)}"
            for way, one in row["highs"].items()
        )
        rows.append(
            (
                f"{name}: processor seconds, ours and HiGHS's",
                f"{_time(row['ours'])}; {ways}",
                "",
                command + "highs",
            )
        )
        rows.append(
            (
                f"{name}: certified gap, ours",
                _small(row["ours"]["gap"]),
                f"at most {CORNERS_GAP}",
                command + "highs",
            )
        )
    for name, sizes in kept["growth"].items():
        if name != "load_average":
            first, last = sizes[0], sizes[-1]
            grown = (
                f"growth with {name}: processor seconds, peak MB, from {_growing(name, first)} to"
                f" {_growing(name, last)}"
            )
            value = (
                f"{_time(first)} to {_time(last)}, {first['peak_mb']:.0f} to {last['peak_mb']:.0f}"
            )
            rows.append((grown, value, "", command + "growth"))
    return rows


def _size(row: dict[str, Any]) -> str:
    return f"{row['truths']:,} truths x {row['reports']:,} reports"


def _growing(name: str, row: dict[str, Any]) -> str:
    return _size(row) if name == "truths and reports" else f"{row[name]:,}"


def _small(gap: float) -> str:
    return f"{gap:.5f}" if gap >= 1e-5 else f"{gap:.0e}"


def _time(row: dict[str, Any]) -> str:
    seconds = row["processor_seconds"]
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def _solve(solver: str, **options: Any) -> dict[str, Any]:
    """One solve in a process of its own."""
    return _child([sys.executable, "-m", "benchmarks.exact_tasks", solver, json.dumps(options)])


def _child(command: list[str]) -> dict[str, Any]:
    answer = subprocess.run(
        command,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env={**os.environ, **_ONE_THREAD},
    )
    if (
        answer.returncode == -signal.SIGXCPU
    ):  # the task said before it began what it would be cut off at
        return {**json.loads(answer.stdout.splitlines()[0]), "cut_off": True}
    answer.check_returncode()
    return json.loads(answer.stdout.splitlines()[-1])


def _ratio(theirs: dict[str, Any], ours: dict[str, Any]) -> float:
    return float(theirs["processor_seconds"] / ours["processor_seconds"])


if __name__ == "__main__":
    main(*sys.argv[1:3])
