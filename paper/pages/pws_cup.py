"""pws_cup.md, made from pws_cup.json and the contest's printed rows.

python -m paper.pages.pws_cup
"""

from pathlib import Path
from statistics import fmean
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.pws_cup import LAPLACE
from paper.tables import table
from sfumato.files import read_json, write_text

_SCORES = ("I2", "I3", "T2", "T3")
_CHECKED = {"none": "A1"} | {f"laplace-{each:g}": f"A4-{each:g}-1" for each in LAPLACE}


def _name(name: str) -> str:
    kind, *numbers = name.split("-")
    if kind == "laplace":
        return f"planar Laplace, {numbers[0]} per km"
    if kind == "codebook":
        return f"codebook, {numbers[0]} m, for {numbers[1]}"
    return "no protection"


def _spread(values: list[float]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{fmean(values):.3f} ({low} to {high})"


def page(folder: Path = RESULTS) -> str:
    """Ours beside theirs."""
    found = read_json(folder / "pws_cup.json", what="results of the contest's scores")["rows"]
    rows = {row["name"]: row for row in found if "printed" not in row}
    printed: dict[str, Any] = {row["name"]: row["printed"] for row in found if "printed" in row}
    checked, worst = [], 0.0
    for name, theirs in _CHECKED.items():
        if name not in rows:
            continue
        cells = [_name(name), theirs]
        for score in ("utility", *_SCORES):
            value = printed[theirs]["Util" if score == "utility" else score]
            off = fmean(rows[name][score]) - value
            worst = max(worst, abs(off))
            cells.append(f"{_spread(rows[name][score])} / {value:.3f}")
        checked.append(cells)
    ours = [
        [
            _name(name),
            f"{row['loss_m']:.0f}",
            *(_spread(row[score]) for score in ("utility", *_SCORES, "law_known")),
        ]
        for name, row in sorted(rows.items(), key=lambda one: -fmean(one[1]["utility"]))
    ]
    heads = ["utility ↑", *(f"{score} ↑" for score in _SCORES)]
    return filled(
        "pws_cup.md",
        checked=table(
            ["mechanism", "printed row", *(f"{head}, ours / theirs" for head in heads)], checked
        ),
        worst=f"{worst:.3f}",
        ours=table(["mechanism", "loss, m", *heads, "law known ↑"], ours),
    )


if __name__ == "__main__":
    write_text(RESULTS / "pws_cup.md", page())
