"""GeoPandas: points in any coordinate reference system, in and out."""

from dataclasses import replace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.deploy.engines.pandas import ORDER, as_arrow, replaced
from sfumato.deploy.geometry import Geometry
from sfumato.deploy.table import Reporter
from sfumato.errors import DataError, arg

_DEGREES = "OGC:CRS84"


def reported(frame: "gpd.GeoDataFrame", reporter: Reporter) -> "gpd.GeoDataFrame":
    """A new GeoDataFrame whose points are reports, in the coordinate reference system of `frame`.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> frame = gpd.GeoDataFrame(
    ...     {"id": [1, 2]}, geometry=gpd.points_from_xy([2.35, 2.34], [48.86, 48.85]), crs=4326
    ... ).to_crs(2154)  # metres in France
    >>> made = sf.deploy.report(frame, "run", key=bytes(32), row="id")
    >>> made.crs.to_epsg(), list(made.columns)
    (2154, ['id', 'geometry'])
    """
    name, points = _points(frame, reporter)
    names = Geometry(name).names
    shapes = [column for column, kind in frame.dtypes.items() if str(kind) == "geometry"]
    flat = pd.DataFrame(frame.drop(columns=shapes))
    if not (points.crs.is_geographic or points.crs.is_projected or points.crs.is_geocentric):
        raise DataError(
            "the frame has a coordinate reference system that does not say where on Earth it is;"
            " expected one that can be converted to longitude and latitude: set it by set_crs"
        )
    degrees = points.to_crs(_DEGREES)
    table = as_arrow(flat).append_column(ORDER, pa.array(np.arange(len(frame))))
    for column, values in zip(names, (degrees.y, degrees.x), strict=True):
        table = table.append_column(column, pa.array(values.to_numpy(), from_pandas=True))
    drop = tuple(column for column in reporter.policy.drop if column not in shapes)
    policy = replace(reporter.policy, lat=names[0], lon=names[1], drop=drop)
    answered = replace(reporter, policy=policy).whole(table)
    latitude, longitude = (answered[column].to_numpy().astype(float) for column in names)
    made = replaced(flat, answered)
    places = gpd.GeoSeries(gpd.points_from_xy(longitude, latitude), index=made.index, crs=_DEGREES)
    places[np.isnan(latitude)] = None
    made[name] = places.to_crs(frame.crs)
    order = [column for column in frame.columns if column in made.columns]
    return gpd.GeoDataFrame(made[order], geometry=name, crs=frame.crs)


def _points(frame: Any, reporter: Reporter) -> tuple[str, Any]:
    """The column of the geometry and its points; refuses what has none, several, no definition of
    its coordinates, or other shapes."""
    if reporter.release.plane is None:
        raise DataError(
            "the run is in plane metres, which no coordinate reference system names; expected a"
            " run of latitudes and longitudes"
        )
    geometries = [
        name
        for name, kind in frame.dtypes.items()
        if str(kind) == "geometry" and name not in reporter.policy.drop
    ]
    if not isinstance(frame, gpd.GeoDataFrame) or frame._geometry_column_name not in geometries:
        raise DataError("the frame has no active geometry; expected one: name it by set_geometry")
    if len(geometries) > 1:
        raise DataError(
            f"the frame has several geometries, {', '.join(map(str, geometries))}; expected one,"
            " as each would reveal the place",
            hint=f"leave the others out with {arg('drop')}",
        )
    points = frame.geometry
    if points.crs is None:
        raise DataError(
            "the frame has a coordinate reference system without definition; expected one, as"
            " nobody can tell degrees from metres: set it by set_crs"
        )
    kinds = sorted(set(points.geom_type.dropna().unique()) - {"Point"})
    if kinds:
        raise DataError(
            f"the geometry holds {', '.join(kinds)}; expected points alone: reports are points, so"
            " take a point of each first"
        )
    return str(geometries[0]), points
