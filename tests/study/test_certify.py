"""One definition of the gap, and no proof claimed where there is none."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.measure.certificate import Certificate, Proof
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Coin
from sfumato.render.text import NOTHING_PROVED, proved_text
from sfumato.study import certify
from sfumato.study.certify import Gap, certify_run, gaps_of
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
    shares = np.tile(np.eye(3)[np.argmax(problem.joint.prior)], (len(problem.report_places), 1))
    return Certificate.of(problem, on_grid=Proof(problem.report_places, shares, np.zeros(1)))


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


def test_a_mechanism_without_a_law_is_refused_before_anything_is_proved(monkeypatch) -> None:
    def prove(*_: object, **__: object) -> None:
        raise AssertionError("a proof was begun")

    monkeypatch.setattr(certify, "new_certificate", prove)
    monkeypatch.setattr(Coin, "law", lambda *_, **__: None)
    bare = sf.solve(on_square(max_loss=70.0), sf.Laplace())
    bare = replace(bare, mechanism=Coin(keep=0.5, place=(0.0, 0.0)))
    with pytest.raises(sf.errors.ProblemError, match="not known in one table"):
        certify_run(bare)


def test_a_mechanism_beyond_the_cap_that_its_record_names_is_not_within_its_budgets() -> None:
    problem = on_square(max_loss=70.0, max_distance=180.0)
    kept = sf.solve(problem, sf.Exact(plane=False))
    bounds = kept.certificate.bound(problem)
    law = kept.mechanism.law(problem.joint, loss=problem.loss)
    assert 0 < law.most_loss <= 180.0 and Gap.of(problem, law, bounds).within_budgets
    far = Coin(keep=0.0, place=tuple(problem.places[0])).law(problem.joint, loss=problem.loss)
    farthest = np.linalg.norm(problem.places - problem.places[0], axis=1).max()
    assert far.most_loss == pytest.approx(farthest) and farthest > 180
    loose = replace(problem, max_loss=1000.0)
    beyond = Gap.of(loose, far, bounds)
    assert not beyond.within_budgets and beyond.over_cap
    assert Gap.of(replace(loose, max_distance=None), far, bounds).within_budgets
    laplace = PlanarLaplace(0.01).law(problem.joint, grid=problem.grid, loss=problem.loss)
    assert laplace.most_loss == np.inf and not Gap.of(loose, laplace, bounds).within_budgets
