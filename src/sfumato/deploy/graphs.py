"""A mechanism as an ONNX graph: one function per kind, in float64 and in the order of the Python
code.

Standard operators only; the random numbers are an input.  The page's interpreter (`web/onnx.js`)
knows the operators used here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.data.grid import Grid
from sfumato.deploy.onnx_file import DOUBLE, Graph
from sfumato.errors import MechanismError, arg
from sfumato.mechanism.atlas import Atlas
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.channel import SAME_M, Channel
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.generator import GeneratorNet
from sfumato.mechanism.laplace import _SINE, PlanarLaplace
from sfumato.mechanism.simple import Coin, Identity
from sfumato.mechanism.wrap import Clamped, Remapped, Snapped
from sfumato.version import __version__

_LEAST = -1e300  # a logit of no chance

Builder = Callable[[Graph, Any, str, str], str]


def graph_of(mechanism: Mechanism) -> bytes:
    """The ONNX file of a mechanism."""
    g = Graph()
    report = build(g, mechanism, "truth", "chance")
    return g.model(report, draws=mechanism.draws, version=__version__)


def build(g: Graph, mechanism: Mechanism, truth: str, chance: str) -> str:
    """Add a mechanism's operators to a graph; gives the name of its reports."""
    for kind, builder in BUILDERS.items():
        if type(mechanism) is kind:
            return builder(g, mechanism, truth, chance)
    known = ", ".join(kind.kind for kind in BUILDERS)
    raise MechanismError(
        f"a mechanism of kind '{mechanism.kind}' cannot be exported; expected one of {known}"
    )


def _identity(g: Graph, mechanism: Identity, truth: str, chance: str) -> str:
    return g.Identity(truth)


def _coin(g: Graph, mechanism: Coin, truth: str, chance: str) -> str:
    return g.Where(g.Less(chance, mechanism.keep), truth, np.array([mechanism.place], dtype=float))


def _laplace(g: Graph, mechanism: PlanarLaplace, truth: str, chance: str) -> str:
    radius = g.Div(_lower_lambert(g, g.column(chance, 0)), mechanism.epsilon)
    cosine, sine = _direction(g, g.column(chance, 1))
    noise = g.Concat(g.Mul(cosine, radius), g.Mul(sine, radius), axis=1)
    return g.Add(truth, noise)


def _lower_lambert(g: Graph, chance: str) -> str:
    """As `sfumato.mechanism.laplace._lower_lambert`, step by step."""
    target = g.Neg(g.Log(g.Sub(1.0, chance)))
    root = g.Sqrt(target)
    below = g.Mul(g.Sub(g.Mul(root, 0.0042 * 0.0201), 0.0042), target)
    scaled = g.Mul(root, 0.3361 / 2**0.5)
    below = g.Add(g.Add(below, scaled), 1.0)
    start = g.Add(g.Mul(g.Div(scaled, below), 2 / 0.3361), target)
    start = g.Max(start, 1e-12)
    whole = g.Add(start, 1.0)
    off = g.Div(g.Sub(g.Sub(whole, 1.0), start), whole)
    off = g.Sub(g.Add(g.Sub(off, g.Log(whole)), start), target)
    slope = g.Add(g.Mul(off, -2 / 3), start)
    slope = g.Sub(g.Mul(g.Mul(slope, start), 2.0), off)
    step = g.Mul(g.Div(off, start), slope)
    step = g.Mul(g.Div(step, g.Sub(slope, off)), whole)
    lambert = g.Max(g.Sub(start, step), 0.0)
    return g.Where(g.Less(0.0, target), lambert, 0.0)


