"""Planar Laplace reports for a million points: sfumato against the package GeoPrivacy 0.0.4, in an
environment of its own.

Both sides use one thread; seconds are of processor time, so that other load on the machine does not
count.

python -m benchmarks.laplace_sampling
"""

import json
import subprocess
import time
from statistics import median
from typing import Any

from benchmarks.peer import python_with
from sfumato.data.synthetic import four_corners
from sfumato.mechanism.laplace import PlanarLaplace

POINTS = 1_000_000
REPEATS = 5
EPSILON = 0.01
PACKAGE = "GeoPrivacy==0.0.4"
AT_LEAST = 100

# Theirs: answers each line on stdin with the processor seconds that it took to make the reports.
_PEER = """
import sys, time
import numpy as np
from GeoPrivacy.mechanism import batch_laplace_noise
points, epsilon = int(sys.argv[1]), float(sys.argv[2])
truth = np.zeros((points, 2))
batch_laplace_noise(1000, epsilon)
print("ready", flush=True)
for _ in sys.stdin:
    start = time.process_time()
    truth + batch_laplace_noise(points, epsilon)
    print(time.process_time() - start, flush=True)
"""


def run() -> dict[str, Any]:
    """Processor seconds of both in turn, and the ratio of the medians."""
    data = four_corners(seed=0).all.truth
    truth = data[[row % len(data) for row in range(POINTS)]]
    mechanism = PlanarLaplace(EPSILON)
    ours: list[float] = []
    secure: list[float] = []
    theirs: list[float] = []
    command = [str(python_with(PACKAGE, home="geoprivacy")), "-c", _PEER, str(POINTS), str(EPSILON)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        if peer.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{PACKAGE} did not start; remove .bench and run again")
        mechanism.sample(truth[:1000], seed=0)
        for repeat in range(REPEATS):
            peer.stdin.write("go\n")
            peer.stdin.flush()
            theirs.append(float(peer.stdout.readline()))
            ours.append(_seconds(mechanism, truth, repeat))
            secure.append(_seconds(mechanism, truth, None))
        peer.stdin.close()
    return {
        "name": "planar Laplace sampling against GeoPrivacy 0.0.4",
        "command": "python -m benchmarks.laplace_sampling",
        "points": POINTS,
        "repeats": REPEATS,
        "ours_us_per_point": median(ours) / POINTS * 1e6,
        "ours_secure_us_per_point": median(secure) / POINTS * 1e6,
        "theirs_us_per_point": median(theirs) / POINTS * 1e6,
        "ratio": median(theirs) / median(ours),
        "ratio_secure": median(theirs) / median(secure),
        "at_least": AT_LEAST,
        "met": median(theirs) / median(ours) >= AT_LEAST,
    }


def _seconds(mechanism: PlanarLaplace, truth: Any, seed: int | None) -> float:
    start = time.process_time()
    mechanism.sample(truth, seed=seed)
    return time.process_time() - start


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
