"""Figures: of the report as data addresses for an <img>, of comparisons and frontiers as figures
of Matplotlib or as files.

No global state, and the same bytes for the same input.
"""

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.ticker import MaxNLocator

from sfumato import show
from sfumato.data.grid import Region
from sfumato.data.tiles import Tiling
from sfumato.errors import FileError
from sfumato.files import written_beside
from sfumato.measure.estimate import Estimate
from sfumato.render.names import printable
from sfumato.solver.frontier import Frontier
from sfumato.study.compare import Comparison
from sfumato.study.linked import LinkedTradeOff
from sfumato.study.trade_off import Placed, TradeOff

# The colours of Okabe and Ito that stand out on white; 7 colours and 8 markers share no factor, so
# 56 users differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
_LINES = ("-", "--", "-.", (0, (3, 1, 1, 1)), (0, (5, 1, 1, 1, 1, 1)))
_INK, _MIDDLE, _FAINT = "#3d4852", "#7b858e", "#c9ced3"
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
# points are drawn in this many rounds over the users, so that no user covers the others
_LAYERS = 8
_NUMBERED = 0.03  # of the map's side: narrower tiles have no room for their number
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.edgecolor": "#9aa3ab",
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "svg.hashsalt": "sfumato",
    "svg.fonttype": "path",
}


def look_of(user: int) -> tuple[str, str]:
    """The colour and the marker of a user, the same in every figure."""
    return COLOURS[user % len(COLOURS)], MARKERS[user % len(MARKERS)]


@dataclass(frozen=True)
class Swatch:
    """A user's marker, drawn by the page itself: the outline of a path, the box around it."""

    outline: str
    box: str
    edge: str
    colour: str


def swatch(user: int) -> Swatch:
    """A user's marker, for legends."""
    colour, marker = look_of(user)
    style = MarkerStyle(marker)
    polygons: list[Any] = list(
        style.get_path().transformed(style.get_transform()).to_polygons(closed_only=False)
    )
    size = 1.25 * max(float(np.abs(points).max()) for points in polygons)
    outline = " ".join(
        "M" + "L".join(f"{x:.3f},{-y:.3f}" for x, y in points) + "Z" for points in polygons
    )
    box = f"{-size:.2f} {-size:.2f} {2 * size:.2f} {2 * size:.2f}"
    return Swatch(outline, box, f"{0.12 * size:.2f}", colour)


def window_of(truth: np.ndarray, max_loss: float) -> Region:
    """What the pictures show: the square of the truths, widened by the budget, at most by half its
    side."""
    side = Region.around(truth).side_m
    return Region.around(truth, margin_m=max(0.08 * side, min(max_loss, 0.5 * side), 25.0))


def fan_out(points: np.ndarray, step_m: float) -> np.ndarray:
    """Lay points that share one place on a sunflower about it: its area grows with their number."""
    _, group, count = np.unique(
        np.round(points, 3), axis=0, return_inverse=True, return_counts=True
    )
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(points))
    rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(count) - count, count)
    around = np.stack([np.cos(rank * _GOLDEN_ANGLE), np.sin(rank * _GOLDEN_ANGLE)], axis=1)
    return points + step_m * np.sqrt(rank)[:, None] * around


