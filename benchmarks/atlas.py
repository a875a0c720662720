"""What an atlas does near its tiles' edges, and a country of a thousand tiles on two workers.

python -m benchmarks.atlas country
python -m benchmarks.atlas city DATA RUN
python -m benchmarks.atlas edges RUN

`city` makes the run, or resumes it: codebooks of 128 places, learned in 100 steps for these
check-ins alone, without distillation, at 200 m.

Each writes its figures into benchmarks/atlas.json and leaves the others as they are.
"""

import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.plane import COUNTRY_M, Plane
from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples
from sfumato.data.tiles import Tiling
from sfumato.files import read_json, write_json
from sfumato.mechanism.atlas import Atlas
from sfumato.mechanism.base import Mechanism
from sfumato.solver import Codebook, Coin
from sfumato.study.atlas import AtlasPlan, load_atlas, solve_atlas

_RESULTS = Path(__file__).with_name("atlas.json")
_STEPS = 12  # truths along each side of a patch of the map
_PART = 256  # truths at a time


# A country --------------------------------------------------------------------------------------


def towns(count: int, *, users: int = 6, checkins: int = 20) -> Samples:
    """Towns all over a square of 1,300 km, users with four places in their town and a tenth of
    their check-ins in another, by a fixed seed."""
    random = np.random.default_rng(count)
    middle = random.uniform(-650_000.0, 650_000.0, (count, 2))
    secret = np.repeat(np.arange(count * users), checkins)
    home = secret // users
    away = random.random(len(secret)) < 0.1
    town = np.where(away, random.integers(count, size=len(secret)), home)
    spots = random.normal(0.0, 600.0, (count * users, 4, 2))
    truth = middle[town] + spots[secret, random.integers(4, size=len(secret))]
    return Samples(secret, truth, plane=Plane(46.5, 2.5, COUNTRY_M), name="country")


