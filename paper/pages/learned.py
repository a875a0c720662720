"""learned.md, made from learned.json, optimum.json and draws.json.

python -m paper.pages.learned
"""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from paper.experiments import RESULTS, SEEDS
from paper.pages.template import filled
from paper.runs.draws import KINDS, TOLD
from paper.tables import spread, table
from sfumato.files import read_json, write_text


def _bounds(folder: Path) -> dict[tuple[int, str, int], float]:
    rows = read_json(folder / "optimum.json", what="optimum")["rows"]
    return {(row["experiment"], row["objective"], row["seed"]): row["bound_grid"] for row in rows}


def _grouped(
    rows: list[dict[str, Any]], keep: Callable[[dict[str, Any]], bool]
) -> list[list[dict[str, Any]]]:
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for row in filter(keep, rows):
        groups.setdefault((row["experiment"] or 0, row["max_loss_m"], row["recipe"]), []).append(
            row
        )
    return [groups[key] for key in sorted(groups)]


def _spent(group: list[dict[str, Any]]) -> str:
    """The loss on test data, marked where its median is above the budget."""
    losses = [row["test"]["loss_m"] for row in group]
    return f"{median(losses):.0f}" + ("!" if median(losses) > group[0]["max_loss_m"] else "")


def _bayes(group: list[dict[str, Any]], bounds: dict[tuple[int, str, int], float]) -> list[str]:
    number = group[0]["experiment"]
    proved = [
        row["bound_grid"] if number is None else bounds.get((number, "bayes", row["seed"]))
        for row in group
    ]
    share = [
        row["train"]["bayes_error"] / (1 - bound)
        for row, bound in zip(group, proved, strict=True)
        if bound is not None
    ]
    return [
        "Stockholm" if number is None else str(number),
        f"{group[0]['max_loss_m']:g}",
        group[0]["recipe"],
        f"{median(row['train']['bayes_error'] for row in group):.4f}",
        f"{100 * median(share):.1f}" if len(share) == len(group) else "",
        spread([row["test"]["bayes_error"] for row in group]),
        _spent(group),
        f"{100 * median(row['test']['exposed'] for row in group):.1f}",
    ]


def _information(
    group: list[dict[str, Any]], bounds: dict[tuple[int, str, int], float]
) -> list[str]:
    number = group[0]["experiment"]
    over = [
        row["train"]["information_bits"] / bounds[number, "information", row["seed"]] - 1
        for row in group
    ]
    return [
        str(number),
        f"{group[0]['max_loss_m']:g}",
        group[0]["recipe"],
        f"{median(row['train']['information_bits'] for row in group):.3f}",
        f"{100 * median(over):.0f}",
        spread([row["test"]["information_bits"] for row in group]),
        _spent(group),
    ]


def _drawn(rows: list[dict[str, Any]], recipe: str) -> list[str]:
    """Means over the draws; those of seeds 0, 1, 2 stand in the first table."""
    mine = [row for row in rows if row["recipe"] == recipe and row["seed"] not in SEEDS]
    test = [row["test"]["bayes_error"] for row in mine]
    return [
        recipe,
        f"{fmean(row['train']['bayes_error'] for row in mine):.3f}",
        f"{fmean(row['few_mean'] for row in mine):.3f}",
        f"{fmean(test):.3f} ± {stdev(test) / len(test) ** 0.5:.3f}",
        f"{fmean(row['test']['loss_m'] for row in mine):.0f}",
    ]


def _of_seeds(rows: list[dict[str, Any]], recipe: str) -> str:
    return spread(
        [
            row["test"]["bayes_error"]
            for row in rows
            if row["recipe"] == recipe and row["seed"] in SEEDS
        ]
    )


def page(folder: Path = RESULTS) -> str:
    """All that was learned, beside the bounds."""
    rows = read_json(folder / "learned.json", what="learned results")["rows"]
    draws = read_json(folder / "draws.json", what="results on further draws")["rows"]
    bounds = _bounds(folder)
    bayes = [
        _bayes(group, bounds) for group in _grouped(rows, lambda row: row["objective"] == "bayes")
    ]
    bits = [
        _information(group, bounds)
        for group in _grouped(rows, lambda row: row["objective"] == "information")
    ]
    return filled(
        "learned.md",
        bayes=table(
            [
                "experiment",
                "budget, m",
                "recipe",
                "B train ↑",
                "% of the bound ↑",
                "B held-out ↑",
                "loss, m",
                "exposed, % ↓",
            ],
            bayes,
        ),
        information=table(
            [
                "experiment",
                "budget, m",
                "recipe",
                "bits train ↓",
                "% above the bound",
                "bits held-out ↓",
                "loss, m",
            ],
            bits,
        ),
        draws=table(
            [
                "recipe",
                "B train ↑",
                "20 of training ↑",
                "B held-out ↑",
                "loss, m",
            ],
            [_drawn(draws, recipe) for recipe in KINDS],
        ),
        told=_of_seeds(draws, TOLD),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "learned.md", page(folder))


if __name__ == "__main__":
    main()
