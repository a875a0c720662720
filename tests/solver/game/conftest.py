"""What the tests of the game share."""

import pytest

from sfumato.mechanism.base import Mechanism
from sfumato.study.solve import solve
from tests.solver.game.tiny import TINY, tiny_problem


@pytest.fixture(scope="session")
def undisturbed() -> Mechanism:
    return solve(tiny_problem(), TINY, seed=3).mechanism
