"""Times as whole seconds since 1970."""

from typing import Any

import numpy as np

from sfumato.errors import DataError

_MOST_SECONDS = 1e11  # the year 5138; as milliseconds, March 1973


def whole_seconds(numbers: np.ndarray, *, source: str, column: str) -> np.ndarray:
    """Whole numbers as seconds since 1970, unless they can hardly be."""
    large = int((np.abs(numbers.astype(float)) > _MOST_SECONDS).sum())
    if large:
        raise DataError(
            f"{source}: {large} time(s) in '{column}' are above 1e11, so probably milliseconds or a"
            " smaller unit; expected seconds since 1970 or ISO 8601: divide them (milliseconds by"
            " 1000)"
        )
    return numbers.astype(np.int64)


def seconds_of(values: Any, *, source: str, column: str) -> np.ndarray:
    """Times as whole seconds since 1970."""
    import pyarrow as pa

    if values.null_count:
        raise DataError(
            f"{source}: {values.null_count} row(s) have no value in '{column}'; expected a time in"
            " each row"
        )
    kind = values.type
    if pa.types.is_integer(kind):
        return whole_seconds(values.to_numpy(zero_copy_only=False), source=source, column=column)
    for target in (pa.timestamp("s"), pa.timestamp("s", tz="UTC")):
        try:
            return np.asarray(
                values.cast(target, safe=False).cast(pa.int64()).to_numpy(zero_copy_only=False)
            )
        except pa.ArrowException:
            continue
    raise DataError(
        f"{source}: column '{column}' holds values that are not times; expected ISO 8601, as"
        " 2010-10-19T23:55:27Z, or seconds"
    )