def points_figure(
    points: np.ndarray,
    secret: np.ndarray,
    window: Region,
    *,
    behind: np.ndarray | None = None,
    dpi: int = 150,
) -> str:
    """Points of all users in a square window with a scale bar; `behind` are drawn in grey below
    them."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        if behind is not None:
            axes.scatter(behind[:, 0], behind[:, 1], s=7, c=_FAINT, linewidths=0, zorder=1)
        spread = fan_out(points, 0.0042 * window.side_m)
        part = np.arange(len(points)) * _LAYERS // max(1, len(points))
        for layer in range(_LAYERS):
            for user in np.unique(secret[part == layer]):
                colour, marker = look_of(int(user))
                rows = (part == layer) & (secret == user)
                edge: dict[str, Any] = {"linewidths": 0.3, "edgecolors": "white"}
                look: dict[str, Any] = {"s": 17, "c": colour, "marker": marker, **edge}
                axes.scatter(*spread[rows].T, zorder=2 + layer, **look)
        _square(axes, window)
        axes.locator_params(nbins=5)
        axes.tick_params(length=2, labelsize=9.5)
        axes.set_xlabel("metres east", fontsize=9.5, labelpad=1)
        axes.set_ylabel("metres north", fontsize=9.5, labelpad=1)
        _scale_bar(axes, window)

    return _address(draw, (4.4, 4.4), dpi=dpi)


def tiles_figure(tiling: Tiling, values: np.ndarray, hatched: np.ndarray) -> str:
    """A map of tiles coloured by a value of each, empty where there is none.  Tiles with a value
    have their number, unless they are too small for it.  It is legible on light and on dark
    pages."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low, side = tiling.corners, tiling.sides_m[:, None]
        steps = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        squares = low[:, None, :] + steps * side[:, None]
        look: dict[str, Any] = {"edgecolors": _FAINT, "linewidths": 0.4}
        known = np.isfinite(values)
        coloured = PolyCollection(list(squares[known]), cmap="viridis", **look)
        coloured.set_array(values[known])
        axes.add_collection(PolyCollection(list(squares[~known]), facecolors="none", **look))
        axes.add_collection(coloured)
        noise = PolyCollection(list(squares[hatched & known]), facecolors="none", **look)
        noise.set_hatch("////")
        axes.add_collection(noise)
        wide = tiling.sides_m >= _NUMBERED * tiling.region.side_m
        for number in np.flatnonzero(known & wide).tolist():
            x, y = low[number] + tiling.sides_m[number] / 2
            axes.text(
                x,
                y,
                str(number),
                ha="center",
                va="center",
                fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
            )
        _square(axes, tiling.region)
        axes.set_xticks([])
        axes.set_yticks([])
        _scale_below(axes, tiling.region)
        if known.any():
            figure.colorbar(coloured, ax=axes, shrink=0.8).ax.tick_params(colors=_MIDDLE)

    return _address(draw, (6.4, 5.6), dpi=110, transparent=True)


def _square(axes: Axes, window: Region) -> None:
    """Show just this window, as long as it is wide."""
    half, (x, y) = window.side_m / 2, window.centre
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half))
    axes.set_aspect("equal")


def _scale(window: Region) -> tuple[float, str]:
    """A round length of at most a quarter of a window's side, and its label."""
    goal = window.side_m / 4
    unit = 10.0 ** np.floor(np.log10(goal))
    length = unit * max(step for step in (1, 2, 5) if step * unit <= goal)
    return length, f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"


def _scale_below(axes: Axes, window: Region) -> None:
    """A scale bar outside the window, of which it covers nothing."""
    length, label = _scale(window)
    share, below = length / window.side_m, -0.03
    where: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False, "color": _MIDDLE}
    axes.plot([0, share], [below, below], linewidth=3, solid_capstyle="butt", **where)
    axes.text(share + 0.015, below, label, va="center", fontsize=9, **where)


def _scale_bar(axes: Axes, window: Region) -> None:
    length, label = _scale(window)
    left, low = (middle - 0.45 * window.side_m for middle in window.centre)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2}
    line: dict[str, Any] = {"color": "black", "linewidth": 3, "solid_capstyle": "butt"}
    for look in ({**line, "color": "white", "linewidth": 5}, line):
        axes.plot([left, left + length], [low, low], zorder=20, **look)
    place = (left + length / 2, low + 0.02 * window.side_m)
    axes.text(*place, label, ha="center", va="bottom", fontsize=11, zorder=20, bbox=box)


