"""Re-run the paper: `python -m paper` (all seeds, into docs/reproduction) or `python -m paper --quick` (one seed, into runs/, no games).

Games take hours: those whose results are in the folder are not played again unless asked with --again.
"""

import argparse
import sys
import time
from pathlib import Path

from paper import (
    ablation,
    alice_and_bob,
    cross_entropy,
    game_figures,
    game_page,
    game_tables,
    laplace_tables,
    learned,
    learned_page,
    no_noise,
    optimum,
    readings,
    tables,
    ten_users,
)
from paper.experiments import RESULTS, ROOT, SEEDS, gowalla_file


def play_games(folder: Path, *, again: bool) -> None:
    """The learned columns and what belongs to them: what the folder does not hold yet."""
    for recipe, numbers in (("game", (1, 2, 3, 4)), ("paper", (1, 2))):
        todo = tuple(number for number in numbers if again or not (folder / f"{recipe}_{number}.json").exists())
        game_tables.main(folder, SEEDS, experiments=todo, recipe=recipe, again=again)
    for name, script in (("ablation", ablation), ("cross_entropy", cross_entropy), ("ten_users", ten_users)):
        if again or not (folder / f"{name}.json").exists():
            script.main(folder, again=again)
    alice_and_bob.main(folder)
    game_figures.main(folder)
    game_page.main(folder)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, written to runs/reproduction-quick")
    parser.add_argument("--again", action="store_true", help="play games again whose results are there")
    chosen = parser.parse_args()
    quick = chosen.quick
    if not gowalla_file().is_file():
        print(f"there is no {gowalla_file().name}; set SFUMATO_DATA to the folder that holds it", file=sys.stderr)
        return 2
    folder, seeds = (ROOT / "runs" / "reproduction-quick", SEEDS[:1]) if quick else (RESULTS, SEEDS)
    start = time.monotonic()
    for script in (no_noise, laplace_tables, readings, optimum):
        script.main(folder, seeds)
    tables.main(folder)
    if not quick:
        learned.main(folder, seeds, again=chosen.again)
        learned_page.main(folder)
        play_games(folder, again=chosen.again)
    tables.say(f"written to {folder.relative_to(ROOT)} in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
