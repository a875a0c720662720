"""The exact solver against qif and HiGHS, and how its time and memory grow.

Each solve runs in a process of its own with one thread, the two sides in turn. Ratios are of processor seconds, so
that what else the machine does weighs on both alike; the load average is noted beside them.

python -m benchmarks.exact              T(25) against qif and the smallest four corners against HiGHS (some minutes)
python -m benchmarks.exact qif          T(25) and T(30) against qif, T(50) alone
python -m benchmarks.exact highs        four corners against HiGHS, larger until HiGHS needs ten minutes
python -m benchmarks.exact growth       time and memory against truths, reports and users: docs/images/exact-growth.png
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from sfumato.files import read_json, write_json

PACKAGE = "qif==1.6.0"
TIMES_FASTER_THAN_HIGHS = 20
COMMON_GAP, LARGE_GAP, CORNERS_GAP = 0.0005, 0.005, 0.001
SIZES = ((60, 16.0), (100, 10.0), (130, 8.0), (180, 7.0))  # points a user, metres a cell
_ROOT = Path(__file__).resolve().parent.parent
_HOME = _ROOT / ".bench" / "qif"
_RESULTS = Path(__file__).resolve().parent / "exact.json"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Theirs: T(n) with their best setting; prints the same figures as ours. Vulnerability and loss are recomputed from the law.
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


def peer_python() -> Path:
    """The Python of the environment that holds qif; made on first use."""
    python, ready = _HOME / "bin" / "python", _HOME / "ready"
    if not ready.exists():
        print(f"making an environment for {PACKAGE}", file=sys.stderr, flush=True)
        venv.create(_HOME, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", PACKAGE, "numpy"], check=True)
        ready.touch()
    return python


def against_qif(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """T(n) by both, in turn."""
    rows = []
    for n in sizes:
        theirs = _child([str(peer_python()), "-c", _PEER, str(n)])
        ours = _solve("ours", common=n, gap=COMMON_GAP)
        rows.append({"n": n, "ours": ours, "qif": theirs, "ratio": _ratio(theirs, ours)})
    return rows


def against_highs(sizes: tuple[tuple[int, float], ...], *, enough_s: float = 600.0) -> list[dict[str, Any]]:
    """Four corners by both, in turn, larger until HiGHS needs `enough_s` with the better of its methods.

    HiGHS's interior point is also let off early: it may stop at the gap that we prove, without going on to a vertex.
    """
    rows = []
    for points, cell_m in sizes:
        where = {"points": points, "cell_m": cell_m}
        theirs = {"ipm, stopped at the gap": _solve("highs", **where, method="ipm", tolerance=CORNERS_GAP)}
        best = next(iter(theirs.values()))
        if best["processor_seconds"] < enough_s / 5:  # the slower ways, where they end within the hour
            for method in ("ipm", "simplex"):
                theirs[method] = _solve("highs", **where, method=method, limit_s=max(60.0, 10 * best["processor_seconds"]))
        ours = _solve("ours", **where, gap=CORNERS_GAP)
        rows.append({**where, "ours": ours, "highs": theirs, "ratio": _ratio(best, ours)})
        if best["processor_seconds"] >= enough_s:
            break
    return rows


def growth() -> dict[str, list[dict[str, Any]]]:
    """Our time and memory against one size at a time, the others fixed."""
    return {
        "truths": [_solve("ours", points=points, cell_m=20.0, gap=CORNERS_GAP) for points in (30, 60, 120, 240, 480)],
        "reports": [_solve("ours", points=60, cell_m=cell_m, gap=CORNERS_GAP) for cell_m in (40.0, 20.0, 10.0, 5.0, 2.5)],
        "users": [_solve("ours", common=16, users=users, gap=CORNERS_GAP) for users in (2, 3, 4, 5, 6)],
        "truths and reports": [_solve("ours", common=n, gap=CORNERS_GAP) for n in (8, 12, 16, 20, 25)],
    }


def plot(found: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Processor seconds and peak memory, a line for each size that grows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    sizes = {"truths": "truths", "reports": "reports", "users": "users", "truths and reports": "truths"}
    notes = {"truths": "four corners, 20 m cells", "reports": "four corners, 240 truths", "users": "T(16)", "truths and reports": "T(n)"}
    for name, rows in found.items():
        across = [row[sizes[name]] for row in rows]
        for axis, figure_of in zip(axes, ("processor_seconds", "peak_mb"), strict=True):
            axis.loglog(across, [row[figure_of] for row in rows], marker="o", label=f"{name} ({notes[name]})")
    axes[0].set_ylabel("processor seconds, one thread")
    axes[1].set_ylabel("peak memory, MB (75 MB before the solve)")
    for axis in axes:
        axis.set_xlabel("how many")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=120)


def run() -> dict[str, Any]:
    """The short run: T(25) against qif, the smallest four corners against HiGHS."""
    qif, highs = against_qif((25,)), against_highs(SIZES[:1])
    met = qif[0]["ratio"] > 1 and qif[0]["ours"]["gap"] <= COMMON_GAP and highs[0]["ratio"] > 1
    command = "python -m benchmarks.exact"
    return {"name": "exact optimum against qif and HiGHS", "command": command, "qif": qif, "highs": highs, "met": met}


def main(part: str = "short") -> dict[str, Any]:
    """Run one part, print its ratios and keep them in exact.json."""
    load = os.getloadavg()[0]
    if part == "short":
        found = run()
    elif part == "qif":
        found = {"common": against_qif((25, 30)), "large": _solve("ours", common=50, gap=LARGE_GAP)}
    elif part == "highs":
        found = {"corners": against_highs(SIZES)}
    elif part == "growth":
        found = dict(growth())
        plot(found, _ROOT / "docs" / "images" / "exact-growth.png")
    else:
        raise SystemExit(f"unknown part {part!r}; expected short, qif, highs or growth")
    found["load_average"] = [round(load, 1), round(os.getloadavg()[0], 1)]
    kept = read_json(_RESULTS, what="the results") if _RESULTS.exists() else {}
    write_json(_RESULTS, {**kept, part: found})
    for rows in found.values():
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and "ratio" in row:
                size = f"T({row['n']})" if "n" in row else f"four corners, {row['points']} points a user, {row['cell_m']:g} m cells"
                print(f"{size}: {row['ratio']:.1f} times faster, gap {row['ours']['gap']:.5f}")
    return found


def _solve(solver: str, **options: Any) -> dict[str, Any]:
    """One solve in a process of its own."""
    return _child([sys.executable, "-m", "benchmarks.exact_tasks", solver, json.dumps(options)])


def _child(command: list[str]) -> dict[str, Any]:
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT, env={**os.environ, **_ONE_THREAD})
    return json.loads(answer.stdout.splitlines()[-1])


def _ratio(theirs: dict[str, Any], ours: dict[str, Any]) -> float:
    return float(theirs["processor_seconds"] / ours["processor_seconds"])


if __name__ == "__main__":
    main(*sys.argv[1:2])
