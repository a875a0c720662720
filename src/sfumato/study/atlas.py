"""A country: a mechanism for each tile of a map, solved apart, kept as one in a run folder.

While it is solved a folder beside the run's, `.NAME.sfumato-atlas`, holds the check-ins of each
tile and each tile's mechanism and figures as soon as they are done.  A job that was stopped finds
them there; they go when the run folder is written.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.plane import Plane
from sfumato.data.recipe import Recipe
from sfumato.data.samples import POOL_BELOW, Samples
from sfumato.data.tiles import Tiling
from sfumato.errors import FileError, ProblemError, SfumatoError, arg
from sfumato.files import (
    check_can_be_made,
    file_hash,
    make_folder,
    plain,
    read_arrays,
    read_json,
    write_json,
    written_beside,
)
from sfumato.measure.estimate import Estimate, estimate_mean
from sfumato.measure.exact import mutual_information
from sfumato.measure.judge import Judgement, check_secrets, judge, judge_law
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.atlas import Atlas, on_sheet, plane_of, weighted
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.loss import euclidean, on_earth
from sfumato.mechanism.wrap import Snapped
from sfumato.memory import forget_compiled
from sfumato.randomness import uniforms
from sfumato.solver import SOLVERS, Codebook
from sfumato.solver.baselines import epsilon_on_cells
from sfumato.solver.outcome import Conditions, Solver
from sfumato.solver.problem import CELL_M, Problem
from sfumato.study.folder import Run, check_target, claimed, load_run, save_run
from sfumato.study.question import restored
from sfumato.study.record import DataRecord, RunRecord

NAME = "atlas"
USERS_PER_TILE, FEWEST_CHECKINS = 500, 50
_FEWEST_USERS = 2  # of whom one can be taken for the other
OVERLAP = 4.0  # budgets: with this an edge tells little more than a line within a tile does
TILE_SOLVERS = ("codebook", "coin", "laplace")
_WIDEST_TILE_M = 100_000.0  # of a tile with a plane of its own
_MOST_HITS = 2_000_000  # reports of a tile that are drawn where its law is not known
_TRIES = 12  # to bring a baseline within its budget on the atlas's lattice
_HAIR = 1e-4  # what the formula for the lattice's share of the loss may be off by
_COMPILED_FOR = 4  # tiles until what was compiled for their shapes is dropped
_tiles_here = count(1)  # that this process has solved
_MEASURED = ("loss", "bayes_error", "information_bits", "exposed")

Runner = Callable[[Path, list[int]], Iterable[int]]


@dataclass(frozen=True)
class AtlasPlan:
    """How a map is cut and how its tiles are solved.

    A square is quartered as long as more than `users_per_tile` users were there, but no tile is
    narrower than two overlaps.  Within `overlap_m` of an edge (four budgets unless set, in a small
    area half of its side) the tiles on both sides answer, by chance.  A tile with fewer than two
    users or `fewest_checkins` check-ins is answered by planar Laplace noise of the budget.  Where a
    codebook is learned, users with fewer than four check-ins in the tile are one secret; the
    figures keep them apart.

    >>> AtlasPlan().users_per_tile
    500
    """

    solver: Solver = field(default_factory=Codebook)
    users_per_tile: int = USERS_PER_TILE
    overlap_m: float | None = None
    fewest_checkins: int = FEWEST_CHECKINS
    cell_m: float = CELL_M

    def __post_init__(self) -> None:
        if self.solver.name not in TILE_SOLVERS:
            raise ProblemError(
                f"the tiles of an atlas are solved by {', '.join(TILE_SOLVERS)}; got"
                f" {self.solver.name}"
            )
        if not 0 < self.cell_m < np.inf:
            raise ProblemError(f"{arg('cell_m')} must be above 0 metres; got {self.cell_m}")
        if not self.fewest_checkins >= 1:
            raise ProblemError(
                f"{arg('fewest_checkins')} is at least 1; got {self.fewest_checkins}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class AtlasRun:
    """The run of an atlas: its tiles with the figures of each.

    The figures of the whole are those of an adversary who is told which tile answered, who guesses
    at least as well as one who is not.
    """

    run: Run
    tiles: tuple[dict[str, Any], ...]

    @property
    def mechanism(self) -> Atlas:
        """The atlas itself."""
        assert isinstance(self.run.mechanism, Atlas)
        return self.run.mechanism

    @property
    def answered(self) -> dict[str, int]:
        """How many tiles have which kind of mechanism."""
        kinds = [self.mechanism.mechanisms[number].kind for number in self.mechanism.which]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}

    @property
    def blind(self) -> float:
        """The error of a guess that sees no report but is told which tile answered."""
        weight = np.array([line["weight"] for line in self.tiles])
        return float(np.average([line["blind"] for line in self.tiles], weights=weight))

    @property
    def alone(self) -> set[int]:
        """The tiles with one user or none: nobody there can be taken for another."""
        return {line["tile"] for line in self.tiles if line["users"] < _FEWEST_USERS}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        record = self.run.record
        return {
            "run": str(self.run.folder),
            "tiles": len(self.mechanism.tiling),
            "answered_by": self.answered,
            "max_loss": record.max_loss,
            **{name: record.train[name] for name in _MEASURED},
            "blind_error": self.blind,
            "to_come": None if record.to_come is None else record.to_come.as_dict(),
            "test": record.test,
            "status": record.status,
            "seconds": record.seconds,
            "per_tile": list(self.tiles),
        }


def load_atlas(folder: str | Path) -> AtlasRun:
    """Read the run folder of an atlas."""
    run = load_run(folder)
    if not isinstance(run.mechanism, Atlas):
        raise FileError(f"{folder} holds no atlas but a run of '{run.record.solver}'")
    return AtlasRun(run, run.history)


def tile_of(run: Run, tile: int) -> Run:
    """The run of one tile alone, for its square and the overlap about it: what a device carries.

    Its figures are the tile's own; its data cannot be read again.
    """
    made = AtlasRun(run, run.history)
    atlas, tiling = made.mechanism, made.mechanism.tiling
    line = next((line for line in made.tiles if line["tile"] == tile), None)
    if line is None:
        numbers = [line["tile"] for line in made.tiles]
        raise FileError(
            f"{run.folder} has no tile {tile} with check-ins; expected a number of the map's table,"
            f" {numbers[0]} to {numbers[-1]}"
        )
    own = atlas.plane_of(tile)
    x, y = (0.0, 0.0) if own != atlas.plane else tiling.middles[tile]
    region = Region((float(x), float(y)), float(tiling.sides_m[tile]) + 2 * tiling.overlap_m)
    grid = Grid(cell_m=atlas.grid.cell_m) if own != atlas.plane else atlas.grid
    digest = hashlib.sha256(f"{run.record.mechanism_hash} {tile}".encode()).hexdigest()
    exposed = line["measured"]["exposed"]
    measured = {**line["measured"], "exposed": exposed["value"], "exposed_estimate": exposed}
    record = replace(
        run.record,
        region=region,
        grid=grid,
        data=replace(run.record.data, plane=own, recipe=None),
        mechanism_hash=digest,
        train={**run.record.train, **measured, "worst_report": line["worst_report"]},
        to_come=None if line["to_come"] is None else Outlook.from_dict(line["to_come"]),
        test=None,
    )
    return Run(run.folder, record, Snapped(atlas.mechanisms[atlas.which[tile]], grid).on_plane(own))


def one_by_one(work: Path, tiles: list[int]) -> Iterable[int]:
    """On this machine, tile after tile."""
    for tile in tiles:
        solve_tile(work, tile)
        yield tile


def solve_atlas(
    samples: Samples,
    folder: str | Path,
    *,
    max_loss: float,
    plan: AtlasPlan | None = None,
    seed: int = 0,
    recipe: Recipe | None = None,
    test: Samples | None = None,
    runner: Runner = one_by_one,
    progress: Callable[[str], None] | None = None,
    replace_run: bool = False,
) -> AtlasRun:
    """Cut the map by where people are, solve each tile, and write one run folder.

    Main arguments: `samples`, the training check-ins; `max_loss` in metres, on average, kept by
    each tile; `plan`, how the map is cut.  Other arguments: `runner` solves tiles here or
    elsewhere; the same call resumes a job that was stopped, and gives a run that is there already.
    Each check-in is given to one of its tiles, by the same chance as a truth there would be.

    >>> import sfumato as sf
    >>> plan = AtlasPlan(sf.Coin(), users_per_tile=3, fewest_checkins=10)
    >>> solve_atlas(sf.four_corners(0).train, "run", max_loss=100, plan=plan).answered
    {'coin': 4}
    """
    target, plan = Path(folder), plan or AtlasPlan()
    if not (max_loss > plan.cell_m and np.isfinite(max_loss)):
        raise ProblemError(
            f"{arg('max_loss')} of an atlas is above the side of a cell, {plan.cell_m:g} m; got"
            f" {max_loss}"
        )
    check_can_be_made(target)
    start, tell = time.perf_counter(), progress or (lambda _: None)
    job = _Job.of(samples, max_loss, plan, seed)
    with claimed(target):
        known = None if replace_run else _done_before(target, job)
        if known is not None and (test is None or known.run.record.test is not None):
            tell("all tiles are done already, with the same settings; nothing is solved again")
            return known
        check_target(target, replace=replace_run)
        work = target.with_name(f".{target.name}.sfumato-atlas")
        tiles = _prepared(work, job, samples)
        left = [tile for tile in tiles if not _line(work, tile).exists()]
        done = len(tiles) - len(left)
        thin = len(job.tiling) - len(tiles)
        tell(
            f"{_count(len(job.tiling))}, {thin} of them without a check-in"
            + (f"; resumed: {done} of {len(tiles)} are done already" if done else "")
        )
        try:
            for _ in runner(work, left):
                done += 1
                tell(f"{done} of {_count(len(tiles))}")
        except SfumatoError:
            if not done:  # nothing to resume
                shutil.rmtree(work, ignore_errors=True)
            raise
        lines = [read_json(_line(work, tile), what="figures of a tile") for tile in tiles]
        atlas = _bound(work, job, lines)
        seconds = time.perf_counter() - start
        judged = None
        if test is not None:
            loss = on_earth(euclidean, atlas.plane)
            judged = judge(atlas, test, loss=loss, region=job.tiling.region, sampled_on=job.grid)
        record = replace(
            job.record(lines, samples),
            data=DataRecord.of(samples, recipe),
            seconds=seconds,
            test=None if judged is None else judged.as_dict(),
        )
        save_run(target, record, atlas, history=lines)
        shutil.rmtree(work, ignore_errors=True)
    return load_atlas(target)


def solve_tile(work: str | Path, tile: int) -> None:
    """Solve one tile of a prepared job and write its mechanism and, last, its figures; a tile that
    is done is left, as a cluster asks again for what a dead worker had done."""
    folder = Path(work)
    if _line(folder, tile).exists():
        return
    job = _Job.from_dict(read_json(folder / "job.json", what="plan of an atlas"))
    arrays = read_arrays(_data(folder, tile), what="tile")
    task = _Tile(job, tile, arrays["secret"], arrays["truth"], arrays["given"])
    start = time.perf_counter()
    mechanism, outlook = task.solved()
    if mechanism is not None:
        mechanism.save(_mechanism(folder, tile))
    line = task.line(mechanism or job.fallback, outlook)
    line["solved"], line["seconds"] = mechanism is not None, time.perf_counter() - start
    line["job"] = job.mark
    line["mechanism_hash"] = file_hash(_mechanism(folder, tile)) if line["solved"] else None
    write_json(_line(folder, tile), line)
    if next(_tiles_here) % _COMPILED_FOR == 0:
        forget_compiled()


@dataclass(frozen=True, eq=False)
class _Job:
    """What is asked for, as far as a worker needs it."""

    tiling: Tiling
    plane: Plane | None
    grid: Grid
    max_loss: float
    plan: AtlasPlan
    seed: int
    data_hash: str

    @classmethod
    def of(cls, samples: Samples, max_loss: float, plan: AtlasPlan, seed: int) -> "_Job":
        region = samples.region or Region.around(samples.truth, margin_m=max_loss)
        outside = int((~region.contains(samples.truth)).sum())
        if outside:
            raise ProblemError(
                f"{outside} of {len(samples)} truths lie outside the region of {region.side_m:g} m;"
                " widen the region or select fewer check-ins"
            )
        check_secrets(samples)
        wide = samples.plane is not None and samples.plane.wide
        tiling = Tiling.of(
            region,
            samples.truth,
            samples.secret,
            users_per_tile=plan.users_per_tile,
            overlap_m=(
                min(OVERLAP * max_loss, region.side_m / 2)  # as one tile allows
                if plan.overlap_m is None
                else plan.overlap_m
            ),
            widest_m=_WIDEST_TILE_M if wide else np.inf,
        )
        grid = Grid.over(region, cell_m=plan.cell_m)
        return cls(tiling, samples.plane, grid, max_loss, plan, seed, samples.hash)

    def as_dict(self) -> dict[str, Any]:
        settings: Any = self.plan.solver
        region = self.tiling.region
        return plain(
            {
                "region": [*region.centre, region.side_m],
                "squares": self.tiling.squares,
                "overlap_m": self.tiling.overlap_m,
                "plane": None if self.plane is None else self.plane.numbers,
                "max_loss": self.max_loss,
                "solver": self.plan.solver.name,
                "settings": asdict(settings),
                "users_per_tile": self.plan.users_per_tile,
                "fewest_checkins": self.plan.fewest_checkins,
                "cell_m": self.plan.cell_m,
                "seed": self.seed,
                "data_hash": self.data_hash,
            }
        )

    @classmethod
    def from_dict(cls, job: Mapping[str, Any]) -> "_Job":
        x, y, side = job["region"]
        region = Region((x, y), side)
        plan = AtlasPlan(
            restored(SOLVERS[job["solver"]](), job["settings"]),
            job["users_per_tile"],
            job["overlap_m"],
            job["fewest_checkins"],
            job["cell_m"],
        )
        return cls(
            Tiling(region, np.array(job["squares"]), job["overlap_m"]),
            None if job["plane"] is None else Plane(*job["plane"]),
            Grid.over(region, cell_m=plan.cell_m),
            job["max_loss"],
            plan,
            job["seed"],
            job["data_hash"],
        )

    @cached_property
    def mark(self) -> str:
        """Tells one job from another."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    @property
    def fallback(self) -> Mechanism:
        """Planar Laplace noise that costs the budget on the lattice, or a hair less."""
        return PlanarLaplace(epsilon_on_cells(self.max_loss * (1 - _HAIR), self.plan.cell_m))

    def record(self, lines: list[dict[str, Any]], samples: Samples) -> RunRecord:
        """The run's record, but for its data."""
        solved = sum(line["solved"] for line in lines)
        known = self.as_dict()
        asked = ("users_per_tile", "overlap_m", "fewest_checkins", "settings")
        tile_bits = _told_by_tile(samples, self.tiling)
        noise = len(self.tiling) - solved
        train, to_come = _together(lines, tile_bits)
        return RunRecord(
            solver=NAME,
            settings={
                "solver": self.plan.solver.name,
                **{name: known[name] for name in asked},
                "job": self.mark,
            },
            seed=self.seed,
            max_loss=self.max_loss,
            loss_function=euclidean.__name__,
            region=self.tiling.region,
            grid=self.grid,
            data=DataRecord.of(samples, None),
            status=(
                f"{_count(len(self.tiling))}: "
                + f"{solved} by the {self.plan.solver.name}, " * (solved > 0)
                + f"{noise} with planar Laplace noise of the budget."
            ),
            train=train,
            to_come=to_come,
        )


