"""The same seed gives the same mechanism, whether a game is left alone, stopped, or killed and
resumed."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import FileError
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.solver import SOLVERS
from sfumato.study.solve import solve
from tests.solver.game.tiny import TINY, always, same, tiny_problem


def test_the_same_seed_gives_the_same_mechanism_and_another_seed_another(
    undisturbed: Mechanism,
) -> None:
    assert same(undisturbed, solve(tiny_problem(), TINY, seed=3).mechanism)
    assert not same(undisturbed, solve(tiny_problem(), TINY, seed=4).mechanism)


class _Stop(Exception):
    pass


def _stop_after(rounds: int) -> Callable[[dict[str, Any]], None]:
    def progress(line: dict[str, Any]) -> None:
        if line["round"] == rounds:
            raise _Stop

    return progress


@pytest.mark.parametrize("rounds", [0, 2])
def test_a_resumed_game_gives_the_very_mechanism_of_the_undisturbed_one(
    rounds: int, undisturbed: Mechanism, tmp_path: Path
) -> None:
    kept = tmp_path / "checkpoint.npz"
    with pytest.raises(_Stop):
        solve(tiny_problem(), TINY, seed=3, checkpoint=kept, progress=_stop_after(rounds))
    lines: list[dict[str, Any]] = []
    again = solve(tiny_problem(), TINY, seed=3, checkpoint=kept, progress=lines.append)
    assert same(undisturbed, again.mechanism)
    assert (
        "resumed" in lines[0]
        and lines[1]["round"] == rounds + 1
        and len(again.history) == TINY.rounds
    )


def test_a_checkpoint_of_another_game_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint.npz"
    solve(tiny_problem(), replace(TINY, rounds=1), seed=3, checkpoint=kept)
    for problem, game, seed in (
        (tiny_problem(), TINY, 3),
        (tiny_problem(max_loss=91.0), replace(TINY, rounds=1), 3),
        (tiny_problem(), replace(TINY, rounds=1), 4),
    ):
        with pytest.raises(FileError, match="belongs to another run"):
            solve(problem, game, seed=seed, checkpoint=kept)
    kept.write_bytes(kept.read_bytes()[:-200])
    with pytest.raises(FileError, match="is not a whole checkpoint"):
        solve(tiny_problem(), replace(TINY, rounds=1), seed=3, checkpoint=kept)


_CHILD = """
import sys
from tests.solver.game.tiny import TINY, always, tiny_problem
from sfumato.study.solve import solve
def say(line):
    print(line.get("round", "resumed"), flush=True)
solve(tiny_problem(), TINY, seed=3, checkpoint=sys.argv[1], progress=say).mechanism.save(sys.argv[2])
"""


def _child(folder: Path) -> subprocess.Popen:
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environment = {**os.environ, **cache, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    command = [
        sys.executable,
        "-c",
        _CHILD,
        str(folder / "checkpoint.npz"),
        str(folder / "mechanism.npz"),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _killed(folder: Path, *, after: int) -> None:
    """Kill a game with SIGKILL when it has said `after` lines."""
    with _child(folder) as game:
        assert game.stdout is not None
        for _ in range(after):
            game.stdout.readline()
        game.send_signal(signal.SIGKILL)


def test_a_killed_game_resumed_in_another_process_gives_the_same_mechanism(
    undisturbed: Mechanism, tmp_path: Path
) -> None:
    _killed(tmp_path, after=3)
    assert not (tmp_path / "mechanism.npz").exists()
    with _child(tmp_path) as game:
        assert game.wait() == 0
    assert same(undisturbed, load_mechanism(tmp_path / "mechanism.npz"))


@pytest.mark.slow
@pytest.mark.paper  # minutes of compiling: left out unless asked for, with `pytest -m slow`
@pytest.mark.parametrize("moment", range(10))
def test_ten_moments_to_kill_a_game_give_ten_times_the_same_mechanism(
    moment: int, undisturbed: Mechanism, tmp_path: Path
) -> None:
    random = np.random.default_rng(moment)
    with _child(tmp_path) as game:
        try:
            game.wait(timeout=float(random.uniform(0.5, 15.0)))
        except subprocess.TimeoutExpired:
            game.send_signal(signal.SIGKILL)
    with _child(tmp_path) as game:
        assert game.wait() == 0
    assert same(undisturbed, load_mechanism(tmp_path / "mechanism.npz"))


def test_a_time_limit_stops_after_a_whole_round() -> None:
    found = solve(tiny_problem(), replace(TINY, rounds=1000), time_limit=1e-3)
    assert (
        len(found.history) == 1
        and "Time limit: 1 of 1000 rounds" in found.status
        and found.loss <= 90
    )


def test_ctrl_c_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.solver.game import training as module

    calls: list[int] = []

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return played(*args)

    played = module.play_round
    monkeypatch.setattr(module, "play_round", interrupted)
    found = solve(tiny_problem(), TINY, seed=3)
    assert "Stopped by hand: 3 of 4 rounds" in found.status and found.loss <= 90


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """A game of three rounds on the command line; its exit code."""
    from sfumato import cli

    monkeypatch.setitem(SOLVERS, "game", always(replace(TINY, lattices=(1.0,), rounds=3)))

    def ended(*more: object) -> int:
        monkeypatch.setattr(
            "sys.argv",
            [
                "sfumato",
                "solve",
                "four-corners",
                "--max-loss",
                "173",
                "--solver",
                "game",
                *map(str, more),
            ],
        )
        with pytest.raises(SystemExit) as left:
            cli.main()
        return int(left.value.code or 0)

    return ended


@pytest.mark.parametrize("again", ["--resume", "--out"])
@pytest.mark.parametrize(
    "saved", [False, True], ids=["killed before a round was saved", "killed later"]
)
def test_what_a_kill_leaves_in_a_finished_run_folder_is_cleared(
    run: Callable[..., int], tmp_path: Path, again: str, saved: bool
) -> None:
    folder = tmp_path / "run"
    assert run("--out", folder, "--time-limit", "0.001") == 0
    names = {path.name for path in folder.iterdir()}
    (folder / "checkpoint.npz").rename(folder / ".checkpoint.npz.old")
    (folder / ".checkpoint.npz.x7_k2.part").write_bytes(b"half")
    if saved:
        shutil.copy(folder / ".checkpoint.npz.old", folder / "checkpoint.npz")
    more = () if again == "--resume" else ("--replace",)
    assert run(again, folder, *more) == 0
    assert {path.name for path in folder.iterdir()} == names
    (folder / "of-checkpoint.npz.txt").write_text("not ours")
    assert run(again, folder, *more) == 2 and (folder / "of-checkpoint.npz.txt").exists()


def test_a_run_on_the_command_line_is_resumed(
    run: Callable[..., int], capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    assert run("--out", tmp_path / "whole") == 0
    assert "round 3, lattice 175 m: payoff" in capsys.readouterr().err
    assert run("--out", tmp_path / "parted", "--time-limit", "0.001") == 0
    assert "Time limit: 1 of 3 rounds" in capsys.readouterr().out
    assert run("--resume", tmp_path / "parted") == 0
    assert (tmp_path / "parted" / "mechanism.npz").read_bytes() == (
        tmp_path / "whole" / "mechanism.npz"
    ).read_bytes()
    assert run("--resume", tmp_path / "none") != 0
    assert run("--resume", tmp_path / "whole", "--out", tmp_path / "other") != 0
    assert run() != 0
