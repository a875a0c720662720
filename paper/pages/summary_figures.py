"""The paper's other figures: the summary of its introduction, the payoff tables of Alice and Bob,
the scheme of the two nets.

python -m paper.pages.summary_figures
"""

from pathlib import Path
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle

from paper.experiments import EXPERIMENTS, RESULTS
from paper.pages.game_figures import save
from paper.pages.results_by_column import FINEST, LEARNED, ceilings, columns
from paper.printed import targets
from sfumato.data.joint import Joint
from sfumato.files import read_json
from sfumato.measure.exact import bayes_vulnerability, mutual_information

_OURS, _THEIRS = "#0072B2", "black"
_REPORTS = {
    "A→a\nB→b": [[1, 0], [0, 1]],
    "A→a\nB→a": [[1, 0], [1, 0]],
    "A→b\nB→a": [[0, 1], [1, 0]],
}
_GUESSES = {
    "a→A\nb→B": [[1, 0], [0, 1]],
    "a→A\nb→A": [[1, 0], [1, 0]],
    "a→B\nb→B": [[0, 1], [0, 1]],
    "a→B\nb→A": [[0, 1], [1, 0]],
}


def _figure(wide: float, high: float) -> Figure:
    figure = Figure(figsize=(wide, high), layout="constrained", dpi=120)
    FigureCanvasAgg(figure)
    return figure


def summary(folder: Path) -> None:
    """Theirs hollow, ours filled with the spread over seeds; shaded is where nobody within the
    budget is, proved for the test points."""
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")["rows"]
    figure = _figure(11, 3.3)
    names = ("planar Laplace", "the paper's learned,\nGame.paper", "Game", "Codebook", "coin")
    for axes, experiment in zip(figure.subplots(1, 4, sharey=True), EXPERIMENTS, strict=True):
        key = (str(experiment.number), "test", *FINEST)
        noise = next(
            row["by_seed"]
            for row in laplace
            if (row["experiment"], row["split"], row["cells"], row["hits"]) == key
        )
        found = columns(folder, experiment.number)
        over = ["", *(found[name].over(experiment.max_loss_m) for name in LEARNED)]
        for row, values in enumerate(
            (noise, *(found[name].errors("test", *FINEST) for name in LEARNED))
        ):
            if values:
                axes.plot(
                    [min(values), max(values)],
                    [row, row],
                    color=_OURS,
                    linewidth=3,
                    solid_capstyle="butt",
                )
                axes.plot(
                    median(values),
                    row,
                    marker="o",
                    color=_OURS,
                    markersize=6,
                    markerfacecolor="white" if over[row] else _OURS,
                )
        for row, mechanism in enumerate(("laplace", "learned")):
            there = [
                t.bayes_error
                for t in targets(mechanism)
                if (t.experiment, t.split, t.cells, t.hits) == key
            ]
            axes.plot(
                there,
                [row],
                marker="D",
                color=_THEIRS,
                markerfacecolor="none",
                markersize=9,
                linestyle="",
            )
        if top := ceilings(folder, experiment.number)["test"]:
            axes.axvspan(max(top), 1, facecolor="0.88", hatch="///", edgecolor="0.7", linewidth=0)
        axes.set(
            xlim=(0, 1),
            xlabel="Bayes error, test data",
            title=f"experiment {experiment.number}, L = {experiment.max_loss_m:g} m",
        )
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
    figure.axes[0].set_yticks(range(len(names)), names)
    figure.axes[0].set_ylim(len(names) - 0.5, -0.5)
    marks = [
        Line2D(
            [],
            [],
            linestyle="",
            marker="D",
            color=_THEIRS,
            markerfacecolor="none",
            markersize=9,
            label="the paper's",
        ),
        Line2D(
            [],
            [],
            marker="o",
            color=_OURS,
            linewidth=3,
            label="ours: median, lowest to highest over seeds",
        ),
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            color=_OURS,
            markerfacecolor="white",
            label="ours, over the budget on test data",
        ),
        Rectangle(
            (0, 0),
            1,
            1,
            facecolor="0.88",
            hatch="///",
            edgecolor="0.7",
            label="proved: nobody on the grid within the budget",
        ),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    save(figure, folder / "summary.png")


