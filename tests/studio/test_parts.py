"""The studio's own arithmetic: budgets of the slider, refined proofs, beliefs, the game's score,
command lines."""

import json
import shlex
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from sfumato.data.joint import Joint
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import FileError, ProblemError
from sfumato.files import plain
from sfumato.measure.exact import bayes_error
from sfumato.solver import Coin, Exact, Problem
from sfumato.studio import dataset, preview, prove, work
from sfumato.studio.attack_game import ROUNDS, AttackGame
from sfumato.studio.download import command_line, zipped
from sfumato.study.solve import solve


@pytest.fixture(scope="module")
def data(small: Path) -> Samples:
    return Recipe(str(small)).load().train


def test_the_sliders_budgets_are_round_and_run_from_what_can_be_kept_to_one_place_for_all(
    data: Samples,
) -> None:
    problem = prove.coarse_problem(data, None)
    budgets = prove.budgets_of(problem)
    step = budgets[1] - budgets[0]
    assert np.allclose(np.diff(budgets), step) and np.allclose(
        budgets / step, np.round(budgets / step)
    )
    assert problem.smallest_loss < budgets[0] <= problem.smallest_loss + step
    assert prove.farthest_budget(data) <= budgets[-1] < prove.farthest_budget(data) + step
    assert 24 <= len(budgets) <= 50 and len(problem.report_places) <= 130


def test_a_refined_budget_brackets_the_exact_solver_and_starts_from_what_was_found(
    data: Samples,
) -> None:
    warm: dict[tuple[str, float], np.ndarray] = {}
    for budget in (100.0, 120.0):
        asked = {"max_loss": budget, "cell_m": 100.0, "time_limit": None}
        found = prove.refined(data, asked, warm)
        exact = solve(
            Problem(data, max_loss=budget, cell_m=100.0), Exact(plane=False)
        ).measured.bayes_error.value
        reached, bound = found["bayes"]
        assert reached - 0.001 <= exact <= bound + 1e-9 and bound - reached <= 0.003
        assert found["information"][1] <= found["information"][0]
    assert set(warm) == {("bayes", 100.0), ("information", 100.0)}
    told = prove.refined(data, {"max_loss": 1.0, "cell_m": 100.0, "time_limit": None}, {})
    assert "no mechanism stays below" in told["error"]


