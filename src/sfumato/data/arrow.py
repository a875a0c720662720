"""NumPy to Arrow and back by their common memory: pyarrow's own conversions import pandas, which
takes as long as a million rows."""

from typing import Any

import numpy as np


def to_arrow(values: np.ndarray, missing: np.ndarray | None = None) -> Any:
    """Numbers or truth values as an Arrow array; `missing` says which are none.

    >>> to_arrow(np.array([1.5, 2.5]), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    import pyarrow as pa

    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    data = _bits(values) if values.dtype == bool else np.ascontiguousarray(values)
    valid = None if missing is None or not missing.any() else pa.py_buffer(_bits(~missing))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)])


def to_numpy(column: Any) -> np.ndarray:
    """An Arrow column of numbers as an array that is not to be written to; doubles that are missing
    are NaN.

    >>> to_numpy(to_arrow(np.array([1, 2]))).tolist()
    [1, 2]
    """
    import pyarrow as pa
    from pyarrow import compute

    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if column.null_count:
        column = compute.fill_null(column, np.nan)
    return np.from_dlpack(column)


def bytes_column(values: list[bytes]) -> Any:
    """Bytes as an Arrow array.

    >>> bytes_column([b"a", b""]).to_pylist()
    [b'a', b'']
    """
    import pyarrow as pa

    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def without_empty(texts: Any) -> Any:
    """Texts, with none in the place of empty ones.

    >>> import pyarrow as pa
    >>> without_empty(pa.array(["a", "", None])).to_pylist()
    ['a', None, None]
    """
    import pyarrow as pa
    from pyarrow import compute

    lengths = compute.binary_length(texts)
    if isinstance(lengths, pa.ChunkedArray):
        lengths = lengths.combine_chunks()
    width = np.int32 if lengths.type == pa.int32() else np.int64
    empty = np.frombuffer(lengths.buffers()[1], width)[lengths.offset :][: len(texts)] == 0
    if not empty.any():
        return texts
    return compute.if_else(to_arrow(empty), pa.nulls(len(texts), texts.type), texts)


def _bits(values: np.ndarray) -> np.ndarray:
    return np.packbits(values, bitorder="little")
