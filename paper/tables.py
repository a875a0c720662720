"""Rows that set ours beside theirs, and Markdown made from the JSON of a run."""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from paper.printed import Target
from sfumato.errors import SfumatoError
from sfumato.files import read_json, write_json


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def arguments(says: str | None, *, again: bool = False) -> argparse.ArgumentParser:
    """The command line of the module that is run: `-h` explains it."""
    spec = sys.modules["__main__"].__spec__
    name = "paper" if spec is None else spec.name.removesuffix(".__main__")
    parser = argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=says,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if again:
        parser.add_argument(
            "--again", action="store_true", help="compute again what an earlier run has saved"
        )
    return parser


def run_module(says: str | None, main: Callable[..., None], *, again: bool = False) -> None:
    """A module as a command without further arguments; what is wrong is one sentence, code 2."""
    chosen = arguments(says, again=again).parse_args()
    try:
        main(**vars(chosen))
    except SfumatoError as error:
        say(f"error: {error}")
        sys.exit(2)


def fill(
    path: Path,
    command: str,
    todo: Mapping[tuple, Callable[[], dict[str, Any]]],
    known: Mapping[tuple, dict[str, Any]],
    stale: Collection[tuple] = (),
) -> None:
    """Run what is not known yet or `stale`, and write all rows, in order of their keys, after
    each."""
    rows = dict(known)
    for key, run in todo.items():
        if key not in rows or key in stale:
            rows[key] = run()
            write_json(path, {"command": command, "rows": [rows[each] for each in sorted(rows)]})


def saved(
    path: Path, settings: str, *keys: str, again: bool = False
) -> dict[tuple, dict[str, Any]]:
    """Rows of an earlier run with the same settings, by their keys; none to begin anew."""
    rows = read_json(path, what="results of a run")["rows"] if path.exists() and not again else []
    return {tuple(row[key] for key in keys): row for row in rows if row["settings"] == settings}


def spread(values: list[float], digits: int = 3, scale: float = 1.0) -> str:
    """The median and, where they differ in the digits shown, the lowest and the highest."""
    low, middle, high = (
        f"{value * scale:.{digits}f}" for value in (min(values), median(values), max(values))
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table and an empty line."""
    first, *others = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return [first, "|" + "---|" * len(heads), *others, ""]


def compared(target: Target, by_seed: list[float], *, exact: float | None = None) -> dict[str, Any]:
    """One row: the median over seeds beside the printed number, and whether it lies within the
    tolerance."""
    ours = median(by_seed)
    difference = ours - target.bayes_error
    return {
        "experiment": target.experiment,
        "split": target.split,
        "cells": target.cells,
        "hits": target.hits,
        "ours": ours,
        "by_seed": by_seed,
        "exact": ours if exact is None else exact,
        "theirs": target.bayes_error,
        "difference": difference,
        "tolerance": target.tolerance,
        "within": abs(difference) <= target.tolerance,
        "kind": target.kind,
        "doubt": target.doubt,
    }


def finished(name: str, rows: list[dict[str, Any]]) -> str:
    """A sentence on how many rows agree, and which do not."""
    out = [
        f"experiment {row['experiment']} {row['split']} {row['cells']} cells {row['hits']} hits"
        for row in rows
        if not row["within"]
    ]
    return f"{name}: {len(rows) - len(out)} of {len(rows)} within the tolerance" + (
        f"; not: {', '.join(out)}" if out else ""
    )
