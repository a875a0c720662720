"""Certificates for check-ins to come: of a run, by held-out check-ins; of a problem, by
cross-fitting."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from sfumato import show
from sfumato.data.categories import CategoricalData
from sfumato.data.read import USUAL, read_checkins, read_table
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import DataError, ProblemError, arg
from sfumato.measure.certificate import Certificate, Proof, load_certificate
from sfumato.measure.interval import Evidence, check_confidence
from sfumato.measure.objective import Bayes, Objective, Overlap, blind_leakage
from sfumato.measure.population import (
    USEFUL,
    PopulationCertificate,
    certify_population,
    evidence_of,
    least_scores,
)
from sfumato.measure.to_come import checkins_of, matched
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact import best_within
from sfumato.solver.problem import Problem
from sfumato.study.certify import check_gap, check_has_budget, new_certificate, recipe_of_run
from sfumato.study.folder import CERTIFICATE, Run, load_run
from sfumato.study.question import problem_of

TEST = "test"  # the held-out part of the run's own recipe
TRAIN = "train"  # its training part, cross-fitted
FOLDS = 4  # of a cross-fitted bound
_SAME_M = 1e-3  # places this close are one place
_QUICK_TRUTHS = 240  # of a certificate for one block
_QUICK_GAP = 8e-3
_SURELY = 4.0  # standard deviations of the number of repeated visits


@dataclass(frozen=True, eq=False)
class CertifiedToCome:
    """A run's certificate for check-ins to come.  Prints as sentences.

    `left_out` counts held-out check-ins of users that the run does not know.
    """

    run: Run
    problem: Problem
    proved: PopulationCertificate
    left_out: int
    made_now: bool

    def __str__(self) -> str:
        return show.text(self.proved)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        known = {"left_out": self.left_out, "certificate_made_now": self.made_now}
        return {**self.proved.as_dict(), **known}


def certify_to_come(
    folder: str | Path,
    held_out: str | Path | Samples,
    *,
    confidence: float = 0.95,
    other: Path | None = None,
    train: str | Samples | None = None,
    data_seed: int = 0,
    gap: float = 1e-3,
) -> CertifiedToCome:
    """What holds for check-ins to come, of a run and of every other mechanism within its budgets.

    Main arguments: `held_out`, check-ins that the run was made without: a file that is read as the
    run's own was, "test" for the test part of the run's recipe, or samples.  Other arguments:
    `other`, a run folder whose certificate is used; `train`, the run's own data or where it lies
    now; `data_seed`, for data made by a formula; `gap`, of a certificate that has to be made.

    >>> import sfumato as sf
    >>> data = sf.four_corners(seed=0)
    >>> few = data.train.take(np.arange(0, 1920, 48))
    >>> problem = sf.Problem(few, max_loss=173, cell_m=250)
    >>> sf.solve(problem, sf.Exact(gap=0.05, plane=False)).save("run")
    >>> certify_to_come("run", data.test, train=few).proved
    <PopulationCertificate: Bayes error at least 0.477, 0.629 possible, 95 %, 480 check-ins>
    """
    check_confidence(confidence)
    check_gap(gap)
    run = load_run(folder)
    recipe, test = None, None
    own: Samples | CategoricalData
    if isinstance(train, Samples):
        own = train
    else:
        recipe = recipe_of_run(run, train)
        own, test = recipe.data()
    problem = problem_of(run, own, option="train")
    check_has_budget(problem)
    own = checkins_of(own)
    files: tuple[Path, Path] | None = None
    drawn_apart = False
    if isinstance(held_out, Samples):
        asked = held_out
    elif str(held_out) == TEST and not Path(TEST).exists():
        if test is None:
            raise DataError(
                f"the recipe of {run.folder} has no test part; name a file of held-out check-ins"
            )
        asked, drawn_apart = test, True
        if recipe is not None:  # a record may name a test file that solve did not look at
            check_test_file(recipe, checkins_of(own), test)
    else:
        steps = Recipe(str(held_out)) if recipe is None else recipe
        asked = read_checkins(
            held_out,
            square=steps.square,
            secret=steps.secret,
            lat=steps.lat,
            lon=steps.lon,
            seed=data_seed,
        )
        if recipe is not None and Path(held_out).is_file() and Path(recipe.source).is_file():
            files = Path(recipe.source), Path(held_out)
    if asked.hash == own.hash:
        raise DataError(
            f"{asked.name} is the data that {run.folder} was made from, all {len(asked)} check-ins;"
            " expected check-ins that it was made without"
        )
    known = matched(asked, own)
    if not drawn_apart:
        refuse_shared(own, known, files=files)
    path = (run.folder if other is None else Path(other)) / CERTIFICATE
    made_now = other is None and not path.exists()
    certificate = new_certificate(problem, gap) if made_now else load_certificate(path)
    proved = certify_population(certificate, problem, run.mechanism, known, confidence=confidence)
    _refuse_useless(proved, known)
    if made_now:
        certificate.save(path)
    return CertifiedToCome(run, problem, proved, len(asked) - len(known), made_now)


def _refuse_useless(proved: PopulationCertificate, held_out: Samples) -> None:
    """Where nothing is proved beyond what needs no data, say how many check-ins would do."""
    bounded = isinstance(proved.objective, Bayes | Overlap)
    says_most = proved.most is not None and (proved.most < 1 or not bounded)
    if not says_most and (proved.least is None or proved.least <= proved.blind + 1e-9):
        enough = proved.needed() or 10 * len(held_out)
        raise DataError(
            f"{len(held_out)} check-ins of {proved.users} users prove nothing about check-ins to"
            f" come; expected about {enough:,} for a Bayes error to within {USEFUL:g}"
        )


# Shared check-ins --------------------------------------------------------------------------------


def refuse_shared(
    train: Samples, held_out: Samples, *, files: tuple[Path, Path] | None = None
) -> None:
    """Refuse held-out check-ins that are training check-ins, with their number.

    Where both files have a time in each row, a row is the same if user, place and time are.
    Without times a user's visit to a known place may be a new visit: it is refused where there are
    more of them than repeated visits among the training check-ins explain (none, where nobody was
    at a place twice).
    """
    same = _at_known_places(train, held_out)
    timed = None if files is None else _rows_with_times(train, *files)
    if timed is not None:
        if timed:
            raise DataError(
                f"{timed} of the held-out check-ins are training check-ins (same user, place and"
                " time); expected check-ins that the run was made without"
            )
        return
    repeated = _revisits(train)
    expected = len(held_out) * repeated
    if same > expected + _SURELY * np.sqrt(expected * (1 - repeated)):
        raise DataError(
            f"{same} of {len(held_out)} held-out check-ins are training check-ins (same user and"
            f" place, where repeated visits explain about {expected:.0f}); expected check-ins that"
            " the run was made without"
        )


def check_test_file(recipe: Recipe, train: Samples, test: Samples) -> None:
    """Refuse a recipe's test file that holds training check-ins, as `refuse_shared` does."""
    if recipe.test is None:
        return
    if test.hash == train.hash:
        raise DataError(
            f"all {len(test)} check-ins of {test.name} are the training check-ins; expected"
            " check-ins that the run is made without"
        )
    files = Path(recipe.source), Path(recipe.test)
    refuse_shared(train, test, files=files if all(path.is_file() for path in files) else None)


