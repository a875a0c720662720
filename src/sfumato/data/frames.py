"""Values that are tables: out to Arrow, and by it to pandas, Polars and whatever reads Arrow."""

from abc import ABC, abstractmethod
from typing import Any

from sfumato.errors import DataError, missing_extra


class Tabular(ABC):
    """What has columns.  A library that reads Arrow takes it as it is: `polars.DataFrame(value)`.

    >>> class Two(Tabular):
    ...     def columns(self):
    ...         return {"n": [1, 2]}
    >>> Two().to_arrow().num_rows
    2
    """

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The columns by name, all of one length."""

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        import pyarrow as pa

        return pa.table(self.columns())

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; pandas comes with `sfumato[pandas]`."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def arrow_table(given: Any) -> Any:
    """An Arrow table of a data frame (pandas, Polars, GeoPandas), an Arrow table, a dictionary of
    columns or a list of rows.  A GeoPandas geometry of points becomes the columns lat and lon.

    >>> arrow_table({"user": ["ann"], "lat": [48.86], "lon": [2.35]}).num_rows
    1
    """
    import pyarrow as pa

    if hasattr(given, "to_crs") and hasattr(given, "geometry"):
        given = _with_degrees(given)
    if isinstance(given, list) and given and all(isinstance(row, dict) for row in given):
        return pa.Table.from_pylist(given)
    if hasattr(given, "collect_schema") and hasattr(given, "collect"):
        raise DataError("got a lazy frame; expected its rows: frame.collect()")
    try:
        return pa.table(given)
    except (TypeError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"a {type(given).__name__} cannot be read as a table ({reason}); expected the name of a"
            " file, a data frame, or columns by name"
        ) from None


def _with_degrees(frame: Any) -> Any:
    """A GeoPandas frame with latitude and longitude as columns in place of its geometry."""
    if frame.crs is None:
        raise DataError(
            "the GeoDataFrame has no coordinate system; expected one, so that its points can be"
            " turned into degrees: set it with frame.set_crs"
        )
    kinds = set(frame.geometry.geom_type)
    if kinds - {"Point"}:
        raise DataError(
            f"the geometry holds {', '.join(sorted(map(str, kinds - {'Point'})))}; expected a Point"
            " in each row: take frame.geometry.centroid or remove the others"
        )
    points = frame.geometry.to_crs(4326)
    return frame.drop(columns=frame.geometry.name).assign(lat=points.y, lon=points.x)
