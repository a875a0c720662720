"""The shapes that the package writes into its annotations are checked while tests run."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from sfumato.solver.exact.interior_point import Restricted
from sfumato.solver.exact.task import repaired
from tests.shapes import MODULES


def test_a_table_that_is_turned_round_is_refused() -> None:
    law, loss = np.full((3, 2), 0.5), np.ones((3, 2))
    charges, limits = np.full((3, 1), 1 / 3), np.ones(1)
    assert repaired(law, loss, charges, limits).shape == (3, 2)
    with pytest.raises(TypeCheckError):
        repaired(law, loss.T, charges, limits)
    with pytest.raises(TypeCheckError):
        Restricted(np.ones((3, 2)), loss, charges.T, limits)


def test_a_net_is_asked_with_rows_of_its_inputs() -> None:
    import jax

    from sfumato.nets import glorot

    net = glorot(jax.random.key(0), (2, 5, 3))
    assert net(np.zeros((4, 2), np.float32)).shape == (4, 3)
    with pytest.raises(TypeCheckError):
        net(np.zeros(2, np.float32))


def test_a_payoff_refuses_predictions_of_another_number_of_samples() -> None:
    from sfumato.solver.game.payoff import MutualInformation

    with pytest.raises(TypeCheckError):
        MutualInformation()(np.eye(3), np.zeros((4, 3)))


def test_the_modules_whose_shapes_are_checked_exist() -> None:
    from importlib.util import find_spec

    assert all(find_spec(module) is not None for module in MODULES)
