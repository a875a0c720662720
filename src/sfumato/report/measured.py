"""Measuring runs and files of reports: what `sfumato measure` prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.adversary.base import Adversary, Score, score
from sfumato.adversary.cells import Cells
from sfumato.adversary.neighbours import Neighbours, bayes_error_bound
from sfumato.adversary.neural import Neural
from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.plane import Plane
from sfumato.data.read import numbers, read_checkins, read_table
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import DataError, ProblemError
from sfumato.measure.exact import (
    conditional_entropy,
    g_vulnerability,
    min_entropy_leakage,
    santhi_vardy_bound,
)
from sfumato.measure.gains import named
from sfumato.measure.judge import Judgement, draw_reports, judge, judge_reports
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.custom import Recorded
from sfumato.mechanism.law import euclidean
from sfumato.report.further import Asked, further
from sfumato.report.table import text_table
from sfumato.solver.problem import CELL_M
from sfumato.study.folder import Run, load_run
from sfumato.study.question import loss_of

_VALIDATION = 0.2
_HITS = 500
_ATTACK_HITS = 10
_NOTHING_MORE = Asked()


@dataclass(frozen=True, eq=False)
class Measured:
    """Judgements of one mechanism (or file) on one or two data sets, and what else was asked
    for."""

    name: str
    judged: Mapping[str, Judgement | None]
    max_loss: float | None
    status: str
    extra: dict[str, Any] = field(default_factory=dict)
    extra_text: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the first data set's figures at the top, the others under their names."""
        (label, first), *others = [
            (label, found) for label, found in self.judged.items() if found is not None
        ]
        return {
            "name": self.name,
            "on": label,
            "max_loss": self.max_loss,
            **first.as_dict(),
            "status": self.status,
            "test": next(
                (found.as_dict() for label, found in others if label == "test data"), None
            ),
            **self.extra,
        }


def data_of_runs(
    runs: list[Run], *, source: str | None
) -> tuple[Samples | CategoricalData, Samples | CategoricalData | None]:
    """What to judge runs on, and the training data of the first, where it can be read again."""
    if not runs:
        if source is None:
            raise DataError(
                "recorded pairs do not say what to judge them on; name the data", hint="--data DATA"
            )
        return Recipe(source).load().all, None
    check_planes([run.record.data.plane for run in runs], [str(run.folder) for run in runs])
    train, test = _data_of(runs[0], source=source)
    if source is not None:
        return train, None
    return (train if test is None else test), train


def check_planes(planes: list[Plane | None], names: list[str]) -> None:
    """Refuse to put mechanisms of different planes side by side: the same metres would mean other
    places."""
    for plane, name in zip(planes, names, strict=True):
        if plane != planes[0]:
            raise DataError(
                f"{name} and {names[0]} lie on planes with different centres; solve both with the"
                " same --square"
            )


def _data_of(
    run: Run,
    *,
    source: str | None,
    secret: str | None = None,
    lat: str | None = None,
    lon: str | None = None,
) -> tuple[Samples | CategoricalData, Samples | None]:
    """Training and test data of a run, or all of another file as the first."""
    if source is not None:
        if run.recipe is not None and run.recipe.losses is not None:
            raise DataError("a run on words is judged on its own table; --data is for places")
        return (
            Recipe(source, secret=secret, lat=lat, lon=lon)
            .load()
            .all.on_plane(run.mechanism.plane),
            None,
        )
    if run.recipe is None:
        raise DataError(f"{run.folder} does not say where its data is; name it", hint="--data FILE")
    train, test = run.recipe.data()
    if train.hash != run.record.data.hash:
        raise DataError(
            f"the data of {run.folder} has changed since the run was made; name other data or solve"
            " again",
            hint="--data FILE",
        )
    return train, test


