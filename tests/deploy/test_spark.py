"""A real Spark on this machine, two Python workers: a task that dies is computed again, to the same
bytes."""

import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.deploy.engines.spark import reported
from sfumato.deploy.table import Reporter
from sfumato.errors import DataError
from tests.deploy.test_table import KEY, table_of
from tests.requirements import wanting

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # Java starts slowly where others are at work
    # Spark's Arrow functions ask for pandas and are tested here with the one that is locked.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Java is started by a fork; the child does nothing but become Java.
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]

TABLE = table_of(4000)
OPTIONS = {"key": KEY, "row": "number", "drop": "user"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    if shutil.which("java") is None:
        wanting("Spark needs java; make system-deps installs it")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else the workers run the system's Python
    session = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "700")
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    if before is None:
        del os.environ["PYSPARK_PYTHON"]


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(TABLE).repartition(4, "number").cache()


def _sorted(frame) -> pa.Table:
    return frame.toArrow().sort_by("number").combine_chunks()


def test_spark_gives_what_arrow_gives_and_touches_nothing_else(spark, frame, runs):
    made = sf.deploy.report(frame, runs / "laplace", **OPTIONS)
    out, whole = _sorted(made), sf.deploy.report(TABLE, runs / "laplace", **OPTIONS)
    assert made.columns == whole.column_names and out.num_rows == 4000
    before = _sorted(frame)
    for name in ("time", "note", "stars", "number"):
        assert out[name].equals(before[name])
    for name in ("lat", "lon"):
        assert out[name].to_pylist() == whole[name].to_pylist()


def test_a_killed_task_gives_the_same_bytes(spark, frame, runs, tmp_path: Path):
    """Each worker kills its own process after some rows of its first try, once per partition."""
    first = _sorted(sf.deploy.report(frame, runs / "laplace", **OPTIONS))
    marks = str(tmp_path)

    def dying(batches):
        from pyspark import TaskContext

        mark = Path(marks, f"partition-{TaskContext.get().partitionId()}")
        for number, batch in enumerate(batches):
            if number == 1 and not mark.exists():
                mark.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    made = sf.deploy.report(frame, runs / "laplace", **OPTIONS)
    again = _sorted(made.mapInArrow(dying, made.schema))
    assert len(list(tmp_path.iterdir())) >= 2  # tasks did die
    assert again.equals(first)
    sink_one, sink_two = pa.BufferOutputStream(), pa.BufferOutputStream()
    for sink, table in ((sink_one, first), (sink_two, again)):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    assert sink_one.getvalue().to_pybytes() == sink_two.getvalue().to_pybytes()


def test_the_mechanism_is_built_once_per_worker(spark, frame, runs):
    parts = Reporter.of(runs / "laplace", key=KEY, row="number", drop="user").as_parts()

    def builds(batches):
        from sfumato.deploy.engines.spark import answered
        from sfumato.deploy.table import _built

        for _ in answered(*parts, batches):
            count = _built.cache_info().misses
            yield pa.record_batch({"pid": [os.getpid()], "built": [count]})

    noted = frame.mapInArrow(builds, "pid long, built long").collect()
    # A worker answers several batches, however Spark spreads them; one that built the mechanism
    # for each would say 2.
    assert {row["built"] for row in noted} == {1}
    assert max(Counter(row["pid"] for row in noted).values()) > 1


def test_empty_partitions_pass_and_refusals_come_before_or_with_the_rows(spark, frame, runs):
    few = frame.limit(2).repartition(4)
    assert sf.deploy.report(few, runs / "laplace", **OPTIONS).count() == 2
    with pytest.raises(DataError, match="names the user"):
        sf.deploy.report(frame, runs / "laplace", key=KEY, row="number")
    with pytest.raises(DataError, match="second draw"):
        sf.deploy.report(frame, runs / "laplace", row="number", drop="user")
    from pyspark.errors import PythonException

    copied = frame.withColumn("again", frame["lat"] * 2 + 1)
    with pytest.raises(PythonException, match="reveals the place in other columns: 'again'"):
        sf.deploy.report(copied, runs / "laplace", **OPTIONS).count()


def test_pseudonyms_are_text(spark, runs):
    from sfumato.deploy.pseudonym import Pseudonym

    reporter = Reporter.of(runs / "laplace", key=KEY, row="number", pseudonym=Pseudonym(KEY, "day"))
    made = reported(spark.createDataFrame(TABLE.slice(0, 20)), reporter)
    assert {len(row["user"]) for row in made.collect()} == {20}
