"""Degrees to metres and back, on a plane that touches the Earth at one point."""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import DataError, arg

# WGS 84: semi-major axis in metres and flattening.
_AXIS_M = 6378137.0
_FLATTENING = 1 / 298.257223563
_ECCENTRICITY_2 = _FLATTENING * (2 - _FLATTENING)
_POLAR_AXIS_M = _AXIS_M * (1 - _FLATTENING)

METRES_A_DEGREE = 111_320.0  # of latitude, about
WIDEST_M = 200_000.0  # half width beyond which a flat plane is no longer an honest picture
COUNTRY_M = 1_000_000.0  # of an atlas, whose tiles have planes of their own
_POLE_LATITUDE = 89.0
_AT_ONCE = 1 << 14  # points
_NEAR_DEGREES = 2.0  # a plane's points lie no further than this from its centre
_CITY_DEGREES = 5.0
# A country: only where more than `_COUNTRY_PLACES` places have more than `_COUNTRY_DECIMALS`.
_COUNTRY_DEGREES, _COUNTRY_PLACES, _COUNTRY_DECIMALS = 60.0, 50, 3


@dataclass(frozen=True, repr=False)
class Plane:
    """A plane tangent to the WGS 84 ellipsoid at (latitude, longitude); x east, y north, in metres.

    Points of the ellipsoid are projected straight down onto it (east and north of the usual
    east-north-up frame), so x and y are isotropic metres at every latitude.  Lengths shrink by
    (d/R)^2/2 at a distance d from the centre: 8 parts in a million at 25 km.

    `reach_m` is how far from the centre its points may lie.  A plane that reaches further than
    200 km is `wide`: its metres say where a point is, not how far it is from another, which is for
    `distance` to say.

    >>> plane = Plane(48.8584, 2.3482)
    >>> plane.to_metres([48.8584], [2.3482]).round(6).tolist()
    [[0.0, 0.0]]
    """

    latitude: float
    longitude: float
    reach_m: float = WIDEST_M

    def __post_init__(self) -> None:
        if not (-_POLE_LATITUDE <= self.latitude <= _POLE_LATITUDE):
            raise DataError(
                f"the centre's latitude is {self.latitude}; sfumato's plane works between -89 and"
                " 89 degrees, not at the poles: bring plane metres as columns x and y instead"
            )
        if not (-180 <= self.longitude <= 180):
            raise DataError(
                f"the centre's longitude is {self.longitude}; expected a value from -180 to 180"
            )
        if not WIDEST_M <= self.reach_m <= COUNTRY_M:
            raise DataError(
                f"a plane reaches {WIDEST_M / 1000:g} to {COUNTRY_M / 1000:g} km from its centre;"
                f" got {self.reach_m / 1000:g}"
            )

    def __repr__(self) -> str:
        return f"<Plane near {self.latitude:.1f}, {self.longitude:.1f}>"  # it may be a true place

    @property
    def wide(self) -> bool:
        """Whether it reaches further than metres on it are those of the Earth."""
        return self.reach_m > WIDEST_M

    @property
    def numbers(self) -> tuple[float, ...]:
        """What files hold: `Plane(*numbers)` is the same plane."""
        return (self.latitude, self.longitude, *((self.reach_m,) if self.wide else ()))

    @classmethod
    def about(cls, latitude: np.ndarray, longitude: np.ndarray, *, wide: bool = False) -> "Plane":
        """The plane that touches in the middle of the points' box; where `wide`, one that reaches
        as far as the points need."""
        plane = cls(
            float(latitude.min() + latitude.max()) / 2, float(longitude.min() + longitude.max()) / 2
        )
        if not wide:
            return plane
        country = replace(plane, reach_m=COUNTRY_M)
        far = np.abs(country.to_metres(latitude, longitude)).max() > WIDEST_M
        return country if far else plane

    def to_metres(self, latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
        """Metres east and north of the centre, shape (n, 2)."""
        latitude, longitude = np.asarray(latitude, dtype=float), np.asarray(longitude, dtype=float)
        if longitude.size and (
            max(longitude.max(), self.longitude) - min(longitude.min(), self.longitude) > 180
        ):
            raise DataError(
                "the points lie on both sides of the antimeridian (longitude 180); sfumato does not"
                " cross it: select one side, or bring plane metres as columns x and y"
            )
        points, near = self.flattened(latitude, longitude)
        if not near.all():
            if Plane.about(latitude, longitude).flattened(latitude, longitude)[1].all():
                raise DataError(
                    f"some points lie more than {self.reach_m / 1000:.0f} km from the middle of the"
                    f" plane, near {self.latitude:.1f}, {self.longitude:.1f}: use a run and data"
                    " of the same area"
                )
            off = np.abs(latitude - np.median(latitude)) + np.abs(longitude - np.median(longitude))
            raise DataError(
                f"the points reach {np.abs(points).max() / 1000:.0f} km from their centre; a flat"
                f" plane is accurate to {self.reach_m / 1000:.0f} km: select a smaller area with"
                f" {arg('square')}, or repair data row {int(np.argmax(off)) + 1}, the farthest from"
                " the others, if it is a mistake"
            )
        return points

    def flattened(
        self, latitude: np.ndarray, longitude: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Metres east and north, and which of the points the plane reaches."""
        if len(latitude) > _AT_ONCE:  # in parts that stay in cache
            cuts = range(_AT_ONCE, len(latitude), _AT_ONCE)
            axes = (np.split(axis, cuts) for axis in (latitude, longitude))
            parts = [self.flattened(*part) for part in zip(*axes, strict=True)]
            return np.concatenate([metres for metres, _ in parts]), np.concatenate(
                [reached for _, reached in parts]
            )
        sin_lat, cos_lat, sin_lon, cos_lon = self._centre
        x, y, z = (
            there - here
            for there, here in zip(
                _earth_centred(latitude, longitude),
                _earth_centred(np.array([self.latitude]), np.array([self.longitude])),
                strict=True,
            )
        )
        east = -sin_lon * x + cos_lon * y
        outward = cos_lon * x + sin_lon * y
        north = -sin_lat * outward + cos_lat * z
        near = np.maximum(np.abs(east), np.abs(north)) <= self.reach_m
        if self.wide:  # not the other side of the Earth
            near &= cos_lat * outward + sin_lat * z >= -self.reach_m
        return np.stack([east, north], axis=1), near

    def to_degrees(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Latitude and longitude of points on the plane: the point of the ellipsoid straight
        below."""
        points = np.atleast_2d(np.asarray(points, dtype=float))
        x, y, z = self._on_earth(points)[0]
        latitude = np.degrees(np.arctan2(z, (1 - _ECCENTRICITY_2) * np.hypot(x, y)))
        longitude = np.degrees(np.arctan2(y, x))
        return latitude, longitude

    def distance(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Metres between points over the last axis: on the plane, or where it is wide, straight
        between the points of the Earth below."""
        off = np.asarray(first, dtype=float) - second
        square = off[..., 0] ** 2 + off[..., 1] ** 2
        if self.wide:
            depths = [
                self._on_earth(points.reshape(-1, 2))[1].reshape(points.shape[:-1])
                for points in (np.asarray(first, dtype=float), np.asarray(second, dtype=float))
            ]
            square = square + (depths[0] - depths[1]) ** 2
        return np.asarray(np.sqrt(square))

    def _on_earth(self, points: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Earth-centred metres, by axis, of the points of the ellipsoid straight below, and how far
        below."""
        sin_lat, cos_lat, sin_lon, cos_lon = self._centre
        # By axis x, y, z: a loop over whole columns is several times faster than rows of three.
        start = _earth_centred(np.array([self.latitude]), np.array([self.longitude]))
        across = (-sin_lon, cos_lon, 0.0)
        along = (-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat)
        flat = [
            middle + points[:, 0] * east + points[:, 1] * north
            for middle, east, north in zip(start, across, along, strict=True)
        ]
        up = (cos_lat * cos_lon, cos_lat * sin_lon, sin_lat)
        # flat + t * up lies on the ellipsoid: a quadratic in t, the root nearer to zero.
        weight = (1.0, 1.0, (_AXIS_M / _POLAR_AXIS_M) ** 2)
        square = sum(w * u * u for w, u in zip(weight, up, strict=True))
        half = sum(w * f * u for w, f, u in zip(weight, flat, up, strict=True))
        rest = sum(w * f * f for w, f in zip(weight, flat, strict=True)) - _AXIS_M**2
        under = half * half - square * rest
        if not np.all(under >= 0):
            raise DataError(
                "a point on the plane lies beyond the Earth's edge; expected metres near the centre"
            )
        drop = -rest / (half + np.sqrt(under))
        return [f + drop * u for f, u in zip(flat, up, strict=True)], drop

    @property
    def _centre(self) -> tuple[float, float, float, float]:
        latitude, longitude = np.radians(self.latitude), np.radians(self.longitude)
        return (
            float(np.sin(latitude)),
            float(np.cos(latitude)),
            float(np.sin(longitude)),
            float(np.cos(longitude)),
        )


def _earth_centred(
    latitude: np.ndarray, longitude: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Earth-centred metres of points on the ellipsoid, by axis."""
    lat, lon = np.radians(latitude), np.radians(longitude)
    sine = np.sin(lat)
    normal = _AXIS_M / np.sqrt(1 - _ECCENTRICITY_2 * sine**2)
    flat = normal * np.cos(lat)
    return flat * np.cos(lon), flat * np.sin(lon), normal * (1 - _ECCENTRICITY_2) * sine


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
            hint=(
                f"name the columns with {arg('lat')} and {arg('lon')}, or write the square's"
                " latitude first"
                if swapped.size
                else None
            ),
        )
    return keep, points, plane


def _within(
    plane: Plane, latitude: np.ndarray, longitude: np.ndarray, side_m: float
) -> tuple[np.ndarray, np.ndarray]:
    # degrees: a generous first cut, so that far-away points are never projected
    reach = side_m / 100_000
    widen = 1 / max(np.cos(np.radians(min(89.0, abs(plane.latitude) + reach))), 0.02)
    offset = longitude - plane.longitude
    # the short way round the Earth
    longitude = np.where(np.abs(offset) > 180, longitude - 360 * np.sign(offset), longitude)
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


def looks_like_degrees(points: np.ndarray, plane: Plane | None) -> bool:
    """Whether points given as metres are degrees, as far as that can be told without a mistake.

    With a plane: all of them lie within two units of the plane's own latitude and longitude, a spot
    of a few metres.  Without one: two places or more, all within the range of degrees, less than
    five units apart and further from the origin than from each other, as a city is in degrees and
    no data set is in metres; or, less than sixty units apart, fifty different places that are
    written finer than to the thousandth, as a country's are in degrees and a building's are not in
    metres.  Latitude and longitude may come in either order.
    """
    points = np.atleast_2d(points)
    if not len(points):
        return False
    if plane is not None:
        centre = np.array([plane.latitude, plane.longitude])
        near = np.array([_NEAR_DEGREES, _NEAR_DEGREES / np.cos(np.radians(plane.latitude))])
        return bool(
            np.hypot(*centre) > 2 * _NEAR_DEGREES
            and any(
                np.all(np.abs(points - centre[order]) <= near[order]) for order in ([0, 1], [1, 0])
            )
        )
    extent = points.max(axis=0) - points.min(axis=0)
    largest = np.sort(np.abs(points).max(axis=0))
    return bool(
        0 < extent.max() < (_COUNTRY_DEGREES if _many_and_fine(points) else _CITY_DEGREES)
        and np.hypot(*np.median(points, axis=0)) > extent.max()
        and largest[0] <= 90
        and largest[1] <= 180
        and np.any(points * 2 != np.round(points * 2))
    )


def _many_and_fine(points: np.ndarray) -> bool:
    scaled = points * 10.0**_COUNTRY_DECIMALS
    fine = points[np.any(np.abs(scaled - np.round(scaled)) > 1e-6, axis=1)]
    return len(fine) > 0.9 * len(points) and len(np.unique(fine, axis=0)) >= _COUNTRY_PLACES


def check_degrees(latitude: np.ndarray, longitude: np.ndarray, *, source: str) -> None:
    """Refuse coordinates that are not degrees, and say so when latitude and longitude look
    swapped."""
    for name, values in (("latitude", latitude), ("longitude", longitude)):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(
                f"{source}: {bad.size} {name} value(s) are not finite numbers (first in data row"
                f" {bad[0] + 1}: {values[bad[0]]}); expected degrees: remove or repair these rows"
            )
    bad = np.flatnonzero(np.abs(latitude) > 90)
    if bad.size:
        swapped = 2 * bad.size > len(latitude) and np.abs(longitude).max() <= 90
        raise DataError(
            f"{source}: latitude {latitude[bad[0]]} in data row {bad[0] + 1} is beyond 90 degrees"
            f" ({bad.size} such row(s))"
            + (
                "; latitude and longitude are probably swapped"
                if swapped
                else "; expected degrees between -90 and 90: remove or repair these rows"
            ),
            hint=f"name the columns with {arg('lat')} and {arg('lon')}" if swapped else None,
        )
    bad = np.flatnonzero(np.abs(longitude) > 180)
    if bad.size:
        raise DataError(
            f"{source}: longitude {longitude[bad[0]]} in data row {bad[0] + 1} is beyond 180"
            " degrees; expected -180 to 180"
        )
