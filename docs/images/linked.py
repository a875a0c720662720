"""The picture of the page on linked reports: how fast the reports of one user add up.

Four users, ten check-ins each, 173 m allowed on average.  Left, mechanisms for one report, for ten
and for endless ones, and what is left of each after n reports.  Right, users two by two: how alike
their reports are.  Run it from the root of the repository: .venv/bin/python docs/images/linked.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import sfumato as sf

BUDGET_M = 173.0
COUNTS = (1, 2, 3, 5, 10, 20, 50, 100)
COLOURS = {1: "#d55e00", 10: "#0072b2", "endless": "#009e73"}

data = sf.four_corners(0).train.split(10).train
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), constrained_layout=True)
for number, (made_for, colour) in enumerate(COLOURS.items()):
    problem = sf.Problem(data, max_loss=BUDGET_M, cell_m=100, reports=made_for)
    seen = sf.solve(problem, sf.Exact(plane=False)).measured.joint
    errors = sf.measure.linked_bayes_error(seen, COUNTS)
    alike = sf.measure.overlaps(seen)[np.triu_indices(4, 1)]
    name = f"for {made_for} report{'' if made_for == 1 else 's'}"
    left.plot(COUNTS, [error.value for error in errors], "o-", color=colour, label=name)
    right.plot(np.sort(alike), np.full(6, 2 - number), "o", color=colour, markersize=9, alpha=0.6)
    figures = ", ".join(f"{n}: {e.value:.3f}" for n, e in zip(COUNTS, errors, strict=True))
    print(f"{name}: Bayes error of n reports {figures}; overlaps {np.sort(alike).round(3)}")
endless = sf.solve(sf.Problem(data, cell_m=100, reports="endless"), sf.Exact())
print(f"linking is useless from {endless.loss:.1f} m on")
left.axhline(0.75, color="#222222", linewidth=0.8, linestyle=":")
left.annotate("a blind guess", (1, 0.76), fontsize=9)
left.set(xscale="log", xlabel="reports of one user seen together", ylabel="Bayes error")
left.set_xticks(COUNTS, [str(count) for count in COUNTS])
left.minorticks_off()
left.set(ylim=(0, 0.82), title=f"Within {BUDGET_M:g} m")
left.legend(frameon=False, fontsize=9)
right.set(xlim=(-0.03, 1.03), ylim=(-0.6, 2.6), yticks=[0, 1, 2])
right.set_yticklabels(["for endless", "for 10", "for 1 report"])
right.set(xlabel="overlap of two users per report (1: never told apart)", title="All six pairs")
for axes in (left, right):
    axes.title.set_fontsize(10)
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=130, metadata={"Software": None})