def _at_known_places(train: Samples, held_out: Samples) -> int:
    """How many held-out check-ins lie where the same user has a training check-in."""
    count = 0
    for user in np.unique(held_out.secret):
        own = train.truth[train.secret == user]
        if len(own):
            near = cKDTree(own).query(held_out.truth[held_out.secret == user])[0]
            count += int((near <= _SAME_M).sum())
    return count


def _revisits(train: Samples) -> float:
    """The share of training check-ins at a place where the same user has another one."""
    count = 0
    for user in np.unique(train.secret):
        own = train.truth[train.secret == user]
        if len(own) > 1:
            count += int((cKDTree(own).query(own, k=2)[0][:, 1] <= _SAME_M).sum())
    return count / len(train)


def _rows_with_times(train: Samples, trained: Path, held_out: Path) -> int | None:
    """How many rows of the held-out file are rows of the training file, with the same time, at a
    place where the user has a training check-in; None where a file has no times, or gaps in
    them."""
    tables = [_timed_rows(path, train) for path in (trained, held_out)]
    if tables[0] is None or tables[1] is None:
        return None
    both = [row for row in tables[1] if row in tables[0]]
    known = {
        (train.secrets[user], *np.round(place, 1).tolist())
        for user, place in zip(train.secret.tolist(), train.truth, strict=True)
    }
    return sum(1 for user, _, x, y in both if (user, x, y) in known)


