"""approximate.md, made from approximate.json.

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

_SHOWN = tuple(rule for rule in RULES if rule != "snap to 5 km")  # WebKit's grid is as wide
Rows = dict[tuple[str, str, int], dict[str, Any]]


def _both(row: dict[str, Any] | None, figure: str, digits: int) -> str:
    """A figure on training and on held-out check-ins."""
    if row is None:
        return "-"
    return "; ".join(
        f"{row[part][figure]:,.{digits}f}" for part in ("train", "test") if part in row
    )


def _at(rows: Rows, city: str, rule: str | None, budget: int) -> list[str]:
    """A rule beside planar Laplace, the codebook and the bound at its metres, as far as they were
    run."""
    own = rows[city, rule, 0] if rule else None
    beside = [rows.get((city, name, budget)) for name in BESIDE]
    proof = rows.get((city, "proof", budget))
    worst = [row for row in (own, *beside) if row is not None]
    return [
        f"{_NAMES[city]}: {rule or f'{budget} m'}",
        _both(own, "loss_m", 0) if own else f"{budget}",
        *(_both(row, "bayes_error", 3) for row in (own, *beside)),
        _both(beside[1], "loss_m", 0),
        "-" if proof is None else f"{1 - proof['bounds'][1]:.3f}",
        "; ".join(f"{row['train']['worst_report']:.2f}" for row in worst) or "-",
    ]


def _one_report(rows: Rows) -> list[str]:
    lines = []
    for city in CITIES:
        for rule in _SHOWN:
            loss = rows[city, rule, 0]["train"]["loss_m"]
            lines.append(_at(rows, city, rule, math.ceil(loss)))
        lines.append(_at(rows, city, None, max(THRESHOLDS)))
    heads = ["rule or budget", "loss, m", "rule ↑", "planar Laplace ↑", "codebook ↑"]
    return table([*heads, "codebook's loss, m", "none above", "worst report ↓"], lines)


def _several(errors: list[list[Any]]) -> list[str]:
    return [("" if kind == "exact" else "≈") + f"{value:.3f}" for kind, value, *_ in errors]


def _moving(rows: Rows) -> list[str]:
    found: dict[str, list[str]] = {}
    for city in CITIES:
        for rule in _SHOWN:
            row = rows[city, rule, 0]["train"]
            found.setdefault(rule, []).append(" ".join(_several(row["linked"])))
            if "drifting" in row:
                name = f"{rule}, one offset"
                found.setdefault(name, []).append(" ".join(_several(row["drifting"])))
        budget = math.ceil(rows[city, "Android", 0]["train"]["loss_m"])
        for name in BESIDE:
            one = rows.get((city, name, budget))
            cell = "-" if one is None else " ".join(_several(one["train"]["linked"]))
            found.setdefault(name, []).append(cell)
    lines = [[name, *cells] for name, cells in found.items()]
    return table(["reported", *(_NAMES[city] for city in CITIES)], lines)


def _weeks(rows: Rows) -> list[str]:
    lines = []
    for name in ("Android", DRIFTING, "WebKit"):
        row = rows["weeks", name, 0]
        shares = (f"{100 * row['found'][who][0]:.1f}" for who in _WHO)
        lines.append([name, f"{row['loss_m']:,.0f}", *shares])
    return table(["reported", "loss, m", *_WHO.values()], lines)


def _width(rows: Rows) -> str:
    """How far the intervals of weeks found reach, in points."""
    found = [row["found"][who] for key, row in rows.items() if key[0] == "weeks" for who in _WHO]
    return f"{100 * max(max(high - value, value - low) for value, low, high in found):.1f}"


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def page(folder: Path = RESULTS) -> str:
    """Every row that was run."""
    made = read_json(folder / "approximate.json", what="results on approximate location")["rows"]
    rows: Rows = {(row["data"], row["reported"], row["budget_m"]): row for row in made}
    blind = {f"{rows[city, 'truth', 0]['train']['blind']:.3f}" for city in CITIES}
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
    return filled(
        "approximate.md",
        missing=f"Not run yet: {missing}. " if missing else "",
        ruled=_range(ruled),
        learned=_range(learned),
        draw=f"draw {DRAW}",
        strict=", ".join(
            f"{1 - rows[city, 'proof', min(THRESHOLDS)]['bounds'][1]:.3f}" for city in CITIES
        ),
        truth=", ".join(
            f"{_NAMES[city]} {_both(rows[city, 'truth', 0], 'bayes_error', 3)}" for city in CITIES
        ),
        blind=" or ".join(sorted(blind)),
        one=_one_report(rows),
        moving=_moving(rows),
        counts=", ".join(map(str, COUNTS)),
        weeks=_weeks(rows),
        width=_width(rows),
    )


if __name__ == "__main__":
    write_text(RESULTS / "approximate.md", page())
