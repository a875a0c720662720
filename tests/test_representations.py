"""What a shell or a notebook shows of an object: short, and no coordinate of the data."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.adversary.counting import Cells, Neighbours
from sfumato.adversary.neural import Neural
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples, Split
from sfumato.measure.judge import judge
from sfumato.measure.membership import membership_test
from sfumato.measure.prior import under_priors
from sfumato.measure.repeated import repeated_reports
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.custom import Recorded
from sfumato.mechanism.generator import GeneratorNet
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.rows import on_demand
from sfumato.mechanism.simple import Coin, Identity
from sfumato.mechanism.wrap import Clamped, Remapped, Snapped
from sfumato.study.measure import Measured
from sfumato.study.trade_off import Placed, TradeOff

TOLD = np.array(
    [[123.45671, -217.98131], [311.77219, 98.76543], [-401.13577, 276.42913], [57.31911, -33.89177]]
)
DEGREES = (48.87654321, 2.34567891)
SAMPLES = Samples(
    secret=[0, 1, 0, 1, 1],
    truth=TOLD[[0, 1, 2, 3, 0]],
    secrets=("ann", "bob"),
    plane=Plane(*DEGREES),
    region=Region(centre=(float(TOLD[0, 0]), float(TOLD[0, 1])), side_m=2000.0),
)
FORBIDDEN = [f"{abs(number):.3f}" for number in (*TOLD.ravel(), *DEGREES)]
LONGEST = 1400  # characters


def _objects(folder: Path) -> Iterator[object]:
    """Everything that is made from data and that a user can hold."""
    joint, place = SAMPLES.joint(), (float(TOLD[0, 0]), float(TOLD[0, 1]))
    region = SAMPLES.region
    assert region is not None
    grid = Grid.over(region, cells=80)
    random = np.random.default_rng(0)
    channel = Channel(truths=TOLD, reports=TOLD, matrix=np.full((4, 4), 0.25))
    net = GeneratorNet(
        ((random.normal(size=(3, 4)), np.zeros(4)), (random.normal(size=(4, 2)), np.zeros(2))),
        centre_m=place,
        unit_m=100.0,
    )
    codebook = CodebookNet(
        TOLD,
        ((random.normal(size=(6, 4)), np.zeros(4)),),
        random.normal(size=(2, 2)),
        grid,
        centre_m=place,
    )
    yield from (SAMPLES, Split(SAMPLES, SAMPLES), joint, region, grid, SAMPLES.plane)
    yield from (Grid(cell_m=25.0, corner=place), SAMPLES.on(grid), Split(SAMPLES))
    yield from (channel, net, codebook, Identity(), Coin(0.5, place), PlanarLaplace(0.01))
    yield from (Snapped(channel, grid), Clamped(net, region), Remapped.bayesian(channel, joint))
    yield Recorded(TOLD, TOLD[::-1])
    rows = channel.rows(TOLD)
    yield from (rows, on_demand(rows), channel.law(joint))
    judged = judge(channel, SAMPLES, fitted_on=SAMPLES)
    yield from (judged, judged.loss, judged.per_user[0], under_priors(judged))
    yield repeated_reports(channel, SAMPLES, (1, 2), grid=grid, sticky_cell_m=None)
    yield membership_test(channel, SAMPLES, SAMPLES)
    reports = np.repeat(TOLD, 10, axis=0)
    for adversary in (Cells(grid), Neighbours(3), Neural(epochs=1, hidden=(4,))):
        yield from (adversary, adversary.fit(np.tile([0, 1], 20), reports, secrets=2))
    problem = sf.Problem(SAMPLES, max_loss=150, cell_m=50)
    yield problem
    for solver in (sf.Coin(), sf.Exact()):
        solution = sf.solve(problem, solver)
        yield from (solution, solution.mechanism, solution.measured, solver)
        solution.save(folder / solver.name, recipe=Recipe("four-corners"))
        yield sf.load_run(folder / solver.name)
    certificate = solution.certificate
    assert certificate is not None and certificate.on_plane is not None
    yield certificate.on_plane.cells
    yield from (certificate, certificate.on_grid, certificate.on_plane)
    found = sf.frontier(problem, np.array([150.0, 200.0]), gap=0.2)
    yield from (found, found.bayes, Measured(name="run", judged={"test data": judged}))
    yield sf.compare([sf.Contender("run", channel)], on=SAMPLES)
    yield TradeOff(found, (Placed("run", 160.0, 0.2, 0.3),))


def test_no_representation_shows_a_coordinate_of_the_data(tmp_path: Path) -> None:
    seen = 0
    for thing in _objects(tmp_path):
        for text in (repr(thing), str(thing)):
            told = [digits for digits in FORBIDDEN if digits[:-1] in text]
            assert not told, f"{type(thing).__name__}: {text[:300]}"
            assert len(text) <= LONGEST, f"{type(thing).__name__}: {len(text)} characters"
        seen += 1
    assert seen > 35


@pytest.mark.parametrize(
    "thing", [Grid(cell_m=25.0), Grid(side_m=500, cells=20, centre=(3.0, 4.0)), SAMPLES.region]
)
def test_grids_and_regions_can_be_copied_and_sent_to_another_process(thing: object) -> None:
    assert copy.deepcopy(thing) == copy.copy(thing) == pickle.loads(pickle.dumps(thing)) == thing
    assert hash(copy.deepcopy(thing)) == hash(thing)


def test_data_and_mechanisms_can_be_copied_and_sent_to_another_process() -> None:
    snapped = Snapped(Coin(0.5, (1.0, 2.0)).on_plane(SAMPLES.plane), Grid(cell_m=25.0))
    for thing in (copy.deepcopy(snapped), pickle.loads(pickle.dumps(snapped))):
        assert thing.plane == SAMPLES.plane
        assert np.array_equal(thing.sample(TOLD, seed=1), snapped.sample(TOLD, seed=1))
    assert pickle.loads(pickle.dumps(SAMPLES)).hash == SAMPLES.hash


def test_an_endless_grid_is_placed_by_a_corner_and_a_grid_over_a_region_by_its_middle() -> None:
    assert Grid(cell_m=10.0, corner=(3.0, 4.0)).origin == (3.0, 4.0)
    with pytest.raises(sf.SfumatoError, match="corner"):
        Grid(cell_m=10.0, centre=(3.0, 4.0))
    with pytest.raises(sf.SfumatoError, match="centre"):
        Grid(side_m=100, cells=4, corner=(3.0, 4.0))
