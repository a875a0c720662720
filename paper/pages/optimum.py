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


def _program(row: dict[str, Any]) -> list[str]:
    counts = (row[name] for name in ("variables", "pairs", "pairs_touched"))
    processor = f"{row['processor_seconds']:.0f}" if "processor_seconds" in row else ""
    return [
        *(f"{count:,}" for count in counts),
        f"{row['seconds']:.0f}",
        processor,
        f"{row['check_seconds']:.0f}",
        f"{row['peak_mb']:.0f}",
        f"{row['certificate_bytes'] / 1000:.0f}",
        f"`{row['certificate_sha256'][:16]}`",
    ]


def _test(row: dict[str, Any]) -> list[str]:
    test = row["test"]
    return [
        f"{row['loss_m']:.1f}",
        f"{test['loss_m']:.1f}",
        f"{row['bayes_error']:.3f}",
        f"{test['bayes_error']:.3f}",
        f"{test['learnt_error']:.3f}",
        f"{row['exposed']:.1%}",
    ]


def page(folder: Path = RESULTS) -> str:
    """Bounds, the size of the program, and the same mechanisms on test data."""
    rows = read_json(folder / "optimum.json", what="the optima")["rows"]

    def of(objective: str, cells: Any, heads: list[str]) -> list[str]:
        chosen = [row for row in rows if row["objective"] == objective]
        lines = [[str(row["experiment"]), str(row["seed"]), *cells(row)] for row in chosen]
        return table(["experiment", "seed", *heads], lines)

    def of_all(cells: Any, heads: list[str]) -> list[str]:
        lines = [
            [str(row["experiment"]), row["objective"], str(row["seed"]), *cells(row)]
            for row in rows
        ]
        return table(["experiment", "objective", "seed", *heads], lines)

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
        program=of_all(
            _program,
            [
                "variables, the paper's count",
                "that can matter",
                "touched",
                "seconds",
                "of processor",
                "check, seconds",
                "peak MB",
                "certificate, kB",
                "SHA-256",
            ],
        ),
        test=of_all(
            _test,
            [
                "loss, training",
                "loss, test",
                "B(X\\|Z), training",
                "B(X\\|Z), test",
                "learnt, test",
                "exposed, training",
            ],
        )[:-1],
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "optimum.md", page(folder))


if __name__ == "__main__":
    main()
