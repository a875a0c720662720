"""overlap.md, made from overlap.json.

python -m paper.pages.overlap
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import CELLS, RESULTS, SPLITS
from paper.pages.template import filled
from paper.printed import targets
from paper.tables import table
from sfumato.files import read_json, write_text

_NAMES = {"laplace": "planar Laplace", "coin": "coin", "nobody_above": "none above"}


def _without_noise(rows: list[dict[str, Any]], weights: list[float]) -> list[str]:
    """Beside the printed errors, which are what there is to choose a weight by."""
    printed = {
        (one.split, one.cells): one.bayes_error
        for one in targets("none")
        if one.experiment == "gowalla"
    }
    lines = [
        ["the paper", *(" ".join(f"{printed[part, n]:.2f}" for n in CELLS) for part in SPLITS)]
    ]
    for weight in weights:
        own = [row["none"] for row in rows if row["weight"] == weight]
        figures = [
            " ".join(f"{median(row[part][str(n)] for row in own):.2f}" for n in CELLS)
            for part in SPLITS
        ]
        lines.append([f"weight {weight:g}", *figures])
    return table(["", "training", "test"], lines)


def _mechanisms(rows: list[dict[str, Any]], weights: list[float]) -> list[str]:
    """Medians on training and test data, by experiment and mechanism."""
    keys = [(number, name) for number in ("3", "4") for name in _NAMES]
    keys.remove(("3", "nobody_above"))
    keys.remove(("3", "coin"))  # a blind guess for every weight
    lines = []
    for weight in weights:
        own = [row for row in rows if row["weight"] == weight]
        line = [f"weight {weight:g}"]
        for number, name in keys:
            found = [row[number][name] for row in own if name in row[number]]
            parts = [part for part in SPLITS if part in found[0]]
            figures = " ".join(f"{median(one[part] for one in found):.3f}" for part in parts)
            line.append(figures)
        lines.append(line)
    return table(["", *(f"{number}: {_NAMES[name]}" for number, name in keys)], lines)


def page(folder: Path = RESULTS) -> str:
    """What each weight gives."""
    rows = read_json(folder / "overlap.json", what="draws by the filter's weight")["rows"]
    weights = sorted({row["weight"] for row in rows})
    draws = sorted({row["seed"] for row in rows})
    deep = sorted({row["seed"] for row in rows if "nobody_above" in row["4"]})
    return filled(
        "overlap.md",
        draws=f"{draws[0]} to {draws[-1]}",
        deep=", ".join(map(str, deep)),
        without_noise=_without_noise(rows, weights),
        mechanisms=_mechanisms(rows, weights),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "overlap.md", page(folder))


if __name__ == "__main__":
    main()
