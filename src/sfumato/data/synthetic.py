"""Data made by a formula: the paper's synthetic set."""

import numpy as np

from sfumato.data.grid import Region
from sfumato.data.plane import Plane
from sfumato.data.samples import Samples, Split
from sfumato.randomness import generator

SEBASTOPOL = (48.8584, 2.3482)  # 5, boulevard de Sébastopol, Paris: centre of the paper's region
PAPER_REGION = Region(centre=(0.0, 0.0), side_m=6500.0)
_CORNERS = {
    "blue": (-150.0, 150.0),
    "red": (150.0, 150.0),
    "green": (-150.0, -150.0),
    "yellow": (150.0, -150.0),
}
_RADIUS_M = 45.0
_TRAIN, _TEST = 480, 120


def four_corners(seed: int = 0) -> Split:
    """The paper's synthetic data: four users about the corners of a 300 m square in Paris.

    600 points each, uniform on the disc of 45 m about a corner; 480 for training, 120 for test.
    Carries the paper's region of 6500 m.  Paper: section 5, "The dataset".

    >>> data = four_corners(seed=0)
    >>> len(data.train), len(data.test)
    (1920, 480)
    """
    random = generator(seed)
    each = _TRAIN + _TEST
    radius = _RADIUS_M * np.sqrt(random.random((len(_CORNERS), each)))
    angle = 2 * np.pi * random.random((len(_CORNERS), each))
    truth = np.array(list(_CORNERS.values()))[:, None, :] + np.stack(
        [radius * np.cos(angle), radius * np.sin(angle)], axis=-1
    )
    secret = np.repeat(np.arange(len(_CORNERS)), each)
    everything = Samples(
        secret=secret,
        truth=truth.reshape(-1, 2),
        secrets=tuple(_CORNERS),
        plane=Plane(*SEBASTOPOL),
        region=PAPER_REGION,
        name="four-corners",
    )
    training = np.tile(np.arange(each) < _TRAIN, len(_CORNERS))
    return Split(
        train=everything.take(training), test=everything.take(~training, name="four-corners (test)")
    )