def _direction(g: Graph, turn: str) -> tuple[str, str]:
    """As `sfumato.mechanism.laplace._direction`, step by step."""
    quarter = g.Mul(g.Sub(turn, 0.5), np.pi / 2)
    square = g.Mul(quarter, quarter)
    sine = g.Mul(square, _SINE[0])
    for term in _SINE[1:]:
        sine = g.Mul(g.Add(sine, term), square)
    sine = g.Mul(g.Add(sine, 1.0), quarter)
    square = g.Mul(sine, sine)
    half_cosine = g.Sub(1.0, g.Mul(2.0, square))
    sine = g.Mul(g.Mul(sine, g.Sqrt(g.Sub(1.0, square))), 2.0)
    cosine = g.Sub(g.Mul(g.Mul(sine, sine), 2.0), 1.0)
    return cosine, g.Mul(g.Mul(sine, half_cosine), -2.0)


def layers(g: Graph, values: str, net: Any) -> str:
    """Fully connected layers, ReLU between them, nothing after the last."""
    for number, (weights, bias) in enumerate(net):
        values = g.Add(g.MatMul(values, g.constant(weights)), g.constant(bias))
        if number < len(net) - 1:
            values = g.Relu(values)
    return values


def _scaled(g: Graph, mechanism: GeneratorNet | CodebookNet, truth: str) -> tuple[np.ndarray, str]:
    """The centre of a net's frame, and truths as the net sees them."""
    centre = np.array([mechanism.centre_m], dtype=float)
    return centre, g.Div(g.Sub(truth, centre), mechanism.unit_m)


def _beyond(g: Graph, number: str, keep: float) -> str:
    """Where in [keep, 1) a number lies, as a share."""
    return g.Div(g.Sub(number, keep), max(1 - keep, 2.0**-53))


def _generator(g: Graph, mechanism: GeneratorNet, truth: str, chance: str) -> str:
    seed = g.column(chance, 0)
    kept = g.Less(seed, mechanism.keep)
    if mechanism.keep:
        seed = g.Where(kept, 0.0, _beyond(g, seed, mechanism.keep))
    if mechanism.levels is not None:
        level = g.Min(g.Floor(g.Mul(seed, float(mechanism.levels))), mechanism.levels - 1.0)
        seed = g.Div(g.Add(level, 0.5), float(mechanism.levels))
    centre, scaled = _scaled(g, mechanism, truth)
    values = layers(g, g.Concat(scaled, seed, axis=1), mechanism.layers)
    report = g.Add(g.Mul(values, mechanism.unit_m), centre)
    return g.Where(kept, truth, report) if mechanism.keep else report


def _snapped(g: Graph, mechanism: Snapped, truth: str, chance: str) -> str:
    inner = build(g, mechanism.inner, truth, chance)
    return _snap(g, inner, mechanism.grid)


def _snap(g: Graph, points: str, grid: Grid) -> str:
    """The middle of the cell that each point lies in."""
    origin = np.array([grid.origin], dtype=float)
    index = g.Floor(g.Div(g.Sub(points, origin), grid.cell_m))
    return g.Add(g.Mul(g.Add(index, 0.5), grid.cell_m), origin)


def _clamped(g: Graph, mechanism: Clamped, truth: str, chance: str) -> str:
    centre, half = np.array([mechanism.region.centre], dtype=float), mechanism.region.side_m / 2
    inner = build(g, mechanism.inner, truth, chance)
    return g.Min(g.Max(inner, centre - half), centre + half)


def squared_distances(g: Graph, points: str, places: np.ndarray) -> str:
    """From each row's point to each of some places: one column per place."""
    across = g.Sub(g.column(points, 0), places[None, :, 0])
    up = g.Sub(g.column(points, 1), places[None, :, 1])
    return g.Add(g.Mul(across, across), g.Mul(up, up))


def drawn(g: Graph, law: str, chance: str, places: np.ndarray) -> str:
    """The place at which the cumulated chances of a row pass its number (the last one at most)."""
    heights = g.CumSum(law, g.constant(np.array(1)))
    passed = g.Cast(g.LessOrEqual(heights, g.column(chance, 0)), to=7)
    count = g.ReduceSum(passed, np.array([1]), keepdims=0)
    return _rows(g, places, g.Min(count, np.array(len(places) - 1)))


