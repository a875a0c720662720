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
_MOST_KNOWN = 1 << 15  # places of earlier calls beyond which no others are kept with them
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


class Numbered:
    """Different rows of numbers, by which others are found again: what was worked out for them
    stays with their numbers.

    >>> places, number = Numbered(np.eye(2)).numbers(np.array([[0.0, 1.0]] * 300))
    >>> len(places), number[:2].tolist()
    (0, [1, 1])
    """

    def __init__(self, places: np.ndarray) -> None:
        self._places, self._keys = places, keys(places)

    def with_more(self, places: np.ndarray) -> "Numbered":
        """With others behind them."""
        return Numbered(np.concatenate([self._places, places]))

    def numbers(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The places among some points that are not here yet, and which place each point is, these
        behind those that are here; None where many are new, few of the known ones are there, or
        the points are too few to gain by it."""
        from pyarrow import compute

        if len(points) < _FEW or len(self._places) > len(points) / 2:
            return None
        key = keys(points)
        matches = compute.index_in(to_arrow(key), value_set=to_arrow(self._keys))
        number, places = np.frombuffer(matches.buffers()[1], np.int32, len(points)), points[:0]
        if matches.null_count:
            if matches.null_count > len(points) / 4 or len(self._places) > _MOST_KNOWN:
                return None
            there = np.frombuffer(matches.buffers()[0], np.uint8)
            new = np.flatnonzero(np.unpackbits(there, bitorder="little", count=len(points)) == 0)
            row, which = np.unique(key[new], return_index=True, return_inverse=True)[1:]
            places, number = points[new[row]], number.copy()
            number[new] = len(self._places) + which
        every = np.concatenate([self._places, places]) if len(places) else self._places
        used = np.count_nonzero(np.bincount(number, minlength=len(every)))
        if 4 * used < len(every) or not _made_of(points, every, number):
            return None
        return places, number


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
    key = np.zeros(len(points), dtype=np.uint64)
    for column, factor in zip(_columns(points), cycle(_FACTORS), strict=False):
        key ^= column
        key *= np.uint64(factor)
        key ^= key >> np.uint64(29)
    return key


def _columns(points: np.ndarray) -> list[np.ndarray]:
    """The bits of each column, in one piece, which is faster to work on."""
    return [np.ascontiguousarray(column).view(np.uint64) for column in points.T]


def _fixed(points: np.ndarray) -> bool:
    return points.base is None and not points.flags.writeable


def _made_of(points: np.ndarray, places: np.ndarray, number: np.ndarray) -> bool:
    pairs = zip(_columns(points), _columns(places), strict=True)
    return all(np.array_equal(own.take(number), bits) for bits, own in pairs)
