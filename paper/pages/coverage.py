"""coverage.md and its figure, made from coverage.json.

python -m paper.pages.coverage
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper.experiments import RESULTS
from paper.pages.game_figures import save
from paper.pages.template import filled
from paper.tables import table
from sfumato.files import read_json, write_text

_ROUNDING = 1e-5  # figures in the JSON are rounded to six digits


def _rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_json(folder / "coverage.json", what="coverage")["rows"]
    return rows


def _held(row: dict[str, Any]) -> dict[str, bool]:
    """Which of the statements about one population are true."""
    loss, low, high = row["loss"]
    error, at_least = row["error"]
    best, at_most = row["best"]
    between = row["interval"]
    each = {
        "loss": low - _ROUNDING <= loss <= high + _ROUNDING,
        "Bayes error at least": at_least <= error + _ROUNDING,
        "optimum at most": best <= at_most + _ROUNDING,
    }
    return {
        "all together": all(each.values()),
        **each,
        "Bayes error within its interval": (
            between[0] - _ROUNDING <= error <= between[1] + _ROUNDING
        ),
    }


def _size(row: dict[str, Any]) -> int:
    """Check-ins per user of each set."""
    return int(row["checkins"] // row["users"])


def _least(rows: list[dict[str, Any]], sizes: list[int]) -> str:
    """How often each statement holds by itself, for the statement and size where it does least."""
    shares = [
        np.mean([_held(row)[name] for row in rows if _size(row) == size])
        for size in sizes
        for name in _held(rows[0])
    ]
    return f"{min(shares):.1%}"


def _widths(rows: list[dict[str, Any]], sizes: list[int]) -> list[str]:
    lines = []
    for size in sizes:
        own = [row for row in rows if _size(row) == size]
        parts = {
            "bracket": [row["width"] for row in own],
            "above the optimum": [row["best"][1] - row["best"][0] for row in own],
            "below the Bayes error": [row["error"][0] - row["error"][1] for row in own],
            "loss interval": [(row["loss"][2] - row["loss"][1]) / row["loss"][0] for row in own],
        }
        said = [
            f"{np.median(values):.3f} ({np.quantile(values, 0.1):.3f} to"
            f" {np.quantile(values, 0.9):.3f})"
            for values in parts.values()
        ]
        lines.append([f"{size} per user", *said])
    heads = ["held-out check-ins", "bracket", "above the optimum", "below the Bayes error"]
    return table([*heads, "loss interval, of the loss"], lines)


def figure(folder: Path = RESULTS) -> None:
    """Width of the bracket against the number of held-out check-ins, one dot per population."""
    rows = _rows(folder)
    drawn = Figure(figsize=(6.5, 3.8), layout="constrained", dpi=120)
    FigureCanvasAgg(drawn)
    axes = drawn.subplots()
    kinds = {
        "bracket of the optimum, l to u": ("#0072B2", lambda row: row["width"]),
        "u above the optimum": ("#D55E00", lambda row: row["best"][1] - row["best"][0]),
    }
    for name, (colour, value) in kinds.items():
        checkins = np.array([row["checkins"] for row in rows])
        widths = np.array([value(row) for row in rows])
        axes.scatter(checkins, widths, s=4, alpha=0.3, color=colour, linewidths=0)
        at = np.unique(checkins)
        medians = [np.median(widths[checkins == one]) for one in at]
        axes.plot(at, medians, color=colour, label=f"{name} (median)")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.002, 1)
    axes.set_xlabel("held-out check-ins")
    axes.set_ylabel("difference of Bayes errors")
    axes.legend(frameon=False)
    save(drawn, folder / "coverage.png")


def page(folder: Path = RESULTS) -> str:
    """How often it holds, and how narrow it is."""
    document = read_json(folder / "coverage.json", what="coverage")
    rows = document["rows"]
    sizes = sorted({_size(row) for row in rows})
    fitted = [row for row in rows if row["fitted"] is not None]
    bounded = [row["fitted"] >= row["best"][0] - _ROUNDING for row in fitted]
    above = [row["fitted"] - row["best"][0] for row in fitted]
    shared = [row for row in rows if row["shared"] and _size(row) == sizes[-1]]
    alone = [row for row in rows if not row["shared"] and _size(row) == sizes[-1]]
    return filled(
        "coverage.md",
        populations=len({row["population"] for row in rows}),
        minutes=f"{document['seconds'] / 60:.1f}",
        together=f"{np.mean([_held(row)['all together'] for row in rows]):.1%}",
        trials=len(rows),
        least=_least(rows, sizes),
        widths=_widths(rows, sizes),
        fitted_count=len(fitted),
        fitted_size=_size(fitted[0]),
        fitted_held=f"{np.mean(bounded):.1%}",
        fitted_above=f"{np.median(above):.3f}",
        shared_above=f"{np.median([row['best'][1] - row['best'][0] for row in shared]):.3f}",
        alone_above=f"{np.median([row['best'][1] - row['best'][0] for row in alone]):.3f}",
    )


def main(folder: Path = RESULTS) -> None:
    figure(folder)
    write_text(folder / "coverage.md", page(folder))


if __name__ == "__main__":
    main()
