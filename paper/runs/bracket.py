"""What is proved of check-ins to come, at 95 %: the default codebook has at least a Bayes error l,
no mechanism within the budget has more than u.

Experiment 2: the law is known, so each draw is judged on 24,000 fresh check-ins of it.  Experiment
4: on the draw's own 120 held-out check-ins.

python -m paper.runs.bracket
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import EXPERIMENTS, RESULTS, load
from paper.tables import fill, run_module, saved, say
from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.measure.exact import bayes_error
from sfumato.measure.population import certify_population
from sfumato.solver import Codebook, Problem
from sfumato.solver.outcome import QUICK
from sfumato.study.solve import solve

DRAWS = {2: tuple(range(10)), 4: tuple(range(20, 28))}
CONFIDENCE = 0.95
_FRESH = 10  # seeds of four corners per draw, 2,400 check-ins each
SETTINGS = f"{Codebook()!r}, quick proof, {CONFIDENCE:g}, {_FRESH} fresh seeds"


def fresh(draw: int) -> Samples:
    """Check-ins of four corners from seeds that no draw has."""
    seeds = [1000 * (draw + 1) + number for number in range(_FRESH)]
    parts = [part for seed in seeds for part in _parts(seed)]
    return Samples(
        secret=np.concatenate([part.secret for part in parts]),
        truth=np.concatenate([part.truth for part in parts]),
        secrets=parts[0].secrets,
        plane=parts[0].plane,
        region=parts[0].region,
        name="four-corners, fresh",
    )


def _parts(seed: int) -> tuple[Samples, Samples]:
    data = four_corners(seed=seed)
    assert data.test is not None
    return data.train, data.test


def row(number: int, draw: int) -> dict[str, Any]:
    """One draw: the codebook's figures on held-out check-ins and the bracket by them."""
    experiment = next(one for one in EXPERIMENTS if one.number == number)
    data = load(experiment.data, draw)
    held_out = data.test if experiment.data == "gowalla" else fresh(draw)
    assert held_out is not None
    problem = Problem(data.train, max_loss=experiment.max_loss_m)
    solution = solve(problem, Codebook(), seed=draw, proof=QUICK)
    # a quick proof is for reports on the grid; the coin, where it is returned, gets no bracket
    mechanism, certificate = solution.mechanism, solution.certificate
    law = mechanism.law(held_out.joint())
    assert law is not None and certificate is not None
    proved = certify_population(certificate, problem, mechanism, held_out, confidence=CONFIDENCE)
    say(f"experiment {number}, draw {draw}: {proved!r}")
    return {
        "experiment": number,
        "draw": draw,
        "settings": SETTINGS,
        "held_out": len(held_out),
        "loss_m": law.loss,
        "bayes_error": bayes_error(law.joint),
        "at_least": proved.error,
        "at_most": 1 - proved.least_grid,
        "loss_interval_m": [proved.loss.low, proved.loss.high],
        "bracket": None if proved.bracket is None else list(proved.bracket),
    }


def wanted() -> list[dict[str, Any]]:
    """The rows of all draws, by their keys."""
    return [
        {"experiment": number, "draw": draw, "settings": SETTINGS}
        for number, draws in DRAWS.items()
        for draw in draws
    ]


def main(folder: Path = RESULTS) -> None:
    """What the folder does not hold yet."""
    path = folder / "bracket.json"
    pairs = [(one["experiment"], one["draw"]) for one in wanted()]
    todo = {pair: partial(row, *pair) for pair in pairs}
    known = saved(path, SETTINGS, "experiment", "draw")
    fill(path, "python -m paper.runs.bracket", todo, known)


if __name__ == "__main__":
    run_module(__doc__, main)
