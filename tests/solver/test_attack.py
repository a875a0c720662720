"""Certificates from an adversary's guesses."""

import numpy as np
import pytest

from sfumato.adversary.counting import Cells
from sfumato.measure.objective import Bayes, Information, Objective
from sfumato.solver import Exact
from sfumato.solver.attack import certificate_from_attacker
from sfumato.study.solve import solve
from tests.solver.three_users import DATA, on_square


@pytest.mark.parametrize("objective", [Bayes(), Information()], ids=["bayes", "information"])
def test_an_adversarys_certificate_is_valid_and_below_the_exact_bound(objective: Objective) -> None:
    problem = on_square(max_loss=70.0, objective=objective, cell_m=100.0)
    exact = solve(problem, Exact(gap=1e-6, plane=False))
    reports = np.concatenate([exact.mechanism.sample(DATA.truth, seed=seed) for seed in range(20)])
    attacker = Cells(problem.grid).fit(np.tile(DATA.secret, 20), reports, secrets=3)
    bound = certificate_from_attacker(problem, attacker).bound(problem).grid
    blind = 1 / 3 if objective.name == "bayes" else 0.0
    assert blind - 1e-9 <= bound <= exact.leakage + 1e-12
    # Against the best answer to the best mechanism it is worth something; a blind guess would stay
    # at `blind`.
    assert bound > blind + 0.1 * (exact.leakage - blind)


def test_an_adversary_who_knows_nothing_proves_what_a_blind_guess_proves() -> None:
    problem = on_square(max_loss=70.0, cell_m=100.0)
    wrong = Cells(problem.grid).fit(
        np.array([2, 0, 1]), np.array([[0.0, 0.0], [200.0, 0.0], [100.0, 170.0]]), secrets=3
    )
    assert certificate_from_attacker(problem, wrong).bound(problem).grid == pytest.approx(
        1 / 3, abs=1e-9
    )
