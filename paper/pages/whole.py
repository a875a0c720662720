"""whole.md: every number that the paper prints beside its own, made from the JSON of all runs.

python -m paper.pages.whole
"""

from pathlib import Path
from typing import Any

from paper.experiments import CELLS, EXPERIMENTS, HITS, NUMBERS, RESULTS, SPLITS, Experiment
from paper.pages.results_by_column import FINEST, LEARNED, SOLVED, ceilings, columns, said
from paper.pages.template import filled
from paper.printed import Target, figures, printed_loss, targets
from paper.tables import finished, spread, table
from sfumato.files import read_json, write_text

_TITLES = (
    "synthetic data, low utility",
    "synthetic data, high utility",
    "Gowalla data, low utility",
    "Gowalla data, high utility",
)
_SCATTER = (
    "Seed 0, one report a point, the loss of these reports in the titles; reports at one and the"
    " same place are laid around it."
)
_PICTURES = {
    "summary": (
        "Bayes errors of the four experiments: the paper's and ours, the spread over seeds, and"
        " what nobody is above"
    ),
    **{
        f"scatter_{n}": (
            "True places and reports of the users by mechanism, training and test data,"
            f" experiment {n}"
        )
        for n in (1, 2, 3, 4)
    },
    "payoffs": "The payoff tables of Alice and Bob; the best answer of G to each C is framed",
    "scheme": (
        "The scheme of the two nets: the generator G reports, the classifier C guesses, the payoff"
        " flows back"
    ),
    **{
        f"swapping_{n}": f"Cross entropy as payoff carries the clouds about, experiment {n}"
        for n in (1, 2)
    },
}
Key = tuple[str, str, int, int]


def _names(number: int) -> list[str]:
    """The learned columns as a user writes them."""
    return [f"`Game.paper({number})`", "`Game()`", "codebook", "coin"]


def _printed(mechanism: str) -> dict[Key, Target]:
    return {(one.experiment, one.split, one.cells, one.hits): one for one in targets(mechanism)}


def _laplace(document: dict[str, Any]) -> dict[Key, dict[str, Any]]:
    return {
        (row["experiment"], row["split"], row["cells"], row["hits"]): row
        for row in document["rows"]
    }


def _told(target: Target) -> str:
    return f"{target.bayes_error:.2f}" + ("?" if target.kind == "doubtful" else "")


def introduction(
    folder: Path, laplace: dict[str, Any], experiments: tuple[int, ...] = NUMBERS
) -> list[str]:
    """The summary table of the paper's introduction, ours beside theirs."""
    rows, measured = [], _laplace(laplace)
    learned, noise = _printed("learned"), _printed("laplace")
    optimal = {
        row["experiment"]: row["value"] for row in figures() if row["mechanism"] == "optimal"
    }
    for experiment, title in zip(EXPERIMENTS, _TITLES, strict=True):
        if experiment.number not in experiments:
            continue
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


def _reached(folder: Path) -> list[dict[str, Any]]:
    """Whether the coin reaches the blind guess where that is the bound on training data."""
    lines = []
    for number in (
        experiment.number for experiment in EXPERIMENTS if experiment.number not in SOLVED
    ):
        (blind,), coin = ceilings(folder, number)["train"], columns(folder, number)["coin"]
        if coin.runs and all(error >= blind - 1e-9 for error in coin.law("train")):
            loss = said(coin.losses("train"), 0)
            lines.append({"number": number, "bound": f"{blind:.3f}", "loss": loss})
    return lines


