"""The paper's propositions as laws on random finite chains, and the one that fails as a
counterexample."""

import numpy as np
import pytest
from chains import Chain, bayes_error_in_fractions, best_classifier, chains, joints, tables
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.joint import Joint
from sfumato.measure.exact import (
    GAINS,
    bayes,
    bayes_error,
    bayes_vulnerability,
    best_guess_shares,
    conditional_entropy,
    cross_entropy,
    entropy,
    error_of_guess,
    g_vulnerability,
    guess_or_pass,
    min_entropy_leakage,
    mutual_information,
    one_target,
    santhi_vardy_bound,
    two_guesses,
)
from sfumato.measure.worst import error_per_secret, exposed, exposed_per_secret, worst_report

TINY = 1e-9
shares = st.integers(0, 16).map(lambda sixteenths: sixteenths / 16)


# The propositions ---------------------------------------------------------------------------------


@given(chain=chains(), share=shares)
def test_a_mixture_of_two_mechanisms_within_a_budget_is_within_it(
    chain: Chain, share: float
) -> None:
    """Proposition "Convexity of M_L": the mechanisms with loss at most L are a convex set."""
    mixture = share * chain.mechanism + (1 - share) * chain.other
    budget = max(chain.loss(chain.mechanism), chain.loss(chain.other))
    assert mixture.sum(axis=1) == pytest.approx(np.ones(len(mixture))) and np.all(mixture >= 0)
    assert chain.loss(mixture) <= budget + TINY


@given(chain=chains(), share=shares)
def test_information_in_the_guess_is_convex_in_the_mechanism(chain: Chain, share: float) -> None:
    """Proposition "Convexity of I": for any classifier, I(X;Y) is convex in P(z|w)."""

    def information(mechanism: np.ndarray) -> float:
        return mutual_information(chain.joint.through(mechanism).through(chain.classifier))

    mixture = share * chain.mechanism + (1 - share) * chain.other
    assert (
        information(mixture)
        <= share * information(chain.mechanism) + (1 - share) * information(chain.other) + TINY
    )


@settings(max_examples=60)
@given(chain=chains())
def test_no_classifier_tells_more_than_the_reports_so_min_max_is_at_most_the_min(
    chain: Chain,
) -> None:
    """Proposition "equilibriumI": min_G max_C I(X;Y) <= min_G I(X;Z).

    It holds because max_C I(X;Y) <= I(X;Z) for each mechanism (data processing); the two minima
    over any set of mechanisms then stand in the same order.
    """
    seen = [chain.joint.through(mechanism) for mechanism in (chain.mechanism, chain.other)]
    best = [best_classifier(joint)[0] for joint in seen]
    for joint, value in zip(seen, best, strict=True):
        assert value <= mutual_information(joint) + TINY
        assert (
            mutual_information(joint.through(chain.classifier)) <= value + TINY
        )  # a soft classifier is no better than the best hard one
    assert min(best) <= min(mutual_information(joint) for joint in seen) + TINY


@given(chain=chains())
def test_guessing_from_less_never_helps(chain: Chain) -> None:
    """Proposition "LowerBound": B(X|Z) <= B(X|Y); and before it B(X|W) <= B(X|Z), after it B(X|Y)
    <= B(X)."""
    reports = chain.joint.through(chain.mechanism)
    guesses = reports.through(chain.classifier)
    errors = [
        bayes_error(chain.joint),
        bayes_error(reports),
        bayes_error(guesses),
        1 - float(guesses.prior.max()),
    ]
    assert errors == pytest.approx(sorted(errors), abs=TINY)


@given(chain=chains())
def test_the_posterior_is_the_classifier_that_minimises_cross_entropy_and_attains_the_conditional_entropy(
    chain: Chain,
) -> None:
    """Proposition "propMICE", its second line: argmin_C CE(X,Y) = P(x|z), where CE = H(X|Z)."""
    joint = chain.joint.through(chain.mechanism)
    posterior = joint.posterior.T
    assert cross_entropy(joint, posterior) == pytest.approx(conditional_entropy(joint), abs=TINY)
    assert cross_entropy(joint, chain.classifier) >= conditional_entropy(joint) - TINY
    blurred = (posterior + chain.classifier) / 2
    assert cross_entropy(joint, blurred) >= conditional_entropy(joint) - TINY


