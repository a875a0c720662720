"""README.md of docs/reproduction: what holds, what we correct, what we add.

python -m paper.pages.readers
"""

from pathlib import Path
from statistics import median
from typing import Any

from paper.experiments import EXPERIMENTS, RESULTS
from paper.pages.results_by_column import FINEST, columns, said
from paper.pages.template import filled
from paper.printed import figures, targets
from sfumato.files import read_json, write_text


def _behind(folder: Path, name: str) -> str:
    """The experiments where a column hides less than the printed learned mechanism, by more than
    the tolerance."""
    below = []
    for one in targets("learned"):
        column = columns(folder, int(one.experiment))[name]
        if (one.split, one.cells, one.hits) != ("test", *FINEST) or not column.runs:
            continue
        if median(column.errors("test", *FINEST)) < one.bayes_error - one.tolerance:
            below.append(one.experiment)
    return f"experiments {', '.join(below)}" if below else "no experiment"


def _optimum(folder: Path) -> dict[str, Any]:
    rows = [
        row
        for row in read_json(folder / "optimum.json", what="the optima")["rows"]
        if row["objective"] == "bayes"
    ]
    found: dict[str, Any] = {
        "gap": f"{max(row['gap'] for row in rows):.4f}",
        "variables": f"{rows[0]['variables'] / 1e9:.1f}",
    }
    for number in (2, 4):
        own = [row for row in rows if row["experiment"] == number]
        found |= {f"reached_{number}": f"{min(1 - row['leakage'] for row in own):.3f}"}
        found |= {f"proved_{number}": f"{max(1 - row['bound_grid'] for row in own):.3f}"}
        plane = f"{max(1 - row['bound_plane'] for row in own):.3f}"
        found |= {"plane_2": plane} if number == 2 else {}
    return found | {"touched": f"{max(row['pairs_touched'] for row in rows) / 1e6:.1f}"}


def _laplace(folder: Path) -> dict[str, str]:
    laplace = read_json(folder / "laplace.json", what="the planar Laplace tables")["rows"]
    bare = read_json(folder / "no_noise.json", what="the tables without noise")["rows"]
    key = {(row["experiment"], row["split"], row["cells"], row["hits"]): row for row in laplace}
    few, many, pair = (
        key["3", "test", 260, 10],
        key["3", "test", 260, 500],
        key["4", "train", 260, 10],
    )
    counts = [
        f"{sum(row['within'] for row in rows)} of its {len(rows)}" for rows in (laplace, bare)
    ]
    learned = next(
        one
        for one in targets("learned")
        if (one.experiment, one.split, one.cells, one.hits) == ("4", "train", 260, 10)
    )
    return {
        "laplace": counts[0],
        "bare": counts[1].replace("its", "the"),
        "few": f"{few['theirs']:.2f}",
        "many": f"{many['theirs']:.2f}",
        "our_few": f"{few['ours']:.3f}",
        "our_many": f"{many['ours']:.3f}",
        "law": f"{many['exact']:.3f}",
        "pair_laplace": f"{pair['theirs']:.2f}",
        "pair_learned": f"{learned.bayes_error:.2f}",
        "pair_ours": f"{pair['ours']:.3f}",
        "uncalibrated": f"{key['1', 'test', *FINEST]['exact']:.3f}",
    }


def _wins(runs: list[dict[str, Any]]) -> bool:
    return bool(runs) and median(run["game"]["bayes_error"] for run in runs) > median(
        run["laplace"]["bayes_error"] for run in runs
    )


def _games(folder: Path) -> dict[str, str]:
    chances = read_json(folder / "alice_and_bob.json", what="the game of Alice and Bob")[
        "chance_to_swap"
    ]["100 m"]
    clouds = read_json(folder / "cross_entropy.json", what="the curves of cross entropy")[
        "experiments"
    ]["1"]
    first = columns(folder, 1)["Game"].runs
    literal = {number: columns(folder, number)["Game.paper"].runs for number in (1, 2, 3, 4)}
    return {
        "cycle": " and ".join(f"{chance:g}" for chance in chances["success probability"][5:7]),
        "settled": " and ".join(f"{chance:g}" for chance in chances["mutual information"][5:7]),
        "swapped": f"{clouds['cross entropy']['history'][-1]['validation_bayes_error']:.2f}",
        "kept": f"{clouds['mutual information']['history'][-1]['validation_bayes_error']:.2f}",
        "winning": " and ".join(str(number) for number, found in literal.items() if _wins(found)),
        "calibrated": said([run["laplace"]["bayes_error"] for run in first]),
    }


def page(folder: Path = RESULTS) -> str:
    """The page, filled in."""
    net = read_json(folder / "precision.json", what="a net by the side of the cells")
    cells = net["bayes_error_by_cell_m"]
    optimal = {
        row["experiment"]: row["value"] for row in figures() if row["mechanism"] == "optimal"
    }
    return filled(
        "README.md",
        **_laplace(folder),
        **_games(folder),
        **_optimum(folder),
        optimum_2=optimal["2"],
        coarse=f"{cells['100']:.2f}",
        fine=f"{cells['25']:.2f}",
        metre=f"{cells['1']:.2f}",
        bare_reports=f"{net['bayes_error']:.2f}",
        expected=f"{EXPERIMENTS[0].laplace.expected_loss:.1f}",
        budget=f"{EXPERIMENTS[0].max_loss_m:g}",
        coin_behind=_behind(folder, "coin"),
        recipe_behind=_behind(folder, "Game.paper"),
    )


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "README.md", page(folder))


if __name__ == "__main__":
    main()
