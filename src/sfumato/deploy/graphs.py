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
    graph = Graph()
    report = build(graph, mechanism, "truth", "chance")
    return graph.model(report, draws=mechanism.draws, version=__version__)


def build(graph: Graph, mechanism: Mechanism, truth: str, chance: str) -> str:
    """Add a mechanism's operators to a graph; gives the name of its reports."""
    for kind, builder in BUILDERS.items():
        if type(mechanism) is kind:
            return builder(graph, mechanism, truth, chance)
    known = ", ".join(kind.kind for kind in BUILDERS)
    raise MechanismError(
        f"a mechanism of kind '{mechanism.kind}' cannot be exported; expected one of {known}"
    )


def _identity(graph: Graph, mechanism: Identity, truth: str, chance: str) -> str:
    return graph.add("Identity", truth)


def _coin(graph: Graph, mechanism: Coin, truth: str, chance: str) -> str:
    return graph.add(
        "Where",
        graph.add("Less", chance, mechanism.keep),
        truth,
        np.array([mechanism.place], dtype=float),
    )


def _laplace(graph: Graph, mechanism: PlanarLaplace, truth: str, chance: str) -> str:
    radius = graph.add("Div", _lower_lambert(graph, graph.column(chance, 0)), mechanism.epsilon)
    cosine, sine = _direction(graph, graph.column(chance, 1))
    noise = graph.add(
        "Concat", graph.add("Mul", cosine, radius), graph.add("Mul", sine, radius), axis=1
    )
    return graph.add("Add", truth, noise)


def _lower_lambert(g: Graph, chance: str) -> str:
    """As `sfumato.mechanism.laplace._lower_lambert`, step by step."""
    target = g.add("Neg", g.add("Log", g.add("Sub", 1.0, chance)))
    root = g.add("Sqrt", target)
    below = g.add("Mul", g.add("Sub", g.add("Mul", root, 0.0042 * 0.0201), 0.0042), target)
    scaled = g.add("Mul", root, 0.3361 / 2**0.5)
    below = g.add("Add", g.add("Add", below, scaled), 1.0)
    start = g.add("Add", g.add("Mul", g.add("Div", scaled, below), 2 / 0.3361), target)
    start = g.add("Max", start, 1e-12)
    whole = g.add("Add", start, 1.0)
    off = g.add("Div", g.add("Sub", g.add("Sub", whole, 1.0), start), whole)
    off = g.add("Sub", g.add("Add", g.add("Sub", off, g.add("Log", whole)), start), target)
    slope = g.add("Add", g.add("Mul", off, -2 / 3), start)
    slope = g.add("Sub", g.add("Mul", g.add("Mul", slope, start), 2.0), off)
    step = g.add("Mul", g.add("Div", off, start), slope)
    step = g.add("Mul", g.add("Div", step, g.add("Sub", slope, off)), whole)
    found = g.add("Max", g.add("Sub", start, step), 0.0)
    return g.add("Where", g.add("Less", 0.0, target), found, 0.0)


def _direction(g: Graph, turn: str) -> tuple[str, str]:
    """As `sfumato.mechanism.laplace._direction`, step by step."""
    quarter = g.add("Mul", g.add("Sub", turn, 0.5), np.pi / 2)
    square = g.add("Mul", quarter, quarter)
    sine = g.add("Mul", square, _SINE[0])
    for term in _SINE[1:]:
        sine = g.add("Mul", g.add("Add", sine, term), square)
    sine = g.add("Mul", g.add("Add", sine, 1.0), quarter)
    square = g.add("Mul", sine, sine)
    half_cosine = g.add("Sub", 1.0, g.add("Mul", 2.0, square))
    sine = g.add("Mul", g.add("Mul", sine, g.add("Sqrt", g.add("Sub", 1.0, square))), 2.0)
    cosine = g.add("Sub", g.add("Mul", g.add("Mul", sine, sine), 2.0), 1.0)
    return cosine, g.add("Mul", g.add("Mul", sine, half_cosine), -2.0)


