"""optimum.md, made from optimum.json: the intervals that replace the paper's "0.50" and "?".

python -m paper.pages.optimum
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import table
from sfumato.files import read_json, write_text


def _bayes(row: dict[str, Any]) -> list[str]:
    errors = (1 - row[name] for name in ("leakage", "bound_grid", "bound_plane"))
    return [row["printed"], *(f"{error:.4f}" for error in errors), f"{row['gap']:.4f}"]


def _information(row: dict[str, Any]) -> list[str]:
    bits = (row[name] for name in ("leakage", "bound_grid", "bound_plane"))
    return [*(f"{value:.4f}" for value in bits), f"{100 * row['gap'] / row['leakage']:.2f}"]


def page(folder: Path = RESULTS) -> str:
    """What is reached and what is proved."""
    rows = read_json(folder / "optimum.json", what="the optima")["rows"]

    def of(objective: str, cells: Any, heads: list[str]) -> list[str]:
        chosen = [row for row in rows if row["objective"] == objective]
        lines = [[str(row["experiment"]), str(row["seed"]), *cells(row)] for row in chosen]
        return table(["experiment", "seed", *heads], lines)

    return filled(
        "optimum.md",
        bayes=of(
            "bayes",
            _bayes,
            [
                "the paper's optimum",
                "ours reaches",
                "nobody on the grid above",
                "nobody on the plane above",
                "gap",
            ],
        ),
        information=of(
            "information",
            _information,
            ["ours, bits", "nobody on the grid below", "nobody on the plane below", "gap, %"],
        ),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "optimum.md", page(folder))


if __name__ == "__main__":
    main()
