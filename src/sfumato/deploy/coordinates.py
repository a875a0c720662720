"""From two columns of coordinates to truths on the plane, with what cannot be answered set
apart."""

from dataclasses import dataclass

import numpy as np

from sfumato.data.distinct import Numbered, distinct, note
from sfumato.data.plane import METRES_A_DEGREE, WIDEST_M
from sfumato.deploy.release import Release
from sfumato.mechanism.laplace import PlanarLaplace

_POLE = 89.0
_BOX_DEGREES = WIDEST_M * 0.7 / METRES_A_DEGREE  # corners of this box are still on the plane
_WIDEST_DEGREES = 20.0  # of longitude, near the poles


@dataclass(frozen=True)
class Truths:
    """Points in metres, and which rows hold no place, no possible place, or one outside the region.

    Rows that are set apart stand at the region's centre, so that arrays keep their length.
    """

    points: np.ndarray
    missing: np.ndarray | None
    impossible: np.ndarray | None
    outside: np.ndarray | None


@dataclass(frozen=True)
class _Known:
    """Different places of earlier blocks, in the table's coordinates, and what was worked out for
    them: a log comes in blocks that repeat its places."""

    places: Numbered
    truths: Truths

    def of(self, number: np.ndarray) -> Truths:
        """The truths of rows, by the number of the place that each has."""
        points = self.truths.points.take(number, axis=0)
        points.flags.writeable = False
        note(points, self.truths.points, number)
        masks = (self.truths.missing, self.truths.impossible, self.truths.outside)
        some = (None if mask is None else mask[number] for mask in masks)
        return Truths(points, *(None if mask is None or not mask.any() else mask for mask in some))


def truths(release: Release, first: np.ndarray, second: np.ndarray) -> Truths:
    """Latitudes and longitudes (or x and y) as truths; a place that repeats is worked out once.
    What is kept of earlier calls is replaced whole, so that threads may call this at once."""
    rows = np.stack([first, second]).T  # columns in one piece
    known: _Known | None = release.__dict__.get("_known")
    again = None if known is None else known.places.numbers(rows)
    if known is None or again is None:
        lookup = distinct(rows)
        if lookup is None:
            return _each(release, first, second)
        places, number = lookup
        known = _Known(Numbered(places), _fixed(_each(release, *np.ascontiguousarray(places.T))))
    else:
        more, number = again
        if len(more):
            new = _each(release, *np.ascontiguousarray(more.T))
            known = _Known(known.places.with_more(more), _fixed(_joined(known.truths, new)))
    release.__dict__["_known"] = known
    return known.of(number)


def _joined(known: Truths, new: Truths) -> Truths:
    points = np.concatenate([known.points, new.points])
    masks = [
        np.concatenate(
            [
                np.zeros(len(part.points), dtype=bool) if mask is None else mask
                for part, mask in zip((known, new), pair, strict=True)
            ]
        )
        for pair in (
            (known.missing, new.missing),
            (known.impossible, new.impossible),
            (known.outside, new.outside),
        )
    ]
    return Truths(points, *(mask if mask.any() else None for mask in masks))


def _fixed(truth: Truths) -> Truths:
    truth.points.flags.writeable = False
    return truth


def _each(release: Release, first: np.ndarray, second: np.ndarray) -> Truths:
    missing = np.isnan(first) | np.isnan(second)
    if release.plane is None:
        impossible = np.isinf(first) | np.isinf(second)
    else:
        impossible = (np.abs(first) > 90) | (np.abs(second) > 180)
    apart = missing | impossible
    if apart.any():
        first, second = np.where(apart, 0.0, first), np.where(apart, 0.0, second)
    points, far = to_plane(release, first, second)
    outside = ~release.region.contains(points) & ~apart
    if far is not None:
        outside |= far & ~apart
    set_aside = apart | outside
    if set_aside.any():
        points = np.where(set_aside[:, None], np.array(release.region.centre), points)
    return Truths(
        points,
        *(mask if mask.any() else None for mask in (missing, impossible & ~missing, outside)),
    )


def to_plane(
    release: Release, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Metres on the plane, and which points are too far off for it (these are moved to its
    edge)."""
    plane = release.plane
    if plane is None:
        return np.stack([first, second], axis=1), None
    north, east = first - plane.latitude, second - plane.longitude
    if (
        np.abs(north).max(initial=0.0) <= _BOX_DEGREES
        and np.abs(east).max(initial=0.0) <= _BOX_DEGREES
    ):
        return plane.to_metres(first, second), None
    east = (east + 180) % 360 - 180
    if plane.wide:
        points, near = plane.flattened(first, second)
        return np.clip(points, -plane.reach_m, plane.reach_m), None if near.all() else ~near
    wide = min(_BOX_DEGREES / np.cos(np.radians(plane.latitude)), _WIDEST_DEGREES)
    far = (np.abs(north) > _BOX_DEGREES) | (np.abs(east) > wide)
    north, east = np.clip(north, -_BOX_DEGREES, _BOX_DEGREES), np.clip(east, -wide, wide)
    return _metres(release, plane.latitude + north, plane.longitude + east), far


def _metres(release: Release, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    assert release.plane is not None
    return release.plane.to_metres(np.clip(latitude, -90, 90), longitude)


def clamped(release: Release, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The points of the region nearest to points outside it."""
    return release.region.clamp(to_plane(release, first, second)[0])


def laplace_outside(
    release: Release, first: np.ndarray, second: np.ndarray, chance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points outside the region with planar Laplace noise of the run's budget, on the run's grid
    continued.

    The grid is that of reports in the region, so that a report near the region's edge does not show
    on which side the truth was.  Where the plane ends it goes over into a lattice of the whole
    Earth: rows of equal height, each cut into lengths of about the same metres.  Which of the two a
    report is on depends on where it is and on nothing else.
    """
    noise = PlanarLaplace(release.epsilon).report(np.zeros((len(first), 2)), chance)
    if release.plane is None:
        reports = release.grid.snap(np.stack([first, second], axis=1) + noise)
        return release.written(reports)
    height = release.grid.cell_m / METRES_A_DEGREE
    latitude = np.clip(first, -_POLE, _POLE)
    longitude = second + noise[:, 0] / METRES_A_DEGREE / np.cos(np.radians(latitude))
    longitude = (longitude + 180) % 360 - 180
    latitude = np.clip(latitude + noise[:, 1] / METRES_A_DEGREE, -_POLE, _POLE)
    points, far = to_plane(release, latitude, longitude)
    near = release.written(release.grid.snap(points))
    row = np.floor(latitude / height)
    latitude = (row + 0.5) * height
    width = height / np.cos(np.radians(latitude))
    longitude = (np.floor(longitude / width) + 0.5) * width
    longitude = (longitude + 180) % 360 - 180
    if far is None:
        return near
    latitude = np.where(far, np.round(latitude, release.decimals), near[0])
    return latitude, np.where(far, np.round(longitude, release.decimals), near[1])
