"""The figures that the command line gives, recorded: a rebuilding must not move them unsaid.

    python -m tests.record.figures           # runs every case and compares with figures.json
    python -m tests.record.figures --write   # records anew; say why in CHANGELOG, "Numbers changed"

A case is a chain of commands.  What is recorded is every number of their JSON documents except
times; the run of a case is judged, compared and certified as a user would do it.  The codebook's
budget is on the training check-ins, with resampling: settings that are no options are set here.

What is learned was recorded with two cores: XLA adds in another order on another number of threads,
and a learned figure then differs from the fourth digit on (four-corners, codebook, seed 0, one
core: a leakage of 0.38735 for 0.38739).
"""

import io
import json
import math
import os
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sfumato import cli
from sfumato.solver import SOLVERS, Codebook
from tests.solver.game.tiny import always

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("figures.json")
_DATA = Path(os.environ.get("SFUMATO_DATA", ROOT.parent / "shared" / "data"))
_UNRECORDED = {"seconds", "run", "versions", "status", "hash", "checksum"}
_SMALL = ["four-corners", "--per-user", "30+10", "--max-loss", "173"]
_CORNERS = ["four-corners", "--max-loss", "173"]
_PARIS = [
    *[str(_DATA / "gowalla-paris.txt.gz"), "--square", "48.8584,2.3482,4500", "--top-users", "6"],
    *["--per-user", "82+20", "--overlap-weight", "0.15", "--max-loss", "518"],
]
_WORDS = ["examples/words/survey.csv", "--losses", "examples/words/losses.csv"]
_SEEDS = (0, 1, 2)
_MANY = Codebook(
    made_for="these",
    places=128,
    steps=1500,
    wave_scale=4.0,
    resampled_share=0.5,
    distillation=0.0,
)
_FEW = replace(_MANY, resampled_share=0.7)  # no user has 200 check-ins


@dataclass(frozen=True)
class Case:
    """A name, the arguments of `sfumato solve`, and whether it runs in seconds."""

    name: str
    solve: tuple[str, ...]
    quick: bool
    certify: bool = False
    real: bool = False
    codebook: Codebook | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def learned(self) -> bool:
        """Whether a net is trained, so that XLA's optimisations move the last digits."""
        return "game" in self.solve or "codebook" in self.solve

    @property
    def stand_in(self) -> dict[str, Any]:
        return {} if self.codebook is None else {"codebook": always(self.codebook)}

    def figures(self) -> dict[str, float | str]:
        """Every number of the documents of solve, measure and (where asked) certify."""
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.dict(SOLVERS, self.stand_in),
        ):
            run = str(Path(folder) / "run")
            documents = {"solve": _document("solve", *self.solve, "--out", run)}
            documents["measure"] = _document("measure", run)
            if self.certify:
                documents["certify"] = _document("certify", run)
        return {key: value for name in documents for key, value in _flat(name, documents[name])}


def _cases() -> list[Case]:
    cases = []
    for seed in _SEEDS:
        at = ["--seed", str(seed), "--data-seed", str(seed)]
        for solver in ("laplace", "coin", "exact", "codebook", "game"):
            learned = solver in ("codebook", "game")
            proved = solver in ("exact", "codebook")
            many, few = (_MANY, _FEW) if solver == "codebook" else (None, None)
            for data, args in (("four-corners, 30 each", _SMALL), ("four-corners", _CORNERS)):
                quick = data != "four-corners" and not learned
                cases.append(
                    Case(
                        f"{data}, {solver}, seed {seed}",
                        (*args, "--solver", solver, *at),
                        quick,
                        proved,
                        codebook=many if data == "four-corners" else few,
                    )
                )
            cases.append(
                Case(
                    f"Paris, {solver}, seed {seed}",
                    (*_PARIS, "--solver", solver, *at),
                    solver == "coin" and seed == 0,
                    proved,
                    real=True,
                    codebook=few,
                )
            )
    for solver, options, settings in (
        ("codebook", (), replace(_FEW, steps=300)),
        ("game", ("--rounds", "3", "--lattices", "0.43"), None),
    ):
        solve = (*_SMALL, "--solver", solver, *options)
        name = f"four-corners, 30 each, a short {solver}"
        cases.append(Case(name, solve, True, solver == "codebook", codebook=settings))
    for objective in ("bayes", "information", "two-guesses", "guess-or-pass"):
        args = (*_WORDS, "--max-loss", "0.5", "--objective", objective, "--solver", "exact")
        cases.append(Case(f"words, {objective}", args, True, True))
    for name, args in (
        ("information", ("--objective", "information", "--max-loss", "173")),
        ("budgets per user", ("--user-max-loss", "150")),
        ("cap", ("--max-loss", "173", "--max-distance", "400")),
        ("smallest loss", ("--min-bayes-error", "0.5")),
    ):
        solve = ("four-corners", "--per-user", "15+5", "--cell-m", "100", *args)
        cases.append(Case(f"exact, {name}", (*solve, "--solver", "exact"), True))
    return cases


def _document(*args: str) -> Any:
    """The JSON document of a command, run in this process as `sfumato ARGS --json` is."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    try:
        sys.argv = ["sfumato", *args, "--json"]
        with redirect_stdout(out), redirect_stderr(err), chdir(ROOT):
            cli.main()
    except SystemExit as left:
        if left.code:
            raise AssertionError(f"sfumato {' '.join(args)}\n{err.getvalue()}") from None
    finally:
        sys.argv = before
    return json.loads(out.getvalue())


def _flat(name: str, value: Any) -> list[tuple[str, float | str]]:
    if isinstance(value, dict):
        parts = [(str(key), part) for key, part in value.items() if key not in _UNRECORDED]
    elif isinstance(value, list):
        parts = [(str(number), part) for number, part in enumerate(value)]
    elif isinstance(value, bool) or value is None:
        return []
    elif isinstance(value, (int, float)):
        return [(name, float(f"{value:.12g}"))]
    else:
        return [(name, value)] if value == "infinity" else []
    return [found for key, part in parts for found in _flat(f"{name}.{key}", part)]


def differences(case: Case, relative: float = 1e-5) -> list[str]:
    """What differs from the record, one line for each figure: before, now."""
    before, now = json.loads(RECORD.read_text())[case.name], case.figures()
    lines = []
    for key, value in before.items():
        found = now.get(key)
        if isinstance(value, float) and isinstance(found, float):
            if math.isclose(value, found, rel_tol=relative, abs_tol=1e-9):
                continue
        elif found == value:
            continue
        lines.append(f"{case.name}: {key} was {value}, is {found}")
    return lines


CASES = {case.name: case for case in _cases()}


def main() -> int:
    """Compare every case, or those whose names are given; with --write, record."""
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or list(CASES)
    failed = 0
    for name in names:
        if "--write" in sys.argv:
            record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
            record[name] = CASES[name].figures()
            ordered = {key: record[key] for key in CASES if key in record}
            RECORD.write_text(
                "{\n"
                + ",\n".join(f"{json.dumps(key)}: {json.dumps(ordered[key])}" for key in ordered)
                + "\n}"
                + "\n"
            )
            print(f"{name}: {len(record[name])} figures", flush=True)
            continue
        lines = differences(CASES[name])
        failed += bool(lines)
        print("\n".join(lines) or f"{name}: equal", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
