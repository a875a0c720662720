"""One game of the reproduction, and everything that is measured on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from paper.experiments import (
    CELLS,
    HITS,
    REPORTS,
    SPLITS,
    Experiment,
    by_cells_and_hits,
    grid,
    load,
    packed,
    part,
    reports,
    shown,
)
from sfumato.adversary.base import score
from sfumato.adversary.neural import Neural
from sfumato.data.samples import Samples, Split
from sfumato.files import write_json
from sfumato.measure.judge import judge
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.generator import GeneratorNet
from sfumato.mechanism.loss import euclidean
from sfumato.mechanism.wrap import Snapped
from sfumato.solver import Coin, Game, Laplace, Problem
from sfumato.solver.game.candidate import Candidate
from sfumato.study.solve import solve

ADVERSARY = Neural(epochs=100, batch=512)
COPIES = 10  # reports of each point for the fresh classifier
FINEST = "260 cells, 500 hits"
LINE = (  # of the history that is kept
    "round",
    "payoff",
    "loss",
    "accuracy_train",
    "accuracy_validation",
    "validation_bayes_error",
)


def estimates(mechanism: Mechanism, samples: Samples, seed: int) -> tuple[dict[str, float], float]:
    """The paper's estimate for each grid and number of hits, and the loss over all reports."""
    secret, truth, report = reports(samples, mechanism, max(HITS), seed)
    errors = by_cells_and_hits(samples, secret, report, HITS)
    named = {f"{cells} cells, {hits} hits": value for (cells, hits), value in errors.items()}
    return named, float(euclidean(truth, report).mean())


def classified(
    mechanism: Mechanism, data: Split, *, validation: float, seed: int
) -> dict[str, list[float]]:
    """Accuracy and F1 of a fresh classifier on training, validation and test data; it learns from
    the training part alone."""
    learning, validating = data.train.carve(validation, seed=seed)
    assert data.test is not None
    drawn = {
        name: reports(samples, mechanism, COPIES, seed + number)
        for number, (name, samples) in enumerate(
            (("training", learning), ("validation", validating), ("test", data.test))
        )
    }
    users = len(learning.secrets)
    attacker = ADVERSARY.fit(drawn["training"][0], drawn["training"][2], secrets=users, seed=seed)
    scores = {
        name: score(attacker, secret, report, secrets=users)
        for name, (secret, _, report) in drawn.items()
    }
    return {name: [one.accuracy, one.f1] for name, one in scores.items()}


def net_of(mechanism: Mechanism) -> GeneratorNet:
    """The net inside a released mechanism."""
    while isinstance(mechanism, Snapped):
        mechanism = mechanism.inner
    assert isinstance(mechanism, GeneratorNet)
    return mechanism


def beside(mechanism: Mechanism, problem: Problem, data: Split) -> dict[str, float]:
    """Bayes error and information on test data at the paper's finest cells, with no sampling, and
    the losses."""
    assert data.test is not None
    found = judge(mechanism, data.test, grid=grid(max(CELLS)))
    return {
        "loss_m": found.loss.value,
        "training_loss_m": judge(mechanism, data.train, grid=problem.grid).loss.value,
        "bayes_error": found.bayes_error.value,
        "information_bits": found.information_bits.value,
    }


def shown_reports(
    experiment: Experiment, mechanism: Mechanism, data: Split, name: str, run: dict[str, Any]
) -> dict[str, Any]:
    """One report of each point that figures show, seed 0.  Those of real people are put aside, not
    into the results."""
    if run["seed"] != 0:
        return {}
    found = {
        f"{split}_reports_m": packed(mechanism.sample(shown(data, split).truth, seed=0))
        for split in SPLITS
    }
    if experiment.data == "synthetic":
        return found
    write_json(
        REPORTS / f"{name}_{experiment.number}.json", {"same_as": run["estimates"]["test"], **found}
    )
    return {}


def one_run(
    experiment: Experiment,
    game: Game,
    seed: int,
    *,
    kept: Path | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Everything that is said of one game; the seed draws the data, the game and the noise."""
    data = load(experiment.data, seed)
    problem = Problem(data.train, max_loss=experiment.max_loss_m)
    learned = solve(problem, game, seed=seed, checkpoint=kept, time_limit=seconds)
    net = net_of(learned.mechanism)
    free = replace(net, levels=None)
    measured = {split: estimates(learned.mechanism, part(data, split), seed) for split in SPLITS}
    unsnapped = {split: estimates(free, part(data, split), seed) for split in SPLITS}
    run = {
        "seed": seed,
        "status": "  ".join([learned.status, *learned.warnings]),
        "ended": learned.ending.ended.value,
        "seconds": learned.seconds,
        "rounds": len(learned.history),
        "estimates": {split: values for split, (values, _) in measured.items()},
        "sampled_loss_m": {split: loss for split, (_, loss) in measured.items()},
        "unsnapped": {split: values for split, (values, _) in unsnapped.items()},
        "unsnapped_loss_m": {split: loss for split, (_, loss) in unsnapped.items()},
        "classifier": classified(learned.mechanism, data, validation=game.validation, seed=seed),
        "history": [{key: line[key] for key in LINE} for line in learned.history],
        "game": beside(learned.mechanism, problem, data),
        "coin": beside(solve(problem, Coin(), seed=seed).mechanism, problem, data),
        "laplace": beside(solve(problem, Laplace(), seed=seed).mechanism, problem, data),
    }
    run |= shown_reports(
        experiment, learned.mechanism, data, "game" if game.calibrate else "paper", run
    )
    if not game.calibrate:
        run["calibrated"] = beside(
            Candidate(net, 1, problem, data.train).calibrated().mechanism, problem, data
        )
    return run
