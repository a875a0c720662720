"""The steps of `make paper`, what each is expected to take on one core, and which a folder holds
already: one place for all three."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper.experiments import EPOCHS, EXPERIMENTS, NUMBERS, SEEDS, SYNTHETIC
from paper.runs import (
    ablation,
    alice_and_bob,
    bracket,
    coverage,
    cross_entropy,
    draws,
    game_tables,
    laplace_tables,
    learned,
    linked,
    no_noise,
    optimum,
    optimum_test,
    overlap,
    precision,
    pws_cup,
    readings,
    ten_users,
    to_come,
    weeks,
)
from paper.runs import columns as of_codebook_and_coin
from paper.tables import say
from sfumato.files import read_json
from sfumato.solver import Game

_OPTIMUM_SECONDS = {
    (2, "bayes"): 40,
    (4, "bayes"): 30,
    (2, "information"): 200,
    (4, "information"): 25,
}
_COLUMN_SECONDS = {1: 30, 2: 45, 3: 10, 4: 25}
_GAME_SECONDS = {"game": {1: 60, 2: 40, 3: 60, 4: 60}, "paper": {1: 500, 2: 150, 3: 600, 4: 600}}


@dataclass(frozen=True)
class Step:
    """A part of the reproduction: its name, expected seconds, whether a folder holds it, how it is
    run, and whether it reads Gowalla check-ins."""

    name: str
    seconds: float
    done: Callable[[Path], bool]
    run: Callable[[Path], Any]
    gowalla: bool = False


def _document(folder: Path, name: str) -> dict[str, Any]:
    return read_json(folder / name, what="results of a run") if (folder / name).exists() else {}


def _there(name: str) -> Callable[[Path], bool]:
    return lambda folder: (folder / name).exists()


def _with_seeds(name: str, seeds: tuple[int, ...]) -> Callable[[Path], bool]:
    return lambda folder: set(seeds) <= set(_document(folder, name).get("seeds", []))


def _with_rows(name: str, wanted: Iterable[dict[str, Any]]) -> Callable[[Path], bool]:
    """Whether each wanted row is there: one that agrees in all that is named."""
    every = list(wanted)

    def done(folder: Path) -> bool:
        rows = _document(folder, name).get("rows", [])
        return all(any(row.items() >= one.items() for row in rows) for one in every)

    return done


def _optimum(number: int, objective: str, seed: int) -> Step:
    return Step(
        f"optimum, experiment {number}, {objective}, seed {seed}",
        _OPTIMUM_SECONDS[number, objective],
        _with_rows("optimum.json", [{"experiment": number, "objective": objective, "seed": seed}]),
        lambda folder: optimum.main(folder, (seed,), (objective,), experiments=(number,)),
        number not in SYNTHETIC,
    )


def _ceilings(seed: int, experiments: tuple[int, ...]) -> Step:
    wanted = [
        {"experiment": number, "seed": seed, "settings": optimum_test.SETTINGS}
        for number in experiments
    ]
    done = _with_rows("optimum_test.json", wanted)
    return Step(
        f"ceilings on test data, seed {seed}",
        30,
        done,
        lambda folder: optimum_test.main(folder, (seed,), experiments),
        not set(experiments) <= set(SYNTHETIC),
    )


def _columns(number: int, seed: int) -> Step:
    wanted = [
        {
            "experiment": number,
            "solver": name,
            "seed": seed,
            "settings": repr(of_codebook_and_coin.solver(name, number)),
        }
        for name in of_codebook_and_coin.SOLVERS
    ]
    return Step(
        f"codebook and coin, experiment {number}, seed {seed}",
        _COLUMN_SECONDS[number],
        _with_rows("columns.json", wanted),
        lambda folder: of_codebook_and_coin.main(folder, (seed,), experiments=(number,)),
        number not in SYNTHETIC,
    )


def _game(recipe: str, number: int, seed: int) -> Step:
    epochs = EPOCHS.get(number) if recipe == "paper" else None
    game = Game() if recipe == "game" else Game.paper(number)
    game = game if epochs is None else game.changed(classifier_epochs=epochs)
    return Step(
        f"{'Game()' if recipe == 'game' else f'Game.paper({number})'}, experiment {number}, seed"
        f" {seed}",
        _GAME_SECONDS[recipe][number],
        lambda folder: (
            seed
            in [
                run["seed"] for run in game_tables.earlier(folder / f"{recipe}_{number}.json", game)
            ]
        ),
        lambda folder: game_tables.main(
            folder, (seed,), experiments=(number,), recipe=recipe, classifier_epochs=epochs
        ),
        number not in SYNTHETIC,
    )


def _side_claims(folder: Path) -> bool:
    there = _document(folder, "ablation.json").get("runs", {})
    return all(
        name in there
        and there[name]["settings"] == repr(game)
        and len(there[name]["runs"]) >= count
        for name, (_, game, count) in ablation.games().items()
    )


def _of_rows(
    name: str,
    seconds: float,
    file: str,
    rows: list[dict[str, Any]],
    run: Callable[[Path], Any],
) -> Step:
    """The rows of a file, of real data, each of which takes some seconds."""
    return Step(name, seconds * len(rows), _with_rows(file, rows), run, True)


def tables(
    seeds: tuple[int, ...] = SEEDS, experiments: tuple[int, ...] = NUMBERS, *, paper: bool = False
) -> list[Step]:
    """What the tables of some experiments hold; `Game.paper`, which takes longest, where `paper`
    asks for it."""
    data = tuple(dict.fromkeys(EXPERIMENTS[number - 1].data for number in experiments))
    real = "gowalla" in data
    found = [
        Step(
            "no noise",
            3,
            _with_seeds("no_noise.json", seeds),
            lambda folder: no_noise.main(folder, seeds, data),
            real,
        ),
        Step(
            "planar Laplace",
            25.0 * len(seeds) * len(experiments) / len(NUMBERS),
            _with_seeds("laplace.json", seeds),
            lambda folder: laplace_tables.main(folder, seeds, experiments),
            real,
        ),
    ]
    for seed in seeds:
        found += [_optimum(number, "bayes", seed) for number in (2, 4) if number in experiments]
        found += [
            _ceilings(seed, experiments),
            *(_columns(number, seed) for number in experiments),
        ]
        found += [_game("game", number, seed) for number in experiments]
    return found + [
        _game("paper", number, seed) for number in experiments for seed in seeds if paper
    ]


def steps(seeds: tuple[int, ...] = SEEDS, *, quick: bool = False) -> list[Step]:
    """Everything, the tables first; quick leaves out the readings, information as objective,
    `Game.paper` and the side experiments."""
    found = tables(seeds)
    found.insert(2, Step("Alice and Bob", 1, _there("alice_and_bob.json"), alice_and_bob.main))
    if quick:
        return found
    found.append(
        Step(
            "readings",
            60.0 * len(seeds),
            _with_seeds("readings.json", seeds),
            lambda folder: readings.main(folder, seeds),
            True,
        )
    )
    found += [_optimum(number, "information", seed) for number in (2, 4) for seed in seeds]
    keys = ("data", "experiment", "max_loss_m", "objective", "recipe", "seed", "settings")
    jobs = [
        dict(zip(keys, (*job, seed, repr(learned.settings(job[-1], job[1]))), strict=True))
        for job in learned.jobs()
        for seed in seeds
    ]
    weights = [
        {"weight": weight, "seed": seed, "settings": overlap.SETTINGS}
        for weight in overlap.WEIGHTS
        for seed in overlap.DRAWS
    ]
    further = [
        {"recipe": kind, "seed": seed, "settings": draws.SETTINGS}
        for kind in draws.KINDS
        for seed in draws.DRAWS
    ]
    ahead = [
        {"setting": name, "draw": number, "settings": to_come.SOLVER}
        for name, setting in to_come.SETTINGS.items()
        for number in setting.draws
    ]
    cups = [{"name": name} for name in pws_cup.names()]
    games = sum(count for _, _, count in ablation.games().values())
    return [
        *found,
        _of_rows(
            "the codebook beside the bounds",
            35.0,
            "learned.json",
            jobs,
            lambda folder: learned.main(folder, seeds),
        ),
        _of_rows("overlap", 15.0, "overlap.json", weights, overlap.main),
        _of_rows("check-ins to come", 70.0, "to_come.json", ahead, to_come.main),
        _of_rows(
            "brackets for check-ins to come", 150.0, "bracket.json", bracket.wanted(), bracket.main
        ),
        _of_rows("further draws", 25.0, "draws.json", further, draws.main),
        _of_rows("linked reports", 35.0, "linked.json", linked.wanted(), linked.main),
        _of_rows("PWS Cup", 20.0, "pws_cup.json", cups, pws_cup.main),
        Step(
            "Foursquare weeks",
            8.0 * len(weeks.wanted()) + 50.0 * len(weeks.wanted_ways()),
            lambda folder: (
                _with_rows("weeks.json", weeks.wanted())(folder)
                and _with_rows("weeks_ways.json", weeks.wanted_ways())(folder)
            ),
            weeks.main,
            True,
        ),
        *(_game("paper", number, seed) for number in (2, 1, 4, 3) for seed in seeds),
        Step("cross entropy", 1500, _further_seeds, cross_entropy.main),
        Step("coverage", 150, _there("coverage.json"), coverage.main),
        Step("precision", 25, _there("precision.json"), precision.main),
        Step("ten users", 600, _there("ten_users.json"), ten_users.main),
        Step("side claims", 80.0 * games, _side_claims, ablation.main),
    ]


def _further_seeds(folder: Path) -> bool:
    further = _document(folder, "cross_entropy.json").get("further", {})
    return all(
        str(seed) in further.get(number, {})
        for number in ("1", "2")
        for seed in cross_entropy.FURTHER
    )


def carry_out(todo: list[Step], folder: Path) -> None:
    """Run what the folder does not hold; before each step the time left, at the pace so far."""
    todo = [step for step in todo if not step.done(folder)]
    spent, expected = 0.0, 0.0
    for number, step in enumerate(todo):
        pace = spent / expected if expected >= 60 else 1.0
        left = pace * sum(one.seconds for one in todo[number:])
        say(
            f"[{number + 1}/{len(todo)}] {step.name}; about"
            f" {f'{left / 3600:.1f} hours' if left > 5400 else f'{left / 60:.0f} min'} left"
        )
        clock = time.monotonic()
        step.run(folder)
        spent, expected = spent + time.monotonic() - clock, expected + step.seconds
