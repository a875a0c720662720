"""The README's picture: where four users are, and what two mechanisms say of them.

Run it from the root of the repository: .venv/bin/python docs/images/demo.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import sfumato as sf

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e0a800")
HALF_M = 650

data = sf.four_corners(seed=0)
problem = sf.Problem(data.train, max_loss=173)
solutions = [sf.solve(problem, solver, seed=0) for solver in (sf.Laplace(), sf.Coin())]
panels = {"truth": data.test.truth}
for solution in solutions:
    panels[f"{solution.name}: {solution.loss:.0f} m off on average"] = solution.mechanism.sample(
        data.test.truth, seed=7
    )

figure, axes = plt.subplots(1, len(panels), figsize=(9, 3.3), constrained_layout=True)
order = np.random.default_rng(0).permutation(
    len(data.test)
)  # so that no user is painted over by another
for axis, (title, points) in zip(axes, panels.items(), strict=True):
    colours = np.array(COLOURS)[data.test.secret[order]]
    axis.scatter(*points[order].T, s=9, c=colours, alpha=0.75, linewidths=0)
    axis.plot([-HALF_M + 50, -HALF_M + 250], [-HALF_M + 50] * 2, color="black", linewidth=2)
    axis.text(-HALF_M + 150, -HALF_M + 70, "200 m", ha="center", fontsize=8)
    if title.startswith("coin"):
        always = (points == np.array(solutions[1].mechanism.place)).all(axis=1).sum()
        axis.annotate(
            f"{always} of {len(points)} reports",
            (0, 0),
            (0, 330),
            ha="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": "black"},
        )
    axis.set(
        title=title,
        xlim=(-HALF_M, HALF_M),
        ylim=(-HALF_M, HALF_M),
        aspect="equal",
        xticks=[],
        yticks=[],
    )
    axis.title.set_fontsize(10)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=130, metadata={"Software": None})
