"""laplace.md: the losses of planar Laplace noise, and the rows in doubt.

python -m paper.pages.laplace
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import table
from sfumato.files import read_json, write_text

_LOSSES = ["experiment", "data", "expected loss 2/epsilon, m", "ours"]
_LOSSES += ["ours, one report per point", "the paper's", "off by standard errors"]


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
    """The losses and the doubtful rows, ours beside theirs."""
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")
    return filled(
        "laplace.md",
        seeds=", ".join(str(seed) for seed in laplace["seeds"]),
        doubtful=(row for row in laplace["rows"] if row["doubt"]),
        losses=table(_LOSSES, [_loss(row) for row in laplace["losses"]]),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "laplace.md", page(folder))


if __name__ == "__main__":
    main()
