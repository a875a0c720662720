"""Data and settings of the paper's four experiments."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.data.grid import Grid
from sfumato.data.samples import Samples, Split
from sfumato.data.select import PAPER_REGION, gowalla_of_the_paper
from sfumato.data.synthetic import four_corners
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "reproduction"
CELLS = (13, 65, 130, 260)  # a side of the 6500 m region: cells of 500, 100, 50 and 25 m
HITS = (10, 100, 200, 500)  # reports of each point
SEEDS = (0, 1, 2)
SPLITS = ("train", "test")


@dataclass(frozen=True)
class Experiment:
    """One of the paper's four: which data, the budget L, the epsilon of planar Laplace (per metre)."""

    number: int
    data: str
    max_loss_m: float
    epsilon: float

    @property
    def laplace(self) -> PlanarLaplace:
        return PlanarLaplace(self.epsilon)


EXPERIMENTS = (
    Experiment(1, "synthetic", 270, np.log(2) / 100),
    Experiment(2, "synthetic", 173, np.log(2) / 60),
    Experiment(3, "gowalla", 1150, np.log(2) / 400),
    Experiment(4, "gowalla", 518, np.log(2) / 180),
)


def gowalla_file() -> Path:
    """Gowalla check-ins around Paris, in the folder that SFUMATO_DATA names."""
    folder = Path(os.environ.get("SFUMATO_DATA", "../shared/data"))
    return (folder if folder.is_absolute() else ROOT / folder) / "gowalla-paris.txt.gz"


def load(data: str, seed: int) -> Split:
    """The paper's data by name, drawn by seed: "synthetic" or "gowalla"."""
    return four_corners(seed=seed) if data == "synthetic" else gowalla_of_the_paper(gowalla_file(), seed=seed)


def part(data: Split, split: str) -> Samples:
    """Training or test samples by name."""
    samples = data.train if split == "train" else data.test
    assert samples is not None
    return samples


def grid(cells: int) -> Grid:
    """The paper's grid: so many cells a side over its region."""
    return Grid.over(PAPER_REGION, cells=cells)


def reports(samples: Samples, mechanism: Mechanism, hits: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Secrets, truths and `hits` reports of each point, round by round: the first n rows are one report each."""
    truth = np.tile(samples.truth, (hits, 1))
    return np.tile(samples.secret, hits), truth, mechanism.sample(truth, seed=seed)
