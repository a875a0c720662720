"""What every mechanism of the registry promises: shapes and chance."""

import os

import numpy as np
import pytest

from sfumato.deploy.graphs import BUILDERS
from sfumato.errors import MechanismError
from sfumato.mechanism import base
from sfumato.mechanism.base import Mechanism, kinds
from sfumato.mechanism.wrap import Snapped
from tests.mechanism.registry import FIXED, GRID, MECHANISMS, NOT_EXPORTED, SAMPLES, TRUTHS, law_of

MANY = np.tile(TRUTHS, (50, 1))


def test_one_point_gives_one_report_and_many_give_many(mechanism: Mechanism) -> None:
    assert mechanism.sample(TRUTHS[0]).shape == mechanism.sample([0.0, 0.0], seed=1).shape == (2,)
    assert (
        mechanism.sample(TRUTHS).shape == mechanism.sample(TRUTHS.tolist(), seed=1).shape == (4, 2)
    )
    assert mechanism.sample(TRUTHS[:1]).shape == (1, 2)
    assert np.isfinite(mechanism.sample(MANY)).all()


def test_no_points_give_no_reports(mechanism: Mechanism) -> None:
    assert (
        mechanism.sample(np.empty((0, 2))).shape
        == mechanism.sample(np.empty((0, 2)), seed=1).shape
        == (0, 2)
    )


def test_the_same_seed_gives_the_same_reports_and_another_seed_others(
    name: str, mechanism: Mechanism
) -> None:
    assert np.array_equal(mechanism.sample(MANY, seed=7), mechanism.sample(MANY, seed=7))
    assert np.array_equal(mechanism.sample(MANY, seed=7), mechanism.sample(MANY, seed=8)) == (
        name in FIXED
    )


def test_one_point_and_a_list_of_one_give_the_same_report(mechanism: Mechanism) -> None:
    assert np.array_equal(
        mechanism.sample(TRUTHS[1], seed=3), mechanism.sample(TRUTHS[1:2], seed=3)[0]
    )


def test_without_a_seed_no_two_calls_are_alike(name: str, mechanism: Mechanism) -> None:
    """Two calls on 200 points agree by chance with less than 0.86^100: the likeliest repeat is
    0.7^2 + 0.3^2 per random point."""
    assert np.array_equal(mechanism.sample(MANY), mechanism.sample(MANY)) == (name in FIXED)


def test_without_a_seed_chance_is_the_operating_systems_and_with_one_it_is_not(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(size: int) -> bytes:
        asked.append(size)
        return secure(size)

    secure = os.urandom
    monkeypatch.setattr(os, "urandom", counted)
    mechanism.sample(TRUTHS)
    assert sum(asked) == 8 * mechanism.draws * len(TRUTHS)
    asked.clear()
    mechanism.sample(TRUTHS, seed=7)
    assert not asked


def test_reports_are_a_function_of_the_truth_and_the_chance_alone(mechanism: Mechanism) -> None:
    chance = np.random.default_rng(0).random((len(MANY), mechanism.draws))
    assert np.array_equal(mechanism.report(MANY, chance), mechanism.report(MANY, chance))


def test_a_truth_is_not_written_to(mechanism: Mechanism) -> None:
    truth = TRUTHS.copy()
    reports = mechanism.sample(truth, seed=1)
    reports += 1
    assert np.array_equal(truth, TRUTHS)
    assert np.array_equal(mechanism.sample(truth, seed=1), reports - 1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_truth_that_is_not_finite_is_refused(mechanism: Mechanism, bad: float) -> None:
    for truth in ([bad, 0.0], [[0.0, 0.0], [0.0, bad]]):
        with pytest.raises(
            MechanismError, match="two finite numbers of metres; got NaN or infinity"
        ):
            mechanism.sample(truth)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 2), ()])
def test_a_truth_of_another_shape_is_refused(mechanism: Mechanism, shape: tuple[int, ...]) -> None:
    with pytest.raises(
        MechanismError, match="a truth is two coordinates in metres, or n rows of two"
    ):
        mechanism.sample(np.zeros(shape))


def test_rows_one_at_a_time_are_the_rows_of_the_law(mechanism: Mechanism) -> None:
    """P(secret, report) built row by row is that of the law, on own reports or on cells."""
    before = SAMPLES.joint()
    assert before.places is not None
    law = law_of(mechanism, before)
    grid = None if mechanism.law(before) is not None else GRID
    rows = mechanism.rows_on(before.places, grid)
    assert (rows is None) == (law is None)
    if rows is not None and law is not None:
        seen = rows.joint(before)
        order, other = (np.lexsort(np.round(joint.places, 6).T) for joint in (seen, law.joint))
        assert np.allclose(seen.table[:, order], law.joint.table[:, other], atol=1e-9)


def test_every_kind_is_in_the_registry_and_exported_or_known_not_to_be() -> None:
    """One line in the tests' registry for each kind of the package, one in the export's."""
    ours = {name: kind for name, kind in kinds().items() if kind.__module__.startswith("sfumato.")}
    assert {make().kind for make in MECHANISMS.values()} == set(ours)
    assert {kind.kind for kind in BUILDERS} == set(ours) - NOT_EXPORTED


def test_a_file_is_taken_to_list_truths_unless_its_kind_says_no() -> None:
    class Mine(Mechanism):
        kind = "a kind that says nothing"

        def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
            return truth

        def arrays(self) -> dict[str, np.ndarray]:
            return {"anything": TRUTHS, "inner": np.zeros(3)}

    del base._KINDS[Mine.kind]
    assert Mine().lists_truths and len(Mine().places_in_file()) == len(TRUTHS)
    assert Snapped(Mine(), GRID).lists_truths and len(Snapped(Mine(), GRID).places_in_file()) == 4
    lists = {make().kind for make in MECHANISMS.values() if make().lists_truths}
    assert lists == {"channel", "clamped", "remapped", "snapped", "recorded", "function"}
    assert not MECHANISMS["snapped laplace"]().lists_truths
    assert not MECHANISMS["snapped codebook net"]().lists_truths


def test_a_report_that_is_no_number_never_leaves() -> None:
    class Broken(Mechanism):
        bad = np.nan

        def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
            return truth + np.array([0.0, self.bad])

    for bad in (np.nan, np.inf, -np.inf):
        Broken.bad = bad
        with pytest.raises(MechanismError, match="not a finite number of metres"):
            Broken().sample(TRUTHS)
