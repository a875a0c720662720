"""Rows of numbers that repeat: each once, so that what is worked out for one is looked up for the
others."""

from itertools import cycle

import numpy as np

_FEW = 256  # rows that are not worth a look
_SAMPLE = 8192  # rows that are looked at first
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def distinct(points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The different rows of an array (n, columns) of 64-bit numbers, and which of them each row is;
    None where fewer than half of the rows repeat another one's bits, or too few to gain by it.

    >>> places, number = distinct(np.tile([[1.0, 2.0], [3.0, 4.0]], (200, 1)))
    >>> places.tolist(), number[:3].tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0, 1, 0])
    """
    if len(points) < _FEW:
        return None
    import pyarrow as pa
    from pyarrow import compute

    bits = np.ascontiguousarray(points).view(np.uint64)
    key = np.zeros(len(bits), dtype=np.uint64)
    for column, factor in zip(bits.T, cycle(_FACTORS), strict=False):
        key ^= column
        key *= np.uint64(factor)
        key ^= key >> np.uint64(29)
    step = len(key) // _SAMPLE
    if step > 1:
        sample = pa.array(key[::step])
        if compute.count_distinct(sample).as_py() > 0.9 * len(sample):
            return None
    number = pa.array(key).dictionary_encode().indices.to_numpy()
    count = int(number.max()) + 1
    if count > len(points) / 2:
        return None
    first = np.empty(count, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    if not np.array_equal(bits[first].take(number, axis=0), bits):  # two rows of one key
        return None
    return points[first], number