def grids_figure(names: Sequence[str], rows: Sequence[Sequence[Estimate]], blind: float) -> str:
    """Bayes error against the side of the cells, with the error of a blind guess as the ceiling."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        sides = sorted(
            {estimate.cell_m for row in rows for estimate in row if estimate.cell_m is not None}
        )
        axes.axhline(
            blind, color="black", linewidth=1, linestyle=":", label=f"blind guess, {blind:.3f}"
        )
        for number, (name, row) in enumerate(zip(names, rows, strict=True)):
            estimates = [estimate for estimate in row if estimate.cell_m is not None]
            where = [sides.index(estimate.cell_m or 0.0) for estimate in estimates]
            look: Any = {
                "color": _ink(number, len(names)),
                "linestyle": _LINES[number % len(_LINES)],
            }
            look |= {"marker": _marker(number), "markersize": 6, "capsize": 3}
            values = [estimate.value for estimate in estimates]
            axes.errorbar(where, values, yerr=_whiskers(estimates), label=_short(name), **look)
        axes.set_xticks(range(len(sides)), [f"{side:g}" for side in sides])
        axes.set(
            xlabel="side of a cell, m",
            ylabel="Bayes error ↑",
            ylim=(0, min(1.0, blind * 1.12 + 0.02)),
        )
        axes.margins(x=0.08)
        _plain(axes)
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)

    return _address(draw, (4.4, 2.4 + 0.72 * len(names)))


def bars_figure(
    names: Sequence[str],
    values: Sequence[Estimate],
    *,
    label: str,
    most: float,
    most_label: str,
    percent: bool = False,
) -> str:
    """One bar per mechanism, with its interval where it is an estimate, up to the most that is
    possible."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        where = np.arange(len(names))
        lengths = [estimate.value for estimate in values]
        colours = [_ink(number, len(names)) for number in range(len(names))]
        axes.barh(
            where,
            lengths,
            color=colours,
            height=0.55,
            xerr=_whiskers(values),
            ecolor=_INK,
            capsize=3,
        )
        for row, estimate in enumerate(values):
            text = f"{estimate.value:.1%}" if percent else f"{estimate.value:.3f}"
            end = max(estimate.value, estimate.high), row
            axes.annotate(text, end, xytext=(5, 0), textcoords="offset points", va="center")
        axes.axvline(most, color="black", linewidth=1, linestyle=":")
        axes.set_yticks(where, [_short(name) for name in names])
        axes.set(
            xlim=(0, most * 1.18),
            xlabel=f"{label} (dotted: {most_label})",
            ylim=(len(names) - 0.5, -0.5),
        )
        if percent:
            axes.set_xticks(
                np.linspace(0, 1, 5), [f"{share:.0%}" for share in np.linspace(0, 1, 5)]
            )
        _plain(axes)

    return _address(draw, (4.4, 1.1 + 0.42 * len(names)))