@given(chain=chains())
def test_the_classifier_that_minimises_cross_entropy_attains_the_bayes_error(chain: Chain) -> None:
    """Proposition "propCEB": R(f*) = B(X|Z) for f*(z) = argmax_x P(x|z); no other decision does
    better."""
    joint = chain.joint.through(chain.mechanism)

    def error(decision: np.ndarray) -> float:
        return 1 - float(joint.table[decision, np.arange(joint.table.shape[1])].sum())

    assert error(np.argmax(joint.posterior, axis=0)) == pytest.approx(bayes_error(joint), abs=TINY)
    assert error(np.argmax(chain.classifier, axis=1)) >= bayes_error(joint) - TINY
    assert error_of_guess(joint, joint) == pytest.approx(bayes_error(joint), abs=TINY)


@given(joint=joints())
def test_the_bayes_error_keeps_the_santhi_vardy_bound(joint: Joint) -> None:
    """Introduction: B(X|Z) <= 1 - 2^(-H(X|Z))."""
    assert bayes_error(joint) <= santhi_vardy_bound(joint) + TINY


@pytest.mark.parametrize("secrets", [1, 2, 5])
def test_the_santhi_vardy_bound_is_tight_when_nothing_is_known(secrets: int) -> None:
    assert santhi_vardy_bound(Joint.uniform(secrets=secrets, places=3)) == pytest.approx(
        1 - 1 / secrets
    )


def _posterior_drawn(joint: Joint) -> float:
    """I(X;Y') for a guess Y' drawn from the posterior."""
    return mutual_information(joint.through(joint.posterior.T))


def test_drawing_the_guess_from_the_posterior_turns_the_order_of_two_mechanisms_round() -> None:
    """Proposition "propMICE", its first line, fails: argmin_G max_C I(X;Y) is not argmin_G I(X;Y').

    Uniform binary X.  A symmetric channel with error 0.1 has I(X;Y') = 0.320 and max_C I(X;Y) =
    0.531 bits; an erasure channel that reveals with chance 0.66 has 0.342 and 0.453.
    """
    symmetric = Joint(np.array([[0.9, 0.1], [0.1, 0.9]]) / 2)
    erasure = Joint(np.array([[0.66, 0.34, 0.0], [0.0, 0.34, 0.66]]) / 2)
    assert _posterior_drawn(symmetric) == pytest.approx(0.320, abs=5e-4)
    assert best_classifier(symmetric)[0] == pytest.approx(0.531, abs=5e-4)
    assert _posterior_drawn(erasure) == pytest.approx(0.342, abs=5e-4)
    assert best_classifier(erasure)[0] == pytest.approx(0.453, abs=5e-4)
    assert _posterior_drawn(symmetric) < _posterior_drawn(erasure)
    assert best_classifier(symmetric)[0] > best_classifier(erasure)[0]


# What the measures are ----------------------------------------------------------------------------


@given(
    weights=st.integers(1, 5).flatmap(
        lambda rows: st.integers(1, 5).flatmap(lambda columns: tables(rows, columns))
    )
)
def test_the_bayes_error_is_its_exact_fraction(weights: np.ndarray) -> None:
    assert bayes_error(Joint(weights / weights.sum())) == pytest.approx(
        float(bayes_error_in_fractions(weights)), abs=1e-12
    )


@given(joint=joints())
def test_information_is_the_entropy_that_goes(joint: Joint) -> None:
    """I(X;Z) = H(X) - H(X|Z), and all three lie where they must."""
    gone = entropy(joint) - conditional_entropy(joint)
    assert mutual_information(joint) == pytest.approx(gone, abs=TINY)
    assert (
        -TINY
        <= conditional_entropy(joint)
        <= entropy(joint) + TINY
        <= np.log2(len(joint.secrets)) + 2 * TINY
    )


@given(joint=joints())
def test_information_by_a_slow_loop_is_the_same(joint: Joint) -> None:
    total = 0.0
    for x, row in enumerate(joint.table):
        for z, chance in enumerate(row):
            if chance:
                total += chance * np.log2(chance / (joint.table[x].sum() * joint.table[:, z].sum()))
    assert mutual_information(joint) == pytest.approx(total, abs=TINY)


@given(joint=joints(), data=st.data())
def test_merging_reports_never_lowers_the_bayes_error_nor_raises_the_information(
    joint: Joint, data: st.DataObject
) -> None:
    reports = joint.table.shape[1]
    into = data.draw(st.lists(st.integers(0, reports - 1), min_size=reports, max_size=reports))
    merged = joint.through(np.eye(reports)[into])
    assert bayes_error(merged) >= bayes_error(joint) - TINY
    assert mutual_information(merged) <= mutual_information(joint) + TINY
    assert worst_report(merged) <= worst_report(joint) + TINY
    for gain in GAINS.values():
        assert (
            g_vulnerability(merged, gain(len(joint.secrets)))
            <= g_vulnerability(joint, gain(len(joint.secrets))) + TINY
        )


