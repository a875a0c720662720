"""Laws that were worked out for some truths, kept so that a number between 0 and 1 finds its place.

A law is kept as its running sums in whole steps, each value once, with the place that it ends: of a
thousand places a truth has some hundred with a chance that shows.  The numbers are cut into `GUIDE`
equal parts.  Many of these lie within one place, which the guide of the law names; for the others
it has the first sum that a number there can fall on.  Where the steps leave open on which side of a
sum a number is, the look-up says so.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.data.distinct import keys

_GUIDE_BITS = 7
GUIDE = 1 << _GUIDE_BITS  # numbers of the guide of a law
_SUM_BITS = 22  # of a running sum; fewer, but for the least, where a place needs more of 32
_LEAST_SUM_BITS = 18
_AT_ONCE = 1 << 17  # rows that are looked up at a time
OPEN = -1


@dataclass(frozen=True, eq=False)
class KnownLaws:
    """Truths, and their laws: running sums, one law after the other, each above the bits of the
    place that it ends; the guides, a place or the inverse of a sum's number; and which truths have
    no law.  `places` is how many there are."""

    truths: np.ndarray
    sums: np.ndarray
    guides: np.ndarray
    alone: np.ndarray
    places: int

    @classmethod
    def none(cls, places: int) -> "KnownLaws":
        """Of no truth."""
        return cls.of(np.empty((0, 2)), np.empty((places, 0)))

    @classmethod
    def of(cls, truths: np.ndarray, weights: np.ndarray) -> "KnownLaws":
        """The laws with these chances up to a factor, a column per truth; a column of zeros is no
        law."""
        places, count = weights.shape
        bits, sum_bits, word = _form(places)
        sums = weights.astype(float)
        for below, above in pairwise(sums):  # a fifth of cumsum's time
            above += below
        alone = sums[-1] == 0
        sums *= (1 << sum_bits) / np.where(alone, 1.0, sums[-1])
        steps = np.minimum(sums.astype(np.int32), (1 << sum_bits) - 1)
        steps[-1] = (1 << sum_bits) - 1
        shown = np.zeros((count, 1 << bits), dtype=bool)
        shown[:, 0] = True  # so that a law that begins with places of no chance has a first sum
        shown[:, 1:places] = (steps[1:] != steps[:-1]).T
        entry = np.flatnonzero(shown)
        law, place = entry >> bits, entry & ((1 << bits) - 1)
        kept = steps.ravel().take(place * count + law)
        part = (law << _GUIDE_BITS) + (kept >> (sum_bits - _GUIDE_BITS))
        within = np.bincount(part, minlength=count << _GUIDE_BITS)
        first = np.cumsum(within) - within
        guides = np.where(within, ~first, place.take(first)).astype(np.int32)
        return cls(truths, (kept.astype(word) << bits) + place.astype(word), guides, alone, places)

    @classmethod
    def joined(cls, *some: "KnownLaws") -> "KnownLaws":
        """All of several, in order."""
        truths, sums, guides, alone = (
            np.concatenate(parts)
            for parts in zip(
                *((one.truths, one.sums, one.guides, one.alone) for one in some), strict=True
            )
        )
        start, before = 0, 0
        for one in some:
            mine = guides[start : start + len(one.guides)]
            np.subtract(mine, before, out=mine, where=mine < 0)
            start, before = start + len(one.guides), before + len(one.sums)
        return cls(truths, sums, guides, alone, some[0].places)

    @property
    def size(self) -> int:
        """How many numbers are kept, but for the truths."""
        return self.sums.size + self.guides.size

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        key = keys(self.truths)
        order = np.argsort(key)
        return key[order], order

    @cached_property
    def _ends(self) -> np.ndarray:
        """The last sum of each law, by its number."""
        bits, sum_bits, _ = _form(self.places)
        return np.flatnonzero(self.sums >> bits == (1 << sum_bits) - 1)

    def _first_from(self, low: np.ndarray, high: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """The first sums that reach some goals, from numbers `low` to `high` of sums; the last
        does."""
        while (low < high).any():
            middle = (low + high) >> 1
            short = self.sums.take(middle) < goal
            low, high = np.where(short, middle + 1, low), np.where(short, high, middle)
        return self.sums.take(low)

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
        bits, sum_bits, word = _form(self.places)
        place = np.empty(len(truth), dtype=np.int32)
        for start in range(0, len(truth), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            step = (drawn[rows] * (1 << sum_bits)).astype(np.int32)
            guide = truth[rows] << _GUIDE_BITS
            guide += step >> (sum_bits - _GUIDE_BITS)
            self.guides.take(guide, out=place[rows], mode="clip")  # without a copy; all are within
            search = np.flatnonzero(place[rows] < 0)
            at, goal = ~place[rows].take(search), step.take(search).astype(word) << bits
            reached = self.sums.take(at)
            behind = np.flatnonzero(reached < goal)
            at[behind] += 1  # often it is the next one
            reached[behind] = further = self.sums.take(at[behind])
            behind = behind[further < goal[behind]]
            law = truth[rows].take(search[behind])
            reached[behind] = self._first_from(at[behind] + 1, self._ends.take(law), goal[behind])
            open_ = (reached ^ goal) >> bits == 0
            place[rows][search] = np.where(open_, OPEN, reached & ((1 << bits) - 1))
        return place


def _form(places: int) -> tuple[int, int, np.dtype[Any]]:
    """Bits of a place, bits of a running sum, and the kind of number that holds both."""
    bits = max(1, (places - 1).bit_length())
    left = min(_SUM_BITS, 32 - bits)
    if left < _LEAST_SUM_BITS:
        return bits, _SUM_BITS, np.dtype(np.uint64)
    return bits, left, np.dtype(np.uint32)
