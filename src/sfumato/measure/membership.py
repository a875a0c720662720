"""What the file of a mechanism or of a certificate tells about the points that it was made from: a
membership test.

An attacker holds the file and a place, and asks: was it among the training points?  The attacker
scores places by what the file shows there; the test is how well a score tells training points from
held-out points of the same draw.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from sfumato import show
from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.measure.certificate import Certificate
from sfumato.measure.estimate import Estimate, wilson
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.randomness import generator

FEWEST = 10  # points on either side
_MOST = 250
_SAME_M = 1e-3  # nearer than this to a stored place is that place
NEAR, SURE, CHEAP = "nearer to a place in the file", "surer of its report", "costs less"
SMALL = "in a smaller cell of the certificate"
GUESSED = "guessed more surely on its grid"
GUESSED_THERE = "guessed more surely in its cell"


@dataclass(frozen=True)
class Membership:
    """How well scores tell `points` training points from as many held-out ones: an AUC each, 0.5 is
    a toss.

    `listed` is the share of the training points that stand in the file, to the millimetre.
    """

    points: int
    scores: dict[str, Estimate]
    listed: float

    @property
    def telling(self) -> tuple[str, Estimate] | None:
        """The score whose AUC is furthest from a toss (of several, so it errs away from 0.5); None
        where too few points are left."""
        return max(self.scores.items(), key=lambda item: abs(item[1].value - 0.5), default=None)

    @property
    def verdict(self) -> str:
        """What the file tells, in a sentence."""
        return show.text(self)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "points": self.points,
            "auc": {name: estimate.as_dict() for name, estimate in self.scores.items()},
            "listed": self.listed,
            "verdict": self.verdict,
        }


def membership_test(
    mechanism: Mechanism,
    train: Samples,
    held_out: Samples,
    *,
    grid: Grid | None = None,
    loss: Loss = euclidean,
    seed: int = 0,
) -> Membership:
    """Test what a mechanism's file tells about its training points.

    Only places that are seen once in both parts together are used, as many of each part: which part
    such a place fell in was decided by the split alone, so without the file no score can do better
    than a toss.  `grid` is for a mechanism whose law needs one; where the law is not known only the
    stored places are looked at.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.mechanism.channel import Channel
    >>> data = four_corners(seed=0)
    >>> listed = Channel.identity(np.unique(data.all.truth, axis=0))
    >>> membership_test(listed, data.train, data.test).listed  # the file lists the points
    1.0
    """
    plane = mechanism.plane or train.plane
    train, held_out = train.on_plane(plane), held_out.on_plane(plane)
    stored = mechanism.places_in_file()
    own = np.unique(train.truth, axis=0)
    listed = 0.0 if not len(stored) else float((_distance(stored, own) <= _SAME_M).mean())

    def scores_of(points: np.ndarray) -> dict[str, np.ndarray]:
        scores = {} if not len(stored) else {NEAR: -_distance(stored, points)}
        try:
            law = mechanism.rows_on(points, grid)
        except ProblemError:  # noise over more cells than are counted
            return scores
        if law is None:
            return scores
        shown = np.empty((len(points), 2))
        for number, point in enumerate(points):
            columns, chances = law.row(number)
            shown[number] = chances.max(), -(chances @ loss(point, law.places[columns]))
        return {**scores, SURE: shown[:, 0], CHEAP: shown[:, 1]}

    return _tested(train, held_out, scores_of, listed, seed)


def certificate_membership(
    certificate: Certificate, train: Samples, held_out: Samples, *, seed: int = 0
) -> Membership:
    """Test what a certificate's file tells about the training points, as `membership_test` does.

    The solver cuts the plane into small cells where truths are and leaves large ones elsewhere, and
    the adversary of the proof is surer at truths; on sparse data both tell.
    """
    proof, plane = certificate.on_grid, certificate.on_plane

    def scores_of(points: np.ndarray) -> dict[str, np.ndarray]:
        near = cKDTree(proof.places).query(points)[1]
        scores = {GUESSED: proof.shares[near].max(axis=1)}
        if plane is not None:
            cell = plane.cells.holding(points)
            known = cell >= 0
            scores[SMALL] = np.where(known, -plane.cells.sides_m[cell], -np.inf)
            scores[GUESSED_THERE] = np.where(known, plane.shares[cell].max(axis=1), 0.0)
        return scores

    return _tested(train, held_out.on_plane(train.plane), scores_of, 0.0, seed)


def _tested(
    train: Samples,
    held_out: Samples,
    scores_of: Callable[[np.ndarray], dict[str, np.ndarray]],
    listed: float,
    seed: int,
) -> Membership:
    """As many points of each part, scored."""
    parts = _seen_once(train.truth, held_out.truth)
    fewer = min(map(len, parts))
    if fewer < FEWEST:
        return Membership(fewer, {}, listed)
    count, random = min(fewer, _MOST), generator(seed)
    scores = scores_of(np.vstack([random.permutation(part)[:count] for part in parts]))
    areas = {name: area_under_curve(score[:count], score[count:]) for name, score in scores.items()}
    return Membership(count, areas, listed)


def area_under_curve(members: np.ndarray, others: np.ndarray) -> Estimate:
    """The chance that a member scores above another; ties count half.  0.5 is a toss.

    Unbiased.  The variance of this share is never above A(1 - A) / min(members, others) (Birnbaum
    and Klose, 1957), so Wilson's interval for that many hits is wide enough, and has width where
    all were told apart.
    """
    # what rounding alone tells apart is equal
    members, others = np.round(members, 9), np.sort(np.round(others, 9))
    below, not_above = (np.searchsorted(others, members, side) for side in ("left", "right"))
    value = float((below + not_above).sum() / 2 / (len(members) * len(others)))
    fewer = min(len(members), len(others))
    low, high = wilson(value, fewer)
    return Estimate(value, low, high, "estimate", hits=fewer, errs="unbiased; one score of several")


def _distance(stored: np.ndarray, points: np.ndarray) -> np.ndarray:
    return cKDTree(stored).query(points)[0]


def _seen_once(train: np.ndarray, held_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of each part that no other check-in of either part is at."""
    both = np.vstack([train, held_out])
    _, group, times = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    once = times[group.ravel()] == 1
    return both[: len(train)][once[: len(train)]], both[len(train) :][once[len(train) :]]
