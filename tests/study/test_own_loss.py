"""A loss function of one's own is not in the run folder: nothing is judged by another one in its
place."""

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.categories import CategoricalData
from sfumato.data.joint import Joint
from sfumato.data.recipe import Recipe
from sfumato.errors import FileError, ProblemError
from sfumato.mechanism.loss import Loss, euclidean, squared
from sfumato.study.compare import compare
from sfumato.study.folder import Run
from sfumato.study.measure import measure
from sfumato.study.question import problem_of

RECIPE = Recipe("four-corners", per_user=(6, 0))


def hundreds(truth: np.ndarray, report: np.ndarray) -> np.ndarray:
    """Distance in hundreds of metres."""
    return np.linalg.norm(truth - report, axis=-1) / 100


def _run(folder: Path, loss: Loss, max_loss: float) -> Run:
    solution = sf.solve(sf.Problem(RECIPE.load().train, max_loss=max_loss, loss=loss), sf.Coin())
    solution.save(folder, recipe=RECIPE)
    return sf.load_run(folder)


def _measure(folder: Path) -> dict[str, object]:
    return measure(folder).as_dict()


def test_a_loss_that_was_not_saved_is_refused(tmp_path: Path) -> None:
    run, data = _run(tmp_path / "run", hundreds, 1.73), RECIPE.load().train
    for judged in (
        lambda: compare([run], on=data),
        lambda: compare([run], on=data, train=data),
        lambda: _measure(run.folder),
    ):
        with pytest.raises(
            FileError,
            match=r"used a loss function of its own \('hundreds'\), which is not in the run folder",
        ):
            judged()
    with pytest.raises(FileError, match="used a loss function of its own"):
        problem_of(run, data)


def test_a_loss_of_ours_is_found_again(tmp_path: Path) -> None:
    run, data = _run(tmp_path / "run", squared, 20_000.0), RECIPE.load().train
    assert compare([run], on=data).rows[0].measured.loss.value == pytest.approx(20_000)
    assert _measure(run.folder)["loss"]["value"] == pytest.approx(20_000)  # type: ignore[index]


def test_a_run_on_words_beside_one_on_places_is_refused(tmp_path: Path) -> None:
    words = CategoricalData(
        Joint(np.eye(2) / 2, secrets=("a", "b")), ("x", "y"), ("x", "y"), np.array([[0, 1], [1, 0]])
    )
    sf.solve(sf.Problem(words, max_loss=0.25), sf.Exact()).save(tmp_path / "words")
    runs = [sf.load_run(tmp_path / "words"), _run(tmp_path / "places", euclidean, 173)]
    for on in (words, RECIPE.load().train):
        with pytest.raises(ProblemError, match="categories and on places cannot be compared"):
            compare(runs, on=on)
    assert compare(runs[:1], on=words).rows[0].measured.loss.value == pytest.approx(0.25, abs=1e-3)
