"""Options of `sfumato solve` that only one solver knows: made from its settings."""

import json
from dataclasses import fields

import pytest

from sfumato.solver import SOLVERS

OFFERED = [
    (solver, field)
    for solver, settings in SOLVERS.items()
    for field in fields(settings)
    if field.metadata.get("option")
]


def test_the_help_of_an_option_is_the_documentation_of_its_field(sfumato):
    text = "".join(sfumato("solve", "-h").out.split())  # however its lines are broken
    assert {solver for solver, _ in OFFERED} == {"codebook", "exact", "game"}
    for solver, field in OFFERED:
        said = "".join(field.metadata["help"].split())
        assert f"{said[1:]}({solver})" in text


@pytest.mark.parametrize(("solver", "field"), OFFERED, ids=lambda one: getattr(one, "name", one))
def test_an_option_of_one_solver_is_refused_for_another(sfumato, tmp_path, solver, field):
    flag = f"--{field.name.replace('_', '-')}"
    given = (f"--no-{flag[2:]}",) if field.default is True else (flag, 1)
    ended = sfumato(
        *("solve", "four-corners", "--max-loss", 173, "--solver", "coin", *given),
        *("--out", tmp_path / "run"),
    )
    assert ended.code == 2
    assert f"{given[0]} is an option of --solver {solver}; got --solver coin" in ended.err
    assert not (tmp_path / "run").exists()


def test_options_reach_the_solver_and_its_record(sfumato, tmp_path):
    ended = sfumato(
        *("solve", "four-corners", "--max-loss", 400, "--cell-m", 400, "--solver", "exact"),
        *("--gap", 0.05, "--no-plane", "--out", tmp_path / "run"),
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


def test_closest_is_passed_on(sfumato, tmp_path):
    ended = sfumato(
        "solve",
        "four-corners",
        "--max-loss",
        173,
        "--closest",
        "--max-posterior",
        0.5,
        "--out",
        tmp_path / "run",
    )
    assert ended.code == 2
    assert "knows no worst-case limits" in ended.err
    assert not (tmp_path / "run").exists()


def test_options_of_the_codebook_are_refused_for_others(sfumato, tmp_path):
    for option in (("--closest",), ("--resampled-share", "0.2")):
        ended = sfumato(
            "solve",
            "four-corners",
            "--max-loss",
            173,
            "--solver",
            "exact",
            *option,
            "--out",
            tmp_path / "run",
        )
        assert ended.code == 2
        assert f"{option[0]} is an option of --solver codebook; got --solver exact" in ended.err


def test_a_refused_run_leaves_the_checkpoint_of_the_last_one(sfumato, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.npz").write_bytes(b"of an earlier run")
    for refused in (("--max-posterior", 0.1), ("--closest", "--max-posterior", 0.5)):
        ended = sfumato(
            "solve", "four-corners", "--max-loss", 173, *refused, "--out", tmp_path / "run"
        )
        assert ended.code == 2
        assert (tmp_path / "run" / "checkpoint.npz").read_bytes() == b"of an earlier run"
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint.npz"]
