"""approximate.md, made from approximate.json and weeks.json.

python -m paper.pages.approximate
"""

import math
from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.approximate import BESIDE, CITIES, COUNTS, DRIFTING, RULES, THRESHOLDS, wanted
from paper.runs.linked import DRAW
from paper.tables import table
from sfumato.files import read_json, write_text

_NAMES = {"paris": "Paris", "stockholm": "Stockholm", "san-francisco": "San Francisco"}
_WHO = {"law": "law", "history": "named history", "period": "one period", "all": "sees all"}
_OLD = ("truth", "snapped to", "planar laplace", "codebook for 1")  # rows of weeks.json

Rows = dict[tuple[str, str, int], dict[str, Any]]


def _figures(row: dict[str, Any], part: str) -> list[str]:
    found = row[part]
    return [
        f"{found['loss_m']:,.0f}",
        f"{found['bayes_error']:.3f}",
        f"{found['information_bits']:.2f}",
        f"{found['worst_report']:.2f}",
    ]


def _within(rows: Rows, city: str, budget: int) -> list[list[str]]:
    """Planar Laplace, the codebook and the bound at a budget, as far as they were run."""
    lines = [
        [_NAMES[city], name, f"{budget:,}", *_figures(row, "train")]
        for name in BESIDE
        if (row := rows.get((city, name, budget))) is not None
    ]
    proof = rows.get((city, "proof", budget))
    if proof is not None:
        most = 1 - proof["bounds"][1]
        lines.append(
            [_NAMES[city], "no mechanism", f"{budget:,}", "-", f"above {most:.3f}", "-", "-"]
        )
    return lines


def _one_report(rows: Rows) -> list[str]:
    lines = []
    for city in CITIES:
        lines.append([_NAMES[city], "the truth", "-", *_figures(rows[city, "truth", 0], "train")])
        for rule in RULES:
            row = rows[city, rule, 0]
            lines.append([_NAMES[city], f"**{rule}**", "-", *_figures(row, "train")])
            lines += _within(rows, city, math.ceil(row["train"]["loss_m"]))
    return table(_heads("budget, m"), lines)


def _heads(*more: str) -> list[str]:
    figures = ["loss, m", "Bayes error ↑", "bits ↓", "worst report ↓"]
    return ["data", "reported", *more, *figures]


def _several(errors: list[list[Any]]) -> list[str]:
    return [("" if kind == "exact" else "≈") + f"{value:.3f}" for kind, value, *_ in errors]


def _moving(rows: Rows) -> list[str]:
    lines = []
    for city in CITIES:
        for rule in ("truth", *RULES):
            found = rows[city, rule, 0]["train"]
            lines.append([_NAMES[city], rule, *_several(found["linked"])])
            if "drifting" in found:
                lines.append([_NAMES[city], f"{rule}, one offset", *_several(found["drifting"])])
        budget = math.ceil(rows[city, "Android", 0]["train"]["loss_m"])
        for name in BESIDE:
            row = rows.get((city, name, budget))
            if row is not None:
                lines.append([_NAMES[city], name, *_several(row["train"]["linked"])])
    return table(["data", "reported", *(f"B{count}" for count in COUNTS)], lines)


def _weeks(rows: Rows, folder: Path) -> list[str]:
    old = read_json(folder / "weeks.json", what="weeks")["rows"]
    told = [
        (row["loss_m"], row["reported"], row["found"])
        for row in old
        if row["reported"].startswith(_OLD) and row["kept"] == "never"
    ]
    for name in ("Android", DRIFTING, "WebKit"):
        row = rows["weeks", name, 0]
        told.append((row["loss_m"], f"**{name}**", row["found"]))
    lines = []
    for loss, name, found in sorted(told, key=lambda one: one[0]):
        shares = (tuple(100 * part for part in found[who]) for who in _WHO)
        cells = [f"{value:.1f} ({low:.0f} to {high:.0f})" for value, low, high in shares]
        lines.append([name, f"{loss:,.0f}", *cells])
    return table(["reported", "loss, m", *_WHO.values()], lines)


def _held_out(rows: Rows) -> list[str]:
    order = ("truth", *RULES, *BESIDE)
    found = [key for key, row in rows.items() if "test" in row]
    found.sort(key=lambda key: (CITIES.index(key[0]), order.index(key[1]), key[2]))
    lines = [
        [
            _NAMES[city],
            name,
            "-" if not budget else f"{budget:,}",
            *_figures(rows[city, name, budget], "test"),
        ]
        for city, name, budget in found
    ]
    return table(_heads("budget, m"), lines)


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def page(folder: Path = RESULTS) -> str:
    """Every row that was run."""
    made = read_json(folder / "approximate.json", what="results on approximate location")["rows"]
    rows: Rows = {(row["data"], row["reported"], row["budget_m"]): row for row in made}
    blind = {f"{rows[city, 'truth', 0]['train']['blind']:.3f}" for city in CITIES}
    thresholds = [
        line for city in CITIES for budget in THRESHOLDS for line in _within(rows, city, budget)
    ]
    ruled, learned = [], []
    for city in CITIES:
        for rule in list(RULES)[:2]:
            found = rows[city, rule, 0]["train"]
            beside = rows.get((city, "codebook", math.ceil(found["loss_m"])))
            if beside is not None:
                ruled.append(found["bayes_error"])
                learned.append(beside["train"]["bayes_error"])
    left = [one for one in wanted(folder / "approximate.json") if one not in rows]
    missing = "; ".join(f"{_NAMES[city]}, {name}, {budget} m" for city, name, budget in left)
    fifty = [rows[city, rule, 0]["train"]["linked"][-1][1] for city in CITIES for rule in RULES]
    return filled(
        "approximate.md",
        missing=f"Not run yet: {missing}. " if missing else "",
        fifty=_range(fifty),
        ruled=_range(ruled),
        learned=_range(learned),
        draw=f"draw {DRAW}",
        blind=" or ".join(sorted(blind)),
        one=_one_report(rows),
        moving=_moving(rows),
        weeks=_weeks(rows, folder),
        thresholds=table(_heads("budget, m"), thresholds),
        held_out=_held_out(rows),
    )


if __name__ == "__main__":
    write_text(RESULTS / "approximate.md", page())
