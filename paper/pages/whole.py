"""whole.md: every number that the paper prints beside its own, made from the JSON of all runs.

python -m paper.pages.whole
"""

from pathlib import Path
from typing import Any

from paper.experiments import CELLS, EXPERIMENTS, HITS, RESULTS, SPLITS, Experiment
from paper.pages.results_by_column import FINEST, LEARNED, SOLVED, ceilings, columns, said
from paper.pages.whole_sections import (
    DIFFERS,
    HEAD,
    coverage,
    other_figures,
    pictures,
    reached,
    sources,
)
from paper.printed import Target, figures, printed_loss, targets
from paper.tables import finished, spread, table
from sfumato.files import read_json, write_text

_TITLES = (
    "synthetic data, low utility",
    "synthetic data, high utility",
    "Gowalla data, low utility",
    "Gowalla data, high utility",
)
Key = tuple[str, str, int, int]


def _names(number: int) -> list[str]:
    """The learned columns as a user writes them."""
    return [f"`Game.paper({number})`", "`Game()`", "`Codebook()`", "coin"]


def _printed(mechanism: str) -> dict[Key, Target]:
    return {(one.experiment, one.split, one.cells, one.hits): one for one in targets(mechanism)}


def _laplace(document: dict[str, Any]) -> dict[Key, dict[str, Any]]:
    return {
        (row["experiment"], row["split"], row["cells"], row["hits"]): row
        for row in document["rows"]
    }


def _told(target: Target) -> str:
    return f"{target.bayes_error:.2f}" + ("?" if target.kind == "doubtful" else "")


_LOSSES = (
    "Test data, 260 cells, 500 hits. Losses: at the head of each experiment; ! marks a median loss"
    " on test data above the budget, where the Bayes error does not compare with one within it."
)


def introduction(folder: Path, laplace: dict[str, Any]) -> list[str]:
    """The summary table of the paper's introduction, ours beside theirs."""
    rows, measured = [], _laplace(laplace)
    learned, noise = _printed("learned"), _printed("laplace")
    optimal = {
        row["experiment"]: row["value"] for row in figures() if row["mechanism"] == "optimal"
    }
    for experiment, title in zip(EXPERIMENTS, _TITLES, strict=True):
        key = (str(experiment.number), "test", *FINEST)
        top, found = ceilings(folder, experiment.number), columns(folder, experiment.number)
        rows.append(
            [
                f"{experiment.number}: {title}",
                f"{experiment.max_loss_m:g}",
                _told(noise[key]),
                spread(measured[key]["by_seed"]),
                _told(learned[key]),
                *(
                    said(found[name].errors("test", *FINEST))
                    + found[name].over(experiment.max_loss_m)
                    for name in LEARNED
                ),
                optimal.get(str(experiment.number), "?"),
                *(said(top[split], mark="≤ ") for split in SPLITS),
            ]
        )
    heads = [
        "experiment",
        "budget, m",
        "Laplace: paper",
        "ours",
        "learned: paper",
        "`Game.paper(n)`",
        *_names(0)[1:],
    ]
    return table([*heads, "optimum: paper", "proved, training", "proved, test"], rows)


