"""The law that a mechanism says it has is the law that it draws from."""

import numpy as np
import pytest
from scipy import stats

from sfumato.data.joint import Joint
from sfumato.errors import MechanismError
from sfumato.measure.estimate import count_hits
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import euclidean
from tests.mechanism.registry import GRID, MECHANISMS, SAMPLES, law_of

HITS = 16_000  # reports a check-in, 80,000 in all


def test_the_law_is_what_sampling_gives(name: str, mechanism: Mechanism) -> None:
    """Chi-square over P(secret, report) with a false alarm of one in a million.

    A law d off in total variation has a noncentrality of at least 4 d^2 n; with n = 80,000, at most
    1000 cells and d = 0.04 that is 512, caught 999 times in 1000.
    """
    law = law_of(mechanism, SAMPLES.joint())
    if law is None:
        return
    assert law.joint.places is not None
    secret = np.repeat(SAMPLES.secret, HITS)
    reports = mechanism.sample(np.repeat(SAMPLES.truth, HITS, axis=0), seed=11)
    if name == "planar laplace":
        reports = GRID.snap(reports)
    places, column = np.unique(
        np.vstack([law.joint.places, reports]).round(6), axis=0, return_inverse=True
    )
    column = column.ravel()
    expected = np.zeros((3, len(places)))
    np.add.at(expected.T, column[: len(law.joint.places)], law.joint.table.T * len(reports))
    seen = np.zeros_like(expected)
    np.add.at(seen, (secret, column[len(law.joint.places) :]), 1)
    common = expected >= 8
    assert common.sum() <= 1000
    rest = expected[~common].sum(), seen[~common].sum()
    statistic = np.sum((seen[common] - expected[common]) ** 2 / expected[common])
    if rest[0] >= 8:
        statistic += (rest[1] - rest[0]) ** 2 / rest[0]
    else:
        assert rest[1] <= stats.poisson.isf(1e-6, rest[0]) if rest[0] > 1e-6 else rest[1] == 0
    assert statistic <= stats.chi2.isf(1e-6, common.sum())


def test_the_laws_loss_is_the_sampled_loss(mechanism: Mechanism) -> None:
    """Within 5 standard errors, of each secret and over all: at most 0.5 m where the law's loss is
    up to 100 m.

    Losing the snap, the clamp or a factor in epsilon moves the loss of some entry by metres.
    """
    law = law_of(mechanism, SAMPLES.joint())
    if law is None:
        return
    truth = np.repeat(SAMPLES.truth, HITS, axis=0)
    cost = euclidean(truth, mechanism.sample(truth, seed=12))
    assert law.loss == pytest.approx(cost.mean(), abs=5 * cost.std() / len(cost) ** 0.5 + 1e-3)
    for number, expected in enumerate(law.loss_of):
        own = cost[np.repeat(SAMPLES.secret, HITS) == number]
        assert expected == pytest.approx(own.mean(), abs=5 * own.std() / len(own) ** 0.5 + 1e-3)


def test_a_law_is_a_distribution_that_keeps_the_prior(mechanism: Mechanism) -> None:
    law = law_of(mechanism, SAMPLES.joint())
    if law is not None:
        assert law.joint.prior == pytest.approx(SAMPLES.joint().prior, abs=1e-9)
        assert law.joint.secrets == SAMPLES.secrets
        assert law.joint.prior @ law.loss_of == pytest.approx(law.loss, abs=1e-9)


def test_a_law_on_a_grid_is_the_law_merged_into_its_cells(name: str, mechanism: Mechanism) -> None:
    law = mechanism.law(SAMPLES.joint())
    if law is None:
        return
    wide = GRID.__class__(cell_m=75.0, corner=(5.0, 5.0))
    merged = mechanism.law(SAMPLES.joint(), grid=wide)
    assert merged is not None and merged.cell_m == 75 and merged.loss == law.loss
    assert law.joint.places is not None and merged.joint.places is not None
    for cell, column in zip(merged.joint.places, merged.joint.table.T, strict=True):
        inside = np.all(wide.snap(law.joint.places) == cell, axis=1)
        assert law.joint.table[:, inside].sum(axis=1) == pytest.approx(column, abs=1e-12)


def test_a_law_needs_places(mechanism: Mechanism) -> None:
    with pytest.raises((MechanismError, AssertionError)):
        mechanism.law(Joint.uniform(secrets=2, places=2), grid=GRID)


def test_hits_and_law_agree_on_who_is_where_for_the_truth_itself() -> None:
    law = MECHANISMS["identity"]().law(SAMPLES.joint(), grid=GRID)
    assert law is not None
    counts = count_hits(SAMPLES.secret, SAMPLES.truth, GRID, secrets=3)
    assert np.array_equal(law.joint.places, counts.places)  # type: ignore[arg-type]
    assert law.joint.table == pytest.approx(counts.joint().table)
