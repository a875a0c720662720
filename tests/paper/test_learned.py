"""The page of the codebook's figures, and what the learner can see."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from paper.experiments import RESULTS
from paper.pages import learned
from paper.runs import draws
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import four_corners
from sfumato.files import read_json
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.simple import Identity
from sfumato.solver import Codebook, Problem
from sfumato.study.solve import solve


def test_the_committed_page_is_made_from_the_committed_runs(tmp_path: Path) -> None:
    for name in ("learned.json", "optimum.json", "draws.json"):
        (tmp_path / name).write_bytes((RESULTS / name).read_bytes())
    learned.main(tmp_path)
    assert (tmp_path / "learned.md").read_bytes() == (RESULTS / "learned.md").read_bytes()


def test_the_committed_runs_hold_their_budgets_and_no_law_is_better_than_the_bound() -> None:
    bounds = learned._bounds(RESULTS)
    for row in read_json(RESULTS / "learned.json", what="learned results")["rows"]:
        assert row["train"]["loss_m"] <= row["max_loss_m"] * (1 + 1e-9)
        bound = (
            row["bound_grid"]
            if row["experiment"] is None
            else bounds.get((row["experiment"], row["objective"], row["seed"]))
        )
        if bound is not None:
            leaked = (
                1 - row["train"]["bayes_error"]
                if row["objective"] == "bayes"
                else row["train"]["information_bits"]
            )
            assert leaked >= bound - 1e-9


def test_few_check_ins_say_what_they_say_and_all_of_them_what_the_data_say() -> None:
    data = four_corners(seed=3).train.take(np.arange(0, 1920, 12))
    shared = Samples(
        data.secret, np.repeat(data.secret[:, None] // 2 * 100.0, 2, axis=1), data.secrets
    )  # two users at each of two places
    assert np.allclose(draws.on_few(Identity(), shared, 5, seed=0), 0.5)
    once = draws.on_few(Identity(), data, 1, seed=0)
    assert once == draws.on_few(Identity(), data, 1, seed=0)
    assert max(once) == 0


def test_the_committed_draws_are_all_there_and_chose_nothing() -> None:
    rows = read_json(RESULTS / "draws.json", what="results on further draws")["rows"]
    assert {(row["recipe"], row["seed"]) for row in rows} == {
        (kind, seed) for kind in draws.KINDS for seed in draws.DRAWS
    }
    assert not set(draws.DRAWS) & set(range(10, 16))
    first = [
        row
        for row in read_json(RESULTS / "learned.json", what="learned results")["rows"]
        if row["experiment"] == 4
    ]
    for row in first:  # the same runs as those of the first table
        if row["objective"] == "bayes":
            same = next(
                one for one in rows if (one["recipe"], one["seed"]) == (row["recipe"], row["seed"])
            )
            assert abs(same["test"]["bayes_error"] - row["test"]["bayes_error"]) < 0.02


@pytest.mark.parametrize("made_for", ["new", "these"])
def test_poisoned_test_data_changes_nothing_that_is_learned(
    made_for: Literal["new", "these"],
) -> None:
    data = four_corners(seed=3)
    rows = np.arange(0, len(data.train), 12)
    assert data.test is not None
    poisoned = Samples.__new__(Samples)  # NaN is refused by the front door
    for name, value in vars(data.test).items():
        object.__setattr__(
            poisoned, name, np.full_like(value, np.nan) if name == "truth" else value
        )
    found = []
    for test in (data.test, poisoned):
        split = Split(train=data.train.take(rows), test=test)
        settings = Codebook(made_for=made_for, places=8, steps=40, hidden=(8,), waves=4)
        nets: list[CodebookNet] = []

        def keep(line: dict[str, Any], nets: list[CodebookNet] = nets) -> None:
            nets.append(line["mechanism"])

        solution = solve(
            Problem(split.train, max_loss=173), settings, seed=0, progress=keep, proof="none"
        )
        found.append((nets, solution))
    (nets, one), (others, other) = found
    assert nets and len(nets) == len(others)  # of the folds too, where there are any
    for left, right in zip([*nets, one.mechanism], [*others, other.mechanism], strict=True):
        assert all(
            np.array_equal(left.arrays()[name], right.arrays()[name]) for name in left.arrays()
        )
    assert one.outlook == other.outlook and (one.outlook is None) == (made_for == "these")
