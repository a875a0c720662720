"""A second checker of certificates, in whole numbers of any size: no NumPy, no rounding to chance.

It shares no code with `sfumato.measure.bound` and reads the file itself.  All floats are taken as
the rational numbers that they are.  What cannot be exact is rounded to the weaker side: shares and
prices down, distances down (integer square roots), logarithms down (a series of positive terms, cut
off).  So the bound that it gives is true, and within 1e-9 of what exact numbers would give.  It
takes about 2 microseconds per truth and cell.
"""

import ast
import struct
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt, prod
from pathlib import Path

from sfumato.errors import FileError, SfumatoError

MOST_PAIRS = 400_000_000  # truths times cells: about a quarter of an hour
_MOST_BYTES = 1 << 26
_SCORE = 96  # bits after the point of a score
_METRE = 64  # of a distance
_LOG = 128  # of a logarithm while it is summed
_LEVELS = 30
_TIMES, _LEAST_M = 1024, 1000  # the root is at most this many times the truths' extent, or 1 km
_ANEW = "expected format 2: `sfumato certify` makes the certificate again in a run without one"
_Arrays = dict[str, tuple[tuple[int, ...], str, Sequence[float]]]  # shape, kind, numbers


class RecheckError(SfumatoError):
    """The second checker does not accept the certificate, with the reason."""


@dataclass(frozen=True)
class Question:
    """What the bound is about, as plain numbers.

    joint: P(secret, truth), one list per secret.  loss: "distance", "square", or a function that
    gives the losses of one report by its number, one per truth.  nearest: which place of the file
    lends its shares to each report; any answer gives a true bound.
    """

    objective: str
    joint: list[list[float]]
    gains: list[list[float]] | None
    max_loss: float | None
    user_max_loss: list[float] | None
    cap: float | None
    truths: list[list[float]]
    reports: list[list[float]]
    loss: str | Callable[[int], list[float]]
    nearest: Callable[[list[list[float]]], list[int]]
    plane: bool


@dataclass(frozen=True)
class Rechecked:
    """The bounds, in the objective's unit (bits for information), and the seconds that it took."""

    grid: Fraction
    plane: Fraction | None
    seconds: float


def recheck(
    path: str | Path, question: Question, *, progress: Callable[[float], None] = lambda share: None
) -> Rechecked:
    """Work a certificate's bounds out again; `progress` hears which share of the work is done."""
    start, done = time.perf_counter(), 0
    arrays = _read(Path(path))
    claim = _Claim(question, arrays)
    _need("plane.places" not in arrays, f"it is of format 1, with rounded cells; {_ANEW}")
    places, shares = _table(arrays, "grid.places", 2), _table(arrays, "grid.shares", claim.guesses)
    finite = all(abs(at) < 1e15 for place in places for at in place)
    _need(finite and len(places) == len(shares), "a proof needs finite places, each with shares")
    rows = question.nearest(places)
    on_plane = question.plane and any(name.startswith("plane.") for name in arrays)
    cells = _table(arrays, "plane.cells", 3, kind="q") if on_plane else []
    total = len(rows) + len(cells)
    pairs = total * len(question.truths)
    length = f"{pairs:.2g} pairs of truths and cells would take {pairs * 2e-6 / 60:.0f} minutes"
    wanted = f"in rational arithmetic; expected at most {MOST_PAIRS:.2g}"
    _need(pairs <= MOST_PAIRS, f"{length} {wanted}")
    scores = [claim.scores(row) for row in shares]

    def counted(each: Iterator[list[int | None]]) -> Iterator[list[int | None]]:
        nonlocal done
        for row in each:
            yield row
            done += 1
            if done % 64 == 0:
                progress(done / total)

    points = ((claim.at(x), claim.at(y)) for x, y in question.reports)
    squares = ((x, x, y, y) for x, y in points) if isinstance(question.loss, str) else None
    prices, blind = _table(arrays, "grid.multipliers"), claim.blind()
    grid = max(blind, claim.bound(counted(scores[row] for row in rows), squares, prices))
    if not on_plane:
        return Rechecked(grid, None, time.perf_counter() - start)
    shares = _table(arrays, "plane.shares", claim.guesses)
    _need(len(cells) == len(shares), "a row of shares is needed for each cell")
    lattice = _Lattice(claim, _table(arrays, "plane.root"))
    lattice.check_cover(cells)
    squares, prices = (lattice.square(*cell) for cell in cells), _table(arrays, "plane.multipliers")
    plane = max(blind, claim.bound(counted(map(claim.scores, shares)), squares, prices))
    return Rechecked(max(grid, plane), plane, time.perf_counter() - start)


