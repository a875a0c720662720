"""`make paper` does what is missing, no more, says how long it will take, and reads SNAP's own
file."""

import gzip
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paper.experiments import EXPERIMENTS, RESULTS, SEEDS, gowalla_file, load
from paper.runs import columns, game_run
from paper.steps import Step, carry_out, steps, tables
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import four_corners
from sfumato.files import read_json, write_json
from sfumato.solver import Game


def test_only_what_is_missing_is_run_and_the_time_left_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run: list[str] = []

    def step(name: str, seconds: float) -> Step:
        return Step(
            name,
            seconds,
            lambda folder: (folder / name).exists(),
            lambda folder: (run.append(name), (folder / name).touch()),
        )

    todo = [step("one", 600), step("two", 1200), step("three", 7200)]
    (tmp_path / "two").touch()
    carry_out(todo, tmp_path)
    assert run == ["one", "three"]
    told = capsys.readouterr().err
    assert (
        "[1/2] one; about 2.2 hours left" in told and "[2/2] three; about 0 min left" in told
    )  # no time was spent on the first
    carry_out(todo, tmp_path)
    assert run == ["one", "three"]


def test_a_seed_that_is_missing_is_noticed_and_so_are_other_settings(tmp_path: Path) -> None:
    for name in ("game_1.json", "columns.json"):
        shutil.copy(RESULTS / name, tmp_path)
    names = {step.name: step for step in steps()}
    document = read_json(tmp_path / "columns.json", what="columns")
    rows = [
        row | {"settings": repr(columns.solver(row["solver"], row["experiment"]))}
        for row in document["rows"]
    ]
    write_json(tmp_path / "columns.json", {"rows": rows})
    game, column = (
        names["Game(), experiment 1, seed 2"],
        names["codebook and coin, experiment 4, seed 1"],
    )
    assert (
        game.done(tmp_path)
        and column.done(tmp_path)
        and not names["Game(), experiment 2, seed 0"].done(tmp_path)
    )
    document = read_json(tmp_path / "game_1.json", what="a table of the game")
    stopped = {**document["runs"][0], "ended": "time limit"}
    write_json(tmp_path / "game_1.json", {**document, "runs": [stopped, document["runs"][1]]})
    assert not game.done(tmp_path) and names["Game(), experiment 1, seed 1"].done(tmp_path)
    assert not names["Game(), experiment 1, seed 0"].done(tmp_path)
    rows = [
        row | {"settings": "Codebook(places=2)"} if row["solver"] == "codebook" else row
        for row in rows
    ]
    write_json(tmp_path / "columns.json", {"rows": rows})
    assert not column.done(tmp_path)


def test_every_experiment_is_in_the_quick_run_with_one_seed() -> None:
    quick = [step.name for step in steps(SEEDS[:1], quick=True)]
    for number in (1, 2, 3, 4):
        assert {
            f"Game(), experiment {number}, seed 0",
            f"codebook and coin, experiment {number}, seed 0",
        } <= set(quick)
    assert {"optimum, experiment 2, bayes, seed 0", "optimum, experiment 4, bayes, seed 0"} <= set(
        quick
    )
    assert not any("seed 1" in name or "information" in name for name in quick)
    assert sum(step.seconds for step in steps(SEEDS[:1], quick=True)) < 15 * 60


def test_one_experiment_is_expected_to_take_what_the_readme_says() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    said = re.search(r"--experiment 2` runs one experiment \((\d+) minutes of one core[,)]", readme)
    assert said is not None
    expected = sum(step.seconds for step in tables(experiments=(2,), paper=True)) / 60
    assert 0.75 * int(said[1]) < expected < 1.25 * int(said[1])


def test_snaps_own_file_gives_the_same_selection(
    gowalla_paris: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = load("gowalla", 0)
    lines = gzip.decompress(gowalla_paris.read_bytes()).splitlines(keepends=True)
    far = b"0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"  # Austin
    user = lines[0].split(b"\t")[0]
    world = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
    with gzip.open(world, "wb") as out:
        out.write(far * 500)
        for line in lines:
            out.write(line)
            out.write(far.replace(b"0\t", user + b"\t", 1))  # people travel
    monkeypatch.setenv("SFUMATO_GOWALLA", str(world))
    assert gowalla_file() == world
    whole = load("gowalla", 0)
    assert whole.train.hash == cut.train.hash and whole.train.secrets == cut.train.secrets
    assert (
        whole.test is not None
        and cut.test is not None
        and np.array_equal(whole.test.truth, cut.test.truth)
    )
    monkeypatch.delenv("SFUMATO_GOWALLA")
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    assert gowalla_file() == world


def test_without_a_file_one_sentence_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from paper.__main__ import main

    monkeypatch.setattr(
        "sys.argv", ["paper", "--quick", "--gowalla", str(tmp_path / "nowhere.txt.gz")]
    )
    monkeypatch.setenv("SFUMATO_GOWALLA", "")
    assert main() == 2
    told = capsys.readouterr().err
    assert "nowhere.txt.gz" in told and "--gowalla" in told and len(told.splitlines()) == 1


@pytest.mark.parametrize("way", ["columns", "game"])
def test_nothing_that_the_reproduction_chooses_sees_test_data(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = four_corners(seed=3)
    train = data.train.take(np.arange(0, len(data.train), 12))
    assert data.test is not None
    poisoned = Samples.__new__(Samples)  # NaN is refused by the front door
    for name, value in vars(data.test).items():
        object.__setattr__(
            poisoned, name, np.full_like(value, np.nan) if name == "truth" else value
        )
    module, found = (columns if way == "columns" else game_run), []
    solve = module.solve

    class Chosen(Exception):
        """What comes after the choice is measured, and may see test data."""

    def kept(*arguments: object, **options: object) -> object:
        found.append(solve(*arguments, **options).mechanism.arrays())  # type: ignore[arg-type]
        raise Chosen

    monkeypatch.setattr(module, "solve", kept)
    small = replace(columns.solver("codebook", 2), places=8, steps=40, hidden=(8,), waves=4)
    monkeypatch.setattr(columns, "solver", lambda name, number: small)
    game = Game().changed(
        rounds=2,
        turns=2,
        lattices=(1.0,),
        classifier_reports=256,
        start_steps=20,
        generator_levels=16,
    )
    for test in (data.test, poisoned):
        monkeypatch.setattr(
            module, "load", lambda name, seed, test=test: Split(train=train, test=test)
        )
        with pytest.raises(Chosen):
            if way == "columns":
                columns.run(EXPERIMENTS[1], "codebook", 0)
            else:
                game_run.one_run(EXPERIMENTS[1], game, 0)
    assert found[0].keys() == found[1].keys() and all(
        np.array_equal(found[0][name], found[1][name]) for name in found[0]
    )