@pytest.fixture(scope="module")
def coin_run(data: Samples, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the coin with its table beside it, as the studio's process writes it."""
    folder = tmp_path_factory.mktemp("runs") / "coin-120m-1"
    solution = solve(Problem(data, max_loss=120.0), Coin())
    solution.save(folder)
    preview.save_table(folder, solution.measured.joint)
    return folder


def test_runs_of_budgets_with_the_same_whole_metres_keep_their_own_beliefs(
    small: Path, tmp_path: Path
) -> None:
    folders = {
        budget: tmp_path / f"coin-{budget:g}m-{number}"
        for number, budget in enumerate((120.5, 120.25), start=2)
    }
    for budget, out in folders.items():
        asked = {
            "solver": "coin",
            "max_loss": budget,
            "objective": "bayes",
            "reports": 1,
            "cell_m": None,
            "seed": 0,
            "time_limit": None,
        }
        task = {
            **asked,
            "resumable": False,
            "recipe": Recipe(str(small)).as_dict(),
            "source": str(small),
            "out": str(out),
        }
        work.solve_task(task, lambda message: None)
    assert len(list(tmp_path.iterdir())) == 4  # two folders, two tables, and nothing half written
    for out in folders.values():
        found = preview.report_table(out)
        law = found.mechanism.law(Recipe(str(small)).load().train.joint())
        assert law is not None and found.chance.max() == pytest.approx(
            law.joint.place_probability.max(), abs=1e-9
        )


def test_a_table_that_could_not_be_written_leaves_the_last_one(
    coin_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = preview.table_path(coin_run).read_bytes()

    def full(target: IO[bytes], **arrays: object) -> None:
        target.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez", full)
    with pytest.raises(FileError, match="No space left"):
        preview.save_table(coin_run, Joint(np.ones((1, 1)), places=np.zeros((1, 2))))
    assert (
        preview.table_path(coin_run).read_bytes() == before
        and len(list(coin_run.parent.iterdir())) == 2
    )


def test_a_report_of_the_coin_tells_all_or_nothing(coin_run: Path, data: Samples) -> None:
    found = preview.preview(coin_run, data.truth[0])
    at_home = np.linalg.norm(found["samples"] - data.truth[0], axis=1) < 1e-6
    assert np.allclose(found["beliefs"][at_home], [1, 0, 0])
    assert np.allclose(found["beliefs"][~at_home], 1 / 3)
    assert found["heat"].shape == (2, 3) and found["heat"][:, 2].sum() == pytest.approx(1)
    place, chance = found["heat"][0, :2], found["heat"][0, 2]
    assert found["loss"] == pytest.approx(chance * np.linalg.norm(place - data.truth[0]))


def test_the_best_score_is_one_less_the_bayes_error_and_senders_stay_secret(
    coin_run: Path, data: Samples
) -> None:
    seen = preview.report_table(coin_run)
    law = seen.mechanism.law(data.joint())
    assert law is not None
    game = AttackGame.deal("coin", seen, data)
    assert game.best_share == pytest.approx(1 - bayes_error(law.joint))
    for at in range(ROUNDS):
        open_round = game.state()
        assert set(open_round) == {
            "run",
            "round",
            "rounds",
            "report",
            "score",
            "best_score",
            "best_expected",
            "best_share",
        }
        assert open_round["round"] == at and open_round["report"] is not None
        told = game.guess(data.secrets[game.senders[at]])
        assert told["right"] and told["sender"] == data.secrets[game.senders[at]]
        json.dumps(plain(told), allow_nan=False)
    assert game.state()["score"] == ROUNDS and game.state()["report"] is None
    with pytest.raises(ProblemError, match="over"):
        game.guess(data.secrets[0])


def test_what_the_page_draws_is_the_data(small: Path) -> None:
    loaded = dataset.load(Recipe("small.csv", per_user=(4, 2)), str(small))
    count = loaded.description["rows"]
    assert (
        count == 18 == loaded.description["train"] + loaded.description["test"]
        and len(loaded.points) == 12 * count
    )
    x, y = (np.frombuffer(loaded.points, "<f4", count, 4 * count * axis) for axis in (0, 1))
    user = np.frombuffer(loaded.points, "<u4", count, 8 * count)
    whole = loaded.split.all
    drawn = sorted(zip(user.tolist(), x.tolist(), y.tolist(), strict=True))
    true = sorted(zip(whole.secret.tolist(), *whole.truth.astype("<f4").T.tolist(), strict=True))
    assert drawn == true


def test_a_command_line_says_every_choice() -> None:
    task = {
        "solver": "exact",
        "max_loss": 87.5,
        "objective": "target:a b",
        "reports": 1,
        "cell_m": 50.0,
        "seed": 3,
        "time_limit": 60.0,
    }
    recipe = Recipe(
        "my file.csv",
        secret="who",
        square=(48.85, 2.35, 4500.0),
        users=("a b", "c,d"),
        top_users=2,
        per_user=(82, 20),
    )
    words = shlex.split(command_line(task, recipe, out="runs/x"))
    assert words[:3] == ["sfumato", "solve", "my file.csv"]
    told = dict(zip(words[3::2], words[4::2], strict=True))
    assert told == {
        "--secret": "who",
        "--square": "48.85,2.35,4500",
        "--users": 'a b,"c,d"',
        "--top-users": "2",
        "--per-user": "82+20",
        "--max-loss": "87.5",
        "--solver": "exact",
        "--objective": "target:a b",
        "--cell-m": "50",
        "--time-limit": "60",
        "--seed": "3",
        "--out": "runs/x",
    }


def test_an_archive_holds_the_folder(coin_run: Path, tmp_path: Path) -> None:
    import zipfile

    (tmp_path / "x.zip").write_bytes(zipped(coin_run))
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        names = set(archive.namelist())
    assert names == {"coin-120m-1/run.json", "coin-120m-1/mechanism.npz"}