def _timed_rows(path: Path, train: Samples) -> dict[tuple[str, str, float, float], int] | None:
    """User, time and place (to a decimetre, on the training plane) of the rows of known users; None
    where one has no time: two rows without times may be two visits."""
    table = read_table(path)
    columns = {name.lower(): name for name in table.column_names}

    def named(words: tuple[str, ...]) -> str | None:
        return next((columns[word] for word in words if word in columns), None)

    when, who = named(USUAL["time"]), named(USUAL["secret"])
    axes = ("x", "y") if train.plane is None else ("lon", "lat")
    x, y = (named(USUAL[axis]) for axis in axes)
    if when is None or who is None or x is None or y is None:
        return None
    users = [str(name) for name in table[who].to_pylist()]
    keep = [row for row, name in enumerate(users) if name in set(train.secrets)]
    first, second = (np.asarray(table[name].to_pylist(), dtype=float)[keep] for name in (x, y))
    places = np.stack([first, second], axis=1)
    if train.plane is not None:
        places = train.plane.to_metres(second, first)
    times = ["" if time is None else str(time).strip() for time in table[when].to_pylist()]
    if not all(times[row] for row in keep):
        return None
    return {
        (users[row], times[row], *np.round(place, 1).tolist()): row
        for row, place in zip(keep, places, strict=True)
    }


# Cross-fitting -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CrossFitted:
    """No mechanism within the budgets leaks less than `least` on check-ins to come, with
    `confidence`: proved from the training data alone.

    `judged` check-ins were judged by certificates that were made without them; `estimate` is the
    mean of what they give, without an interval.
    """

    objective: Objective
    least: float
    estimate: float
    confidence: float
    judged: int
    blocks: int

    @property
    def best_error(self) -> float | None:
        """For the Bayes objective: no mechanism has a larger Bayes error."""
        return 1 - self.least if isinstance(self.objective, Bayes) else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON; leakages in the objective's unit."""
        return {
            "kind": "population, cross-fitted",
            "objective": self.objective.name,
            "least_leakage": self.least,
            "best_bayes_error_at_most": self.best_error,
            "estimate": self.estimate,
            "confidence": self.confidence,
            "judged": self.judged,
            "blocks": self.blocks,
        }


def cross_fitted_bound(
    problem: Problem,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    deadline: Deadline = NEVER,
    confidence: float = 0.95,
    progress: Callable[[str], None] = lambda text: None,
) -> CrossFitted | None:
    """What no mechanism on the grid within the budgets goes below on check-ins to come, from the
    problem's own data; None where the time does not last for one certificate.

    The data is cut into `folds` blocks, by user and at random.  Each block but the first is judged
    by a certificate that was made from the blocks before it, so that the product of their e-values
    is an e-value.  Folds judged by all others would depend on each other: the mean of their
    e-values has the width of one fold's samples only.
    """
    delta = check_confidence(confidence)
    if isinstance(problem.objective, Overlap):
        raise ProblemError(
            "from training data alone, bounds for check-ins to come are proved for one report only,"
            " and this is for linked ones; name held-out check-ins"
        )
    samples = check_folds(problem.samples, folds)
    blocks = blocks_of(samples, folds, seed=seed)
    shares, unit = problem.joint.prior, problem.objective.nats
    judged = sum(map(len, blocks[1:]))
    total: Evidence | None = None
    estimate, weight, made = 0.0, 0, 0
    for number in range(1, folds):
        if deadline.passed:
            break
        progress(f"certificate {number} of {folds - 1}")
        before = replace(problem, samples=samples.take(np.concatenate(blocks[:number])))
        certificate = _quick_certificate(before, seed=seed, deadline=deadline)
        block = samples.take(blocks[number])
        share = len(block) / judged
        evidence, _ = evidence_of(
            certificate, before, block, on_plane=False, delta=delta**share, shares=shares
        )
        scores, _, _, paid, _ = least_scores(
            certificate, before, block, on_plane=False, shares=shares
        )
        means = np.bincount(block.secret, weights=scores, minlength=len(shares))
        mean = float(shares @ (means / np.maximum(block.counts, 1))) - paid
        estimate, weight = estimate + len(block) * mean, weight + len(block)
        total, made = evidence if total is None else evidence.after(total), made + 1
    if total is None:
        return None
    blind = blind_leakage(problem.objective, problem.joint)
    return CrossFitted(
        problem.objective,
        max(total.lower(delta) / unit, blind),
        max(estimate / weight / unit, blind),
        confidence,
        weight,
        made + 1,
    )


