"""DuckDB: a relation in and out, or a function for SQL."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sfumato.deploy.release import Release
from sfumato.deploy.table import Reporter
from sfumato.study.folder import Run


def reported(relation: "duckdb.DuckDBPyRelation", reporter: Reporter) -> pa.Table:
    """The rows of a relation as an Arrow table with reports in place of true locations.

    DuckDB reads it by its variable's name: `con.sql("create table sanitized as from made")`.  It is
    held in memory, as a connection cannot read one result while it writes another.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> rows = duckdb.sql("select 1 as id, 48.86::double as lat, 2.35::double as lon")
    >>> made = sf.deploy.report(rows, "run", key=bytes(32), row="id")
    >>> duckdb.sql("select count(*) from made").fetchall()
    [(1,)]
    """
    return reporter.whole(relation.to_arrow_table())


def register(
    connection: "duckdb.DuckDBPyConnection",
    run: str | Path | Run | Release,
    *,
    key: bytes | str | Path | None = None,
    name: str = "sfumato_report",
    **options: Any,
) -> None:
    """Make `name(row, lat, lon)` a function of SQL that gives `{'lat': …, 'lon': …}` in degrees.

    `row` is a text that names the row (`user || '/' || id`, say).  A function sees its own
    arguments and no other column, so what else is selected is not looked at.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> con = duckdb.connect()
    >>> register(con, "run", key=bytes(32))
    >>> con.sql("select typeof(sfumato_report('a', 48.86, 2.35))").fetchall()
    [('STRUCT(lat DOUBLE, lon DOUBLE)',)]
    """
    reporter = Reporter.of(run, key=key, row="row", lat="lat", lon="lon", **options)
    schema = pa.schema([("row", pa.string()), ("lat", pa.float64()), ("lon", pa.float64())])
    plan = reporter.plan(schema)

    def answer(row: Any, lat: Any, lon: Any) -> Any:
        columns = [
            (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(
                field.type
            )
            for array, field in zip((row, lat, lon), schema, strict=True)
        ]
        (made,) = reporter.stream([pa.record_batch(columns, schema=schema)], plan)
        both = [made.column("lat"), made.column("lon")]
        gone = np.asarray(both[0].is_null().to_numpy(zero_copy_only=False))
        return pa.StructArray.from_arrays(both, ["lat", "lon"], mask=pa.array(gone))

    kinds: list[Any] = ["VARCHAR", "DOUBLE", "DOUBLE"]
    connection.create_function(
        name,
        answer,
        kinds,
        duckdb.struct_type({"lat": "DOUBLE", "lon": "DOUBLE"}),
        type="arrow",  # type: ignore[arg-type]
        null_handling="special",  # type: ignore[arg-type]
    )
