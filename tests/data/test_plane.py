"""The plane against pyproj: an implementation that knows nothing of ours."""

import numpy as np
import pyproj
import pytest

from sfumato.data.plane import Plane
from sfumato.errors import DataError

CENTRES = [
    (0.0, 0.0),
    (48.8584, 2.3482),
    (-33.87, 151.21),
    (59.3326, 18.0649),
    (-54.8, -68.3),
    (78.22, 15.65),
    (88.9, -120.0),
]
GEOD = pyproj.Geod(ellps="WGS84")


def _around(
    centre: tuple[float, float], distance_m: np.ndarray, azimuth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Latitudes and longitudes at geodesic distances and azimuths from a centre."""
    size = np.broadcast(distance_m, azimuth).shape
    full = [
        np.broadcast_to(np.asarray(value, dtype=float), size).ravel()
        for value in (centre[1], centre[0], azimuth, distance_m)
    ]
    longitude, latitude, _ = GEOD.fwd(*full)
    return latitude, longitude


@pytest.mark.parametrize("centre", CENTRES)
def test_metres_are_the_east_and_north_of_pyprojs_topocentric_frame(
    centre: tuple[float, float],
) -> None:
    latitude, longitude = _around(
        centre, np.array([[1.0], [500.0], [25_000.0], [50_000.0]]), np.arange(0, 360, 30.0)[None, :]
    )
    frame = pyproj.Transformer.from_pipeline(
        "+proj=pipeline +step +proj=unitconvert +xy_in=deg +xy_out=rad +step +proj=cart"
        f" +ellps=WGS84 +step +proj=topocentric +ellps=WGS84 +lat_0={centre[0]} +lon_0={centre[1]}"
    )
    east, north, _ = frame.transform(longitude, latitude, np.zeros_like(latitude))
    assert (
        np.abs(
            Plane(*centre).to_metres(latitude, longitude) - np.stack([east, north], axis=1)
        ).max()
        < 1e-6
    )


@pytest.mark.parametrize("centre", CENTRES)
def test_there_and_back_is_within_a_centimetre_over_fifty_kilometres(
    centre: tuple[float, float],
) -> None:
    plane = Plane(*centre)
    axis = np.linspace(-50_000, 50_000, 21)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    latitude, longitude = plane.to_degrees(points)
    unwound = (
        centre[1] + (longitude - centre[1] + 180) % 360 - 180
    )  # near a pole, 50 km may pass longitude 180
    assert np.abs(plane.to_metres(latitude, unwound) - points).max() < 0.01
    back = plane.to_degrees(plane.to_metres(latitude, unwound))
    apart = GEOD.inv(longitude, latitude, back[1], back[0])[2]
    assert np.max(apart) < 0.01


@pytest.mark.parametrize("centre", CENTRES)
def test_a_metre_is_a_metre_in_every_direction(centre: tuple[float, float]) -> None:
    """A plane that took degrees of longitude for degrees of latitude would be 34 % off in Paris; we
    allow one millimetre in 1 km."""
    latitude, longitude = _around(centre, np.array(1000.0), np.arange(0, 360, 15.0))
    assert (
        np.abs(np.linalg.norm(Plane(*centre).to_metres(latitude, longitude), axis=1) - 1000).max()
        < 0.001
    )


def test_lengths_shrink_no_more_than_the_docstring_says() -> None:
    latitude, longitude = _around(CENTRES[1], np.array(25_000.0), np.arange(0, 360, 15.0))
    shrink = 1 - np.linalg.norm(Plane(*CENTRES[1]).to_metres(latitude, longitude), axis=1) / 25_000
    assert np.all((shrink > 0) & (shrink < 8e-6))


def test_east_is_x_and_north_is_y() -> None:
    east, north = Plane(48.8584, 2.3482).to_metres(
        np.array([48.8584, 48.8684]), np.array([2.3582, 2.3482])
    )
    assert east[0] > 700 and abs(east[1]) < 1
    assert north[1] > 1000 and abs(north[0]) < 1


@pytest.mark.parametrize("latitude", [89.5, 90.0, -90.0, float("nan")])
def test_the_poles_are_refused(latitude: float) -> None:
    with pytest.raises(DataError, match="not at the poles"):
        Plane(latitude, 0.0)


def test_a_centre_beyond_longitude_180_is_refused() -> None:
    with pytest.raises(DataError, match=r"longitude is 200\.0; expected a value from -180 to 180"):
        Plane(0.0, 200.0)


def test_points_on_both_sides_of_the_antimeridian_are_refused() -> None:
    with pytest.raises(DataError, match="both sides of the antimeridian"):
        Plane(-17.0, 179.9).to_metres(np.array([-17.0, -17.0]), np.array([179.95, -179.95]))


def test_one_side_of_the_antimeridian_is_fine() -> None:
    points = Plane(-17.0, 179.9).to_metres(np.array([-17.0]), np.array([179.95]))
    assert points[0, 0] == pytest.approx(GEOD.inv(179.9, -17.0, 179.95, -17.0)[2], abs=0.01)


def test_a_plane_too_wide_to_be_honest_is_refused() -> None:
    with pytest.raises(DataError, match="a flat plane is accurate to 200 km"):
        Plane(48.0, 2.0).to_metres(np.array([48.0, 52.0]), np.array([2.0, 2.0]))


def test_points_of_another_area_than_the_plane_are_told_so() -> None:
    with pytest.raises(DataError, match=r"near 48\.0, 2\.0: use a run and data of the same area"):
        Plane(48.0, 2.0).to_metres(np.array([52.0]), np.array([2.0]))


def test_metres_beyond_the_edge_of_the_earth_are_refused() -> None:
    with pytest.raises(DataError, match="beyond the Earth's edge"):
        Plane(48.0, 2.0).to_degrees(np.array([[1e7, 0.0]]))
