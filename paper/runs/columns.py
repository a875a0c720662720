"""The codebook's and the coin's columns of the paper's tables: its estimator on their released
reports, beside their exact law.  The codebook is the recipe "resampled" of paper.runs.learned.

Rows that columns.json already holds with the same settings are not computed again.

python -m paper.runs.columns [--experiments 1 2 3 4] [--seeds 0 1 2] [--again]
"""

import time
from pathlib import Path
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS, SEEDS, SPLITS, Experiment, load, part
from paper.runs.game_run import FINEST, classified, estimates, shown_reports
from paper.runs.learned import figures, settings
from paper.tables import arguments, say
from sfumato.data.synthetic import PAPER_REGION
from sfumato.files import read_json, write_json
from sfumato.solver import Coin, Problem
from sfumato.solver.outcome import Solver
from sfumato.study.solve import solve

SOLVERS = ("codebook", "coin")
VALIDATION = 0.125  # as in Game(): what the fresh classifier does not learn from
_CELLS = 260


def solver(name: str, number: int) -> Solver:
    """What a column is solved with in an experiment."""
    return Coin() if name == "coin" else settings("resampled", number)


def run(experiment: Experiment, name: str, seed: int) -> dict[str, Any]:
    """Solve on training data; the seed draws the data, the learning and the reports."""
    data = load(experiment.data, seed)
    problem = Problem(data.train, max_loss=experiment.max_loss_m, region=PAPER_REGION, cells=_CELLS)
    chosen = solver(name, experiment.number)
    clock = time.process_time()
    solution = solve(problem, chosen, seed=seed, proof="none")
    seconds = time.process_time() - clock
    measured = {split: estimates(solution.mechanism, part(data, split), seed) for split in SPLITS}
    row = {
        "experiment": experiment.number,
        "solver": name,
        "seed": seed,
        "settings": repr(chosen),
        "max_loss_m": experiment.max_loss_m,
        "status": "  ".join([solution.status, *solution.warnings]),
        "solve_seconds": seconds,
        "estimates": {split: values for split, (values, _) in measured.items()},
        "sampled_loss_m": {split: loss for split, (_, loss) in measured.items()},
        "law": {split: figures(solution.mechanism, part(data, split)) for split in SPLITS},
        "classifier": classified(solution.mechanism, data, validation=VALIDATION, seed=seed),
    }
    if name == "codebook":  # the coin is not drawn
        row |= shown_reports(experiment, solution.mechanism, data, name, row)
    return {**row, "seconds": time.process_time() - clock}


def known(folder: Path) -> dict[tuple[int, str, int], dict[str, Any]]:
    """Rows that an earlier call saved with the settings of today."""
    path = folder / "columns.json"
    rows = read_json(path, what="the columns of codebook and coin")["rows"] if path.exists() else []
    return {
        (row["experiment"], row["solver"], row["seed"]): row
        for row in rows
        if row["settings"] == repr(solver(row["solver"], row["experiment"]))
    }


def main(
    folder: Path = RESULTS,
    seeds: tuple[int, ...] = SEEDS,
    *,
    experiments: tuple[int, ...] = (1, 2, 3, 4),
    again: bool = False,
) -> None:
    """What the folder does not hold yet."""
    rows = known(folder)
    for number in experiments:
        for name in SOLVERS:
            for seed in seeds:
                if (number, name, seed) in rows and not again:
                    continue
                row = rows[number, name, seed] = run(EXPERIMENTS[number - 1], name, seed)
                write_json(
                    folder / "columns.json",
                    {
                        "command": "python -m paper.runs.columns",
                        "rows": [rows[key] for key in sorted(rows)],
                    },
                )
                say(
                    f"experiment {number}, {name}, seed {seed}: Bayes error"
                    f" {row['estimates']['test'][FINEST]:.3f} on test data"
                )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument(
        "--experiments", type=int, nargs="+", default=[1, 2, 3, 4], choices=(1, 2, 3, 4)
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument(
        "--again", action="store_true", help="compute again what an earlier run has saved"
    )
    chosen = parser.parse_args()
    main(seeds=tuple(chosen.seeds), experiments=tuple(chosen.experiments), again=chosen.again)
