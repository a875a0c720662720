"""game.md, made from the JSON of game_tables, ablation, cross_entropy and ten_users.

python -m paper.pages.game
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import spread, table
from sfumato.files import read_json, write_text

_SURE = 0.02  # a difference below it is not called one
# What the paper says, the changed run, the run to compare with, the figure, and the sign of
# (changed - compared) if it is so.
_CLAIMS = (
    (
        "C continued, not restarted, hides worse",
        "C goes on from the last round",
        "base",
        "validation_bayes_error",
        -1,
    ),
    (
        "the same with 30 epochs for C",
        "C: 30 epochs, goes on from the last round",
        "C: 30 epochs",
        "validation_bayes_error",
        -1,
    ),
    (
        "a quarter of G_0's noise hides worse",
        "G_0 with a quarter of the noise",
        "base",
        "validation_bayes_error",
        -1,
    ),
    (
        "twice G_0's noise hides better",
        "G_0 with twice the noise",
        "base",
        "validation_bayes_error",
        1,
    ),
    (
        "small batches of G (32) cost less",
        "G in batches of 32, as many steps",
        "base",
        "loss",
        -1,
    ),
    ("one batch for all costs more", "G in one batch of all, as many steps", "base", "loss", 1),
    ("few epochs for C (30) hide worse", "C: 30 epochs", "base", "validation_bayes_error", -1),
    (
        "many epochs (3000) overfit C",
        "C: 3000 epochs",
        "base",
        "overfit",
        1,
    ),
    (
        "C on mutual information hides worse",
        "C on mutual information",
        "base",
        "validation_bayes_error",
        -1,
    ),
)
_SCALE = {"loss": 173.0}
_KEYS = {"validation_bayes_error": "B(X\\|Z)", "loss": "loss, m", "overfit": "overfit"}
_UNITS = ("a twentieth of the budget", "a kilometre", "half the side of the square")
_READINGS = {
    "metres": ("base", "softplus of metres, experiment 1"),
    "metres, Adam of G continued": ("G's Adam goes on from the last round", ""),
    **{
        unit: tuple(f"softplus in units of {unit}, experiment {n}" for n in (2, 1))
        for unit in _UNITS
    },
}


def _name(document: dict[str, Any]) -> str:
    if document["recipe"] == "game":
        return "`Game()`"
    early = f", {document['classifier_epochs']} epochs" if "classifier_epochs" in document else ""
    return f"`Game.paper({document['experiment']})`{early}"


def _cells(runs: list[dict[str, Any]], name: str) -> list[str]:
    """Loss on test data, Bayes error and information of one mechanism, computed."""
    loss, bits = (
        f"{median(run[name][key] for run in runs):.{digits}f}"
        for key, digits in (("loss_m", 1), ("information_bits", 3))
    )
    return [loss, spread([run[name]["bayes_error"] for run in runs]), bits]


def _summary(documents: list[dict[str, Any]]) -> list[str]:
    """The games, and planar Laplace at the same budget after `Game()`."""
    rows = []
    for document in documents:
        runs, number = document["runs"], str(document["experiment"])
        scores = [median(run["classifier"]["test"][place] for run in runs) for place in (0, 1)]
        rows.append(
            [
                number,
                _name(document),
                *_cells(runs, "game"),
                ", ".join(f"{score:.2f}" for score in scores),
            ]
        )
        if document["recipe"] == "game":
            rows.append([number, "planar Laplace", *_cells(runs, "laplace"), ""])
    heads = ["experiment", "mechanism", "loss test, m ↓", "B(X\\|Z) test ↑", "bits ↓"]
    return table([*heads, "accuracy, F1 ↓"], rows)


def _figure(runs: list[dict[str, Any]], key: str) -> float:
    if key == "overfit":
        return median(run["accuracy_train"] - run["accuracy_validation"] for run in runs)
    return median(run[key] for run in runs)


def _verdict(moved: float) -> str:
    if moved > _SURE:
        return "holds"
    return f"does not hold: {'the other way' if moved < -_SURE else 'no difference'}"


def _reading(runs: list[dict[str, Any]]) -> list[str]:
    keys = (("validation_bayes_error", 3), ("best_score", 3), ("loss", 1))
    return [f"{_figure(runs, key):.{digits}f}" for key, digits in keys]


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
            claims.append([claim, _KEYS[key], " ".join(both), verdict])
    rows = []
    for name, readings in _READINGS.items():
        cells = [", ".join(_reading(runs[one])) if one in runs else "-" for one in readings]
        rows.append([name, *cells])
    heads = ["the paper says", "figure", "changed, base", "verdict"]
    columns = ["softplus of", "experiment 2", "experiment 1"]
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
    rows = []
    for number, games in document["experiments"].items():
        more = document.get("further", {}).get(number, {})
        for name, game in games.items():
            histories = [game["history"], *(more.values() if name == "cross entropy" else ())]
            rows.append([number, name, *_ranges(histories)])
    heads = ["experiment", "payoff", "accuracy", "B(X\\|Z)", "loss, m"]
    return {
        "epochs": document["classifier_epochs"],
        "ranges": "\n".join(table(heads, rows)),
    }


def _ranges(histories: list[list[dict[str, Any]]]) -> list[str]:
    """Lowest to highest over the last half of the rounds of all seeds."""
    last = [one for history in histories for one in history[len(history) // 2 :]]
    keys = (("accuracy_validation", 2), ("validation_bayes_error", 2), ("loss", 0))
    return [
        f"{min(one[key] for one in last):.{digits}f} to {max(one[key] for one in last):.{digits}f}"
        for key, digits in keys
    ]


def _ten_users(folder: Path) -> dict[str, str] | None:
    """A fixed time on ten users with 5,000 points each."""
    if not (folder / "ten_users.json").exists():
        return None
    document = read_json(folder / "ten_users.json", what="the game of ten users")
    parts = [
        f"{row['name']} {row['loss_m']:.1f} m, {row['bayes_error']:.3f}" for row in document["rows"]
    ]
    return {"budget": f"{document['max_loss_m']:g}", "rows": "; ".join(parts)}


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
        ablation=_ablation(folder),
        swapping=_swapping(folder),
        ten_users=_ten_users(folder),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "game.md", page(folder))


if __name__ == "__main__":
    main()
