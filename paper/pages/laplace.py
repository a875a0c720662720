"""laplace.md: every planar Laplace figure and every figure without noise.

python -m paper.pages.laplace
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import finished, table
from sfumato.files import read_json, write_text

_HEADS = ["data", "cells a side", "hits", "ours", "lowest to highest", "exact on the grid"]
_HEADS += ["theirs", "difference", "allowed", ""]
_LOSSES = ["experiment", "data", "expected 2/epsilon", "ours, all reports"]
_LOSSES += ["ours, one report a point", "theirs", "theirs, in standard errors"]


def _row(row: dict[str, Any]) -> list[str]:
    mark = ("" if row["within"] else "**out**") + (" doubtful" if row["kind"] == "doubtful" else "")
    return [
        row["split"],
        str(row["cells"]),
        str(row["hits"]),
        f"{row['ours']:.3f}",
        f"{min(row['by_seed']):.3f} to {max(row['by_seed']):.3f}",
        f"{row['exact']:.3f}",
        f"{row['theirs']:.2f}",
        f"{row['difference']:+.3f}",
        f"{row['tolerance']:.2f}",
        mark.strip(),
    ]


def _loss(row: dict[str, Any]) -> list[str]:
    away = (row["theirs_m"] - row["expected_m"]) / row["one_report_error_m"]
    return [
        str(row["experiment"]),
        row["split"],
        f"{row['expected_m']:.2f}",
        f"{row['ours_m']:.2f}",
        f"{min(row['ours_one_report_m']):.1f} to {max(row['ours_one_report_m']):.1f}",
        f"{row['theirs_m']:.2f}",
        f"{away:+.1f}",
    ]


def page(folder: Path = RESULTS) -> str:
    """All rows, ours beside theirs."""
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")
    bare = read_json(folder / "no_noise.json", what="the tables without noise")
    parts = [(f"Experiment {number}", laplace, number) for number in "1234"]
    parts += [(f"No noise: {name}", bare, name) for name in ("synthetic", "gowalla")]
    return filled(
        "laplace.md",
        seeds=", ".join(str(seed) for seed in laplace["seeds"]),
        finished_laplace=finished("planar Laplace", laplace["rows"]),
        finished_bare=finished("No noise", bare["rows"]),
        doubtful=(row for row in laplace["rows"] if row["doubt"]),
        losses=table(_LOSSES, [_loss(row) for row in laplace["losses"]]),
        tables=(
            (
                heading,
                "\n".join(
                    table(
                        _HEADS, [_row(row) for row in document["rows"] if row["experiment"] == key]
                    )
                ),
            )
            for heading, document, key in parts
        ),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "laplace.md", page(folder))


if __name__ == "__main__":
    main()
