"""The checker: no bound above what a mechanism leaks, and no number from a proof that proves
nothing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.grid import Grid
from sfumato.errors import SfumatoError
from sfumato.measure.bound import CertificateError, Claim, bound_grid, bound_plane
from sfumato.measure.cells import Cells, covers_hull

SQUARE = Grid(side_m=100.0, cells=10, centre=(50.0, 50.0))
GRID = SQUARE.centres()
CELLS = Cells.over(SQUARE, GRID)


def leakage(joint_xz: np.ndarray, objective: str, gains: np.ndarray | None) -> float:
    """From the definitions, in nats for information."""
    if objective == "information":
        product = joint_xz.sum(axis=1, keepdims=True) * joint_xz.sum(axis=0)
        return float(
            np.sum(joint_xz[joint_xz > 0] * np.log(joint_xz[joint_xz > 0] / product[joint_xz > 0]))
        )
    return float(np.sum(np.max(joint_xz if gains is None else gains @ joint_xz, axis=0)))


def random_claim(
    rng: np.random.Generator, objective: str, loss: np.ndarray, law: np.ndarray
) -> Claim:
    """A claim whose budgets the law keeps, some of them with nothing to spare."""
    secrets = int(rng.integers(2, 5))
    joint = rng.exponential(size=(secrets, len(loss))) * (rng.random((secrets, len(loss))) < 0.7)
    joint[0] += 0.01
    joint /= joint.sum()
    mean = np.sum(law * loss, axis=1)
    slack = 1 + rng.integers(2) * rng.random()
    options: dict[str, Any] = {}
    if rng.random() < 0.7:
        options["max_loss"] = float(joint.sum(axis=0) @ mean) * slack
    if rng.random() < 0.4:
        prior = joint.sum(axis=1)
        options["user_max_loss"] = (
            np.where(prior > 0, joint @ mean / np.where(prior > 0, prior, 1.0), 0.0) * slack
        )
    if rng.random() < 0.4:
        options["cap"] = float(loss[law > 0].max())
    if objective == "gain":
        options["gains"] = rng.normal(size=(int(rng.integers(1, 5)), secrets))
    return Claim(joint, objective, **options)


@given(seed=st.integers(0, 10**6), objective=st.sampled_from(["bayes", "gain", "information"]))
def test_no_certificate_is_above_the_leakage_of_a_feasible_mechanism(
    seed: int, objective: str
) -> None:
    rng = np.random.default_rng(seed)
    truths, reports = rng.integers(2, 8, size=2)
    loss = rng.random((truths, reports)) * 10
    law = rng.dirichlet(np.full(reports, 0.3), size=truths)
    claim = random_claim(rng, objective, loss, law)
    guesses = len(claim.joint) if claim.gains is None else len(claim.gains)
    budgets = (claim.max_loss is not None) + (claim.user_max_loss is not None) * len(claim.joint)
    for sharp in (0.1, 1.0, 10.0):
        shares = rng.dirichlet(np.full(guesses, sharp), size=reports)
        bound = bound_grid(
            claim,
            shares,
            rng.exponential(size=budgets) * rng.choice([0.0, 0.1, 1.0]),
            lambda i: loss[:, i],
        )
        assert bound <= leakage(claim.joint @ law, objective, claim.gains) + 1e-12


@given(seed=st.integers(0, 10**6), objective=st.sampled_from(["bayes", "information"]))
def test_no_plane_certificate_is_above_a_mechanism_anywhere_on_the_plane(
    seed: int, objective: str
) -> None:
    rng = np.random.default_rng(seed)
    truths = rng.random((6, 2)) * 100
    places = rng.random((4, 2)) * 140 - 20  # also outside the hull
    loss = np.linalg.norm(truths[:, None] - places, axis=2)
    law = rng.dirichlet(np.full(4, 0.3), size=6)
    claim = random_claim(rng, objective, loss, law)
    # the best scores for this law where its reports fall: the hardest proof to get right
    shares = np.tile(claim.joint.sum(axis=1), (len(GRID), 1))
    cell = np.abs(GRID[:, None] - places).max(axis=2).argmin(axis=0)
    seen = (claim.joint @ law).T
    shares[cell] = (seen + 1e-9) / (seen + 1e-9).sum(axis=1, keepdims=True)
    budgets = (claim.max_loss is not None) + (claim.user_max_loss is not None) * len(claim.joint)
    bound = bound_plane(claim, shares, rng.exponential(size=budgets) * 0.01, truths, CELLS)
    assert bound <= leakage(claim.joint @ law, objective, None) + 1e-12


def test_the_proof_of_two_people_by_hand() -> None:
    """100 m apart, 40 m allowed: shares 1 and 0 at each end, multiplier 1/100, prove 1 - 40/100."""
    loss = np.array([[0.0, 100.0], [100.0, 0.0]])
    claim = Claim(np.eye(2) / 2, max_loss=40.0)
    assert bound_grid(claim, np.eye(2), [0.01], lambda i: loss[:, i]) == pytest.approx(
        0.6 - 0.5 + 0.5, abs=1e-9
    )


def test_mixed_cells_cover_the_hull_and_a_missing_one_does_not() -> None:
    truths = np.random.default_rng(0).random((12, 2)) * 100
    mixed = CELLS[np.delete(np.arange(100), 44)].joined(CELLS[44:45].quartered())
    assert covers_hull(truths, mixed)
    assert not covers_hull(truths, mixed[: len(mixed) - 1])
    claim = Claim(np.full((2, 12), 1 / 24), max_loss=25.0)
    with pytest.raises(CertificateError, match="cover"):
        bound_plane(claim, np.full((44, 2), 0.5), [0.0], truths, CELLS[1:45])


@pytest.mark.parametrize(
    ("shares", "multipliers"),
    [
        ([[0.7, 0.7]], [0.1]),
        ([[1.5, -0.5]], [0.1]),
        ([[np.nan, 1.0]], [0.1]),
        ([[1.0]], [0.1]),
        ([[0.5, 0.5]], [-0.1]),
        ([[0.5, 0.5]], [np.nan]),
        ([[0.5, 0.5]], [0.1, 0.1]),
    ],
)
def test_what_is_no_certificate_is_refused(
    shares: list[list[float]], multipliers: list[float]
) -> None:
    claim = Claim(np.eye(2) / 2, max_loss=1.0)
    with pytest.raises(CertificateError):
        bound_grid(claim, np.array(shares), multipliers, lambda i: np.zeros((2, len(i))))


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_losses_that_are_no_losses_are_refused(value: float) -> None:
    with pytest.raises(CertificateError, match="losses"):
        bound_grid(
            Claim(np.eye(2) / 2, max_loss=1.0),
            np.full((1, 2), 0.5),
            [0.1],
            lambda i: np.full((2, 1), value),
        )


@pytest.mark.parametrize(
    "options",
    [
        {"max_loss": np.nan},
        {"max_loss": -1.0},
        {"cap": np.inf},
        {"user_max_loss": [1.0]},
        {"objective": "entropy"},
        {"objective": "gain"},
        {"gains": np.eye(2)},
        {"objective": "gain", "gains": np.eye(3)},
        {"joint": np.eye(2)},
        {"joint": np.array([[1.5, -0.5]])},
    ],
)
def test_a_claim_about_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError):
        Claim(**{"joint": np.eye(2) / 2, **options})


def test_a_cap_that_no_report_keeps_is_named() -> None:
    claim = Claim(np.eye(2) / 2, cap=1.0)
    with pytest.raises(CertificateError, match="cap"):
        bound_grid(claim, np.full((1, 2), 0.5), [], lambda i: np.full((2, 1), 2.0))


def test_a_posterior_of_zero_proves_nothing_where_the_secret_lives() -> None:
    claim = Claim(np.full((2, 2), 0.25), "information", max_loss=1.0)
    with pytest.raises(CertificateError, match="a posterior of 0"):
        bound_grid(claim, np.eye(2), [0.1], lambda i: np.zeros((2, len(i))))
    owned = Claim(np.eye(2) / 2, "information", max_loss=0.0)
    loss = 1 - np.eye(2)
    assert bound_grid(
        owned, [[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]], [100.0], lambda i: loss[:, i]
    ) == pytest.approx(np.log(2), abs=1e-6)
    absent = Claim(np.array([[0.5, 0.5], [0.0, 0.0]]), "information", max_loss=1.0)
    assert bound_grid(absent, [[1.0, 0.0]], [0.0], lambda i: np.zeros((2, 1))) == pytest.approx(
        0.0, abs=1e-9
    )
