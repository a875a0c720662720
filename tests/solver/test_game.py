"""The game learns, keeps its budget, can be stopped and gone on with, and never beats the proven optimum."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper import alice_and_bob
from sfumato.data.grid import Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples, Split
from sfumato.data.table import Table
from sfumato.errors import FileError, ProblemError
from sfumato.measure.exact import mutual_information
from sfumato.mechanism.base import Mechanism, load_mechanism
from sfumato.mechanism.law import squared
from sfumato.solver import SOLVERS, Exact, Problem, solve
from sfumato.solver.game import CrossEntropy, Game, MutualInformation
from sfumato.solver.game.budget import Softplus

TINY = Game(
    rounds=4,
    turns=2,
    lattices=(0.0,),
    pool=300,
    classifier_hidden=(12,),
    generator_hidden=(16,),
    generator_batch=64,
    seeds=2,
    teaching_steps=60,
    levels=16,
)
REGION = Region(centre=(0.0, 0.0), side_m=600.0)


def _samples(seed: int = 0) -> Samples:
    random = np.random.default_rng(seed)
    secret = np.repeat([0, 1, 2], 24)
    truth = np.array([[-100.0, 0.0], [100.0, 0.0], [0.0, 150.0]])[secret] + random.normal(0.0, 20.0, (72, 2))
    return Samples(secret=secret, truth=truth, secrets=("ann", "bob", "cid"), region=REGION)


def _problem(**changes: Any) -> Problem:
    return Problem(_samples(), **{"max_loss": 90.0, "cell_m": 50.0, **changes})


def _same(one: Mechanism, other: Mechanism) -> bool:
    left, right = one.arrays(), other.arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


@pytest.fixture(scope="module")
def undisturbed() -> Mechanism:
    return solve(_problem(), TINY, seed=3).mechanism


# Same seed, same mechanism -----------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_mechanism_and_another_seed_another(undisturbed: Mechanism) -> None:
    assert _same(undisturbed, solve(_problem(), TINY, seed=3).mechanism)
    assert not _same(undisturbed, solve(_problem(), TINY, seed=4).mechanism)


class _Stop(Exception):
    pass


def _stop_after(rounds: int) -> Callable[[dict[str, Any]], None]:
    def progress(line: dict[str, Any]) -> None:
        if line["round"] == rounds:
            raise _Stop

    return progress


@pytest.mark.parametrize("rounds", [0, 2])
def test_a_game_gone_on_with_gives_the_very_mechanism_of_the_undisturbed_one(rounds: int, undisturbed: Mechanism, tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint.npz"
    with pytest.raises(_Stop):
        solve(_problem(), TINY, seed=3, checkpoint=kept, progress=_stop_after(rounds))
    lines: list[dict[str, Any]] = []
    again = solve(_problem(), TINY, seed=3, checkpoint=kept, progress=lines.append)
    assert _same(undisturbed, again.mechanism)
    assert lines[0]["round"] == rounds + 1 and len(again.history) == TINY.rounds


def test_a_checkpoint_of_another_game_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint.npz"
    solve(_problem(), replace(TINY, rounds=1), seed=3, checkpoint=kept)
    for problem, game, seed in (
        (_problem(), TINY, 3),
        (_problem(max_loss=91.0), replace(TINY, rounds=1), 3),
        (_problem(), replace(TINY, rounds=1), 4),
    ):
        with pytest.raises(FileError, match="belongs to another game"):
            solve(problem, game, seed=seed, checkpoint=kept)
    kept.write_bytes(kept.read_bytes()[:-200])
    with pytest.raises(FileError, match="is not a whole checkpoint"):
        solve(_problem(), replace(TINY, rounds=1), seed=3, checkpoint=kept)


_CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from test_game import TINY, _problem
from sfumato.solver import solve
def say(line):
    print(line["round"], flush=True)
solve(_problem(), TINY, seed=3, checkpoint=sys.argv[2], progress=say).mechanism.save(sys.argv[3])
"""


