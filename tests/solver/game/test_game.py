"""The game learns, keeps its budget, looks at nothing that it must not see, and never beats the
proven optimum."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples, Split
from sfumato.errors import ProblemError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import squared
from sfumato.solver import Exact, Problem
from sfumato.solver.game import Game, Softplus
from sfumato.solver.outcome import Conditions, LearningFailed
from sfumato.study.solve import solve
from tests.solver.game.tiny import REGION, TINY, same, samples, tiny_problem


def test_the_budget_is_kept_on_training_data_whatever_was_learnt() -> None:
    """With no price on loss the net spends what it likes; the truth is then kept just often
    enough."""
    careless = replace(TINY, budget=Softplus(alpha=0.0), rounds=1)
    over = solve(tiny_problem(max_loss=40.0), replace(careless, calibrate=False))
    assert over.loss > 45 and over.status.startswith("Loss bound exceeded")
    within = solve(tiny_problem(max_loss=40.0), careless)
    assert (
        39.999 < within.loss <= 40 * (1 + 1e-9)
        and "exceeded" not in within.status
        and LearningFailed in map(type, within.ending.warnings)
    )


def test_a_budget_below_what_the_grid_allows_is_refused_and_a_table_of_words_too() -> None:
    with pytest.raises(ProblemError, match="the smallest possible loss"):
        solve(tiny_problem(max_loss=5.0), TINY)
    words = CategoricalData.__new__(CategoricalData)
    object.__setattr__(words, "name", "words")
    problem = tiny_problem()
    object.__setattr__(problem, "samples", words)
    with pytest.raises(ProblemError, match="the game learns on places"):
        TINY.solve(problem, Conditions())


def test_validation_data_chooses_the_round_and_teaches_nothing(undisturbed: Mechanism) -> None:
    problem = tiny_problem()
    assert isinstance(problem.samples, Samples)
    lines: list[dict[str, Any]] = []
    found = solve(problem, TINY, seed=3, progress=lines.append)
    best = max(lines, key=lambda line: line["score"])
    assert re.search(
        rf"round {best['round']} on a lattice of {best['lattice_m']:g} m", found.status
    )
    order = {tuple(point): row for row, point in enumerate(problem.samples.truth)}
    held = [
        order[tuple(point)] for point in problem.samples.carve(TINY.validation, seed=3)[1].truth
    ]
    truth = problem.samples.truth.copy()
    truth[held] = truth[held] * 0.3  # nearer to each other
    moved: list[dict[str, Any]] = []
    solve(
        replace(problem, samples=replace(problem.samples, truth=truth)),
        TINY,
        seed=3,
        progress=moved.append,
    )
    for one, other in zip(lines, moved, strict=True):
        assert one["payoff"] == other["payoff"] and one["loss"] == other["loss"]
    assert [line["score"] for line in lines] != [line["score"] for line in moved]


def test_nan_in_the_test_data_changes_nothing(undisturbed: Mechanism) -> None:
    data = Split(train=samples(), test=samples(1))
    assert data.test is not None
    object.__setattr__(data.test, "truth", np.full_like(data.test.truth, np.nan))
    assert same(
        undisturbed, solve(Problem(data.train, max_loss=90.0, cell_m=50.0), TINY, seed=3).mechanism
    )


def test_history_has_a_line_a_round_with_payoff_loss_accuracies_and_validation_error() -> None:
    history = solve(tiny_problem(), TINY, seed=3).history
    assert [line["round"] for line in history] == [0, 1, 2, 3]
    for line in history:
        assert {
            "payoff",
            "loss",
            "accuracy_train",
            "accuracy_validation",
            "validation_bayes_error",
        } <= line.keys()
        assert (
            0 <= line["accuracy_validation"] <= 1
            and 0 <= line["validation_bayes_error"] <= 2 / 3 + 1e-9
        )


def test_no_game_beats_the_proven_optimum() -> None:
    problem = tiny_problem()
    optimum = solve(problem, Exact(gap=1e-3, plane=False))
    learned = solve(problem, TINY.changed(rounds=12, turns=6, generator_rate=5e-3), seed=1)
    assert learned.loss <= 90 * (1 + 1e-9)
    assert 0.05 < learned.measured.bayes_error.value <= 1 - optimum.leakage + 1e-3 + 1e-9


def _eastward(truth: Any, report: Any) -> Any:
    """A user's own loss: east and west weigh three times as much."""
    return (
        9 * (truth[..., 0] - report[..., 0]) ** 2 + (truth[..., 1] - report[..., 1]) ** 2
    ) ** 0.5


@pytest.mark.parametrize(("loss", "budget"), [(squared, 8000.0), (_eastward, 180.0)])
def test_any_differentiable_loss_can_be_kept(loss: Any, budget: float) -> None:
    found = solve(
        tiny_problem(loss=loss, max_loss=budget, region=REGION),
        TINY.changed(lattices=(0.0,), start_loss_m=80.0, rounds=2),
    )
    assert found.loss <= budget and np.isfinite(found.history[-1]["payoff"])


def test_a_report_at_the_truth_has_a_loss_and_no_slope() -> None:
    import jax
    import jax.numpy as jnp

    from sfumato.mechanism.loss import euclidean
    from sfumato.solver.game.train import smooth_loss

    truth = jnp.array([[0.0, 0.0], [0.0, 0.0]])
    report = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    slope = jax.grad(lambda report: smooth_loss(euclidean, truth, report).sum())(report)
    assert smooth_loss(euclidean, truth, report).tolist() == [0, 5]
    assert np.allclose(slope, [[0, 0], [0.6, 0.8]], atol=1e-6)


def test_the_papers_recipe_is_as_printed() -> None:
    one, two = Game.paper(1), Game.paper(2)
    classifier, first, second = one.classifier, one.generator, two.generator
    assert (classifier.hidden, first.hidden) == ((60, 100, 51), (100, 100, 100))
    assert (classifier.epochs, classifier.batch, classifier.rate) == (3000, 512, 0.001)
    assert (first.epochs, first.batch, first.rate) == (100, 128, 0.0001)
    assert (second.epochs, second.batch, second.rate) == (30, 512, 0.0001)
    assert one.classifier.restart and not one.calibrate and isinstance(one.budget, Softplus)
    assert (one.budget.alpha, one.budget.beta) == (1, 2)
    assert isinstance(
        two.budget, Softplus
    ) and one.budget.unit * 270 == two.budget.unit * 173 == pytest.approx(1)  # metres
    with pytest.raises(ProblemError, match="experiments 1 to 4"):
        Game.paper(5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"validation": 1.0},
        {"validation": float("nan")},
        {"lattices": ()},
        {"generator_rate": 0.0},
        {"generator_steps": 4, "generator_epochs": 2},
        {"shown": "blurred"},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        TINY.changed(**wrong)
