"""Points as well-known binary (WKB), and what GeoParquet and GeoArrow say of a column of them."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import DataError, arg

_NAMES = ("geometry", "geom", "the_geom", "wkb_geometry", "wkb", "location", "point")
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_SRID = 0x20000000
_KINDS = {1: "Point", 2: "LineString", 3: "Polygon", 4: "MultiPoint", 5: "MultiLineString"}
_KINDS |= {6: "MultiPolygon", 7: "GeometryCollection"}
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_DEGREES = {("OGC", "CRS84"), ("EPSG", "4326")}
EXTENSION = b"ARROW:extension:name"
EXTENSION_NOTES = b"ARROW:extension:metadata"


@dataclass(frozen=True)
class Geometry:
    """The column of a table that holds the place as WKB, and columns that hold its box."""

    column: str
    boxes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """Names that stand for its latitude and longitude where a table has neither."""
        return f"{self.column} (latitude)", f"{self.column} (longitude)"


def find_geometry(schema: Any, *, source: str, without: tuple[str, ...]) -> Geometry | None:
    """The geometry of a table, None where it has none; several are refused, and so are degrees
    that nothing says to be degrees.

    A geometry is a column that the notes of GeoParquet or GeoArrow name, or one of bytes with a
    usual name.
    """
    notes = geo_notes(schema.metadata)
    noted = notes.get("columns", {})
    names = [name for name in schema.names if name in noted or _is_geoarrow(schema.field(name))]
    if not names:
        names = [
            field.name for field in schema if field.name.lower() in _NAMES and _is_bytes(field.type)
        ]
    names = [name for name in names if name not in without]
    if not names:
        return None
    if len(names) > 1:
        raise DataError(
            f"{source} has several geometries, {', '.join(names)}; expected one, as each would"
            " reveal the place",
            hint=f"leave the others out with {arg('drop')}",
        )
    name = names[0]
    if not _is_bytes(schema.field(name).type):
        raise DataError(
            f"{source}: the geometry '{name}' holds {schema.field(name).type}; expected well-known"
            " binary (WKB)"
        )
    _check_crs(noted.get(name, {}), schema.field(name), name=name, source=source)
    covering = noted.get(name, {}).get("covering", {}).get("bbox", {})
    named = {path[0] for path in covering.values() if isinstance(path, list) and path}
    boxes = tuple(
        field.name
        for field in schema
        if field.name not in without
        and is_box(field.type)
        and (field.name in named or field.name.lower() in ("bbox", f"{name}_bbox"))
    )
    return Geometry(name, boxes)


def geo_notes(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """The notes of GeoParquet, empty where there are none or they cannot be read."""
    try:
        notes = json.loads((metadata or {}).get(b"geo", b"{}"))
    except (ValueError, RecursionError):
        return {}
    columns = notes.get("columns") if isinstance(notes, dict) else None
    if not isinstance(columns, dict) or not all(
        isinstance(note, dict) for note in columns.values()
    ):
        return {}
    return notes  # type: ignore[no-any-return]


def written_notes(schema: Any, geometry: Geometry) -> dict[bytes, bytes]:
    """Notes of GeoParquet for reports: what the column is, and nothing that was computed from the
    true places (no extent, no edges)."""
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"]}
    if geometry.boxes:
        sides = {side: [geometry.boxes[0], side] for side in _SIDES}
        column["covering"] = {"bbox": sides}
    notes = {
        "version": "1.1.0",
        "primary_column": geometry.column,
        "columns": {geometry.column: column},
    }
    return {b"geo": json.dumps(notes).encode()} if geo_notes(schema.metadata) else {}


def written_field(field: Any) -> Any:
    """The field of a geometry without its notes, but for GeoArrow's name."""
    notes = field.metadata or {}
    if not _is_geoarrow(field):
        return field.with_metadata(None)
    crs = json.dumps({"crs": "OGC:CRS84", "crs_type": "authority_code"}).encode()
    return field.with_metadata({EXTENSION: notes[EXTENSION], EXTENSION_NOTES: crs})


def is_box(kind: Any) -> bool:
    """Whether a type is a structure of a box's sides, as GeoParquet has them."""
    return bool(
        pa.types.is_struct(kind)
        and {kind.field(place).name for place in range(kind.num_fields)} == set(_SIDES)
        and all(pa.types.is_floating(kind.field(place).type) for place in range(4))
    )


