"""Scatter figures of the four experiments and the swapping clouds of cross entropy.

One colour and one marker a user in every panel (the report's own), metres, seed 0, one report a
point.  Synthetic reports come from the JSON of the runs.  Gowalla points are real people's: they
are read from the data, and their reports from `runs/paper/reports`, which the runs fill and nobody
commits; where either is absent these two figures are left as they are.

python -m paper.pages.game_figures
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from paper.experiments import (
    EXPERIMENTS,
    REPORTS,
    RESULTS,
    SPLITS,
    Experiment,
    gowalla_file,
    load,
    part,
    shown,
    unpacked,
)
from paper.pages.results_by_column import columns
from paper.tables import say
from sfumato.data.samples import Samples
from sfumato.files import read_json, written_beside
from sfumato.render.figures import fan_out, look_of

SEED = 0
_PAGE_IN, _DPI = 6.88, 200  # a page of the site is 688 px wide, and shows half a figure's pixels
_LAYERS = 8  # users take turns, so that none covers the others
_HALF_M = {"synthetic": 600.0, "gowalla": 3250.0}
_SHOWN = {"Game.paper": "paper", "Game": "game", "Codebook": "codebook"}
_TITLES = {"Game.paper": "Game.paper({})", "Game": "Game()", "Codebook": "codebook, resampled"}
Panel = tuple[str, np.ndarray | None]


def _scatter(axes: Axes, title: str, points: np.ndarray, samples: Samples, half_m: float) -> None:
    """Reports of all users in a square window; their loss, how few places they share and how many
    lie outside is said."""
    order = np.random.default_rng(0).permutation(len(points))  # no user always on top or outermost
    size, step_m = (12, 0.008 * half_m) if len(points) > 300 else (26, 0.012 * half_m)
    spread, secret = fan_out(points[order], step_m), samples.secret[order]
    layer = np.arange(len(points)) * _LAYERS // len(points)
    for turn in range(_LAYERS):
        for user in np.unique(secret):
            rows = (layer == turn) & (secret == user)
            colour, marker = look_of(int(user))
            axes.scatter(
                spread[rows, 0],
                spread[rows, 1],
                s=size,
                c=colour,
                marker=marker,
                linewidths=0.2,
                edgecolors="white",
            )
    loss = float(np.hypot(*(points - samples.truth).T).mean())
    places, outside = (
        len(np.unique(points.round(1), axis=0)),
        int((np.abs(points) > half_m).any(axis=1).sum()),
    )
    notes = [f"{loss:.0f} m"] * (loss > 0) + [f"{places} place{'s' * (places > 1)}"] * (
        places < len(points) / 8
    )
    axes.set_title(
        "\n".join(
            [title, ", ".join(notes + [f"{outside} of {len(points)} outside"] * (outside > 0))]
        ),
        fontsize=9,
    )
    axes.set(xlim=(-half_m, half_m), ylim=(-half_m, half_m))
    axes.set_aspect("equal")
    axes.locator_params(nbins=4)
    axes.tick_params(labelsize=8)


def draw(rows: list[tuple[str, Samples, list[Panel]]], half_m: float, path: Path) -> None:
    """Panels of each part of the data, two or three side by side; what was not kept is left
    empty."""
    wide = len(rows[0][2])
    across = 2 if wide in (2, 4) else 3
    lines = -(-wide // across)
    panel_in = _PAGE_IN / across + 0.08  # a title takes more room than a scale
    figure = Figure(
        figsize=(_PAGE_IN, 0.4 + panel_in * lines * len(rows)), layout="constrained", dpi=_DPI
    )
    FigureCanvasAgg(figure)
    grid = figure.subplots(lines * len(rows), across, squeeze=False)
    for number, (name, samples, panels) in enumerate(rows):
        block = grid[number * lines : (number + 1) * lines]
        for axes, (title, points) in zip(block.flat, panels, strict=False):
            if points is None:
                axes.set_axis_off()
                axes.text(
                    0.5, 0.5, f"{title}\n(reports not kept)", ha="center", va="center", fontsize=9
                )
            else:
                _scatter(axes, title, points, samples, half_m)
        for axes in block.flat[wide:]:
            axes.set_axis_off()
        for axes in block[:, 0]:
            axes.set_ylabel(f"{name}\nmetres north", fontsize=9)
    for at in range(across):
        below = [line[at] for line in grid if line[at].axison]
        if below:
            below[-1].set_xlabel("metres east", fontsize=9)
    marks = [
        Line2D([], [], linestyle="", color=colour, marker=marker, label=f"user {user + 1}")
        for user, (colour, marker) in enumerate(map(look_of, range(len(rows[0][1].secrets))))
    ]
    spare = [axes for axes in grid[:lines].flat if not axes.axison]
    if spare:
        spare[-1].legend(handles=marks, loc="center", frameon=False, fontsize=9)
    else:
        places = {"loc": "outside lower center", "ncols": len(marks)}
        figure.legend(handles=marks, frameon=False, fontsize=9, **places)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """The same bytes for the same picture."""
    with written_beside(path) as beside:
        figure.savefig(beside, format="png", metadata={"Software": None})


def _kept(name: str, experiment: Experiment, run: dict[str, Any]) -> dict[str, np.ndarray]:
    """Reports of a run by split: from the run itself or, of real people, from where they were put
    aside."""
    found: dict[str, Any] = run
    if experiment.data == "gowalla":
        path = REPORTS / f"{name}_{experiment.number}.json"
        found = read_json(path, what="reports of a run") if path.exists() else {}
        found = (
            found if found.get("same_as") == run["estimates"]["test"] else {}
        )  # else they are of another run
    return {
        split: unpacked(found[f"{split}_reports_m"])
        for split in SPLITS
        if f"{split}_reports_m" in found
    }


def scatter(experiment: Experiment, folder: Path) -> bool:
    """Draw one experiment; False where the data or the reports of a run are not here."""
    runs = [
        (name, run)
        for name in _SHOWN
        for run in columns(folder, experiment.number)[name].runs
        if run["seed"] == SEED
    ]
    found = [
        (_TITLES[name].format(experiment.number), _kept(_SHOWN[name], experiment, run))
        for name, run in runs
    ]
    if experiment.data == "gowalla" and not (
        gowalla_file().is_file() and all(kept for _, kept in found)
    ):
        return False
    data = load(experiment.data, SEED)
    rows: list[tuple[str, Samples, list[Panel]]] = []
    for seed, split in enumerate(SPLITS):
        samples = shown(data, split)
        panels: list[Panel] = [
            ("planar Laplace", experiment.laplace.sample(samples.truth, seed=seed)),
            ("no noise", samples.truth),
        ]
        panels += [(title, kept.get(split)) for title, kept in found if kept]
        rows.append(("training" if split == "train" else "test", samples, panels))
    draw(rows, _HALF_M[experiment.data], folder / f"scatter_{experiment.number}.png")
    return True


def swapping(folder: Path) -> None:
    """The clouds under cross entropy after some rounds."""
    path = folder / "cross_entropy.json"
    games: dict[str, Any] = (
        read_json(path, what="the curves of cross entropy")["experiments"] if path.exists() else {}
    )
    for number, played in games.items():
        if "reports_m" in played.get("cross entropy", {}):
            samples = part(load(EXPERIMENTS[int(number) - 1].data, SEED), "test")
            panels: list[Panel] = [("no noise", samples.truth)]
            panels += [
                (f"after round {name}", np.array(reports))
                for name, reports in played["cross entropy"]["reports_m"].items()
            ]
            draw(
                [("test", samples, panels)], _HALF_M["synthetic"], folder / f"swapping_{number}.png"
            )


def main(folder: Path = RESULTS) -> list[str]:
    """Draw what can be drawn; the names of what cannot."""
    left = [
        f"scatter_{experiment.number}.png"
        for experiment in EXPERIMENTS
        if not scatter(experiment, folder)
    ]
    swapping(folder)
    for name in left:
        say(
            f"{name} was not drawn: it needs Gowalla check-ins and the reports that `make paper`"
            " leaves in runs/paper/reports"
        )
    return left


if __name__ == "__main__":
    main()
