"""A codebook for linked reports: what is lowered is what is measured, and ten reports tell less than
of a codebook for one."""

import jax.numpy as jnp
import numpy as np
import pytest

import sfumato as sf
from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.linked import least_overlap
from sfumato.measure.linked import linked_leakage as measured
from sfumato.measure.repeated import linked_bayes_error
from sfumato.solver.codebook.learn import linked_leakage

FEW = sf.four_corners(0).train.split(15).train
QUICK = sf.Codebook(made_for="these", places=24, steps=300, distillation=0)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lowered_is_what_is_measured(seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.ones(20)).reshape(4, 5)
    joint, given = Joint(table), jnp.asarray(table, jnp.float32)
    lowered = float(linked_leakage(given, 10, jnp.float32(8.0)))
    assert 1 - np.exp(-10 * lowered) == pytest.approx(measured(joint, 10), abs=1e-4)
    largest = float(linked_leakage(given, 0, jnp.float32(1e4)))
    assert largest == pytest.approx(1 - least_overlap(joint), abs=1e-3)


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
