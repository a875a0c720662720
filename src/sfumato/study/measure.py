"""Measure a run, a file of reports or a file of recorded pairs: loss and leakage, and what else is
asked for."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.adversary.base import Adversary, Score, score
from sfumato.adversary.counting import Cells, Neighbours, bayes_error_bound
from sfumato.adversary.neural import Neural
from sfumato.data.categories import CategoricalData
from sfumato.data.grid import STICKY_CELL_M, Grid, Region, check_sticky_cell
from sfumato.data.plane import Plane, check_degrees
from sfumato.data.read import USUAL, numbers, read_checkins, read_table
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.data.traces import read_traces
from sfumato.errors import DataError, FileError, ProblemError, arg
from sfumato.measure.cost import judging_cost
from sfumato.measure.exact import g_vulnerability, gain_named
from sfumato.measure.judge import Judgement, check_secrets, draw_reports, judge, judge_reports
from sfumato.measure.membership import Membership, certificate_membership, membership_test
from sfumato.measure.objective import objective_named
from sfumato.measure.outlook import Outlook
from sfumato.measure.prior import Priors, under_priors
from sfumato.measure.repeated import Repeated, repeated_reports
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.custom import Recorded, is_pairs
from sfumato.mechanism.loss import euclidean, traits_of
from sfumato.memory import Expected
from sfumato.show import InNotebooks, Printed
from sfumato.solver.problem import CELL_M
from sfumato.study.certify import Gap, gaps_of
from sfumato.study.folder import Run, load_run
from sfumato.study.leave_one_out import LeftOutUser, leave_one_out
from sfumato.study.question import loss_of, problem_of, seed_of, solver_of
from sfumato.study.traces import TracesFound, check_traces, measure_traces

ATTACKS = ("cells", "neighbours", "neural")
TRAINING, TEST = "training data", "test data"
VALIDATION = 0.2
_ATTACK_HITS = 10

Reports = dict[str, tuple[np.ndarray, np.ndarray]]  # by part: places, and who sent them
Foretold = Callable[[Samples, Expected], None]


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What to measure besides loss and leakage.

    `attacks` are adversaries to train; `gain` names a g-vulnerability.  Of a run alone:
    `reports_per_user`, how many reports of one user an adversary sees (empty for none), with
    `sticky_cell_m`, the cell within which a report is kept; `traces`, a file of traces to be found,
    with its columns `trace`, `time` and `split` (`sfumato.data.traces`); `leave_one_out`, solve
    again without each user, with `keep`, a folder for those runs.
    """

    attacks: tuple[str, ...] = ()
    gain: str | None = None
    reports_per_user: tuple[int, ...] = ()
    sticky_cell_m: float | None = None
    traces: Path | None = None
    trace: str | None = None
    time: str | None = None
    split: str | None = None
    leave_one_out: bool = False
    keep: Path | None = None

    def __post_init__(self) -> None:
        if (self.traces is None) != (self.trace is None):
            raise ProblemError(
                f"{arg('traces')} is a file of traces and {arg('trace')} its column that says which"
                " rows belong together; give both or neither"
            )
        if self.traces is None and (self.time is not None or self.split is not None):
            raise ProblemError(
                f"{arg('time')} and {arg('split')} are columns of a file of traces; they go with"
                f" {arg('traces')}"
            )
        if self.sticky_cell_m is not None and not self.reports_per_user:
            raise ProblemError(
                f"{arg('sticky_cell_m')} says what a place is for repeated reports; it goes with"
                f" {arg('reports_per_user')}"
            )
        if self.sticky_cell_m is not None:
            check_sticky_cell(self.sticky_cell_m)
        if self.keep is not None and not self.leave_one_out:
            raise ProblemError(
                f"{arg('keep')} is the folder of runs of users left out; it goes with"
                f" {arg('leave_one_out')}"
            )

    @property
    def of_a_run(self) -> bool:
        """Whether something was asked for that only a run can answer."""
        return bool(self.reports_per_user) or self.leave_one_out or self.traces is not None


NOTHING_MORE = Extras()


