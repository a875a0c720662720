"""optimum.md, made from optimum.json: the intervals that replace the paper's "0.50" and "?".

python -m paper.pages.optimum
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import table
from sfumato.files import read_json, write_text


def _line(rows: list[dict[str, Any]], error: bool) -> list[str]:
    """One figure per seed: reached, bound on the grid, bound on the plane, and the gap."""
    names = ("leakage", "bound_grid", "bound_plane")
    figures = [
        " ".join(f"{1 - row[name] if error else row[name]:.4f}" for row in rows) for name in names
    ]
    gaps = [row["gap"] if error else 100 * row["gap"] / row["leakage"] for row in rows]
    return [*figures, f"{max(gaps):.4f}" if error else f"{max(gaps):.2f} %"]


def page(folder: Path = RESULTS) -> str:
    """What is reached and what is proved."""
    rows = read_json(folder / "optimum.json", what="the optima")["rows"]
    lines = []
    for objective, name in (("bayes", "Bayes error"), ("information", "information, bits")):
        for number in sorted({row["experiment"] for row in rows}):
            own = [
                row for row in rows if (row["objective"], row["experiment"]) == (objective, number)
            ]
            if own:  # a quick run has no information
                lines.append([f"{number}: {name}", *_line(own, objective == "bayes")])
    heads = ["experiment", "reached", "bound on the grid", "bound on the plane", "largest gap"]
    seeds = ", ".join(map(str, sorted({row["seed"] for row in rows})))
    return filled("optimum.md", optima=table(heads, lines), seeds=seeds)


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "optimum.md", page(folder))


if __name__ == "__main__":
    main()
