"""The question turned round: the smallest loss for a leakage."""

import time

import numpy as np
import pytest

from sfumato.errors import ProblemError
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact.column_generation import measured_leakage
from sfumato.solver.exact.smallest_loss import min_loss_given_max_leakage
from tests.solver.exact.programs import full_program, random_problem, scattered, task_of


@pytest.mark.parametrize("seed", range(8))
def test_smallest_loss_undoes_the_optimum(seed: int) -> None:
    _, joint, loss, _ = random_problem(6 * seed + 1)
    nearest = np.eye(loss.shape[1])[loss.argmin(axis=1)]
    task = task_of(joint, loss)
    aim = 0.5 * (measured_leakage(task, nearest) + joint.sum(axis=1).max())
    back = min_loss_given_max_leakage(task, aim, tolerance=1e-4)
    assert back.leakage <= aim + 1e-12
    assert back.loss_bound <= back.loss <= back.loss_bound * (1 + 1e-4) + 1e-9
    less = back.loss_bound * (1 - 1e-6)
    if less > joint.sum(axis=0) @ loss.min(axis=1):
        assert (
            full_program(joint, loss, max_loss=less) >= aim - 1e-9
        )  # with less loss nobody leaks as little


def test_the_smallest_loss_stops_at_its_time_limit_with_what_it_has() -> None:
    joint, _, _, loss = scattered(200, 4, 25)
    task = task_of(joint, loss)
    start = time.monotonic()
    short = min_loss_given_max_leakage(task, 0.5, tolerance=1e-9, deadline=Deadline.after(0.2))
    assert time.monotonic() - start < 20  # one step and one pricing pass may be under way
    assert short.leakage <= 0.5 + 1e-12
    assert short.loss_bound < short.loss * (1 - 1e-9)
    with pytest.raises(ProblemError, match="too short"):
        min_loss_given_max_leakage(
            task_of(joint, loss, cap=60.0), 0.26, deadline=Deadline.after(1e-3)
        )
