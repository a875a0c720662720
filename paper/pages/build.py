"""Every page and figure of docs/reproduction from the JSON of the runs: `--write` makes them,
without it they are compared.

`make docs` builds all in a temporary folder and compares: pages byte for byte, figures pixel by
pixel.  A difference, or JSON that a page was made from and that is gone, is said in a sentence,
with exit code 1.

python -m paper.pages.build [--write]
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.image import imread

from paper.experiments import RESULTS, ROOT
from paper.pages import (
    approximate,
    coverage,
    game,
    game_figures,
    learned,
    linked,
    optimum,
    overlap,
    pws_cup,
    readers,
    readings,
    summary_figures,
    to_come,
    weeks,
    whole,
)
from paper.tables import say
from sfumato.errors import FileError
from sfumato.files import write_text

# Another version of the font renderer may shade an edge differently; a point that moved changes
# more pixels than this.
_PIXELS, _SHADE = 0.0005, 0.1


PAGES: dict[
    str, tuple[tuple[str, ...], Callable[[Path], str]]
] = {  # each page: the JSON that it cannot do without, and its maker
    "readings.md": (("readings.json",), readings.page),
    "optimum.md": (("optimum.json",), optimum.page),
    "learned.md": (("learned.json", "optimum.json", "draws.json"), learned.page),
    "game.md": (("alice_and_bob.json",), game.page),
    "overlap.md": (("overlap.json",), overlap.page),
    "to_come.md": (("to_come.json", "bracket.json"), to_come.page),
    "linked.md": (("linked.json",), linked.page),
    "pws_cup.md": (("pws_cup.json",), pws_cup.page),
    "coverage.md": (("coverage.json",), coverage.page),
    "weeks.md": (("weeks.json",), weeks.page),
    "approximate.md": (("approximate.json",), approximate.page),
    "README.md": (
        (
            "laplace.json",
            "no_noise.json",
            "optimum.json",
            "alice_and_bob.json",
            "cross_entropy.json",
            "precision.json",
        ),
        readers.page,
    ),
    "whole.md": (("laplace.json", "no_noise.json"), whole.page),
}


def build(folder: Path) -> list[str]:
    """Make the figures and then the pages that the folder's JSON gives; the names of figures that
    cannot be drawn here."""
    left = game_figures.main(folder)
    summary_figures.main(folder)
    if (folder / "coverage.json").exists():
        coverage.figure(folder)
    for name, (needed, page) in PAGES.items():
        if all((folder / one).exists() for one in needed):
            write_text(folder / name, page(folder))
    return left


def missing(results: Path) -> list[str]:
    """JSON that whole.md says it was made from, and that is not there."""
    page = results / "whole.md"
    named = (
        re.findall(r"`(\w+\.json)`", page.read_text("utf-8").rpartition("## Made from")[2])
        if page.exists()
        else []
    )
    gone = [
        f"{name} is missing: whole.md was made from it; `make paper` runs it again"
        for name in named
        if not (results / name).exists()
    ]
    return (
        gone
        if named
        else [
            f"{results / 'whole.md'} names no JSON that it was made from;"
            " `python -m paper.pages.build --write` makes it again"
        ]
    )


def same(one: Path, other: Path) -> bool:
    """The same bytes or, for a picture, all but the same pixels."""
    if one.read_bytes() == other.read_bytes():
        return True
    if one.suffix != ".png":
        return False
    first, second = imread(one), imread(other)
    return (
        first.shape == second.shape
        and float((np.abs(first - second).max(axis=-1) > _SHADE).mean()) <= _PIXELS
    )


def check(results: Path = RESULTS) -> list[str]:
    """A sentence for each thing that is not as it should be."""
    if gone := missing(results):
        return gone
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in (
            *results.glob("*.json"),
            *results.glob("scatter_[34].png"),
        ):  # those two may stay as they are
            shutil.copy(path, folder)
        try:
            build(folder)
        except (FileError, KeyError) as error:
            return [f"the pages cannot be made from {_short(results)}: {error}"]
        made = [path for path in sorted(folder.iterdir()) if path.suffix in (".md", ".png")]
        wrong = [
            path.name
            for path in made
            if not (results / path.name).exists() or not same(path, results / path.name)
        ]
    return [
        f"{name} is not what the JSON gives; `python -m paper.pages.build --write` makes it again"
        for name in wrong
    ]


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paper.pages.build", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="make the pages and figures in place of comparing them"
    )
    if parser.parse_args().write:
        build(RESULTS)
        return 0
    problems = check()
    for problem in problems:
        say(problem)
    if not problems:
        say(f"every page and figure of {_short(RESULTS)} is what its JSON gives")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
