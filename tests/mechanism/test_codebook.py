"""The codebook net: its law is what it samples, at any truth, under caps, and after a file."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sfumato.data.distinct import distinct
from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import MechanismError
from sfumato.mechanism.base import load_mechanism
from sfumato.mechanism.codebook import CodebookNet, _columns
from sfumato.mechanism.known_laws import KnownLaws

GRID = Grid(side_m=1000, cells=40)
_OF_A_LAW = 40 + 128  # numbers that are kept of a law of 40 places, at most


def net(count: int = 12, pace: int = 4, **changes: object) -> CodebookNet:
    random = np.random.default_rng(5)
    sizes = (2 + 2 * pace, 16, count)
    layers = tuple(
        (random.normal(size=(fan, out)), random.normal(size=out))
        for fan, out in itertools.pairwise(sizes)
    )
    arguments = {
        "places": GRID.snap(random.uniform(-400, 400, size=(count, 2))),
        "layers": layers,
        "waves": random.normal(size=(2, pace)),
        "grid": GRID,
        "unit_m": 200.0,
        "slope": 0.004,
    }
    return CodebookNet(**{**arguments, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 5, 16, 40])
@pytest.mark.parametrize("cap", [None, 150.0])
def test_a_law_that_is_looked_up_is_the_law(count: int, cap: float | None) -> None:
    """Numbers evenly over [0, 1): every report is drawn as often as its chance says, to one."""
    mechanism, each = net(count, max_distance=cap, keep=0.1), 2_000
    truths = np.random.default_rng(0).uniform(-300, 300, (9, 2))
    numbers = (np.arange(each) + 0.5) / each
    reports = mechanism.report(np.repeat(truths, each, axis=0), np.tile(numbers, 9)[:, None])
    alone = mechanism._drawn(truths, np.full(9, 0.3))
    assert np.array_equal(
        mechanism._looked_up(truths, np.arange(9), np.full(9, 0.3))[0][~alone[1]],
        alone[0][~alone[1]],
    )
    for truth, drawn in zip(truths, reports.reshape(9, each, 2), strict=True):
        rows = mechanism.rows(truth[None]).distinct()
        for place, chance in zip(rows.places, rows.matrix.toarray()[0], strict=True):
            assert abs((drawn == place).all(axis=1).sum() - each * chance) <= 2


def test_laws_that_do_not_fit_into_one_table_are_looked_up_in_turn(monkeypatch) -> None:
    mechanism, random = net(40), np.random.default_rng(1)
    truths = random.uniform(-300, 300, (50, 2))[random.integers(0, 50, 3_000)]
    chance = random.random((3_000, 1))
    whole = mechanism.report(truths, chance)
    for laws in (10**4, 60, 7):  # all laws are known; then some are; then few fit
        monkeypatch.setattr("sfumato.mechanism.codebook._MOST_AT_ONCE", _OF_A_LAW * laws)
        monkeypatch.setattr("sfumato.mechanism.codebook._MOST_KEPT", _OF_A_LAW * laws)
        assert np.array_equal(mechanism.report(truths, chance), whole)
        other = mechanism.report(truths[::-1] + 1.0, chance[::-1])
        assert np.array_equal(other[::-1], net(40).report(truths + 1.0, chance))
    monkeypatch.setattr("sfumato.mechanism.codebook.distinct", lambda points: None)
    assert np.array_equal(mechanism.report(truths, chance), whole)


def test_nets_that_answer_together_share_the_room_for_laws(monkeypatch) -> None:
    monkeypatch.setattr("sfumato.mechanism.codebook._MOST_KEPT", _OF_A_LAW * 100)
    mechanism, random = net(40), np.random.default_rng(2)
    mechanism.share_room(4)
    for _ in range(6):
        block = random.uniform(-300, 300, (20, 2))[random.integers(0, 20, 900)]
        reports = mechanism.report(block, chance := random.random((900, 1)))
        assert np.array_equal(reports, net(40).report(block, chance))
        assert mechanism.__dict__["_kept"].size <= _OF_A_LAW * 25


def test_no_law_is_worked_out_twice_in_a_block(monkeypatch) -> None:
    """Where the laws of a block fit into the room, and those of two blocks do not."""
    monkeypatch.setattr("sfumato.mechanism.codebook._MOST_KEPT", _OF_A_LAW * 70)
    mechanism, random, asked = net(40), np.random.default_rng(3), []
    plain = CodebookNet._weights

    def weights(self: CodebookNet, truth: np.ndarray, work: object) -> np.ndarray:
        asked.append(truth)
        return plain(self, truth, work)

    often = random.uniform(-300, 300, (30, 2))
    numbers = (np.arange(900) + 0.5) / 900
    for _ in range(6):
        places = np.vstack([often, random.uniform(-300, 300, (30, 2))])
        block = places[random.permutation(np.arange(900) % 60)]
        expected = net(40).report(block, numbers[:, None])
        monkeypatch.setattr(CodebookNet, "_weights", weights)
        assert np.array_equal(mechanism.report(block, numbers[:, None]), expected)
        monkeypatch.setattr(CodebookNet, "_weights", plain)
        laws = np.vstack([part for part in asked if len(part) >= 30])
        assert len(np.unique(laws, axis=0)) == len(laws)
        asked.clear()


def test_laws_of_few_places_are_not_all_guides_at_once(monkeypatch) -> None:
    """A law of two places has a guide of 128 numbers: two million of them took gigabytes."""
    monkeypatch.setattr("sfumato.mechanism.codebook._MOST_AT_ONCE", 13_000)
    sizes, plain = [], KnownLaws.look_up

    def look_up(self: KnownLaws, *rows: np.ndarray) -> np.ndarray:
        sizes.append(len(self.truths))
        return plain(self, *rows)

    monkeypatch.setattr(KnownLaws, "look_up", look_up)
    random = np.random.default_rng(4)
    net(2).report(random.uniform(-300, 300, (350, 2)).repeat(3, axis=0), random.random((1050, 1)))
    assert sizes[0] == 100 and len(sizes) == 4


def test_samples_follow_the_law() -> None:
    mechanism = net(keep=0.2)
    truth = np.array([[30.0, -70.0]])
    rows = mechanism.rows(truth).distinct()
    reports = mechanism.sample(np.repeat(truth, 40_000, axis=0), seed=3)
    places, counts = np.unique(reports, axis=0, return_counts=True)
    expected = {
        tuple(place): chance
        for place, chance in zip(rows.places, rows.matrix.toarray()[0], strict=True)
    }
    assert sum(expected.values()) == pytest.approx(1)
    for place, count in zip(places, counts, strict=True):
        chance = expected[tuple(place)]
        assert abs(count / 40_000 - chance) < 5 * np.sqrt(chance / 40_000)


_LINED = np.array([[x, y] for x in (-100.0, 50.0, 300.0) for y in (-25.0, 0.0, 200.0, 375.0)])


@pytest.mark.parametrize("places", [None, _LINED, _LINED[[0, 3, 3, 7, 0, 11, 5, 2, 2, 2, 9, 4]]])
def test_the_law_is_the_softmax_of_net_and_distance(places: np.ndarray | None) -> None:
    """Worked out again in float64 from the formula in the docstring: for places here and there, on
    few lines, and some of them twice."""
    mechanism = net() if places is None else net(places=places)
    truth = np.array([[12.0, 250.0], [-333.0, 4.0]])
    scaled = truth / 200.0
    angle = scaled @ mechanism.waves.astype(float)
    values = np.hstack([scaled, np.sin(angle), np.cos(angle)])
    (first, first_bias), (last, last_bias) = mechanism.layers
    values = np.maximum(values @ first + first_bias, 0) @ last + last_bias
    values -= 0.004 * np.linalg.norm(truth[:, None] - mechanism.places[None], axis=2)
    chances = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mechanism.chances(truth), chances, rtol=2e-5)
    capped = replace(mechanism, max_distance=260.0).chances(truth)
    far = np.linalg.norm(truth[:, None] - mechanism.places[None], axis=2) > 260
    assert np.array_equal(capped == 0, far) and not far.all()


def test_no_report_beyond_the_cap_and_the_own_cell_where_no_place_is_near() -> None:
    mechanism = net(max_distance=150.0)
    truth = np.random.default_rng(1).uniform(-500, 500, size=(4000, 2))
    reports = mechanism.sample(truth, seed=0)
    assert np.linalg.norm(reports - truth, axis=1).max() <= 150
    alone = np.array([[499.0, -499.0]])
    assert mechanism.chances(alone).sum() == 0
    np.testing.assert_array_equal(mechanism.sample(alone, seed=0), GRID.snap(alone))
    joint = Joint(
        np.array([[0.5, 0.0], [0.0, 0.5]]),
        places=np.vstack([alone, [[0.0, 0.0]]]),
        secrets=("a", "b"),
    )
    law = mechanism.law(joint)
    assert law is not None
    assert law.joint.table.sum() == pytest.approx(1)


def test_the_cap_holds_far_from_the_centre() -> None:
    places = np.random.default_rng(5).uniform(-1e5, 1e5, size=(12, 2))
    capped = net(places=places, max_distance=50.0)
    way = np.random.default_rng(6).uniform(0, 2 * np.pi, size=(12, 2000))
    off = 50.0 * np.random.default_rng(7).uniform(1 - 1e-6, 1 + 1e-3, size=way.shape)
    truth = places[:, None] + off[..., None] * np.stack([np.cos(way), np.sin(way)], axis=-1)
    truth = truth.reshape(-1, 2)
    reports = capped.sample(truth, seed=0)
    assert np.linalg.norm(reports - truth, axis=1).max() <= 50


def test_far_from_every_place_the_middle_of_a_square_is_reported() -> None:
    squares = Grid(cell_m=7 * GRID.cell_m, corner=GRID.origin)
    mechanism = net(far=squares, keep=0.25)
    near, far = np.array([[10.0, 20.0]]), np.array([[5030.0, -7011.0]])
    np.testing.assert_array_equal(mechanism.chances(near), net().chances(near))
    rows = mechanism.rows(np.vstack([far, near])).distinct()
    chances = {
        tuple(place): chance
        for place, chance in zip(rows.places, rows.matrix.toarray()[0], strict=True)
        if chance
    }
    middle, own = GRID.snap(squares.snap(far))[0], GRID.snap(far)[0]
    assert chances == {tuple(middle): 0.75, tuple(own): 0.25}
    np.testing.assert_allclose(middle, squares.snap(far)[0], atol=1e-9)
    reports = mechanism.sample(np.repeat(far, 4000, axis=0), seed=1)
    assert {tuple(place) for place in reports} == set(chances)
    assert abs((reports == middle).all(axis=1).mean() - 0.75) < 0.04


def test_a_file_gives_the_same_mechanism(tmp_path: object) -> None:
    mechanism = net(keep=0.1, max_distance=300.0)
    mechanism.save(tmp_path / "m.npz")  # type: ignore[operator]
    again = load_mechanism(tmp_path / "m.npz")  # type: ignore[operator]
    truth = np.random.default_rng(2).uniform(-400, 400, size=(100, 2))
    np.testing.assert_array_equal(mechanism.sample(truth, seed=9), again.sample(truth, seed=9))


def test_reports_do_not_depend_on_how_many_are_drawn_at_once() -> None:
    mechanism = net()
    truth = np.random.default_rng(3).uniform(-400, 400, size=(3000, 2))
    chance = np.random.default_rng(4).random((3000, 1))
    whole = mechanism.report(truth, chance)
    parts = np.vstack(
        [mechanism.report(truth[i : i + 7], chance[i : i + 7]) for i in range(0, 3000, 7)]
    )
    assert (whole != parts).any(
        axis=1
    ).mean() < 1e-3  # a number at the very edge between two places may round either way


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"places": np.zeros((0, 2))}, "places"),
        ({"places": np.zeros((3, 2))}, "one output for each of its 3 places"),
        ({"unit_m": 0.0}, "unit above 0"),
        ({"keep": 1.5}, "keep"),
        ({"max_distance": -1.0}, "above 0"),
        ({"max_distance": 9.0, "far": GRID}, "not both"),
        ({"waves": np.full((2, 4), np.nan)}, "finite"),
    ],
)
def test_what_makes_no_codebook_is_refused(changes: dict, says: str) -> None:
    with pytest.raises(MechanismError, match=says):
        net(**changes)


@pytest.mark.parametrize("repeated", [1, 400])
@pytest.mark.parametrize("weight", [3e38, -3e38])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_a_net_overflows_it_has_no_law_and_draws_nothing(
    weight: float, repeated: int
) -> None:
    truths = np.array([[30.0, 0.0]] * repeated)
    layers = ((np.full((2, 2), weight), np.zeros(2)), (np.ones((2, 3)), np.zeros(3)))
    net = CodebookNet(np.arange(6.0).reshape(3, 2), layers, np.zeros((2, 0)), Grid(cell_m=25))
    if weight < 0:  # ReLU makes these 0: a law
        assert net.rows(truths).matrix.sum() == pytest.approx(repeated)
        return
    for ask in (net.rows, net.sample):
        with pytest.raises(MechanismError, match="no law"):
            ask(truths)


def test_a_column_is_drawn_by_its_weight_and_never_one_of_weight_zero() -> None:
    """Against the plain sum of all columns, for widths that do not fill a block too; and at both
    ends of the numbers that are drawn."""
    random = np.random.default_rng(0)
    for columns in (2, 16, 17, 40, 256):
        weights = random.exponential(size=(4000, columns)).astype(np.float32) * (
            random.random((4000, columns)) < 0.2
        )
        weights[np.arange(4000), random.integers(columns, size=4000)] += np.float32(1e-6)
        for drawn in (random.random(4000), np.zeros(4000), np.full(4000, 1 - 2.0**-52)):
            column, alone = _columns(np.ascontiguousarray(weights.T), drawn)
            assert (weights[np.arange(4000), column] > 0).all()
            assert not alone.any()
            height = np.cumsum(weights, axis=1, dtype=float)
            plain = (height <= (drawn * height[:, -1])[:, None]).sum(axis=1)
            assert np.array_equal(column, plain)
    assert _columns(np.zeros((40, 3), np.float32), np.full(3, 0.5))[1].all()


@pytest.mark.parametrize("off", [-(2.0**-30), 0.0, 2.0**-30])
def test_a_number_beside_a_bound_is_decided_by_exact_sums(off: float) -> None:
    """Nearer to the bound between two places than float32 can tell."""
    random = np.random.default_rng(1)
    weights = random.exponential(size=(2000, 128)).astype(np.float32)
    height = np.cumsum(weights, axis=1, dtype=float)
    bound = height[np.arange(2000), random.integers(127, size=2000)]
    drawn = np.clip(bound / height[:, -1] + off, 0, 1 - 2.0**-52)
    plain = (height <= (drawn * height[:, -1])[:, None]).sum(axis=1)
    assert np.array_equal(_columns(np.ascontiguousarray(weights.T), drawn)[0], plain)


@pytest.mark.parametrize("changes", [{"keep": 0.4}, {"max_distance": 30.0}, {}])
def test_reports_that_are_none_of_its_places_are_not_noted_as_such(changes) -> None:
    """Kept truths, and reports where a cap leaves no place: whoever fixes the array gets these, not
    the places that were drawn before."""
    random = np.random.default_rng(0)
    truths = np.repeat(random.uniform(-300, 300, (20, 2)), 100, axis=0)
    reports = net(**changes).report(truths, random.random((2_000, 1)))
    reports.flags.writeable = False
    found = distinct(reports)
    assert found is not None and np.array_equal(found[0][found[1]], reports)
