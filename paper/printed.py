"""What the paper printed: targets.csv (Bayes errors) and figures.csv (the rest)."""

import csv
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Target:
    """A number that the paper printed, how it was got, and our doubt where we have one."""

    experiment: str
    split: str
    mechanism: str
    cells: int
    hits: int
    bayes_error: float
    kind: str
    doubt: str

    @property
    def tolerance(self) -> float:
        """How far ours may lie: 0.07 on Gowalla (their selection is not published), else 0.02, or
        0.04 at 10 hits."""
        if self.experiment in ("3", "4", "gowalla"):
            return 0.07
        return 0.04 if self.hits == 10 else 0.02


def targets(mechanism: str) -> list[Target]:
    """What targets.csv holds for "laplace", "learned" or "none"."""
    with (_HERE / "targets.csv").open(encoding="utf-8") as source:
        rows = [row for row in csv.DictReader(source) if row["mechanism"] == mechanism]
    return [
        Target(
            experiment=row["experiment"],
            split=row["split"],
            mechanism=mechanism,
            cells=int(row["cells_per_side"]),
            hits=int(row["hits"]),
            bayes_error=float(row["bayes_error"]),
            kind=row["kind"],
            doubt=row["doubt"],
        )
        for row in rows
    ]


def figures() -> list[dict[str, str]]:
    """What figures.csv holds: losses, budgets, optima, accuracies and F1 scores, as printed."""
    with (_HERE / "figures.csv").open(encoding="utf-8") as source:
        return list(csv.DictReader(source))


def printed_loss(experiment: int, split: str, mechanism: str) -> float:
    """The loss in metres that the paper measured."""
    for row in figures():
        if (row["experiment"], row["quantity"], row["split"], row["mechanism"]) == (
            str(experiment),
            "loss",
            split,
            mechanism,
        ):
            return float(row["value"])
    raise LookupError(
        f"figures.csv has no loss of {mechanism} in experiment {experiment} on {split} data"
    )
