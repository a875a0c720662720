"""Tables of check-ins to sanitize."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import sfumato as sf

DATA = sf.four_corners(seed=0)


def checkins(rows: int, *, seed: int = 0) -> pa.Table:
    """Check-ins of four-corners with columns of several types."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(DATA.train), rows)
    assert DATA.train.plane is not None
    latitude, longitude = DATA.train.plane.to_degrees(DATA.train.truth[drawn])
    return pa.table(
        {
            "who": [DATA.train.secrets[number] for number in DATA.train.secret[drawn]],
            "time": pa.array((1_287_532_527 + np.arange(rows) * 61).astype("datetime64[s]")),
            "latitude": latitude,
            "longitude": longitude.astype(np.float32),
            "note": pa.array(
                [None if row % 7 == 0 else f'a "quoted", note {row}' for row in range(rows)]
            ),
            "stars": pa.array(random.integers(0, 5, rows).astype(np.int8)),
            "number": np.arange(rows),
        }
    )


def write_parquet(path: Path, table: pa.Table, **options: object) -> Path:
    """A Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, **options)
    return path
