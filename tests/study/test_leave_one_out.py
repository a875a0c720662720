"""Leaving a user out: the mechanism never saw the user, and everybody is judged with it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import FileError, ProblemError
from sfumato.measure.judge import judge
from sfumato.solver import Solver
from sfumato.study.folder import load_run
from sfumato.study.leave_one_out import leave_one_out, user_of, without
from sfumato.study.question import solver_of
from sfumato.study.solution import Solution

DATA = sf.four_corners(0).train.split(12, 6, seed=1)
assert DATA.test is not None
PROBLEM = sf.Problem(DATA.train, max_loss=173, cell_m=100)


def test_the_coin_without_a_user_is_the_coin_of_the_others() -> None:
    found = leave_one_out(PROBLEM, sf.Coin(), seed=3)
    assert [one.user for one in found] == list(DATA.train.secrets)
    green = found[2]
    others = DATA.train.take(DATA.train.secret != 2).renumbered()
    by_hand = sf.solve(
        sf.Problem(others, max_loss=173, region=PROBLEM.region, cell_m=100), sf.Coin(), seed=3
    ).mechanism
    assert np.array_equal(
        green.mechanism.sample(DATA.train.truth, seed=0), by_hand.sample(DATA.train.truth, seed=0)
    )
    whole = judge(by_hand, DATA.train)
    assert green.judged["training data"].loss.value == pytest.approx(whole.loss.value)
    user = green.of_user("training data")
    assert (
        user is not None
        and user.name == "green"
        and user.loss == pytest.approx(whole.per_user[2].loss)
    )
    with_green = user_of(sf.solve(PROBLEM, sf.Coin()).measured, "green")
    assert (
        with_green is not None and user.loss > with_green.loss
    )  # the fixed place moves towards the other three


def test_everybody_is_judged_on_each_set_of_data() -> None:
    said: list[str] = []
    assert DATA.test is not None
    found = leave_one_out(
        PROBLEM,
        sf.Coin(),
        on={"training data": DATA.train, "test data": DATA.test},
        progress=said.append,
    )
    assert len(said) == 4 and "left out red (2 of 4): solved" in said[1]
    for one in found:
        assert set(one.judged) == {"training data", "test data"}
        assert [user.name for user in one.judged["test data"].per_user] == list(DATA.test.secrets)
    assert found[0].as_dict()["test data"]["per_user"][0]["user"] == "blue"


def test_a_user_without_check_ins_in_the_data_has_no_figures() -> None:
    only = DATA.train.take(DATA.train.secret < 2)
    found = leave_one_out(PROBLEM, sf.Coin(), on={"two users": only})
    assert found[0].of_user("two users") is not None and found[3].of_user("two users") is None


def test_the_problem_without_a_user_keeps_all_else() -> None:
    problem = sf.Problem(
        DATA.train,
        user_max_loss=dict.fromkeys(DATA.train.secrets, 150.0),
        max_distance=400,
        cell_m=100,
    )
    rest = without(problem, "red")
    assert rest.samples.secrets == ("blue", "green", "yellow") and set(
        rest.user_max_loss or {}
    ) == set(rest.samples.secrets)
    assert (
        rest.grid == problem.grid
        and rest.max_distance == 400
        and rest.objective == problem.objective
    )
    assert len(rest.samples) == 36


def test_kept_runs_are_read_again_and_others_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = leave_one_out(PROBLEM, sf.Coin(), seed=2, keep=tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        f"without-{number}" for number in range(1, 5)
    ]

    def never(*args: object, **settings: object) -> Solution:
        raise AssertionError("solved again")

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.study.leave_one_out.solve", never)
        said: list[str] = []
        again = leave_one_out(
            PROBLEM, sf.Coin(), seed=2, keep=tmp_path / "kept", progress=said.append
        )
        assert "read again" in said[0]
    for one, other in zip(first, again, strict=True):
        assert one.judged["training data"].loss.value == other.judged["training data"].loss.value
    for changed, solver, seed in (
        (PROBLEM, sf.Coin(), 3),
        (PROBLEM, sf.Laplace(), 2),
        (replace(PROBLEM, max_loss=170), sf.Coin(), 2),
    ):
        with pytest.raises(FileError, match="another problem, solver or seed"):
            leave_one_out(changed, solver, seed=seed, keep=tmp_path / "kept")


@pytest.mark.parametrize(
    "solver",
    [sf.Coin(), sf.Laplace(), sf.Exact(gap=0.01), sf.Game(rounds=7, lattices=(0.5,))],
    ids=lambda s: s.name,
)
def test_a_runs_solver_is_put_together_again(tmp_path: Path, solver: Solver) -> None:
    coin = sf.solve(PROBLEM, sf.Coin())
    replace(coin, solver=solver).save(tmp_path / "run")
    assert solver_of(load_run(tmp_path / "run")) == solver


def test_settings_of_another_kind_are_refused(tmp_path: Path) -> None:
    coin = sf.solve(PROBLEM, sf.Coin())
    replace(coin, solver=sf.Game.paper(2)).save(tmp_path / "run")
    with pytest.raises(FileError, match="in Python"):
        solver_of(load_run(tmp_path / "run"))


def test_what_cannot_be_left_out_is_said() -> None:
    two = sf.Problem(DATA.train.take(DATA.train.secret < 2).renumbered(), max_loss=100)
    with pytest.raises(ProblemError, match="at least three users"):
        leave_one_out(two, sf.Coin())
    with pytest.raises(ProblemError, match="cannot be left out"):
        without(replace(PROBLEM, objective=sf.measure.Gain("target:red")), "red")
    words = sf.CategoricalData(
        sf.data.Joint(np.eye(2) / 2, secrets=("a", "b")),
        ("x", "y"),
        ("x", "y"),
        np.array([[0, 1], [1, 0]]),
    )
    with pytest.raises(ProblemError, match="holds categories"):
        leave_one_out(sf.Problem(words, max_loss=1), sf.Exact())