def measure_run(
    folder: Path,
    *,
    source: str | None,
    secret: str | None,
    lat: str | None,
    lon: str | None,
    cell_m: float | None,
    cells: int | None,
    hits: int | None,
    attacks: tuple[str, ...],
    gain: str | None,
    seed: int,
    asked: Asked = _NOTHING_MORE,
) -> Measured:
    """Judge a run on its own data, or on all of another file."""
    if source is None and (secret or lat or lon):
        raise ProblemError(
            "--secret, --lat and --lon are for a file of reports or for --data; a run knows its own"
            " columns"
        )
    hits = _HITS if hits is None else hits
    run = load_run(folder)
    first, test = _data_of(run, source=source, secret=secret, lat=lat, lon=lon)
    words = isinstance(first, CategoricalData)
    if words and (cell_m is not None or cells is not None or attacks):
        raise ProblemError(
            "cells and trained adversaries are for places; words are judged as they are"
        )
    loss = loss_of(run, first)
    grid = (
        None
        if run.region is None or (cell_m is None and cells is None)
        else Grid.over(run.region, cell_m=cell_m, cells=cells)
    )
    label = first.name if source is not None else "training data"
    if grid is None and run.mechanism.law(first.joint(), loss=loss) is None:
        grid = run.grid
    options: dict[str, Any] = {
        "grid": grid,
        "hits": hits,
        "seed": seed,
        "region": run.region,
        "loss": loss,
    }
    judged: dict[str, Judgement | None] = {label: judge(run.mechanism, first, **options)}
    if test is not None:
        judged["test data"] = judge(run.mechanism, test, fitted_on=first, **options)
    extra, text = _extras(judged[label], gain)
    where = grid or run.grid
    if attacks and isinstance(first, Samples) and where is not None:
        found, lines = _attack(
            attacks,
            _drawn(run.mechanism, first, test, seed=seed),
            len(first.secrets),
            where,
            seed=seed,
        )
        extra["adversaries"] = found
        text += "\n\n" + lines
    given = {label: first} if test is None else {label: first, "test data": test}
    own = source is None
    more, added = further(
        run, given, judged, asked, own_data=own, grid=grid, loss=loss, hits=hits, seed=seed
    )
    extra, text = extra | more, f"{text}\n\n{added}"
    return Measured(run.name, judged, run.max_loss, run.record.status, extra, text, first.notes)


def measure_reports(
    path: Path,
    *,
    source: str | None,
    secret: str | None,
    lat: str | None,
    lon: str | None,
    cell_m: float | None,
    cells: int | None,
    hits: int | None,
    attacks: tuple[str, ...],
    gain: str | None,
    seed: int,
    asked: Asked = _NOTHING_MORE,
) -> Measured:
    """Judge reports that somebody drew."""
    if asked.anything:
        raise ProblemError(
            f"{path.name} holds reports; repeated reports and users left out are measured of a run,"
            " whose law is known"
        )
    if source is not None:
        samples = Recipe(source, secret=secret, lat=lat, lon=lon).load().all
        return _measure_pairs(
            path,
            samples,
            cell_m,
            cells,
            hits=_HITS if hits is None else hits,
            attacks=attacks,
            gain=gain,
            seed=seed,
        )
    if hits is not None:
        raise ProblemError(
            f"{path.name} holds reports that were drawn already; leave --hits out, or judge pairs"
            " on other data with --data"
        )
    reports = read_checkins(path, secret=secret, lat=lat, lon=lon)
    if (reports.counts > 0).sum() < 2:
        raise ProblemError(
            f"{reports.name} holds one user; expected at least two: there is nobody to be confused"
            " with"
        )
    region = Region.around(reports.truth)
    grid = Grid.over(
        region, cell_m=CELL_M if cell_m is None and cells is None else cell_m, cells=cells
    )
    found = judge_reports(
        reports.secret, reports.truth, grid, names=reports.secrets, cost=_costs(path, reports)
    )
    extra, text = _extras(found, gain)
    if attacks:
        rest, test = reports.carve(_VALIDATION, seed=seed)
        kept, validation = rest.carve(_VALIDATION, seed=seed + 1)
        drawn = {
            part: (samples.truth, samples.secret)
            for part, samples in (("train", kept), ("validation", validation), ("test", test))
        }
        scores, lines = _attack(attacks, drawn, len(reports.secrets), grid, seed=seed)
        extra["adversaries"] = scores
        text += "\n\n" + lines
    notes = (*reports.notes, "one report a row; the Bayes error errs low with few reports a cell")
    return Measured(
        path.name, {path.name: found}, None, "Measured from the file's reports.", extra, text, notes
    )


def _measure_pairs(
    path: Path,
    samples: Samples,
    cell_m: float | None,
    cells: int | None,
    *,
    hits: int,
    attacks: tuple[str, ...],
    gain: str | None,
    seed: int,
) -> Measured:
    """Judge recorded (truth, report) pairs as a mechanism, on other data."""
    recorded = Recorded.read(path)
    region = samples.region or Region.around(np.vstack([samples.truth, recorded.reports]))
    grid = Grid.over(
        region, cell_m=CELL_M if cell_m is None and cells is None else cell_m, cells=cells
    )
    found = judge(recorded, samples, grid=grid, hits=hits, seed=seed, region=region)
    extra, text = _extras(found, gain)
    if attacks:
        scores, lines = _attack(
            attacks,
            _drawn(recorded, samples, None, seed=seed),
            len(samples.secrets),
            grid,
            seed=seed,
        )
        extra["adversaries"] = scores
        text += "\n\n" + lines
    return Measured(
        path.name,
        {samples.name: found},
        None,
        "Measured from recorded pairs.",
        extra,
        text,
        samples.notes,
    )