def released_rounds(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rounds of the net that is released, without those of the folds that were fitted
    before."""
    return [line for line in history if "folds" not in line]


def history_figure(
    history: Sequence[dict[str, Any]], max_loss: float | None, *, unit: str = "m"
) -> str | None:
    """Learning curves: payoff, loss and accuracies over the rounds, whichever were recorded; those
    of folds are left out."""
    history = released_rounds(history)
    panels = [("payoff",), ("loss",), ("accuracy_train", "accuracy_validation")]
    shown = [
        keys
        for panel in panels
        if (keys := [key for key in panel if any(line.get(key) is not None for line in history)])
    ]
    if not shown:
        return None
    rounds = [
        float(line["round"]) if line.get("round") is not None else number
        for number, line in enumerate(history)
    ]

    def draw(figure: Figure) -> None:
        stack = figure.subplots(len(shown), sharex=True, squeeze=False)[:, 0]
        for axes, keys in zip(stack, shown, strict=True):
            for key, colour, line in zip(keys, (_ink(0, 2), _ink(1, 2)), _LINES, strict=False):
                values = [
                    float("nan") if entry.get(key) is None else float(entry[key])
                    for entry in history
                ]
                axes.plot(
                    rounds,
                    values,
                    color=colour,
                    linestyle=line,
                    marker="." if len(history) < 40 else "",
                    label=key.rpartition("_")[2],
                )
            if keys == ["loss"] and max_loss is not None:
                axes.axhline(max_loss, color="black", linewidth=1, linestyle=":", label="budget")
            axes.set_ylabel({"loss": f"loss, {unit}", "payoff": "payoff"}.get(keys[0], "accuracy"))
            if len(axes.get_lines()) > 1:
                # above the panel: inside, it would lie on a curve that fills it
                axes.legend(
                    frameon=False,
                    fontsize=8,
                    ncols=2,
                    loc="lower right",
                    bbox_to_anchor=(1, 1),
                    borderaxespad=0.1,
                )
            _plain(axes)
        stack[-1].set_xlabel("round")
        stack[-1].xaxis.set_major_locator(MaxNLocator(integer=True))

    return _address(draw, (4.4, 0.6 + 1.5 * len(shown)))


def check_figure(path: Path) -> None:
    """Refuse an ending that is not drawn, before any work is done."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise FileError(
            f"{path.name} has an ending that sfumato does not draw; expected .png or .svg"
        )