@dataclass(frozen=True, eq=False)
class _Tile:
    """One tile with the check-ins that it may answer; `given` are those that it is solved for."""

    job: _Job
    number: int
    secret: np.ndarray
    truth: np.ndarray
    given: np.ndarray

    def solved(self) -> tuple[Mechanism | None, Outlook | None]:
        """Its mechanism, on its own plane, and what to expect of it; None where noise is to
        answer."""
        job, plan = self.job, self.job.plan
        if self.given.sum() < plan.fewest_checkins or plan.solver.name == "laplace":
            return None, None
        local = self._samples(self.given)
        if plan.solver.resumable:
            local = _learnable(local)
        if (local.counts > 0).sum() < _FEWEST_USERS:
            return None, None
        local = local.on_plane(self._plane)
        # what the lattice adds to the loss of reports that spread as the budget's noise does
        budget = job.max_loss - plan.cell_m**2 / (12 * job.max_loss)
        for _ in range(_TRIES):
            problem = Problem(local, max_loss=budget, cell_m=plan.cell_m)
            outcome = plan.solver.solve(problem, Conditions(job.seed))
            mechanism = outcome.mechanism
            if isinstance(mechanism, Snapped):
                mechanism = mechanism.inner  # the atlas snaps to its own lattice
            if plan.solver.resumable:  # a learner keeps its budget on check-ins to come
                break
            loss = self._loss(mechanism)
            if loss <= job.max_loss * (1 + 1e-9):
                break
            budget *= 0.999 * job.max_loss / loss
        else:  # the check-ins that it was given are unlike those that it answers
            return None, None
        return mechanism, outcome.outlook

    def line(self, mechanism: Mechanism, outlook: Outlook | None) -> dict[str, Any]:
        """Its figures, for the run's history."""
        share = self.job.tiling.share(self.number, self.truth)
        judged = self._judged(mechanism)
        prior = np.bincount(self.secret, weights=share) / share.sum()
        return {
            "tile": self.number,
            "square": self.job.tiling.squares[self.number],
            "users": len(np.unique(self.secret[self.given])),
            "checkins": int(self.given.sum()),
            "weight": float(share.sum()),
            "kind": mechanism.kind,
            "blind": float(1 - prior.max()),
            "measured": {name: asdict(getattr(judged, name)) for name in _MEASURED},
            "worst_report": judged.worst_report,
            "outside": judged.outside,
            "to_come": None if outlook is None else outlook.as_dict(),
        }

    @property
    def _plane(self) -> Plane | None:
        return plane_of(self.job.tiling, self.number, self.job.plane)

    def _samples(self, rows: np.ndarray) -> Samples:
        names = tuple(str(number) for number in range(int(self.secret.max()) + 1))
        samples = Samples(self.secret[rows], self.truth[rows], names, plane=self.job.plane)
        return replace(samples.renumbered(), name=f"tile {self.number}")

    def _sheet(self, mechanism: Mechanism) -> Mechanism:
        return on_sheet(mechanism, self._plane, self.job.plane, self.job.grid)

    def _loss(self, mechanism: Mechanism) -> float:
        rows = self._sheet(mechanism).rows(self.truth)
        assert rows is not None
        share = self.job.tiling.share(self.number, self.truth)
        losses = rows.losses(self.truth, on_earth(euclidean, self.job.plane))
        return float(np.average(losses, weights=share))

    def _judged(self, mechanism: Mechanism) -> Judgement:
        """By the law of what the tile answers; from samples where that is not known."""
        sheet, region = self._sheet(mechanism), self.job.tiling.region
        every = self._samples(np.ones(len(self.secret), dtype=bool))
        joint = every.joint()
        assert joint.places is not None
        _, before = weighted(joint, self.job.tiling.share(self.number, joint.places))
        assert before is not None
        law = sheet.law(before, loss=on_earth(euclidean, self.job.plane))
        if law is not None:
            return judge_law(law, region=region)
        given = self._samples(self.given if self.given.any() else ~self.given)
        hits = int(np.clip(_MOST_HITS // len(given), 1, 500))
        if len(given.secrets) > 1:
            return judge(sheet, given, hits=hits, sampled_on=self.job.grid, region=region)
        truth = np.repeat(given.truth, hits, axis=0)
        cost = on_earth(euclidean, self.job.plane)(truth, sheet.sample(truth, seed=0))
        return Judgement(
            loss=estimate_mean(cost, hits=hits),
            bayes_error=Estimate.exact(0.0),
            information_bits=Estimate.exact(0.0),
            exposed=Estimate.exact(1.0),
            worst_report=1.0,
            per_user=(),
            outside=0.0,
            joint=Joint(np.ones((1, 1))),
        )


def _learnable(samples: Samples) -> Samples:
    """Users with few check-ins as one secret, as a learner needs several of each; a single such
    user is left to be answered as the others are."""
    rare = (samples.counts > 0) & (samples.counts < POOL_BELOW)
    if rare.all() or not rare.any():
        return samples.take(np.arange(1)) if rare.all() else samples
    if rare.sum() > 1:
        return samples.pooled(POOL_BELOW)
    return samples.take(~rare[samples.secret]).renumbered()


def _told_by_tile(samples: Samples, tiling: Tiling) -> float:
    """How many bits the tile tells about the user."""
    shape = (len(samples.secrets), len(samples))
    owner = sparse.csr_matrix(
        (np.ones(len(samples)), (samples.secret, np.arange(len(samples)))), shape=shape
    )
    return mutual_information(Joint(owner @ tiling.weights(samples.truth) / len(samples)))


def _together(
    lines: list[dict[str, Any]], tile_bits: float
) -> tuple[dict[str, Any], Outlook | None]:
    """The figures of all tiles as those of the atlas, against who is told which tile answered."""
    weight = np.array([line["weight"] for line in lines])
    share = weight / weight.sum()

    def mean(parts: list[dict[str, Any]], name: str) -> Estimate:
        value, low, high = (
            float(share @ np.array([part[name][end] for part in parts], dtype=float))
            for end in ("value", "low", "high")
        )
        kinds = {part[name]["kind"] for part in parts}
        extra = tile_bits if name == "information_bits" else 0.0
        bounds = {"bayes_error": "at least", "information_bits": "at most"}
        errs = "" if name == "loss" else "the adversary is told which tile answered"
        if name in bounds:
            errs = f"{bounds[name]}: {errs}"
        return Estimate(
            value + extra,
            low + extra,
            high + extra,
            "bound" if name in bounds else "exact" if kinds == {"exact"} else "estimate",
            errs=errs,
        )

    measured = [line["measured"] for line in lines]
    figures = {name: mean(measured, name) for name in _MEASURED}
    train = {name: asdict(estimate) for name, estimate in figures.items()} | {
        "exposed": figures["exposed"].value,
        "exposed_estimate": asdict(figures["exposed"]),
        "worst_report": max(line["worst_report"] for line in lines),
        "per_user": [],
        "outside": float(share @ np.array([line["outside"] for line in lines])),
        "geo_epsilon": None,
        "learnt_error": None,
    }
    told_of = [line["to_come"] is not None for line in lines if line["solved"]]
    if not told_of or not all(told_of):  # noise alone was measured on the training check-ins
        return train, None
    expected = [line["to_come"] or line["measured"] for line in lines]
    stated = {name: mean(expected, name) for name in _MEASURED}
    half = [(part["loss"]["high"] - part["loss"]["low"]) / 2 for part in expected]
    off = float(np.sqrt(np.sum((share * np.array(half, dtype=float)) ** 2)))
    loss = stated["loss"].value
    folds = max(line["to_come"]["folds"] for line in lines if line["to_come"])
    return train, Outlook(
        loss=Estimate(loss, loss - off, loss + off, "estimate"),
        bayes_error=stated["bayes_error"],
        information_bits=stated["information_bits"],
        exposed=stated["exposed"],
        leakage=1 - stated["bayes_error"].value,
        checkins=int(sum(line["checkins"] for line in lines)),
        folds=folds,
        blind_error=float(share @ np.array([line["blind"] for line in lines])),
    )


def _count(tiles: int) -> str:
    return f"{tiles:,} tile{'s' * (tiles != 1)}"


# Files -------------------------------------------------------------------------------------------


def _data(work: Path, tile: int) -> Path:
    return work / "checkins" / f"{tile}.npz"


def _mechanism(work: Path, tile: int) -> Path:
    return work / "tiles" / f"{tile}.npz"


def _line(work: Path, tile: int) -> Path:
    return work / "tiles" / f"{tile}.json"


def _done_before(target: Path, job: _Job) -> AtlasRun | None:
    """The run of the same job, which is not solved again."""
    if not (target / "run.json").exists():
        return None
    run = load_run(target)
    same = run.record.solver == NAME and run.record.settings.get("job") == job.mark
    return AtlasRun(run, run.history) if same else None


def _prepared(work: Path, job: _Job, samples: Samples) -> list[int]:
    """The numbers of the tiles with check-ins, each with its check-ins in a file."""
    weights = job.tiling.weights(samples.truth).tocsc()
    tiles = np.flatnonzero(np.diff(weights.indptr)).tolist()
    plan = work / "job.json"
    if plan.exists():
        if _Job.from_dict(read_json(plan, what="plan of an atlas")).mark != job.mark:
            raise FileError(
                f"{work} holds a stopped job with other settings or other data; finish that one, or"
                " remove the folder"
            )
        return tiles
    for folder in (work / "checkins", work / "tiles"):
        make_folder(folder)
    chance = uniforms(len(samples), 2, seed=job.seed)
    owner = job.tiling.locate(samples.truth + (2 * chance - 1) * job.tiling.overlap_m)
    for tile in tiles:
        rows = np.sort(weights.indices[weights.indptr[tile] : weights.indptr[tile + 1]])
        with (
            written_beside(_data(work, tile), private=True) as beside,
            beside.open("wb") as target,
        ):
            np.savez(
                target,
                allow_pickle=False,
                secret=samples.secret[rows],
                truth=samples.truth[rows],
                given=owner[rows] == tile,
            )
    write_json(plan, job.as_dict())
    return tiles


def _bound(work: Path, job: _Job, lines: list[dict[str, Any]]) -> Atlas:
    """The tiles' mechanisms as one; the others share the fallback.  A tile of another job, or one
    that changed since its figures were worked out, is refused."""
    for line in lines:
        path = _mechanism(work, line["tile"])
        known = file_hash(path) if line["solved"] else None
        if line["job"] != job.mark or line["mechanism_hash"] != known:
            raise FileError(
                f"tile {line['tile']} in {work} is not the one that this job solved; remove"
                f" {_line(work, line['tile'])} and repeat the command to solve it again"
            )
    solved = [line["tile"] for line in lines if line["solved"]]
    mechanisms: list[Mechanism] = [job.fallback]
    which = np.zeros(len(job.tiling), dtype=np.int64)
    for tile in solved:
        which[tile] = len(mechanisms)
        mechanisms.append(load_mechanism(_mechanism(work, tile)))
    if which.all():  # no tile falls back
        mechanisms, which = mechanisms[1:], which - 1
    return Atlas(job.tiling, tuple(mechanisms), which, job.grid).on_plane(job.plane)
