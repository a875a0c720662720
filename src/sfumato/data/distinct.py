"""Rows of numbers that repeat: each once, so that what is worked out for one is looked up for the
others."""

from itertools import cycle
from weakref import ref

import numpy as np

from sfumato.data.arrow import to_arrow, to_numpy

_FEW = 256  # rows that are not worth a look
_SAMPLE = 8192  # rows that are looked at first
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_MOST_NOTED = 2
_AT_ONCE = 1 << 18  # points that are sorted together
_MOST_MERGED = 1 << 20  # different points beyond which all are sorted at once
_noted: tuple[tuple["ref[np.ndarray]", np.ndarray, np.ndarray], ...] = ()


def distinct(points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The different rows of an array (n, columns) of 64-bit numbers, and which of them each row is;
    None where fewer than half of the rows repeat another one's bits, or too few to gain by it.

    >>> places, number = distinct(np.tile([[1.0, 2.0], [3.0, 4.0]], (200, 1)))
    >>> places.tolist(), number[:3].tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0, 1, 0])
    """
    if len(points) < _FEW:
        return None
    from pyarrow import compute

    for known, places, number in _noted:
        if known() is points and (_fixed(points) or _made_of(points, places, number)):
            return places, number
    step = len(points) // _SAMPLE
    if step > 1:
        sample = to_arrow(keys(points[::step]))
        if compute.count_distinct(sample).as_py() > 0.9 * len(sample):
            return None
    number = to_numpy(to_arrow(keys(points)).dictionary_encode().indices)
    count = int(number.max()) + 1
    if count > len(points) / 2:
        return None
    row = np.empty(count, dtype=np.int64)
    row[number] = np.arange(len(number))
    places = points[row]
    return (places, number) if _made_of(points, places, number) else None  # two rows of one key


def unique_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different points of (n, 2), sorted, and which of them each row is: `np.unique` by rows,
    in less time and without sorting as much as is given where many repeat.

    >>> unique_points(np.array([[2.0, 1.0], [0.0, 5.0], [2.0, 1.0]]))[1].tolist()
    [1, 0, 1]
    """
    pairs = np.ascontiguousarray(points, dtype=float).view(np.complex128).ravel()  # sort likewise
    known = np.empty(0, dtype=np.complex128)
    for start in range(0, len(pairs), _AT_ONCE):
        known = np.unique(np.concatenate([known, np.unique(pairs[start : start + _AT_ONCE])]))
        if len(known) > _MOST_MERGED:
            known = np.unique(pairs)
            break
    number = np.empty(len(pairs), dtype=np.int32 if len(known) < 2**31 else np.int64)
    for start in range(0, len(pairs), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        number[rows] = np.searchsorted(known, pairs[rows])
    return known.view(float).reshape(-1, 2), number


def note(points: np.ndarray, places: np.ndarray, number: np.ndarray) -> None:
    """Remember of which rows an array was put together: `distinct` checks it, unless the array is
    not to be written to, and need not search.

    >>> places, number = np.eye(2), np.tile([0, 1], 200)
    >>> points = places[number]
    >>> note(points, places, number)
    >>> distinct(points)[0] is places
    True
    """
    global _noted
    if len(places) <= len(points) / 2:
        _noted = ((ref(points), places, number), *_noted[: _MOST_NOTED - 1])


def keys(points: np.ndarray) -> np.ndarray:
    """A number of 64 bits for each row that equal rows share, and others hardly ever."""
    bits = np.ascontiguousarray(points).view(np.uint64)
    key = np.zeros(len(bits), dtype=np.uint64)
    for column, factor in zip(bits.T, cycle(_FACTORS), strict=False):
        key ^= column
        key *= np.uint64(factor)
        key ^= key >> np.uint64(29)
    return key


def _fixed(points: np.ndarray) -> bool:
    return points.base is None and not points.flags.writeable


def _made_of(points: np.ndarray, places: np.ndarray, number: np.ndarray) -> bool:
    bits, own = (np.ascontiguousarray(part).view(np.uint64) for part in (points, places))
    return bool(np.array_equal(own.take(number, axis=0), bits))
