"""Re-run the paper: `python -m paper` (all seeds, into docs/reproduction) or `python -m paper --quick` (one seed, into runs/)."""

import argparse
import sys
import time

from paper import laplace_tables, no_noise, optimum, readings, tables
from paper.experiments import RESULTS, ROOT, SEEDS, gowalla_file


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, written to runs/reproduction-quick")
    quick = parser.parse_args().quick
    if not gowalla_file().is_file():
        print(f"there is no {gowalla_file().name}; set SFUMATO_DATA to the folder that holds it", file=sys.stderr)
        return 2
    folder, seeds = (ROOT / "runs" / "reproduction-quick", SEEDS[:1]) if quick else (RESULTS, SEEDS)
    start = time.monotonic()
    for script in (no_noise, laplace_tables, readings, optimum):
        script.main(folder, seeds)
    tables.main(folder)
    tables.say(f"written to {folder.relative_to(ROOT)} in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
