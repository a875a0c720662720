"""One definition of the gap, and no proof claimed where there is none."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.measure.certificate import Certificate, Proof
from sfumato.render.text import NOTHING_PROVED, proved_text
from sfumato.study.certify import certify_run, gaps_of
from tests.solver.three_users import on_square

CSV = "user,x,y\n" + "".join(f"{'ab'[n % 2]},{37 * n % 101},{53 * n % 89}\n" for n in range(24))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A coin, which reports off the grid, and the best mechanism on it, with its certificate."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "data.csv").write_text(CSV)
    recipe = Recipe(str(folder / "data.csv"))
    problem = sf.Problem(recipe.load().train, max_loss=20, cell_m=10)
    exact = sf.solve(problem, sf.Exact(gap=0.01))
    exact.save(folder / "exact", recipe=recipe)
    coin = replace(sf.solve(problem, sf.Coin()), certificate=exact.certificate)
    coin.save(folder / "coin", recipe=recipe)
    return folder


def test_certify_and_compare_give_one_gap(runs):
    loaded = [sf.load_run(runs / name) for name in ("coin", "exact")]
    compared = sf.compare(
        loaded, on=loaded[0].recipe.load().train, train=loaded[0].recipe.load().train
    )
    for run, row in zip(loaded, compared.rows, strict=True):
        certified = certify_run(run.folder)
        assert certified.gap == row.gap and certified.as_dict()["gap"] == row.gap.value
    coin, exact = (row.gap for row in compared.rows)
    assert not coin.on_grid and coin.value == coin.leakage - coin.bounds.plane
    assert exact.on_grid and exact.value == exact.leakage - exact.bounds.grid


def _blind(problem):
    """A certificate that charges nothing: it proves no more than the blind guess."""
    shares = np.tile(np.eye(3)[np.argmax(problem.joint.prior)], (len(problem.reports), 1))
    return Certificate.of(problem, on_grid=Proof(problem.reports, shares, np.zeros(1)))


def test_the_blind_guess_is_not_called_a_proof():
    problem = on_square(max_loss=60)
    coin = sf.solve(problem, sf.Coin())
    (gap,) = gaps_of([replace(coin, certificate=_blind(problem))], None)
    assert not gap.proved_anything and not gap.as_dict()["proved_anything"]
    assert NOTHING_PROVED in proved_text(gap, problem) and "(proved)" not in proved_text(
        gap, problem
    )
    (proved,) = gaps_of([sf.solve(problem, sf.Exact(plane=False))], None)
    assert proved.proved_anything and "(proved)" in proved_text(proved, problem)
