"""Scatter figures of experiments 1 and 2 and the swapping clouds of cross entropy, from the JSON of game_tables and cross_entropy.

One colour and one marker a user in every panel (the report's own), metres, the test points of seed 0, one report a point.

python -m paper.game_figures
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper.experiments import EXPERIMENTS, RESULTS, load, part
from sfumato.data.samples import Samples
from sfumato.files import read_json, written_beside
from sfumato.report.figures import fan_out, look_of

SEED = 0
_LAYERS = 8  # users take turns, so that none covers the others
_OURS = {"game": "Game()", "paper": "Game.paper({})"}


def _scatter(axes: Axes, title: str, points: np.ndarray, secret: np.ndarray, half_m: float) -> None:
    """Reports of all users in a square window; how many lie outside is said."""
    order = np.random.default_rng(0).permutation(len(points))  # no user always on top or outermost
    spread, secret = fan_out(points[order], 0.008 * half_m), secret[order]
    layer = np.arange(len(points)) * _LAYERS // len(points)
    for turn in range(_LAYERS):
        for user in np.unique(secret):
            rows = (layer == turn) & (secret == user)
            colour, marker = look_of(int(user))
            axes.scatter(spread[rows, 0], spread[rows, 1], s=11, c=colour, marker=marker, linewidths=0.2, edgecolors="white")
    outside = int((np.abs(points) > half_m).any(axis=1).sum())
    axes.set(xlim=(-half_m, half_m), ylim=(-half_m, half_m), xlabel="metres east")
    axes.set_aspect("equal")
    axes.set_title(title + (f"\n({outside} of {len(points)} outside)" if outside else ""), fontsize=9)
    axes.tick_params(labelsize=7)


def _save(panels: list[tuple[str, np.ndarray]], samples: Samples, half_m: float, path: Path) -> None:
    figure = Figure(figsize=(3.4 * len(panels), 3.9), layout="constrained", dpi=120)
    FigureCanvasAgg(figure)
    for axes, (title, points) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _scatter(axes, title, points, samples.secret, half_m)
    figure.axes[0].set_ylabel("metres north")
    with written_beside(path) as beside:
        figure.savefig(beside, format="png", metadata={"Software": None})


def _learned(number: int, folder: Path) -> list[tuple[str, np.ndarray]]:
    """Panels of the games whose reports were kept."""
    found = []
    for recipe, name in _OURS.items():
        path = folder / f"{recipe}_{number}.json"
        runs = read_json(path, what="a table of the game")["runs"] if path.exists() else []
        for run in runs:
            if run["seed"] == SEED and "reports_m" in run:
                found.append((f"{name.format(number)}, {run['game']['loss_m']:.0f} m", np.array(run["reports_m"])))
    return found


def main(folder: Path = RESULTS) -> None:
    for number in (1, 2):
        experiment = EXPERIMENTS[number - 1]
        samples = part(load(experiment.data, SEED), "test")
        noise = experiment.laplace.sample(samples.truth, seed=SEED)
        loss = float(np.hypot(*(noise - samples.truth).T).mean())
        panels = [(f"planar Laplace, {loss:.0f} m", noise), ("no noise", samples.truth), *_learned(number, folder)]
        _save(panels, samples, 600.0, folder / f"scatter_{number}.png")
    path = folder / "cross_entropy.json"
    games: dict[str, Any] = read_json(path, what="the curves of cross entropy")["experiments"] if path.exists() else {}
    for number, played in games.items():
        if "reports_m" not in played.get("cross entropy", {}):
            continue
        samples = part(load(EXPERIMENTS[int(number) - 1].data, SEED), "test")
        shown = played["cross entropy"]["reports_m"]
        panels = [("no noise", samples.truth), *((f"after round {name}", np.array(reports)) for name, reports in shown.items())]
        _save(panels, samples, 600.0, folder / f"swapping_{number}.png")


if __name__ == "__main__":
    main()