def layers(graph: Graph, values: str, net: Any) -> str:
    """Fully connected layers, ReLU between them, nothing after the last."""
    for number, (weights, bias) in enumerate(net):
        values = graph.add(
            "Add", graph.add("MatMul", values, graph.constant(weights)), graph.constant(bias)
        )
        if number < len(net) - 1:
            values = graph.add("Relu", values)
    return values


def _scaled(
    graph: Graph, mechanism: GeneratorNet | CodebookNet, truth: str
) -> tuple[np.ndarray, str]:
    """The centre of a net's frame, and truths as the net sees them."""
    centre = np.array([mechanism.centre_m], dtype=float)
    return centre, graph.add("Div", graph.add("Sub", truth, centre), mechanism.unit_m)


def _beyond(graph: Graph, number: str, keep: float) -> str:
    """Where in [keep, 1) a number lies, as a share."""
    return graph.add("Div", graph.add("Sub", number, keep), max(1 - keep, 2.0**-53))


def _generator(graph: Graph, mechanism: GeneratorNet, truth: str, chance: str) -> str:
    seed = graph.column(chance, 0)
    kept = graph.add("Less", seed, mechanism.keep)
    if mechanism.keep:
        seed = graph.add("Where", kept, 0.0, _beyond(graph, seed, mechanism.keep))
    if mechanism.levels is not None:
        level = graph.add(
            "Min",
            graph.add("Floor", graph.add("Mul", seed, float(mechanism.levels))),
            mechanism.levels - 1.0,
        )
        seed = graph.add("Div", graph.add("Add", level, 0.5), float(mechanism.levels))
    centre, scaled = _scaled(graph, mechanism, truth)
    values = layers(graph, graph.add("Concat", scaled, seed, axis=1), mechanism.layers)
    report = graph.add("Add", graph.add("Mul", values, mechanism.unit_m), centre)
    return graph.add("Where", kept, truth, report) if mechanism.keep else report


def _snapped(graph: Graph, mechanism: Snapped, truth: str, chance: str) -> str:
    inner = build(graph, mechanism.inner, truth, chance)
    return _snap(graph, inner, mechanism.grid)


def _snap(graph: Graph, points: str, grid: Grid) -> str:
    """The middle of the cell that each point lies in."""
    origin = np.array([grid.origin], dtype=float)
    index = graph.add("Floor", graph.add("Div", graph.add("Sub", points, origin), grid.cell_m))
    return graph.add("Add", graph.add("Mul", graph.add("Add", index, 0.5), grid.cell_m), origin)


def _clamped(graph: Graph, mechanism: Clamped, truth: str, chance: str) -> str:
    centre, half = np.array([mechanism.region.centre], dtype=float), mechanism.region.side_m / 2
    inner = build(graph, mechanism.inner, truth, chance)
    return graph.add("Min", graph.add("Max", inner, centre - half), centre + half)


def squared_distances(graph: Graph, points: str, places: np.ndarray) -> str:
    """From each row's point to each of some places: one column per place."""
    across = graph.add("Sub", graph.column(points, 0), places[None, :, 0])
    up = graph.add("Sub", graph.column(points, 1), places[None, :, 1])
    return graph.add("Add", graph.add("Mul", across, across), graph.add("Mul", up, up))


def drawn(graph: Graph, law: str, chance: str, places: np.ndarray) -> str:
    """The place at which the cumulated chances of a row pass its number (the last one at most)."""
    heights = graph.add("CumSum", law, graph.constant(np.array(1)))
    passed = graph.add("Cast", graph.add("LessOrEqual", heights, graph.column(chance, 0)), to=7)
    count = graph.add("ReduceSum", passed, np.array([1]), keepdims=0)
    return _rows(graph, places, graph.add("Min", count, np.array(len(places) - 1)))


def _rows(graph: Graph, table: np.ndarray, index: str) -> str:
    """Rows of a table, by their numbers."""
    constant = graph.constant(np.ascontiguousarray(table, dtype=float))
    return graph.add("Gather", constant, index, axis=0)


