"""A million rows through each engine, compared with a plain copy of the table by the same engine.

Each engine runs in a process of its own; figures are processor seconds of that process and of the
processes that it started, medians of repeats.  Rows, order and other columns are compared as well.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROWS = 1_000_000
REPEATS = 3
ENGINES = ("arrow", "pandas", "geopandas", "polars", "duckdb", "spark", "dask")
KEY = bytes(range(32))
_OPTIONS: dict[str, Any] = {"key": KEY, "row": "id", "drop": "user"}


def _table(rows: int) -> Any:
    import pyarrow as pa

    import sfumato as sf

    data = sf.four_corners(seed=0).train
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(data), rows)
    assert data.plane is not None
    latitude, longitude = data.plane.to_degrees(
        data.truth[drawn] + random.uniform(-20, 20, (rows, 2))
    )
    return pa.table(
        {
            "id": np.arange(rows),
            "user": pa.array(data.secret[drawn].astype(str)),
            "time": 1_287_532_527 + np.arange(rows),
            "lat": latitude,
            "lon": longitude,
            "stars": random.integers(0, 5, rows),
        }
    )


def _seconds() -> float:
    """Processor seconds of this process and of all that descend from it, those that ended too.

    Java is not waited for and Python workers are Java's children, so nobody sums them up: they are
    looked up in /proc, and must still be there.
    """
    tick = os.sysconf("SC_CLK_TCK")
    parents, spent = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = int(fields[1])
            spent[int(entry)] = sum(map(int, fields[11:15])) / tick
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(spent[one] for one in family)


def _timed(work: Any) -> tuple[float, Any]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def _in_process(engine: str, table: Any, run: str) -> dict[str, Any]:
    """The engines that compute in this process: its processor time, all threads together."""
    import sfumato as sf

    def report(frame: Any) -> Any:
        return sf.deploy.report(frame, run, **_OPTIONS)

    if engine == "arrow":
        import pyarrow as pa

        frame, copy = table, lambda: pa.concat_tables([table]).take(np.arange(len(table)))
        answer, back = (lambda: report(frame)), (lambda made: made)
    elif engine == "pandas":
        import pyarrow as pa

        frame = table.to_pandas()
        copy = lambda: frame.copy(deep=True)  # noqa: E731
        answer, back = (lambda: report(frame)), pa.Table.from_pandas
    elif engine == "geopandas":
        import geopandas as gpd
        import pyarrow as pa

        plain = table.drop_columns(["lat", "lon"]).to_pandas()
        points = gpd.points_from_xy(table["lon"].to_numpy(), table["lat"].to_numpy(), crs=4326)
        frame = gpd.GeoDataFrame(plain, geometry=points).to_crs(3857)
        copy = lambda: frame.copy(deep=True).to_crs(4326).to_crs(3857)  # noqa: E731
        answer = lambda: report(frame)  # noqa: E731

        def back(made: Any) -> Any:
            degrees = made.geometry.to_crs(4326)
            flat = made.drop(columns="geometry").assign(lat=degrees.y, lon=degrees.x)
            return pa.Table.from_pandas(flat)

    elif engine == "polars":
        import polars as pl

        frame = pl.from_arrow(table)
        copy = lambda: pl.from_arrow(frame.to_arrow()).clone()  # noqa: E731
        answer, back = (lambda: report(frame)), (lambda made: made.to_arrow())
    else:
        import duckdb

        connection = duckdb.connect()
        connection.register("source", table)
        connection.sql("create table checkins as from source")
        copy = lambda: connection.sql("from checkins").to_arrow_table()  # noqa: E731
        answer = lambda: report(connection.sql("from checkins"))  # noqa: E731
        back = lambda made: made  # noqa: E731
    answer_s, copy_s, made = [], [], None
    for _ in range(REPEATS):
        copy_s.append(_timed(copy)[0])
        spent, made = _timed(answer)
        answer_s.append(spent)
    return _checked(engine, table, back(made), median(answer_s), median(copy_s))


def _on_spark(table: Any, run: str, folder: str) -> dict[str, Any]:
    """Each job in a session of its own: Java's and the workers' time is known once they ended."""
    from pyarrow import parquet

    import sfumato as sf

    out: dict[str, Any] = {}
    spent: dict[str, float] = {}
    for name in ("nothing", "copy", "report"):
        code = (
            "import sys; from benchmarks.engines import _spark_job;"
            f" _spark_job({name!r}, {folder!r}, {run!r})"
        )
        ended = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        spent[name] = float(ended.stdout.split()[-1])
    made = parquet.read_table(f"{folder}/report").sort_by("id")
    one = sf.deploy.report(table.slice(0, 1000), run, **_OPTIONS)
    assert made.slice(0, 1000)["lat"].to_pylist() == one["lat"].to_pylist()
    out = _checked(
        "spark", table, made, spent["report"] - spent["nothing"], spent["copy"] - spent["nothing"]
    )
    return out | {"start_s": spent["nothing"]}


def _spark_job(name: str, folder: str, run: str) -> None:
    import warnings

    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    import sfumato as sf

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", folder)
        .getOrCreate()
    )
    frame = session.read.parquet(f"{folder}/in.parquet")
    if name == "copy":
        frame.mapInArrow(lambda batches: batches, frame.schema).write.parquet(f"{folder}/copy")
    elif name == "report":
        sf.deploy.report(frame, run, **_OPTIONS).write.parquet(f"{folder}/report")
    print(_seconds())
    session.stop()


def _on_dask(table: Any, run: str, folder: str) -> dict[str, Any]:
    """Eight files on a cluster of two worker processes: `sanitize`, which reads back what it wrote,
    beside workers that read and write."""
    from distributed import Client, LocalCluster
    from pyarrow import parquet

    from sfumato.deploy.engines.dask import on_cluster
    from sfumato.deploy.one_file import Policy
    from sfumato.deploy.sanitize import sanitize

    names = ("in", "first", "copy", "report")
    source, first, copies, target = (Path(folder, name) for name in names)
    for one in (source, first, copies):
        one.mkdir()
    step = -(-len(table) // 8)
    for part in range(8):
        parquet.write_table(table.slice(part * step, step), source / f"{part}.parquet")
        parquet.write_table(
            table.slice(part * 100, 100), first / f"{part}.parquet"
        )  # workers import first
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        runner, policy = on_cluster(cluster.scheduler_address), Policy(drop=("user",))
        sanitize(run, first, Path(folder, "first report"), policy=policy, runner=runner)
        client.gather(client.map(_copied, [str(source / "0.parquet")] * 2, [None] * 2, pure=False))
        before = _seconds()
        paths = sorted(source.iterdir())
        client.gather(
            client.map(
                _copied, [str(one) for one in paths], [str(copies / one.name) for one in paths]
            )
        )
        copied = _seconds()
        sanitize(run, source, target, policy=policy, runner=runner)
        ended = _seconds()
    made = parquet.read_table(target).sort_by("id")
    return _checked("dask", table, made, ended - copied, copied - before)


def _copied(source: str, target: str | None) -> None:
    from pyarrow import parquet

    read = parquet.read_table(source, use_threads=False)
    if target is not None:
        parquet.write_table(read, target)


def _checked(engine: str, table: Any, made: Any, answer_s: float, copy_s: float) -> dict[str, Any]:
    """What was measured, with whether rows, order and other columns are those of the table."""
    same = all(
        made[name].to_numpy().tolist() == table[name].to_numpy().tolist()
        for name in ("id", "time", "stars")
    )
    moved = float(np.mean(made["lat"].to_numpy() != table["lat"].to_numpy()))
    return {
        "engine": engine,
        "rows_in": table.num_rows,
        "rows_out": made.num_rows,
        "others_equal": same,
        "moved": moved,
        "report_s": answer_s,
        "copy_s": copy_s,
        "ratio": answer_s / copy_s,
    }


def _one(engine: str, rows: int) -> dict[str, Any]:
    from pyarrow import parquet

    import sfumato as sf

    table = _table(rows)
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
        sf.solve(problem, sf.Laplace()).save(run)
        if engine == "dask":
            return _on_dask(table, run, folder)
        if engine != "spark":
            return _in_process(engine, table, run)
        parquet.write_table(table, f"{folder}/in.parquet", row_group_size=rows // 8)
        return _on_spark(table, run, folder)


def run(rows: int = ROWS) -> dict[str, Any]:
    """All engines, each in a process of its own."""
    found = {}
    for engine in ENGINES:
        print(f"  {engine}", file=sys.stderr, flush=True)
        words = [sys.executable, "-m", "benchmarks.engines", "--one", engine, str(rows)]
        ended = subprocess.run(
            words,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        found[engine] = json.loads(ended.stdout.splitlines()[-1])
    return {
        "name": "reports through table engines",
        "command": "python -m benchmarks engines",
        "rows": rows,
        "repeats": REPEATS,
        "engines": found,
        "met": all(
            one["rows_in"] == one["rows_out"] == rows and one["others_equal"]
            for one in found.values()
        ),
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Lines of RESULTS.md, where this was run."""
    if "engines" not in found:
        return []
    one = found["engines"]
    many = f"{one['rows'] / 1e6:g} million rows"
    return [
        (
            f"{many} through {engine}: processor seconds, and their ratio to a plain copy's",
            f"{told['report_s']:.1f}, {told['ratio']:.1f}",
            "",
            one,
        )
        for engine, told in one["engines"].items()
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(_one(sys.argv[2], int(sys.argv[3]))))
    else:
        print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS), indent=2))
