"""Runs with a hard cap go through every command; what is estimated is never printed as proved or
exact."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sfumato.data.samples import Samples
from sfumato.mechanism.loss import squared
from sfumato.solver import Exact, Laplace, Problem
from sfumato.study.solve import solve

CAPPED = ("--max-loss", 120, "--max-distance", 150, "--cell-m", 20)


@pytest.fixture
def apart(tmp_path):
    """Two users in two clouds a kilometre apart, so that a cap of 150 m leaves cells between them
    out."""
    random = np.random.default_rng(0)
    rows = ["user,x,y"]
    for user in ("anna", "ben"):
        for centre in (0.0, 1000.0):
            rows += [f"{user},{centre + x:.1f},{y:.1f}" for x, y in random.normal(0, 60, (12, 2))]
    path = tmp_path / "apart.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_capped_run_is_certified_and_compared(sfumato, apart, tmp_path):
    run = tmp_path / "run"
    assert sfumato("solve", apart, *CAPPED, "--solver", "exact", "--out", run).code == 0
    certified = sfumato("certify", run, "--json")
    assert (
        certified.code == 0
        and certified.document["bound_plane"] is None
        and certified.document["gap"] < 0.01
    )
    assert sfumato("compare", run).code == 0


def test_test_points_beyond_the_cap_are_said_and_the_run_is_kept(sfumato, apart, tmp_path):
    with apart.open("a") as file:
        file.write("anna,500,3000\n")
    run = tmp_path / "run"
    ended = sfumato(
        "solve", apart, "--per-user", "4+20", *CAPPED, "--solver", "exact", "--out", run
    )
    assert ended.code == 0 and (run / "run.json").exists(), ended.err
    assert (
        "note: not measured on the test data" in ended.err and "no report within 150 m" in ended.err
    )


def test_a_bound_is_not_worked_out_from_a_table_of_hits(sfumato, tmp_path):
    random = np.random.default_rng(1)
    rows = [
        f"{user},{x:.1f},{y:.1f}" for user in ("a", "b") for x, y in random.normal(0, 500, (50, 2))
    ]
    (tmp_path / "pairs.csv").write_text("user,x,y\n" + "\n".join(rows) + "\n")
    ended = sfumato("measure", tmp_path / "pairs.csv", "--json")
    assert (
        ended.document["santhi_vardy_bound"] is None
        and ended.document["kind_of_these"] == "estimate"
    )
    assert "min-entropy leakage ≈" in sfumato("measure", tmp_path / "pairs.csv", "--details").out


def test_the_smallest_loss_is_not_claimed_where_time_ran_out(sfumato, apart, tmp_path):
    asked = (
        "solve",
        apart,
        "--min-bayes-error",
        0.4,
        "--cell-m",
        20,
        "--replace",
        "--out",
        tmp_path / "run",
    )
    assert (
        "Time limit: a loss for a Bayes error of 0.4" in sfumato(*asked, "--time-limit", 0.001).out
    )
    assert "Smallest loss for a Bayes error of 0.4" in sfumato(*asked).out
    refused = sfumato(
        "solve", apart, "--min-bayes-error", 0.9, "--cell-m", 20, "--out", tmp_path / "none"
    )
    assert (
        refused.code == 2
        and "a Bayes error of 0.9 cannot be reached; the largest possible is 0.5" in refused.err
    )


def test_a_sampled_loss_about_the_budget_is_not_over_it(sfumato, apart, tmp_path):
    ended = sfumato(
        "solve",
        apart,
        "--max-loss",
        20_000,
        "--cell-m",
        5,
        "--solver",
        "laplace",
        "--out",
        tmp_path / "run",
    )
    assert "≈" in ended.out and "exceeded" not in ended.out
    compared = sfumato("compare", tmp_path / "run").out
    assert "!" not in compared.splitlines()[1] and "≈" in compared.splitlines()[1].split()[1]


def test_data_does_not_overwrite_what_it_reads(sfumato, apart):
    before = apart.read_text()
    ended = sfumato("data", apart, "--per-user", "5+5", "--out", apart)
    assert (
        ended.code == 2 and "is the file that is read" in ended.err and apart.read_text() == before
    )


def test_the_better_of_two_certificates_counts_for_both(sfumato, apart, tmp_path):
    for name, seconds in (("hurried", 1e-9), ("whole", 60)):
        asked = ("--max-loss", 120, "--cell-m", 20, "--solver", "exact", "--time-limit", seconds)
        assert sfumato("solve", apart, *asked, "--out", tmp_path / name).code == 0
    rows = sfumato("compare", tmp_path / "hurried", tmp_path / "whole", "--json").document[
        "mechanisms"
    ]
    assert (
        rows[1]["proved_on_training_data"]["gap"] < 0.01 < rows[0]["proved_on_training_data"]["gap"]
    )


@pytest.mark.parametrize("gap", [0, -1, "nan"])
def test_a_gap_that_is_none_is_refused(sfumato, apart, tmp_path, gap):
    assert (
        sfumato(
            "solve",
            apart,
            "--max-loss",
            120,
            "--cell-m",
            50,
            "--solver",
            "coin",
            "--out",
            tmp_path / "run",
        ).code
        == 0
    )
    assert sfumato("certify", tmp_path / "run", "--gap", gap).code == 2


def test_squared_losses_are_calibrated_and_capped_in_their_own_unit():
    random = np.random.default_rng(0)
    data = Samples(np.arange(40) % 2, random.normal(0, 200, (40, 2)), ("a", "b"))
    noise = solve(Problem(data, max_loss=100.0**2, loss=squared, cell_m=25), Laplace())
    assert noise.measured.loss.value == pytest.approx(100.0**2, rel=2e-4)
    capped = solve(
        Problem(data, max_loss=150.0**2, max_distance=200.0**2, loss=squared, cell_m=50), Exact()
    )
    new = random.normal(0, 200, (300, 2))
    near = np.linalg.norm(new[:, None] - data.truth, axis=2).min(axis=1) < 20
    assert (
        np.linalg.norm(capped.mechanism.sample(new[near], seed=0) - new[near], axis=1).max() <= 200
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--seed", 99999999999999999999), ["--seed"]),
        (("--users", "zed\nyan"), ["no user 'zed'"]),
        (("--lat", "x", "--lon", "x"), ["'x'", "--lat", "--lon"]),
        (("--user-max-loss", "=50"), ["not a budget"]),
    ],
)
def test_an_option_that_makes_no_sense_is_named_and_code_2(sfumato, apart, tmp_path, asked, words):
    ended = sfumato("solve", apart, "--max-loss", 120, *asked, "--out", tmp_path / "run")
    assert ended.code == 2 and all(word in ended.err for word in words), ended.err
    assert not (tmp_path / "run").exists()


def test_a_file_named_like_an_option_keeps_its_name(sfumato, apart, tmp_path):
    named = apart.rename(tmp_path / "top_users.csv")
    assert (
        "error: top_users.csv: "
        in sfumato(
            "solve", named, "--users", "zed", "--max-loss", 120, "--out", tmp_path / "run"
        ).err
    )


@pytest.mark.parametrize("streams", ["narrow", "closed"])
def test_a_terminal_without_arrows_or_without_errors_is_no_reason_to_stop(apart, tmp_path, streams):
    command = (
        f"{sys.executable} -m sfumato solve {apart} --max-loss 120 --solver coin --out"
        f" {tmp_path / 'run'}"
    )
    narrow = {**os.environ, "PYTHONIOENCODING": "cp1252"} if streams == "narrow" else None
    ended = subprocess.run(
        command + (" 2>&-" if streams == "closed" else ""),
        check=False,
        shell=True,
        env=narrow,
        capture_output=True,
    )
    assert ended.returncode == 0 and b"Bayes error" in ended.stdout, ended.stderr
    assert (tmp_path / "run" / "run.json").exists()