@given(joint=joints(), seed=st.integers(0, 1000))
def test_relabelling_secrets_or_reports_changes_nothing(joint: Joint, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, columns = (random.permutation(size) for size in joint.table.shape)
    again = Joint(joint.table[rows][:, columns])
    for measure in (
        bayes_error,
        mutual_information,
        conditional_entropy,
        entropy,
        min_entropy_leakage,
        worst_report,
        exposed,
    ):
        assert measure(again) == pytest.approx(measure(joint), abs=TINY)
    assert error_per_secret(again) == pytest.approx(error_per_secret(joint)[rows], abs=TINY)


@given(chain=chains(), seed=st.integers(0, 1000))
def test_relabelling_guesses_changes_no_information_but_may_ruin_the_success(
    chain: Chain, seed: int
) -> None:
    guesses = chain.joint.through(chain.mechanism).through(chain.classifier)
    swapped = guesses.through(
        np.eye(guesses.table.shape[1])[
            np.random.default_rng(seed).permutation(guesses.table.shape[1])
        ]
    )
    assert mutual_information(swapped) == pytest.approx(mutual_information(guesses), abs=TINY)
    assert bayes_error(swapped) == pytest.approx(bayes_error(guesses), abs=TINY)


@given(joint=joints())
def test_a_report_split_in_two_by_a_blind_coin_tells_no_more(joint: Joint) -> None:
    split = Joint(np.hstack([joint.table * 0.25, joint.table * 0.75]))
    assert bayes_error(split) == pytest.approx(bayes_error(joint), abs=TINY)
    assert mutual_information(split) == pytest.approx(mutual_information(joint), abs=TINY)


@given(joint=joints())
def test_the_gain_of_one_guess_is_the_bayes_vulnerability(joint: Joint) -> None:
    assert g_vulnerability(joint, bayes(len(joint.secrets))) == pytest.approx(
        bayes_vulnerability(joint), abs=TINY
    )
    assert bayes_vulnerability(joint) == pytest.approx(1 - bayes_error(joint), abs=TINY)


@given(joint=joints())
def test_gains_stand_in_their_order(joint: Joint) -> None:
    """Two guesses are worth at least one; passing never costs, and guessing costs at least 1 less
    than twice the vulnerability."""
    count = len(joint.secrets)
    assert g_vulnerability(joint, two_guesses(count)) >= bayes_vulnerability(joint) - TINY
    assert (
        g_vulnerability(joint, guess_or_pass(count))
        >= max(0.0, 2 * bayes_vulnerability(joint) - 1) - TINY
    )
    for target in range(count):
        assert (
            g_vulnerability(joint, one_target(count, target))
            >= max(joint.prior[target], 1 - joint.prior[target]) - TINY
        )


@given(joint=joints())
def test_min_entropy_leakage_is_never_negative_and_at_most_the_number_of_reports(
    joint: Joint,
) -> None:
    assert -TINY <= min_entropy_leakage(joint) <= np.log2(min(joint.table.shape)) + TINY


@given(joint=joints())
def test_errors_of_secrets_average_to_the_bayes_error(joint: Joint) -> None:
    assert joint.prior @ error_per_secret(joint) == pytest.approx(bayes_error(joint), abs=TINY)
    assert joint.prior @ exposed_per_secret(joint) <= exposed(joint) + TINY


@given(joint=joints())
def test_best_guesses_share_evenly_and_only_among_the_best(joint: Joint) -> None:
    found = best_guess_shares(joint.table)
    assert found.sum(axis=0) == pytest.approx(np.ones(joint.table.shape[1]))
    for column, chances in zip(found.T, joint.table.T, strict=True):
        best = np.isclose(chances, chances.max(), rtol=1e-10, atol=0)
        assert column == pytest.approx(best / best.sum())


@given(joint=joints(), other=joints())
def test_a_guess_learnt_elsewhere_is_never_better_than_the_best(joint: Joint, other: Joint) -> None:
    if joint.table.shape == other.table.shape:
        assert error_of_guess(joint, other) >= bayes_error(joint) - TINY


@given(joint=joints())
def test_the_worst_report_and_the_exposed_follow_from_the_posterior(joint: Joint) -> None:
    assert 1 / len(joint.secrets) - TINY <= worst_report(joint) <= 1 + TINY
    assert worst_report(joint) >= bayes_vulnerability(joint) - TINY
    assert exposed(joint, above=0.9) <= exposed(joint, above=0.5) + TINY
    slow = sum(
        column.sum()
        for column in joint.table.T
        if column.sum() and column.max() / column.sum() > 0.9
    )
    assert exposed(joint) == pytest.approx(slow, abs=TINY)
