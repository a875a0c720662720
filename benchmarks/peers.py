"""sfumato beside its peers on the same tasks: the exact Bayes error of a channel (qif), the Bayes
error from samples alone (F-BLEAU), noise in degrees (Privkit).  The optimum beside qif's is in
`benchmarks.exact`, planar Laplace beside GeoPrivacy's in `benchmarks.laplace_sampling`.

python -m benchmarks.peers run PYTHON  runs the first two into benchmarks/peers.json; PYTHON is one
    that F-BLEAU has wheels for (3.6 to 3.9); without it F-BLEAU is not run
python -m benchmarks.peers noise       runs the third into it; Privkit's environment takes 5 GB, and
    Debian's libusb-1.0-0, libgl1, libgomp1 and libx11-6
python -m benchmarks.peers page        writes docs/comparison.md from the committed JSON
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pyproj import Geod

import sfumato as sf
from benchmarks.exact import COMMON_GAP
from benchmarks.peer import python_with
from sfumato.data.plane import Plane
from sfumato.files import read_json, write_json, write_text
from sfumato.measure.estimate import estimate_bayes_error
from sfumato.mechanism.laplace import PlanarLaplace

HERE = Path(__file__).resolve().parent
RUNS = HERE / "peers.json"
PAGE = HERE.parent / "docs/comparison.md"
SECRETS, REPORTS = 200, 2000  # of the channel
TRAIN, TEST = 10_000, 2_500  # reports
CELL_M, EPSILON = 100.0, 0.01
ESTIMATES = ("knn", "nn-bound")  # its `frequentist` stops with a panic, on any input that was tried

_QIF = """
import json, sys, time
import numpy as np, qif
table = np.load(sys.argv[1])
prior = np.full(len(table), 1 / len(table))
start = time.process_time()
value = 1 - qif.measure.bayes_vuln.posterior(prior, table)
print(json.dumps({"bayes_error": value, "processor_seconds": time.process_time() - start}))
"""

_FBLEAU = """
import json, sys, time
import numpy as np
from fbleau import run_fbleau
given, estimate = np.load(sys.argv[1]), sys.argv[2]
start = time.process_time()
found = run_fbleau(given["train_places"], given["train_secret"], given["test_places"],
                   given["test_secret"], estimate, "ln" if estimate == "knn" else None, "euclidean",
                   False, False, None, None, False, False)