def _rows(g: Graph, table: np.ndarray, index: str) -> str:
    """Rows of a table, by their numbers."""
    constant = g.constant(np.ascontiguousarray(table, dtype=float))
    return g.Gather(constant, index, axis=0)


def _nearest(g: Graph, points: str, places: np.ndarray) -> str:
    """The number of the place that is nearest to each point."""
    return g.ArgMin(squared_distances(g, points, places), axis=1, keepdims=0)


def _remapped(g: Graph, mechanism: Remapped, truth: str, chance: str) -> str:
    inner = build(g, mechanism.inner, truth, chance)
    return _rows(g, mechanism.better, _nearest(g, inner, mechanism.seen))


def _channel(g: Graph, mechanism: Channel, truth: str, chance: str) -> str:
    """With the rule for truths that are not in the list (`Channel.extended`)."""
    if not mechanism.answers_new or mechanism.max_distance is not None:
        raise MechanismError(
            "a channel can be exported if it answers truths beyond its list and has no cap; this"
            " one does not"
        )
    matrix = np.asarray(mechanism.matrix.todense())
    own = np.sqrt(((mechanism.truths[:, None, :] - mechanism.reports[None, :, :]) ** 2).sum(axis=2))
    losses = (matrix * own).sum(axis=1, keepdims=True)
    square = squared_distances(g, truth, mechanism.truths)
    row = g.ArgMin(square, axis=1, keepdims=0)
    mine = _rows(g, matrix, row)
    distance = g.Sqrt(squared_distances(g, truth, mechanism.reports))
    if mechanism.average is None:
        law, wanted = mine, _rows(g, losses, row)
    else:
        rule = mechanism.average
        height = g.Div(square, -2 * rule.bandwidth_m**2)
        share = _normed(g, g.Add(height, np.log(rule.weights)[None, :]))
        mean = g.Log(g.MatMul(share, g.constant(matrix)))
        law = _normed(g, g.Sub(mean, g.Mul(distance, rule.tilt)))
        wanted = g.constant(np.array([[losses.max()]]))
    closest = g.ReduceMin(distance, axes=[1], keepdims=1)
    cost = g.ReduceSum(g.Mul(law, distance), np.array([1]), keepdims=1)
    room = g.Sub(cost, closest)
    enough = g.Less(1e-9, room)
    share = g.Div(g.Sub(cost, wanted), g.Where(enough, room, 1.0))
    share = g.Where(enough, g.Min(g.Max(share, 0.0), 1.0), 0.0)
    nearest = g.Where(g.LessOrEqual(distance, closest), 1.0, 0.0)
    mixed = g.Add(g.Mul(law, g.Sub(1.0, share)), g.Mul(nearest, share))
    if mechanism.average is not None:
        least = g.ReduceMin(square, axes=[1], keepdims=1)
        mixed = g.Where(g.LessOrEqual(least, SAME_M**2), mine, mixed)
    return drawn(g, mixed, chance, mechanism.reports)


def _normed(g: Graph, height: str) -> str:
    """Chances in proportion to exp(height), in each row."""
    highest = g.ReduceMax(height, axes=[1], keepdims=1)
    raised = g.Exp(g.Sub(height, highest))
    return g.Div(raised, g.ReduceSum(raised, np.array([1]), keepdims=1))