def boxes(kind: Any, latitude: np.ndarray, longitude: np.ndarray) -> Any:
    """Boxes of points; empty where a point is."""
    gone = np.isnan(latitude)
    values = {"xmin": longitude, "xmax": longitude, "ymin": latitude, "ymax": latitude}
    fields = [kind.field(place) for place in range(4)]
    arrays = [pa.array(values[field.name]).cast(field.type, safe=False) for field in fields]
    return pa.StructArray.from_arrays(
        arrays, fields=fields, mask=pa.array(gone) if gone.any() else None
    )


def decode(column: Any, *, name: str, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Latitudes and longitudes of points, NaN where there is none.  Errors name types, never
    values."""
    empty = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    latitude, longitude = np.full(len(column), np.nan), np.full(len(column), np.nan)
    if empty.all():
        return latitude, longitude
    parts = column.cast(pa.large_binary()).drop_null()
    lengths = np.asarray(pa.compute.binary_length(parts).to_numpy(zero_copy_only=False))
    if (lengths == _POINT.itemsize).all():
        start = parts.offset
        ends = np.frombuffer(parts.buffers()[1], "<i8", len(parts) + 1, start * 8)
        points = np.frombuffer(parts.buffers()[2], _POINT, len(parts), int(ends[0]))
        if (points["order"] == 1).all() and (points["kind"] == 1).all():
            latitude[~empty], longitude[~empty] = points["y"], points["x"]
            return latitude, longitude
    places = [_point(value, name=name, source=source) for value in parts.to_pylist()]
    kinds = sorted({kind for kind, _, _ in places} - {"Point"})
    if kinds:
        raise DataError(
            f"{source}: the geometry '{name}' holds {', '.join(kinds)}; expected points alone:"
            " reports are points, so take a point of each first"
        )
    longitude[~empty] = [x for _, x, _ in places]
    latitude[~empty] = [y for _, _, y in places]
    return latitude, longitude


def encode(latitude: np.ndarray, longitude: np.ndarray, kind: Any) -> Any:
    """Points as WKB, empty where there is none."""
    points = np.zeros(len(latitude), dtype=_POINT)
    points["order"], points["kind"] = 1, 1
    points["x"], points["y"] = longitude, latitude
    size = _POINT.itemsize
    offsets = pa.py_buffer((np.arange(len(points) + 1) * size).astype("<i4").tobytes())
    whole = pa.Array.from_buffers(
        pa.binary(), len(points), [None, offsets, pa.py_buffer(points.tobytes())]
    )
    gone = np.isnan(latitude)
    if gone.any():
        whole = pa.compute.if_else(pa.array(gone), pa.scalar(None, pa.binary()), whole)
    return whole.cast(kind)


def _point(value: bytes, *, name: str, source: str) -> tuple[str, float, float]:
    """The kind of a geometry, and its coordinates if it is a point; also of EWKB and with a
    height."""
    order = "<" if value[:1] == b"\x01" else ">"
    try:
        code = int(np.frombuffer(value, f"{order}u4", 1, 1)[0])
        kind = (code & 0x0FFFFFFF) % 1000
        if kind != 1:
            return _KINDS.get(kind, "something else"), np.nan, np.nan
        x, y = np.frombuffer(value, f"{order}f8", 2, 9 if code & _SRID else 5).tolist()
    except ValueError:
        raise DataError(
            f"{source}: the geometry '{name}' holds bytes that are not well-known binary (WKB);"
            " make it again"
        ) from None
    return "Point", x, y


def _is_bytes(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _is_geoarrow(field: Any) -> bool:
    return bool((field.metadata or {}).get(EXTENSION, b"").startswith((b"geoarrow.", b"ogc.wkb")))


def _check_crs(noted: dict[str, Any], field: Any, *, name: str, source: str) -> None:
    """Refuse any coordinates but degrees of longitude and latitude."""
    crs: Any = noted.get("crs", "OGC:CRS84")  # what GeoParquet takes where nothing is said
    if "crs" not in noted and _is_geoarrow(field):
        try:
            crs = json.loads((field.metadata or {}).get(EXTENSION_NOTES) or b"{}").get("crs")
        except (ValueError, AttributeError, RecursionError):
            crs = None
    if crs is None:
        raise DataError(
            f"{source}: the geometry '{name}' has a coordinate reference system without definition;"
            " expected one, without it degrees and metres look alike: set it first"
        )
    if isinstance(crs, dict):
        code = crs.get("id") or {}
        pair = (str(code.get("authority")), str(code.get("code")))
    else:
        pair = tuple(str(crs).upper().partition(":")[::2])  # type: ignore[assignment]
    if pair not in _DEGREES:
        raise DataError(
            f"{source}: the geometry '{name}' is not in longitude and latitude; expected OGC:CRS84"
            " or EPSG:4326: convert it, or hand it over as a GeoDataFrame, which is converted"
        )
