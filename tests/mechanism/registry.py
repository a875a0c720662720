"""Every mechanism that keeps the contract, under one name: add a line, and all its laws run."""

from collections.abc import Callable

import numpy as np

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.data.tiles import Tiling
from sfumato.mechanism.approximate import DegreeSnap
from sfumato.mechanism.atlas import Atlas
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.custom import Function, Recorded
from sfumato.mechanism.generator import GeneratorNet
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.law import Law
from sfumato.mechanism.simple import Coin, Identity, constant
from sfumato.mechanism.wrap import Clamped, Remapped, Snapped

TRUTHS = np.array([[0.0, 0.0], [100.0, 0.0], [30.0, 70.0], [-40.0, 20.0]])
SAMPLES = Samples(
    secret=[0, 0, 1, 1, 2], truth=TRUTHS[[0, 1, 1, 2, 3]], secrets=("ann", "bob", "cid")
)
GRID = Grid(cell_m=25.0)
REPORTS = np.array([[0.0, 0.0], [50.0, 50.0], [100.0, 0.0]])
MATRIX = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])


def _channel() -> Channel:
    return Channel(truths=TRUTHS, reports=REPORTS, matrix=MATRIX)


def _net(*, keep: float = 0.0) -> GeneratorNet:
    random = np.random.default_rng(5)
    sizes = ((3, 8), (8, 8), (8, 2))
    layers = tuple(
        (random.normal(0.0, 0.7, size), random.normal(0.0, 0.3, size[1])) for size in sizes
    )
    return GeneratorNet(layers, centre_m=(20.0, 10.0), unit_m=80.0, levels=48, keep=keep)


def _codebook(
    *, keep: float = 0.0, max_distance: float | None = None, far: Grid | None = None
) -> CodebookNet:
    random = np.random.default_rng(6)
    sizes = ((2 + 2 * 3, 8), (8, len(REPORTS)))
    layers = tuple(
        (random.normal(0.0, 0.7, size), random.normal(0.0, 0.3, size[1])) for size in sizes
    )
    waves = random.normal(0.0, 2.0, (2, 3))
    return CodebookNet(
        GRID.snap(REPORTS),
        layers,
        waves,
        GRID,
        centre_m=(20.0, 10.0),
        unit_m=80.0,
        slope=0.01,
        max_distance=max_distance,
        keep=keep,
        far=far,
    )


def _atlas(*mechanisms: Mechanism) -> Atlas:
    """Four tiles about the truths, the first of them quartered."""
    squares = [[1, 1, 0], [1, 0, 1], [1, 1, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1], [2, 1, 1]]
    tiling = Tiling(Region(centre=(10.0, 5.0), side_m=400.0), np.array(squares), overlap_m=30.0)
    return Atlas(tiling, mechanisms, np.arange(7) % len(mechanisms), GRID)


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "identity": Identity,
    "constant": lambda: constant((20.0, 30.0)),
    "coin": lambda: Coin(keep=0.3, place=(20.0, 30.0)),
    "channel": _channel,
    "identity channel": lambda: Channel.identity(TRUTHS),
    "planar laplace": lambda: PlanarLaplace(epsilon=0.02),
    "snapped laplace": lambda: Snapped(PlanarLaplace(epsilon=0.02), GRID),
    "snapped laplace on a region's grid": lambda: Snapped(
        PlanarLaplace(epsilon=0.05), Grid(side_m=600, cells=7, centre=(10.0, 3.0))
    ),
    "android": lambda: DegreeSnap(48.86, 2.35, cell_m=200.0, deviation_m=50.0),
    "snapped coin": lambda: Snapped(Coin(keep=0.6, place=(20.0, 30.0)), GRID),
    "clamped laplace": lambda: Clamped(
        PlanarLaplace(epsilon=0.02), Region(centre=(30.0, 30.0), side_m=300.0)
    ),
    "clamped channel": lambda: Clamped(_channel(), Region(centre=(0.0, 0.0), side_m=100.0)),
    "remapped channel": lambda: Remapped.bayesian(_channel(), SAMPLES.joint()),
    "snapped remapped coin": lambda: Snapped(
        Remapped.bayesian(Coin(keep=0.5, place=(20.0, 30.0)), SAMPLES.joint()), GRID
    ),
    "generator net": _net,
    "snapped generator net": lambda: Snapped(_net(), GRID),
    "snapped generator net that keeps some truths": lambda: Snapped(_net(keep=0.2), GRID),
    "codebook net": _codebook,
    "codebook net with a cap that keeps some truths": lambda: _codebook(
        keep=0.2, max_distance=90.0
    ),
    "codebook net with squares far off that keeps some truths": lambda: _codebook(
        keep=0.2, far=Grid(cell_m=75.0)
    ),
    "snapped codebook net": lambda: Snapped(_codebook(), Grid(cell_m=50.0)),
    "atlas": lambda: _atlas(Coin(keep=0.3, place=(20.0, 30.0)), _codebook(), _codebook(keep=0.2)),
    "atlas with noise": lambda: _atlas(_codebook(), PlanarLaplace(epsilon=0.02)),
    "recorded": lambda: Recorded(
        truths=np.repeat(TRUTHS, 3, axis=0), reports=np.tile(REPORTS, (4, 1))
    ),
    "function": lambda: Function(
        lambda truth, random: truth + random.normal(0.0, 50.0, truth.shape)
    ),
}
FIXED = {"identity", "constant", "identity channel"}  # one report per truth
UNSAVABLE = {"function"}  # code is not data
NOT_EXPORTED = {
    "function",
    "recorded",
    "degree snap",
}  # kinds without operators for devices


def law_of(mechanism: Mechanism, joint: Joint) -> Law | None:
    """On the mechanism's own reports, else on the cells of the grid."""
    return mechanism.law(joint) or mechanism.law(joint, grid=GRID)
