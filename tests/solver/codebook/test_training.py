"""The schedule of a codebook's learning, and what its compiled steps compute."""

from typing import Any

import numpy as np
import pytest

from sfumato.data.joint import Joint
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.solver.codebook.learn import leakage
from sfumato.solver.codebook.training import PARTS, until
from sfumato.solver.deadline import Deadline
from sfumato.solver.learner import Clock


class _Left:
    """A deadline with a fixed number of seconds left."""

    limited = True

    def __init__(self, seconds: float) -> None:
        self.left = seconds


def _clock(took: list[float], left: float) -> Any:
    clock: Any = Clock(Deadline(), took)
    clock.deadline = _Left(left)
    return clock


def test_the_time_of_compiling_does_not_hurry_what_follows() -> None:
    """The first part took 8 s, mostly to compile; 12 s are left for 19 parts.  Later parts are
    taken at their word."""
    assert until(1, 0.05, _clock([8.0], 12.0), PARTS) < 0.2
    assert until(2, 0.1, _clock([8.0, 6.0], 12.0), PARTS) == pytest.approx(0.1 + 0.9 / 2)
    assert until(1, 0.05, _clock([8.0], -1.0), PARTS) == 1


def test_without_a_time_limit_all_parts_are_even() -> None:
    assert until(3, 0.15, Clock(Deadline(), [100.0] * 3), PARTS) == pytest.approx(0.2)


@pytest.mark.parametrize("seed", range(4))
def test_the_smoothed_leakage_tends_to_the_measured_one(seed: int) -> None:
    """At sharpness 1e4 the smoothed maximum over 3 users is at most ln 3 / 1e4 above the maximum, in
    float32."""
    table = np.random.default_rng(seed).dirichlet(np.ones(15)).reshape(3, 5)
    gains = np.eye(3)
    sharp = float(leakage(table, gains, 1e4, 0.0))
    assert -1e-6 <= sharp - (1 - bayes_error(Joint(table))) <= 2e-4
    nats = float(leakage(table, gains, 1e4, 1.0))
    assert nats == pytest.approx(mutual_information(Joint(table)) * np.log(2), abs=1e-5)
