"""Re-run the paper: `python -m paper` (seeds 0, 1, 2, into docs/reproduction; hours), `--quick`
(seed 0, into runs/; some 8 minutes of one core) or `--experiment N` (one of the four alone, three
seeds; with `--quick` seed 0 alone).

What the folder holds already, with the same settings, is not run again; a stopped run resumes.  The
expected time left is printed before each step.  `--gowalla` names a file of Gowalla check-ins:
SNAP's own loc-gowalla_totalCheckins.txt.gz, or a cut of it.  Without one, experiments 1 and 2 run,
whose data are synthetic.
"""

import os
import sys
import time
from pathlib import Path

from paper.experiments import NUMBERS, RESULTS, ROOT, SEEDS, SYNTHETIC, WHERE, gowalla_file
from paper.pages import build
from paper.pages.whole import introduction
from paper.steps import Step, carry_out, steps, tables
from paper.tables import arguments, say
from sfumato.files import read_json


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="seed 0 alone, without the side experiments; goes with --experiment",
    )
    parser.add_argument(
        "--experiment", type=int, choices=NUMBERS, metavar="N", help="this one alone: 1, 2, 3 or 4"
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
            say(f"error: there is no file {chosen.gowalla}; {WHERE}")
            return 2
    real, number = gowalla_file().is_file(), chosen.experiment
    if number not in (None, *SYNTHETIC) and not real:
        say(f"error: {WHERE}")
        return 2
    if not real and number is None:
        say(f"without Gowalla check-ins: {WHERE}")
    seeds, quick = (SEEDS[:1], "-quick") if chosen.quick else (SEEDS, "")
    start = time.monotonic()
    if number is not None or (chosen.quick and not real):
        wanted = SYNTHETIC if number is None else (number,)
        name = "experiments-1-2" if number is None else f"experiment-{number}"
        folder = ROOT / "runs" / f"{name}{quick}"
        _some(wanted, folder, tables(seeds, wanted, paper=not chosen.quick))
    else:
        folder = ROOT / "runs" / "reproduction-quick" if chosen.quick else RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        todo = steps(seeds, quick=chosen.quick)
        if not real and (left := [step for step in todo if step.gowalla and not step.done(folder)]):
            say(f"left out, for want of the file: {', '.join(step.name for step in left)}")
            todo = [step for step in todo if step not in left]
        carry_out(todo, folder)
        build.build(folder)
        say("begin with whole.md")
    say(f"written to {folder.relative_to(ROOT)} in {(time.monotonic() - start) / 60:.1f} min")
    return 0


def _some(experiments: tuple[int, ...], folder: Path, todo: list[Step]) -> None:
    """Some experiments into a folder of their own, and their table on stdout."""
    folder.mkdir(parents=True, exist_ok=True)
    carry_out(todo, folder)
    laplace = read_json(folder / "laplace.json", what="planar Laplace")
    print("\n".join(introduction(folder, laplace, experiments)))
    print("Bayes errors on held-out check-ins: median of the seeds (least to most); ! over budget")


if __name__ == "__main__":
    sys.exit(main())