def _child(folder: Path) -> subprocess.Popen:
    here = Path(__file__).resolve()
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment = {**os.environ, **cache, "PYTHONPATH": str(here.parents[2])}
    command = [sys.executable, "-c", _CHILD, str(here.parent), str(folder / "checkpoint.npz"), str(folder / "mechanism.npz")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _killed(folder: Path, *, after: int) -> None:
    """Kill a game with SIGKILL when it has said `after` lines."""
    with _child(folder) as game:
        assert game.stdout is not None
        for _ in range(after):
            game.stdout.readline()
        game.send_signal(signal.SIGKILL)


def test_a_killed_game_gone_on_with_in_another_process_gives_the_same_mechanism(undisturbed: Mechanism, tmp_path: Path) -> None:
    _killed(tmp_path, after=3)
    assert not (tmp_path / "mechanism.npz").exists()
    with _child(tmp_path) as game:
        assert game.wait() == 0
    assert _same(undisturbed, load_mechanism(tmp_path / "mechanism.npz"))


@pytest.mark.slow
@pytest.mark.paper  # minutes of compiling: left out unless asked for, with `pytest -m slow`
@pytest.mark.parametrize("moment", range(10))
def test_ten_moments_to_kill_a_game_give_ten_times_the_same_mechanism(moment: int, undisturbed: Mechanism, tmp_path: Path) -> None:
    random = np.random.default_rng(moment)
    with _child(tmp_path) as game:
        try:
            game.wait(timeout=float(random.uniform(0.5, 15.0)))
        except subprocess.TimeoutExpired:
            game.send_signal(signal.SIGKILL)
    with _child(tmp_path) as game:
        assert game.wait() == 0
    assert _same(undisturbed, load_mechanism(tmp_path / "mechanism.npz"))


# The budget --------------------------------------------------------------------------------------------


def test_the_budget_is_kept_on_training_data_whatever_was_learnt() -> None:
    """With no price on loss the net spends what it likes; the truth is then kept just often enough."""
    careless = replace(TINY, budget=Softplus(alpha=0.0), rounds=1)
    over = solve(_problem(max_loss=40.0), replace(careless, calibrate=False))
    assert over.loss > 45 and over.status.startswith("Loss bound exceeded")
    within = solve(_problem(max_loss=40.0), careless)
    assert 39.999 < within.loss <= 40 * (1 + 1e-9) and "exceeded" not in within.status and "to keep the budget" in within.status


def test_a_budget_below_what_the_grid_allows_is_refused_and_a_table_of_words_too() -> None:
    with pytest.raises(ProblemError, match="the smallest possible loss"):
        solve(_problem(max_loss=5.0), TINY)
    words = Table.__new__(Table)
    object.__setattr__(words, "name", "words")
    problem = _problem()
    object.__setattr__(problem, "samples", words)
    with pytest.raises(ProblemError, match="the game learns on places"):
        TINY.solve(problem, seed=0, time_limit=None)


def test_a_time_limit_stops_after_a_whole_round() -> None:
    found = solve(_problem(), replace(TINY, rounds=1000), time_limit=1e-3)
    assert len(found.history) == 1 and "Time limit: 1 of 1000 rounds" in found.status and found.loss <= 90


def test_ctrl_c_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.solver.game import play as module

    calls: list[int] = []

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return played(*args)

    played = module.play_round
    monkeypatch.setattr(module, "play_round", interrupted)
    found = solve(_problem(), TINY, seed=3)
    assert "Stopped by hand: 3 of 4 rounds" in found.status and found.loss <= 90


# Validation and test data ------------------------------------------------------------------------------


def test_validation_data_chooses_the_round_and_teaches_nothing(undisturbed: Mechanism) -> None:
    problem = _problem()
    assert isinstance(problem.samples, Samples)
    lines: list[dict[str, Any]] = []
    found = solve(problem, TINY, seed=3, progress=lines.append)
    best = max(lines, key=lambda line: line["score"])
    assert re.search(rf"round {best['round']} on a lattice of {best['lattice_m']:g} m", found.status)
    order = {tuple(point): row for row, point in enumerate(problem.samples.truth)}
    held = [order[tuple(point)] for point in problem.samples.carve(TINY.validation, seed=3)[1].truth]
    truth = problem.samples.truth.copy()
    truth[held] = truth[held] * 0.3  # nearer to each other
    moved: list[dict[str, Any]] = []
    solve(replace(problem, samples=replace(problem.samples, truth=truth)), TINY, seed=3, progress=moved.append)
    for one, other in zip(lines, moved, strict=True):
        assert one["payoff"] == other["payoff"] and one["loss"] == other["loss"]
    assert [line["score"] for line in lines] != [line["score"] for line in moved]


def test_nan_in_the_test_data_changes_nothing(undisturbed: Mechanism) -> None:
    data = Split(train=_samples(), test=_samples(1))
    assert data.test is not None
    object.__setattr__(data.test, "truth", np.full_like(data.test.truth, np.nan))
    assert _same(undisturbed, solve(Problem(data.train, max_loss=90.0, cell_m=50.0), TINY, seed=3).mechanism)


def test_history_has_a_line_a_round_with_payoff_loss_accuracies_and_validation_error() -> None:
    history = solve(_problem(), TINY, seed=3).history
    assert [line["round"] for line in history] == [0, 1, 2, 3]
    for line in history:
        assert {"payoff", "loss", "accuracy_train", "accuracy_validation", "validation_bayes_error"} <= line.keys()
        assert 0 <= line["accuracy_validation"] <= 1 and 0 <= line["validation_bayes_error"] <= 2 / 3 + 1e-9


# Payoffs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_mutual_information_payoff_is_the_measured_one_in_nats(seed: int) -> None:
    random = np.random.default_rng(seed)
    user = random.integers(0, 3, 12)
    predictions = random.dirichlet([0.4] * 3, 12)
    joint = np.eye(3)[user].T @ predictions / 12
    with np.errstate(divide="ignore"):
        found = float(MutualInformation()(np.eye(3)[user], np.log(predictions)))
    assert found == pytest.approx(mutual_information(Joint(joint)) * np.log(2), abs=1e-6)
    relabelled = float(MutualInformation()(np.eye(3)[user], np.log(predictions[:, [2, 0, 1]])))
    assert relabelled == pytest.approx(found, abs=1e-6)


def test_the_cross_entropy_payoff_is_the_mean_log_of_the_right_guess_and_has_no_lower_end() -> None:
    predictions = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(predictions)
    assert float(CrossEntropy()(np.eye(2)[[0, 1, 0]], logs)) == pytest.approx((np.log(0.5) + np.log(0.75)) / 3)
    assert float(CrossEntropy()(np.eye(2)[[0, 1, 1]], logs)) == -np.inf


def test_alice_and_bob_swap_for_ever_under_cross_entropy_and_settle_under_mutual_information() -> None:
    assert alice_and_bob.play(alice_and_bob.PAYOFFS["success probability"], max_loss_m=100, rounds=6) == [0, 1, 0, 1, 0, 1, 0]
    swapping = alice_and_bob.play(alice_and_bob.PAYOFFS["cross entropy"], max_loss_m=100, rounds=12)
    assert {0.0, 1.0} <= set(swapping) and swapping[-6:].count(swapping[-1]) <= 3
    assert alice_and_bob.play(alice_and_bob.PAYOFFS["mutual information"], max_loss_m=100, rounds=6)[1:] == [0.5] * 6
    assert alice_and_bob.play(alice_and_bob.PAYOFFS["mutual information"], max_loss_m=40, rounds=6)[1:] == [0.4] * 6


@pytest.mark.parametrize("payoff", [CrossEntropy(), MutualInformation()])
def test_a_classifier_learns_on_either_payoff(payoff: Any) -> None:
    """Two users a unit apart can be told apart: I(X;Y) rises from near 0 to near ln 2 = 0.69 nats, under any names of the guesses."""
    import jax
    import jax.numpy as jnp

    from sfumato.nets import forward
    from sfumato.solver.game.chance import first_net
    from sfumato.solver.game.train import ADAM, fit_classifier

    random = np.random.default_rng(0)
    user = jnp.asarray(np.repeat([0, 1], 64))
    reports = jnp.asarray((random.normal(0.0, 0.1, (128, 2)) + np.asarray(user)[:, None]).astype(np.float32))
    order = jnp.asarray(random.permuted(np.broadcast_to(np.arange(128), (60, 128)), axis=1))
    first = first_net(random, (2, 8, 2))

    def information(net: Any) -> float:
        return float(MutualInformation()(np.eye(2)[np.asarray(user)], jax.nn.log_softmax(forward(net, reports))))

    net, *_ = fit_classifier(first, ADAM.init(first), reports, user, order, payoff=payoff, rate=0.02, batch=64, short=False)
    assert information(first) < 0.1 and information(net) > 0.6


# Against the optimum, and other losses -----------------------------------------------------------------


def test_no_game_beats_the_proven_optimum() -> None:
    problem = _problem()
    optimum = solve(problem, Exact(gap=1e-3, plane=False))
    learned = solve(problem, replace(TINY, rounds=12, turns=6, generator_rate=5e-3), seed=1)
    assert learned.loss <= 90 * (1 + 1e-9)
    assert 0.05 < learned.measured.bayes_error.value <= 1 - optimum.leakage + 1e-3 + 1e-9


def _eastward(truth: Any, report: Any) -> Any:
    """A user's own loss: east and west weigh three times as much."""
    return (9 * (truth[..., 0] - report[..., 0]) ** 2 + (truth[..., 1] - report[..., 1]) ** 2) ** 0.5


@pytest.mark.parametrize(("loss", "budget"), [(squared, 8000.0), (_eastward, 180.0)])
def test_any_differentiable_loss_can_be_kept(loss: Any, budget: float) -> None:
    found = solve(_problem(loss=loss, max_loss=budget, region=REGION), replace(TINY, lattices=(0.0,), start_loss_m=80.0, rounds=2))
    assert found.loss <= budget and np.isfinite(found.history[-1]["payoff"])


def test_a_report_at_the_truth_has_a_loss_and_no_slope() -> None:
    import jax
    import jax.numpy as jnp

    from sfumato.mechanism.law import euclidean
    from sfumato.solver.game.train import smooth_loss

    truth = jnp.array([[0.0, 0.0], [0.0, 0.0]])
    report = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    slope = jax.grad(lambda report: smooth_loss(euclidean, truth, report).sum())(report)
    assert smooth_loss(euclidean, truth, report).tolist() == [0, 5]
    assert np.allclose(slope, [[0, 0], [0.6, 0.8]], atol=1e-6)


# Settings and the command line -------------------------------------------------------------------------


def test_the_papers_recipe_is_as_printed() -> None:
    one, two = Game.paper(1), Game.paper(2)
    assert (one.classifier_hidden, one.generator_hidden) == ((60, 100, 51), (100, 100, 100))
    assert (one.classifier_epochs, one.classifier_batch, one.classifier_rate) == (3000, 512, 0.001)
    assert (one.generator_epochs, one.generator_batch, one.generator_rate) == (100, 128, 0.0001)
    assert (two.generator_epochs, two.generator_batch, two.generator_rate) == (30, 512, 0.0001)
    assert one.restart_classifier and not one.calibrate and isinstance(one.budget, Softplus)
    assert (one.budget.alpha, one.budget.beta) == (1, 2)
    assert isinstance(two.budget, Softplus) and one.budget.unit * 270 == two.budget.unit * 173 == pytest.approx(1)  # metres
    with pytest.raises(ProblemError, match="experiments 1 to 4"):
        Game.paper(5)


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"validation": 1.0}, {"validation": float("nan")}, {"lattices": ()}, {"generator_rate": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        replace(TINY, **wrong)


def test_a_run_on_the_command_line_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    from sfumato import cli

    monkeypatch.setitem(SOLVERS, "game", lambda: replace(TINY, lattices=(1.0,), rounds=3))

    def run(*more: object) -> int:
        monkeypatch.setattr("sys.argv", ["sfumato", "solve", "four-corners", "--max-loss", "173", "--solver", "game", *map(str, more)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return int(left.value.code or 0)

    assert run("--out", tmp_path / "whole") == 0
    assert "round 3, lattice 175 m: payoff" in capsys.readouterr().err
    assert run("--out", tmp_path / "parted", "--time-limit", "0.001") == 0
    assert "Time limit: 1 of 3 rounds" in capsys.readouterr().out
    assert run("--resume", tmp_path / "parted") == 0
    assert (tmp_path / "parted" / "mechanism.npz").read_bytes() == (tmp_path / "whole" / "mechanism.npz").read_bytes()
    assert run("--resume", tmp_path / "none") != 0
    assert run("--resume", tmp_path / "whole", "--out", tmp_path / "other") != 0
    assert run() != 0