@dataclass(frozen=True)
class _Asked:
    """How to measure: cells to merge reports on, reports per truth, a seed, and what else."""

    cell_m: float | None
    cells: int | None
    hits: int | None
    seed: int
    extras: Extras

    @property
    def own_cells(self) -> bool:
        """Whether cells were named."""
        return self.cell_m is not None or self.cells is not None

    def grid(self, region: Region) -> Grid:
        """The cells that were named, or the usual ones, over a region."""
        cell_m = self.cell_m if self.own_cells else CELL_M
        return Grid.over(region, cell_m=cell_m, cells=self.cells)

    def grid_for(self, run: Run) -> Grid | None:
        """The cells that were named, where the run is of places."""
        return None if run.region is None or not self.own_cells else self.grid(run.region)

    def foretell(
        self, mechanism: Mechanism, samples: Samples, grid: Grid | None, foretold: Foretold | None
    ) -> None:
        """Refuse what does not fit into memory; say what the rest takes."""
        expected = judging_cost(mechanism, samples, grid=grid, hits=self.hits)
        if foretold is not None:
            foretold(samples, expected)


@dataclass(frozen=True)
class Attack:
    """An adversary that learnt from reports: its score on each part of the data, and for the
    nearest neighbour the Bayes error that its error proves."""

    name: str
    scores: Mapping[str, Score]
    bound: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        parts = {part: {"accuracy": s.accuracy, "f1": s.f1} for part, s in self.scores.items()}
        bound = {} if self.bound is None else {"nearest_neighbour_bound": self.bound}
        return {"adversary": self.name, **parts, **bound}


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured(Printed, InNotebooks):
    """Judgements of one mechanism (or file) by data set, the first one leading, and the extras.

    `priors` is None for a file, whose law is not known; `to_come` is what to expect of check-ins
    to come, of a run that was cross-fitted or has held-out check-ins; `gap`, what its certificate
    proves.  Prints as tables.
    """

    name: str
    judged: Mapping[str, Judgement]
    to_come: Outlook | None = None
    gap: Gap | None = None
    max_loss: float | None = None
    loss_unit: str = "m"
    status: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gain: tuple[str, float] | None = None
    attacks: tuple[Attack, ...] = ()
    priors: Mapping[str, Priors | None] | None = None
    membership: Membership | None = None
    membership_of_certificate: Membership | None = None
    repeated: Mapping[str, Repeated] = field(default_factory=dict)
    traces: TracesFound | None = None
    left_out: tuple[LeftOutUser, ...] = ()

    def __repr__(self) -> str:
        return f"<Measured {self.name}: {self.first!r}>"

    @property
    def first(self) -> Judgement:
        """The judgement that leads."""
        return next(iter(self.judged.values()))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the first data set's figures at the top, the test data's under "test"."""
        label = next(iter(self.judged))
        test = None if label == TEST else self.judged.get(TEST)
        figures = {
            "name": self.name,
            "on": label,
            "max_loss": self.max_loss,
            "to_come": None if self.to_come is None else self.to_come.as_dict(),
            "proved_on_training_data": None if self.gap is None else self.gap.as_dict(),
            **self.first.as_dict(),
            "status": self.status,
            "warnings": self.warnings,
            "test": None if test is None else test.as_dict(),
            "kind_of_these": self.first.bayes_error.kind,
            **self.first.tables,
        }
        priors, certificate = self.priors or {}, self.membership_of_certificate
        asked = {
            "g_vulnerability": self.gain and {"gain": self.gain[0], "value": self.gain[1]},
            "adversaries": [attack.as_dict() for attack in self.attacks],
            "other_shares": {name: shares and shares.as_dict() for name, shares in priors.items()},
            "membership": self.membership and self.membership.as_dict(),
            "membership_of_certificate": certificate and certificate.as_dict(),
            "repeated": {name: many.as_dict() for name, many in self.repeated.items()},
            "traces": self.traces and self.traces.as_dict(),
            "left_out": [user.as_dict() for user in self.left_out],
        }
        return figures | {name: value for name, value in asked.items() if value}


def measure(
    target: Path,
    *,
    data: str | None = None,
    secret: str | None = None,
    lat: str | None = None,
    lon: str | None = None,
    cell_m: float | None = None,
    cells: int | None = None,
    hits: int | None = None,
    seed: int = 0,
    extras: Extras = NOTHING_MORE,
    progress: Callable[[str], None] | None = None,
    foretold: Foretold | None = None,
) -> Measured:
    """Judge a run folder, a file of reports or, with `data`, a file of recorded pairs.

    Main arguments: `target`; `data`, what to judge on in place of the run's own, with its columns
    `secret`, `lat` and `lon`.  Other arguments: `cell_m` or `cells`, the grid that reports are
    merged on; `hits`, reports per truth where the law is not known; `seed` of these and of the
    adversaries; `extras`; `foretold` is called with `data` and what it takes to judge on it, before
    that begins.  What does not fit into memory is refused.
    """
    if not target.exists():
        raise FileError(
            f"there is no file or folder {target}; expected a run folder, or a file of reports"
        )
    columns: dict[str, Any] = {"secret": secret, "lat": lat, "lon": lon}
    asked = _Asked(cell_m, cells, hits, seed, extras)
    if target.is_dir():
        if data is None and extras.traces is None and any(columns.values()):
            raise ProblemError(
                f"{arg('secret')}, {arg('lat')} and {arg('lon')} are for a file of reports, for"
                f" {arg('data')} or for {arg('traces')}; a run knows its own columns"
            )
        run = load_run(target)
        traces = None
        if extras.traces is not None and extras.trace is not None:
            traces = read_traces(
                extras.traces,
                trace=extras.trace,
                time=extras.time,
                split=extras.split,
                plane=run.record.data.plane,
                **columns,
            )
            check_traces(run, traces)
        first, test = data_of(run, source=data, **({} if data is None else columns))
        if data is not None and isinstance(first, Samples):
            asked.foretell(run.mechanism, first, asked.grid_for(run), foretold)
        measured = _of_run(run, first, test, data is None, asked, progress)
        if traces is None:
            return measured
        tell = progress or (lambda text: None)
        return replace(measured, traces=measure_traces(run, traces, seed=seed, progress=tell))
    if extras.of_a_run:
        raise ProblemError(
            f"{target.name} holds reports; repeated reports, traces and users left out are measured"
            " of a run, whose law is known"
        )
    if data is not None:
        return _of_pairs(target, Recipe(data, **columns).load().all, asked, foretold)
    if hits is not None:
        raise ProblemError(
            f"{target.name} holds reports that were drawn already; leave {arg('hits')} out, or"
            f" judge pairs on other data with {arg('data')}"
        )
    try:
        reports = _reports_in(target, columns)
    except DataError as error:
        raise _without_user(target) or error from None
    return _of_reports(target, reports, asked)


def _reports_in(path: Path, columns: dict[str, Any]) -> Samples:
    """Who sent which report; of recorded pairs, where a column names the user."""
    table = read_table(path, words=(columns["secret"],))
    names = table.column_names
    pairs = is_pairs(names)
    if not pairs and not _named_reports(path.name, names, columns):
        return read_checkins(path, **columns)
    if pairs and columns["secret"] is None and not {*map(str.lower, names)} & {*USUAL["secret"]}:
        raise ProblemError(
            f"{path.name} holds pairs of truth and report; expected the check-ins to judge them on,"
            " or a column for the user",
            hint=f"{arg('data')} DATA",
        )
    reports = table.rename_columns([name.removeprefix("report_") for name in names])
    return replace(read_checkins(reports, **columns), name=path.name)


def _named_reports(source: str, names: list[str], columns: dict[str, Any]) -> bool:
    """Whether the places of reports have names of their own, and the command line no others."""
    for pair in (("lat", "lon"), ("x", "y")):
        if columns["lat"] or columns["lon"] or not {f"report_{one}" for one in pair} <= set(names):
            continue
        twice = [name for name in names if name.lower() in (*USUAL[pair[0]], *USUAL[pair[1]])]
        if twice:
            raise DataError(
                f"{source} has '{twice[0]}' beside 'report_{pair[0]}'; expected the place of each"
                f" report once: name the truth's columns truth_{pair[0]} and truth_{pair[1]}"
            )
        return True
    return False


def _without_user(path: Path) -> DataError | None:
    """What to say of a table whose users `sanitize` left out, by its record; None of any other."""
    try:
        record = json.loads(path.with_name(f"{path.name}.record.json").read_bytes())
        dropped = [name for name in record["dropped_columns"] if name.lower() in USUAL["secret"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    if not dropped:
        return None
    return DataError(
        f"{path.name} does not say who sent each report: sanitize dropped the column"
        f" '{dropped[0]}'; measure a table that has it",
        hint=f"sanitize with {arg('keep')} {dropped[0]} for measuring",
    )


def _of_run(
    run: Run,
    first: Samples | CategoricalData,
    test: Samples | None,
    own_data: bool,
    asked: _Asked,
    progress: Callable[[str], None] | None,
) -> Measured:
    extras, hits, seed = asked.extras, asked.hits, asked.seed
    if isinstance(first, CategoricalData) and (asked.own_cells or extras.attacks):
        raise ProblemError(
            "cells and trained adversaries are for places; categories are judged as they are"
        )
    loss, mechanism = loss_of(run, first), run.mechanism
    grid = asked.grid_for(run)
    if grid is None and mechanism.law(first.joint(), loss=loss) is None:
        grid = run.grid
    parts: dict[str, Samples | CategoricalData] = {TRAINING if own_data else first.name: first}
    if test is not None:
        parts[TEST] = test
    judged = {
        label: judge(
            mechanism,
            part,
            grid=grid,
            hits=hits,
            seed=seed,
            region=run.region,
            loss=loss,
            fitted_on=None if part is first else first,
        )
        for label, part in parts.items()
    }
    attacks: tuple[Attack, ...] = ()
    where = grid or run.grid
    if extras.attacks and isinstance(first, Samples) and where is not None:
        drawn = _drawn(mechanism, first, test, seed=seed)
        attacks = _attacks(extras.attacks, drawn, len(first.secrets), where, seed=seed)
    membership = of_certificate = None
    if own_data and isinstance(first, Samples) and test is not None:
        membership = membership_test(mechanism, first, test, grid=grid, loss=loss, seed=seed)
        if run.certificate is not None:
            of_certificate = certificate_membership(run.certificate, first, test, seed=seed)
    repeated = {
        label: repeated_reports(
            mechanism,
            part,
            extras.reports_per_user,
            sticky_cell_m=STICKY_CELL_M if extras.sticky_cell_m is None else extras.sticky_cell_m,
            grid=grid,
            region=run.region,
            loss=loss,
            seed=seed,
        )
        for label, part in (parts.items() if extras.reports_per_user else ())
    }
    left_out: tuple[LeftOutUser, ...] = ()
    if extras.leave_one_out:
        if not own_data:
            raise ProblemError(
                f"users are left out of the run's own training data; {arg('leave_one_out')} does"
                f" not go with {arg('data')}"
            )
        left_out = leave_one_out(
            problem_of(run, first),
            solver_of(run),
            on={label: part for label, part in parts.items() if isinstance(part, Samples)},
            seed=seed_of(run),
            grid=grid,
            hits=hits,
            keep=extras.keep,
            progress=progress,
        )
    to_come = run.record.to_come
    if to_come is None and own_data and TEST in judged:  # a run from before it was recorded
        objective = objective_named(run.record.objective, first.secrets)
        to_come = Outlook.held_out(judged[TEST], objective)
    return Measured(
        name=run.name,
        judged=judged,
        to_come=to_come,
        gap=gaps_of([run], first)[0] if own_data and run.certificate is not None else None,
        max_loss=run.max_loss,
        loss_unit=traits_of(loss).unit,
        status=run.record.status,
        warnings=run.record.warnings,
        notes=first.notes,
        gain=_gain(next(iter(judged.values())), extras.gain),
        attacks=attacks,
        priors={label: under_priors(judgement) for label, judgement in judged.items()},
        membership=membership,
        membership_of_certificate=of_certificate,
        repeated=repeated,
        left_out=left_out,
    )


def _of_reports(path: Path, reports: Samples, asked: _Asked) -> Measured:
    """Reports that somebody drew."""
    check_secrets(reports)
    extras, seed, grid = asked.extras, asked.seed, asked.grid(Region.around(reports.truth))
    costs = _costs(path, reports)
    judged = judge_reports(reports.secret, reports.truth, grid, names=reports.secrets, cost=costs)
    notes, cells = reports.notes, judged.joint.table.shape[1]
    if costs is None:
        wanted = " and ".join(_truth_columns(reports)[0])
        notes += (
            "the file's places are taken for reports; without columns"
            f" {wanted} the loss is not known",
        )
    attacks: tuple[Attack, ...] = ()
    if extras.attacks:
        rest, test = reports.carve(VALIDATION, seed=seed)
        kept, validation = rest.carve(VALIDATION, seed=seed + 1)
        parts = {"train": kept, "validation": validation, "test": test}
        drawn = {part: (samples.truth, samples.secret) for part, samples in parts.items()}
        attacks = _attacks(extras.attacks, drawn, len(reports.secrets), grid, seed=seed)
    return Measured(
        name=path.name,
        judged={path.name: judged},
        status="Measured from the file's reports.",
        notes=(
            *notes,
            f"one report per row, {len(reports) / cells:.1f} per cell; with few reports per cell"
            " the Bayes error is too low and the exposed share too high: compare with larger cells",
        ),
        gain=_gain(judged, extras.gain),
        attacks=attacks,
    )


def _of_pairs(path: Path, samples: Samples, asked: _Asked, foretold: Foretold | None) -> Measured:
    """Recorded (truth, report) pairs as a mechanism, on other data."""
    recorded = Recorded.read(path, plane=samples.plane)
    unrecorded, notes = recorded.unrecorded(samples.truth), samples.notes
    if unrecorded:
        notes += (
            f"{unrecorded:,} of {len(samples):,} check-ins lie more than 1 m from every recorded"
            " truth and are answered as the nearest",
        )
    if recorded.recorded_once:
        notes += (f"{recorded.given_again}; without {arg('data')} the pairs are counted as draws",)
    region = samples.region or Region.around(np.vstack([samples.truth, recorded.reports]))
    extras, seed, grid = asked.extras, asked.seed, asked.grid(region)
    asked.foretell(recorded, samples, grid, foretold)
    judged = judge(recorded, samples, grid=grid, hits=asked.hits, seed=seed, region=region)
    attacks: tuple[Attack, ...] = ()
    if extras.attacks:
        drawn = _drawn(recorded, samples, None, seed=seed)
        attacks = _attacks(extras.attacks, drawn, len(samples.secrets), grid, seed=seed)
    return Measured(
        name=path.name,
        judged={samples.name: judged},
        status="Measured from recorded pairs.",
        notes=notes,
        gain=_gain(judged, extras.gain),
        attacks=attacks,
    )


def data_of_runs(
    runs: list[Run], *, source: str | None
) -> tuple[Samples | CategoricalData, Samples | CategoricalData | None]:
    """What to judge runs on, and the training data of the first, where it can be read again."""
    if not runs:
        if source is None:
            raise DataError(
                "recorded pairs do not say what to judge them on; name the data",
                hint=f"{arg('data')} DATA",
            )
        return Recipe(source).load().all, None
    check_planes([run.record.data.plane for run in runs], [str(run.folder) for run in runs])
    train, test = data_of(runs[0], source=source)
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
                f" same {arg('square')}"
            )


def data_of(
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
            raise DataError(
                f"a run on categories is judged on its own table; {arg('data')} is for places"
            )
        given = Recipe(source, secret=secret, lat=lat, lon=lon).load().all
        return given.on_plane(run.mechanism.plane), None
    hint = f"{arg('data')} FILE"
    if run.recipe is None:
        raise DataError(f"{run.folder} does not say where its data is; name it with {hint}")
    train, test = run.recipe.data()
    if train.hash != run.record.data.hash:
        raise DataError(
            f"the data of {run.folder} has changed since the run was made; name other data or solve"
            " again",
            hint=hint,
        )
    return train, test


def _truth_columns(reports: Samples) -> tuple[tuple[str, str], tuple[str, str]]:
    """The columns of the truths beside these reports, and those in the other unit."""
    degrees, metres = ("truth_lat", "truth_lon"), ("truth_x", "truth_y")
    return (metres, degrees) if reports.plane is None else (degrees, metres)


def _costs(path: Path, reports: Samples) -> np.ndarray | None:
    """The loss of each report in metres, where the file also holds truths: truth_lat and truth_lon
    beside reports in degrees, truth_x and truth_y beside reports in metres."""
    table = read_table(path)
    wanted, others = _truth_columns(reports)
    if not set(wanted) <= set(table.column_names):
        if set(others) <= set(table.column_names):
            raise DataError(
                f"{path.name} gives truths as {' and '.join(others)} but its reports are in"
                f" {'metres' if reports.plane is None else 'degrees'}; expected"
                f" {' and '.join(wanted)}"
            )
        if half := [name for name in wanted if name in table.column_names]:
            raise DataError(
                f"{path.name} has the column '{half[0]}' of its truths alone; expected"
                f" {' and '.join(wanted)}"
            )
        return None
    first, second = (numbers(table[name], source=path.name, column=name) for name in wanted)
    if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
        raise DataError(f"{path.name}: a truth is not two finite numbers; remove or repair the row")
    if reports.plane is None:
        return euclidean(np.stack([first, second], axis=1), reports.truth)
    check_degrees(first, second, source=path.name)
    near = reports.plane.flattened(first, second)[1]
    if not near.all():
        swapped = reports.plane.flattened(second, first)[1].all()
        raise DataError(
            f"{path.name}: the truth of data row {np.argmin(near) + 1} lies more than"
            f" {reports.plane.reach_m / 1000:.0f} km from the reports"
            + (
                "; truth_lat and truth_lon are probably swapped"
                if swapped
                else ": remove or repair such rows"
            )
        )
    return euclidean(reports.plane.to_metres(first, second), reports.truth)


def _gain(judged: Judgement, gain: str | None) -> tuple[str, float] | None:
    if gain is None:
        return None
    return gain, g_vulnerability(judged.joint, gain_named(gain, judged.joint.secrets))


def _drawn(mechanism: Mechanism, first: Samples, test: Samples | None, *, seed: int) -> Reports:
    """Reports and their senders: to train adversaries on, to try them on, and of the test data
    where there is any."""
    kept, validation = first.carve(VALIDATION, seed=seed)
    parts = {"train": kept, "validation": validation} | ({} if test is None else {"test": test})
    return {
        part: draw_reports(mechanism, samples, hits=_ATTACK_HITS, seed=seed + number)[:2]
        for number, (part, samples) in enumerate(parts.items())
    }


def _attacks(
    names: tuple[str, ...], drawn: Reports, secrets: int, grid: Grid, *, seed: int
) -> tuple[Attack, ...]:
    """Train adversaries on training reports and score them on each part."""
    made: dict[str, Adversary] = dict(
        zip(ATTACKS, (Cells(grid), Neighbours(), Neural()), strict=True)
    )
    reports, senders = drawn["train"]
    attacks = []
    for name in names:
        attacker = made[name].fit(senders, reports, secrets=secrets, seed=seed)
        scores = {
            part: score(attacker, who, where, secrets=secrets)
            for part, (where, who) in drawn.items()
        }
        bound = None
        if name == "neighbours":
            nearest = Neighbours(k=1).fit(senders, reports, secrets=secrets)
            where, who = drawn["validation"]
            error = 1 - score(nearest, who, where, secrets=secrets).accuracy
            bound = bayes_error_bound(error, secrets=secrets)
        attacks.append(Attack(name, scores, bound))
    return tuple(attacks)
