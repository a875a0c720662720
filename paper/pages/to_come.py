"""to_come.md, made from to_come.json and bracket.json.

python -m paper.pages.to_come
"""

from collections.abc import Collection
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy import stats

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.bracket import DRAWS
from paper.runs.to_come import SETTINGS
from paper.tables import table
from sfumato.files import read_json, write_text

_MOST = 1.10  # held-out loss over the budget that no draw was to exceed
_ASKED = 0.61  # Bayes error that was asked of experiment 2
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


def _mean(rows: list[dict[str, Any]], *path: str) -> str:
    return _error(rows, *path).split()[0]


def _above(rows: list[dict[str, Any]], kind: str) -> int:
    return sum(row[kind]["test"]["loss_m"] > row["budget_m"] for row in rows)


def _scatter(row: dict[str, Any]) -> float:
    """Standard error of the held-out loss around what the folds say, in budgets, if check-ins are
    independent: that of the folds' mean, and that of the held-out check-ins."""
    said, count = row["expected"]["cross_fitted"], row["checkins"]
    tail = float(stats.t.ppf((1 + said["confidence"]) / 2, said["checkins"] - 1))
    half = (said["loss"]["high"] - said["loss"]["low"]) / 2 / row["budget_m"]
    return half / tail * (1 + count["train"] / count["test"]) ** 0.5


def _noise(rows: list[dict[str, Any]]) -> str:
    """How likely noise alone keeps all draws below 1.10."""
    below = prod(float(stats.norm.cdf((_MOST - 1) / _scatter(row))) for row in rows)
    over = [row for row in rows if row["expected"]["test"]["loss_m"] > _MOST * row["budget_m"]]
    named = "; ".join(
        f"{_name(row['setting'])}, {row['budget_m']:g} m, draw {row['draw']}" for row in over
    )
    return (
        f"Goal: no draw above {_MOST:.2f} of its budget. Above it: {named or 'none'}; by"
        f" scatter alone, all draws stay below it with probability {below:.2f}."
    )


def _line(setting: str, rows: list[dict[str, Any]]) -> list[str]:
    return [
        _name(setting),
        f"{rows[0]['budget_m']:g}",
        f"{len(rows)}",
        _spent(rows, "expected"),
        f"{fmean(_scatter(row) for row in rows):.3f}",
        str(_above(rows, "expected")),
        _mean(rows, "expected", "test", "bayes_error"),
        _mean(rows, "expected", "cross_fitted", "bayes_error", "value"),
        _mean(rows, "laplace_test", "bayes_error"),
        _mean(rows, "coin_test", "bayes_error"),
    ]


def _best(rows: list[dict[str, Any]]) -> str:
    """In how many draws the codebook hides best, and which returned a baseline."""

    def counted(some: list[dict[str, Any]]) -> str:
        names = [_name(row["setting"]) for row in some]
        return ", ".join(f"{names.count(name)} of {name}" for name in sorted(set(names))) or "none"

    lower = [
        row
        for row in rows
        if row["expected"]["test"]["bayes_error"]
        < max(row["laplace_test"]["bayes_error"], row["coin_test"]["bayes_error"])
    ]
    other = [row for row in rows if row["expected"]["returned"] != "codebook"]
    return (
        f"The codebook hides best of the three in {len(rows) - len(lower)} of {len(rows)} draws"
        f" (not in {counted(lower)}). A baseline hid better on the folds, and was returned, in"
        f" {counted(other)}."
    )


def _confident(setting: str, rows: list[dict[str, Any]]) -> list[str]:
    return [
        _name(setting),
        f"{rows[0]['budget_m']:g}",
        _spent(rows, "confident"),
        str(_above(rows, "confident")),
        _mean(rows, "confident", "test", "bayes_error"),
    ]


def _count(rows: list[dict[str, Any]], draws: Collection[int]) -> str:
    """How many draws were run, and of how many where some are missing."""
    of = "" if len(rows) == len(draws) else f" of {len(draws)}"
    return f"{len(rows)}{of} draws"


def _second(rows: list[dict[str, Any]], proved: list[dict[str, Any]]) -> str:
    """Experiment 2 on its held-out check-ins, and on fresh ones, beside what was asked."""
    fresh = [row for row in proved if row["experiment"] == 2]
    if not rows or not fresh:
        return "not run"

    def beside(value: str) -> str:
        return "below" if float(value) < _ASKED else "above"

    held_out = _mean(rows, "expected", "test", "bayes_error")
    many = _mean(fresh, "bayes_error")
    return (
        f"{held_out} on {rows[0]['checkins']['test']:,} held-out check-ins is {beside(held_out)}"
        f" it, {many} on {fresh[0]['held_out']:,} fresh ones ([last table](#what-is-proved-of-it))"
        f" {beside(many)}"
    )


def _brackets(rows: list[dict[str, Any]]) -> list[str]:
    """One line per experiment."""
    heads = [
        "experiment",
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
                    f"{number}, {_count(mine, draws)}, {len(ends)} with a bracket",
                    f"{mine[0]['held_out']:,}",
                    f"{fmean(losses):.1f} ({min(losses):.1f} to {max(losses):.1f})",
                    *(_mean(mine, key) for key in ("bayes_error", "at_least", "at_most")),
                    f"{fmean(widths):.3f}, at most {max(widths):.3f}",
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
        "scatter",
        "above",
        "held-out B ↑",
        "estimate",
        "planar Laplace",
        "coin",
    ]
    sure = ["data", "budget, m", "held-out loss / budget", "above", "held-out B ↑"]
    fourth = groups.get("experiment-4", [])
    reached = _error(fourth, "expected", "test", "bayes_error") if fourth else "not run"
    spent = _spent(fourth, "expected") if fourth else "not run"
    wanted = SETTINGS["experiment-4"].draws
    drawn = "" if len(fourth) == len(wanted) else f"{len(fourth)} of "
    goal = (
        f"Experiment 4, {drawn}draws 20 to 43: {reached} at {spent} of the"
        " budget; the goal was 0.585 at a mean of at most 1.00."
    )
    missing = [
        f"{_name(name)}, {setting.budget:g} m ({len(setting.draws) - len(groups.get(name, []))})"
        for name, setting in SETTINGS.items()
        if len(groups.get(name, [])) < len(setting.draws)
    ]
    return filled(
        "to_come.md",
        missing=f" Draws not run yet: {'; '.join(missing)}." if missing else "",
        expected=table(heads, [_line(*group) for group in groups.items()]),
        best=_best(rows),
        noise=_noise(rows),
        confident=table(sure, [_confident(*group) for group in groups.items()]),
        above=f"{_above(rows, 'confident')} of {len(rows)} draws",
        brackets=_brackets(proved),
        goal=goal,
        second=_second(groups.get("experiment-2", []), proved),
    )


if __name__ == "__main__":
    write_text(RESULTS / "to_come.md", page())