def _losses(experiment: Experiment, folder: Path, laplace: dict[str, Any]) -> list[str]:
    """At what loss each was measured, and its error from the law."""
    number = experiment.number
    there = {row["split"]: row for row in laplace["losses"] if row["experiment"] == number}
    exact = [[_laplace(laplace)[str(number), split, *FINEST]["exact"]] for split in SPLITS]
    rows = [
        [
            "planar Laplace, the paper's",
            "",
            *(f"{printed_loss(number, split, 'laplace'):.2f}" for split in SPLITS),
            "",
            "",
        ]
    ]
    rows += [
        [
            "planar Laplace, ours",
            ", ".join(map(str, laplace["seeds"])),
            *(f"{there[split]['ours_m']:.1f}" for split in SPLITS),
        ]
    ]
    rows[-1] += [said(values) for values in exact]
    rows += [
        [
            "learned, the paper's",
            "",
            *(f"{printed_loss(number, split, 'learned'):.2f}" for split in SPLITS),
            "",
            "",
        ]
    ]
    for name, column in zip(_names(number), columns(folder, number).values(), strict=True):
        rows.append([name, column.told_seeds, *(said(column.losses(split), 1) for split in SPLITS)])
        rows[-1] += [said(column.law(split)) for split in SPLITS]
    top = ceilings(folder, number)
    rows.append(["nobody above", "", f"{experiment.max_loss_m:g}", f"{experiment.max_loss_m:g}"])
    rows[-1] += [said(top[split], mark="≤ ") for split in SPLITS]
    return table(
        [
            "mechanism",
            "seeds",
            "loss train, m",
            "loss test, m",
            "B(X\\|Z) train, computed",
            "B(X\\|Z) test, computed",
        ],
        rows,
    )


def _errors(experiment: Experiment, split: str, folder: Path, laplace: dict[str, Any]) -> list[str]:
    """16 rows: two printed numbers each."""
    number, found, top = (
        experiment.number,
        columns(folder, experiment.number),
        ceilings(folder, experiment.number)[split],
    )
    learned, noise, ours = _printed("learned"), _printed("laplace"), _laplace(laplace)
    rows = []
    for cells in CELLS:
        for hits in HITS:
            key = (str(number), split, cells, hits)
            row = [
                str(cells),
                str(hits),
                _told(noise[key]),
                spread(ours[key]["by_seed"]),
                _told(learned[key]),
            ]
            row += [said(found[name].errors(split, cells, hits)) for name in LEARNED]
            rows.append(
                [*row, said(top, mark="≤ ") if number not in SOLVED or cells == max(CELLS) else ""]
            )
    heads = [
        "cells a side",
        "hits",
        "Laplace: paper",
        "ours",
        "learned: paper",
        *_names(number),
        "nobody above",
    ]
    return table(heads, rows)


def _no_noise(bare: dict[str, Any]) -> list[str]:
    rows = [
        [
            row["experiment"],
            row["split"],
            str(row["cells"]),
            f"{row['theirs']:.2f}",
            spread(row["by_seed"]),
            "" if row["within"] else "out",
        ]
        for row in bare["rows"]
    ]
    return table(["data", "part", "cells a side", "paper", "ours", ""], rows)


def page(folder: Path = RESULTS) -> str:
    """The whole of it."""
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")
    bare = read_json(folder / "no_noise.json", what="the tables without noise")
    lines = [HEAD, "## The summary of the introduction", "", _LOSSES, ""]
    lines += [*introduction(folder, laplace), *reached(folder), *pictures(folder, "summary")]
    lines += [
        "## How many agree",
        "",
        f"- {finished('Planar Laplace', laplace['rows'])}.",
        f"- {finished('No noise', bare['rows'])}.",
        "",
    ]
    lines += [
        *coverage(folder),
        DIFFERS,
        "## Losses, accuracies, F1 scores and optima",
        "",
        *other_figures(folder, laplace),
    ]
    for experiment, title in zip(EXPERIMENTS, _TITLES, strict=True):
        lines += [
            f"## Experiment {experiment.number}: {title}, L = {experiment.max_loss_m:g} m",
            "",
        ]
        lines += _losses(experiment, folder, laplace)
        for split in SPLITS:
            lines += [f"### Bayes error on {'training' if split == 'train' else 'test'} data", ""]
            lines += _errors(experiment, split, folder, laplace)
        lines += pictures(folder, f"scatter_{experiment.number}")
    lines += ["## No noise", "", *_no_noise(bare), "## The paper's other figures", ""]
    for name in ("payoffs", "scheme", "swapping_1", "swapping_2"):
        lines += pictures(folder, name)
    return "\n".join([*lines, *sources(folder)])


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "whole.md", page(folder))


if __name__ == "__main__":
    main()