class _Shown(Figure):
    """A figure that notebooks show, also where pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


@show.figure.register
def comparison_figure(comparison: Comparison) -> Figure:
    """Bayes error against loss, one marker per mechanism, with the intervals of what was
    estimated."""
    with rc_context(_STYLE):
        figure = _Shown(figsize=(6.4, 4.4), layout="constrained")
        figure.suptitle(_short(comparison.on.name, most=80), fontsize=11)
        axes = figure.subplots()
        for number, row in enumerate(comparison.rows):
            loss, error = row.measured.loss, row.measured.bayes_error
            look = {"color": COLOURS[number % len(COLOURS)], "label": _short(row.name)}
            _estimated(axes, loss, error, number, **look)
        blind = comparison.blind_error
        axes.axhline(blind, color=_INK, linewidth=1, linestyle=":", label="a blind guess")
        for budget in sorted({row.contender.max_loss or 0.0 for row in comparison.rows} - {0.0}):
            axes.axvline(budget, color=_FAINT, linewidth=1, label=f"budget {budget:g}")
        units = {row.loss_unit for row in comparison.rows}
        axes.set(
            xlabel=f"expected loss{', metres' if units == {'m'} else ''}",
            ylabel="Bayes error (higher is more private)",
            xlim=(0, 1.05 * axes.get_xlim()[1]),  # no marker is cut
            ylim=(0, 1.05 * blind),
        )
        _plain(axes)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


@show.figure.register
def _bare_frontier(frontier: Frontier) -> Figure:
    return frontier_figure(TradeOff(frontier, ()))


def draw_frontier(trade_off: TradeOff | LinkedTradeOff, path: Path) -> None:
    """The proven frontier, or the trade-off for linked reports, as a PNG or SVG file."""
    check_figure(path)
    with rc_context(_STYLE), written_beside(path) as beside:
        figure = show.figure(trade_off)
        figure.savefig(beside, format=path.suffix.lower().removeprefix("."), dpi=150)


@show.figure.register
def frontier_figure(trade_off: TradeOff) -> Figure:
    """Bayes error and information against the loss, each with the mechanisms beside it."""
    frontier = trade_off.frontier
    first, last = frontier.budgets.min(), frontier.budgets.max()
    budgets = np.union1d(frontier.budgets, np.linspace(first, last, 400))
    bayes, bits = frontier.bayes, frontier.information
    panels = (
        (
            "Bayes error (higher is more private)",
            "bayes_error",
            1 - bayes.reached_at(budgets),
            1 - bayes.bound_at(budgets),
            bayes.proved_anything,
        ),
        (
            "information, bits (lower is more private)",
            "information_bits",
            bits.reached_at(budgets),
            bits.bound_at(budgets),
            bits.proved_anything,
        ),
    )
    cells, unit = f"{frontier.problem.grid.cell_m:g} m cells", frontier.loss_unit
    names = list(dict.fromkeys(place.name for place in trade_off.placed))
    to_come = trade_off.reached_to_come(budgets)
    with rc_context(_STYLE):
        figure = _Shown(figsize=(10, 4.8), layout="constrained")
        figure.suptitle(_short(frontier.problem.samples.name, most=80), fontsize=11)
        stack = figure.subplots(1, 2)
        for axes, (label, key, reached, bound, proved) in zip(stack, panels, strict=True):
            axes.plot(
                budgets,
                bound,
                color=COLOURS[0],
                linewidth=2 if proved else 0.5,
                label=f"proved: nothing on {cells} passes this"
                if proved
                else "a blind guess: nothing proved yet",
            )
            said = f"reached by a mechanism on {cells}"
            axes.plot(budgets, reached, color=COLOURS[0], linewidth=1, linestyle="--", label=said)
            within: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.2, "linewidth": 0}
            axes.fill_between(budgets, reached, bound, label="the best lies within", **within)
            for number, name in enumerate(names):
                same = [place for place in trade_off.placed if place.name == name]
                _place(axes, same, key, number)
                _place_to_come(axes, same, key, number)
            _band_to_come(axes, budgets, to_come[key], trade_off)
            axes.set(xlabel=f"expected loss, {'metres' if unit == 'm' else unit}", ylabel=label)
            _plain(axes)
        _legend_below(figure)
    return figure


@show.figure.register
def linked_figure(trade_off: LinkedTradeOff) -> Figure:
    """Bayes error for each number of linked reports and the least overlap of two users against the
    loss, with the endless budget marked."""
    unit, budgets = trade_off.loss_unit, [point.max_loss for point in trade_off.points]
    with rc_context(_STYLE):
        figure = Figure(figsize=(10, 4.8), layout="constrained")
        figure.suptitle(_short(trade_off.problem.samples.name, most=80), fontsize=11)
        left, right = figure.subplots(1, 2)
        left.axhline(trade_off.blind, color=_INK, linewidth=0.5, linestyle=":")
        for number, count in enumerate(trade_off.counts):
            errors = [point.bayes_errors[number] for point in trade_off.points]
            left.errorbar(
                budgets,
                [error.value for error in errors],
                yerr=_whiskers(errors),
                color=_ink(number, len(trade_off.counts)),
                marker=_marker(number),
                label=f"Bayes error, {count} report{'s' * (count > 1)}",
            )
        overlap = [point.overlap for point in trade_off.points]
        bound = [point.overlap_bound for point in trade_off.points]
        cells = f"{trade_off.problem.grid.cell_m:g} m cells"
        right.plot(
            budgets, bound, color=COLOURS[0], marker="_", label=f"least overlap, proved on {cells}"
        )
        right.plot(
            budgets, overlap, color=COLOURS[0], linestyle="--", label="least overlap, reached"
        )
        for axes, label in (
            (left, "Bayes error (higher is more private)"),
            (right, "least overlap of two users (1: never told apart)"),
        ):
            if trade_off.endless is not None:
                loss = f"{trade_off.endless.loss:.4g} {unit}".rstrip()
                axes.axvline(
                    trade_off.endless.loss,
                    color=COLOURS[1],
                    linewidth=1.5,
                    label=f"from {loss} on linking is useless" if axes is left else None,
                )
            axes.set(xlabel=f"budget, {'metres' if unit == 'm' else unit}", ylabel=label)
            _plain(axes)
        _legend_below(figure)
    return figure


def _legend_below(figure: Figure) -> None:
    """One legend of all panels, where it covers nothing: each label once."""
    named = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3, frameon=False)


def _place(axes: Axes, placed: Sequence[Placed], key: str, number: int) -> None:
    """One mechanism on the axes, named in the legend: names beside the points would overlap."""
    axes.plot(
        [place.loss for place in placed],
        [getattr(place, key) for place in placed],
        linestyle="",
        marker=_marker(number),
        color=_colour(number),
        markersize=6,
        label=_short(placed[0].name),
    )


def _place_to_come(axes: Axes, placed: Sequence[Placed], key: str, number: int) -> None:
    """The same mechanism on check-ins to come: hollow, with the intervals of loss and leakage."""
    for place in placed:
        if place.to_come is None:
            continue
        look = {"color": _colour(number), "markerfacecolor": "white", "elinewidth": 1}
        leakage = getattr(place.to_come, key)
        _estimated(axes, place.to_come.loss, leakage, number, markersize=6, **look)


def _estimated(axes: Axes, x: Estimate, y: Estimate, number: int, **look: Any) -> None:
    """One mechanism's marker, with the intervals of both figures."""
    whiskers: Any = {"xerr": _whiskers([x]), "yerr": _whiskers([y]), "capsize": 3}
    axes.errorbar([x.value], [y.value], linestyle="", marker=_marker(number), **whiskers, **look)


