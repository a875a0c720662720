"""The codebook on the paper's experiments and on Stockholm, its budget on the training check-ins:
exact Bayes error and information on its own reports, beside the bounds.

`python -m paper.runs.learned` goes on where it was stopped; `--again` begins anew.
"""

import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, SEEDS, data_folder, load
from paper.tables import run_module, say
from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import PAPER_REGION
from sfumato.files import write_json
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.objective import objective_named
from sfumato.measure.worst import exposed, worst_report
from sfumato.mechanism.base import Mechanism
from sfumato.solver import Codebook, Coin, Exact, Problem
from sfumato.study.solve import solve

STOCKHOLM = (59.3326, 18.0649, 4500.0)
_CELLS = 260
RECIPES = ("resampled", "these")
_THESE = Codebook(made_for="these")
_RESAMPLED = replace(
    _THESE, places=128, steps=1500, wave_scale=4.0, resampled_share=0.5, distillation=0.0
)
_JOBS: tuple[tuple[str, int | None, float, str, str], ...] = (
    *(
        ("paper", number, EXPERIMENTS[number - 1].max_loss_m, "bayes", "resampled")
        for number in (1, 2, 3, 4)
    ),
    *(("paper", number, EXPERIMENTS[number - 1].max_loss_m, "bayes", "these") for number in (2, 4)),
    *(
        ("paper", number, EXPERIMENTS[number - 1].max_loss_m, "information", recipe)
        for recipe in ("these", "resampled")
        for number in (2, 4)
    ),
    *(
        ("stockholm", None, budget, "bayes", recipe)
        for recipe in ("these", "resampled")
        for budget in (300.0, 518.0)
    ),
)


def settings(recipe: str, number: int | None) -> Codebook:
    """What a recipe is learned with in an experiment, or in Stockholm.  "these" fits the training
    check-ins as closely as it can; "resampled" does not learn them by heart, with more resampling
    where a user has 82 of them."""
    if recipe == "these":
        return _THESE
    assert recipe == "resampled", recipe
    many = number is not None and EXPERIMENTS[number - 1].data == "synthetic"
    return _RESAMPLED if many else replace(_RESAMPLED, resampled_share=0.7)


def _stockholm_file() -> Path:
    return data_folder() / "gowalla-stockholm.csv.gz"


def jobs() -> list[tuple[str, int | None, float, str, str]]:
    """What is learned: data, experiment, budget, objective, recipe.  Stockholm only where its file
    is."""
    return [job for job in _JOBS if job[0] != "stockholm" or _stockholm_file().is_file()]


def stockholm(seed: int) -> Split:
    """The paper's selection on another city: six most frequent users of the square, 82 + 20
    check-ins each."""
    around = read_checkins(_stockholm_file(), square=STOCKHOLM)
    return around.top_users(6).split(82, 20, seed=seed, overlap_weight=0.15)


@cache
def stockholm_bound(budget: float, seed: int) -> float:
    """The least Bayes vulnerability of any mechanism on the grid, proved by the exact solver,
    checked again from the data."""
    problem = Problem(stockholm(seed).train, max_loss=budget, region=PAPER_REGION, cells=_CELLS)
    certificate = solve(problem, Exact(plane=False)).certificate
    assert certificate is not None
    return certificate.bound(problem).grid


def run(
    data: str, number: int | None, budget: float, objective: str, recipe: str, seed: int
) -> dict[str, Any]:
    """Learn on training data; the exact law on training and on test data, and the coin's."""
    split = stockholm(seed) if number is None else load(EXPERIMENTS[number - 1].data, seed)
    assert split.test is not None
    problem = Problem(
        split.train,
        max_loss=budget,
        region=PAPER_REGION,
        cells=_CELLS,
        objective=objective_named(objective, split.train.secrets),
    )
    clock = time.process_time()
    solution = solve(problem, settings(recipe, number), seed=seed, proof="none")
    seconds = time.process_time() - clock
    coin = solve(problem, Coin(), seed=seed).mechanism
    parts = {"train": split.train, "test": split.test}
    return {
        "data": data,
        "experiment": number,
        "max_loss_m": budget,
        "objective": objective,
        "recipe": recipe,
        "settings": repr(settings(recipe, number)),
        "seed": seed,
        **{name: figures(solution.mechanism, samples) for name, samples in parts.items()},
        **{f"coin_{name}": figures(coin, samples) for name, samples in parts.items()},
        "bound_grid": stockholm_bound(budget, seed) if number is None else None,
        "processor_seconds": seconds,
        "status": "  ".join([solution.status, *solution.warnings]),
        "data_hash": split.train.hash,
    }


def figures(mechanism: Mechanism, samples: Samples) -> dict[str, float]:
    """Exact, on the mechanism's own reports."""
    law = mechanism.law(samples.joint())
    assert law is not None
    return {
        "loss_m": law.loss,
        "bayes_error": bayes_error(law.joint),
        "information_bits": mutual_information(law.joint),
        "exposed": exposed(law.joint),
        "worst_report": worst_report(law.joint),
    }


def main(folder: Path = RESULTS, seeds: tuple[int, ...] = SEEDS, *, again: bool = False) -> None:
    """What the folder does not hold yet."""
    path = folder / "learned.json"
    rows = (
        [] if again or not path.exists() else json.loads(path.read_text(encoding="utf-8"))["rows"]
    )
    rows = [
        row
        for row in rows
        if row["recipe"] in RECIPES
        and row.get("settings") == repr(settings(row["recipe"], row["experiment"]))
    ]
    there = {
        (
            row["data"],
            row["experiment"],
            row["max_loss_m"],
            row["objective"],
            row["recipe"],
            row["seed"],
        )
        for row in rows
    }
    for job in jobs():
        for seed in seeds:
            if (*job, seed) not in there:
                row = run(*job, seed)
                rows = [*rows, row]
                write_json(path, {"command": "python -m paper.runs.learned", "rows": rows})
                done = " ".join(str(word) for word in (*job, seed))
                say(
                    f"{done}: train {row['train']['bayes_error']:.4f}, test"
                    f" {row['test']['bayes_error']:.4f}"
                )


if __name__ == "__main__":
    run_module(__doc__, main, again=True)
