"""Spark: partitions as streams of record batches (`mapInArrow`).

The mechanism and the key travel with the task and the mechanism is built once per Python worker.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from sfumato.deploy.table import Reporter


def reported(frame: Any, reporter: Reporter) -> Any:
    """A new frame with reports in place of true locations, computed when it is asked for.

    A task that is tried again gives the same rows.  No example runs here: it would start Java;
    docs/guides/engines.md has one.
    """
    plan = reporter.plan(to_arrow_schema(frame.schema, timezone="UTC"))
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    if reporter.policy.pseudonym is not None:
        kinds[plan.columns.user] = StringType()
    fields = [StructField(field.name, kinds[field.name], True) for field in plan.written]
    mechanism, rest = reporter.as_parts()

    def partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return answered(mechanism, rest, batches)

    return frame.mapInArrow(partition, StructType(fields))


def answered(
    mechanism: bytes, rest: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """On a worker: one partition, which may have no batch."""
    reporter = Reporter.from_parts(mechanism, rest)
    first = next(batches, None)
    if first is None:
        return
    plan = reporter.plan(first.schema)

    def all_of_them() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    yield from reporter.stream(all_of_them(), plan)
