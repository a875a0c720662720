"""overlap.md, made from overlap.json.

python -m paper.pages.overlap
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import CELLS, RESULTS, SPLITS
from paper.pages.results_by_column import said
from paper.pages.template import filled
from paper.printed import targets
from paper.tables import table
from sfumato.files import read_json, write_text

_NAMES = {"laplace": "planar Laplace", "coin": "coin", "nobody_above": "nobody above"}


def _without_noise(rows: list[dict[str, Any]], weights: list[float]) -> list[str]:
    """Beside the printed errors, which are what there is to choose a weight by."""
    printed = {
        (one.split, one.cells): one.bayes_error
        for one in targets("none")
        if one.experiment == "gowalla"
    }
    keys = [(split, cells) for split in SPLITS for cells in CELLS]
    lines = [["the paper", *(f"{printed[key]:.2f}" for key in keys)]]
    for weight in weights:
        found = [
            [row["none"][split][str(cells)] for row in rows if row["weight"] == weight]
            for split, cells in keys
        ]
        lines.append([f"weight {weight:g}", *(said(values, 2) for values in found)])
    return table(["", *(f"{split}, {cells} cells" for split, cells in keys)], lines)


def _mechanisms(rows: list[dict[str, Any]], weights: list[float], number: str) -> list[str]:
    keys = [
        (name, split)
        for name in _NAMES
        for split in SPLITS
        if any(split in row[number].get(name, {}) for row in rows)
    ]
    lines = []
    for weight in weights:
        line = [f"weight {weight:g}"]
        for name, split in keys:
            values = [
                row[number][name][split]
                for row in rows
                if row["weight"] == weight and name in row[number]
            ]
            line.append(said(values, mark="≤ " if name == "nobody_above" else ""))
        lines.append(line)
    return table(["", *(f"{_NAMES[name]}, {split}" for name, split in keys)], lines)


def _moves(rows: list[dict[str, Any]], weights: list[float]) -> str:
    """How far the figures of experiment 4 go from the strictest filter to none."""

    def ends(name: str, split: str) -> str:
        both = [
            [row["4"][name][split] for row in rows if row["weight"] == w and name in row["4"]]
            for w in (weights[0], weights[-1])
        ]
        return " to ".join(f"{median(values):.3f}" for values in both)

    told = [
        f"{name} from {ends(key, 'train')}"
        for key, name in (("laplace", "planar Laplace"), ("coin", "the coin"))
    ]
    told.append(f"the proven bound from {ends('nobody_above', 'train')}")
    return (
        f"From weight {weights[0]:g} to {weights[-1]:g}, experiment 4, training data:"
        f" {', '.join(told)}."
    )


def page(folder: Path = RESULTS) -> str:
    """What each weight gives."""
    rows = read_json(folder / "overlap.json", what="draws by the filter's weight")["rows"]
    weights = sorted({row["weight"] for row in rows})
    draws = sorted({row["seed"] for row in rows})
    deep = sorted({row["seed"] for row in rows if "nobody_above" in row["4"]})
    return filled(
        "overlap.md",
        draws=", ".join(map(str, draws)),
        deep=", ".join(map(str, deep)),
        moves=_moves(rows, weights),
        without_noise=_without_noise(rows, weights),
        mechanisms=(
            (number, budget, "\n".join(_mechanisms(rows, weights, number)))
            for number, budget in (("3", "1150"), ("4", "518"))
        ),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "overlap.md", page(folder))


if __name__ == "__main__":
    main()
