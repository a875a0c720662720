"""game.md, made from the JSON of game_tables, ablation, cross_entropy, alice_and_bob and ten_users.

python -m paper.pages.game
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.printed import targets
from paper.tables import spread, table
from sfumato.files import read_json, write_text

_WANTED = {1: 0.74, 2: 0.45, 3: 0.80, 4: 0.38}
_FINEST = "260 cells, 500 hits"
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
_ROWS = {
    "game": "as learned",
    "calibrated": "calibrated to the budget",
    "coin": "coin",
    "laplace": "planar Laplace",
}


def _name(document: dict[str, Any]) -> str:
    if document["recipe"] == "game":
        return "`Game()`"
    early = f", {document['classifier_epochs']} epochs" if "classifier_epochs" in document else ""
    return f"`Game.paper({document['experiment']})`{early}"


def _theirs(number: int) -> str:
    printed = [
        one
        for one in targets("learned")
        if (one.experiment, one.split, one.cells, one.hits) == (str(number), "test", 260, 500)
    ]
    return f"{printed[0].bayes_error:.2f}"


def _summary(documents: list[dict[str, Any]]) -> list[str]:
    lines = [
        (
            "| experiment | recipe | seeds | rounds | B(X\\|Z) ↑ | the net unsnapped ↑ | the"
            " paper's | wanted | loss train, m ↓ | loss test, m ↓ | budget, m | classifier ↓ |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for document in documents:
        runs, number = document["runs"], document["experiment"]
        own = document["recipe"] == "game"
        cells = [
            str(number),
            _name(document),
            ", ".join(map(str, document["seeds"])),
            ", ".join(str(run["rounds"]) for run in runs),
            spread([run["estimates"]["test"][_FINEST] for run in runs]),
            (
                spread(free)
                if (
                    free := [
                        run["unsnapped"]["test"][_FINEST] for run in runs if "unsnapped" in run
                    ]
                )
                else ""
            ),
            _theirs(number),
            f"{_WANTED[number]:.2f}" if own else "",
            spread([run["game"]["training_loss_m"] for run in runs], 1),
            spread([run["game"]["loss_m"] for run in runs], 1),
            f"{document['max_loss_m']:g}",
            spread([run["classifier"]["test"][0] for run in runs]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _beside(documents: list[dict[str, Any]]) -> list[str]:
    lines = [
        (
            "| experiment | recipe | mechanism | loss test, m ↓ | B(X\\|Z) test ↑ | information,"
            " bits ↓ |"
        ),
        "|---|---|---|---|---|---|",
    ]
    for document in documents:
        for name in ("game", "calibrated", "coin", "laplace"):
            figures = [run[name] for run in document["runs"] if name in run]
            if not figures:
                continue
            cells = [
                spread([one[key] for one in figures], digits)
                for key, digits in (("loss_m", 1), ("bayes_error", 3), ("information_bits", 3))
            ]
            lines.append(
                f"| {document['experiment']} | {_name(document)} | {_ROWS[name]} |"
                f" {' | '.join(cells)} |"
            )
    return [*lines, ""]


def _classifier(documents: list[dict[str, Any]]) -> list[str]:
    theirs = {"training": (0.55, 0.54), "validation": (0.53, 0.53), "test": (0.52, 0.51)}
    lines = [
        "| experiment | recipe | data | accuracy ↓ | F1 ↓ | theirs (experiment 2) |",
        "|---|---|---|---|---|---|",
    ]
    for document in documents:
        for split, printed in theirs.items():
            scores = [run["classifier"][split] for run in document["runs"]]
            cells = " | ".join(spread([one[place] for one in scores]) for place in (0, 1))
            other = f"{printed[0]:.2f}, {printed[1]:.2f}" if document["experiment"] == 2 else ""
            lines.append(
                f"| {document['experiment']} | {_name(document)} | {split} | {cells} | {other} |"
            )
    return [*lines, ""]


def _figure(runs: list[dict[str, Any]], key: str) -> float:
    if key == "overfit":
        return median(run["accuracy_train"] - run["accuracy_validation"] for run in runs)
    return median(run[key] for run in runs)


def _verdict(moved: float) -> str:
    if moved > _SURE:
        return "holds"
    return f"does not hold: {'the other way' if moved < -_SURE else 'no difference'}"


def _ablation(folder: Path) -> dict[str, Any] | None:
    """The paper's side claims, and what happens with other readings of what it does not print."""
    if not (folder / "ablation.json").exists():
        return None
    document = read_json(folder / "ablation.json", what="the ablation table")
    runs = {name: entry["runs"] for name, entry in document["runs"].items()}
    claims = []
    for claim, changed, compared, key, sign in _CLAIMS:
        if changed in runs and compared in runs:
            one, other = _figure(runs[changed], key), _figure(runs[compared], key)
            digits = 1 if key == "loss" else 3
            both = (f"{one:.{digits}f}", f"{other:.{digits}f}")
            verdict = _verdict(sign * (one - other) / _SCALE.get(key, 1.0))
            claims.append([claim, changed, compared, key.replace("_", " "), *both, verdict])
    keys = (
        ("validation_bayes_error", 3),
        ("best_score", 3),
        ("loss", 1),
        ("accuracy_train", 2),
        ("accuracy_validation", 2),
    )
    rows = [
        [
            name,
            ", ".join(str(run["seed"]) for run in entry),
            *(f"{_figure(entry, key):.{digits}f}" for key, digits in keys),
        ]
        for name, entry in runs.items()
    ]
    heads = ["the paper says", "changed", "compared with", "figure", "changed:", "compared:", ""]
    columns = ["run", "seeds", "B(X\\|Z) ↑", "best score ↑", "loss, m"]
    columns += ["classifier, training", "validation"]
    return {
        "last": document["last"],
        "rounds": document["rounds"],
        "sure": _SURE,
        "claims": "\n".join(table(heads, claims)),
        "runs": "\n".join(table(columns, rows)),
    }


