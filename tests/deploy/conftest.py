"""Runs to sanitize, export and serve with: small, quick, of every kind that a run folder may
hold."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato import cli
from sfumato.data.tiles import Tiling
from sfumato.measure.judge import judge
from sfumato.mechanism.atlas import Atlas
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.channel import Average
from sfumato.mechanism.codebook import CodebookNet
from tests.shared import made_once

CELL_M = 50.0


def net(grid: sf.Grid, *, keep: float = 0.0) -> Mechanism:
    """A small net with weights by seed, snapped: spreads reports over a few hundred metres."""
    random = np.random.default_rng(5)
    sizes = ((3, 16), (16, 16), (16, 2))
    layers = tuple(
        (random.normal(0.0, 0.5, size), random.normal(0.0, 0.3, size[1])) for size in sizes
    )
    return sf.mechanism.Snapped(
        sf.mechanism.GeneratorNet(layers, centre_m=(3.0, -7.0), unit_m=200.0, levels=64, keep=keep),
        grid,
    )


def codebook(grid: sf.Grid, *, far: sf.Grid | None = None) -> Mechanism:
    """A small codebook net with weights by seed: 120 cells near the middle."""
    random = np.random.default_rng(2)
    middle = grid.snap(np.zeros((1, 2)))[0]
    near = grid.centres()[np.abs(grid.centres() - middle).max(axis=1) <= 400]
    places = near[random.choice(len(near), 120, replace=False)]
    sizes = ((6, 24), (24, 120))
    layers = tuple(
        (random.normal(0.0, 0.4, size), random.normal(0.0, 0.3, size[1])) for size in sizes
    )
    return CodebookNet(
        places,
        layers,
        random.normal(0.0, 1.0, (2, 2)),
        grid,
        unit_m=200.0,
        slope=0.012,
        keep=0.05,
        far=far,
    )


def atlas(problem: sf.Problem) -> Mechanism:
    """Seven tiles, one of them in the middle of a codebook's places, with three mechanisms."""
    squares = [[1, 1, 0], [1, 0, 1], [1, 1, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1], [2, 1, 1]]
    assert problem.region is not None
    tiling = Tiling(problem.region, np.array(squares), overlap_m=problem.region.side_m / 10)
    inner = (
        codebook(problem.grid),
        sf.mechanism.PlanarLaplace.for_loss(173),
        sf.mechanism.Coin(keep=0.4, place=(30.0, -60.0)),
    )
    return Atlas(tiling, inner, np.arange(7) % 3, problem.grid)


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`sfumato WORDS` as it is typed in `tmp_path`, run in this process."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch, pytest.raises(SystemExit) as left:
            patch.chdir(tmp_path)
            patch.setattr("sys.argv", ["sfumato", *map(str, words)])
            cli.main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, int(left.value.code or 0), said.out, said.err)

    return run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folders by kind, all for four-corners on 50 m cells: those of solvers within 173 m, the
    others within what they cost."""
    return made_once(tmp_path_factory, "deploy-runs", _write_runs)


def _write_runs(folder: Path) -> None:
    problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173, cell_m=CELL_M)
    places = problem.places[:40]
    even = sf.mechanism.Channel(places, places, np.full((40, 40), 1 / 40))
    given = {
        "net": net(problem.grid),
        "keeping-net": net(problem.grid, keep=0.25),
        "codebook": codebook(problem.grid),
        "far-codebook": codebook(
            problem.grid, far=sf.Grid(cell_m=5 * CELL_M, corner=problem.grid.origin)
        ),
        "channel": replace(even, average=Average(60.0, 0.004, 1.0 + np.arange(40))),
        "nearest-channel": replace(even, nearest=True),
        "bare-laplace": sf.mechanism.PlanarLaplace.for_loss(173),
        "atlas": atlas(problem),
    }
    for solver in (sf.Laplace(), sf.Coin()):
        sf.solve(problem, solver).save(folder / solver.name)
    coin = sf.solve(problem, sf.Coin())
    for name, mechanism in given.items():
        measured = judge(mechanism, problem.samples, region=problem.region, sampled_on=problem.grid)
        own = replace(problem, max_loss=max(173.0, float(np.ceil(measured.loss.value))))
        replace(coin, problem=own, mechanism=mechanism, measured=measured).save(folder / name)
