"""game.md, made from the JSON of game_tables, cross_entropy and alice_and_bob.

python -m paper.game_page
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import RESULTS
from paper.tables import rows_table
from sfumato.files import read_json, write_text

_WANTED = {1: 0.74, 2: 0.45, 3: 0.80, 4: 0.38}
_FINEST = "260 cells, 500 hits"


def _spread(values: list[float], digits: int = 3) -> str:
    return f"{median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _summary(documents: list[dict[str, Any]]) -> list[str]:
    lines = ["| experiment | recipe | seeds | rounds | B(X\\|Z) ↑ | wanted | loss train, m ↓ | loss test, m ↓ | budget, m | classifier ↓ |"]
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    for document in documents:
        runs, number = document["runs"], document["experiment"]
        own = document["recipe"] == "game"
        cells = [
            str(number),
            "`Game()`" if own else f"`Game.paper({number})`, " + ("stopped early" if "classifier_epochs" in document else "literal"),
            ", ".join(map(str, document["seeds"])),
            ", ".join(str(run["rounds"]) for run in runs),
            _spread([run["estimates"]["test"][_FINEST] for run in runs]),
            f"{_WANTED[number]:.2f}" if own else "",
            _spread([run["game"]["training_loss_m"] for run in runs], 1),
            _spread([run["game"]["loss_m"] for run in runs], 1),
            f"{document['max_loss_m']:g}",
            _spread([run["classifier"]["test"][0] for run in runs]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _beside(documents: list[dict[str, Any]]) -> list[str]:
    lines = ["| experiment | recipe | mechanism | loss test, m ↓ | B(X\\|Z) test ↑ | information, bits ↓ |", "|---|---|---|---|---|---|"]
    for document in documents:
        for name in ("game", "coin", "laplace"):
            figures = [run[name] for run in document["runs"]]
            cells = [
                _spread([one[key] for one in figures], digits)
                for key, digits in (("loss_m", 1), ("bayes_error", 3), ("information_bits", 3))
            ]
            lines.append(f"| {document['experiment']} | {document['recipe']} | {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _classifier(documents: list[dict[str, Any]]) -> list[str]:
    theirs = {"training": (0.55, 0.54), "validation": (0.53, 0.53), "test": (0.52, 0.51)}
    lines = ["| experiment | recipe | data | accuracy ↓ | F1 ↓ | theirs (experiment 2) |", "|---|---|---|---|---|---|"]
    for document in documents:
        for split, printed in theirs.items():
            scores = [run["classifier"][split] for run in document["runs"]]
            cells = " | ".join(_spread([one[place] for one in scores]) for place in (0, 1))
            other = f"{printed[0]:.2f}, {printed[1]:.2f}" if document["experiment"] == 2 else ""
            lines.append(f"| {document['experiment']} | {document['recipe']} | {split} | {cells} | {other} |")
    return [*lines, ""]


def _swapping(folder: Path) -> list[str]:
    if not (folder / "cross_entropy.json").exists():
        return []
    document = read_json(folder / "cross_entropy.json", what="the curves of cross entropy")
    lines = [
        "## Cross entropy as payoff",
        "",
        "Over the last half of the rounds, lowest to highest. The paper: accuracy 1, Bayes error 0, without end.",
        "",
    ]
    lines += ["| experiment | payoff | new classifier's accuracy, validation | B(X\\|Z), validation | loss, m |", "|---|---|---|---|---|"]
    for number, games in document["experiments"].items():
        for name, history in games.items():
            last = history[len(history) // 2 :]
            keys = (("accuracy_validation", 2), ("validation_bayes_error", 2), ("loss", 0))
            cells = [
                f"{min(line[key] for line in last):.{digits}f} to {max(line[key] for line in last):.{digits}f}" for key, digits in keys
            ]
            lines.append(f"| {number} | {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _alice(folder: Path) -> list[str]:
    document = read_json(folder / "alice_and_bob.json", what="the game of Alice and Bob")
    lines = ["## Alice and Bob", "", "The chance to swap after each round.", "", "| budget | payoff | chance to swap |", "|---|---|---|"]
    for budget, games in document["chance_to_swap"].items():
        lines += [f"| {budget} | {name} | {', '.join(f'{chance:g}' for chance in history)} |" for name, history in games.items()]
    return [*lines, ""]


def game_page(folder: Path = RESULTS) -> str:
    """Everything that was run, and only that."""
    names = [f"{recipe}_{number}.json" for number in (1, 2, 3, 4) for recipe in ("game", "paper")]
    documents = [read_json(folder / name, what="a table of the game") for name in names if (folder / name).exists()]
    lines = ["# The game: the paper's learned mechanism", ""]
    lines += [
        "Made by `python -m paper.game_tables`, `paper.cross_entropy`, `paper.alice_and_bob` and `paper.game_page`.",
        "Median over seeds, lowest to highest in brackets.",
    ]
    lines += [
        "B(X|Z) is the paper's estimate on test data, 260 cells, 500 hits. What is not the paper's is numbered in paper/deviations.md.",
        "",
    ]
    lines += [
        *_summary(documents),
        "## Beside the coin and planar Laplace",
        "",
        "Computed from the laws at 260 cells, no hits; each calibrated to the budget on training data.",
        "",
    ]
    lines += [
        *_beside(documents),
        "## A fresh classifier",
        "",
        "Trained on reports of the training points, judged on new reports.",
        "",
        *_classifier(documents),
    ]
    lines += [*_swapping(folder), *_alice(folder)]
    for document in documents:
        if document["rows"]:
            limit = f", stopped after {document['seconds']:g} s at the end of a round" if "seconds" in document else ""
            limit += f", classifiers stopped after {document['classifier_epochs']} epochs" if "classifier_epochs" in document else ""
            lines += [f"## Experiment {document['experiment']}, {document['recipe']}{limit}", "", *rows_table(document["rows"])]
    return "\n".join(lines)


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "game.md", game_page(folder))


if __name__ == "__main__":
    main()
