"""What the JSON of the runs holds, by column of the whole page: one list of runs a learned column,
one proven ceiling an experiment."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import EXPERIMENTS
from paper.tables import spread
from sfumato.files import read_json
from sfumato.solver.outcome import Ended

LEARNED = ("Game.paper", "Game", "Codebook", "coin")
FINEST = (260, 500)
SOLVED = (2, 4)  # by the exact solver; in the others the coin reaches the blind guess
_BLIND = {"synthetic": 3 / 4, "gowalla": 5 / 6}  # users have equally many points


@dataclass(frozen=True)
class Column:
    """Runs of one mechanism in one experiment, a seed each."""

    name: str
    runs: list[dict[str, Any]]

    @property
    def seeds(self) -> list[int]:
        return [run["seed"] for run in self.runs]

    @property
    def told_seeds(self) -> str:
        """The seeds in words; a game that a time limit stopped says so."""
        stopped = {
            run["seed"]: f" (stopped after {run['rounds']} rounds)"
            for run in self.runs
            if run.get("ended") == Ended.TIME_LIMIT.value
        }
        return ", ".join(f"{seed}{stopped.get(seed, '')}" for seed in self.seeds) or "not run"

    def errors(self, split: str, cells: int, hits: int) -> list[float]:
        """The paper's estimate on the released reports."""
        return [run["estimates"][split][f"{cells} cells, {hits} hits"] for run in self.runs]

    def losses(self, split: str) -> list[float]:
        """Metres, the mean over all 500 reports of each point."""
        return [run["sampled_loss_m"][split] for run in self.runs]

    def over(self, budget_m: float) -> str:
        """A mark where the median loss on test data lies above the budget, by more than half a part
        in a thousand."""
        return "!" if self.runs and median(self.losses("test")) > 1.0005 * budget_m else ""

    def law(self, split: str) -> list[float]:
        """The Bayes error computed from the law: the codebook's and the coin's on their own
        reports, the games' on 25 m cells."""
        if split == "test" and self.name.startswith("Game"):
            return [run["game"]["bayes_error"] for run in self.runs]
        return [run["law"][split]["bayes_error"] for run in self.runs if "law" in run]

    def classifier(self, split: str, place: int) -> list[float]:
        """Accuracy (place 0) or F1 (place 1) of a fresh classifier."""
        return [
            run["classifier"]["training" if split == "train" else split][place] for run in self.runs
        ]


def _runs(path: Path) -> list[dict[str, Any]]:
    return read_json(path, what="a table of the game")["runs"] if path.exists() else []


def columns(folder: Path, number: int) -> dict[str, Column]:
    """Game.paper, Game, Codebook and coin; a column without runs is empty."""
    path = folder / "columns.json"
    others = (
        read_json(path, what="the columns of codebook and coin")["rows"] if path.exists() else []
    )
    own = {
        name: [row for row in others if (row["experiment"], row["solver"]) == (number, name)]
        for name in ("codebook", "coin")
    }
    runs = (
        _runs(folder / f"paper_{number}.json"),
        _runs(folder / f"game_{number}.json"),
        own["codebook"],
        own["coin"],
    )
    return {name: Column(name, found) for name, found in zip(LEARNED, runs, strict=True)}


def ceilings(folder: Path, number: int) -> dict[str, list[float]]:
    """The Bayes error that nobody is above, on training and on test data, a seed each: proved on
    the 260 x 260 grid, or the blind guess."""
    trained, tested = (
        read_json(folder / name, what="proven optima")["rows"] if (folder / name).exists() else []
        for name in ("optimum.json", "optimum_test.json")
    )
    train = [
        1 - row["bound_grid"]
        for row in trained
        if (row["experiment"], row["objective"]) == (number, "bayes")
    ]
    blind = [] if number in SOLVED else [_BLIND[EXPERIMENTS[number - 1].data]]
    return {
        "train": train or blind,
        "test": [row["nobody_above"] for row in tested if row["experiment"] == number] or blind,
    }


def said(values: list[float], digits: int = 3, mark: str = "") -> str:
    """The median and the spread; nothing where nothing was run."""
    return mark + spread(values, digits) if values else ""