def _nearest(graph: Graph, points: str, places: np.ndarray) -> str:
    """The number of the place that is nearest to each point."""
    return graph.add("ArgMin", squared_distances(graph, points, places), axis=1, keepdims=0)


def _remapped(graph: Graph, mechanism: Remapped, truth: str, chance: str) -> str:
    inner = build(graph, mechanism.inner, truth, chance)
    return _rows(graph, mechanism.better, _nearest(graph, inner, mechanism.seen))


def _channel(graph: Graph, mechanism: Channel, truth: str, chance: str) -> str:
    """With the rule for truths that are not in the list (`Channel.extended`)."""
    if not mechanism.answers_new or mechanism.max_distance is not None:
        raise MechanismError(
            "a channel can be exported if it answers truths beyond its list and has no cap; this"
            " one does not"
        )
    matrix = np.asarray(mechanism.matrix.todense())
    own = np.sqrt(((mechanism.truths[:, None, :] - mechanism.reports[None, :, :]) ** 2).sum(axis=2))
    losses = (matrix * own).sum(axis=1, keepdims=True)
    square = squared_distances(graph, truth, mechanism.truths)
    row = graph.add("ArgMin", square, axis=1, keepdims=0)
    mine = _rows(graph, matrix, row)
    distance = graph.add("Sqrt", squared_distances(graph, truth, mechanism.reports))
    if mechanism.average is None:
        law, wanted = mine, _rows(graph, losses, row)
    else:
        rule = mechanism.average
        height = graph.add("Div", square, -2 * rule.bandwidth_m**2)
        share = _normed(graph, graph.add("Add", height, np.log(rule.weights)[None, :]))
        mean = graph.add("Log", graph.add("MatMul", share, graph.constant(matrix)))
        law = _normed(graph, graph.add("Sub", mean, graph.add("Mul", distance, rule.tilt)))
        wanted = graph.constant(np.array([[losses.max()]]))
    closest = graph.add("ReduceMin", distance, axes=[1], keepdims=1)
    cost = graph.add("ReduceSum", graph.add("Mul", law, distance), np.array([1]), keepdims=1)
    room = graph.add("Sub", cost, closest)
    enough = graph.add("Less", 1e-9, room)
    share = graph.add("Div", graph.add("Sub", cost, wanted), graph.add("Where", enough, room, 1.0))
    share = graph.add("Where", enough, graph.add("Min", graph.add("Max", share, 0.0), 1.0), 0.0)
    nearest = graph.add("Where", graph.add("LessOrEqual", distance, closest), 1.0, 0.0)
    mixed = graph.add(
        "Add", graph.add("Mul", law, graph.add("Sub", 1.0, share)), graph.add("Mul", nearest, share)
    )
    if mechanism.average is not None:
        least = graph.add("ReduceMin", square, axes=[1], keepdims=1)
        mixed = graph.add("Where", graph.add("LessOrEqual", least, SAME_M**2), mine, mixed)
    return drawn(graph, mixed, chance, mechanism.reports)


def _normed(graph: Graph, height: str) -> str:
    """Chances in proportion to exp(height), in each row."""
    highest = graph.add("ReduceMax", height, axes=[1], keepdims=1)
    raised = graph.add("Exp", graph.add("Sub", height, highest))
    return graph.add("Div", raised, graph.add("ReduceSum", raised, np.array([1]), keepdims=1))


