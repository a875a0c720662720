"""Laws that were worked out for some truths, kept so that a number between 0 and 1 finds its place.

A law is kept as its running sums, in `_STEPS` steps, each value once, with the place that it ends:
of a thousand places a truth has some dozens with a chance that shows.  A guide beside them has, for
each of `GUIDE` equal parts of the numbers, the first sum that a number there can fall on.  Where
the steps leave open on which side of a sum a number is, the look-up says so.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.data.distinct import keys

_STEPS = 1 << 18  # in which running sums are kept
GUIDE = 1 << 6  # numbers of the guide of a law
_IN_BUCKET = _STEPS // GUIDE
_AT_ONCE = 1 << 17  # rows that are looked up at a time
OPEN = -1


@dataclass(frozen=True, eq=False)
class KnownLaws:
    """Truths, and their laws: running sums, one law after the other, the place that each sum ends,
    the guides into them, and which truths have no law."""

    truths: np.ndarray
    sums: np.ndarray
    places: np.ndarray
    guides: np.ndarray
    alone: np.ndarray

    @classmethod
    def none(cls) -> "KnownLaws":
        """Of no truth."""
        return cls(
            np.empty((0, 2)),
            np.empty(0, np.uint32),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            np.empty(0, bool),
        )

    @classmethod
    def of(cls, truths: np.ndarray, weights: np.ndarray) -> "KnownLaws":
        """The laws with these chances up to a factor, a row per truth; a row of zeros is no law."""
        sums = np.cumsum(weights, axis=1, dtype=float)
        alone = sums[:, -1] == 0
        sums *= (_STEPS / np.where(alone, 1.0, sums[:, -1]))[:, None]
        np.minimum(sums, _STEPS - 1, out=sums)
        steps = sums.astype(np.uint32)
        steps[:, -1] = _STEPS - 1
        shown = np.empty(steps.shape, dtype=bool)
        shown[:, 0] = True  # so that a law that begins with places of no chance has a first sum
        np.not_equal(steps[:, 1:], steps[:, :-1], out=shown[:, 1:])
        entry = np.flatnonzero(shown)
        kept = steps.ravel()[entry]
        row, place = np.divmod(entry, steps.shape[1])
        bucket = (kept // _IN_BUCKET).astype(np.int64)
        before = np.empty_like(bucket)
        before[1:] = bucket[:-1]
        before[np.searchsorted(row, np.arange(len(truths)))] = -1
        guides = np.repeat(np.arange(len(kept), dtype=np.int32), bucket - before)
        return cls(truths, kept, place.astype(np.int32), guides, alone)

    @classmethod
    def joined(cls, *some: "KnownLaws") -> "KnownLaws":
        """All of several, in order."""
        truths, sums, places, guides, alone = (
            np.concatenate(parts) for parts in zip(*(one._parts for one in some), strict=True)
        )
        ends = np.cumsum([len(one.sums) for one in some])
        guides += np.repeat(
            (ends - [len(one.sums) for one in some]).astype(np.int32),
            [len(one.guides) for one in some],
        )
        return cls(truths, sums, places, guides, alone)

    @property
    def _parts(self) -> tuple[np.ndarray, ...]:
        return self.truths, self.sums, self.places, self.guides, self.alone

    @property
    def size(self) -> int:
        """How many numbers are kept, but for the truths."""
        return self.sums.size + self.places.size + self.guides.size

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        key = keys(self.truths)
        order = np.argsort(key)
        return key[order], order

    def find(self, truths: np.ndarray) -> np.ndarray:
        """The number of each truth, -1 for one that is not here."""
        if not len(self.truths):
            return np.full(len(truths), -1)
        key, order = self._sorted
        number = order[np.minimum(np.searchsorted(key, keys(truths)), len(key) - 1)]
        return np.where((self.truths[number] == truths).all(axis=1), number, -1)

    def look_up(self, truth: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """The place that each number between 0 and 1 falls on, by the law of the truth of that
        number; `OPEN` where the steps are too coarse to say."""
        place = np.empty(len(truth), dtype=np.int64)
        for start in range(0, len(truth), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            target = (drawn[rows] * _STEPS).astype(np.uint32)
            guide = truth[rows] * np.int64(GUIDE)
            guide += target // np.uint32(_IN_BUCKET)
            at = self.guides.take(guide)
            reached = self.sums.take(at)
            behind = np.flatnonzero(reached < target)
            while len(behind):
                at[behind] += 1
                reached[behind] = further = self.sums.take(at[behind])
                behind = behind[further < target[behind]]
            self.places.take(at, out=at, mode="clip")  # clip: without a copy; all are within
            place[rows] = at
            place[rows][reached == target] = OPEN
        return place
