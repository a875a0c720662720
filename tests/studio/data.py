"""Small made-up check-ins for the studio."""

from pathlib import Path

import numpy as np

PARIS = (48.8584, 2.3482)
_METRES_A_DEGREE = 111_200.0


def checkins(
    path: Path, *, users: int = 3, each: int = 6, apart_m: float = 200.0, seed: int = 0
) -> Path:
    """A CSV of users about the corners of a polygon in Paris."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(users), each)
    angle = 2 * np.pi * who / users
    place = apart_m * np.stack([np.cos(angle), np.sin(angle)], axis=1) + random.normal(
        0, apart_m / 5, (len(who), 2)
    )
    latitude = PARIS[0] + place[:, 1] / _METRES_A_DEGREE
    longitude = PARIS[1] + place[:, 0] / (_METRES_A_DEGREE * np.cos(np.radians(PARIS[0])))
    rows = "\n".join(
        f"user{number},{lat:.6f},{lon:.6f}"
        for number, lat, lon in zip(who, latitude, longitude, strict=True)
    )
    path.write_text(f"user,lat,lon\n{rows}\n", encoding="utf-8")
    return path
