"""Planar Laplace against its closed forms and against integration by another hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import lambertw

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import MechanismError
from sfumato.measure.worst import geo_indistinguishability
from sfumato.mechanism.base import load_mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.law import Law, merge_on_grid
from sfumato.mechanism.loss import squared

EPSILON = 2 / 173
N = 40_000


def _noise(seed: int = 5) -> np.ndarray:
    return PlanarLaplace(EPSILON).sample(np.zeros((N, 2)), seed=seed)


def test_the_noises_distance_follows_its_closed_form() -> None:
    """Kolmogorov-Smirnov against 1 - (1 + er) exp(-er), bound 0.0125: a false alarm in 7 of a
    million.

    An epsilon 5 % off moves the distribution by 0.05 * 4/e^2 = 0.027 and is missed less than once
    in a million; a planar normal or an exponential distance is 0.1 and more away.
    """
    distance = np.linalg.norm(_noise(), axis=1)
    assert (
        stats.kstest(distance, lambda r: 1 - (1 + EPSILON * r) * np.exp(-EPSILON * r)).statistic
        < 0.0125
    )


def test_the_noises_angle_is_uniform_and_tells_nothing_of_the_distance() -> None:
    """Same bound; the angle alone, and the angle of the nearer half: an ellipse 5 % longer one way
    would show 0.0125 with even odds."""
    noise = _noise()
    turn = np.arctan2(noise[:, 1], noise[:, 0]) / (2 * np.pi) % 1
    near = np.linalg.norm(noise, axis=1) < 1.678 / EPSILON
    assert stats.kstest(turn, "uniform").statistic < 0.0125
    assert stats.kstest(turn[near], "uniform").statistic < 0.0125 * 2**0.5
    assert stats.kstest(turn[~near], "uniform").statistic < 0.0125 * 2**0.5


def test_noise_is_isotropic() -> None:
    """Mean 0 and variance 3/e^2 along 12 directions; kurtosis 5 of a direction gives standard
    errors of 1 % on the variance; 5 allowed."""
    noise = _noise(6) * EPSILON
    for angle in np.arange(12) * np.pi / 12:
        along = noise @ [np.cos(angle), np.sin(angle)]
        assert abs(along.mean()) < 5 * (3 / N) ** 0.5
        assert along.var() == pytest.approx(3, rel=0.05)


def test_the_mean_loss_is_two_over_epsilon() -> None:
    """The distance has standard deviation sqrt(2)/e, so the mean over 40,000 is within 5 * 0.35 %
    of 2/e."""
    assert np.linalg.norm(_noise(), axis=1).mean() == pytest.approx(2 / EPSILON, rel=5 * 0.00354)
    assert PlanarLaplace(EPSILON).expected_loss == pytest.approx(173)
    assert PlanarLaplace.for_loss(173).epsilon == pytest.approx(EPSILON)


@pytest.mark.parametrize(
    "chance", [0.0, 1e-16, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999999, 1 - 2.0**-53]
)
def test_the_radius_inverts_the_distribution_function(chance: float) -> None:
    """Against Lambert's W of SciPy where that is exact, and against the function itself, series and
    all, near zero."""
    radius = float(PlanarLaplace(1.0).radius(np.array([chance]))[0])
    below = (
        float(-np.expm1(-radius) - radius * np.exp(-radius))
        if radius > 1e-3
        else radius**2 / 2 - radius**3 / 3
    )
    assert below == pytest.approx(chance, rel=1e-6, abs=2e-16)
    if chance >= 1e-6:
        assert radius == pytest.approx(
            float(-lambertw((chance - 1) / np.e, k=-1).real - 1), rel=1e-7
        )


def test_the_radius_grows_with_the_chance() -> None:
    radius = PlanarLaplace(1.0).radius(np.linspace(0, 1, 100_001)[:-1])
    assert radius[0] == 0 and np.all(np.diff(radius) > 0) and np.isfinite(radius).all()


def test_the_density_integrates_to_one() -> None:
    mechanism = PlanarLaplace(EPSILON)
    total, _ = integrate.quad(
        lambda r: 2 * np.pi * r * mechanism.density(np.zeros(2), np.array([r, 0.0])),
        0,
        60 / EPSILON,
    )
    assert total == pytest.approx(1, abs=1e-9)


def test_the_density_keeps_geo_indistinguishability_at_epsilon() -> None:
    """On a line through two truths the ratio of densities is exp(e d) exactly, everywhere else
    less."""
    truths = np.array([[0.0, 0.0], [50.0, 0.0]])
    reports = np.random.default_rng(0).normal(0, 200, (500, 2))
    reports[0] = (-30.0, 0.0)
    density = PlanarLaplace(EPSILON).density(truths[:, None, :], reports[None, :, :])
    assert geo_indistinguishability(density, truths) == pytest.approx(EPSILON, rel=1e-9)


# Cells --------------------------------------------------------------------------------------------


def _one(place: tuple[float, float]) -> Joint:
    return Joint([[1.0]], places=np.array([place]))


def _law(epsilon: float, place: tuple[float, float], grid: Grid) -> Law:
    law = PlanarLaplace(epsilon).law(_one(place), grid=grid)
    assert law is not None and law.joint.places is not None
    return law


def _by_quadrature(
    epsilon: float, place: tuple[float, float], low: np.ndarray, high: np.ndarray
) -> float:
    """The density over a rectangle by SciPy, cut at the truth where the density has its kink."""
    cuts = [
        sorted(
            {
                low[axis],
                high[axis],
                *([place[axis]] if low[axis] < place[axis] < high[axis] else []),
            }
        )
        for axis in (0, 1)
    ]
    total = 0.0
    for left, right in zip(cuts[0][:-1], cuts[0][1:], strict=True):
        for under, over in zip(cuts[1][:-1], cuts[1][1:], strict=True):
            total += integrate.dblquad(
                lambda y, x: epsilon**2 / (2 * np.pi) * np.exp(-epsilon * np.hypot(x - place[0], y - place[1])),
                left, right, under, over, epsabs=1e-10, epsrel=1e-9,
            )[0]  # fmt: skip
    return total


@pytest.mark.parametrize(
    ("epsilon", "cell", "place"),
    [
        (0.0116, 25.0, (3.0, 7.0)),
        (0.0116, 25.0, (12.5, 12.5)),
        (0.0116, 25.0, (0.0, 0.0)),
        (0.0116, 500.0, (120.0, 400.0)),
        (0.5, 25.0, (24.9, 0.1)),
        (0.0005, 250.0, (3.0, 7.0)),
        (0.0116, 25.0, (0.01, 24.999)),
        (0.0116, 25.0, (1e-9, 12.0)),
    ],
)
def test_cells_hold_what_quadrature_gives(
    epsilon: float, cell: float, place: tuple[float, float]
) -> None:
    """The truth's own cell, its neighbours, the edge of what is integrated exactly, and far cells;
    within the law's own word."""
    grid = Grid(cell_m=cell)
    law = _law(epsilon, place, grid)
    home = grid.index(np.array([place]))[0]
    at = {
        tuple(index): chance
        for index, chance in zip(
            grid.index(law.joint.places).tolist(), law.joint.table[0], strict=True
        )
    }
    for step in [(0, 0), (1, 0), (-1, -1), (0, 2), (4, 0), (5, 1), (-6, 5), (9, 12)]:
        index = home + np.array(step)
        expected = _by_quadrature(epsilon, place, *(np.array([index, index + 1]) * cell))
        assert at.get(tuple(index.tolist()), 0.0) == pytest.approx(
            expected, abs=max(2e-6 * expected, 2e-7)
        )


