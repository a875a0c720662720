"""A learned mechanism: finitely many report places, and a net that gives the chance of each at any
truth."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from sfumato.data.distinct import distinct, note
from sfumato.data.grid import Grid
from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.known_laws import GUIDE, OPEN, KnownLaws
from sfumato.mechanism.law import ReportRows
from sfumato.mechanism.layers import Layers, check_frame, checked_layers, layer_arrays, layers_from

_BLOCK = 16  # places that are summed together when one is drawn
_PART = 768  # truths at a time, so that the working arrays stay in cache
_SUMMED = 256  # truths whose laws are worked out and summed together
_UP_TO = np.tril(np.ones((_BLOCK, _BLOCK), dtype=np.float32))  # times weights: their running sums
_ERROR = 2.0**-22  # of the sum of weights: four times what an addition in float32 errs by at most
_MOST_AT_ONCE = 1 << 24  # numbers of laws that are looked up at a time
_MOST_KEPT = 1 << 23  # numbers of laws that are kept for later calls

Scores = list[tuple[np.ndarray, np.ndarray]]


class _Apart:
    """Distances from places in float32: from each different one alone, as places of a grid repeat,
    and along an axis once for places on one line."""

    def __init__(self, places: np.ndarray) -> None:
        different, which = np.unique(places, axis=1, return_inverse=True)
        self.count = different.shape[1]
        repeats = self.count < places.shape[1]
        self._which = which.ravel() if repeats else None
        self._axes = [
            _to_lines(number, axis) for number, axis in enumerate(different if repeats else places)
        ]

    def squares(self, truth: np.ndarray, across: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Of the distances between truths (across, up, 1), a column each, and different places, a
        row each; worked out in `across` and `up`."""
        for (lines, line), far in zip(self._axes, (across, up), strict=True):
            square = np.matmul(lines, truth, out=far if line is None else None)
            square *= square
            if line is not None:
                square.take(line, axis=0, out=far, mode="clip")  # clip: without a copy
        across += up
        return across

    def of_places(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """From a row for each different place to one for each place."""
        return rows if self._which is None else rows.take(self._which, 0, out, mode="clip")


def _to_lines(number: int, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Times (across, up, 1) of truths: how far these are along an axis from each line of places, as
    exact as a subtraction; and each place's line, None where lines would save nothing."""
    lines, line = np.unique(axis, return_inverse=True)
    few = 2 * len(lines) <= len(axis)
    made = np.zeros((len(lines if few else axis), 3), dtype=np.float32)
    made[:, number] = 1
    made[:, 2] = -(lines if few else axis)
    return made, line if few else None


class _Work:
    """Arrays that a net works in, part after part; a truth is a column in each, so that what is
    done to all truths alike runs over whole rows."""

    def __init__(self, net: "CodebookNet", rows: int) -> None:
        waves, places, apart = net.waves.shape[1], len(net.places), net._apart.count
        ends = [2 + 2 * waves, *(len(bias) for _, bias in net.layers[:-1])]
        shapes = [3, waves, places, places, apart, apart, *(end + 1 for end in ends)]
        # Ones stay in the last row of what goes into a layer: they are multiplied by its bias.
        self._arrays = [np.ones((shape, rows), dtype=np.float32) for shape in shapes]
        self._zeros = np.zeros((max([0, *ends[1:]]), rows), dtype=np.float32)

    def of(self, rows: int) -> tuple[list[np.ndarray], np.ndarray]:
        """For as many truths: their places, angles, outputs, what is taken from these, two for
        distances, and what goes into each layer; and zeros."""
        if rows < self._zeros.shape[1]:
            self._arrays = [np.ascontiguousarray(array[:, :rows]) for array in self._arrays]
            self._zeros = np.ascontiguousarray(self._zeros[:, :rows])
        return self._arrays, self._zeros


@dataclass(frozen=True, eq=False)
class CodebookNet(Mechanism):
    """Report = one of `places`, with chances from a net: softmax(net(waves(truth)) - slope *
    distance(truth, place)).

    Main arguments: `places`, in metres; `layers`, pairs of weights (inputs, outputs) and bias, ReLU
    between them; a truth enters as (metres - `centre_m`) / `unit_m`, followed by the sines and
    cosines of that times `waves` (2, n).

    Other arguments: `slope` per metre makes far places rarer (it is also what brings the loss to a
    budget); `max_distance`, a hard cap: places further off have no chance; `keep`, the chance that
    the truth's own cell of `grid` is reported instead; where the cap leaves no place, it always is.
    `far`, squares for truths far from all that was learned: where no place is as near as the side
    of a square, the cell of `grid` in the middle of the truth's own square is reported.

    The law is known at every truth, so nothing about it has to be estimated.

    >>> places, layers = np.array([[0.0, 0.0], [100.0, 0.0]]), ((np.zeros((2, 2)), np.zeros(2)),)
    >>> net = CodebookNet(places, layers, np.zeros((2, 0)), Grid(cell_m=25))
    >>> net.chances(np.array([[30.0, 0.0]])).tolist()  # a net of zeros prefers no place
    [[0.5, 0.5]]
    """

    places: np.ndarray = field(repr=False)
    layers: Layers = field(repr=False)
    waves: np.ndarray = field(repr=False)
    grid: Grid
    centre_m: tuple[float, float] = field(default=(0.0, 0.0), repr=False)
    unit_m: float = 1.0
    slope: float = 0.0
    max_distance: float | None = None
    keep: float = 0.0
    far: Grid | None = None
    kind = "codebook net"
    lists_truths = False
    not_places = ("weights", "bias", "waves")

    def __post_init__(self) -> None:
        places, waves = np.asarray(self.places, float), np.asarray(self.waves, np.float32)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "waves", waves)
        if not (
            places.ndim == 2
            and places.shape[1] == 2
            and len(places)
            and np.all(np.isfinite(places))
        ):
            raise MechanismError(
                "a codebook needs places, two finite numbers of metres each; got shape"
                f" {places.shape}"
            )
        if not (waves.ndim == 2 and len(waves) == 2 and np.all(np.isfinite(waves))):
            raise MechanismError(
                "the waves of a codebook net are two rows of finite numbers; got shape"
                f" {waves.shape}"
            )
        layers, outputs = checked_layers(self.layers, inputs=2 + 2 * waves.shape[1])
        object.__setattr__(self, "layers", layers)
        if not (layers and outputs == len(places)):
            raise MechanismError(
                f"a codebook net ends in one output for each of its {len(places)} places; got"
                f" {outputs}"
            )
        check_frame(self.centre_m, self.unit_m)
        if not (np.isfinite(self.slope) and 0 <= self.keep <= 1):
            raise MechanismError(
                f"the slope is a finite number and keep lies between 0 and 1; got {self.slope} and"
                f" {self.keep}"
            )
        if self.max_distance is not None and not self.max_distance > 0:
            raise MechanismError(
                f"the cap on the distance must be above 0 metres; got {self.max_distance}"
            )
        if self.far is not None and self.max_distance is not None:
            raise MechanismError("a codebook has a cap on the distance or far squares, not both")

    @cached_property
    def _places_from_centre(self) -> np.ndarray:
        """Across and up, float32: two contiguous rows."""
        return np.ascontiguousarray((self.places - np.array(self.centre_m)).astype(np.float32).T)

    @cached_property
    def _apart(self) -> _Apart:
        return _Apart(self._places_from_centre)

    @cached_property
    def _turned(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Waves and layers for truths that are columns, each bias as a last column of weights."""
        layers = [np.vstack([weights, bias]).T for weights, bias in self.layers]
        return np.ascontiguousarray(self.waves.T), [np.ascontiguousarray(layer) for layer in layers]

    @cached_property
    def surely_within_m(self) -> float:
        """The distance up to which a place is allowed by the cap: below it by what float32 may err
        in distances between points so far from the centre."""
        assert self.max_distance is not None
        extent = float(np.abs(self._places_from_centre).max()) + self.max_distance
        return max(0.0, self.max_distance * (1 - 1e-6) - extent * 2.0**-21)

    def scores(self, truth: np.ndarray) -> Scores:
        """What does not depend on the slope: the net's outputs and the distances, part by part, a
        column per truth."""
        parts = (truth[start : start + _PART] for start in range(0, max(1, len(truth)), _PART))
        return [self._outputs(part, _Work(self, len(part))) for part in parts]

    def chances(self, truth: np.ndarray, scores: Scores | None = None) -> np.ndarray:
        """P(place | truth) before `keep`, shape (n, places); a row of zeros where the cap leaves no
        place.  With `scores` of the same truths the net is not asked again."""
        return np.vstack([*self.chances_by_part(self.scores(truth) if scores is None else scores)])

    def chances_by_part(self, scores: Scores) -> Iterator[np.ndarray]:
        """The same, some truths at a time."""
        for values, distance in scores:
            weights = self._softmax(values.copy(), distance.copy()).astype(float)
            total = weights.sum(axis=0)
            yield np.divide(weights, total, out=weights, where=total > 0).T

    def _weights(self, truth: np.ndarray, work: _Work) -> np.ndarray:
        """Chances up to a factor per truth, a column each; in float32, which the law and the
        sampler share."""
        values, distance = self._outputs(truth, work)
        return self._softmax(values, distance, work.of(len(truth))[0][3])

    def _outputs(self, truth: np.ndarray, work: _Work) -> tuple[np.ndarray, np.ndarray]:
        (off, angle, values, _, across, up, *layers), zeros = work.of(len(truth))
        waves, weights = self._turned
        apart = (truth - np.array(self.centre_m)).T
        off[:2] = apart
        inputs = layers[0]
        inputs[:2] = apart / self.unit_m
        np.matmul(waves, inputs[:2], out=angle)
        np.sin(angle, out=inputs[2 : 2 + len(angle)])
        np.cos(angle, out=inputs[2 + len(angle) : -1])
        for weight, before, after in zip(weights, layers, layers[1:], strict=False):
            hidden = np.matmul(weight, before, out=after[:-1])
            np.maximum(hidden, zeros[: len(hidden)], out=hidden)
        np.matmul(weights[-1], layers[-1], out=values)
        square = self._apart.squares(off, across, up)
        if self.max_distance is not None:
            beyond = square > np.float32(self.surely_within_m**2)
            values[self._apart.of_places(beyond)] = -np.inf
        if self.far is not None:
            values[:, square.min(axis=0) > np.float32(self.far.cell_m**2)] = -np.inf
        return values, np.sqrt(square, out=square)

    def _softmax(
        self, values: np.ndarray, distance: np.ndarray, room: np.ndarray | None = None
    ) -> np.ndarray:
        """Works in place, and in some `room`."""
        distance *= np.float32(self.slope)
        values -= self._apart.of_places(distance, room)
        highest = values.max(axis=0)
        if not np.all(highest < np.inf):
            raise MechanismError(
                "the codebook net gives a score that is no number, so no law; expected one for"
                " every truth: make the mechanism again"
            )
        values -= np.where(np.isfinite(highest), highest, np.float32(0))
        return np.exp(values, out=values)

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        drawn = np.clip(
            (chance[:, 0] - self.keep) / max(1 - self.keep, 2.0**-53), 0.0, 1 - 2.0**-52
        )
        lookup = distinct(truth)
        column, alone = (
            self._drawn(truth, drawn) if lookup is None else self._looked_up(*lookup, drawn)
        )
        reports, kept = self.places.take(column, axis=0), chance[:, 0] < self.keep
        for own, middle in ((alone, self.middle), (kept, self.grid.snap)):
            if own.any():
                reports[own] = middle(truth[own])
        if not (alone.any() or kept.any()):  # else some are none of the places
            note(reports, self.places, column)
        return reports

    def _drawn(self, truth: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The place that each number falls on, and where no place has a chance: each truth's law
        is worked out."""
        column, alone = np.empty(len(truth), dtype=np.int64), np.empty(len(truth), dtype=bool)
        work = _Work(self, min(_PART, len(truth)))
        for start in range(0, len(truth), _PART):
            rows = slice(start, start + _PART)
            column[rows], alone[rows] = _columns(self._weights(truth[rows], work), drawn[rows])
        return column, alone

    def _looked_up(
        self, truths: np.ndarray, number: np.ndarray, drawn: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same where truths repeat: a law is worked out once and looked up for every row of its
        truth; where that leaves open what a number falls on, the law is worked out again."""
        column, alone = np.empty(len(number), dtype=np.int64), np.empty(len(number), dtype=bool)
        step = max(1, _MOST_AT_ONCE // (len(self.places) + GUIDE))
        for first in range(0, len(truths), step):
            whole = step >= len(truths)
            known, row = self._known(truths if whole else truths[first : first + step])
            mine = slice(None) if whole else (number >= first) & (number < first + step)
            own = row[number[mine] - first]
            column[mine] = known.look_up(own, drawn[mine])
            alone[mine] = known.alone[own] if known.alone.any() else False
        column[alone] = 0
        open_ = np.flatnonzero(column == OPEN)
        if len(open_):
            column[open_] = self._drawn(truths[number[open_]], drawn[open_])[0]
        return column, alone

    def share_room(self, nets: int) -> None:
        """Keep laws in an n-th of the usual room: this is one of n nets that answer together."""
        self.__dict__["_room"] = _MOST_KEPT // nets

    def _known(self, truths: np.ndarray) -> tuple[KnownLaws, np.ndarray]:
        """Laws, and each truth's number among them.  Those of earlier calls are kept while there is
        room, then the new ones alone: a log comes in blocks that repeat its places.  What is kept
        is replaced whole, so that threads may call this at once."""
        last: tuple[np.ndarray, KnownLaws, np.ndarray] | None = self.__dict__.get("_last")
        if last is not None and last[0] is truths and not truths.flags.writeable:
            return last[1:]
        room = self.__dict__.get("_room", _MOST_KEPT)
        known: KnownLaws = self.__dict__.get("_kept", KnownLaws.none(len(self.places)))
        number = known.find(truths)
        new = np.flatnonzero(number < 0)
        if len(new):
            more = self._laws(truths[new])
            number[new] = len(known.truths) + np.arange(len(new))
            known = KnownLaws.joined(known, more) if len(known.truths) else more
            fitting = (laws for laws in (known, more) if laws.size <= room)
            self.__dict__["_kept"] = next(fitting, KnownLaws.none(len(self.places)))
        if known.size <= room:
            self.__dict__["_last"] = truths, known, number
        return known, number

    def _laws(self, truths: np.ndarray) -> KnownLaws:
        work, known = _Work(self, min(_SUMMED, len(truths))), []
        for start in range(0, len(truths), _SUMMED):
            some = truths[start : start + _SUMMED]
            known.append(KnownLaws.of(some, self._weights(some, work)))
        return KnownLaws.joined(*known)

    def middle(self, truth: np.ndarray) -> np.ndarray:
        """What is reported where no place has a chance."""
        return self.grid.snap(truth if self.far is None else self.far.snap(truth))

    def rows(self, truth: np.ndarray, scores: Scores | None = None) -> ReportRows:
        chances = self.chances(truth, scores)
        drawn = sparse.csr_matrix(chances * (1 - self.keep))
        alone = np.where(chances.sum(axis=1) == 0, 1 - self.keep, 0.0)
        parts, places = [drawn], [self.places]
        for left, middle in ((alone, self.middle), (self.keep, self.grid.snap)):
            share = np.broadcast_to(left, len(truth))
            at = np.flatnonzero(share)
            if len(at):
                cells, column = np.unique(middle(truth[at]), axis=0, return_inverse=True)
                shape = (len(truth), len(cells))
                parts.append(sparse.csr_matrix((share[at], (at, column.ravel())), shape=shape))
                places.append(cells)
        return ReportRows(sparse.hstack(parts, format="csr"), np.vstack(places))

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "places": self.places,
            "layers": np.array(len(self.layers)),
            "waves": self.waves,
            "grid": self.grid.as_array(),
            "centre": np.array(self.centre_m, dtype=float),
            "unit": np.array(self.unit_m),
            "slope": np.array(self.slope),
            "max_distance": np.array(
                [] if self.max_distance is None else [self.max_distance], dtype=float
            ),
            "keep": np.array(self.keep),
            "far": np.array([]) if self.far is None else self.far.as_array(),
            **layer_arrays(self.layers),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "CodebookNet":
        x, y = arrays["centre"]
        return cls(
            places=arrays["places"],
            layers=layers_from(arrays),
            waves=arrays["waves"],
            grid=Grid.from_array(arrays["grid"]),
            centre_m=(float(x), float(y)),
            unit_m=float(arrays["unit"]),
            slope=float(arrays["slope"]),
            max_distance=float(arrays["max_distance"][0]) if len(arrays["max_distance"]) else None,
            keep=float(arrays["keep"]),
            far=Grid.from_array(arrays["far"]) if len(arrays["far"]) else None,
        )


def _columns(weights: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place that each truth's number between 0 and 1 falls on, and which truths have no place
    of a weight above 0; `weights` have a row per place.

    Sums in float32 find the block and the place within it; where the number is so near to a
    bound of that place that these sums may err, sums in float64 decide.
    """
    places, count = weights.shape
    if places % _BLOCK:
        weights = np.concatenate([weights, np.zeros((-places % _BLOCK, count), weights.dtype)])
    blocks, every = len(weights) // _BLOCK, np.arange(count)
    height = np.zeros((blocks + 1, count), dtype=weights.dtype)
    np.add.reduce(weights.reshape(blocks, _BLOCK, count), axis=1, out=height[1:])
    for low, high in pairwise(height[1:]):
        high += low
    total = height[-1]
    target = drawn.astype(weights.dtype) * total
    block = _count(height[1:-1] <= target) * count + every
    within = np.empty((_BLOCK + 1, count), dtype=weights.dtype)
    within[0] = height.ravel().take(block)
    steps = np.arange(_BLOCK)[:, None] * count
    np.add(
        _UP_TO @ weights.ravel().take(block * _BLOCK - every * (_BLOCK - 1) + steps),
        within[0],
        out=within[1:],
    )
    column = _count(within[1:] <= target)
    at = np.minimum(column, _BLOCK - 1) * count + every
    off = total * np.float32(_ERROR * (blocks + 2 * _BLOCK))
    near = (target - within.ravel().take(at) <= off) | (within[1:].ravel().take(at) - target <= off)
    column += block // count * _BLOCK
    if near.any():
        rows = np.flatnonzero(near)
        sums = np.cumsum(weights[:, rows].T, axis=1, dtype=float)
        exact = (sums <= (drawn[rows] * sums[:, -1])[:, None]).sum(axis=1)
        column[rows] = np.minimum(exact, places - 1)
    return column, total == 0


def _count(below: np.ndarray) -> np.ndarray:
    """How many of each column hold."""
    small = len(below) < 256
    return np.add.reduce(below.view(np.uint8), axis=0, dtype=np.uint8 if small else int).astype(int)
