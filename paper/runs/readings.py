"""What each of our readings does to the planar Laplace figures: the same rows with one thing
changed.

python -m paper.runs.readings
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import (
    EXPERIMENTS,
    HITS,
    RESULTS,
    SEEDS,
    SPLITS,
    gowalla,
    grid,
    load,
    part,
    reports,
)
from paper.printed import Target, targets
from paper.tables import run_module, say
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import PAPER_REGION, SEBASTOPOL
from sfumato.files import write_json
from sfumato.measure.estimate import estimate_bayes_error
from sfumato.randomness import generator

_EQUATOR_M = 6371008.8 * np.pi / 180  # a degree on a sphere of the Earth's mean radius


def _thin_middle(samples: Samples, seed: int) -> Samples:
    """The cloud with its radius uniform (denser in the middle) in place of uniform on the disc."""
    corner = 150 * np.sign(samples.truth)
    offset = samples.truth - corner
    return replace(samples, truth=corner + offset * np.hypot(*offset.T)[:, None] / 45)


def _globe(samples: Samples, seed: int) -> Samples:
    """Metres by degrees times the cosine of the latitude, on a sphere, in place of a tangent
    plane."""
    assert samples.plane is not None
    latitude, longitude = samples.plane.to_degrees(samples.truth)
    east = (longitude - SEBASTOPOL[1]) * np.cos(np.radians(SEBASTOPOL[0]))
    return replace(samples, truth=_EQUATOR_M * np.stack([east, latitude - SEBASTOPOL[0]], axis=1))


def _moved(samples: Samples, seed: int) -> Samples:
    """The address, and with it the grid, up to 100 m elsewhere."""
    return replace(samples, truth=samples.truth + generator(seed).uniform(-100, 100, 2))


def _clamped(secret: np.ndarray, report: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = PAPER_REGION.side_m / 2
    return secret, np.clip(report, -half, half - 1e-6)


def _dropped(secret: np.ndarray, report: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inside = PAPER_REGION.contains(report)
    return secret[inside], report[inside]


Load = Callable[[str, int], Split]
Truths = Callable[[Samples, int], Samples]
Reports = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _plain_draw(data: str, seed: int) -> Split:
    return load(data, seed) if data == "synthetic" else gowalla(seed, overlap_weight=1.0)


READINGS: dict[str, tuple[Load, Truths | None, Reports | None]] = {
    "as we read it": (load, None, None),
    "no thinning of the overlap (plain random choice)": (_plain_draw, None, None),
    "cloud denser in the middle": (load, _thin_middle, None),
    "sphere and cosine of the latitude": (load, _globe, None),
    "address up to 100 m elsewhere": (load, _moved, None),
    "reports outside the region moved to its edge": (load, None, _clamped),
    "reports outside the region left out": (load, None, _dropped),
}


def differences(name: str, experiment: int, seeds: tuple[int, ...]) -> list[float]:
    """Ours less theirs for each planar Laplace row of an experiment that is not doubtful, the
    median over seeds."""
    loads, truths, outside = READINGS[name]
    chosen = EXPERIMENTS[experiment - 1]
    rows: dict[Target, list[float]] = {
        row: [] for row in targets("laplace") if row.experiment == str(experiment) and not row.doubt
    }
    for seed in seeds:
        for split in SPLITS:
            samples = part(loads(chosen.data, seed), split)
            samples = samples if truths is None else truths(samples, seed)
            secret, _, report = reports(samples, chosen.laplace, max(HITS), seed)
            for row in (row for row in rows if row.split == split):
                who, where = secret[: row.hits * len(samples)], report[: row.hits * len(samples)]
                who, where = (who, where) if outside is None else outside(who, where)
                rows[row].append(
                    estimate_bayes_error(
                        who, where, grid(row.cells), secrets=len(samples.secrets)
                    ).value
                )
    return [float(np.median(values)) - row.bayes_error for row, values in rows.items()]


def _touched(name: str) -> tuple[int, ...]:
    return (
        (1, 2)
        if name.startswith("cloud")
        else (3, 4)
        if name.startswith("no thinning")
        else (1, 2, 3, 4)
    )


def main(folder: Path = RESULTS, seeds: tuple[int, ...] = SEEDS) -> None:
    document: dict[str, Any] = {"seeds": list(seeds), "readings": {}}
    ours = {
        number: np.array(differences("as we read it", number, seeds)) for number in (1, 2, 3, 4)
    }
    for name in READINGS:
        say(f"readings: {name}")
        entry = document["readings"][name] = {}
        for number in _touched(name):
            off = np.array(differences(name, number, seeds))
            size, moved = np.abs(off), np.abs(off - ours[number])
            entry[str(number)] = {
                "mean": float(size.mean()),
                "largest": float(size.max()),
                "moved": float(moved.max()),
            }
    write_json(folder / "readings.json", document)


if __name__ == "__main__":
    run_module(__doc__, main)
