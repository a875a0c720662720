"""to_come.md, made from to_come.json and bracket.json.

python -m paper.pages.to_come
"""

from pathlib import Path
from statistics import fmean
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.bracket import DRAWS
from paper.runs.to_come import SETTINGS
from paper.tables import table
from sfumato.files import read_json, write_text

_NAMES = {
    "experiment": "experiment",
    "stockholm": "Stockholm",
    "san-francisco": "San Francisco",
    "city": "city",
}


def _name(setting: str) -> str:
    """san-francisco-20-518 as "San Francisco, 20 users"."""
    start = next(key for key in _NAMES if setting.startswith(key))
    rest = setting.removeprefix(f"{start}-").split("-")
    if start == "experiment":
        return f"experiment {rest[0]}"
    return f"{_NAMES[start]}, {rest[0]} users" if len(rest) > 1 else _NAMES[start]


def _spent(rows: list[dict[str, Any]], kind: str) -> str:
    ratios = [row[kind]["test"]["loss_m"] / row["budget_m"] for row in rows]
    return f"{fmean(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _error(rows: list[dict[str, Any]], *path: str) -> str:
    values = []
    for row in rows:
        value = row
        for key in path:
            value = value[key]
        values.append(float(value))  # type: ignore[arg-type]
    return f"{fmean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _line(setting: str, rows: list[dict[str, Any]], kind: str) -> list[str]:
    above = sum(row[kind]["test"]["loss_m"] > row["budget_m"] for row in rows)
    other = sum(row[kind]["returned"] != "codebook" for row in rows)
    best = sum(
        row[kind]["test"]["bayes_error"]
        >= max(row["laplace_test"]["bayes_error"], row["coin_test"]["bayes_error"])
        for row in rows
    )
    return [
        _name(setting),
        f"{rows[0]['budget_m']:g}",
        f"{len(rows)} of {len(SETTINGS[setting].draws)}",
        _spent(rows, kind),
        str(above),
        _error(rows, kind, "test", "bayes_error"),
        _error(rows, kind, "cross_fitted", "bayes_error", "value"),
        _error(rows, "laplace_test", "bayes_error"),
        _error(rows, "coin_test", "bayes_error"),
        f"{best}",
        f"{other}",
    ]


def _brackets(rows: list[dict[str, Any]]) -> list[str]:
    """One line per experiment."""
    heads = [
        "experiment",
        "draws",
        "held-out check-ins",
        "loss, m",
        "Bayes error",
        "at least",
        "none more than",
        "width of the bracket",
    ]
    lines = []
    for number, draws in DRAWS.items():
        mine = [row for row in rows if row["experiment"] == number]
        if mine:
            ends = [row["bracket"] for row in mine if row["bracket"] is not None]
            widths = [high - low for low, high in ends]
            losses = [row["loss_m"] for row in mine]
            lines.append(
                [
                    str(number),
                    f"{len(mine)} of {len(draws)}",
                    f"{mine[0]['held_out']:,}",
                    f"{fmean(losses):.1f} ({min(losses):.1f} to {max(losses):.1f})",
                    *(_error(mine, key) for key in ("bayes_error", "at_least", "at_most")),
                    f"{fmean(widths):.3f} ({min(widths):.3f} to {max(widths):.3f})",
                ]
            )
    return table(heads, lines)


def page(folder: Path = RESULTS) -> str:
    """Every setting that was run."""
    rows = read_json(folder / "to_come.json", what="results on check-ins to come")["rows"]
    proved = read_json(folder / "bracket.json", what="brackets for check-ins to come")["rows"]
    groups = {
        name: [row for row in rows if row["setting"] == name]
        for name in SETTINGS
        if any(row["setting"] == name for row in rows)
    }
    heads = [
        "data",
        "budget, m",
        "draws",
        "held-out loss / budget",
        "above",
        "held-out B ↑",
        "estimate of B",
        "planar Laplace B",
        "coin B",
        "best of the three",
        "returned",
    ]
    fourth = groups.get("experiment-4", [])
    reached = _error(fourth, "expected", "test", "bayes_error") if fourth else "not run"
    spent = _spent(fourth, "expected") if fourth else "not run"
    goal = (
        f"Experiment 4, {len(fourth)} of the draws 20 to 43: {reached} at {spent} of the"
        " budget; 0.585 at a mean of at most 1.00 was wanted."
    )
    missing = [
        f"{_name(name)}, {setting.budget:g} m ({len(setting.draws) - len(groups.get(name, []))})"
        for name, setting in SETTINGS.items()
        if len(groups.get(name, [])) < len(setting.draws)
    ]
    return filled(
        "to_come.md",
        missing=f"Draws not run yet: {'; '.join(missing)}." if missing else "",
        expected=table(heads, [_line(*group, "expected") for group in groups.items()]),
        confident=table(heads, [_line(*group, "confident") for group in groups.items()]),
        brackets=_brackets(proved),
        goal=goal,
    )


if __name__ == "__main__":
    write_text(RESULTS / "to_come.md", page())
