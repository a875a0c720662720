"""The damped primal-dual method: its law and its bound lie close about the optimum, its cells cover
the plane, and a certificate made this way is checked like any other."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.data.samples import Samples
from sfumato.measure.bound import CertificateError
from sfumato.measure.cells import covers_hull
from sfumato.measure.certificate import Certificate, load_certificate, question_of
from sfumato.solver import Exact, Problem
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import certificate_for, first_order
from sfumato.solver.exact.first_order import (
    Game,
    coarse_cells,
    first_order_certificate,
    least_leaking,
    split,
)
from sfumato.study.solve import solve


def town(users: int, each: int = 10) -> Samples:
    """Users with favourites among a few venues."""
    random = np.random.default_rng(3)
    venues = np.round(random.normal(0, 400, (40, 2)))
    favourites = random.integers(len(venues), size=(users, 3))
    secret = np.repeat(np.arange(users), each)
    chosen = favourites[secret, random.integers(3, size=len(secret))]
    return Samples(secret, venues[chosen], tuple(map(str, range(users))))


PROBLEM = Problem(town(24), max_loss=150, cell_m=100)


def game_of(problem: Problem) -> Game:
    reports, places, loss = problem.report_places, problem.places, problem.loss
    assert problem.max_loss is not None
    return Game(
        problem.joint,
        lambda part: loss(places[part][:, None, :], reports[None, :, :]),
        len(reports),
        problem.max_loss,
    )


@pytest.fixture(scope="module")
def proved() -> Certificate:
    found = first_order_certificate(PROBLEM)
    assert found is not None
    return found


def test_law_and_bound_lie_within_five_per_cent_of_the_optimum(proved: Certificate) -> None:
    optimum = solve(PROBLEM, Exact(plane=False)).leakage
    bound = proved.bound(PROBLEM).grid
    assert 0.95 * optimum <= bound <= optimum + 1e-9
    game = game_of(PROBLEM)
    table, spent = game.through(least_leaking(game))
    assert spent <= 150
    assert optimum - 2e-3 <= table.max(axis=0).sum() <= 1.05 * optimum


def test_a_budget_that_no_law_keeps_takes_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    game, passes, plain = replace(game_of(PROBLEM), budget=1e-6), [], Game.through

    def through(self: Game, law: first_order.SoftLaw) -> tuple[np.ndarray, float]:
        passes.append(law.slope)
        return plain(self, law)

    monkeypatch.setattr(Game, "through", through)
    law = first_order._within_budget(game, replace(game, budget=150.0).noise())
    assert law.slope >= 100 * passes[0] and len(passes) < 40


def test_the_bound_of_a_position_is_no_smaller_on_finer_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_order, "_MOST_SHARES", 24 * 200)
    on = first_order._reports_of(PROBLEM)
    assert isinstance(on, first_order.OnPlane)

    def game_on(cells: first_order.OnPlane) -> Game:
        return Game(PROBLEM.joint, cells.losses, len(cells), 150.0)

    coarse = game_on(on)
    at = coarse.start(coarse.through(coarse.noise())[0])
    for _ in range(30):
        at = coarse.step(at, 0.1)
    finer = on.finer(at.table.sum(axis=0))
    assert len(on) < len(finer) <= 200
    spread = at.spread(on.holding(finer.cells.centres_m))
    prices = np.array([at.price])
    before = coarse.bounds(at.scores, prices)[0]
    assert game_on(finer).bounds(spread.scores, prices)[0] >= before - 1e-6
    assert spread.table.sum() == pytest.approx(1.0, abs=1e-4)


def test_cells_cover_the_hull_and_are_small_where_people_are() -> None:
    truths = np.vstack([PROBLEM.places, [[20_000.0, 0.0]]])
    mass = np.append(PROBLEM.joint.place_probability, 1e-6)
    cells = coarse_cells(truths, mass, finest_m=25.0, most=100)
    assert len(cells) <= 100 and covers_hull(truths, cells)
    sides = cells.sides_m[cells.holding(truths)]
    assert np.median(sides[:-1]) < sides[-1] / 4
    shares = np.bincount(cells.holding(truths), mass, minlength=len(cells))
    finer = split(cells, shares, truths, finest_m=25.0, most=160)
    assert 100 < len(finer) <= 160 and covers_hull(truths, finer)
    assert finer.sides_m.min() >= 25.0


@pytest.fixture(scope="module")
def on_plane() -> Certificate:
    patch = pytest.MonkeyPatch()
    patch.setattr(first_order, "_MOST_SHARES", 24 * 200)
    found = first_order_certificate(PROBLEM, steps=60)
    patch.undo()
    assert found is not None and found.on_plane is not None
    return found


def test_a_file_of_it_proves_the_same(on_plane: Certificate, tmp_path: Path) -> None:
    on_plane.save(tmp_path / "certificate.npz")
    again = load_certificate(tmp_path / "certificate.npz").bound(PROBLEM)
    assert again == on_plane.bound(PROBLEM)
    assert again.plane is not None and again.plane > float(PROBLEM.joint.prior.max())


def _doubled(shares: np.ndarray) -> np.ndarray:
    return 2 * shares


def _negative(shares: np.ndarray) -> np.ndarray:
    changed = shares.copy()
    changed[0, :2] = changed[0, 0] + changed[0, 1] + 0.5, -0.5
    return changed


def _not_a_number(shares: np.ndarray) -> np.ndarray:
    changed = shares.copy()
    changed[0, 0] = np.nan
    return changed


@pytest.mark.parametrize("forged", [_doubled, _negative, _not_a_number])
def test_shares_that_are_no_guesses_are_refused(
    on_plane: Certificate, forged: Callable[[np.ndarray], np.ndarray]
) -> None:
    proof = on_plane.on_plane
    assert proof is not None
    changed = replace(on_plane, on_plane=replace(proof, shares=forged(proof.shares)))
    with pytest.raises(CertificateError, match="probability vector"):
        changed.bound(PROBLEM)


def test_cells_left_out_and_other_data_are_refused(on_plane: Certificate) -> None:
    proof = on_plane.on_plane
    assert proof is not None
    holding = proof.cells.holding(PROBLEM.places[:1])[0]
    kept = np.arange(len(proof.cells)) != holding
    less = replace(proof, cells=proof.cells[kept], shares=proof.shares[kept])
    with pytest.raises(CertificateError, match="do not cover"):
        replace(on_plane, on_plane=less).bound(PROBLEM)
    with pytest.raises(CertificateError, match="other data"):
        on_plane.bound(replace(PROBLEM, samples=town(25)))
    with pytest.raises(CertificateError, match="budget"):
        on_plane.bound(replace(PROBLEM, max_loss=140))


def test_rational_arithmetic_refuses_a_sparse_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("joint", "samples"):
        monkeypatch.setattr(f"sfumato.data.{room}.MOST_DENSE", 100)
    with pytest.raises(CertificateError, match="24 users with 30 places are too many"):
        question_of(replace(PROBLEM, samples=town(24)))


def test_it_goes_before_the_interior_point_where_that_is_slow(
    proved: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds that are heard only rise, and the last proof is the interior point's."""
    heard: list[float] = []
    monkeypatch.setattr("sfumato.solver.exact.solver._SLOW", 0)
    last = certificate_for(
        PROBLEM, seed=0, plane=False, on_proof=lambda _, bound, __: heard.append(bound)
    )
    assert last is not None
    assert heard == sorted(heard)
    assert (
        heard[0]
        < proved.bound(PROBLEM).grid
        < heard[-1]
        == pytest.approx(last.bound(PROBLEM).grid, abs=1e-6)
    )


