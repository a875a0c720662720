"""Re-run the paper: `python -m paper` (seeds 0, 1, 2, into docs/reproduction) or `--quick` (seed 0,
into runs/reproduction-quick).

What the folder holds already, with the same settings, is not run again; a stopped run goes on.  The
expected time left is printed before each step.  `--gowalla` names a file of Gowalla check-ins:
SNAP's own loc-gowalla_totalCheckins.txt.gz, or a cut of it.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from paper.experiments import GOWALLA_FILES, RESULTS, ROOT, SEEDS, gowalla_file
from paper.pages import build
from paper.steps import carry_out, steps
from paper.tables import say


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="seed 0 alone, without the side experiments"
    )
    parser.add_argument(
        "--gowalla",
        type=Path,
        metavar="FILE",
        help="Gowalla check-ins in SNAP's format, all or a cut around Paris",
    )
    chosen = parser.parse_args()
    if chosen.gowalla is not None:
        os.environ["SFUMATO_GOWALLA"] = str(chosen.gowalla.resolve())
    if not gowalla_file().is_file():
        names = " or ".join(GOWALLA_FILES)
        say(
            f"there is no file {gowalla_file()}; name one with --gowalla, or set SFUMATO_DATA to"
            f" the folder that holds {names}"
        )
        return 2
    folder, seeds = (
        (ROOT / "runs" / "reproduction-quick", SEEDS[:1]) if chosen.quick else (RESULTS, SEEDS)
    )
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    carry_out(steps(seeds, quick=chosen.quick), folder)
    build.build(folder)
    say(
        f"written to {folder.relative_to(ROOT)} in {(time.monotonic() - start) / 60:.1f} min; begin"
        " with whole.md"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
