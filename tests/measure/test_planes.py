"""Data of two files lie on two planes: what meets is brought to one of them, or refused."""

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.plane import Plane
from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples
from sfumato.errors import DataError, MechanismError, ProblemError
from sfumato.measure.judge import judge
from sfumato.measure.membership import membership_test
from sfumato.measure.repeated import repeated_reports
from sfumato.mechanism.base import load_mechanism
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Coin
from sfumato.mechanism.wrap import Snapped
from sfumato.solver import Coin as CoinSolver
from sfumato.solver import Problem
from sfumato.study.compare import compare
from sfumato.study.solve import solve

SINGAPORE = (1.3521, 103.8198)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files of the same three users; the second reaches further, so its middle lies
    elsewhere."""
    random = np.random.default_rng(3)
    folder = tmp_path_factory.mktemp("singapore")
    for name, count, far in (("train.csv", 60, 0.0), ("test.csv", 40, 0.004)):
        rows = []
        for user in range(3):
            spread = random.normal(0, 0.0008, (count, 2))
            spread[0] += far
            points = np.array(SINGAPORE) + 0.003 * user + spread
            rows += [f"u{user},{lat:.7f},{lon:.7f}" for lat, lon in points]
        (folder / name).write_text("\n".join(["user,lat,lon", *rows]) + "\n")
    return folder / "train.csv", folder / "test.csv"


@pytest.fixture(scope="module")
def apart(files: tuple[Path, Path]) -> tuple[Samples, Samples]:
    """Each file on the plane of its own middle."""
    train, test = (read_checkins(path) for path in files)
    assert train.plane is not None and test.plane is not None and train.plane != test.plane
    return train, test


@pytest.fixture(scope="module")
def right(files: tuple[Path, Path], apart: tuple[Samples, Samples]) -> Samples:
    """The test file read onto the plane of the training data."""
    return read_checkins(files[1], plane=apart[0].plane)


@pytest.fixture(scope="module")
def solution(apart: tuple[Samples, Samples]) -> sf.Solution:
    return solve(Problem(apart[0], max_loss=200), CoinSolver())


def test_a_second_file_is_judged_on_the_plane_of_the_mechanism(
    apart: tuple[Samples, Samples], right: Samples, solution: sf.Solution
) -> None:
    """Taken as they are, the second file's metres lie 190 m off."""
    told = judge(solution.mechanism, right).loss.value
    assert judge(solution.mechanism, apart[1]).loss.value == pytest.approx(told, abs=1e-6)
    coin = solution.mechanism
    unaware = coin.on_plane(None)
    assert abs(judge(unaware, apart[1]).loss.value - told) > 10


def test_comparing_brings_both_files_to_the_plane_of_the_mechanisms(
    apart: tuple[Samples, Samples], right: Samples, solution: sf.Solution
) -> None:
    found = compare([solution], on=apart[1]).rows[0].measured
    expected = compare([solution], on=right).rows[0].measured
    assert found.loss.value == pytest.approx(expected.loss.value, abs=1e-6)
    assert found.bayes_error.value == pytest.approx(expected.bayes_error.value, abs=1e-9)
    other = solve(Problem(apart[1], max_loss=200), CoinSolver())
    with pytest.raises(ProblemError, match="planes with different centres"):
        compare([solution, other], on=right)


def test_the_learning_adversary_learns_on_the_same_plane(
    apart: tuple[Samples, Samples], right: Samples
) -> None:
    coin = Coin(keep=0.5, place=(0.0, 0.0))
    found = judge(coin, apart[1], fitted_on=apart[0])
    expected = judge(coin, right, fitted_on=apart[0])
    assert found.learnt_error is not None and expected.learnt_error is not None
    assert found.learnt_error.value == expected.learnt_error.value


def test_repeated_reports_and_membership_meet_on_one_plane(
    apart: tuple[Samples, Samples], right: Samples, solution: sf.Solution
) -> None:
    few = apart[1].split(10).train
    assert repeated_reports(solution.mechanism, few, (1,), sticky_cell_m=None).first.value == (
        pytest.approx(
            repeated_reports(
                solution.mechanism, right.split(10).train, (1,), sticky_cell_m=None
            ).first.value
        )
    )
    assert membership_test(solution.mechanism, *apart).as_dict() == (
        membership_test(solution.mechanism, apart[0], right).as_dict()
    )


def test_metres_without_a_plane_do_not_meet_degrees(
    apart: tuple[Samples, Samples], solution: sf.Solution
) -> None:
    metres = Samples(apart[0].secret, apart[0].truth, apart[0].secrets)
    for meet in (
        lambda: judge(solution.mechanism, metres),
        lambda: judge(Coin(keep=0.5, place=(0.0, 0.0)), apart[1], fitted_on=metres),
        lambda: compare([solution], on=metres),
        lambda: metres.on_plane(apart[0].plane),
        lambda: apart[0].on_plane(None),
    ):
        with pytest.raises(DataError, match="expected the same of both"):
            meet()


