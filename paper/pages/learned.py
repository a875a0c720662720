"""learned.md, made from learned.json, optimum.json and draws.json.

python -m paper.pages.learned
"""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from paper.experiments import RESULTS, SEEDS
from paper.runs.draws import TOLD
from paper.tables import spread, table
from sfumato.files import read_json, write_text

_WANTED = {1: "0.745", 2: "0.61", 3: "0.825", 4: "0.60"}
_HEAD = """# The codebook beside the proven bounds

Made by `python -m paper.runs.learned` (the runs) and `python -m paper.pages.learned` (this page). Seeds 0, 1, 2: the median and, in brackets,
the range. All figures are exact, on the mechanism's own reports, which lie on the paper's 260 x 260 grid; the budget is held on
training data.
`Codebook()` is the default; `Codebook.closest()` fits the training data as closely as it can. *Share of the bound* sets the
Bayes error on training data against the largest that any mechanism on this grid can have (proved: [optimum.md](optimum.md); for
Stockholm by the same solver in the same run). Settings were chosen on draws of the data by seeds 10 to 17, and an early
trial on seed 0, with their test parts in sight (what was tried: [0019](../decisions/0019-codebook.md),
[0020](../decisions/0020-few-check-ins.md)).

*Wanted* is a goal that was set before the runs; it is missed in experiment 4 by both recipes, and in experiment 2 by `closest`. In
these two no one recipe has both 97 % of the bound on training data and the goal on test data: there is one for each end. A median
loss on test data above the budget is marked !: its Bayes error is not comparable with one within it. Seconds are without the proof.
Experiments 1 and 3 can hide everything, so their bound is a blind guess. Stockholm: the six most frequent users of the 4500 m square
around 59.3326, 18.0649 in gowalla-stockholm.csv.gz, drawn with overlap weight 0.15 as in Paris.
"""

_NAMES = {
    "default": "`Codebook()`",
    "closest": "`Codebook.closest()`",
    TOLD: "`Codebook()`, told the test data",
}
_DRAWS = """## What 20 check-ins a user can say

`python -m paper.runs.draws`: experiment 4 on draws of the check-ins that chose nothing, seeds 20 to 43. *20 of training* is the mean over 200
times 20 check-ins a user out of the training data: what test data of this size would give if they held no new place. The last column is
how much the choice of those 20 alone moves it (standard deviation). The adversary of each figure knows the points that it is measured on:
few points are told apart where many would mix. So most of what is lacking on test data comes of their number, the rest of new places.

*Told the test data* is no mechanism to use but a limit: the same recipe learned from training and test data together, the budget held on
both together. What it has on the test data, the default would have if nothing in them were new to it.
"""


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
    return spread(losses, 0) + ("!" if median(losses) > group[0]["max_loss_m"] else "")


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
        f"`Codebook{'.closest' if group[0]['recipe'] == 'closest' else ''}()`",
        spread([row["train"]["bayes_error"] for row in group], 4),
        f"{spread(share, 1, 100)} %" if len(share) == len(group) else "",
        spread([row["test"]["bayes_error"] for row in group]),
        _WANTED.get(number, ""),
        _spent(group),
        spread([row["coin_test"]["bayes_error"] for row in group]),
        spread([row["test"]["exposed"] for row in group], 1, 100),
        spread([row["coin_test"]["exposed"] for row in group], 1, 100),
        spread([row["processor_seconds"] for row in group], 0),
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
        f"`Codebook{'.closest' if group[0]['recipe'] == 'closest' else ''}()`",
        spread([row["train"]["information_bits"] for row in group]),
        f"{spread(over, 0, 100)} %",
        spread([row["test"]["information_bits"] for row in group]),
        spread([row["coin_train"]["information_bits"] for row in group]),
        spread([row["coin_test"]["information_bits"] for row in group]),
        _spent(group),
    ]


def _drawn(rows: list[dict[str, Any]], recipe: str) -> list[str]:
    """Means over the draws; those of seeds 0, 1, 2 stand in the first table."""
    mine = [row for row in rows if row["recipe"] == recipe and row["seed"] not in SEEDS]
    test = [row["test"]["bayes_error"] for row in mine]
    return [
        _NAMES[recipe],
        str(len(mine)),
        f"{fmean(row['train']['bayes_error'] for row in mine):.3f}",
        f"{fmean(row['few_mean'] for row in mine):.3f}",
        f"{fmean(test):.3f} ± {stdev(test) / len(test) ** 0.5:.3f}",
        f"{min(test):.3f} to {max(test):.3f}",
        f"{fmean(row['test']['loss_m'] for row in mine):.0f}",
        f"{fmean(row['few_deviation'] for row in mine):.3f}",
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
    return "\n".join(
        [
            _HEAD,
            "## Bayes error as objective\n",
            *table(
                [
                    "experiment",
                    "budget, m",
                    "recipe",
                    "B train ↑",
                    "share of the bound ↑",
                    "B test ↑",
                    "wanted on test",
                    "loss test, m",
                    "coin B test",
                    "exposed test, % ↓",
                    "coin exposed, %",
                    "processor s",
                ],
                bayes,
            ),
            "## Information as objective\n",
            *table(
                [
                    "experiment",
                    "budget, m",
                    "recipe",
                    "bits train ↓",
                    "above the proven least",
                    "bits test ↓",
                    "coin bits train",
                    "coin bits test",
                    "loss test, m",
                ],
                bits,
            ),
            _DRAWS,
            *table(
                [
                    "recipe",
                    "draws",
                    "B train ↑",
                    "20 of training ↑",
                    "B test, mean and its standard error ↑",
                    "B test, range",
                    "loss test, m",
                    "by the choice of 20",
                ],
                [_drawn(draws, recipe) for recipe in _NAMES],
            ),
            (
                f"On seeds 0, 1, 2, told the test data, it has {_of_seeds(draws, TOLD)} on them; "
                f"the default, not told, {_of_seeds(draws, 'default')}.\n"
            ),
        ]
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "learned.md", page(folder))


if __name__ == "__main__":
    main()