print(json.dumps({"bayes_error": found["min-estimate"], "processor_seconds": time.process_time() - start}))
"""

NOISE, LOSS_M = 200_000, 300.0  # reports of a city
CITIES = {"Paris": (48.86, 2.34), "Singapore": (1.29, 103.85)}
_PRIVKIT = """
import json, sys, time
import numpy as np, pandas as pd, privkit
given = privkit.LocationData("given")
given.data = pd.DataFrame(np.load(sys.argv[1]), columns=["lat", "lon"])
start = time.process_time()
found = privkit.PlanarLaplace(float(sys.argv[3])).execute(given).data
seconds = time.process_time() - start
np.save(sys.argv[2], found[["obf_lat", "obf_lon"]].to_numpy())
print(json.dumps({"its_own_loss_m": float(found["quality_loss"].mean()), "processor_seconds": seconds}))
"""


def _ask(python: Path, code: str, *words: str) -> dict[str, Any]:
    done = subprocess.run([python, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def random_channel() -> np.ndarray:
    """One row per secret."""
    return np.random.default_rng(0).dirichlet(np.full(REPORTS, 0.1), SECRETS)


def ours_of(table: np.ndarray) -> dict[str, Any]:
    """The Bayes error under the uniform prior, and what it took."""
    start = time.process_time()
    value = sf.measure.bayes_error(sf.data.Joint(table / SECRETS))
    return {"bayes_error": value, "processor_seconds": time.process_time() - start}


def channel(folder: Path) -> dict[str, Any]:
    """The Bayes error of a random channel under the uniform prior, by both."""
    table = random_channel()
    np.save(folder / "channel.npy", table)
    ours = ours_of(table)
    python = python_with("qif==1.6.0", "numpy", home="qif")
    return {"sfumato": ours, "qif": _ask(python, _QIF, str(folder / "channel.npy"))}


def samples(folder: Path, fbleau: str | None) -> dict[str, Any]:
    """The Bayes error of planar Laplace noise on the paper's four users, from reports alone; the
    law gives the true one."""
    data = sf.four_corners(seed=0).train
    law = PlanarLaplace(EPSILON)
    grid = sf.Grid(cell_m=CELL_M)
    exact = sf.judge(law, data, grid=grid).bayes_error
    pick = np.random.default_rng(1).integers(0, len(data), TRAIN + TEST)
    reports, secret = law.sample(data.truth[pick], seed=2), data.secret[pick]
    halves = {"train": slice(0, TRAIN), "test": slice(TRAIN, None)}
    given = {f"{name}_secret": secret[part].astype(np.uint64) for name, part in halves.items()}
    given |= {f"{name}_places": reports[part] for name, part in halves.items()}
    np.savez(folder / "samples.npz", **given)  # type: ignore[arg-type]
    start = time.process_time()
    ours = estimate_bayes_error(secret, reports, grid, secrets=len(data.secrets))
    seconds = time.process_time() - start
    found: dict[str, Any] = {
        "law": exact.value,
        "sfumato": {
            "bayes_error": ours.value,
            "low": ours.low,
            "high": ours.high,
            "processor_seconds": seconds,
        },
    }
    if fbleau is not None:
        python = _environment(fbleau)
        for estimate in ESTIMATES:
            answer = _ask(python, _FBLEAU, str(folder / "samples.npz"), estimate)
            found[f"fbleau {estimate}"] = answer
    return found


def noise(folder: Path) -> dict[str, Any]:
    """Planar Laplace noise of a mean of LOSS_M metres on places in degrees, and how far its reports
    are from their truths."""
    # With open3d 0.20 `import privkit` fails; any PyTorch does, and the newest brings CUDA.
    home = python_with("privkit==0.5.1", "open3d==0.19.0", "torch==2.13.0", home="privkit")
    law = PlanarLaplace.for_loss(LOSS_M)
    found: dict[str, Any] = {}
    for name, middle in CITIES.items():
        spread = np.random.default_rng(0).uniform(-0.02, 0.02, (NOISE, 2))
        truth = np.array(middle) + spread
        np.save(folder / "truth.npy", truth)
        plane = Plane(*middle)
        start = time.process_time()
        ours = np.column_stack(plane.to_degrees(law.sample(plane.to_metres(*truth.T), seed=1)))
        seconds = time.process_time() - start
        words = [str(folder / "truth.npy"), str(folder / "reports.npy"), str(law.epsilon)]
        theirs = _ask(home, _PRIVKIT, *words)
        found[name] = {
            "sfumato": {**off(truth, ours), "processor_seconds": seconds},
            "privkit": {**off(truth, np.load(folder / "reports.npy")), **theirs},
        }
    return found


def off(truth: np.ndarray, reports: np.ndarray) -> dict[str, float]:
    """Mean metres between places and reports in degrees; of them east or west, north or south."""
    ends = [truth[:, 1], truth[:, 0], reports[:, 1], reports[:, 0]]
    bearing, _, metres = Geod(ellps="WGS84").inv(*ends)
    bearing = np.radians(bearing)
    return {
        "loss_m": float(metres.mean()),
        "east_m": float(np.abs(metres * np.sin(bearing)).mean()),
        "north_m": float(np.abs(metres * np.cos(bearing)).mean()),
    }


def _environment(python: str) -> Path:
    folder = HERE.parent / ".bench" / "fbleau"
    subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [folder / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "fbleau==0.3.2", "numpy<2"], check=True)
    return folder / "bin/python"


def run(fbleau: str | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_json(
            RUNS,
            {
                "command": "python -m benchmarks.peers run PYTHON",
                "channel": channel(folder),
                "samples": samples(folder, fbleau),
                "noise": read_json(RUNS, what="peers.json").get("noise", {}),
            },
        )


def run_noise() -> None:
    with tempfile.TemporaryDirectory() as name:
        found = {**read_json(RUNS, what="peers.json"), "noise": noise(Path(name))}
        write_json(RUNS, found)


def page() -> str:
    """The comparison, from the JSON of the runs."""
    peers = read_json(RUNS, what="peers.json")
    sampling = read_json(HERE / "results.json", what="results.json")["laplace_sampling"]
    optimum = read_json(HERE / "exact.json", what="exact.json")["qif"]["common"]
    text = (HERE / "comparison.md").read_text("utf-8")
    rows = [
        f"| sfumato, cells of {CELL_M:.0f} m | ≈{_three(ours['bayes_error'])} [{_three(ours['low'])},"
        f" {_three(ours['high'])}] | {_seconds(ours)} |"
        for ours in [peers["samples"]["sfumato"]]
    ]
    rows += [
        f"| F-BLEAU, `{estimate}` | ≈{_three(found['bayes_error'])}"
        f"{' (a lower bound)' if estimate == 'nn-bound' else ''} | {_seconds(found)} |"
        for estimate in ESTIMATES
        if (found := peers["samples"].get(f"fbleau {estimate}"))
    ]
    law = [
        f"| {name} | {peers['channel'][name]['bayes_error']:.12f} |"
        f" {peers['channel'][name]['processor_seconds']:.4f} |"
        for name in ("sfumato", "qif")
    ]
    solved = [
        f"| {row['n']} x {row['n']} | {row['ours']['leakage']:.5f} | {_seconds(row['ours'])} |"
        f" {row['qif']['leakage']:.5f} | {_seconds(row['qif'])} | {row['ratio']:.0f} |"
        for row in optimum
    ]
    return text.format(
        noisy=f"{NOISE:,}",
        asked=f"{LOSS_M:.0f}",
        secrets=SECRETS,
        reports=REPORTS,
        channel="\n".join(law),
        samples="\n".join(rows),
        law=_three(peers["samples"]["law"]),
        count=f"{TRAIN + TEST:,}",
        train=f"{TRAIN:,}",
        gap=COMMON_GAP,
        optimum="\n".join(solved),
        points=f"{sampling['points']:,}",
        ours_us=f"{sampling['ours_us_per_point']:.3f}",
        secure_us=f"{sampling['ours_secure_us_per_point']:.3f}",
        theirs_us=f"{sampling['theirs_us_per_point']:.2f}",
        recorded=f"{peers['noise']['Paris']['privkit']['its_own_loss_m']:.0f}",
        **_of_noise(peers["noise"], "sfumato", "ours"),
        **_of_noise(peers["noise"], "privkit", "theirs"),
    )


def _of_noise(found: dict[str, Any], tool: str, name: str) -> dict[str, Any]:
    """Figures of a tool's noise, one per city; microseconds over all of them."""
    cities = [found[city][tool] for city in CITIES]
    seconds = sum(one["processor_seconds"] for one in cities)
    return {
        f"{name}_m": [f"{one['loss_m']:.0f}" for one in cities],
        f"{name}_north_m": [f"{one['north_m']:.0f}" for one in cities],
        f"{name}_noise_us": f"{seconds / NOISE / len(cities) * 1e6:.1f}",
    }


def _three(value: float) -> str:
    return f"{value:.3f}"


def _seconds(found: dict[str, Any]) -> str:
    return f"{found['processor_seconds']:.3g}"


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        write_text(PAGE, page())
    elif sys.argv[1:] == ["noise"]:
        run_noise()
    elif sys.argv[1:2] == ["run"]:
        run(sys.argv[2] if sys.argv[2:] else None)
    else:
        raise SystemExit("expected run [PYTHON], noise or page")