def _costs(path: Path, reports: Samples) -> np.ndarray | None:
    """The loss of each report where the file also holds truths in plane metres."""
    table = read_table(path)
    if not {"truth_x", "truth_y"} <= set(table.column_names):
        return None
    if reports.plane is not None:
        raise DataError(
            f"{path.name} gives truths in metres but reports in degrees; expected both in metres"
        )
    truths = np.stack(
        [numbers(table[name], source=path.name, column=name) for name in ("truth_x", "truth_y")],
        axis=1,
    )
    if not np.all(np.isfinite(truths)):
        raise DataError(
            f"{path.name}: a truth is not two finite numbers of metres; remove or repair the row"
        )
    return euclidean(truths, reports.truth)


def _extras(found: Judgement | None, gain: str | None) -> tuple[dict[str, Any], str]:
    """Other measures of the same table P(secret, report)."""
    assert found is not None
    kind = found.bayes_error.kind
    about = "" if kind == "exact" else "≈"
    extra: dict[str, Any] = {
        "kind_of_these": kind,
        "conditional_entropy_bits": conditional_entropy(found.joint),
        "min_entropy_leakage_bits": min_entropy_leakage(found.joint),
        "santhi_vardy_bound": (
            santhi_vardy_bound(found.joint) if kind == "exact" else None
        ),  # of a table of hits it would bound nothing
    }
    text = (
        f"\nremaining uncertainty {about}{extra['conditional_entropy_bits']:.3f} bits, min-entropy"
        f" leakage {about}{extra['min_entropy_leakage_bits']:.3f} bits"
    )
    if extra["santhi_vardy_bound"] is not None:
        text += f", Bayes error at most {extra['santhi_vardy_bound']:.3f} (Santhi and Vardy)"
    if gain is not None:
        extra["g_vulnerability"] = {
            "gain": gain,
            "value": g_vulnerability(found.joint, named(gain, found.joint.secrets)),
        }
        text += f"\ng-vulnerability ({gain}) {about}{extra['g_vulnerability']['value']:.3f}"
    return extra, text


def _drawn(
    mechanism: Mechanism, first: Samples, test: Samples | None, *, seed: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Reports and their senders: to train adversaries on, to try them on, and of the test data
    where there is any."""
    kept, validation = first.carve(_VALIDATION, seed=seed)
    parts = {"train": kept, "validation": validation} | ({} if test is None else {"test": test})
    return {
        part: draw_reports(mechanism, samples, hits=_ATTACK_HITS, seed=seed + number)[:2]
        for number, (part, samples) in enumerate(parts.items())
    }


def _attack(
    attacks: tuple[str, ...],
    drawn: dict[str, tuple[np.ndarray, np.ndarray]],
    secrets: int,
    grid: Grid,
    *,
    seed: int,
) -> tuple[list[dict[str, Any]], str]:
    """Train adversaries on training reports; accuracy and F1 on each part."""
    made: dict[str, Adversary] = {
        "cells": Cells(grid),
        "neighbours": Neighbours(),
        "neural": Neural(),
    }
    found, lines = [], []
    for name in attacks:
        reports, senders = drawn["train"]
        attacker = made[name].fit(senders, reports, secrets=secrets, seed=seed)
        scores: dict[str, Score] = {
            part: score(attacker, who, where, secrets=secrets)
            for part, (where, who) in drawn.items()
        }
        record: dict[str, Any] = {
            "adversary": name,
            **{part: {"accuracy": got.accuracy, "f1": got.f1} for part, got in scores.items()},
        }
        if name == "neighbours":
            nearest = Neighbours(k=1).fit(senders, reports, secrets=secrets)
            error = (
                1
                - score(
                    nearest, drawn["validation"][1], drawn["validation"][0], secrets=secrets
                ).accuracy
            )
            record["nearest_neighbour_bound"] = bayes_error_bound(error, secrets=secrets)
        found.append(record)
        lines.append([name, *[f"{got.accuracy:.3f} / {got.f1:.3f}" for got in scores.values()]])
    return found, text_table(["adversary: accuracy / F1", *drawn], lines)
