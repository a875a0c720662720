"""Exact measures by hand: fractions on 2 x 2, infinities, edges, refusals."""

from fractions import Fraction

import numpy as np
import pytest
from chains import joints
from hypothesis import given
from scipy import sparse

from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.exact import (
    bayes_error,
    conditional_entropy,
    cross_entropy,
    entropy,
    error_of_guess,
    g_vulnerability,
    gain_named,
    guess_or_pass,
    min_entropy_leakage,
    mutual_information,
    one_target,
    santhi_vardy_bound,
    two_guesses,
)
from sfumato.measure.worst import (
    error_per_secret,
    exposed,
    exposed_per_secret,
    geo_indistinguishability,
    worst_report,
)


def test_two_by_two_in_exact_fractions() -> None:
    """P = [[3/8, 1/8], [1/8, 3/8]]: B = 1/4, worst posterior 3/4, V_2 guesses = 1, guess or pass =
    1/2, gain over the prior 3/2."""
    joint = Joint([[0.375, 0.125], [0.125, 0.375]])
    assert Fraction(bayes_error(joint)) == Fraction(1, 4)
    assert Fraction(worst_report(joint)) == Fraction(3, 4)
    assert Fraction(g_vulnerability(joint, two_guesses(2))) == 1
    assert Fraction(g_vulnerability(joint, guess_or_pass(2))) == Fraction(1, 2)
    assert Fraction(g_vulnerability(joint, one_target(2, 0))) == Fraction(3, 4)
    assert min_entropy_leakage(joint) == pytest.approx(np.log2(1.5))
    assert mutual_information(joint) == pytest.approx(
        1 - (-0.75 * np.log2(0.75) - 0.25 * np.log2(0.25))
    )
    assert error_per_secret(joint).tolist() == [0.25, 0.25]
    assert exposed(joint) == 0


def test_identity_leaks_all_and_constant_nothing() -> None:
    everything, nothing = Joint(np.eye(4) / 4), Joint.uniform(secrets=4, places=1)
    assert (
        bayes_error(everything),
        mutual_information(everything),
        conditional_entropy(everything),
    ) == (0, 2, 0)
    assert (bayes_error(nothing), mutual_information(nothing), conditional_entropy(nothing)) == (
        0.75,
        0,
        2,
    )
    assert (
        worst_report(everything),
        exposed(everything),
        exposed(nothing),
        worst_report(nothing),
    ) == (1, 1, 0, 0.25)
    assert exposed_per_secret(everything).tolist() == [1] * 4


def test_one_secret_has_nothing_to_hide() -> None:
    alone = Joint([[0.5, 0.5]])
    assert (
        entropy(alone),
        bayes_error(alone),
        mutual_information(alone),
        santhi_vardy_bound(alone),
        min_entropy_leakage(alone),
    ) == (0,) * 5


def test_a_secret_or_report_that_never_happens_changes_nothing() -> None:
    plain, padded = (
        Joint([[0.3, 0.2], [0.1, 0.4]]),
        Joint([[0.3, 0.2, 0.0], [0.1, 0.4, 0.0], [0.0, 0.0, 0.0]]),
    )
    for measure in (
        bayes_error,
        mutual_information,
        conditional_entropy,
        entropy,
        worst_report,
        exposed,
        min_entropy_leakage,
    ):
        assert measure(padded) == pytest.approx(measure(plain))


def test_ties_are_split_evenly_so_a_perfect_mixture_treats_all_alike() -> None:
    assert error_per_secret(Joint.uniform(secrets=4, places=3)).tolist() == [0.75] * 4
    three = Joint([[0.2, 0.0], [0.2, 0.3], [0.0, 0.3]])
    assert error_per_secret(three) == pytest.approx([0.5, 1 - (0.1 + 0.15) / 0.5, 0.5])


def test_ties_that_rounding_blurs_are_still_ties() -> None:
    blurred = np.array([[0.1 + 0.2], [0.3]]) / (0.1 + 0.2 + 0.3)
    assert error_per_secret(Joint(blurred)) == pytest.approx([0.5, 0.5], abs=1e-9)


def test_probabilities_too_small_to_multiply_still_count() -> None:
    """P(x) P(z) of 1e-200 each is zero in floating point; the information is that of the rest."""
    joint = Joint([[1e-200, 0.0], [0.0, 1.0]])
    assert mutual_information(joint) == pytest.approx(0, abs=1e-12)
    assert bayes_error(joint) == 0


def test_cross_entropy_is_infinite_where_a_guess_rules_out_what_happens() -> None:
    joint = Joint([[0.5, 0.0], [0.25, 0.25]])
    assert cross_entropy(joint, np.array([[1.0, 0.0], [0.0, 1.0]])) == float("inf")
    assert cross_entropy(joint, np.array([[0.5, 0.5], [0.5, 0.5]])) == 1
    assert cross_entropy(joint, np.array([[2 / 3, 1 / 3], [0.0, 1.0]])) == pytest.approx(
        conditional_entropy(joint)
    )


