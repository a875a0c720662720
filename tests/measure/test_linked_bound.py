"""The checker on linked reports: no bound above what a mechanism has, and nothing from a proof that
proves nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.joint import Joint
from sfumato.measure.bound import CertificateError, Claim, bound_grid
from sfumato.measure.linked import least_overlap


def _case(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    secrets, truths, reports = rng.integers(2, 5), rng.integers(2, 7), rng.integers(1, 6)
    joint = rng.exponential(size=(secrets, truths)) + 0.01
    law = rng.dirichlet(np.full(reports, 0.5), size=truths)
    return rng, joint / joint.sum(), rng.random((truths, reports)), law


@given(st.integers(0, 10**6))
def test_no_overlap_bound_is_above_what_a_mechanism_leaks(seed: int) -> None:
    rng, joint, loss, law = _case(seed)
    secrets, reports = len(joint), loss.shape[1]
    spent = float(joint.sum(axis=0) @ (law * loss).sum(axis=1))
    claim = Claim(
        joint,
        objective="overlap",
        max_loss=spent,
        pair_weights=rng.dirichlet(np.ones(secrets * (secrets - 1) // 2)),
    )
    table = joint @ law
    near = (table / joint.sum(axis=1, keepdims=True)).T + 1e-12  # the mechanism's own: tight
    for shares in (near, rng.dirichlet(np.ones(secrets), size=reports) + 1e-9):
        shares = shares / shares.sum(axis=1, keepdims=True)
        bound = bound_grid(claim, shares, [rng.exponential()], lambda chosen: loss[:, chosen])
        assert bound <= 1 - least_overlap(Joint(table / table.sum())) + 1e-12


@given(st.integers(0, 10**6))
def test_no_endless_bound_is_above_the_loss_of_a_law_for_all(seed: int) -> None:
    rng, joint, loss, law = _case(seed)
    claim = Claim(joint, objective="endless", max_loss=0.0)
    scores = rng.normal(size=(loss.shape[1], len(joint))) * rng.exponential()
    bound = bound_grid(claim, scores, [1.0], lambda chosen: loss[:, chosen])
    assert bound <= float((joint.sum(axis=0) @ loss).min()) + 1e-12  # one place for all
    assert bound <= float(joint.sum(axis=0) @ loss @ law[0]) + 1e-12  # one law for all


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        (None, [[0.5, 0.5]]),
        ([np.nan], [[0.5, 0.5]]),
        ([-1.0], [[0.5, 0.5]]),
        ([0.0], [[0.5, 0.5]]),
        ([np.inf], [[0.5, 0.5]]),
        ([1.0, 1.0], [[0.5, 0.5]]),
        ([1.0], [[1.0, 0.0]]),
        ([1.0], [[np.nan, 0.5]]),
    ],
)
def test_weights_and_likelihoods_that_prove_nothing_are_refused(weights, shares) -> None:
    claim = Claim(
        np.eye(2) / 2,
        objective="overlap",
        max_loss=1.0,
        pair_weights=None if weights is None else np.array(weights),
    )
    with pytest.raises(CertificateError):
        bound_grid(claim, np.array(shares), [0.0], lambda chosen: np.ones((2, 1)))


def test_pairs_with_a_user_who_never_occurs_are_refused() -> None:
    claim = Claim(
        np.array([[0.5, 0.0], [0.0, 0.5], [0.0, 0.0]]),
        objective="overlap",
        max_loss=1.0,
        pair_weights=np.array([0.5, 0.5, 0.0]),
    )
    with pytest.raises(CertificateError, match="never occur"):
        bound_grid(claim, np.full((1, 3), 1 / 3), [0.0], lambda chosen: np.ones((2, 1)))


@pytest.mark.parametrize("score", [np.nan, np.inf, 1e16])
def test_scores_without_end_are_refused(score: float) -> None:
    claim = Claim(np.eye(2) / 2, objective="endless", max_loss=0.0)
    with pytest.raises(CertificateError, match="scores must be numbers"):
        bound_grid(claim, np.array([[score, 0.0]]), [1.0], lambda chosen: np.ones((2, 1)))


@pytest.mark.parametrize("multiplier", [0.0, 0.5, 2.0, 1e12])
def test_scores_scaled_with_the_multiplier_of_the_loss_are_refused(multiplier: float) -> None:
    """The bound would be scaled as well."""
    claim = Claim(np.eye(2) / 2, objective="endless", max_loss=0.0)
    with pytest.raises(CertificateError, match="its multiplier is 1"):
        bound_grid(claim, np.zeros((1, 2)), [multiplier], lambda chosen: np.ones((2, 1)))
