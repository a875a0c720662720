"""game.md, made from the JSON of game_tables, ablation, cross_entropy, alice_and_bob and ten_users.

python -m paper.pages.game
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.game_sections import ablation, alice, swapping, ten_users
from paper.printed import targets
from paper.tables import spread
from sfumato.files import read_json, write_text

_WANTED = {1: 0.74, 2: 0.45, 3: 0.80, 4: 0.38}
_FINEST = "260 cells, 500 hits"
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


def game_page(folder: Path = RESULTS) -> str:
    """Everything that was run, and only that."""
    names = [f"{recipe}_{number}.json" for number in (1, 2, 3, 4) for recipe in ("game", "paper")]
    documents = [
        read_json(folder / name, what="a table of the game")
        for name in names
        if (folder / name).exists()
    ]
    lines = ["# The game: the paper's learned mechanism", ""]
    lines += [
        (
            "Made by `make paper`, which plays what the JSON files here do not hold yet. One by"
            " one: `python -m paper.runs.game_tables`,"
        ),
        (
            "`paper.runs.ablation`, `paper.runs.cross_entropy`, `paper.runs.alice_and_bob`, `paper.runs.ten_users`,"
            " `paper.pages.game_figures`, `paper.pages.game`."
        ),
        "Median over seeds, lowest to highest in brackets.",
    ]
    lines += [
        (
            "B(X|Z) is the paper's estimate on test data, 260 cells, 500 hits: of the released"
            " reports, snapped to 25 m, and of the bare net."
        ),
        "All grids and hits, training data and pictures: [whole.md](whole.md).",
        (
            "`Game()` learns on a lattice, so its bare net is not what it learnt. What is not the"
            " paper's is numbered in paper/deviations.md."
        ),
        "",
    ]
    lines += [
        *_summary(documents),
        "## Beside the coin and planar Laplace",
        "",
        (
            "Computed from the laws at 260 cells, no hits; each calibrated to the budget on"
            " training data."
        ),
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
    lines += [*ablation(folder), *swapping(folder), *alice(folder), *ten_users(folder)]
    return "\n".join(lines)


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "game.md", game_page(folder))


if __name__ == "__main__":
    main()
