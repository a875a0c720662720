"""The README's picture: where four users are, and what two mechanisms say of them.

Run it from the root of the repository, after make demo: .venv/bin/python docs/images/demo.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import sfumato as sf
from sfumato.study.folder import load_run

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e0a800")
HALF_M = 450
RUNS = {"laplace": "planar Laplace", "codebook": "learned"}

data = sf.four_corners(seed=0)
panels = {"true places\nof four users": data.test.truth}
for name, title in RUNS.items():
    run = load_run(Path("demo") / name)
    wrong = 100 * run.record.test["bayes_error"]["value"]
    panels[f"{title}:\nbest guess wrong {wrong:.0f} %"] = run.mechanism.sample(
        data.test.truth, seed=7
    )

figure, axes = plt.subplots(1, len(panels), figsize=(9, 3.6), constrained_layout=True)
order = np.random.default_rng(0).permutation(
    len(data.test)
)  # so that no user is painted over by another
scatter = np.random.default_rng(1).normal(0, 9, data.test.truth.shape)
for number, (axis, (title, points)) in enumerate(zip(axes, panels.items(), strict=True)):
    colours = np.array(COLOURS)[data.test.secret[order]]
    shown = points + scatter * (number > 0)  # reports share cells: 9 m apart, to be seen
    axis.scatter(*shown[order].T, s=9, c=colours, alpha=0.75, linewidths=0)
    axis.plot([-HALF_M + 40, -HALF_M + 240], [-HALF_M + 40] * 2, color="black", linewidth=2)
    axis.text(-HALF_M + 140, -HALF_M + 55, "200 m", ha="center", fontsize=11)
    axis.set(
        title=title,
        xlim=(-HALF_M, HALF_M),
        ylim=(-HALF_M, HALF_M),
        aspect="equal",
        xticks=[],
        yticks=[],
    )
    axis.title.set_fontsize(15)  # legible on a phone
figure.savefig(Path(__file__).with_suffix(".png"), dpi=130, metadata={"Software": None})
