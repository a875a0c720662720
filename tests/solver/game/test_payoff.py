"""What the players are paid: the measured leakage, in nats, or the log of the right guess."""

from typing import Any

import numpy as np
import pytest

from paper.runs import alice_and_bob
from sfumato.data.joint import Joint
from sfumato.measure.exact import mutual_information
from sfumato.solver.game import ClassifierConfig, CrossEntropy, MutualInformation


@pytest.mark.parametrize("seed", range(5))
def test_the_mutual_information_payoff_is_the_measured_one_in_nats(seed: int) -> None:
    random = np.random.default_rng(seed)
    user = random.integers(0, 3, 12)
    predictions = random.dirichlet([0.4] * 3, 12)
    joint = np.eye(3)[user].T @ predictions / 12
    with np.errstate(divide="ignore"):
        found = float(MutualInformation()(np.eye(3)[user], np.log(predictions)))
    assert found == pytest.approx(mutual_information(Joint(joint)) * np.log(2), abs=1e-6)
    relabelled = float(MutualInformation()(np.eye(3)[user], np.log(predictions[:, [2, 0, 1]])))
    assert relabelled == pytest.approx(found, abs=1e-6)


def test_the_cross_entropy_payoff_is_the_mean_log_of_the_right_guess_and_has_no_lower_end() -> None:
    predictions = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(predictions)
    assert float(CrossEntropy()(np.eye(2)[[0, 1, 0]], logs)) == pytest.approx(
        (np.log(0.5) + np.log(0.75)) / 3
    )
    assert float(CrossEntropy()(np.eye(2)[[0, 1, 1]], logs)) == -np.inf


def test_alice_and_bob_swap_for_ever_under_cross_entropy_and_settle_under_mutual_information() -> (
    None
):
    assert alice_and_bob.play(
        alice_and_bob.PAYOFFS["success probability"], max_loss_m=100, rounds=6
    ) == [0, 1, 0, 1, 0, 1, 0]
    swapping = alice_and_bob.play(alice_and_bob.PAYOFFS["cross entropy"], max_loss_m=100, rounds=12)
    assert {0.0, 1.0} <= set(swapping) and swapping[-6:].count(swapping[-1]) <= 3
    assert (
        alice_and_bob.play(alice_and_bob.PAYOFFS["mutual information"], max_loss_m=100, rounds=6)[
            1:
        ]
        == [0.5] * 6
    )
    assert (
        alice_and_bob.play(alice_and_bob.PAYOFFS["mutual information"], max_loss_m=40, rounds=6)[1:]
        == [0.4] * 6
    )


@pytest.mark.parametrize("payoff", [CrossEntropy(), MutualInformation()])
def test_a_classifier_learns_on_either_payoff(payoff: Any) -> None:
    """Two users a unit apart can be told apart: I(X;Y) rises from near 0 to near ln 2 = 0.69 nats,
    under any names of the guesses."""
    import jax
    import jax.numpy as jnp

    from sfumato.nets import glorot
    from sfumato.solver.game.train import ADAM, fit_classifier

    random = np.random.default_rng(0)
    user = jnp.asarray(np.repeat([0, 1], 64))
    reports = jnp.asarray(
        (random.normal(0.0, 0.1, (128, 2)) + np.asarray(user)[:, None]).astype(np.float32)
    )
    order = jnp.asarray(random.permuted(np.broadcast_to(np.arange(128), (60, 128)), axis=1))
    first = glorot(jax.random.key(0), (2, 8, 2))

    def information(net: Any) -> float:
        return float(
            MutualInformation()(np.eye(2)[np.asarray(user)], jax.nn.log_softmax(net(reports)))
        )

    config = ClassifierConfig(payoff=payoff, rate=0.02, batch=64)
    net, *_ = fit_classifier(
        config, first, ADAM.init(first), reports, user, order, short_batches=False
    )
    assert information(first) < 0.1 and information(net) > 0.6