def _payoff_table(axes: Axes, title: str, values: np.ndarray, texts: list[list[str]]) -> None:
    for row, (report, line) in enumerate(zip(_REPORTS, texts, strict=True)):
        axes.text(-0.1, row + 0.5, report, ha="right", va="center", fontsize=10)
        for column, text in enumerate(line):
            best = values[row, column] <= values[:, column].min() + 1e-12
            shade = str(0.97 - 0.25 * values[row, column])
            axes.add_patch(
                Rectangle((column, row), 1, 1, facecolor=shade, edgecolor="0.5", linewidth=0.8)
            )
            if best:
                axes.add_patch(
                    Rectangle(
                        (column + 0.07, row + 0.07),
                        0.86,
                        0.86,
                        fill=False,
                        edgecolor="#D55E00",
                        linewidth=2.4,
                    )
                )
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=11)
    for column, guess in enumerate(_GUESSES):
        axes.text(column + 0.5, -0.1, guess, ha="center", va="bottom", fontsize=10)
    axes.text(-0.85, 1.5, "G", ha="center", va="center", fontsize=13)
    axes.text(2, -0.75, "C", ha="center", va="center", fontsize=13)
    axes.set(xlim=(-1, 4.05), ylim=(3.05, -1))
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()


def payoffs(folder: Path) -> None:
    """Both tables computed; framed is what G prefers against each C."""
    person = Joint(np.eye(2) / 2, secrets=("Alice", "Bob"))
    guessed = [
        [person.through(np.array(g)).through(np.array(c)) for c in _GUESSES.values()]
        for g in _REPORTS.values()
    ]
    right = np.array([[float(np.trace(joint.table)) for joint in line] for line in guessed])
    bits = np.array([[mutual_information(joint) for joint in line] for line in guessed])
    best = np.array([[bayes_vulnerability(joint) for joint in line] for line in guessed])
    figure = _figure(9.5, 3.5)
    left, other = figure.subplots(1, 2)
    _payoff_table(
        left,
        "f = chance that C is right",
        right,
        [[f"{value:g}" for value in line] for line in right],
    )
    pairs = [
        [f"{one:.0f}  |  {two:g}" for one, two in zip(*lines, strict=True)]
        for lines in zip(bits, best, strict=True)
    ]
    _payoff_table(other, "f = I(X;Y) in bits  |  f = 1 - B(X|Y)", bits, pairs)
    save(figure, folder / "payoffs.png")


def _box(axes: Axes, x: float, name: str, says: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x, 0.6), 1.7, 0.9, boxstyle="round,pad=0.06", facecolor="0.94", edgecolor="black"
        )
    )
    axes.text(x + 0.85, 1.2, name, ha="center", va="center", fontsize=13)
    axes.text(x + 0.85, 0.82, says, ha="center", va="center", fontsize=8.5)


def scheme(folder: Path) -> None:
    """The two nets: what goes in, what comes out, what flows back."""
    figure = _figure(8.5, 2.9)
    axes = figure.subplots()
    _box(axes, 2.6, "G", "generator")
    _box(axes, 6.6, "C", "classifier")
    look = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    arrows = (
        ((0.2, 1.05), (2.52, 1.05)),
        ((4.38, 1.05), (6.52, 1.05)),
        ((8.38, 1.05), (9.8, 1.05)),
        ((3.45, 0.52), (3.45, -0.25)),
    )
    for start, end in arrows:
        axes.annotate("", xy=end, xytext=start, arrowprops=look)
    axes.plot([7.45, 7.45, 3.45], [1.58, 2.15, 2.15], color="black", linewidth=1.3, linestyle="--")
    axes.annotate("", xy=(3.45, 1.58), xytext=(3.45, 2.15), arrowprops={**look, "linestyle": "--"})
    for x, y, text in (
        (1.35, 1.15, "truth w, seed s\n(secret x)"),
        (5.45, 1.15, "report z = g(w, s)\n(secret x)"),
        (9.1, 1.15, "guess y"),
        (5.45, 2.2, "payoff: the information of the guess, I(X;Y), and the loss over the budget"),
    ):
        axes.text(x, y, text, ha="center", va="bottom", fontsize=9)
    axes.text(
        3.6, -0.1, "at the end: the mechanism z = g(w, s)", ha="left", va="center", fontsize=9
    )
    axes.set(xlim=(0, 10), ylim=(-0.4, 2.6))
    axes.set_axis_off()
    save(figure, folder / "scheme.png")


def main(folder: Path = RESULTS) -> None:
    summary(folder)
    payoffs(folder)
    scheme(folder)


if __name__ == "__main__":
    main()
