"""A codebook for linked reports: what is lowered is what is measured, and ten reports tell less than
of a codebook for one."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfumato as sf
from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.linked import least_overlap
from sfumato.measure.linked import linked_leakage as measured
from sfumato.measure.repeated import linked_bayes_error
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.simple import constant
from sfumato.solver.codebook.folds import FOLDS, CrossFitted, FoldsTraining, OnFolds
from sfumato.solver.codebook.learn import linked_leakage

FEW = sf.four_corners(0).train.split(15).train
QUICK = sf.Codebook(made_for="these", places=24, steps=300, distillation=0)
TO_COME = sf.Codebook(places=16, steps=200, hidden=(16,), waves=8)
TEN = sf.Problem(FEW, max_loss=120, cell_m=100, reports=10)
ONE = sf.Problem(FEW, max_loss=120, cell_m=100)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lowered_is_what_is_measured(seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.ones(20)).reshape(4, 5)
    joint, given = Joint(table), jnp.asarray(table, jnp.float32)
    lowered = float(linked_leakage(given, 10, jnp.float32(8.0)))
    assert 1 - np.exp(-10 * lowered) == pytest.approx(measured(joint, 10), abs=1e-4)
    largest = float(linked_leakage(given, 0, jnp.float32(1e4)))
    assert largest == pytest.approx(1 - least_overlap(joint), abs=1e-3)


@pytest.mark.parametrize("count", [0, 10])
@pytest.mark.parametrize("present", [1, 2])
def test_users_without_check_ins_in_a_draw_leave_the_slope_finite(count, present):
    table = jnp.zeros((3, 4)).at[:present].set(0.25 / present)
    slope = jax.grad(linked_leakage)(table, count, jnp.float32(8.0))
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_ten_reports_of_a_codebook_for_ten_tell_less_than_of_one_for_one() -> None:
    ten, endless, one = (
        sf.solve(
            sf.Problem(FEW, max_loss=173, cell_m=100, reports=count), QUICK, seed=1, proof="none"
        )
        for count in (10, "endless", 1)
    )
    errors = [linked_bayes_error(made.measured.joint, (10,))[0].value for made in (ten, one)]
    assert errors[0] > 2 * errors[1] and ten.loss <= 173 and endless.loss <= 173
    overlaps = [least_overlap(made.measured.joint) for made in (endless, one)]
    assert overlaps[0] > overlaps[1] + 0.1
    assert ten.ending.linked.bayes_error.value == errors[0] and "For 10 reports" in ten.status
    assert one.ending.linked is None


def test_what_other_solvers_cannot_do_is_refused() -> None:
    endless = sf.Problem(FEW, cell_m=100, reports="endless")
    with pytest.raises(ProblemError, match="use the exact solver"):
        sf.solve(endless, QUICK)
    with pytest.raises(ProblemError, match="played for one report"):
        sf.solve(sf.Problem(FEW, max_loss=173, reports=10), sf.Game())


# For check-ins to come: the kind of net that hides lists better on the folds ----------------------


def _same(first: object, second: object) -> bool:
    assert isinstance(first, CodebookNet) and isinstance(second, CodebookNet)
    arrays = zip(first.arrays().values(), second.arrays().values(), strict=True)
    return all(np.array_equal(one, other) for one, other in arrays)


@pytest.fixture
def ranked(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Folds that say which kind hides better, and no baseline that hides more."""
    asked = {"one": True}

    def error(fitted: CrossFitted) -> float:
        single = fitted.folds[0].training.problem.several is None
        return 0.5 if single == asked["one"] else 0.2

    monkeypatch.setattr(CrossFitted, "linked_error", error)
    monkeypatch.setattr(CrossFitted, "baselines", lambda *_, **__: [])
    return asked


def test_where_one_hides_ten_better_it_is_the_mechanism_for_one(ranked: dict[str, bool]) -> None:
    found = sf.solve(TEN, TO_COME, seed=0, proof="none")
    one = sf.solve(ONE, TO_COME, seed=0, proof="none")
    assert _same(found.mechanism, one.mechanism)
    assert "a net learned for one report hides 10 reports better" in found.status
    assert "For 10 reports" in found.status and found.problem.reports == 10
    assert found.outlook is not None and one.outlook is not None
    assert found.outlook.loss == one.outlook.loss
    ranked["one"] = False
    ten = sf.solve(TEN, TO_COME, seed=0, proof="none")
    assert not _same(ten.mechanism, one.mechanism) and "for one report" not in ten.status


def test_stopped_between_the_two_kinds_of_folds_it_resumes_to_the_same(
    ranked: dict[str, bool], tmp_path: Path
) -> None:
    class Enough(Exception):
        pass

    def stop(line: dict) -> None:
        if line.get("round") == 3 and "for_one_report" in line:
            raise Enough

    checkpoint = tmp_path / "checkpoint.npz"
    with pytest.raises(Enough):
        sf.solve(TEN, TO_COME, seed=0, proof="none", progress=stop, checkpoint=checkpoint)
    again = sf.solve(TEN, TO_COME, seed=0, proof="none", checkpoint=checkpoint)
    whole = sf.solve(TEN, TO_COME, seed=0, proof="none")
    assert _same(again.mechanism, whole.mechanism)


def test_the_error_on_folds_is_that_of_their_own_check_ins() -> None:
    """Of a constant, a blind guess; of the folds' laws, what the measure says of each."""
    training = FoldsTraining(TO_COME, TEN, 0, capacity=TO_COME.capacity(TEN))
    made = OnFolds((constant((0.0, 0.0)),) * FOLDS)
    fitted = CrossFitted(TEN, tuple(training.folds), np.ones(1), made)
    blind = [1 - fold.held_out.joint().prior.max() for fold in training.folds]
    assert fitted.linked_error() == pytest.approx(fitted.weights @ blind)
