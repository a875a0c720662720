"""The interior point of linked reports: its bound, and the overlaps that it says it has."""

from itertools import combinations

import numpy as np
import pytest

from sfumato.data.joint import Joint
from sfumato.measure.linked import overlaps
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact.interior_point import Restricted
from sfumato.solver.exact.linked_point import distances, solve_linked
from tests.solver.exact.programs import scattered


def _program(max_loss: float) -> tuple[np.ndarray, np.ndarray, Restricted]:
    joint, _, _, loss = scattered(8, 3, 4)
    charges = joint.sum(axis=0)[:, None]
    return joint, loss, Restricted(joint.T.copy(), loss, charges, np.array([max_loss]))


def test_distances_are_one_minus_the_measured_overlaps() -> None:
    table = np.random.default_rng(4).exponential(size=(3, 5))
    table /= table.sum()
    measured = overlaps(Joint(table))
    expected = [1 - measured[pair] for pair in combinations(range(3), 2)]
    np.testing.assert_allclose(distances(table.T), expected, atol=1e-12)


@pytest.mark.parametrize("max_loss", [15.0, 25.0])
def test_the_largest_distance_is_that_of_the_law_and_its_bound_closes(max_loss: float) -> None:
    joint, loss, program = _program(max_loss)
    point = solve_linked(program, np.eye(3), gap=1e-7)
    assert 0 <= point.leakage - point.bound <= 1e-7
    assert np.allclose(point.mechanism.sum(axis=1), 1) and np.all(point.mechanism >= 0)
    assert joint.sum(axis=0) @ (point.mechanism * loss).sum(axis=1) <= max_loss + 1e-9
    found = distances(point.mechanism.T @ joint.T)
    assert found.max() == pytest.approx(point.leakage, abs=1e-9)
    assert point.pair_weights is not None and point.pair_weights.sum() == pytest.approx(1, abs=1e-6)


def test_no_law_that_is_drawn_has_a_smaller_largest_distance() -> None:
    joint, loss, program = _program(25.0)
    bound = solve_linked(program, np.eye(3), gap=1e-7).bound
    random, tried = np.random.default_rng(0), 0
    for _ in range(400):
        near = np.exp(-loss / random.uniform(5, 40)) * random.exponential(size=loss.shape)
        law = near / near.sum(axis=1, keepdims=True)
        if joint.sum(axis=0) @ (law * loss).sum(axis=1) <= 25.0:
            tried += 1
            assert distances(law.T @ joint.T).max() >= bound - 1e-9
    assert tried > 20


def test_a_weighted_sum_of_distances_is_no_larger_than_at_the_least_largest_one() -> None:
    joint, _, program = _program(25.0)
    weights = np.array([[0.2, 0.3, 0.5]])
    least_sum = solve_linked(program, weights, gap=1e-7)
    fairest = solve_linked(program, np.eye(3), gap=1e-7)
    other = float(weights[0] @ distances(fairest.mechanism.T @ joint.T))
    assert least_sum.leakage <= other + 1e-6


def test_a_passed_deadline_gives_the_start_with_its_gap() -> None:
    _, _, program = _program(25.0)
    point = solve_linked(program, np.eye(3), gap=1e-12, deadline=Deadline(0.0))
    assert point.steps == 0 and point.leakage - point.bound > 1e-3