@pytest.mark.parametrize(
    ("epsilon", "cell"), [(0.0116, 25.0), (0.0116, 100.0), (0.0035, 100.0), (0.2, 25.0)]
)
def test_cells_agree_with_a_finer_split_of_them(epsilon: float, cell: float) -> None:
    whole = _law(epsilon, (31.0, -8.0), Grid(cell_m=cell))
    fine = merge_on_grid(_law(epsilon, (31.0, -8.0), Grid(cell_m=cell / 4)), Grid(cell_m=cell))
    tables = []
    for law in (whole, fine):
        assert law.joint.places is not None
        tables.append(
            {
                tuple(place): chance
                for place, chance in zip(law.joint.places.tolist(), law.joint.table[0], strict=True)
            }
        )
    apart = (
        sum(
            abs(tables[0].get(place, 0.0) - tables[1].get(place, 0.0))
            for place in tables[0].keys() | tables[1].keys()
        )
        / 2
    )
    assert apart <= whole.missing + fine.missing


def test_the_law_mirrors_when_the_truth_mirrors() -> None:
    """(x, y) to (-y, -x) takes the lattice to itself."""
    one, other = (_law(0.01, place, Grid(cell_m=25.0)) for place in ((3.0, 7.0), (-7.0, -3.0)))
    assert one.joint.places is not None and other.joint.places is not None
    there = {
        tuple(place): chance
        for place, chance in zip(other.joint.places.tolist(), other.joint.table[0], strict=True)
    }
    for (x, y), chance in zip(one.joint.places.tolist(), one.joint.table[0], strict=True):
        assert there.get((-y, -x), 0.0) == pytest.approx(chance, abs=2e-7)


