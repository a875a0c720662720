"""Data and settings of the paper's four experiments."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from paper.gowalla import OVERLAP_WEIGHT, draw_of_the_paper, gowalla_users_of_the_paper
from sfumato.data.grid import Grid
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import PAPER_REGION, four_corners
from sfumato.errors import DataError
from sfumato.measure.estimate import estimate_bayes_error
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.laplace import PlanarLaplace

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "reproduction"
REPORTS = (
    ROOT / "runs" / "paper" / "reports"
)  # of real people, for the figures: never in the repository
CELLS = (13, 65, 130, 260)  # a side of the 6500 m region: cells of 500, 100, 50 and 25 m
HITS = (10, 100, 200, 500)  # reports of each point
SEEDS = (0, 1, 2)
SPLITS = ("train", "test")
EPOCHS = {
    1: 300,
    3: 300,
    4: 300,
}  # classifiers of Game.paper(n) stop here; those of experiment 2 have all 3000 (deviation 27)
GOWALLA_FILES = (
    "gowalla-paris.txt.gz",
    "loc-gowalla_totalCheckins.txt.gz",
)  # a cut of SNAP's file, and the file itself
WHERE = (
    "experiments 3 and 4 need the Gowalla check-ins of SNAP, the Stanford Large Network Dataset"
    " Collection (https://snap.stanford.edu/data/loc-Gowalla.html): fetch"
    " loc-gowalla_totalCheckins.txt.gz and name it with --gowalla FILE (make: GOWALLA=FILE; else"
    " SFUMATO_GOWALLA=FILE)"
)


@dataclass(frozen=True)
class Experiment:
    """One of the paper's four: which data, the budget L, the epsilon of planar Laplace (per
    metre)."""

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


NUMBERS = tuple(experiment.number for experiment in EXPERIMENTS)
SYNTHETIC = tuple(one.number for one in EXPERIMENTS if one.data == "synthetic")


def data_folder() -> Path:
    """Where real check-ins lie: the folder that SFUMATO_DATA names, from the top of the
    repository."""
    return ROOT / os.environ.get("SFUMATO_DATA", "../shared/data")


def gowalla_file() -> Path:
    """Gowalla check-ins: the file that SFUMATO_GOWALLA names, else the cut around Paris or SNAP's
    own file in the data folder."""
    if named := os.environ.get("SFUMATO_GOWALLA"):
        return ROOT / named
    here = [data_folder() / name for name in GOWALLA_FILES]
    return next((path for path in here if path.is_file()), here[0])


@cache
def _six(path: Path) -> Samples:
    if not path.is_file():
        raise DataError(f"there is no file {path}; {WHERE}")
    return gowalla_users_of_the_paper(path)


def gowalla(seed: int, *, overlap_weight: float = OVERLAP_WEIGHT) -> Split:
    """The paper's selection; the file is read once."""
    return draw_of_the_paper(_six(gowalla_file()), seed=seed, overlap_weight=overlap_weight)


def load(data: str, seed: int) -> Split:
    """The paper's data by name, drawn by seed: "synthetic" or "gowalla"."""
    return four_corners(seed=seed) if data == "synthetic" else gowalla(seed)


def part(data: Split, split: str) -> Samples:
    """Training or test samples by name."""
    samples = data.train if split == "train" else data.test
    assert samples is not None
    return samples


def shown(data: Split, split: str) -> Samples:
    """What figures show: all test points, and as many of the training points, evenly taken."""
    samples = part(data, split)
    return samples.take(np.arange(0, len(samples), len(samples) // len(part(data, "test"))))


def grid(cells: int) -> Grid:
    """The paper's grid: n cells per side over its region."""
    return Grid.over(PAPER_REGION, cells=cells)


def reports(
    samples: Samples, mechanism: Mechanism, hits: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Secrets, truths and `hits` reports of each point, round by round: the first n rows are one
    report each."""
    truth = np.tile(samples.truth, (hits, 1))
    return np.tile(samples.secret, hits), truth, mechanism.sample(truth, seed=seed)


def by_cells_and_hits(
    samples: Samples, secret: np.ndarray, report: np.ndarray, hits: tuple[int, ...]
) -> dict[tuple[int, int], float]:
    """The paper's estimate of the Bayes error for each grid and number of hits; fewer hits are the
    first reports of each point."""
    errors = {}
    for cells in CELLS:
        for count in hits:
            rows = slice(0, count * len(samples))
            errors[cells, count] = estimate_bayes_error(
                secret[rows], report[rows], grid(cells), secrets=len(samples.secrets), hits=count
            ).value
    return errors


def packed(points: np.ndarray) -> str:
    """Points in one line of JSON: "x,y x,y", to a tenth of a metre."""
    return " ".join(f"{x:g},{y:g}" for x, y in points.round(1))


def unpacked(text: str) -> np.ndarray:
    """What `packed` wrote."""
    return np.array([point.split(",") for point in text.split()], dtype=float)
