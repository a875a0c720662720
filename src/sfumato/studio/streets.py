"""Streets below the map, from a GeoJSON file that the person brings."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import DataError

_WRAPPED = {"MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}  # lists about a line


def read_streets(path: Path) -> list[list[list[float]]]:
    """The lines of a GeoJSON file, each a list of latitudes and longitudes; edges of areas are
    lines too, and points are left out."""
    try:
        coordinates = _lines(json.loads(path.read_text("utf-8-sig")))
        lines = [_line(line) for line in coordinates if len(line)]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; name another file") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        raise DataError(
            f"{path.name} is no GeoJSON in degrees; expected lines of longitudes and latitudes, as"
            " maps export them"
        ) from None
    if not lines:
        raise DataError(f"{path.name} holds no line; expected LineStrings, as maps export streets")
    return lines


def _lines(thing: Any) -> Iterator[Any]:
    kind = thing["type"]
    if kind in ("FeatureCollection", "GeometryCollection"):
        for part in thing["features" if kind == "FeatureCollection" else "geometries"]:
            yield from _lines(part)
    elif kind == "Feature":
        if thing["geometry"] is not None:
            yield from _lines(thing["geometry"])
    elif kind == "LineString":
        yield thing["coordinates"]
    elif kind in _WRAPPED:
        coordinates = thing["coordinates"]
        for _ in range(_WRAPPED[kind] - 1):
            coordinates = [line for part in coordinates for line in part]
        yield from coordinates


def _line(given: list[list[float]]) -> list[list[float]]:
    points = np.array([point[:2] for point in given], dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or not (np.abs(points) <= (360.0, 90.0)).all():
        raise ValueError
    return np.round(points[:, ::-1], 6).tolist()
