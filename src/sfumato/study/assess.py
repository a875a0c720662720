"""An assessment of a run for those who sign: figures by adversary, without a place and without a
user."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import show
from sfumato.data.frames import Tabular
from sfumato.data.joint import MOST_DENSE
from sfumato.data.read import numbers, read_table
from sfumato.data.samples import Samples
from sfumato.errors import DataError, ProblemError, arg
from sfumato.files import plain, write_text
from sfumato.measure.estimate import Estimate
from sfumato.measure.exact import bayes_vulnerability, mutual_information
from sfumato.measure.objective import Bayes
from sfumato.measure.repeated import linked_bayes_error
from sfumato.measure.where import Where, where
from sfumato.measure.worst import exposed as exposed_share
from sfumato.measure.worst import worst_report
from sfumato.mechanism.rows import MOST_ENTRIES
from sfumato.study.certify import Gap, certify_run
from sfumato.study.folder import CERTIFICATE, Run, load_run
from sfumato.study.measure import TEST, VALIDATION, Extras, Measured, data_of, measure
from sfumato.version import __version__

FORMAT = "sfumato assessment 1"
SENSITIVE_M = 100.0  # within which a true place counts as at a sensitive one
_COUNTS = (5, 20)


@dataclass(frozen=True)
class Risk:
    """What one adversary gets: `name` says who (the words are in render), `unit` of the figures.

    `figure` is None where it was not assessed; `blind` is the same for a guess without a report,
    `truth` where the true place is reported, `best` what no mechanism within the budget goes below,
    proved; each None where it is not known.  Shares are of right guesses, so lower is more private;
    for metres higher is.  A figure without a unit is an area under a curve.
    """

    name: str
    unit: str
    figure: Estimate | None
    blind: float | None = None
    truth: float | Estimate | None = None
    best: float | None = None
    count: int | None = None


@dataclass(frozen=True)
class Assessment(Tabular):
    """What an officer files: who could find out what, how sure that is, and what was not looked at.

    It holds no place of the data and no name of a user.  `to_pandas` gives the figures, `html`
    writes the page.
    """

    solver: str
    mechanism_hash: str
    data_hash: str
    users: int
    checkins: int
    held_out: int
    max_loss: float | None
    loss: Estimate
    held_out_loss: Estimate | None
    loss_unit: str
    cell_m: float | None
    to_come: str | None
    risks: tuple[Risk, ...]
    places: int = 0
    sensitive_places: int = 0
    made: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())

    def risk(self, name: str) -> Risk:
        """The figures of one adversary."""
        return next(risk for risk in self.risks if risk.name == name)

    @property
    def proved_best(self) -> bool:
        """Whether a best possible figure is proved for any adversary."""
        return any(risk.best is not None for risk in self.risks)

    def columns(self) -> dict[str, Any]:
        """One row per adversary; a figure that was not assessed is missing."""
        risks = self.risks
        return {
            "adversary": [
                risk.name if risk.count is None else f"{risk.name}, {risk.count}" for risk in risks
            ],
            "figure": [_value(risk.figure) for risk in risks],
            "low": [None if risk.figure is None else risk.figure.low for risk in risks],
            "high": [None if risk.figure is None else risk.figure.high for risk in risks],
            "blind_guess": [risk.blind for risk in risks],
            "truth_sent": [_value(risk.truth) for risk in risks],
            "proven_best": [risk.best for risk in risks],
            "unit": [risk.unit for risk in risks],
        }

    def html(self, path: str | Path) -> None:
        """Write the page to file, which loads nothing from elsewhere."""
        write_text(path, show.page(self))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, "sfumato": __version__, **plain(asdict(self))}


def _value(figure: float | Estimate | None) -> float | None:
    return None if figure is None else float(figure)


def assess(
    run: str | Path,
    *,
    data: str | Path | None = None,
    sensitive: str | Path | None = None,
    sensitive_m: float | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Assessment:
    """Assess a run folder on its own data, its held-out check-ins where it has some, or on all of
    `data`.

    `sensitive` is a table of places (latitude and longitude) that nobody is to be seen at, each
    with all that lies within `sensitive_m` metres (100 unless set).

    >>> import sfumato as sf
    >>> samples = sf.four_corners(seed=0).test
    >>> samples.to_pandas().to_csv("data.csv", index=False)
    >>> sf.solve(sf.Problem(samples, max_loss=173), sf.Coin()).save("run")
    >>> found = sf.assess("run", data="data.csv")
    >>> found.risk("one report").blind, found.risk("two tables joined").figure is None
    (0.25, True)
    """
    if sensitive is None and sensitive_m is not None:
        raise ProblemError(f"{arg('sensitive_m')} goes with {arg('sensitive')}, a table of places")
    sensitive_m = SENSITIVE_M if sensitive_m is None else sensitive_m
    if not 0 < sensitive_m < float("inf"):
        raise ProblemError(f"{arg('sensitive_m')} must be above 0 metres; got {sensitive_m}")
    loaded, source = load_run(run), None if data is None else str(data)
    folder = loaded.folder
    first, test = data_of(loaded, source=source)
    if not isinstance(first, Samples) or loaded.region is None:
        raise ProblemError("an assessment is of places; this run is about categories")
    for part in (first, test):
        if part is not None:
            _check_size(loaded, part)
    marked = None if sensitive is None else _sensitive(Path(sensitive), first)
    extras = Extras(attacks=("cells",), reports_per_user=_COUNTS)
    measured = measure(folder, data=source, seed=seed, extras=extras, progress=progress)
    own = first.hash == loaded.record.data.hash and (folder / CERTIFICATE).exists()
    gap = certify_run(folder, source=source, finish=False).gap if own else None
    on = first if test is None else test
    joint = on.joint()
    assert joint.places is not None
    near = None if marked is None else _near(joint.places, marked, sensitive_m)
    place_guess = where(
        loaded.mechanism, joint.places, joint.place_probability, near_sensitive=near
    )
    return _assembled(
        loaded, first, test, measured, gap, place_guess, 0 if marked is None else len(marked)
    )


def _check_size(run: Run, samples: Samples) -> None:
    """Refuse, before anything is measured, tables of linked reports that are too large."""
    mechanism = run.mechanism
    joint = (samples if mechanism.plane is None else samples.on_plane(mechanism.plane)).joint()
    assert joint.places is not None
    law = mechanism.rows_on(joint.places)
    if law is None and run.grid is not None:
        law = mechanism.rows_on(joint.places, run.grid)
    users, truths = joint.shape
    reports = 0 if law is None else len(law.places)
    if joint.sparse is None and users * reports <= MOST_ENTRIES:
        return
    fitting = int(min(MOST_DENSE / truths, MOST_ENTRIES / max(1, reports)))
    raise ProblemError(
        f"an assessment links the reports of each user in whole tables, and {users:,} users with"
        f" {truths:,} places and {reports:,} reports are too many for them; about {fitting:,} users"
        f" would fit: write their check-ins to a table of its own and name it with {arg('data')}"
    )


def _assembled(
    run: Run,
    first: Samples,
    test: Samples | None,
    measured: Measured,
    gap: Gap | None,
    place_guess: Where | None,
    sensitive_places: int,
) -> Assessment:
    label = TEST if TEST in measured.judged else next(iter(measured.judged))
    judged, on = measured.judged[label], first if test is None else test
    joint, outlook = on.joint(), measured.to_come
    blind = float(joint.prior.max())
    figures = judged if outlook is None else outlook
    proven = None
    if gap is not None and isinstance(gap.objective, Bayes) and gap.proved_anything:
        proven = gap.bound
    truth = bayes_vulnerability(joint)
    user = max((1 - person.error for person in judged.per_user), default=None)
    repeated = measured.repeated[label]
    attack = next(iter(measured.attacks), None)
    telling = None if measured.membership is None else measured.membership.telling
    part, tried = (
        ("validation", int(VALIDATION * len(first))) if test is None else ("test", len(on))
    )
    score = None if attack is None else attack.scores.get(part)
    right = None if score is None else Estimate.share(score.accuracy, max(1, tried), hits=tried)
    sensitive = Risk("a sensitive place", "share", None)
    if place_guess is not None and place_guess.sensitive is not None:
        found_out, blindly = _exactly(place_guess.sensitive), place_guess.sensitive_blind
        sensitive = Risk("a sensitive place", "share", found_out, blindly, 1.0)
    place = None if place_guess is None else Estimate.exact(place_guess.error_m)
    place_blindly = None if place_guess is None else place_guess.blind_m
    of_truths = linked_bayes_error(joint, repeated.counts)
    linked = zip(repeated.counts, repeated.places, of_truths, strict=True)
    risks = (
        Risk("one report", "share", _right(figures.bayes_error), blind, truth, proven),
        Risk("the user found most often", "share", _exactly(user), blind, 1.0),
        Risk(
            "the worst report", "share", _exactly(judged.worst_report), blind, worst_report(joint)
        ),
        Risk("exposed reports", "share", figures.exposed, 0.0, exposed_share(joint)),
        Risk("information", "bits", figures.information_bits, 0.0, mutual_information(joint)),
        *(
            Risk("linked reports", "share", _right(error), blind, _right(truths), count=count)
            for count, error, truths in linked
        ),
        Risk("endless reports from one place", "share", _right(repeated.endless), blind, truth),
        Risk("two tables joined", "share", None),
        Risk("in the training data", "", None if telling is None else telling[1], 0.5, 1.0),
        Risk("a trained intruder", "share", right, blind, truth),
        Risk("people who are not in the data", "share", None),
        Risk("the place", "m", place, place_blindly, 0.0),
        sensitive,
    )
    held_out = 0 if test is None else len(test)
    if outlook is not None and outlook.how == "held-out":
        held_out = outlook.checkins
    return Assessment(
        solver=run.record.solver,
        mechanism_hash=run.record.mechanism_hash,
        data_hash=run.record.data.hash,
        users=len(first.secrets),
        checkins=len(first),
        held_out=held_out,
        max_loss=run.max_loss,
        loss=figures.loss,
        held_out_loss=judged.loss_of_sample if test is not None and label == TEST else None,
        loss_unit=measured.loss_unit,
        cell_m=None if run.grid is None else run.grid.cell_m,
        to_come=None if outlook is None else outlook.how,
        risks=risks,
        places=0 if place_guess is None else place_guess.places,
        sensitive_places=sensitive_places,
    )


def _right(error: Estimate) -> Estimate:
    """How often a guess is right, where the estimate says how often it is wrong."""
    value, low, high = 1 - error.value, 1 - error.high, 1 - error.low
    return replace(error, value=value, low=low, high=high, errs="")


def _exactly(value: float | None) -> Estimate | None:
    return None if value is None else Estimate.exact(value)


def _sensitive(path: Path, samples: Samples) -> np.ndarray:
    """Places in metres from a table of latitudes and longitudes (x and y for data in metres)."""
    table = read_table(path)
    names = {name.lower(): name for name in table.column_names}
    pairs = (("lat", "lon"), ("latitude", "longitude")) if samples.plane else (("x", "y"),)
    for pair in pairs:
        if all(name in names for name in pair):
            first, second = (
                numbers(table[names[name]], source=path.name, column=names[name]) for name in pair
            )
            break
    else:
        raise DataError(
            f"{path.name} has no columns {' and '.join(pairs[0])}; expected one sensitive place per"
            " row"
        )
    if not len(first):
        raise DataError(f"{path.name} has 0 rows; expected one sensitive place per row")
    if samples.plane is None:
        return np.stack([first, second], axis=1)
    return samples.plane.to_metres(first, second)


def _near(places: np.ndarray, sensitive: np.ndarray, within_m: float) -> np.ndarray:
    apart = np.hypot(*(places[:, None, :] - sensitive[None, :, :]).transpose(2, 0, 1))
    return np.asarray(apart.min(axis=1) <= within_m)