def _swapping(folder: Path) -> dict[str, Any] | None:
    """Cross entropy as payoff beside mutual information."""
    if not (folder / "cross_entropy.json").exists():
        return None
    document = read_json(folder / "cross_entropy.json", what="the curves of cross entropy")
    experiments = document["experiments"]
    rows = []
    for number, games in experiments.items():
        rows += [[number, name, "0", *_ranges(game["history"])] for name, game in games.items()]
        more = document.get("further", {}).get(number, {})
        rows += [
            [number, "cross entropy", seed, *_ranges(history)] for seed, history in more.items()
        ]
    columns = [(number, name) for number, games in experiments.items() for name in games]
    rounds = []
    for index in range(document["rounds"]):
        lines = [experiments[number][name]["history"][index] for number, name in columns]
        rounds.append(
            [
                str(index + 1),
                *(
                    f"{line['accuracy_validation']:.2f}, {line['validation_bayes_error']:.2f}"
                    for line in lines
                ),
            ]
        )
    heads = ["experiment", "payoff", "seed", "new classifier's accuracy, validation"]
    heads += ["B(X\\|Z), validation", "loss, m"]
    titles = ["round", *(f"{number}, {name}" for number, name in columns)]
    return {
        "epochs": document["classifier_epochs"],
        "ranges": "\n".join(table(heads, rows)),
        "rounds": "\n".join(table(titles, rounds)),
        "pictures": [n for n in experiments if (folder / f"swapping_{n}.png").exists()],
    }


def _ranges(history: list[dict[str, Any]]) -> list[str]:
    """Lowest to highest over the last half of the rounds."""
    last = history[len(history) // 2 :]
    keys = (("accuracy_validation", 2), ("validation_bayes_error", 2), ("loss", 0))
    return [
        f"{min(one[key] for one in last):.{digits}f} to {max(one[key] for one in last):.{digits}f}"
        for key, digits in keys
    ]


def _alice(folder: Path) -> list[str]:
    """The two-person game."""
    document = read_json(folder / "alice_and_bob.json", what="the game of Alice and Bob")
    rows = [
        [budget, name, ", ".join(f"{chance:g}" for chance in history)]
        for budget, games in document["chance_to_swap"].items()
        for name, history in games.items()
    ]
    return table(["budget", "payoff", "chance to swap"], rows)


def _ten_users(folder: Path) -> dict[str, str] | None:
    """A fixed time on ten users with 5,000 points each."""
    if not (folder / "ten_users.json").exists():
        return None
    document = read_json(folder / "ten_users.json", what="the game of ten users")
    rows = [
        [
            row["name"],
            f"{row['seconds']:.0f}",
            str(row["rounds"] or ""),
            f"{row['loss_m']:.1f}",
            f"{row['bayes_error']:.3f}",
            f"{row['information_bits']:.3f}",
        ]
        for row in document["rows"]
    ]
    heads = ["mechanism", "seconds", "rounds", "loss test, m", "B(X\\|Z) ↑", "information, bits ↓"]
    return {"budget": f"{document['max_loss_m']:g}", "rows": "\n".join(table(heads, rows))}


def page(folder: Path = RESULTS) -> str:
    """Everything that was run, and only that."""
    names = [f"{recipe}_{number}.json" for number in (1, 2, 3, 4) for recipe in ("game", "paper")]
    documents = [
        read_json(folder / name, what="a table of the game")
        for name in names
        if (folder / name).exists()
    ]
    return filled(
        "game.md",
        summary=_summary(documents),
        beside=_beside(documents),
        classifier=_classifier(documents),
        ablation=_ablation(folder),
        swapping=_swapping(folder),
        alice=_alice(folder),
        ten_users=_ten_users(folder),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "game.md", page(folder))


if __name__ == "__main__":
    main()
