"""Samples out: CSV, gzipped CSV or Parquet."""

import gzip
from pathlib import Path

from sfumato.data.samples import Split
from sfumato.errors import FileError
from sfumato.files import written_beside


def write_split(split: Split, path: Path) -> None:
    """Write user and place (degrees, or plane metres where the data came so); with test data also a
    column `split`."""
    from pyarrow import csv, parquet

    table = split.to_arrow()
    name = path.name.lower()
    with written_beside(path) as beside:
        if name.endswith((".parquet", ".pq")):
            parquet.write_table(table, beside)
        elif name.endswith(".csv.gz"):
            with gzip.open(beside, "wb") as packed:
                csv.write_csv(table, packed)
        elif name.endswith(".csv"):
            csv.write_csv(table, beside)
        else:
            raise FileError(
                f"{path.name} has an ending that sfumato does not write; expected .csv, .csv.gz or"
                " .parquet"
            )