def test_its_bound_stays_where_the_interior_point_finds_none_in_the_time(
    proved: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.solver.exact.solver._SLOW", 0)
    heard: list[float] = []
    weak = first_order_certificate(
        PROBLEM, steps=1, on_proof=lambda _, bound, __: heard.append(bound)
    )
    assert heard == [max(heard[0], PROBLEM.joint.prior.max())]  # no less than a blind guess
    assert weak is not None
    monkeypatch.setattr("sfumato.solver.exact.solver._proved", lambda *_, **__: (None, weak))
    found = certificate_for(PROBLEM, seed=0)
    assert found is not None
    assert found.bound(PROBLEM).grid == proved.bound(PROBLEM).grid > weak.bound(PROBLEM).grid


class _Ticking(Deadline):
    """A clock that is a second further whenever it is read."""

    reads = 0

    @property
    def left(self) -> float:
        object.__setattr__(self, "reads", self.reads + 1)
        return self.moment - self.reads


def test_steps_that_do_not_fit_into_the_time_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three steps in a second, half of the 30 that are left: all of the way in 3 + 45 steps."""
    done: list[float] = []
    step = Game.step

    def noted(game: Game, at: first_order.Position, share: float) -> first_order.Position:
        done.append(share)
        return step(game, at, share)

    monkeypatch.setattr(Game, "step", noted)
    monkeypatch.setattr(_Ticking, "passed", False)
    assert first_order_certificate(PROBLEM, deadline=_Ticking(33.0)) is not None
    assert 40 <= len(done) <= 50 and done[2] == 3 / first_order.STEPS and done[-1] == 1
