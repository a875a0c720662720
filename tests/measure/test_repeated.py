"""Repeated reports: the exact figure by brute force, the drawn one around it, and what the sticky
policy changes."""

import tracemalloc
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure import repeated
from sfumato.measure.judge import judge
from sfumato.measure.repeated import (
    endless_bayes_error,
    estimate_repeated_bayes_error,
    repeated_reports,
)
from sfumato.mechanism.chance import Rows as Who
from sfumato.mechanism.chance import Sticky
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.custom import Function
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.law import ReportRows
from sfumato.mechanism.loss import euclidean
from sfumato.mechanism.rows import RowsOnDemand, on_demand
from sfumato.mechanism.simple import Coin, Identity, constant
from sfumato.mechanism.wrap import Snapped
from tests.measure.chains import Chain, chains

CORNERS = four_corners(0).train.split(30).train


def _law(matrix: np.ndarray) -> RowsOnDemand:
    from scipy import sparse

    return on_demand(
        ReportRows(sparse.csr_matrix(matrix), np.arange(2.0 * matrix.shape[1]).reshape(-1, 2))
    )


def _by_hand(joint: np.ndarray, matrix: np.ndarray, count: int) -> float:
    """A loop over every ordered list of reports, in fractions."""
    right = Fraction(0)
    for reports in product(range(matrix.shape[1]), repeat=count):
        right += max(
            sum(
                (
                    Fraction(float(joint[secret, truth]))
                    * np.prod([Fraction(float(matrix[truth, report])) for report in reports])
                )
                for truth in range(joint.shape[1])
            )
            for secret in range(joint.shape[0])
        )
    return float(1 - right)


@given(chains())
def test_small_cases_are_those_of_every_ordered_list(chain: Chain) -> None:
    found = estimate_repeated_bayes_error(chain.joint, _law(chain.mechanism), (1, 2, 3))
    assert all(estimate.kind == "exact" for estimate in found)
    for count, estimate in zip((1, 2, 3), found, strict=True):
        assert estimate.value == pytest.approx(
            _by_hand(chain.joint.table, chain.mechanism, count), abs=1e-9
        )


@given(chains())
def test_more_reports_never_hide_better_and_never_beat_endless_ones(chain: Chain) -> None:
    law = _law(chain.mechanism)
    values = [
        estimate.value for estimate in estimate_repeated_bayes_error(chain.joint, law, (1, 2, 4))
    ]
    values.append(endless_bayes_error(chain.joint, law))
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(values))


