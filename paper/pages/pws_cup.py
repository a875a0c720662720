"""pws_cup.md, made from pws_cup.json and the contest's printed rows.

python -m paper.pages.pws_cup
"""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.pws_cup import LAPLACE
from paper.tables import table
from sfumato.files import read_json, write_text

_SCORES = ("I2", "I3", "T2", "T3")
_FAR = ("laplace-1", "laplace-6", "laplace-7")  # from the utility of every codebook
_CHECKED = {"none": "A1"} | {f"laplace-{each:g}": f"A4-{each:g}-1" for each in LAPLACE}


def _name(name: str) -> str:
    kind, *numbers = name.split("-")
    if kind == "laplace":
        return f"planar Laplace, {numbers[0]} per km"
    if kind == "codebook":
        objective = ", information" if numbers[2] == "information" else ""
        return f"codebook, {numbers[0]} m, for {numbers[1]}{objective}"
    return "no protection"


def _mean(values: list[float]) -> str:
    return f"{fmean(values):.3f}"


def _apart(row: dict[str, Any]) -> float:
    scores = ("utility", *_SCORES, "law_known")
    return max(max(row[score]) - min(row[score]) for score in scores)


def _verdict(rows: dict[str, Any]) -> str:
    """Each codebook beside planar Laplace noise of the same utility, which lies between two of its
    rows: who knows the law."""
    noise = sorted(
        (fmean(row["utility"]), fmean(row["law_known"]))
        for name, row in rows.items()
        if name.startswith("laplace")
    )
    more: dict[str, list[float]] = {}
    for name, row in rows.items():
        if name.startswith("codebook"):
            beside = float(np.interp(fmean(row["utility"]), *zip(*noise, strict=True)))
            more.setdefault(name.split("-")[1], []).append(fmean(row["law_known"]) - beside)
    parts = [f"{min(each):+.3f} to {max(each):+.3f} at {m} m" for m, each in more.items()]
    return (
        "*Law known* of the codebooks minus that of planar Laplace noise of the same utility"
        f" (interpolated): {', '.join(parts)}."
    )


def page(folder: Path = RESULTS) -> str:
    """Ours beside theirs."""
    found = read_json(folder / "pws_cup.json", what="results of the contest's scores")["rows"]
    rows = {row["name"]: row for row in found if "printed" not in row}
    printed: dict[str, Any] = {row["name"]: row["printed"] for row in found if "printed" in row}
    worst = max(
        abs(fmean(rows[name][score]) - printed[theirs]["Util" if score == "utility" else score])
        for name, theirs in _CHECKED.items()
        for score in ("utility", *_SCORES)
    )
    ours = [
        [
            _name(name),
            f"{row['loss_m']:.0f}",
            *(_mean(row[score]) for score in ("utility", *_SCORES, "law_known")),
        ]
        for name, row in sorted(rows.items(), key=lambda one: -fmean(one[1]["utility"]))
        if name not in _FAR
    ]
    heads = ["utility ↑", *(f"{score} ↑" for score in _SCORES)]
    return filled(
        "pws_cup.md",
        worst=f"{worst:.3f}",
        spread=f"{max(_apart(row) for row in rows.values()):.3f}",
        verdict=_verdict(rows),
        ours=table(["mechanism", "loss, m", *heads, "law known ↑"], ours),
    )


if __name__ == "__main__":
    write_text(RESULTS / "pws_cup.md", page())
