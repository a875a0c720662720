"""Sections of whole.md: how to read it, how many figures agree, what is printed besides Bayes
errors, pictures, sources."""

from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS
from paper.pages.results_by_column import LEARNED, SOLVED, ceilings, columns, said
from paper.printed import figures, targets
from paper.tables import table
from sfumato.files import read_json

HEAD = """# The whole paper, re-run

Every number that the paper prints, with ours beside it. `make paper` runs what is missing here; `make docs` checks that this page is
made from the JSON files beside it. What is not the paper's is numbered in [deviations](../../paper/deviations.md); what follows
from the numbers is said [for readers of the paper](README.md).

How to read it:
- *Bayes error* B(X|Z): how often the best guess of the user is wrong. Higher is more private.
- Seeds 0, 1, 2 draw the data, the learning and the reports: the median, in brackets the lowest and the highest. The table at the
  head of each experiment says which seeds were run.
- **Estimated**: the long tables, by the paper's estimator (cells, hits) on the released reports. With few hits in a cell it lies
  below the error of the law; wide cells flatter. Losses are means over 500 reports of each point.
- **Computed**: the exact Bayes error from the law, no hits: of the codebook and the coin on their own reports, of the games and
  planar Laplace on 25 m cells.
- **Bounded** (≤): proved for every mechanism that reports on the 260 x 260 grid within the budget. It says nothing of wider cells, so
  those rows are empty. Training data: [optimum.md](optimum.md). Test data: solved for the test points themselves at the same
  budget (`python -m paper.runs.optimum_test`), as nobody can who has not seen them. In experiments 1 and 3 it is the error of a blind guess.
- Each mechanism is fitted on training data and keeps its budget there. Its loss on test data may lie above; the bound for test data
  is then not one for it. The coin reports off the grid; a bound for the whole plane is in [optimum.md](optimum.md).
- *Laplace: ours* has the paper's epsilon. `Game.paper(n)` is the paper's recipe where it is printed; `Game()`, `Codebook()` and the
  coin are ours.
- A printed number with a question mark is doubtful: [deviations](../../paper/deviations.md), 17, and [optimum.md](optimum.md).
"""
DIFFERS = """What differs, and why:
- Planar Laplace at the one row that is out: the printed pair looks exchanged ([deviations](../../paper/deviations.md), 17).
- Losses of planar Laplace: the printed ones scatter as means over one report a point do, ours are over 500 (18; [laplace.md](laplace.md)).
- `Game.paper(n)`: the unit inside softplus, the weights of experiments 2 to 4, the optimiser and the start are not printed (19 to 27).
  The ablation in [game.md](game.md) shows what other readings give.
- `Game()`, `Codebook()` and the coin are other mechanisms, held to the same budget on training data: they are not meant to agree.
- Gowalla: the authors' choice of check-ins is not published; [overlap.md](overlap.md) shows what another choice does.
- The optima of the paper are argued; ours are solved and proved ([optimum.md](optimum.md)).
"""
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


def pictures(folder: Path, name: str) -> list[str]:
    """A figure, where it was drawn, and how to read it."""
    read = [_SCATTER] if name.startswith(("scatter", "swapping")) else []
    return (
        [f"![{_PICTURES[name]}]({name}.png)", "", f"{_PICTURES[name]}.", *read, ""]
        if (folder / f"{name}.png").exists()
        else []
    )


def reached(folder: Path) -> list[str]:
    """Whether the coin reaches the blind guess where that is the bound on training data."""
    lines = []
    for number in (
        experiment.number for experiment in EXPERIMENTS if experiment.number not in SOLVED
    ):
        (blind,), coin = ceilings(folder, number)["train"], columns(folder, number)["coin"]
        if coin.runs and all(error >= blind - 1e-9 for error in coin.law("train")):
            lines.append(
                f"- Experiment {number}: the coin reaches the bound {blind:.3f} on training data,"
                f" at {said(coin.losses('train'), 0)} m."
            )
    return [*lines, ""] if lines else []


def coverage(folder: Path) -> list[str]:
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
    lines = [
        "The learned mechanism, 32 printed figures an experiment; *near* is within the tolerance of"
        " planar Laplace (0.02, 0.04 at"
    ]
    lines += ["10 hits, 0.07 on Gowalla). Above hides more than the paper.", ""]
    return [*lines, *table(["experiment", "ours", "seeds", "below", "near", "above"], rows)]


def other_figures(folder: Path, laplace: dict[str, Any]) -> list[str]:
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
    lines = [
        (
            "*The same, ours*: planar Laplace and what can be computed. Classifiers: a fresh one on"
            " reports of the training points."
        ),
        "",
    ]
    heads = ["experiment", "figure", "data", "the paper's is", "paper", "the same, ours"]
    return [*lines, *table([*heads, "`Game.paper(n)`", "`Game()`", "`Codebook()`", "coin"], rows)]


def sources(folder: Path) -> list[str]:
    """The files that these pages are made from; `make docs` fails when one is missing."""
    lines = ["## Made from", ""]
    for path in sorted(folder.glob("*.json")):
        document = read_json(path, what="results of a run")
        seeds = document.get("seeds") or sorted(
            {row["seed"] for row in document.get("rows", []) if "seed" in row}
        )
        lines.append(
            f"- `{path.name}`" + (f", seeds {', '.join(map(str, seeds))}" if seeds else "")
        )
    return [*lines, ""]
