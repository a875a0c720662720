"""The guide to extending sfumato, followed: a mechanism, a solver, a loss and a measure."""

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.deploy.graphs import graph_of
from sfumato.errors import MechanismError
from sfumato.measure.tables import TABLE_MEASURES, TableMeasure
from sfumato.mechanism import base
from sfumato.mechanism.loss import LOSSES, LossTraits
from sfumato.solver import SOLVERS
from sfumato.study.measure import measure
from sfumato.study.question import loss_of
from tests.mechanism.registry import MECHANISMS, NOT_EXPORTED, SAMPLES, TRUTHS

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/extend.md"


@pytest.fixture(scope="module")
def added() -> Iterator[dict[str, Any]]:
    """What the page's code blocks define, with their lines in lists that are put back."""
    names: dict[str, Any] = {
        "__name__": "followed",
        "MECHANISMS": dict(MECHANISMS),
        "NOT_EXPORTED": set(NOT_EXPORTED),
        "SOLVERS": SOLVERS,
        "LOSSES": LOSSES,
        "LossTraits": LossTraits,
        "TABLE_MEASURES": TABLE_MEASURES,
        "TableMeasure": TableMeasure,
    }
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    yield names
    SOLVERS.pop("coin-on-grid", None)
    LOSSES.pop("blocks", None)
    TABLE_MEASURES.pop("expected_guesses", None)
    base._KINDS.pop("jump", None)


def test_the_page_shows_all_six_additions() -> None:
    text = PAGE.read_text("utf-8")
    titles = re.findall(r"^## An? (.+)$", text, re.M)
    assert titles == [
        "mechanism",
        "solver",
        "loss",
        "measure",
        "option of a command",
        "studio panel",
    ]
    for path in re.findall(r"`((?:src|tests)/[a-z_/.]+\.(?:py|pyi))`", text):
        assert (PAGE.parents[2] / path).exists(), path


def test_the_code_of_the_page_is_typed_as_the_package_is() -> None:
    """Copied as it stands, it passes mypy's rule that every function says its types."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    functions = [
        node
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.FunctionDef)
    ]
    assert len(functions) >= 7
    for function in functions:
        given = [*function.args.args, *function.args.kwonlyargs, function.args.kwarg]
        untyped = [
            part.arg
            for part in given
            if part and part.annotation is None and part.arg not in ("self", "cls")
        ]
        assert function.returns is not None and not untyped, (function.name, untyped)


def test_the_mechanism_keeps_the_contract_and_is_saved_and_judged_exactly(
    added: dict[str, Any], tmp_path: Path
) -> None:
    jump = added["MECHANISMS"]["jump"]()
    assert jump.sample(TRUTHS, seed=1).shape == TRUTHS.shape
    drawn = jump.sample(np.zeros((4000, 2)), seed=1)[:, 0]
    assert set(drawn) == {0.0, 120.0} and abs((drawn == 0).mean() - 0.5) < 0.04
    jump.save(tmp_path / "jump.npz")
    assert sf.mechanism.load_mechanism(tmp_path / "jump.npz") == jump
    found = sf.judge(jump, SAMPLES)
    assert found.loss.kind == "exact" and found.loss.value == pytest.approx(60.0)
    assert not jump.lists_truths and not len(jump.places_in_file())
    assert added["NOT_EXPORTED"] == NOT_EXPORTED | {jump.kind}
    with pytest.raises(MechanismError, match="'jump' cannot be exported"):
        graph_of(jump)
    data = sf.four_corners(seed=0).test
    assert sf.judge(jump, data).bayes_error.value == pytest.approx(0.0, abs=1e-9)


def test_the_solver_solves_a_problem_and_its_run_is_read_again(
    added: dict[str, Any], tmp_path: Path
) -> None:
    problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    solution = sf.solve(problem, added["CoinOnGrid"](), time_limit=60)
    assert solution.name == "coin-on-grid" and SOLVERS[solution.name] is added["CoinOnGrid"]
    assert solution.loss == pytest.approx(173, abs=5)
    assert solution.measured.bayes_error.value >= 0.6
    solution.save(tmp_path / "run")
    assert sf.load_run(tmp_path / "run").mechanism.kind == "snapped"


def test_the_loss_is_kept_within_its_budget_and_its_run_is_judged_by_it(
    added: dict[str, Any], tmp_path: Path
) -> None:
    few = sf.four_corners(seed=0).train.split(10).train
    blocks = added["blocks"]
    solution = sf.solve(sf.Problem(few, max_loss=150, loss=blocks, cells=65), sf.Coin())
    assert solution.loss <= 150 * (1 + 1e-9)
    solution.save(tmp_path / "run")
    assert loss_of(sf.load_run(tmp_path / "run"), few) is blocks
    assert blocks(np.zeros(2), np.array([30.0, -40.0])) == 70


def test_the_measure_computes_what_its_example_says(added: dict[str, Any]) -> None:
    guesses = added["expected_guesses"]
    examples = doctest.DocTestFinder().find(guesses, globs=added)
    runner = doctest.DocTestRunner()
    assert next(runner.run(example) for example in examples).attempted == 1
    assert runner.failures == 0
    told = sf.judge(sf.mechanism.Identity(), sf.four_corners(seed=0).test)
    assert guesses(told.joint) == pytest.approx(1.0)


def test_the_measure_stands_in_measure_compare_and_the_report(
    added: dict[str, Any], tmp_path: Path
) -> None:
    data = sf.four_corners(seed=0)
    solution = sf.solve(sf.Problem(data.train, max_loss=173), sf.Coin())
    solution.save(tmp_path / "run", recipe=Recipe("four-corners"))
    guesses = added["expected_guesses"]
    measured = measure(tmp_path / "run")
    assert measured.as_dict()["expected_guesses"] == guesses(solution.measured.joint)
    assert f"guesses needed {guesses(solution.measured.joint):.3f}" in str(measured)
    compared = sf.compare([solution], on=data.test)
    value = guesses(compared.rows[0].measured.joint)
    assert compared.as_dict()["mechanisms"][0]["expected_guesses"] == value
    assert "guesses needed ↑" in str(compared) and f"{value:.3f}" in str(compared)
    compared.html(tmp_path / "report.html")
    assert "guesses needed ↑" in (tmp_path / "report.html").read_text("utf-8")