def _codebook(graph: Graph, mechanism: CodebookNet, truth: str, chance: str) -> str:
    """In float64, where Python works in float32: chances differ by about one part in a million."""
    _, scaled = _scaled(graph, mechanism, truth)
    angle = graph.add("MatMul", scaled, graph.constant(mechanism.waves))
    inputs = (
        graph.add("Concat", scaled, graph.add("Sin", angle), graph.add("Cos", angle), axis=1)
        if mechanism.waves.shape[1]
        else scaled
    )
    square = squared_distances(graph, truth, mechanism.places)
    values = graph.add(
        "Sub",
        layers(graph, inputs, mechanism.layers),
        graph.add("Mul", graph.add("Sqrt", square), mechanism.slope),
    )
    highest = graph.add("ReduceMax", values, axes=[1], keepdims=1)
    if mechanism.max_distance is not None:
        allowed = graph.add("LessOrEqual", square, mechanism.surely_within_m**2)
        highest = graph.add(
            "ReduceMax", graph.add("Where", allowed, values, _LEAST), axes=[1], keepdims=1
        )
        values = graph.add("Where", allowed, values, graph.add("Add", highest, _LEAST))
    weights = graph.add("Exp", graph.add("Sub", values, highest))
    total = graph.add("ReduceSum", weights, np.array([1]), keepdims=1)
    first = graph.column(chance, 0)
    share = _beyond(graph, first, mechanism.keep)
    share = graph.add("Min", graph.add("Max", share, 0.0), 1 - 2.0**-52)
    report = drawn(graph, weights, graph.add("Mul", share, total), mechanism.places)
    own = _snap(graph, truth, mechanism.grid)
    if mechanism.max_distance is not None:  # where the cap leaves no place
        report = graph.add("Where", graph.add("LessOrEqual", highest, _LEAST), own, report)
    if mechanism.far is not None:
        nearest = graph.add("ReduceMin", square, axes=[1], keepdims=1)
        alone = graph.add("Less", mechanism.far.cell_m**2, nearest)
        middle = _snap(graph, _snap(graph, truth, mechanism.far), mechanism.grid)
        report = graph.add("Where", alone, middle, report)
    return (
        graph.add("Where", graph.add("Less", first, mechanism.keep), own, report)
        if mechanism.keep
        else report
    )


def _atlas(graph: Graph, mechanism: Atlas, truth: str, chance: str) -> str:
    """Every mechanism of the atlas answers, and the report of the one is taken whose tile the moved
    truth lies in."""
    tiling = mechanism.tiling
    if mechanism.plane is not None and mechanism.plane.wide:
        raise MechanismError(
            "the tiles of this atlas have planes of their own, and a bundle has one; name one tile"
            f" with {arg('tile')}, by its number on the map"
        )
    shift = graph.add("Sub", graph.add("Mul", _columns(graph, chance, 0, 2), 2.0), 1.0)
    moved = graph.add("Add", truth, graph.add("Mul", shift, tiling.overlap_m))
    cells = 2 ** int(tiling.squares[:, 0].max())  # along a side, as in `Tiling.locate`
    side = tiling.region.side_m
    corner = np.array([tiling.region.centre], dtype=float) - side / 2
    index = graph.add("Floor", graph.add("Mul", graph.add("Sub", moved, corner), cells / side))
    index = graph.add("Min", graph.add("Max", index, 0.0), cells - 1.0)
    width = cells // 2 ** tiling.squares[:, 0]
    inside = None
    for axis in (0, 1):
        low = (tiling.squares[:, 1 + axis] * width)[None, :].astype(float)
        at = graph.column(index, axis)
        for met in (
            graph.add("LessOrEqual", low, at),
            graph.add("Less", at, low + width[None, :]),
        ):
            met = graph.add("Cast", met, to=DOUBLE)
            inside = met if inside is None else graph.add("Mul", inside, met)
    number = graph.add("MatMul", inside, mechanism.which[:, None].astype(float))
    report = None
    for which in reversed(range(len(mechanism.mechanisms))):
        inner = mechanism.mechanisms[which]
        own = build(graph, inner, truth, _columns(graph, chance, 2, inner.draws))
        if report is not None:
            own = graph.add("Where", graph.add("LessOrEqual", number, float(which)), own, report)
        report = own
    assert report is not None
    return _snap(graph, report, mechanism.grid)


def _columns(graph: Graph, value: str, first: int, count: int) -> str:
    return graph.add("Gather", value, np.arange(first, first + count), axis=1)


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