def test_a_mechanism_keeps_its_plane_in_its_file_and_in_its_wraps(
    apart: tuple[Samples, Samples], solution: sf.Solution, tmp_path: Path
) -> None:
    plane = apart[0].plane
    assert solution.mechanism.plane == plane and Coin(0.5, (0.0, 0.0)).plane is None
    snapped = Snapped(solution.mechanism, sf.Grid(cell_m=25))
    assert snapped.plane == plane
    for mechanism in (solution.mechanism, snapped):
        mechanism.save(tmp_path / "mechanism.npz")
        assert load_mechanism(tmp_path / "mechanism.npz").plane == plane
    solution.save(tmp_path / "run")
    assert sf.load_run(tmp_path / "run").mechanism.plane == plane


def test_degrees_are_refused_where_metres_are_meant(files: tuple[Path, Path]) -> None:
    lat, lon = np.loadtxt(files[0], delimiter=",", skiprows=1, usecols=(1, 2)).T
    secret = np.repeat([0, 1, 2], 60)
    for degrees in (np.stack([lat, lon], axis=1), np.stack([lon, lat], axis=1)):
        for plane in (None, Plane(*SINGAPORE)):
            with pytest.raises(DataError, match=r"degrees; expected metres.*read_checkins"):
                Samples(secret, degrees, ("u0", "u1", "u2"), plane=plane)
        with pytest.raises(MechanismError, match=r"degrees; expected metres.*to_metres"):
            PlanarLaplace(epsilon=0.01).sample(degrees)
        with pytest.raises(MechanismError, match="degrees"):
            PlanarLaplace(epsilon=0.01).on_plane(Plane(*SINGAPORE)).sample(degrees[0])


def test_metres_are_not_taken_for_degrees(apart: tuple[Samples, Samples]) -> None:
    """A city about its own middle, its users one by one, cell middles, single points, a plane at
    the origin of degrees."""
    train = apart[0]
    laplace = PlanarLaplace(epsilon=0.01)
    for user in range(3):
        laplace.sample(train.truth[train.secret == user])
        train.take(train.secret == user)
    laplace.sample([48.8584, 2.3482])
    laplace.on_plane(Plane(0.0, 0.0)).sample([0.5, 0.3])
    laplace.on_plane(train.plane).sample(train.truth[:1])
    Samples([0, 1], [[12.5, 37.5], [12.5, 36.5]], ("a", "b"))
    Samples([0, 1], [[0.13, 0.2], [-0.4, 0.31]], ("a", "b"))


def test_a_plane_is_for_files_in_degrees_and_replaces_a_square(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    plane = Plane(*SINGAPORE)
    with pytest.raises(DataError, match="does not go with plane"):
        read_checkins(files[0], plane=plane, square=(*SINGAPORE, 1000.0))
    (tmp_path / "metres.csv").write_text("user,x,y\na,100,200\nb,300,400\n")
    with pytest.raises(DataError, match="plane needs degrees"):
        read_checkins(tmp_path / "metres.csv", plane=plane)
    assert read_checkins("four-corners", plane=Plane(48.86, 2.35)).plane == Plane(48.86, 2.35)


def _spread(centre: tuple[float, float], sides: tuple[float, float], count: int) -> np.ndarray:
    random = np.random.default_rng(4)
    return np.round(np.array(centre) + random.uniform(-0.5, 0.5, (count, 2)) * sides, 6)


@pytest.mark.parametrize(
    ("centre", "sides"),
    [((48.0, 10.0), (20.0, 30.0)), ((38.0, -96.0), (24.0, 57.0)), ((62.0, 16.0), (13.0, 12.0))],
    ids=["Europe", "United States", "Sweden"],
)
def test_degrees_of_a_country_are_refused_where_metres_are_meant(
    centre: tuple[float, float], sides: tuple[float, float]
) -> None:
    degrees = _spread(centre, sides, 50)
    for points in (degrees, degrees[:, ::-1]):
        with pytest.raises(DataError, match="degrees; expected metres"):
            Samples(np.arange(50) % 2, points, ("a", "b"))
        with pytest.raises(MechanismError, match="degrees; expected metres"):
            PlanarLaplace(epsilon=0.01).sample(points)


def test_metres_of_a_building_or_about_the_origin_are_metres() -> None:
    """To the millimetre, or about a corner or a middle as a survey has them, or on a plane."""
    secret = np.arange(200) % 2
    for points, plane in (
        (np.round(_spread((60.0, 30.0), (40.0, 20.0), 200), 3), None),
        (_spread((20.0, 15.0), (40.0, 30.0), 200), None),
        (_spread((0.0, 0.0), (50.0, 50.0), 200), None),
        (_spread((100.0, 60.0), (150.0, 50.0), 200), None),
        (_spread((60.0, 30.0), (40.0, 20.0), 200), Plane(48.86, 2.35)),
    ):
        assert len(Samples(secret, points, ("a", "b"), plane=plane)) == 200
        PlanarLaplace(epsilon=0.01).on_plane(plane).sample(points)
