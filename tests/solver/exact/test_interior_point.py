"""The interior point over given reports: against the full program, and what its numbers mean."""

from functools import partial

import numpy as np
import pytest

from sfumato.solver.deadline import Deadline
from sfumato.solver.exact.interior_point import Restricted, central_start, solve_restricted
from sfumato.solver.exact.leakage_curves import Information, information, vulnerability
from tests.solver.exact.programs import full_program, scattered


def _program(max_loss: float) -> tuple[np.ndarray, np.ndarray, Restricted]:
    joint, _, _, loss = scattered(8, 3, 4)
    charges = joint.sum(axis=0)[:, None]
    return joint, loss, Restricted(joint.T.copy(), loss, charges, np.array([max_loss]))


@pytest.mark.parametrize("max_loss", [15.0, 25.0, 40.0])
def test_vulnerability_equals_the_full_program_and_the_bound_lies_below(max_loss: float) -> None:
    joint, loss, program = _program(max_loss)
    point = solve_restricted(program, gap=1e-8)
    assert point.leakage == pytest.approx(full_program(joint, loss, max_loss=max_loss), abs=1e-7)
    assert 0 <= point.leakage - point.bound <= 1e-8
    assert np.allclose(point.mechanism.sum(axis=1), 1) and np.all(point.mechanism >= 0)
    assert vulnerability(point.mechanism.T @ joint.T) == pytest.approx(point.leakage, abs=1e-9)
    assert np.allclose(point.shares.sum(axis=1), 1) and np.all(point.multipliers >= 0)


def test_information_is_the_measured_one_and_its_bound_closes() -> None:
    joint, _, program = _program(25.0)
    point = solve_restricted(program, curve=partial(Information, prior=joint.sum(axis=1)), gap=1e-7)
    measured = information(point.mechanism.T @ joint.T, joint.sum(axis=1))
    assert point.leakage == pytest.approx(measured, abs=1e-9)
    assert 0 <= point.leakage - point.bound <= 1e-7 and 0 < measured < np.log(3)


def test_the_start_is_strictly_inside_the_budget_and_uses_no_barred_pair() -> None:
    _, loss, program = _program(25.0)
    allowed = loss <= np.quantile(loss, 0.7)
    law, _, gaps = central_start(Restricted(*_fields(program), allowed))
    assert np.allclose(law.sum(axis=1), 1) and np.all(law[~allowed] == 0) and np.all(gaps > 0)
    assert program.charges[:, 0] @ (law * loss).sum(axis=1) < 25.0


def _fields(program: Restricted) -> tuple[np.ndarray, ...]:
    return program.weights, program.loss, program.charges, program.limits


def test_a_passed_deadline_gives_the_start_with_its_gap() -> None:
    _, _, program = _program(25.0)
    point = solve_restricted(program, gap=1e-12, deadline=Deadline(0.0))
    assert point.steps == 0 and point.leakage - point.bound > 1e-3
