"""Confidence bounds hold as often as they say, for laws that are known, and are narrow."""

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.errors import ProblemError
from sfumato.measure.interval import (
    Users,
    evidence,
    lower_mean,
    needed,
    spread_of_rows,
    upper_best_response,
    upper_mean,
)

TRIES, DELTA = 300, 0.1
# A bound that fails with chance 0.1 fails more often than this in 300 tries with chance 1e-3; one
# that fails with chance 0.19 is caught with chance 0.9.
MOST_FAILURES = int(binom.ppf(0.999, TRIES, DELTA))


def _rare(rng, count):
    return (rng.random(count) < 0.03).astype(float)


def _even(rng, count):
    return rng.random(count)


def _narrow(rng, count):
    return rng.beta(40, 60, count)


LAWS = {"rare": (_rare, 0.03), "even": (_even, 0.5), "narrow": (_narrow, 0.4)}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [12, 200])
def test_a_bound_fails_no_more_often_than_it_says(law, count):
    draw, mean = LAWS[law]
    rng = np.random.default_rng(1)
    users, missed = Users.alike(count), np.zeros(2)
    for _ in range(TRIES):
        values = draw(rng, count)
        missed[0] += lower_mean(values, users, low=0, high=1, delta=DELTA) > mean
        missed[1] += upper_mean(values, users, low=0, high=1, delta=DELTA, spread=0.1) < mean
    assert missed.max() <= MOST_FAILURES


def test_users_of_other_means_and_numbers_count_with_their_shares():
    rng = np.random.default_rng(2)
    shares, means, counts = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.9, 0.5]), [40, 25, 10]
    users = Users.given(np.repeat(np.arange(3), counts), shares)
    truth, missed, widths = float(shares @ means), np.zeros(2), []
    for _ in range(TRIES):
        values = np.clip(means[users.of] + rng.uniform(-0.1, 0.1, len(users)), 0, 1)
        low = lower_mean(values, users, low=0, high=1, delta=DELTA, spread=0.06)
        high = upper_mean(values, users, low=0, high=1, delta=DELTA, spread=0.06)
        missed += [low > truth, high < truth]
        widths.append(high - low)
    assert missed.max() <= MOST_FAILURES
    # Only the spread within users (0.06) counts: without shares the spread is 0.3.
    alike = Users.alike(len(users))
    blind = upper_mean(values, alike, low=0, high=1, delta=DELTA) - lower_mean(
        values, alike, low=0, high=1, delta=DELTA
    )
    assert np.mean(widths) < 0.7 * blind


def test_a_sorted_file_is_as_good_as_any():
    """In sorted order a guess from the samples before would know what comes."""
    rng = np.random.default_rng(3)
    users = Users.alike(100)
    missed = sum(
        lower_mean(np.sort(rng.random(100)), users, low=0, high=1, delta=DELTA) > 0.5
        for _ in range(TRIES)
    )
    assert missed <= MOST_FAILURES


@pytest.mark.parametrize(("count", "spread"), [(480, 0.05), (480, 0.2), (1920, 0.2), (1920, 0.45)])
def test_bets_are_narrower_than_hoeffding_and_than_maurer_and_pontil(count, spread):
    rng = np.random.default_rng(4)
    size = 0.25 / spread**2 - 1
    values = rng.beta(size / 2, size / 2, count)
    log = np.log(2 / 0.05)
    empirical = np.sqrt(2 * values.var(ddof=1) * log / count) + 7 * log / 3 / (count - 1)
    hoeffding = np.sqrt(np.log(1 / 0.05) / 2 / count)
    ours = values.mean() - lower_mean(
        values, Users.alike(count), low=0, high=1, delta=0.05, spread=spread
    )
    assert ours < min(hoeffding, empirical)


def test_blocks_in_order_multiply():
    """The mean of a law is tested in two blocks; the second block's bets follow from the first."""
    rng = np.random.default_rng(5)
    users, missed = Users.alike(60), 0
    for _ in range(TRIES):
        first, second = rng.random(60), rng.random(60)
        one = evidence(first, users, low=0, high=1, delta=DELTA**0.5)
        two = evidence(second, users, low=0, high=1, spread=first.std(), delta=DELTA**0.5)
        missed += two.after(one).lower(DELTA) > 0.5
    assert missed <= MOST_FAILURES
    assert two.after(one).lower(DELTA) > max(one.lower(DELTA), two.lower(DELTA))


def _population(seed):
    """Three users, five reports: P(report | place) for six places each, and P(place | user)."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(5, 0.3), (3, 6))
    return rows, rng.dirichlet(np.ones(6), 3), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_best_guess_for_the_population_is_bounded(seed):
    rows, chances, shares = _population(seed)
    joint = shares[:, None] * np.einsum("xw,xwz->xz", chances, rows)
    truth = joint.max(axis=0).sum()
    rng, missed = np.random.default_rng(6), 0
    counts = [60, 40, 30]
    users = Users.given(np.repeat(np.arange(3), counts), shares)
    for _ in range(TRIES):
        drawn = [rows[x][rng.choice(6, size=count, p=chances[x])] for x, count in enumerate(counts)]
        plug_in = sum(
            column.max() for column in (shares[:, None] * [d.mean(axis=0) for d in drawn]).T
        )
        spreads = np.array([spread_of_rows(d) for d in drawn])
        missed += upper_best_response(plug_in, spreads, users, delta=DELTA) < truth
    assert missed <= MOST_FAILURES


def test_the_spread_of_rows_is_at_least_that_of_every_set_of_reports():
    rng = np.random.default_rng(7)
    rows = rng.dirichlet(np.full(6, 0.4), 25)
    sets = (np.arange(2**6)[:, None] >> np.arange(6)) & 1
    spread = max(np.sum((rows @ one - (rows @ one).mean()) ** 2) for one in sets)
    assert spread <= spread_of_rows(rows) <= 25 / 2


def test_what_is_no_bounded_mean_is_refused():
    users = Users.alike(3)
    for values, high in (([0.1, 0.2, 1.2], 1.0), ([0.1, 0.2, np.nan], 1.0), ([0.1], 1.0)):
        with pytest.raises(ProblemError):
            lower_mean(values, users, low=0.0, high=high, delta=0.05)
    with pytest.raises(ProblemError, match="needs a range"):
        lower_mean([0.0] * 3, users, low=0.0, high=0.0, delta=0.05)
    with pytest.raises(ProblemError, match="no samples"):
        Users.given([0, 0], [0.5, 0.5])
    with pytest.raises(ProblemError, match="sum 1"):
        Users.given([0, 1], [0.5, 0.4])
    assert needed(100, 0.12, 0.06) == 400
