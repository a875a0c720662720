"""One function for tables of every engine: it looks at whose table it is and asks that engine's
file."""

from importlib import import_module
from pathlib import Path
from typing import Any

from sfumato.deploy.release import Release
from sfumato.deploy.table import Reporter
from sfumato.errors import DataError, missing_extra
from sfumato.study.folder import Run

_ENGINES = ("pandas", "geopandas", "polars", "duckdb", "pyspark")
_FILES = {"pyspark": "spark"}


def report(
    table: Any,
    run: str | Path | Run | Release,
    *,
    key: bytes | str | Path | None = None,
    row: str | None = None,
    **options: Any,
) -> Any:
    """The same table with reports of a run's mechanism in place of true locations.

    Main arguments: `table`, an Arrow table or record batch, or a frame of pandas, GeoPandas, Polars
    (also lazy), Spark or DuckDB (a relation); what comes back is of the same kind, for DuckDB an
    Arrow table, which it reads by its name.  `run`, a run folder.  `key`, 32 secret bytes or a key
    file: a row's report is the same whenever it is computed again.  `row`, the column that names a
    row; without it user and time tell rows apart.

    Other arguments, as for `sanitize`: `lat`, `lon`, `user`, `time` name columns; `drop` leaves
    columns out, `keep` lets them pass although they name the user or tell the place; `pseudonym`,
    `outside`, `new_places`, `over_budget`.

    A place may also be a geometry of points (WKB, GeoParquet, GeoDataFrame).  Coordinates are in
    the table's own unit; the loss is in metres.

    >>> import pyarrow as pa, sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> table = pa.table({"id": [1, 2], "lat": [48.86, 48.86], "lon": [2.35, 2.35]})
    >>> first = report(table, "run", key=bytes(32), row="id")
    >>> first.equals(report(table, "run", key=bytes(32), row="id"))
    True
    """
    reporter = Reporter.of(run, key=key, row=row, **options)
    home = type(table).__module__.partition(".")[0].lstrip("_")
    if home == "pyarrow" and hasattr(table, "num_rows"):
        return reporter.whole(table)
    if home not in _ENGINES:
        raise DataError(
            f"a {type(table).__module__}.{type(table).__name__} came; expected a table of Arrow,"
            " pandas, GeoPandas, Polars, DuckDB or Spark"
        )
    try:
        engine = import_module(f"sfumato.deploy.engines.{_FILES.get(home, home)}")
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    return engine.reported(table, reporter)
