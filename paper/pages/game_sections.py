"""Sections of game.md that come from the side experiments: ablation, readings, cross entropy, Alice
and Bob, ten users."""

from pathlib import Path
from statistics import median
from typing import Any

from sfumato.files import read_json

_SURE = 0.02  # a difference below it is not called one
# What the paper says, the changed run, the run to compare with, the figure, and the sign of
# (changed - compared) if it is so.
_CLAIMS = (
    (
        "restarting C is better than going on with it",
        "C goes on from the last round",
        "base",
        "validation_bayes_error",
        -1,
    ),
    (
        "the same, 30 epochs for C",
        "C: 30 epochs, goes on from the last round",
        "C: 30 epochs",
        "validation_bayes_error",
        -1,
    ),
    (
        "a spread-out G_0 helps: less noise is worse",
        "G_0 with a quarter of the noise",
        "base",
        "validation_bayes_error",
        -1,
    ),
    (
        "a spread-out G_0 helps: more noise is better",
        "G_0 with twice the noise",
        "base",
        "validation_bayes_error",
        1,
    ),
    (
        "small batches of G make the constraint too strict: less loss",
        "G in batches of 32, as many steps",
        "base",
        "loss",
        -1,
    ),
    ("large ones loosen it: more loss", "G in one batch of all, as many steps", "base", "loss", 1),
    ("too few epochs for C hide worse", "C: 30 epochs", "base", "validation_bayes_error", -1),
    (
        "too many epochs overfit: training above validation accuracy",
        "C: 3000 epochs",
        "base",
        "overfit",
        1,
    ),
    (
        "C is better trained on cross entropy than on mutual information",
        "C on mutual information",
        "base",
        "validation_bayes_error",
        -1,
    ),
)
_SCALE = {"loss": 173.0}


def _figure(runs: list[dict[str, Any]], key: str) -> float:
    if key == "overfit":
        return median(run["accuracy_train"] - run["accuracy_validation"] for run in runs)
    return median(run[key] for run in runs)