def test_a_guess_learnt_on_another_table_is_judged_on_this_one() -> None:
    """Learnt: report 0 is x0, report 1 is x1, report 2 was never seen (a blind guess).  By hand: 1
    - (0.1 + 0.2 + 0.4/2)."""
    learnt = Joint([[0.6, 0.0, 0.0], [0.0, 0.4, 0.0]])
    judged = Joint([[0.1, 0.1, 0.3], [0.2, 0.2, 0.1]])
    assert error_of_guess(judged, learnt) == pytest.approx(1 - (0.1 + 0.2 + 0.4 / 2))


def test_measures_refuse_what_does_not_fit() -> None:
    joint = Joint([[0.5, 0.5]])
    with pytest.raises(ProblemError, match="one row per place and one column per secret"):
        cross_entropy(joint, np.ones((1, 2)))
    with pytest.raises(ProblemError, match="one row per action and one column per secret"):
        g_vulnerability(joint, np.eye(3))
    with pytest.raises(ProblemError, match="NaN or infinity"):
        g_vulnerability(joint, np.array([[np.nan]]))
    with pytest.raises(ProblemError, match="the same columns"):
        error_of_guess(joint, Joint([[1.0]]))


def test_gains_are_found_by_name() -> None:
    assert gain_named("bayes", ["ann", "bob"]).tolist() == [[1, 0], [0, 1]]
    assert gain_named("two-guesses", ["ann", "bob", "cid"]).shape == (3, 3)
    assert gain_named("target:bob", ["ann", "bob", "cid"]).tolist() == [[0, 1, 0], [1, 0, 1]]
    with pytest.raises(ProblemError, match="unknown gain 'bays'; expected bayes, two-guesses"):
        gain_named("bays", ["ann"])
    with pytest.raises(ProblemError, match="there is no user 'dan' to target"):
        gain_named("target:dan", ["ann"])
    with pytest.raises(ProblemError, match="0 to 1; got 2"):
        one_target(2, 2)


# Worst cases --------------------------------------------------------------------------------------


def test_geo_indistinguishability_is_infinite_where_one_truth_can_and_another_cannot() -> None:
    truths = np.array([[0.0, 0.0], [10.0, 0.0]])
    assert geo_indistinguishability(np.eye(2), truths) == float("inf")
    assert geo_indistinguishability([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]], truths) == float("inf")  # type: ignore[arg-type]


def test_geo_indistinguishability_is_infinite_where_two_truths_at_one_place_differ() -> None:
    assert geo_indistinguishability(np.array([[0.5, 0.5], [0.6, 0.4]]), np.zeros((2, 2))) == float(
        "inf"
    )
    assert geo_indistinguishability(np.array([[0.5, 0.5], [0.5, 0.5]]), np.zeros((2, 2))) == 0


def test_geo_indistinguishability_of_randomised_response_is_the_log_odds_per_metre() -> None:
    truths = np.array([[0.0, 0.0], [30.0, 40.0]])
    assert geo_indistinguishability(
        np.array([[0.75, 0.25], [0.25, 0.75]]), truths
    ) == pytest.approx(np.log(3) / 50)
    assert geo_indistinguishability(
        sparse.csr_matrix([[0.75, 0.25], [0.25, 0.75]]), truths
    ) == pytest.approx(np.log(3) / 50)


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 2.0])
def test_geo_indistinguishability_of_a_truncated_geometric_law_is_its_rate(epsilon: float) -> None:
    """On a line, reports with chance proportional to exp(-e d) and leftovers at the ends: the rate
    is e, not more (Ghosh et al. 2009)."""
    size, base = 9, np.exp(-epsilon)
    apart = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :])
    matrix = (1 - base) / (1 + base) * base**apart
    matrix[:, [0, -1]] = base ** apart[:, [0, -1]] / (1 + base)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(size))
    truths = np.stack([np.arange(size), np.zeros(size)], axis=1)
    assert geo_indistinguishability(matrix, truths) == pytest.approx(epsilon, rel=1e-6)


def test_geo_indistinguishability_ignores_reports_that_nobody_sends_and_needs_two_truths() -> None:
    truths = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert geo_indistinguishability(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), truths) == 0
    assert geo_indistinguishability(np.array([[0.2, 0.8]]), truths[:1]) == 0
    with pytest.raises(ProblemError, match="one truth per row"):
        geo_indistinguishability(np.eye(2), truths[:1])


@given(joint=joints())
def test_the_worst_ratio_between_secrets_bounds_the_worst_report(joint: Joint) -> None:
    """With R the largest ratio between two rows P(z|x), no posterior exceeds p R / (p R + 1 - p)."""
    prior = joint.prior
    if np.all(prior > 0) and len(prior) > 1:
        rows = joint.table / prior[:, None]
        rows = rows[:, rows.any(axis=0)]
        if np.all(rows > 0):
            worst = max(float(np.max(one / other)) for one in rows for other in rows)
            bound = max(p * worst / (p * worst + 1 - p) for p in prior)
            assert worst_report(joint) <= bound + 1e-9
