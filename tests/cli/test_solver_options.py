"""Options of `sfumato solve` that only one solver knows: made from its settings."""

import json
from dataclasses import fields, is_dataclass

import pytest

from sfumato.solver import SOLVERS
from sfumato.solver.game import Game
from sfumato.study.folder import load_run
from sfumato.study.question import solver_of


def offered(settings, part=""):
    """The flag and the field of each setting that is an option, those of parts included."""
    for field in fields(settings):
        if field.metadata.get("option"):
            yield field.metadata["flag"] or f"--{part}{field.name}".replace("_", "-"), field
        if is_dataclass(field.default):
            yield from offered(field.default, f"{part}{field.name}-")


OFFERED = [
    (solver, flag, field)
    for solver, settings in SOLVERS.items()
    for flag, field in offered(settings)
]
VALUES = {"hidden": "8,8", "lattices": "0,0.5", "shown": "exact", "made_for": "new"}


def test_the_help_of_an_option_is_the_documentation_of_its_field(sfumato):
    text = "".join(sfumato("solve", "-h").out.split())  # however its lines are broken
    assert {solver for solver, _, _ in OFFERED} >= {"codebook", "exact", "game"}
    assert {"--classifier-epochs", "--generator-seeds"} <= {flag for _, flag, _ in OFFERED}
    for solver, _, field in OFFERED:
        said = "".join(field.metadata["help"].split())
        assert f"{said[1:]}({solver})" in text


@pytest.mark.parametrize(("solver", "flag", "field"), OFFERED, ids=lambda one: str(one)[:20])
def test_an_option_of_one_solver_is_refused_for_another(sfumato, tmp_path, solver, flag, field):
    given = (f"--no-{flag[2:]}",) if field.default is True else (flag, VALUES.get(field.name, 1))
    if field.default is False:
        given = (flag,)
    ended = sfumato(
        *("solve", "four-corners", "--max-loss", 173, "--solver", "coin", *given),
        *("--out", tmp_path / "run"),
    )
    assert ended.code == 2
    assert f"{given[0]} is an option of --solver {solver}; got --solver coin" in ended.err
    assert not (tmp_path / "run").exists()


def test_options_reach_the_solver_and_its_record(sfumato, tmp_path):
    ended = sfumato(
        *("solve", "four-corners", "--per-user", "20+5", "--max-loss", 400, "--cell-m", 400),
        *("--solver", "exact", "--gap", 0.05, "--no-plane", "--out", tmp_path / "run"),
    )
    assert ended.code == 0, ended.err
    record = json.loads((tmp_path / "run/run.json").read_text("utf-8"))
    assert record["settings"] == {"gap": 0.05, "plane": False}


@pytest.mark.parametrize(
    "given", [("--solver", "game", "--validation", "nan"), ("--blend", "2"), ("--steps", "0")]
)
def test_a_setting_that_makes_no_sense_is_refused_by_its_flag(sfumato, tmp_path, given):
    ended = sfumato(
        *("solve", "four-corners", "--max-loss", 173, *given, "--out", tmp_path / "run")
    )
    assert ended.code == 2 and given[-2] in ended.err
    assert not (tmp_path / "run").exists()


def test_options_of_the_games_nets_reach_it_and_its_record(sfumato, tmp_path):
    ended = sfumato(
        *("solve", "four-corners", "--per-user", "30+10", "--max-loss", 173, "--solver", "game"),
        *("--rounds", 1, "--turns", 1, "--lattices", "0", "--shown", "snapped"),
        *("--classifier-hidden", "8", "--classifier-reports", 100, "--generator-hidden", "8,8"),
        *("--generator-seeds", 2, "--generator-levels", 4, "--out", tmp_path / "run"),
    )
    assert ended.code == 0, ended.err
    game = Game(rounds=1, turns=1, lattices=(0.0,), shown="snapped").changed(
        classifier_hidden=(8,), classifier_reports=100, generator_hidden=(8, 8),
        generator_seeds=2, generator_levels=4,
    )  # fmt: skip
    assert solver_of(load_run(tmp_path / "run")) == game


def test_numbers_that_are_none_are_refused(sfumato, tmp_path):
    ended = sfumato(
        *("solve", "four-corners", "--max-loss", 173, "--solver", "game"),
        *("--generator-hidden", "8;8", "--out", tmp_path / "run"),
    )
    assert ended.code == 2 and "'8;8' is not whole numbers with commas" in ended.err


def test_a_confidence_is_not_asked_of_these_check_ins(sfumato, tmp_path):
    ended = sfumato(
        *("solve", "four-corners", "--max-loss", 173, "--for", "these", "--confidence", 0.95),
        *("--out", tmp_path / "run"),
    )
    assert ended.code == 2
    assert "--confidence is about check-ins to come" in ended.err
    assert not (tmp_path / "run").exists()


def test_a_refused_run_leaves_the_checkpoint_of_the_last_one(sfumato, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.npz").write_bytes(b"of an earlier run")
    for refused in (("--max-posterior", 0.1), ("--for", "these", "--confidence", 0.9)):
        ended = sfumato(
            "solve", "four-corners", "--max-loss", 173, *refused, "--out", tmp_path / "run"
        )
        assert ended.code == 2
        assert (tmp_path / "run" / "checkpoint.npz").read_bytes() == b"of an earlier run"
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint.npz"]


def test_stopped_learning_is_named_as_such(sfumato, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "checkpoint.npz").write_bytes(b"of a run that was killed")
    ended = sfumato("measure", run)
    assert ended.code == 2 and "learning that was stopped, and no run yet" in ended.err
    few = ("--per-user", 20, "--max-loss", 173, "--steps", 20, "--proof", "none")
    ended = sfumato("solve", "four-corners", *few, "--out", run)
    assert ended.code == 0, ended.err
    assert "holds learning that was stopped; this starts anew" in ended.err
    assert f"--resume {run} in place of --out" in ended.err


@pytest.mark.parametrize("name", ["snap", "android", "webkit"])
def test_the_rules_are_solvers_of_the_command(sfumato, tmp_path, name):
    run = tmp_path / name
    words = ("solve", "four-corners", "--per-user", "20+5", "--max-loss", 3000)
    ended = sfumato(*words, "--solver", name, "--out", run)
    assert ended.code == 0, ended.err
    assert solver_of(load_run(run)) == SOLVERS[name]()
    assert sfumato("compare", run).code == 0
