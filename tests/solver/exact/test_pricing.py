"""Prices of reports: scores exist where a report is useless, and every bound they prove holds."""

import numpy as np
import pytest

from sfumato.measure.bound import Claim, bound_grid
from sfumato.solver.exact.column_generation import generate_columns
from sfumato.solver.exact.pricing import Budgets, cost_of, needs, price, scores_for, whole_bound
from sfumato.solver.exact.task import nearest_reports, repaired
from tests.solver.exact.programs import scattered, task_of


@pytest.mark.parametrize("information", [False, True], ids=["bayes", "information"])
def test_any_scores_and_any_price_prove_a_bound_below_the_optimum(information: bool) -> None:
    joint, _, _, loss = scattered(10, 3, 5)
    task = task_of(joint, loss, max_loss=20.0, information=information)
    best = generate_columns(task, gap=1e-6)
    random = np.random.default_rng(0)
    for _ in range(10):
        shares = random.dirichlet(np.ones(3), size=task.report_count)
        multipliers = random.exponential(0.01, 1)
        bound = whole_bound(task, shares, multipliers)
        assert bound <= best.leakage + 1e-9
        claim = Claim(joint, "information" if information else "bayes", max_loss=20.0)
        checked = bound_grid(claim, shares, multipliers, lambda chosen: loss[:, chosen])
        assert bound == pytest.approx(checked, abs=1e-9)


def test_pricing_the_optimum_asks_for_no_report_and_proves_its_bound() -> None:
    joint, _, _, loss = scattered(10, 3, 5)
    task = task_of(joint, loss, max_loss=20.0)
    best = generate_columns(task, gap=1e-9)
    budgets = Budgets.of(task, nearest_reports(task)[0])
    every = np.arange(task.report_count)
    shares, bound, wanted = price(task, best.scores, best.multipliers, every, budgets)
    assert len(wanted) == 0 and bound == pytest.approx(best.bound, abs=1e-9)
    np.testing.assert_array_equal(shares, best.scores)


def test_scores_leave_every_truth_its_value_at_a_report_that_is_useless_to_all() -> None:
    joint, _, _, loss = scattered(10, 3, 5)
    task = task_of(joint, loss, max_loss=20.0)
    best = generate_columns(task, gap=1e-9)
    budgets = Budgets.of(task, nearest_reports(task)[0])
    prices = budgets.charges @ best.multipliers
    values = cost_of(task, best.scores, loss, prices, None).min(axis=1)
    shares = scores_for(task, needs(task, values, prices, loss, budgets))
    assert np.allclose(shares.sum(axis=1), 1) and np.all(shares >= 0)
    assert np.all(cost_of(task, shares, loss, prices, None) >= values[:, None] - 1e-6)


def test_a_repaired_law_keeps_its_budget_and_changes_no_more_than_it_must() -> None:
    joint, _, _, loss = scattered(10, 3, 5)
    charges = joint.sum(axis=0)[:, None]
    law = np.full(loss.shape, 1.0 / loss.shape[1])
    spent = float(charges[:, 0] @ (law * loss).sum(axis=1))
    same = repaired(law, loss, charges, np.array([spent * 1.01]))
    np.testing.assert_allclose(same, law)
    kept = repaired(law, loss, charges, np.array([0.9 * spent]))
    assert np.allclose(kept.sum(axis=1), 1)
    assert 0.9 * spent * (1 - 1e-9) <= charges[:, 0] @ (kept * loss).sum(axis=1) <= 0.9 * spent