def cross_fit_run(
    folder: str | Path,
    *,
    train: str | None = None,
    confidence: float = 0.95,
    progress: Callable[[str], None] = lambda text: None,
) -> CrossFitted:
    """What no mechanism within a run's budgets goes below on check-ins to come, from the run's own
    training data; `train` says where that lies now, if it moved."""
    run = load_run(folder)
    problem = problem_of(run, recipe_of_run(run, train).data()[0], option="train")
    check_has_budget(problem)
    bound = cross_fitted_bound(problem, confidence=confidence, progress=progress)
    assert bound is not None  # there is no time limit
    return bound


def check_folds(data: Samples | CategoricalData, folds: int = FOLDS) -> Samples:
    """The data; refuses what cannot be cut into `folds` blocks with check-ins of every user."""
    samples = checkins_of(data)
    if not folds >= 2:
        raise ProblemError(f"{arg('folds')} must be at least 2; got {folds}")
    few = np.flatnonzero((samples.counts > 0) & (samples.counts < folds))
    if few.size:
        raise DataError(
            f"user {samples.secrets[few[0]]} has {samples.counts[few[0]]} check-in(s); expected at"
            f" least {folds}, one for each fold"
        )
    return samples


def blocks_of(samples: Samples, folds: int, *, seed: int) -> list[np.ndarray]:
    """Rows of `folds` blocks with check-ins of every user, drawn at random."""
    check_folds(samples, folds)
    random = np.random.default_rng((seed, 17))
    parts: list[list[np.ndarray]] = [[] for _ in range(folds)]
    for user in range(len(samples.secrets)):
        rows = random.permutation(np.flatnonzero(samples.secret == user))
        for part, piece in zip(parts, np.array_split(rows, folds), strict=True):
            part.append(piece)
    return [np.sort(np.concatenate(part)) for part in parts]


def _quick_certificate(problem: Problem, *, seed: int, deadline: Deadline) -> Certificate:
    """Scores from some of the truths, at the price that is best for some others."""
    samples = problem.samples
    assert isinstance(samples, Samples)
    random = np.random.default_rng((seed, 18))
    each = max(1, _QUICK_TRUTHS // len(samples.secrets))
    rows = samples.some_of_each(each, random)
    small = replace(problem, samples=samples.take(rows))
    optimum = best_within(small, gap=_QUICK_GAP, deadline=deadline)

    def at(factor: float) -> Certificate:
        proof = Proof(small.report_places, optimum.scores, optimum.multipliers * factor)
        return Certificate.of(problem, proof)

    others = np.setdiff1d(np.arange(len(samples)), rows)
    if not len(others):
        return at(1.0)
    tried = samples.take(np.sort(random.permutation(others)[:_QUICK_TRUTHS]))

    def negative(factor: float) -> float:
        scores, _, _, paid, _ = least_scores(at(factor), problem, tried, on_plane=False)
        return paid - float(np.mean(scores))

    if not len(optimum.multipliers) or deadline.passed or np.any(tried.counts == 0):
        return at(1.0)
    from scipy.optimize import minimize_scalar  # 12 MB: only where it is used

    minimum = minimize_scalar(negative, bounds=(0.8, 1.2), method="bounded", options={"maxiter": 6})
    return at(float(minimum.x))