def test_drawn_figures_lie_around_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 seeds at 400 draws: 19 in 20 intervals or more hold the exact figure.  An adversary who
    forgot a report, or likelihoods of the wrong truth, would be off by more than 0.02, twice the
    half width: all 20 would miss.
    """
    joint = Joint(np.array([[3, 1, 0], [0, 2, 2]]) / 8)
    matrix = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
    law = _law(matrix)
    exact = [_by_hand(joint.table, matrix, count) for count in (2, 5)]
    monkeypatch.setattr(repeated, "_MOST_PRODUCTS", 0)
    held = 0
    for seed in range(20):
        found = estimate_repeated_bayes_error(joint, law, (2, 5), draws=400, seed=seed)
        assert [estimate.kind for estimate in found] == ["estimate"] * 2 and found[0].hits == 400
        assert "unbiased" in found[0].errs
        held += sum(
            estimate.low <= value <= estimate.high
            for estimate, value in zip(found, exact, strict=True)
        )
    assert held >= 38
    assert abs(exact[0] - exact[1]) > 0.02


def test_long_lists_of_few_reports_need_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reports and one chance a secret: B_n = 1 - E max of two binomial laws.  A table of all
    truths, lists and reports of a list would hold 400 x 301 x 300 numbers, 289 MB."""
    truths, count, chances = 400, 300, (0.4, 0.5)
    table = np.kron(np.eye(2), np.ones(truths // 2)) / truths
    law = _law(np.repeat([[1 - chance, chance] for chance in chances], truths // 2, axis=0))
    tracemalloc.start()
    try:
        (found,) = estimate_repeated_bayes_error(Joint(table), law, (count,))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    laws = [binom.pmf(np.arange(count + 1), count, chance) for chance in chances]
    assert found.kind == "exact" and found.value == pytest.approx(
        1 - np.maximum(*laws).sum() / 2, abs=1e-9
    )
    assert most < 50e6
    monkeypatch.setattr(repeated, "_MOST_SUMS", truths * 301 * count - 1)
    assert repeated._by_all_lists(Joint(table), law, count) is None


def test_a_coin_is_found_out_when_it_first_tells_the_truth() -> None:
    """Four users with places of their own: B_n = 3/4 (1 - keep)^n."""
    coin = Coin(keep=0.2, place=(0.5, 0.5))
    found = repeated_reports(coin, CORNERS, (1, 2, 5), sticky_cell_m=None)
    for count, estimate in zip(found.counts, found.fresh, strict=True):
        assert estimate.low - 1e-9 <= 0.75 * 0.8**count <= estimate.high + 1e-9
    assert found.fresh[0].kind == "exact" and found.fresh[2].kind == "estimate"
    assert found.endless.value == pytest.approx(0, abs=1e-9) and found.middle is None


def test_a_report_that_never_varies_tells_nothing_more_by_repetition() -> None:
    cells = Snapped(Identity(), Grid(cell_m=150))
    found = repeated_reports(cells, CORNERS, (1, 10), region=None)
    one = judge(cells, CORNERS).bayes_error.value
    assert found.fresh[0].value == pytest.approx(one) and found.endless.value == pytest.approx(one)
    assert found.fresh[1].low <= one <= found.fresh[1].high
    nothing = repeated_reports(constant((0.0, 0.0)), CORNERS, (1, 50))
    assert nothing.endless.value == pytest.approx(0.75) and nothing.middle_places is not None
    assert nothing.middle_places[1].value == pytest.approx(0.75)


def test_a_kept_report_is_that_of_the_middle_of_the_cell() -> None:
    """The exact figures against reports that the policy itself makes, for 600 keys.

    The mean loss has a standard error of about 2 m (some 4 cells a user, 600 keys, 100 m of
    spread); the loss of truths that are not moved to the middle of their cell would be 12 m less.
    """
    coin, some = Coin(keep=0.4, place=(10.0, 20.0)), CORNERS.split(8).train
    found = repeated_reports(coin, some, (1, 50), sticky_cell_m=100.0)
    assert (
        found.middle is not None and found.middle.kind == "exact" and found.middle_loss is not None
    )
    users, cost, reports = np.array(some.secrets)[some.secret], [], []
    for key in range(600):
        policy = Sticky(key=key.to_bytes(32, "big"), period="forever", cell_m=100.0)
        drawn = coin.report(*policy.of(some.truth, Who(users), coin.draws))
        assert np.array_equal(
            drawn, coin.report(*policy.of(some.truth, Who(users), coin.draws))
        )  # sent again, not drawn again
        reports.append(drawn)
        cost.append(euclidean(some.truth, drawn).mean())
    assert found.middle_loss == pytest.approx(np.mean(cost), abs=6)
    assert found.middle_loss - judge(coin, some).loss.value > 12
    middles = coin.law(
        Samples(some.secret, Grid(cell_m=100.0).snap(some.truth), some.secrets).joint()
    )
    assert middles is not None and middles.joint.places is not None
    assert found.middle.value == pytest.approx(1 - middles.joint.table.max(axis=0).sum())
    assert {tuple(place) for place in np.vstack(reports)} == {
        tuple(place) for place in middles.joint.places
    }


def test_what_a_kept_report_leaves_open_grows_with_periods_and_places() -> None:
    found = repeated_reports(
        Coin(keep=0.2, place=(0.5, 0.5)), CORNERS, (1, 10), region=CORNERS.region
    )
    assert (
        found.middle is not None
        and found.middle_periods is not None
        and found.middle_places is not None
    )
    assert found.first.value == pytest.approx(0.75 * 0.8) and found.first.kind == "exact"
    for kept, left in (
        (found.first, found.places),
        (found.middle, found.middle_periods),
        (found.middle, found.middle_places),
    ):
        assert left[0].value == pytest.approx(kept.value)
        assert left[1].high < kept.value - 0.3


def test_answering_middles_can_undo_a_mechanism_that_mixes_within_cells() -> None:
    """ann and bob share a cell and are mixed well, cid lives in the next; middles have rows of
    single truths, which differ."""
    samples = Samples(
        [0, 1, 2, 2], [[20.0, 0.0], [60.0, 0.0], [140.0, 0.0], [160.0, 0.0]], ("ann", "bob", "cid")
    )
    rows = [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    channel = Channel(samples.truth, [[0.0, 0.0], [100.0, 0.0]], rows, nearest=True)
    found = repeated_reports(channel, samples, (1, 3), sticky_cell_m=100.0)
    assert found.middle is not None
    assert found.first.value == pytest.approx(0.5)  # cid is guessed at either report
    assert found.middle.value < 0.5


def test_from_other_places_by_hand() -> None:
    """ann is at one of two places, bob at one of two others; places 1 and 2 send the same report.
    Two reports, each from a place of its own: P(z|ann) = (1/2, 1/2, 0), P(z|bob) = (0, 1/2, 1/2),
    so only two middle reports leave a doubt.
    """
    samples = Samples(
        [0, 0, 1, 1], [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], ("ann", "bob")
    )
    channel = Channel(
        samples.truth,
        [[0.0, 0.0], [1.5, 0.0], [3.0, 0.0]],
        [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]],
    )
    found = repeated_reports(channel, samples, (1, 2), sticky_cell_m=None)
    assert [estimate.value for estimate in found.fresh] == pytest.approx([0.25, 0.25])
    assert [estimate.value for estimate in found.places] == pytest.approx([0.25, 0.125])
    assert found.places[1].kind == "exact"


@pytest.mark.parametrize(
    "grid", [None, Grid(cell_m=100.0)], ids=["released", "seen on larger cells"]
)
def test_rows_of_snapped_laplace_are_its_law(grid: Grid | None) -> None:
    mechanism = Snapped(PlanarLaplace(0.02), Grid(cell_m=50.0))
    joint = CORNERS.joint()
    assert joint.places is not None
    rows = mechanism.rows_on(joint.places, grid)
    assert rows is not None
    law = mechanism.law(joint, grid=grid)
    assert law is not None and law.joint.places is not None
    table = {
        tuple(place): column
        for place, column in zip(law.joint.places, law.joint.table.T, strict=True)
    }
    found = rows.joint(joint)
    assert found.places is not None
    for place, column in zip(found.places, found.table.T, strict=True):
        assert column == pytest.approx(table.get(tuple(place), np.zeros(4)), abs=1e-12)
    found = repeated_reports(mechanism, CORNERS, (1, 5), grid=grid, draws=300)
    assert found.fresh[0].value == pytest.approx(
        judge(mechanism, CORNERS, grid=grid).bayes_error.value, abs=1e-9
    )
    assert found.fresh[1].high < found.fresh[0].value


def test_a_truth_answered_outside_the_region_is_moved_to_its_edge() -> None:
    samples = Samples([0, 1], [[0.0, 0.0], [99.0, 0.0]], ("ann", "bob"))
    seen: list[np.ndarray] = []

    class Spy(Coin):
        def rows(self, truth: np.ndarray) -> ReportRows:
            seen.append(truth)
            return super().rows(truth)

    repeated_reports(
        Spy(keep=0.5, place=(0.0, 0.0)),
        samples,
        (1,),
        region=Region((50.0, 0.0), 99.0),
        sticky_cell_m=1000.0,
    )
    assert {tuple(place) for place in seen[-1]} == {(99.5, 49.5)}


def test_words_have_no_places_to_keep() -> None:
    from sfumato.data.categories import CategoricalData

    words = CategoricalData(
        Joint(np.eye(2) / 2, secrets=("a", "b")), ("x", "y"), ("x", "y"), np.array([[0, 1], [1, 0]])
    )
    channel = Channel([[0, 0], [1, 0]], [[0, 0], [1, 0]], [[0.75, 0.25], [0.25, 0.75]])
    found = repeated_reports(channel, words, (1, 3))
    assert found.middle is None and found.middle_places is None
    assert found.fresh[1].value == pytest.approx(1 - (0.75**3 + 3 * 0.75**2 * 0.25))


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(ProblemError, match="is not known, and repeated reports need it"):
        repeated_reports(Function(lambda truth, random: truth), CORNERS)
    with pytest.raises(ProblemError, match="whole, from 1 to 10000; got 0"):
        repeated_reports(Identity(), CORNERS, (0,))
    with pytest.raises(ProblemError, match="got none"):
        repeated_reports(Identity(), CORNERS, ())
    with pytest.raises(ProblemError, match="at least 1 list"):
        repeated_reports(Coin(keep=0.5, place=(0.0, 0.0)), CORNERS, (2,), draws=0)