def test_the_law_of_two_secrets_is_the_mixture_of_their_truths() -> None:
    grid = Grid(cell_m=50.0)
    places = np.array([[0.0, 0.0], [120.0, 40.0]])
    both = PlanarLaplace(0.01).law(Joint([[0.3, 0.1], [0.0, 0.6]], places=places), grid=grid)
    assert both is not None and both.joint.places is not None
    for secret, weights in enumerate([[0.3, 0.1], [0.0, 0.6]]):
        for column, place in enumerate(both.joint.places[::97]):
            expected = sum(
                weight * _by_quadrature(0.01, tuple(truth), place - 25, place + 25)
                for weight, truth in zip(weights, places.tolist(), strict=True)
            )
            assert both.joint.table[secret, 97 * column] == pytest.approx(expected, abs=1e-6)


def test_a_law_needs_a_grid_and_the_euclidean_loss() -> None:
    assert PlanarLaplace(0.01).law(_one((0.0, 0.0))) is None
    assert PlanarLaplace(0.01).law(_one((0.0, 0.0)), grid=Grid(cell_m=25), loss=squared) is None


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_that_is_no_rate_is_refused(epsilon: float) -> None:
    with pytest.raises(MechanismError, match="epsilon must be at least 1e-12 per metre and finite"):
        PlanarLaplace(epsilon)
    with pytest.raises(MechanismError, match="the expected loss must be above 0 metres"):
        PlanarLaplace.for_loss(epsilon)


@pytest.mark.parametrize("epsilon", [1e-300, 5e-324, 1e-13, 0.0, -1.0, np.nan, np.inf])
def test_an_epsilon_whose_noise_is_no_distance_is_refused_when_it_is_loaded(
    epsilon: float, tmp_path: Path
) -> None:
    path = tmp_path / "mechanism.npz"
    PlanarLaplace(EPSILON).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, "epsilon": np.array(epsilon)})
    with pytest.raises(MechanismError, match=r"at least 1e-12 per metre and finite; got"):
        load_mechanism(path)
    assert np.all(np.isfinite(PlanarLaplace(1e-12).sample(np.zeros((1000, 2)))))


def test_the_last_law_of_a_joint_is_kept_and_no_other_is_taken_for_it() -> None:
    joint = Joint(np.eye(2) / 2, places=np.array([[0.0, 0.0], [90.0, 0.0]]))
    grid, other = Grid(cell_m=50), Grid(cell_m=50, corner=(10.0, 0.0))
    first = PlanarLaplace(0.02).law_of_cells(joint, grid)
    assert first is not None and PlanarLaplace(0.02).law_of_cells(joint, grid) is first
    for mechanism, cells in ((PlanarLaplace(0.03), grid), (PlanarLaplace(0.02), other)):
        law = mechanism.law_of_cells(joint, cells)
        assert law is not None and law.loss != first.loss
    again = PlanarLaplace(0.02).law_of_cells(joint, grid)
    assert again is not None and np.array_equal(again.joint.table, first.joint.table)