def _marker(number: int) -> str:
    return MARKERS[number % len(MARKERS)]


def _colour(number: int) -> str:
    """Of a mechanism beside a curve, which has the first colour."""
    return COLOURS[1 + number % (len(COLOURS) - 1)]


def _band_to_come(axes: Axes, budgets: np.ndarray, ends: np.ndarray, trade_off: TradeOff) -> None:
    """What is reached on check-ins to come; and what filled and hollow markers mean."""
    fitted = trade_off.cross_fitted
    levels = sorted({0.95, *(outlook.confidence for outlook in fitted)})
    percent = " and ".join(f"{100 * level:g}" for level in levels)
    by = "runs and coin" if fitted else "coin"
    label = f"reached on check-ins to come ({by}, {percent} % interval)"
    axes.fill_between(budgets, *ends, color=_INK, alpha=0.18, linewidth=0, label=label)
    markers = (("on these check-ins", _INK), ("on check-ins to come", "white"))
    for label, face in markers if trade_off.to_come else ():
        axes.plot([], [], linestyle="", marker="o", color=_INK, markerfacecolor=face, label=label)


def _whiskers(estimates: Sequence[Estimate]) -> np.ndarray | None:
    """Lengths of the intervals below and above; nothing where all is exact."""
    if not any(estimate.kind == "estimate" for estimate in estimates):
        return None
    ends = [
        (
            (max(0.0, e.value - e.low), max(0.0, e.high - e.value))
            if e.kind == "estimate"
            else (np.nan, np.nan)
        )
        for e in estimates
    ]
    return np.array(ends).T


def _ink(number: int, count: int) -> tuple[float, float, float, float]:
    """A colour for a mechanism, from dark blue to sand: none of the users' colours."""
    return colormaps["cividis"](0.08 + 0.62 * number / max(1, count - 1))


def _short(name: str, *, most: int = 24) -> str:
    name = printable(name)
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e4e7ea", linewidth=0.7)
    axes.set_axisbelow(True)


def _address(
    draw: Callable[[Figure], None],
    size: tuple[float, float],
    *,
    dpi: int | None = None,
    transparent: bool = False,
) -> str:
    """Draw a figure and write it as a data address: PNG where a resolution is given, SVG where
    not."""
    stream = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font lacks is drawn as a box
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        if dpi is None:
            figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
        else:
            cut: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.06}
            cut |= {"metadata": {"Software": None}, "pil_kwargs": {"optimize": True}}
            cut |= {"transparent": transparent}
            figure.savefig(stream, format="png", dpi=dpi, **cut)
    kind = "svg+xml" if dpi is None else "png"
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
