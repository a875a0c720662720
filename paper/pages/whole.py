"""whole.md: every number that the paper prints beside its own, made from the JSON of all runs.

python -m paper.pages.whole
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import CELLS, EXPERIMENTS, HITS, NUMBERS, RESULTS, SPLITS, Experiment
from paper.pages.results_by_column import FINEST, LEARNED, SOLVED, ceilings, columns, said
from paper.pages.template import filled
from paper.printed import Target, figures, printed_loss, targets
from paper.tables import finished, table
from sfumato.files import read_json, write_text

_TITLES = (
    "synthetic data, low utility",
    "synthetic data, high utility",
    "Gowalla data, low utility",
    "Gowalla data, high utility",
)
_PICTURES = {
    "summary": ("Bayes errors of the four experiments: the paper's, ours, and the proven bounds"),
    **{
        f"scatter_{n}": (f"True places and reports by mechanism, experiment {n}")
        for n in (1, 2, 3, 4)
    },
    "payoffs": "The payoff tables of Alice and Bob",
    "scheme": (
        "The two nets: the generator G reports, the classifier C guesses, the payoff flows back"
    ),
    **{
        f"swapping_{n}": f"Cross entropy as payoff moves the clouds about, experiment {n}"
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
    """The summary table of the paper's introduction, ours beside theirs; without a column for a
    mechanism that was not run."""
    rows, measured = [], _laplace(laplace)
    learned, noise = _printed("learned"), _printed("laplace")
    optimal = {
        row["experiment"]: row["value"] for row in figures() if row["mechanism"] == "optimal"
    }
    ran = [
        name
        for name in LEARNED
        if any(columns(folder, number)[name].runs for number in experiments)
    ]
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
                f"{median(measured[key]['by_seed']):.3f}",
                _told(learned[key]),
                *(
                    said(found[name].errors("test", *FINEST))
                    + found[name].over(experiment.max_loss_m)
                    for name in ran
                ),
                optimal.get(str(experiment.number), "?"),
                *(f"≤ {max(top[split]):.3f}" if top[split] else "" for split in SPLITS),
            ]
        )
    shown = dict(zip(LEARNED, ["`Game.paper(n)`", *_names(0)[1:]], strict=True))
    heads = [
        "experiment",
        "budget, m",
        "Laplace: paper",
        "ours",
        "learned: paper",
        *(shown[name] for name in ran),
    ]
    return table([*heads, "optimum: paper", "proved, training", "proved, test"], rows)


def _others(row: dict[str, Any], proved: dict[str, list[float]]) -> str:
    """A printed figure that was not measured, and ours beside it."""
    number, ours = int(row["experiment"]), ""
    if row["quantity"] == "expected loss":
        ours = f"; ours {EXPERIMENTS[number - 1].laplace.expected_loss:.2f} m"
    if row["mechanism"] == "optimal":
        ours = f"; proved {said(proved['train'], mark='≤ ')}"
    value = row["value"] + ("?" if row["kind"] == "doubtful" else "")
    unit = " m" if row["unit"] == "m" else ""
    name = row["quantity"].replace("bayes", "Bayes")
    return f"{name} {value}{unit} ({row['kind']}{ours})"


def _middle(values: list[float], digits: int) -> str:
    return f"{median(values):.{digits}f}" if values else ""


def _scatter(losses: list[dict[str, Any]]) -> str:
    """How far the printed losses of planar Laplace lie from those expected, in standard errors of a
    mean over one report per point."""
    off = [(row["theirs_m"] - row["expected_m"]) / row["one_report_error_m"] for row in losses]
    return f"{min(off):.1f} to {max(off):+.1f}"


def _by_hits(values: list[str]) -> str:
    """One number where it is the same for all hits."""
    return values[0] if len(set(values)) == 1 else " ".join(values)


def _table(experiment: Experiment, folder: Path, laplace: dict[str, Any]) -> list[str]:
    """What the paper prints and its recipe beside it: losses, laws, classifiers, and estimates by
    cells and hits."""
    number, found = experiment.number, columns(folder, experiment.number)
    runs = [found[LEARNED[0]]]
    learned, noise, ours = _printed("learned"), _printed("laplace"), _laplace(laplace)
    losses = {row["split"]: row for row in laplace["losses"] if row["experiment"] == number}
    seeds = ", ".join(map(str, laplace["seeds"]))
    rows = []
    if any(column.told_seeds != seeds for column in runs):
        rows.append(["seeds", "", seeds, "", *(column.told_seeds for column in runs)])
    for split in SPLITS:
        printed = [f"{printed_loss(number, split, name):.2f}" for name in ("laplace", "learned")]
        row = [f"loss {split}, m", printed[0], f"{losses[split]['ours_m']:.1f}", printed[1]]
        rows.append([*row, *(_middle(column.losses(split), 1) for column in runs)])
    for split in SPLITS:
        exact = ours[str(number), split, *FINEST]["exact"]
        row = [f"computed, {split}", "", f"{exact:.3f}", ""]
        rows.append([*row, *(said(column.law(split)) for column in runs)])
    for figure in figures():
        if figure["experiment"] == str(number) and figure["quantity"].startswith("classifier"):
            kind = "F1" if "F1" in figure["quantity"] else "accuracy"
            scores = [column.classifier(figure["split"], int(kind == "F1")) for column in runs]
            row = [f"{kind} {figure['split']}", "", "", figure["value"]]
            rows.append([*row, *(_middle(values, 2) for values in scores)])
    for split in SPLITS:
        for cells in CELLS:
            keys = [(str(number), split, cells, hits) for hits in HITS]
            row = [f"{split}, {cells}", _by_hits([_told(noise[key]) for key in keys])]
            by_seed = [[ours[key]["by_seed"] for key in keys]]
            by_seed += [
                [column.errors(split, cells, hits) for hits in HITS] if column.runs else []
                for column in runs
            ]
            shown = [_by_hits([f"{median(one):.2f}" for one in each] or [""]) for each in by_seed]
            row += [shown[0], _by_hits([_told(learned[key]) for key in keys]), *shown[1:]]
            rows.append(row)
    return table(["", "Laplace: paper", "ours", "learned: paper", _names(number)[0]], rows)


def _no_noise(bare: dict[str, Any]) -> list[str]:
    by_part: dict[tuple[str, str], list[str]] = {}
    for row in bare["rows"]:
        cell = f"{row['theirs']:.2f}; {median(row['by_seed']):.3f}" + (
            "" if row["within"] else " out"
        )
        by_part.setdefault((row["experiment"], row["split"]), []).append(cell)
    rows = [[f"{data}, {part}", *cells] for (data, part), cells in by_part.items()]
    return table(["cells per side", *map(str, CELLS)], rows)


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


def _agreement(folder: Path) -> str:
    """Of the learned mechanism's printed figures: how many of the paper's recipe are near, and how
    many hide more."""
    parts = []
    for experiment in EXPERIMENTS:
        column = columns(folder, experiment.number)[LEARNED[0]]
        if not column.runs:
            continue
        off = [
            (
                sorted(column.errors(one.split, one.cells, one.hits))[len(column.runs) // 2]
                - one.bayes_error,
                one.tolerance,
            )
            for one in targets("learned")
            if one.experiment == str(experiment.number)
        ]
        near = sum(abs(difference) <= tolerance for difference, tolerance in off)
        more = sum(difference > tolerance for difference, tolerance in off)
        better = f" ({more} hide more)" if more else ""
        parts.append(f"{near} of {len(off)} in experiment {experiment.number}{better}")
    return f"{', '.join(parts)}; the others hide less" if parts else "not run"


def _sources(folder: Path) -> str:
    """The files that these pages are made from; `make docs` fails when one is missing."""
    return ", ".join(f"`{path.name}`" for path in sorted(folder.glob("*.json")))


def page(folder: Path = RESULTS) -> str:
    """The whole of it."""
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")
    bare = read_json(folder / "no_noise.json", what="the tables without noise")

    def picture(name: str) -> str:
        """A figure, where it was drawn."""
        drawn = (folder / f"{name}.png").exists()
        return f"![{_PICTURES[name]}]({name}.png)\n\n" if drawn else ""

    experiments = [
        {
            "number": experiment.number,
            "title": title,
            "budget": f"{experiment.max_loss_m:g}",
            "argued": "; ".join(
                _others(row, proved)
                for row in figures()
                if row["experiment"] == str(experiment.number) and row["kind"] != "measured"
            ),
            "table": "\n".join(_table(experiment, folder, laplace)),
        }
        for experiment, title in zip(EXPERIMENTS, _TITLES, strict=True)
        if (proved := ceilings(folder, experiment.number))
    ]
    return filled(
        "whole.md",
        seeds=", ".join(map(str, laplace["seeds"])),
        introduction=introduction(folder, laplace),
        reached=tuple(_reached(folder)),
        picture=picture,
        scatter=_scatter(laplace["losses"]),
        finished_laplace=finished("Planar Laplace", laplace["rows"]),
        finished_bare=finished("No noise", bare["rows"]),
        agreement=_agreement(folder),
        experiments=tuple(experiments),
        no_noise=_no_noise(bare),
        sources=_sources(folder),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "whole.md", page(folder))


if __name__ == "__main__":
    main()
