"""The picture of the page on certificates: a truth picks the lowest point of score + price x
distance.

Alice lives at 0 m and Bob at 100 m of a street; 40 m of loss are allowed on average.  Two
adversaries commit to how often they guess "Alice" on a report at each place.  Bob's curves are the
mirror images. Run it from the root of the repository: .venv/bin/python docs/images/certificate.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

BUDGET_M, PRICE = 40.0, 0.01  # price: chance of a right guess a metre
BLUE, ORANGE, INK = "#0072b2", "#d55e00", "#222222"

place = np.linspace(-20, 120, 1401)
adversaries = {
    "Guess whoever lives nearer": np.where(place < 50, 1.0, 0.0),
    "Guess in shares": np.clip(1 - place / 100, 0, 1),
}
figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.8), constrained_layout=True, sharey=True)
for axes, (title, score) in zip(panels, adversaries.items(), strict=True):
    cost = score + PRICE * np.abs(place)
    value = float(cost.min())
    bound = value - PRICE * BUDGET_M
    lowest = np.flatnonzero(cost <= value + 1e-9)
    axes.plot(
        place, score, "--", color=ORANGE, linewidth=2, label='score: chance of the guess "Alice"'
    )
    axes.plot(place, cost, color=BLUE, linewidth=2, label="score + price × distance from Alice")
    axes.plot(
        place[lowest], cost[lowest], color=BLUE, linewidth=9, alpha=0.35, solid_capstyle="round"
    )
    axes.plot(place[lowest[[0, -1]]], cost[lowest[[0, -1]]], "o", color=BLUE, markersize=7)
    middle = float(place[lowest].mean())
    axes.annotate(
        "", (middle, bound), (middle, value), arrowprops={"arrowstyle": "->", "color": INK}
    )
    axes.annotate(
        "price × budget", (middle + 3, (bound + value) / 2), fontsize=9, va="center", color=INK
    )
    axes.axhline(bound, color=INK, linewidth=1)
    axes.annotate(
        f"proved: {value:.1f} − {PRICE * BUDGET_M:.1f} = {bound:.1f}",
        (118, bound + 0.025),
        ha="right",
        fontsize=9,
        color=INK,
    )
    for home, name in ((0, "Alice"), (100, "Bob")):
        axes.axvline(home, color=INK, linewidth=0.8, linestyle=":")
        axes.annotate(
            name, (home, 1.46), ha="center", fontsize=9, color=INK, backgroundcolor="white"
        )
    axes.set(title=title, xlabel="report, metres along the street", ylim=(0, 1.6))
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.25)
panels[0].set_ylabel("chance of a right guess")
figure.legend(
    *panels[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=2,
    frameon=False,
    fontsize=9,
)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=130, metadata={"Software": None})