def ablation(folder: Path) -> list[str]:
    """The paper's side claims, and what happens with other readings of what it does not print."""
    if not (folder / "ablation.json").exists():
        return []
    document = read_json(folder / "ablation.json", what="the ablation table")
    runs = {name: entry["runs"] for name, entry in document["runs"].items()}
    lines = [
        "## Side claims of the paper, experiment 2",
        "",
        "Made by `python -m paper.runs.ablation`. `Game.paper(2)` with 300 of 3000 classifier",
    ]
    lines += [
        f"epochs unless said, one thing changed; means over the last {document['last']} of"
        f" {document['rounds']} rounds, median over seeds."
    ]
    lines += [
        (
            f"A difference below {_SURE} (of the budget, for losses) is not called one; the"
            " readings have one seed and are hints."
        ),
        "",
    ]
    lines += [
        "| the paper says | changed | compared with | figure | changed: | compared: | |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim, changed, compared, key, sign in _CLAIMS:
        if changed in runs and compared in runs:
            one, other = _figure(runs[changed], key), _figure(runs[compared], key)
            moved = sign * (one - other) / _SCALE.get(key, 1.0)
            verdict = (
                "holds"
                if moved > _SURE
                else (
                    "does not hold: the other way"
                    if moved < -_SURE
                    else "does not hold: no difference"
                )
            )
            digits = 1 if key == "loss" else 3
            label = key.replace("_", " ")
            lines.append(
                f"| {claim} | {changed} | {compared} | {label} | {one:.{digits}f} |"
                f" {other:.{digits}f} | {verdict} |"
            )
    lines += [
        "",
        (
            "All runs. *Score* is the Bayes error of the best round after calibration to the"
            " budget; all figures on validation points."
        ),
        "",
    ]
    lines += [
        "| run | seeds | B(X\\|Z) ↑ | best score ↑ | loss, m | classifier, training | validation |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in runs.items():
        keys = (
            ("validation_bayes_error", 3),
            ("best_score", 3),
            ("loss", 1),
            ("accuracy_train", 2),
            ("accuracy_validation", 2),
        )
        cells = " | ".join(f"{_figure(entry, key):.{digits}f}" for key, digits in keys)
        lines.append(f"| {name} | {', '.join(str(run['seed']) for run in entry)} | {cells} |")
    return [*lines, ""]


def swapping(folder: Path) -> list[str]:
    """Cross entropy as payoff beside mutual information."""
    if not (folder / "cross_entropy.json").exists():
        return []
    document = read_json(folder / "cross_entropy.json", what="the curves of cross entropy")
    lines = [
        "## Cross entropy as payoff",
        "",
        f"Made by `python -m paper.runs.cross_entropy`; {document['classifier_epochs']} epochs for C.",
    ]
    lines += [
        "Over the last half of the rounds, lowest to highest. The paper: accuracy 1, Bayes error 0,"
        " without end."
    ]
    lines += ["Why ours differs, and where it does not: paper/deviations.md, 28.", ""]
    lines += [
        (
            "| experiment | payoff | seed | new classifier's accuracy, validation | B(X\\|Z),"
            " validation | loss, m |"
        ),
        "|---" * 6 + "|",
    ]
    for number, games in document["experiments"].items():
        lines += [
            f"| {number} | {name} | 0 | {_ranges(game['history'])} |"
            for name, game in games.items()
        ]
        more = document.get("further", {}).get(number, {})
        lines += [
            f"| {number} | cross entropy | {seed} | {_ranges(history)} |"
            for seed, history in more.items()
        ]
    lines += [
        "",
        "Round by round, seed 0: accuracy of the new classifier, and B(X|Z) after the round.",
        "",
    ]
    columns = [
        (number, name) for number, games in document["experiments"].items() for name in games
    ]
    lines += [
        "| round | " + " | ".join(f"{number}, {name}" for number, name in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for index in range(document["rounds"]):
        told = (document["experiments"][number][name]["history"][index] for number, name in columns)
        cells = " | ".join(
            f"{line['accuracy_validation']:.2f}, {line['validation_bayes_error']:.2f}"
            for line in told
        )
        lines.append(f"| {index + 1} | {cells} |")
    lines += [""]
    for number in document["experiments"]:
        if (folder / f"swapping_{number}.png").exists():
            lines += [
                (
                    "![The reports of four users after some rounds of cross entropy, experiment"
                    f" {number}](swapping_{number}.png)"
                ),
                "",
            ]
    return lines


def _ranges(history: list[dict[str, Any]]) -> str:
    """Lowest to highest over the last half of the rounds."""
    last = history[len(history) // 2 :]
    keys = (("accuracy_validation", 2), ("validation_bayes_error", 2), ("loss", 0))
    return " | ".join(
        f"{min(one[key] for one in last):.{digits}f} to {max(one[key] for one in last):.{digits}f}"
        for key, digits in keys
    )


def alice(folder: Path) -> list[str]:
    """The two-person game."""
    document = read_json(folder / "alice_and_bob.json", what="the game of Alice and Bob")
    lines = [
        "## Alice and Bob",
        "",
        "The chance to swap after each round.",
        "",
        "| budget | payoff | chance to swap |",
        "|---|---|---|",
    ]
    for budget, games in document["chance_to_swap"].items():
        lines += [
            f"| {budget} | {name} | {', '.join(f'{chance:g}' for chance in history)} |"
            for name, history in games.items()
        ]
    return [*lines, ""]


def ten_users(folder: Path) -> list[str]:
    """A fixed time on ten users with 5,000 points each."""
    if not (folder / "ten_users.json").exists():
        return []
    document = read_json(folder / "ten_users.json", what="the game of ten users")
    lines = [
        "## Ten users, 5,000 points each",
        "",
        "Made by `python -m paper.runs.ten_users`: made-up users, a fixed time for `Game()`.",
    ]
    lines += [
        (
            f"Budget {document['max_loss_m']:g} m; a blind guess errs 0.9 of the time. Exact on 25"
            " m cells, test points."
        ),
        "",
    ]
    lines += [
        "| mechanism | seconds | rounds | loss test, m | B(X\\|Z) ↑ | information, bits ↓ |",
        "|---|---|---|---|---|---|",
    ]
    for row in document["rows"]:
        figures = f"{row['loss_m']:.1f} | {row['bayes_error']:.3f} | {row['information_bits']:.3f}"
        lines.append(
            f"| {row['name']} | {row['seconds']:.0f} | {row['rounds'] or ''} | {figures} |"
        )
    return [*lines, ""]