def _coverage(folder: Path) -> list[str]:
    """Of the learned mechanism's 32 printed figures an experiment: how many of ours lie below, near
    and above them."""
    rows = []
    for experiment in EXPERIMENTS:
        wanted = [one for one in targets("learned") if one.experiment == str(experiment.number)]
        for name, column in columns(folder, experiment.number).items():
            if not column.runs:
                continue
            off = [
                (
                    sorted(column.errors(one.split, one.cells, one.hits))[len(column.runs) // 2]
                    - one.bayes_error,
                    one,
                )
                for one in wanted
            ]
            near = [abs(difference) <= one.tolerance for difference, one in off]
            above = [difference > one.tolerance for difference, one in off]
            counts = (len(off) - sum(near) - sum(above), sum(near), sum(above))
            rows.append(
                [str(experiment.number), name, ", ".join(map(str, column.seeds)), *map(str, counts)]
            )
    return table(["experiment", "ours", "seeds", "below", "near", "above"], rows)


def _other_figures(folder: Path, laplace: dict[str, Any]) -> list[str]:
    """figures.csv, row by row."""
    losses = {(str(row["experiment"]), row["split"]): row for row in laplace["losses"]}
    every = {experiment.number: columns(folder, experiment.number) for experiment in EXPERIMENTS}
    rows = []
    for row in figures():
        number = int(row["experiment"])
        same, ours = "", [""] * len(LEARNED)
        found = [every[number][name] for name in LEARNED]
        if row["mechanism"] == "learned" and row["quantity"] == "loss":
            ours = [said(column.losses(row["split"]), 1) for column in found]
        elif row["mechanism"] == "learned":
            ours = [
                said(column.classifier(row["split"], int("F1" in row["quantity"])), 2)
                for column in found
            ]
        elif row["mechanism"] == "optimal":
            same = said(ceilings(folder, number)["train"], mark="≤ ")
        elif row["quantity"] == "expected loss":
            same = f"{EXPERIMENTS[number - 1].laplace.expected_loss:.2f}"
        elif row["quantity"] == "loss":
            same = f"{losses[row['experiment'], row['split']]['ours_m']:.2f}"
        name = row["quantity"] + (f", {row['mechanism']}" if row["mechanism"] else "")
        value = (
            row["value"]
            + ("?" if row["kind"] == "doubtful" else "")
            + (" m" if row["unit"] == "m" else "")
        )
        rows.append([row["experiment"], name, row["split"], row["kind"], value, same, *ours])
    heads = ["experiment", "figure", "data", "the paper's is", "paper", "the same, ours"]
    return table([*heads, "`Game.paper(n)`", "`Game()`", "codebook", "coin"], rows)


def _sources(folder: Path) -> list[dict[str, str]]:
    """The files that these pages are made from; `make docs` fails when one is missing."""
    found = []
    for path in sorted(folder.glob("*.json")):
        document = read_json(path, what="results of a run")
        seeds = document.get("seeds") or sorted(
            {row["seed"] for row in document.get("rows", []) if "seed" in row}
        )
        told = f", seeds {', '.join(map(str, seeds))}" if seeds else ""
        found.append({"name": path.name, "seeds": told})
    return found


def page(folder: Path = RESULTS) -> str:
    """The whole of it."""
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")
    bare = read_json(folder / "no_noise.json", what="the tables without noise")

    def picture(name: str) -> str:
        """A figure, where it was drawn, and how to read it."""
        if not (folder / f"{name}.png").exists():
            return ""
        read = [_SCATTER] if name.startswith(("scatter", "swapping")) else []
        lines = [f"![{_PICTURES[name]}]({name}.png)", "", f"{_PICTURES[name]}.", *read, "", ""]
        return "\n".join(lines)

    experiments = [
        {
            "number": experiment.number,
            "title": title,
            "budget": f"{experiment.max_loss_m:g}",
            "losses": "\n".join(_losses(experiment, folder, laplace)),
            **{s: "\n".join(_errors(experiment, s, folder, laplace)) for s in SPLITS},
        }
        for experiment, title in zip(EXPERIMENTS, _TITLES, strict=True)
    ]
    return filled(
        "whole.md",
        introduction=introduction(folder, laplace),
        reached=tuple(_reached(folder)),
        picture=picture,
        finished_laplace=finished("Planar Laplace", laplace["rows"]),
        finished_bare=finished("No noise", bare["rows"]),
        coverage=_coverage(folder),
        other_figures=_other_figures(folder, laplace),
        experiments=tuple(experiments),
        no_noise=_no_noise(bare),
        sources=tuple(_sources(folder)),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "whole.md", page(folder))


if __name__ == "__main__":
    main()