def _need(holds: bool, reason: str) -> None:
    if not holds:
        raise RecheckError(reason)


class _Claim:
    """The question in whole numbers: probabilities at 2^-self.bits, places at 2^-self.fine."""

    def __init__(self, question: Question, arrays: _Arrays) -> None:
        self.question = question
        overlap = question.objective == "overlap"
        self.pairs = self._pairs(_table(arrays, "grid.pair_weights")) if overlap else []
        self.guesses = len(question.joint if question.gains is None else question.gains)
        self.bits = max(_METRE, *(_bits(number) for row in question.joint for number in row))
        self.joint = [[_whole(number, self.bits) for number in row] for row in question.joint]
        self.prior = [sum(row) for row in self.joint]
        self.owners = [
            [(x, row[w]) for x, row in enumerate(self.joint) if row[w]]
            for w in range(len(self.joint[0]))
        ]
        numbers = [number for point in (*question.truths, *question.reports) for number in point]
        self.fine = max(map(_bits, numbers)) + 8
        self.truths = [(self.at(x), self.at(y)) for x, y in question.truths]
        cap = None if question.cap is None else Fraction(question.cap) * (1 + Fraction(1, 10**12))
        self.cap = None if cap is None else int(cap * 2**_METRE)

    def at(self, number: float) -> int:
        return _whole(number, self.fine)

    def _pairs(self, weights: Sequence[float]) -> list[tuple[int, int, Fraction]]:
        """Pairs of secrets with their weights, which sum to 1."""
        secrets = range(len(self.question.joint))
        pairs = [(secret, other) for secret in secrets for other in secrets if secret < other]
        fit = len(pairs) == len(weights) and all(0 <= weight < inf for weight in weights)
        _need(fit and sum(weights) > 0, "each pair of secrets needs a weight of at least 0")
        total = sum(map(Fraction, weights))
        weighted = zip(pairs, weights, strict=True)
        return [(*pair, Fraction(weight) / total) for pair, weight in weighted if weight]

    def _overlap_scores(self, parts: Sequence[int]) -> list[int | None]:
        """sum over pairs of m (1 - sqrt(share' / share)) / 2p, roots rounded up."""
        _need(all(parts[x] for pair in self.pairs for x in pair[:2]), "a likelihood of 0")
        scores = [Fraction(0)] * len(parts)
        for secret, other, weight in self.pairs:
            for x, y in ((secret, other), (other, secret)):
                _need(self.prior[x] > 0, "a pair of secrets that never occur proves nothing")
                root = Fraction(isqrt((parts[y] << 2 * _SCORE) // parts[x]) + 1, 2**_SCORE)
                scores[x] += weight * (1 - root) * Fraction(2**self.bits, 2 * self.prior[x])
        return [int(score * 2**_SCORE // 1) for score in scores]

    def _centred(self, numbers: Sequence[float]) -> list[int | None]:
        """Numbers less their mean over the secrets, rounded down."""
        _need(all(abs(number) <= 1e15 for number in numbers), "scores must be finite numbers")
        exact = [Fraction(number) for number in numbers]
        weighed = sum((p * s for p, s in zip(self.prior, exact, strict=True)), Fraction(0))
        mean = weighed / sum(self.prior)
        return [int((number - mean) * 2**_SCORE // 1) for number in exact]

    def scores(self, shares: Sequence[float]) -> list[int | None]:
        """What the adversary who plays these shares gains from each secret, at 2^-_SCORE, rounded
        down; None for minus infinity."""
        if self.question.objective == "endless":
            return self._centred(shares)
        _need(all(0 <= share <= 2 for share in shares), "shares must be numbers of at least 0")
        bits = max(map(_bits, shares))
        parts = [_whole(share, bits) for share in shares]
        total = sum(parts)
        _need(abs(total - 2**bits) * 10**6 <= 2**bits, "each row of shares must sum to 1")
        if self.question.objective == "information":
            return [
                (0 if not mass else None if not part else _log(part << self.bits, total * mass))
                for part, mass in zip(parts, self.prior, strict=True)
            ]
        if self.pairs:
            return self._overlap_scores(parts)
        if self.question.gains is None:
            return [(part << _SCORE) // total for part in parts]
        fine = max(_bits(gain) for row in self.question.gains for gain in row)
        gains = [[_whole(gain, fine) for gain in row] for row in self.question.gains]
        return [
            (sum(part * row[x] for part, row in zip(parts, gains, strict=True)) << _SCORE)
            // (total << fine)
            for x in range(len(self.joint))
        ]

    def bound(
        self,
        scores: Iterator[list[int | None]],
        squares: Iterator[tuple[int, int, int, int]] | None,
        multipliers: Sequence[float],
    ) -> Fraction:
        """sum_w min_z [ sum_x p(x,w) s_z(x) + price(w) d(w,z) ] - what the budgets pay back."""
        prices, paid = self._prices(multipliers)
        least: list[int | float] = [inf] * len(self.truths)
        for number, row in enumerate(scores):
            losses = self._losses(number) if squares is None else self._distances(next(squares))
            for w, loss in enumerate(losses):
                if self.cap is not None and loss > self.cap:
                    continue
                cost = prices[w] * loss
                for x, mass in self.owners[w]:
                    score = row[x]
                    if score is None:
                        raise RecheckError(
                            "a posterior of 0 where the secret occurs proves nothing"
                        )
                    cost += mass * score
                if cost < least[w]:
                    least[w] = cost
        _need(inf not in least, "the cap leaves some truth without a report")
        value = sum(map(Fraction, least), Fraction(0)) / 2 ** (self.bits + _SCORE) - paid
        if self.question.objective != "information":
            return value
        return value / Fraction(_LN2[1] if value >= 0 else _LN2[0], 2**_LOG)

    def _prices(self, multipliers: Sequence[float]) -> tuple[list[int], Fraction]:
        """The price of a unit of loss per truth at 2^-(bits + _SCORE - _METRE), and what is paid
        back."""
        asked = self.question
        budgets: list[tuple[int | None, Fraction]] = []
        if asked.max_loss is not None:
            budgets.append((None, Fraction(asked.max_loss)))
        budgets.extend((x, Fraction(limit)) for x, limit in enumerate(asked.user_max_loss or []))
        fit = len(multipliers) == len(budgets) and all(
            0 <= multiplier <= 1e15 for multiplier in multipliers
        )
        _need(fit, f"{len(budgets)} budgets need as many multipliers of at least 0")
        whole = asked.objective != "endless" or all(multiplier == 1 for multiplier in multipliers)
        _need(whole, "where the loss itself is bounded its multiplier is 1")
        prices, paid = [Fraction(0)] * len(self.truths), Fraction(0)
        for multiplier, (x, limit) in zip(map(Fraction, multipliers), budgets, strict=True):
            mass = [sum(m for _, m in own) for own in self.owners] if x is None else self.joint[x]
            prices = [price + multiplier * part for price, part in zip(prices, mass, strict=True)]
            paid += multiplier * limit * (1 if x is None else Fraction(self.prior[x], 2**self.bits))
        return [int(price * 2 ** (_SCORE - _METRE)) for price in prices], paid

    def _distances(self, square: tuple[int, int, int, int]) -> Iterator[int]:
        """From each truth to the nearest point of the square, at 2^-_METRE, rounded down."""
        left, right, low, high = square
        squared = self.question.loss == "square"
        up = (1 if squared else 2) * _METRE - 2 * self.fine
        for x, y in self.truths:
            across = left - x if x < left else x - right if x > right else 0
            along = low - y if y < low else y - high if y > high else 0
            both = across * across + along * along
            both = both << up if up >= 0 else both >> -up
            yield both if squared else isqrt(both)

    def _losses(self, number: int) -> Iterator[int]:
        assert not isinstance(self.question.loss, str)
        for loss in self.question.loss(number):
            _need(loss >= 0, "losses must be at least 0")
            yield 1 << 2000 if loss == inf else int(Fraction(loss) * 2**_METRE)

    def blind(self) -> Fraction:
        """What the best guess gains that sees no report."""
        if self.question.objective in ("information", "overlap", "endless"):
            return Fraction(0)
        if self.question.gains is None:
            return Fraction(max(self.prior), 2**self.bits)
        rows = [zip(map(Fraction, row), self.prior, strict=True) for row in self.question.gains]
        return max(sum((g * p for g, p in row), Fraction(0)) for row in rows) / 2**self.bits


class _Lattice:
    """The squares of the file's quadtree, and the convex hull of the truths."""

    def __init__(self, claim: _Claim, root: Sequence[float]) -> None:
        square = len(root) == 3 and max(map(abs, root)) < 1e15 and root[2] >= 1e-6
        _need(square, "the root of the cells is a corner and a side of at least 1e-6 m")
        more = max(0, max(map(_bits, root)) + _LEVELS - claim.fine)
        claim.fine += more  # places in units so small that every cell has whole corners
        claim.truths = [(x << more, y << more) for x, y in claim.truths]
        self.corner = (claim.at(root[0]), claim.at(root[1]))
        self.side = claim.at(root[2])
        points = sorted(set(claim.truths))
        self.box = [(min(p[axis] for p in points), max(p[axis] for p in points)) for axis in (0, 1)]
        self.hull = _half_hull(points) + _half_hull(points[::-1])
        extent = max(claim.at(_LEAST_M), *(high - low for low, high in self.box))
        _need(self.side <= _TIMES * extent, f"the cells' root is over {_TIMES} times the truths'")

    def square(self, level: int, column: int, row: int) -> tuple[int, int, int, int]:
        side = self.side >> level
        left, low = self.corner[0] + column * side, self.corner[1] + row * side
        return left, left + side, low, low + side

    def check_cover(self, cells: list[list[int]]) -> None:
        """Go down from the root: a square is a cell, or misses the hull, or is covered by its
        quarters."""
        leaves, above = set(), set()
        for level, column, row in cells:
            within = 0 <= level <= _LEVELS and 0 <= min(column, row) <= max(column, row) < 2**level
            _need(within, "a cell is a level of 0 to 30, a column and a row below 2^level")
            leaves.add((level, column, row))
            while level and (level - 1, column >> 1, row >> 1) not in above:
                level, column, row = level - 1, column >> 1, row >> 1
                above.add((level, column, row))
        left, right, low, high = self.square(0, 0, 0)
        covered = left <= self.box[0][0] and self.box[0][1] <= right
        covered = covered and low <= self.box[1][0] and self.box[1][1] <= high
        todo = [(0, 0, 0)]
        while todo and covered:
            node = todo.pop()
            if node in leaves or self.misses(*self.square(*node)):
                continue
            covered = node in above
            level, column, row = node
            todo += [(level + 1, 2 * column + a, 2 * row + b) for a in (0, 1) for b in (0, 1)]
        _need(covered, "the cells do not cover the convex hull of the truths")

    def misses(self, left: int, right: int, low: int, high: int) -> bool:
        """Whether some line parts the square from the hull; they may touch if the hull is not
        flat."""
        gap = 1 if len(self.hull) < 3 else 0
        (west, east), (south, north) = self.box
        if max(left - east, west - right, low - north, south - high) >= gap:
            return True
        for (ax, ay), (bx, by) in zip(self.hull, self.hull[1:] + self.hull[:1], strict=True):
            dx, dy = bx - ax, by - ay  # the hull lies to the left of this way
            farthest = max(
                dx * (y - ay) - dy * (x - ax) for x in (left, right) for y in (low, high)
            )
            if farthest <= -gap and (dx or dy):
                return True
        return False


def _half_hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The corners below a chain of sorted points, the last one left out."""
    chain: list[tuple[int, int]] = []
    for x, y in points:
        while len(chain) > 1:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) > (by - ay) * (x - ax):
                break
            chain.pop()
        chain.append((x, y))
    return chain[:-1] if len(chain) > 1 else chain


def _bits(number: float) -> int:
    """How many bits after the point a number needs."""
    try:
        return Fraction(number).denominator.bit_length() - 1
    except (OverflowError, ValueError):
        raise RecheckError("a number is not finite") from None


def _whole(number: float, bits: int) -> int:
    return int(Fraction(number) * 2**bits)


def _log_bits(above: int, below: int) -> int:
    """ln(above / below) for a ratio of 1 to 2, at 2^-_LOG, rounded down: 2 artanh of
    (above - below) / (above + below)."""
    ratio = ((above - below) << _LOG) // (above + below)
    square, power, total = ratio * ratio >> _LOG, ratio, 0
    for odd in range(1, 2 * _LOG, 2):
        if not power:
            break
        total += power // odd
        power = power * square >> _LOG
    return 2 * total


_LN2 = (_log_bits(2, 1), _log_bits(2, 1) + 4 * _LOG)


def _log(above: int, below: int) -> int:
    """ln(above / below) at 2^-_SCORE, rounded down."""
    shift = above.bit_length() - below.bit_length()
    if (above << max(0, -shift)) < (below << max(0, shift)):
        shift -= 1
    ratio = _log_bits(above << max(0, -shift), below << max(0, shift))
    return (ratio + shift * _LN2[0 if shift >= 0 else 1]) >> (_LOG - _SCORE)


def _read(path: Path) -> _Arrays:
    """The arrays of an .npz file: little-endian floats and whole numbers of 8 bytes; texts are left
    out."""
    arrays: _Arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            most = max(_MOST_BYTES, 100 * path.stat().st_size)
            size = sum(entry.file_size for entry in archive.infolist())
            _need(size <= most, f"{path} unpacks to more than {most} bytes")
            for entry in archive.infolist():
                data = archive.read(entry)
                long = struct.unpack_from("<H" if data[6] == 1 else "<I", data, 8)[0]
                begin = (10 if data[6] == 1 else 12) + long
                head = ast.literal_eval(data[begin - long : begin].decode("latin1"))
                kind = {"<f8": "d", "<i8": "q"}.get(head["descr"])
                if kind is None:
                    continue
                shape, body = tuple(head["shape"]), data[begin:]
                plain = not (head["fortran_order"] and len(shape) > 1)
                fits = plain and len(body) == 8 * prod(shape)
                _need(fits, f"{path}: {entry.filename} is stored in another way")
                numbers = struct.unpack(f"<{prod(shape)}{kind}", body)
                arrays[entry.filename.removesuffix(".npy")] = shape, kind, numbers
    except SfumatoError:
        raise
    except Exception as error:  # whatever its bytes make Python say
        kind = type(error).__name__
        raise FileError(f"{path} cannot be read as a certificate ({kind})") from None
    return arrays


def _table(arrays: _Arrays, name: str, columns: int = 0, *, kind: str = "d") -> list:
    """An array as a list of rows; without columns as one row."""
    shape, stored, numbers = arrays.get(name, ((), "", ()))
    fits = stored == kind and (len(shape) == 1 if not columns else shape[1:] == (columns,))
    fits = fits and bool(numbers or not columns)
    _need(fits, f"the certificate has no array {name} with {columns or 'one row and no'} columns")
    if not columns:
        return list(numbers)
    return [list(numbers[at : at + columns]) for at in range(0, len(numbers), columns)]