def _codebook(g: Graph, mechanism: CodebookNet, truth: str, chance: str) -> str:
    """In float64, where Python works in float32: chances differ by about one part in a million."""
    _, scaled = _scaled(g, mechanism, truth)
    angle = g.MatMul(scaled, g.constant(mechanism.waves))
    inputs = (
        g.Concat(scaled, g.Sin(angle), g.Cos(angle), axis=1) if mechanism.waves.shape[1] else scaled
    )
    square = squared_distances(g, truth, mechanism.places)
    values = g.Sub(layers(g, inputs, mechanism.layers), g.Mul(g.Sqrt(square), mechanism.slope))
    highest = g.ReduceMax(values, axes=[1], keepdims=1)
    if mechanism.max_distance is not None:
        allowed = g.LessOrEqual(square, mechanism.surely_within_m**2)
        highest = g.ReduceMax(g.Where(allowed, values, _LEAST), axes=[1], keepdims=1)
        values = g.Where(allowed, values, g.Add(highest, _LEAST))
    weights = g.Exp(g.Sub(values, highest))
    total = g.ReduceSum(weights, np.array([1]), keepdims=1)
    first = g.column(chance, 0)
    share = _beyond(g, first, mechanism.keep)
    share = g.Min(g.Max(share, 0.0), 1 - 2.0**-52)
    report = drawn(g, weights, g.Mul(share, total), mechanism.places)
    own = _snap(g, truth, mechanism.grid)
    if mechanism.max_distance is not None:  # where the cap leaves no place
        report = g.Where(g.LessOrEqual(highest, _LEAST), own, report)
    if mechanism.far is not None:
        nearest = g.ReduceMin(square, axes=[1], keepdims=1)
        alone = g.Less(mechanism.far.cell_m**2, nearest)
        middle = _snap(g, _snap(g, truth, mechanism.far), mechanism.grid)
        report = g.Where(alone, middle, report)
    return g.Where(g.Less(first, mechanism.keep), own, report) if mechanism.keep else report


def _atlas(g: Graph, mechanism: Atlas, truth: str, chance: str) -> str:
    """Every mechanism of the atlas answers, and the report of the one is taken whose tile the moved
    truth lies in."""
    tiling = mechanism.tiling
    if mechanism.plane is not None and mechanism.plane.wide:
        raise MechanismError(
            "the tiles of this atlas have planes of their own, and a bundle has one; name one tile"
            f" with {arg('tile')}, by its number on the map"
        )
    shift = g.Sub(g.Mul(_columns(g, chance, 0, 2), 2.0), 1.0)
    moved = g.Add(truth, g.Mul(shift, tiling.overlap_m))
    cells = 2 ** int(tiling.squares[:, 0].max())  # along a side, as in `Tiling.locate`
    side = tiling.region.side_m
    corner = np.array([tiling.region.centre], dtype=float) - side / 2
    index = g.Floor(g.Mul(g.Sub(moved, corner), cells / side))
    index = g.Min(g.Max(index, 0.0), cells - 1.0)
    width = cells // 2 ** tiling.squares[:, 0]
    inside = None
    for axis in (0, 1):
        low = (tiling.squares[:, 1 + axis] * width)[None, :].astype(float)
        at = g.column(index, axis)
        for met in (g.LessOrEqual(low, at), g.Less(at, low + width[None, :])):
            met = g.Cast(met, to=DOUBLE)
            inside = met if inside is None else g.Mul(inside, met)
    number = g.MatMul(inside, mechanism.which[:, None].astype(float))
    report = None
    for which in reversed(range(len(mechanism.mechanisms))):
        inner = mechanism.mechanisms[which]
        own = build(g, inner, truth, _columns(g, chance, 2, inner.draws))
        if report is not None:
            own = g.Where(g.LessOrEqual(number, float(which)), own, report)
        report = own
    assert report is not None
    return _snap(g, report, mechanism.grid)


def _columns(g: Graph, value: str, first: int, count: int) -> str:
    return g.Gather(value, np.arange(first, first + count), axis=1)


BUILDERS: dict[type[Mechanism], Builder] = {
    Identity: _identity,
    Coin: _coin,
    PlanarLaplace: _laplace,
    GeneratorNet: _generator,
    Snapped: _snapped,
    Clamped: _clamped,
    Remapped: _remapped,
    Channel: _channel,
    CodebookNet: _codebook,
    Atlas: _atlas,
}
