"""Adversaries against brute force, hand counts and data where the answer is known."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.adversary.base import Attacker, score
from sfumato.adversary.counting import Cells, Neighbours, bayes_error_bound
from sfumato.adversary.neural import Neural
from sfumato.data.grid import Grid
from sfumato.errors import ProblemError


@dataclass(frozen=True)
class Fixed(Attacker):
    """Answers each report with a row given beforehand."""

    rows: np.ndarray

    def posterior(self, reports: np.ndarray) -> np.ndarray:
        return self.rows


# Scores -------------------------------------------------------------------------------------------


def test_reports_in_pieces_score_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    secret, reports = random.integers(5, size=60), random.normal(0, 100, (60, 2))
    attacker = Cells(Grid(cell_m=50)).fit(secret[:40], reports[:40], secrets=5)
    whole = score(attacker, secret, reports, secrets=5)
    monkeypatch.setattr("sfumato.adversary.base._AT_ONCE", 35)
    pieces = score(attacker, secret, reports, secrets=5)
    assert (pieces.accuracy, pieces.f1) == pytest.approx((whole.accuracy, whole.f1))


def test_accuracy_and_f1_are_what_they_are_by_hand() -> None:
    """Guesses 0 0 1 1 2 for secrets 0 1 1 1 0: accuracy 3/5; F1 is 2/(2+2) = 1/2, 2*2/(3+2) = 4/5
    and 0."""
    found = score(
        Fixed(np.eye(3)[[0, 0, 1, 1, 2]]), np.array([0, 1, 1, 1, 0]), np.zeros((5, 2)), secrets=3
    )
    assert found.accuracy == pytest.approx(3 / 5)
    assert found.f1 == pytest.approx((1 / 2 + 4 / 5 + 0) / 3)


@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_f1_is_the_mean_of_harmonic_means_of_precision_and_recall(
    pairs: list[tuple[int, int]],
) -> None:
    secret, guess = (np.array(column) for column in zip(*pairs, strict=True))
    expected = []
    for who in range(4):
        right = np.sum((secret == who) & (guess == who))
        precision = right / max(np.sum(guess == who), 1)
        recall = right / max(np.sum(secret == who), 1)
        expected.append(2 * precision * recall / (precision + recall) if right else 0.0)
    found = score(Fixed(np.eye(4)[guess]), secret, np.zeros((len(secret), 2)), secrets=4)
    assert found.f1 == pytest.approx(np.mean(expected))
    assert found.accuracy == pytest.approx(np.mean(secret == guess))


def test_an_attacker_who_knows_nothing_scores_one_in_so_many() -> None:
    found = score(Fixed(np.full((8, 4), 0.25)), np.arange(8) % 4, np.zeros((8, 2)), secrets=4)
    assert found.accuracy == pytest.approx(0.25) and found.f1 == pytest.approx(0.25)


def test_no_reports_cannot_be_scored() -> None:
    with pytest.raises(ProblemError, match="no reports to score"):
        score(Fixed(np.empty((0, 2))), np.array([], dtype=int), np.empty((0, 2)), secrets=2)


# Cells --------------------------------------------------------------------------------------------


def test_cells_answer_with_the_frequencies_that_they_saw() -> None:
    reports = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [21.0, 1.0]])
    attacker = Cells(Grid(cell_m=10)).fit(np.array([0, 0, 1, 1]), reports, secrets=3)
    assert attacker.posterior(np.array([[9.0, 9.0], [29.0, 9.0]])) == pytest.approx(
        np.array([[2 / 3, 1 / 3, 0], [0, 1, 0]])
    )
    assert attacker.guess(np.array([[9.0, 9.0], [29.0, 9.0]])).tolist() == [0, 1]


def test_a_cell_never_seen_is_answered_as_the_nearest_seen() -> None:
    attacker = Cells(Grid(cell_m=10)).fit(
        np.array([0, 1]), np.array([[5.0, 5.0], [95.0, 5.0]]), secrets=2
    )
    assert attacker.guess(np.array([[35.0, 5.0], [75.0, 5.0], [900.0, 900.0]])).tolist() == [
        0,
        1,
        1,
    ]


# Neighbours ---------------------------------------------------------------------------------------


@given(
    seen=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25
    ),
    asked=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5),
    k=st.integers(1, 8),
)
def test_neighbours_at_one_distance_count_together(
    seen: list[tuple[int, int, int]], asked: list[tuple[int, int]], k: int
) -> None:
    """By brute force on whole-number squares of distances: all reports as near as the k-th vote."""
    secret, reports = np.array([hit[0] for hit in seen]), np.array([hit[1:] for hit in seen])
    found = Neighbours(k=k).fit(secret, 25.0 * reports, secrets=3).posterior(25.0 * np.array(asked))
    for row, place in zip(found, np.array(asked), strict=True):
        away = np.sum((reports - place) ** 2, axis=1)
        near = away <= np.sort(away)[min(k, len(away)) - 1]
        votes = np.bincount(secret[near], minlength=3)
        assert row == pytest.approx(votes / votes.sum())


def test_many_reports_at_one_place_all_vote() -> None:
    """300 reports at one cell: with k = 5 the answer is their frequency, not the first five of
    them."""
    secret = np.repeat([0, 1], [200, 100])
    attacker = Neighbours(k=5).fit(secret, np.zeros((300, 2)), secrets=2)
    assert attacker.posterior(np.array([[0.0, 0.0], [50.0, 50.0]])) == pytest.approx(
        np.array([[2 / 3, 1 / 3]] * 2)
    )


def test_twenty_places_on_a_ring_all_vote() -> None:
    """More equal neighbours than are asked for at first: the search widens until all are in."""
    angle = 2 * np.pi * np.arange(20) / 20
    ring = 100 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    attacker = Neighbours(k=1).fit(np.arange(20) % 4 // 3, ring, secrets=2)
    assert attacker.posterior(np.zeros((1, 2)))[0] == pytest.approx([0.75, 0.25])


def test_neighbours_need_a_neighbour() -> None:
    with pytest.raises(ProblemError, match="k must be at least 1"):
        Neighbours(k=0)


def test_the_nearest_neighbours_bound_holds_the_bayes_error_of_overlapping_squares() -> None:
    """Two uniform squares with half of each shared: B = 1/4, the nearest neighbour errs 1/4 in the
    limit, and the bound is below B.

    R = 2 * 1/2 * 1/2 on the shared half (half of the reports), so 1/4; the bound (1 - sqrt(1 -
    2R))/2 = 0.146. With 4000 + 4000 reports the error has a standard error of 0.007; an adversary
    of chance (1/2) or of certainty (0) is far off.
    """
    random = np.random.default_rng(0)
    secret = np.repeat([0, 1], 4000)
    draw = [
        random.random((8000, 2)) + np.stack([0.5 * secret, np.zeros(8000)], axis=1)
        for _ in range(2)
    ]
    error = (
        1
        - score(
            Neighbours(k=1).fit(secret, draw[0], secrets=2), secret, draw[1], secrets=2
        ).accuracy
    )
    assert error == pytest.approx(0.25, abs=0.03)
    assert bayes_error_bound(error, secrets=2) == pytest.approx(0.146, abs=0.025)
    assert bayes_error_bound(0.0, secrets=5) == 0 and bayes_error_bound(
        1.0, secrets=5
    ) == pytest.approx(0.8)


# Neural -------------------------------------------------------------------------------------------


def _clouds(apart_m: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    secret = np.repeat(np.arange(4), 300)
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * apart_m + [5000.0, -3000.0]
    return secret, corners[secret] + random.normal(0, 20, (1200, 2))


NET = Neural(epochs=40, batch=128, rate=0.003)


def test_a_net_tells_clouds_apart_that_do_not_touch() -> None:
    """Corners 200 m apart, clouds of 20 m: a best guess errs less than once in a million."""
    attacker = NET.fit(*_clouds(200, 1), secrets=4, seed=0)
    secret, reports = _clouds(200, 2)
    found = score(attacker, secret, reports, secrets=4)
    assert found.accuracy > 0.99 and found.f1 > 0.99
    assert attacker.posterior(reports).sum(axis=1) == pytest.approx(np.ones(1200))


def test_a_net_learns_nothing_where_all_clouds_are_one() -> None:
    """Accuracy is 1/4 with a standard error of 0.0125 on 1200 fresh reports; one that had found 5 %
    more would be at 0.30."""
    attacker = NET.fit(*_clouds(0, 1), secrets=4, seed=0)
    secret, reports = _clouds(0, 2)
    assert score(attacker, secret, reports, secrets=4).accuracy == pytest.approx(0.25, abs=0.05)


def test_a_net_repeats_with_its_seed() -> None:
    secret, reports = _clouds(50, 1)
    first, again, other = (
        NET.fit(secret, reports, secrets=4, seed=seed).posterior(reports[:50]) for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_a_net_trains_on_fewer_reports_than_a_batch_and_on_one_place() -> None:
    attacker = Neural(epochs=2).fit(np.array([0, 1, 0]), np.zeros((3, 2)), secrets=2)
    assert np.isfinite(attacker.posterior(np.zeros((2, 2)))).all()


@pytest.mark.parametrize(
    "settings",
    [{"epochs": 0}, {"batch": 0}, {"rate": 0.0}, {"rate": float("nan")}, {"hidden": (0,)}],
)
def test_a_net_without_steps_or_units_is_refused(settings: dict) -> None:
    with pytest.raises(ProblemError, match="above 0"):
        Neural(**settings)