@contextmanager
def _cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers on this machine."""
    place, log = folder / "scheduler.json", (folder / "cluster.log").open("wb")
    started: list[subprocess.Popen[bytes]] = []

    def start(module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--host", "127.0.0.1"]
        started.append(
            subprocess.Popen([*command, *words, "--no-dashboard"], stdout=log, stderr=log)
        )
        return started[-1]

    try:
        start("dask_scheduler", "--port", "0", "--scheduler-file", str(place))
        while not place.exists():
            time.sleep(0.1)
        own = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder / "w"))
        workers = [start("dask_worker", "--scheduler-file", str(place), *own) for _ in range(2)]
        yield json.loads(place.read_text())["address"], workers
    finally:
        for process in started:
            process.kill()
            process.wait(timeout=30)
        log.close()


def country() -> dict[str, Any]:
    """The same atlas alone and on two workers, of which one is killed half-way."""
    from sfumato.deploy.engines.dask import tiles_on_cluster

    data = towns(400)
    plan = AtlasPlan(Coin(), users_per_tile=12, fewest_checkins=20)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        start = time.perf_counter()
        alone = solve_atlas(data, folder / "alone", max_loss=500.0, plan=plan)
        alone_s = time.perf_counter() - start
        done: list[int] = []
        with _cluster(folder) as (address, workers):

            def watched(work: Path, tiles: list[int]) -> Iterator[int]:
                for tile in tiles_on_cluster(address)(work, tiles):
                    done.append(tile)
                    if len(done) == len(tiles) // 2:
                        workers[0].send_signal(signal.SIGKILL)
                    yield tile

            start = time.perf_counter()
            both = solve_atlas(data, folder / "both", max_loss=500.0, plan=plan, runner=watched)
            both_s = time.perf_counter() - start
            killed = workers[0].wait(timeout=30) == -signal.SIGKILL
        size = (folder / "alone" / "mechanism.npz").stat().st_size
    truth = np.resize(data.truth, (1_000_000, 2))
    start = time.process_time()
    alone.mechanism.sample(truth, seed=0)
    per_second = len(truth) / (time.process_time() - start)
    return {
        "checkins": len(data),
        "users": len(data.secrets),
        "tiles": len(alone.mechanism.tiling),
        "tiles_with_checkins": len(alone.tiles),
        "answered_by": alone.answered,
        "widest_km": 1300,
        "worker_killed": killed,
        "same_mechanism": _digest(alone.mechanism) == _digest(both.mechanism),
        "same_figures": alone.run.record.train == both.run.record.train,
        "wall_s_alone": alone_s,
        "wall_s_two_workers_one_killed": both_s,
        "file_bytes": size,
        "reports_per_second": per_second,
        "loss": alone.run.record.train["loss"],
        "bayes_error": alone.run.record.train["bayes_error"],
    }


def _digest(mechanism: Atlas) -> str:
    found = hashlib.sha256()
    for name, array in sorted(mechanism.arrays().items()):
        found.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


# Edges ------------------------------------------------------------------------------------------


def edges(run: str, data: Samples | None = None) -> dict[str, Any]:
    """Loss, errors and what reports tell about the side of a line, near edges and within tiles."""
    made = load_atlas(run)
    atlas = made.mechanism
    if data is None:
        assert made.run.recipe is not None
        data = made.run.recipe.load().train
    assert data.hash == made.run.record.data.hash
    hard = _with_overlap(atlas, 0.0)
    found: dict[str, Any] = {
        "command": made.run.record.settings,
        "tiles": len(atlas.tiling),
        "answered_by": made.answered,
        "seconds": made.run.record.seconds,
        "stated": {name: made.run.record.train[name] for name in ("loss", "bayes_error")},
        "to_come": None if made.run.record.to_come is None else made.run.record.to_come.as_dict(),
    }
    noise = [n for n, one in enumerate(atlas.mechanisms) if one.kind == "planar laplace"]
    weights = atlas.tiling.weights(data.truth)
    by_noise = np.asarray(weights[:, np.isin(atlas.which, noise)].sum(axis=1)).ravel() > 0
    found["left_out"] = int(by_noise.sum())  # check-ins that a tile with noise may answer
    data = data.take(~by_noise)
    near = atlas.tiling.weights(data.joint().places).max(axis=1).toarray().ravel() < 1
    for name, one in (("blended", atlas), ("not blended", hard)):
        found[name] = _by_zone(one, data, near)
    assert made.run.max_loss is not None
    found["side"] = _sides(atlas, made.run.max_loss)
    return found


def _with_overlap(atlas: Atlas, overlap_m: float) -> Atlas:
    tiling = Tiling(atlas.tiling.region, atlas.tiling.squares, overlap_m)
    return replace(atlas, tiling=tiling).on_plane(atlas.plane)


def _by_zone(atlas: Atlas, data: Samples, near: np.ndarray) -> dict[str, Any]:
    """Loss and error of the best guess for truths near edges, and for the others."""
    joint = data.joint()
    assert joint.places is not None
    law = atlas.law(joint)
    assert law is not None and law.joint.places is not None
    table = law.joint.table if law.joint.sparse is None else law.joint.sparse
    guess = np.asarray(table.argmax(axis=0)).ravel()
    number = {tuple(place): at for at, place in enumerate(law.joint.places.tolist())}
    before = (joint.table if joint.sparse is None else joint.sparse.tocsc())[:, :]
    right, cost = np.zeros(len(joint.places)), np.zeros(len(joint.places))
    for start in range(0, len(joint.places), _PART):
        part = slice(start, start + _PART)
        truth = joint.places[part]
        rows = atlas.rows(truth)
        assert rows is not None
        of_place = guess[[number[tuple(place)] for place in rows.places.tolist()]]
        own = before[:, part]
        own = own.toarray() if joint.sparse is not None else own
        right[part] = np.asarray(rows.matrix.multiply(own[of_place].T).sum(axis=1)).ravel()
        cost[part] = rows.losses(truth, lambda a, b: np.hypot(*(a - b).T))
    mass = joint.place_probability
    zones = {"near an edge": near, "within a tile": ~near, "all": near | ~near}
    return {
        name: {
            "share": float(mass[zone].sum()),
            "loss": float(mass[zone] @ cost[zone] / mass[zone].sum()),
            "error": float(1 - right[zone].sum() / mass[zone].sum()),
        }
        for name, zone in zones.items()
    }


def _sides(atlas: Atlas, half: float) -> dict[str, Any]:
    """How often the best guess from a report names the right half of a square patch, on whose
    middle line an edge lies or not; exact, for truths equally likely on a lattice in the patch.
    The same tiles with other overlaps beside it, and each of the two tiles alone on the same patch:
    what is told more than that, with a 95 % interval over the edges."""
    tiling = atlas.tiling
    noise = [n for n, one in enumerate(atlas.mechanisms) if one.kind == "planar laplace"]
    learned = ~np.isin(atlas.which, noise)
    steps = (np.arange(_STEPS) + 0.5) / _STEPS * 2 - 1
    patch = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2) * half
    overlaps = [times * half for times in (0.0, 0.5, 1.0, 2.0, 2.8, 4.0)]
    atlases = {
        overlap: _with_overlap(atlas, overlap)
        for overlap in overlaps
        if 2 * overlap <= tiling.sides_m.min()
    }
    found: dict[str, list[float]] = {f"edge, overlap {overlap:g} m": [] for overlap in atlases}
    found |= {"no edge": [], "one tile alone": []}
    edge_of: list[tuple[int, int]] = []
    for tile in np.flatnonzero(learned):
        low, side = tiling.corners[tile], tiling.sides_m[tile]
        for axis in (0, 1):
            across = np.eye(2)[axis]
            for along in (0.3, 0.5, 0.7):
                middle = low + side * (across + along * np.eye(2)[1 - axis])
                met = atlases[max(atlases)].tiling.weights(middle + patch).indices
                inside = tiling.region.contains(middle + 2 * patch).all()
                if not inside or not learned[met].all():
                    continue
                for overlap, one in atlases.items():
                    found[f"edge, overlap {overlap:g} m"].append(_told(one, middle + patch, axis))
                inner = middle - across * side / 2
                found["no edge"].append(_told(atlases[0.0], inner + patch, axis))
                beside = tiling.locate(middle + np.outer([-1.0, 1.0], across))
                alone = [_told(atlas.sheet(int(one)), middle + patch, axis) for one in beside]
                found["one tile alone"].append(float(np.mean(alone)))
                edge_of.append((int(tile), axis))
    _, edge = np.unique(edge_of, axis=0, return_inverse=True)
    more = {
        name: _mean_of(np.array(told) - found["one tile alone"], edge.ravel())
        for name, told in found.items()
        if name.startswith("edge")
    }
    return {
        name: {
            "patches": len(told),
            "mean": float(np.mean(told)),
            "low": float(np.quantile(told, 0.05)),
            "high": float(np.quantile(told, 0.95)),
        }
        for name, told in found.items()
    } | {"patch_m": 2 * half, "more than one tile alone": more}


def _mean_of(values: np.ndarray, edge: np.ndarray) -> dict[str, float]:
    """The mean, with a 95 % interval by the spread between edges."""
    each = np.bincount(edge, values) / np.bincount(edge)
    mean, off = float(each.mean()), 1.96 * float(each.std(ddof=1)) / len(each) ** 0.5
    return {"edges": len(each), "mean": mean, "low": mean - off, "high": mean + off}


def _told(atlas: Mechanism, truth: np.ndarray, axis: int) -> float:
    rows = atlas.rows(truth)
    assert rows is not None
    far = truth[:, axis] > np.median(truth[:, axis])
    one, other = (np.asarray(rows.matrix[side].mean(axis=0)).ravel() for side in (far, ~far))
    return float(0.5 + 0.25 * np.abs(one - other).sum())


def city(source: str, run: str) -> dict[str, Any]:
    """The edges of an atlas of codebooks."""
    data = read_checkins(source)
    learned = Codebook(made_for="these", places=128, steps=100, distillation=0.0)
    plan = AtlasPlan(learned, users_per_tile=1000)
    solve_atlas(data, run, max_loss=200.0, plan=plan, progress=print)
    return edges(run, data)


def main() -> None:
    """Run one part and keep its figures."""
    what, *words = sys.argv[1:]
    found = {"country": country, "city": city, "edges": edges}[what](*words)
    results = read_json(_RESULTS, what="results") if _RESULTS.exists() else {}
    name = f"edges of {Path(words[0]).name}" if what == "edges" else what
    write_json(_RESULTS, {**results, name: found})
    print(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
