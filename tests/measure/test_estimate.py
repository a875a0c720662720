"""Estimators: counts against a slow loop, intervals that cover, errors in the direction that they
own to."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.estimate import (
    Estimate,
    count_hits,
    estimate_bayes_error,
    estimate_exposed,
    estimate_information,
    estimate_mean,
)
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.worst import exposed

GRID = Grid(cell_m=10.0)


def _draw(joint: Joint, hits: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Secrets and reports drawn from a table; column c is the cell at (10 c, 0)."""
    flat = random.choice(joint.table.size, size=hits, p=joint.table.ravel() / joint.table.sum())
    secret, column = np.divmod(flat, joint.table.shape[1])
    return secret, np.stack([10.0 * column + 5, np.full(hits, 5.0)], axis=1)


# Counting -----------------------------------------------------------------------------------------


@given(
    hits=st.lists(
        st.tuples(st.integers(0, 2), st.integers(-40, 40), st.integers(-40, 40)),
        min_size=1,
        max_size=40,
    ),
    far=st.sampled_from([1, 1, 10_000]),
)
def test_hits_are_what_a_slow_loop_counts(hits: list[tuple[int, int, int]], far: int) -> None:
    """Both ways of counting (a table of cells, sorted codes) give the loop's counts."""
    secret = np.array([hit[0] for hit in hits])
    reports = np.array([hit[1:] for hit in hits]) * float(far)
    slow: dict[tuple[int, int], list[int]] = {}
    for who, x, y in zip(secret, reports[:, 0], reports[:, 1], strict=True):
        slow.setdefault((int(x // 10), int(y // 10)), [0, 0, 0])[who] += 1
    counts = count_hits(secret, reports, GRID, secrets=3)
    fast = {
        tuple(index): column.tolist()
        for index, column in zip(GRID.index(counts.places).tolist(), counts.table.T, strict=True)
    }
    assert fast == slow


def test_memory_is_flat_in_empty_cells() -> None:
    """Two reports a million cells apart in both directions: a table of cells would take terabytes,
    we allow 100 kB."""
    reports = np.array([[0.0, 0.0], [1e7, 1e7]])
    count_hits(np.array([0, 1]), reports, GRID, secrets=2)
    tracemalloc.start()
    counts = count_hits(np.array([0, 1]), reports, GRID, secrets=2)
    estimate_bayes_error(np.array([0, 1]), reports, GRID, secrets=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.table.tolist() == [[1, 0], [0, 1]] and peak < 100_000


def test_memory_is_linear_in_hits() -> None:
    """Ten times the hits take at most twelve times the memory."""
    peaks = []
    for hits in (20_000, 200_000):
        random = np.random.default_rng(0)
        secret, reports = random.integers(0, 4, hits), random.normal(0, 500, (hits, 2))
        tracemalloc.start()
        count_hits(secret, reports, GRID, secrets=4)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] <= 12 * peaks[0]


def test_reports_that_cannot_be_counted_are_refused() -> None:
    with pytest.raises(ProblemError, match="no reports to measure"):
        count_hits(np.array([], dtype=int), np.empty((0, 2)), GRID, secrets=2)
    with pytest.raises(ProblemError, match="not two finite numbers"):
        count_hits(np.array([0]), np.array([[np.nan, 0.0]]), GRID, secrets=2)
    for far in (1e12, 1e300):
        with pytest.raises(ProblemError, match="expected a larger cell"):
            count_hits(
                np.array([0, 1]), np.array([[0.0, 0.0], [far, far]]), Grid(cell_m=1e-3), secrets=2
            )


# Estimates ----------------------------------------------------------------------------------------

LAWS = {
    "even": Joint([[0.2, 0.3], [0.3, 0.2]]),
    "sharp": Joint(np.diag([0.25] * 4) * 0.96 + 0.04 / 16),
    "rarely wrong": Joint([[0.49, 0.01], [0.01, 0.49]]),
    "skewed": Joint([[0.7, 0.1], [0.05, 0.15]]),
    "three": Joint(np.array([[4, 2, 1, 1], [2, 4, 2, 1], [1, 2, 3, 6]]) / 29),
}
SEEDS = 300
# Of 300 intervals that each cover with chance 0.95, fewer than 270 do so with chance 2e-4; of those
# that cover with
# chance 0.85, at least 270 do with chance 0.007: an interval that is right 85 times in 100 does not
# pass.
LEAST = 270


@pytest.mark.parametrize("hits", [40, 400])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_the_interval_of_the_bayes_error_covers_it(law: Joint, hits: int) -> None:
    random = np.random.default_rng(1)
    truth, secrets = bayes_error(law), len(law.secrets)
    covered = 0
    for _ in range(SEEDS):
        found = estimate_bayes_error(*_draw(law, hits, random), GRID, secrets=secrets)
        assert 0 <= found.low <= found.value <= found.high <= 1
        covered += found.low <= truth <= found.high
    assert covered >= LEAST


@pytest.mark.parametrize("hits", [40, 400])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_the_interval_of_the_information_covers_it(law: Joint, hits: int) -> None:
    random = np.random.default_rng(2)
    truth, secrets = mutual_information(law), len(law.secrets)
    covered = 0
    for _ in range(SEEDS):
        found = estimate_information(*_draw(law, hits, random), GRID, secrets=secrets)
        assert 0 <= found.low <= found.value <= found.high
        covered += found.low <= truth <= found.high
    assert covered >= LEAST


def test_the_interval_covers_where_cells_have_few_hits() -> None:
    """200 cells, 300 hits: the plug-in value is far too low, the interval is not."""
    random = np.random.default_rng(3)
    law = Joint(random.dirichlet(np.ones(4) * 0.7, 200).T / 200)
    covered = np.zeros(2)
    for _ in range(100):
        sample = _draw(law, 300, random)
        error, information = (
            estimate(*sample, GRID, secrets=4)
            for estimate in (estimate_bayes_error, estimate_information)
        )
        covered += [
            error.low <= bayes_error(law) <= error.high,
            information.low <= mutual_information(law) <= information.high,
        ]
    assert np.all(
        covered >= 88
    )  # 95 in 100 fall below 88 with chance 0.004; 75 in 100 reach it with chance 0.001


def test_few_hits_a_cell_push_the_bayes_error_down_and_the_information_up() -> None:
    """A law that hides everything (0.75, 0 bits) on 500 cells: the means over 20 draws near it from
    the side that they own to."""
    law = Joint.uniform(secrets=4, places=500)
    random = np.random.default_rng(4)
    means = []
    for hits in (200, 2000, 20_000):
        samples = [_draw(law, hits, random) for _ in range(20)]
        means.append(
            [
                np.mean([e(*s, GRID, secrets=4).value for s in samples])
                for e in (estimate_bayes_error, estimate_information)
            ]
        )
    errors, bits = np.array(means).T
    assert errors[0] < 0.2 < errors[1] < 0.6 < errors[2] < 0.75
    assert bits[0] > 1.5 > bits[1] > 0.3 > bits[2] > 0
    assert "low with few hits" in estimate_bayes_error(*samples[0], GRID, secrets=4).errs
    assert "high with few hits" in estimate_information(*samples[0], GRID, secrets=4).errs


def test_merging_into_wider_cells_pushes_the_bayes_error_up() -> None:
    random = np.random.default_rng(5)
    secret = random.integers(0, 2, 5000)
    reports = np.stack([secret * 30.0 + random.normal(0, 10, 5000), np.zeros(5000)], axis=1)
    values = [
        estimate_bayes_error(
            secret, reports, Grid(cell_m=cell, corner=(-320, -320)), secrets=2
        ).value
        for cell in (5, 20, 80, 640)
    ]
    assert values == sorted(values) and values[0] < 0.1 and values[-1] > 0.4
    bits = [
        estimate_information(
            secret, reports, Grid(cell_m=cell, corner=(-320, -320)), secrets=2
        ).value
        for cell in (5, 20, 80, 640)
    ]
    assert bits == sorted(bits, reverse=True)


def test_the_estimate_is_unbiased_where_the_best_guess_is_beyond_doubt() -> None:
    """With 400 hits the best guess of a 0.49 to 0.01 cell never changes: the mean of 300 draws is B
    within 5 standard errors (0.0004)."""
    law, random = LAWS["rarely wrong"], np.random.default_rng(6)
    values = [
        estimate_bayes_error(*_draw(law, 400, random), GRID, secrets=2).value for _ in range(300)
    ]
    assert np.mean(values) == pytest.approx(0.02, abs=5 * (0.02 * 0.98 / 400 / 300) ** 0.5)


def test_the_mean_is_unbiased_and_its_interval_covers() -> None:
    random = np.random.default_rng(7)
    found = [estimate_mean(random.gamma(2.0, 50.0, 400)) for _ in range(SEEDS)]
    assert np.mean([each.value for each in found]) == pytest.approx(
        100, abs=5 * 50 * 2**0.5 / (400 * SEEDS) ** 0.5
    )
    assert sum(each.low <= 100 <= each.high for each in found) >= LEAST
    assert found[0].errs == "unbiased"


def test_exposed_reports_are_counted_and_err_high_with_few_hits() -> None:
    law = Joint([[0.5, 0.0, 0.2], [0.0, 0.1, 0.2]])
    assert exposed(law) == pytest.approx(0.6)
    found = estimate_exposed(*_draw(law, 4000, np.random.default_rng(8)), GRID, secrets=2)
    assert found.value == pytest.approx(0.6, abs=5 * (0.24 / 4000) ** 0.5)
    blind = estimate_exposed(
        *_draw(Joint.uniform(secrets=2, places=500), 200, np.random.default_rng(9)), GRID, secrets=2
    )
    assert blind.value > 0.5 and "high with few hits" in blind.errs
    assert blind.low == 0


def test_the_low_end_of_exposed_reports_is_useful_and_never_above_the_truth() -> None:
    """Where a posterior is at the limit, hits alone put half of its cells above it: a low end that
    trusted them would say 0.5 where nothing is exposed."""
    sure, limit = Joint([[0.3, 0.0, 0.35], [0.0, 0.0, 0.35]]), np.full(100, 0.009)
    random = np.random.default_rng(10)
    found = [estimate_exposed(*_draw(sure, 4000, random), GRID, secrets=2) for _ in range(20)]
    assert all(0.25 < each.low <= 0.3 <= each.high for each in found)
    edge = Joint(np.stack([limit, limit / 9]))  # 90 % and not above it
    assert exposed(edge) == 0
    found = [estimate_exposed(*_draw(edge, 4000, random), GRID, secrets=2) for _ in range(20)]
    assert max(each.low for each in found) == 0 and max(each.value for each in found) > 0.3


def test_the_high_end_of_the_exposed_share_covers_posteriors_just_above_the_limit() -> None:
    """1,000 hits in 25 cells with a posterior of 0.91 each: half of them look like less.  A limit
    that takes the cells as they look is below the truth, which is all, every time."""
    random = np.random.default_rng(10)
    law = Joint(np.stack([np.full(25, 0.91), np.full(25, 0.09)]) / 25)
    assert exposed(law) == 1
    found = [estimate_exposed(*_draw(law, 1000, random), GRID, secrets=2) for _ in range(40)]
    assert sum(each.high >= 1 - 1e-9 for each in found) >= 36
    clear = Joint(np.stack([np.full(25, 0.6), np.full(25, 0.4)]) / 25)
    found = [estimate_exposed(*_draw(clear, 4000, random), GRID, secrets=2) for _ in range(20)]
    assert max(each.high for each in found) < 0.01


def test_a_secret_without_hits_and_a_single_hit_are_measured_without_a_murmur() -> None:
    secret, reports = (
        np.array([0, 0, 1, 1]),
        np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [50.0, 0.0]]),
    )
    for estimate in (estimate_bayes_error, estimate_information, estimate_exposed):
        found = estimate(secret, reports, GRID, secrets=3)
        assert np.isfinite([found.low, found.value, found.high]).all()
        alone = estimate(secret[:1], reports[:1], GRID, secrets=2)
        assert np.isfinite([alone.low, alone.value, alone.high]).all()


def test_a_handful_of_hits_is_not_taken_for_certainty() -> None:
    """Five separated hits of each of two secrets allow an error of a fifth at least; [0, 0] would
    be a lie."""
    found = estimate_bayes_error(
        np.repeat([0, 1], 5), np.repeat([[0.0, 0.0], [50.0, 0.0]], 5, axis=0), GRID, secrets=2
    )
    assert found.value == 0 and found.high > 0.2


def test_an_exact_number_says_so() -> None:
    found = Estimate.exact(0.5, within=1e-3, cell_m=25.0)
    assert (found.low, found.high, found.kind, found.hits) == (0.499, 0.501, "exact", None)
    assert set(found.as_dict()) >= {"value", "low", "high", "kind", "cell_m", "hits"}


def test_the_interval_of_a_mean_loss_does_not_reach_below_zero() -> None:
    few = np.array([0.0, 0.0, 0.0, 500.0])
    assert (estimate_mean(few).value, estimate_mean(few).low) == (125.0, 0.0)
    people = sf.Samples([0, 0, 1, 1], [[0.0, 0.0]] * 3 + [[500.0, 0.0]], ("ann", "bob"))
    loss = sf.judge(sf.mechanism.constant((0, 0)), people).loss_of_sample
    assert loss is not None and (loss.value, loss.low) == (125.0, 0.0)
