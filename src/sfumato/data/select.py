"""The selection steps: a square, the most frequent users, so many check-ins of each.

Each step takes data and gives data, so that they chain in any order that makes sense.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.samples import Samples, Split
from sfumato.errors import DataError
from sfumato.randomness import generator

SEBASTOPOL = (
    48.8584,
    2.3482,
)  # 5, boulevard de Sébastopol, Paris: the centre of the paper's region
PAPER_REGION = Region(centre=(0.0, 0.0), side_m=6500.0)
OVERLAP_CELL_M = 500.0
_PAPER_SQUARE_M = 4500.0
_PAPER_USERS, _PAPER_TRAIN, _PAPER_TEST = 6, 82, 20
OVERLAP_WEIGHT = 0.15  # our guess: it gives the paper's Bayes errors without noise


def inside_square(
    latitude: np.ndarray, longitude: np.ndarray, square: tuple[float, float, float], *, source: str
) -> tuple[np.ndarray, np.ndarray, Plane]:
    """Which points lie in a square (centre latitude, centre longitude, side in metres), and their
    metres."""
    centre_lat, centre_lon, side_m = square
    if not (-90 <= centre_lat <= 90 and -180 <= centre_lon <= 180):
        raise DataError(
            f"the square's centre {centre_lat},{centre_lon} is not latitude,longitude in degrees"
        )
    if not (side_m > 0 and np.isfinite(side_m)):
        raise DataError(f"the side of the square must be above 0 metres; got {side_m}")
    plane = Plane(centre_lat, centre_lon)
    keep, points = _within(plane, latitude, longitude, side_m)
    if not keep.size:
        swapped, _ = _within(plane, longitude, latitude, side_m)
        raise DataError(
            f"{source}: none of {len(latitude)} check-ins lies in the {side_m:g} m square around"
            f" {centre_lat},{centre_lon}"
            + (
                "; latitude and longitude are probably swapped"
                if swapped.size
                else ": move or widen the square"
            ),
            hint="name the columns with --lat and --lon" if swapped.size else None,
        )
    return keep, points, plane


def _within(
    plane: Plane, latitude: np.ndarray, longitude: np.ndarray, side_m: float
) -> tuple[np.ndarray, np.ndarray]:
    reach = (
        side_m / 100_000
    )  # degrees: a generous first cut, so that far-away points are never projected
    widen = 1 / max(np.cos(np.radians(min(89.0, abs(plane.latitude) + reach))), 0.02)
    offset = longitude - plane.longitude
    longitude = np.where(
        np.abs(offset) > 180, longitude - 360 * np.sign(offset), longitude
    )  # the short way round the Earth
    near = np.flatnonzero(
        (np.abs(latitude - plane.latitude) <= reach)
        & (np.abs(longitude - plane.longitude) <= reach * widen)
    )
    if not near.size:
        return near, np.empty((0, 2))
    points = plane.to_metres(latitude[near], longitude[near])
    inside = np.all(np.abs(points) <= side_m / 2, axis=1)
    if np.any(np.abs(longitude[near[inside]]) > 180):
        raise DataError(
            f"the {side_m:g} m square around {plane.latitude:g},{plane.longitude:g} holds points on"
            " both sides of the antimeridian (longitude 180); sfumato does not cross it: select"
            " one side, or bring plane metres as columns x and y"
        )
    return near[inside], points[inside]


def overlap_weights(
    samples: Samples, weight: float, *, cell_m: float = OVERLAP_CELL_M
) -> np.ndarray:
    """Weights for a draw that thins the overlap between secrets: `weight` or 1 for each check-in.

    A check-in weighs less where another secret has a larger share of its own check-ins in the same
    cell (cells of 500 m, one of them centred on the plane's origin).  The paper filters its Gowalla
    data "to reduce the overlapping" and does not say how; this is our reading of it.
    """
    if not 0 <= weight <= 1:
        raise DataError(f"the overlap weight lies between 0 and 1; got {weight}")
    grid = Grid.over(Region(centre=(0.0, 0.0), side_m=cell_m), cells=1)
    _, column = np.unique(grid.index(samples.truth), axis=0, return_inverse=True)
    column = column.ravel()
    cells = int(column.max()) + 1
    counts = np.bincount(samples.secret * cells + column, minlength=len(samples.secrets) * cells)
    share = counts.reshape(len(samples.secrets), cells) / np.maximum(samples.counts, 1)[:, None]
    own = share[samples.secret, column]
    return np.where(share.max(axis=0)[column] > own, weight, 1.0)


def per_user(
    samples: Samples, train: int, test: int = 0, *, seed: int = 0, overlap_weight: float = 1.0
) -> Split:
    """Draw `train` + `test` check-ins of each secret, without replacement, by seed."""
    if not (train >= 1 and test >= 0):
        raise DataError(
            f"expected at least 1 training and 0 test check-ins per user; got {train}+{test}"
        )
    weights = overlap_weights(samples, overlap_weight)
    random = generator(seed)
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for secret, name in enumerate(samples.secrets):
        rows = np.flatnonzero(samples.secret == secret)
        usable = int((weights[rows] > 0).sum())
        if usable < train + test:
            raise DataError(
                f"user {name} has {usable} check-ins to draw from; {train}+{test} were asked for: "
                "ask for fewer, or keep only more frequent users with --top-users"
            )
        chance = weights[rows] / weights[rows].sum()
        # A weighted draw takes the heavy rows first; shuffled, training and test follow one law.
        drawn = random.permutation(random.choice(rows, size=train + test, replace=False, p=chance))
        parts[0].append(drawn[:train])
        parts[1].append(drawn[train:])
    held = samples.take(np.concatenate(parts[1]), name=f"{samples.name} (test)") if test else None
    return Split(
        train=samples.take(np.concatenate(parts[0]), name=f"{samples.name} (train)"), test=held
    )


def gowalla_of_the_paper(
    path: str | Path, seed: int = 0, *, overlap_weight: float = OVERLAP_WEIGHT
) -> Split:
    """The paper's selection from a file of Gowalla check-ins: six users, 82 + 20 check-ins each.

    A square of 4500 m about 5, boulevard de Sébastopol, the six users with the most check-ins in
    it, thinned where they overlap (`overlap_weights`, our reading).  Carries the paper's region of
    6500 m.
    Paper: section 6, "The dataset".
    """
    return draw_of_the_paper(
        gowalla_users_of_the_paper(path), seed=seed, overlap_weight=overlap_weight
    )


def gowalla_users_of_the_paper(path: str | Path) -> Samples:
    """All check-ins in the paper's square of the six users who have the most there."""
    from sfumato.data.read import read_checkins  # reading itself selects a square

    around = read_checkins(path, square=(*SEBASTOPOL, _PAPER_SQUARE_M))
    return replace(around.top_users(_PAPER_USERS), region=PAPER_REGION)


def draw_of_the_paper(
    users: Samples, seed: int = 0, *, overlap_weight: float = OVERLAP_WEIGHT
) -> Split:
    """82 training and 20 test check-ins of each user."""
    return users.split(_PAPER_TRAIN, _PAPER_TEST, seed=seed, overlap_weight=overlap_weight)
