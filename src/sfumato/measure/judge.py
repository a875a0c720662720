"""Everything that is said of one mechanism on one set of data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse, special
from scipy.spatial import cKDTree

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples, Split
from sfumato.errors import ProblemError, arg
from sfumato.measure.estimate import (
    Estimate,
    count_hits,
    estimate_bayes_error,
    estimate_exposed,
    estimate_information,
    estimate_mean,
)
from sfumato.measure.exact import bayes_error, error_of_guess, mutual_information
from sfumato.measure.tables import TABLE_MEASURES
from sfumato.measure.worst import (
    error_per_secret,
    exposed,
    exposed_per_secret,
    geo_indistinguishability,
    worst_report,
)
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.custom import Rule, as_mechanism
from sfumato.mechanism.law import TRUTHS_WHOLE, Law, merge_on_grid
from sfumato.mechanism.loss import Loss, euclidean, on_earth
from sfumato.show import Guided

# Geo-indistinguishability is computed up to this number of pairs of truths times reports, of which
# at least so many are counted, as the pairs are held.
_MOST_PAIRS, _FEWEST_SENT = 2e9, 64
_LOG2_E = float(np.log2(np.e))
_HITS, _MOST_HITS = 500, 10_000_000  # reports drawn per check-in, and in all
_MOST_SPARSE_HITS = 4_000_000  # in all, where users are many


@dataclass(frozen=True)
class PerUser:
    """What a mechanism means for one secret."""

    name: str
    loss: float
    error: float
    exposed: float

    def as_dict(self) -> dict[str, Any]:
        return {"user": self.name, "loss": self.loss, "error": self.error, "exposed": self.exposed}


@dataclass(frozen=True, eq=False, repr=False)
class Judgement(Guided):
    """Loss and leakage of a mechanism on given data, with worst cases and per-user figures.

    `bayes_error` is B(X|Z) for the adversary who knows the law of these very points.
    `learnt_error` is the error of the adversary who learnt the best guesses on other (training)
    data. `geo_epsilon` is the geo-indistinguishability per metre at these points, None where it was
    not computed. `joint` is P(secret, report), measured or computed; `outside` the share of reports
    outside the region; `over_grids` are Bayes errors on other grids, where they were asked for.
    `checkins` is the number of check-ins that were judged and `loss_deviation` the standard
    deviation of their expected losses, None where the data is no sample.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.mechanism.simple import Identity
    >>> judge(Identity(), four_corners(seed=0).test).exposed  # the truth gives everybody away
    <Estimate 1 (exact)>
    """

    instead: ClassVar[dict[str, str]] = {
        "information": "judgement.information_bits",
        "mutual_information": "judgement.information_bits",
        "leakage": "1 - judgement.bayes_error.value",
        "to_pandas": "sf.compare(solution, data.test).to_pandas()",
        "plot": "sf.compare(solution, data.test).plot()",
    }

    loss: Estimate
    bayes_error: Estimate
    information_bits: Estimate
    exposed: Estimate
    worst_report: float
    per_user: tuple[PerUser, ...]
    outside: float
    joint: Joint
    learnt_error: Estimate | None = None
    geo_epsilon: float | None = None
    over_grids: tuple[Estimate, ...] = ()
    checkins: int | None = None
    loss_deviation: float | None = None

    def __repr__(self) -> str:
        loss, error, bits, exposed = (
            f"{'≈' * (figure.kind == 'estimate')}{figure.value:{form}}"
            for figure, form in (
                (self.loss, ".4g"),
                (self.bayes_error, ".3f"),
                (self.information_bits, ".3f"),
                (self.exposed, ".1%"),
            )
        )
        return f"<Judgement: loss {loss}, Bayes error {error}, {bits} bits, {exposed} exposed>"

    @property
    def tables(self) -> dict[str, float | None]:
        """The measures of `TABLE_MEASURES`; None for what needs an exact table and has none."""
        sampled = self.bayes_error.kind != "exact"
        return {
            key: None if measure.exact_only and sampled else measure.of(self.joint)
            for key, measure in TABLE_MEASURES.items()
        }

    @property
    def loss_of_sample(self) -> Estimate | None:
        """The loss as the mean of a sample of check-ins, with Student's 95 % interval for check-ins
        like these; None where the data is no sample."""
        if self.checkins is None or self.loss_deviation is None:
            return None
        half = float("inf")
        if self.checkins > 1:
            free = self.checkins - 1
            half = float(special.stdtrit(free, 0.975)) * self.loss_deviation / free**0.5
        value = self.loss.value
        return Estimate(value, max(0.0, value - half), value + half, "estimate", errs="unbiased")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: lengths in metres, information in bits."""
        return {
            "loss": self.loss.as_dict(),
            "bayes_error": self.bayes_error.as_dict(),
            "information_bits": self.information_bits.as_dict(),
            "exposed": self.exposed.value,
            "exposed_estimate": self.exposed.as_dict(),
            "worst_report": self.worst_report,
            "per_user": [user.as_dict() for user in self.per_user],
            "outside": self.outside,
            "geo_epsilon": self.geo_epsilon,
            "learnt_error": None if self.learnt_error is None else self.learnt_error.as_dict(),
        }


class Judging(Protocol):
    """What knows on its own how it is judged: a solution."""

    def judge(self, samples: Samples | CategoricalData, **options: Any) -> Judgement:
        """Its judgement on some data."""


def judge(
    mechanism: Mechanism | Rule | Judging,
    samples: Samples | CategoricalData,
    *,
    grid: Grid | None = None,
    hits: int | None = None,
    seed: int = 0,
    loss: Loss | None = None,
    region: Region | None = None,
    fitted_on: Samples | CategoricalData | None = None,
    sampled_on: Grid | None = None,
    over: Sequence[Grid] = (),
) -> Judgement:
    """Judge a mechanism on data: exactly where its law is known, from sampled reports where not.

    Main arguments: `mechanism`, also a plain function (`sfumato.mechanism.Function`), or a
    solution, whose own loss, region and training data are used where none are given; `grid` merges
    reports into its cells; without one the mechanism's own reports are judged, which needs a finite
    law (snap a continuous mechanism first).

    Other arguments: `hits`, how many reports are sampled per check-in (500 unless set, fewer where
    that would be more than ten million in all, four where users are many); `loss`, the distance
    unless set; `sampled_on` is the grid to fall back to where the law is not known or too large to
    work out; `fitted_on` is training data for the adversary of `learnt_error`.  Data on another
    plane than the mechanism's (or, where it knows none, than that of `fitted_on`) are brought to
    it.  `over` are grids on which the Bayes error of the same law, or of the same reports, is
    measured as well.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.mechanism.simple import constant
    >>> judge(constant((0.0, 0.0)), four_corners(seed=0).test)
    <Judgement: loss 213.9, Bayes error 0.750, 0.000 bits, 0.0% exposed>
    """
    if isinstance(samples, Split):
        raise ProblemError(
            "got a Split of training and test data; say which part to judge on: data.test or"
            " data.train"
        )
    if not isinstance(mechanism, Mechanism) and hasattr(mechanism, "judge"):
        given = {"loss": loss, "region": region, "fitted_on": fitted_on, "sampled_on": sampled_on}
        return mechanism.judge(
            samples,
            grid=grid,
            hits=hits,
            seed=seed,
            over=over,
            **{name: value for name, value in given.items() if value is not None},
        )
    mechanism, loss = as_mechanism(mechanism), loss or euclidean
    plane = mechanism.plane or (samples if fitted_on is None else fitted_on).plane
    loss = on_earth(loss, plane)
    samples = samples.on_plane(plane)
    fitted_on = None if fitted_on is None else fitted_on.on_plane(plane)
    check_secrets(samples)
    law = mechanism.law(samples.joint(), grid=grid, loss=loss)
    if law is not None:
        other = None
        if fitted_on is not None:
            other = mechanism.law(fitted_on.joint(), grid=grid, loss=loss)
        judged = judge_law(
            law, region=region, fitted_on=other, geo_epsilon=geo_epsilon_at(mechanism, samples)
        )
        errors = tuple(judge_law(merge_on_grid(law, cells)).bayes_error for cells in over)
        judged = replace(judged, over_grids=errors)
        if isinstance(samples, CategoricalData):
            return judged
        return replace(judged, checkins=len(samples), loss_deviation=law.loss_deviation)
    grid = sampled_on if grid is None else grid
    if grid is None:
        raise ProblemError(
            "this mechanism's law is not known; expected a grid to count its reports on, such as"
            f" grid=sf.Grid({arg('cell_m')}=25)",
            hint=f"name its cells with {arg('cell_m')}",
        )
    hits = hits_for(samples) if hits is None else hits
    reports, secret, cost = draw_reports(mechanism, samples, hits=hits, seed=seed, loss=loss)
    learnt = None
    if fitted_on is not None:
        learnt = draw_reports(mechanism, fitted_on, hits=hits, seed=seed + 1, loss=loss)[:2]
    judged = judge_reports(
        secret,
        reports,
        grid,
        names=samples.secrets,
        hits=hits,
        cost=cost,
        region=region,
        learnt_on=learnt,
        learnt_names=None if fitted_on is None else fitted_on.secrets,
    )
    count = len(samples.secrets)
    errors = tuple(
        estimate_bayes_error(secret, reports, cells, secrets=count, hits=hits) for cells in over
    )
    return replace(
        judged,
        over_grids=errors,
        checkins=len(samples),
        loss_deviation=float(cost.reshape(-1, hits).mean(axis=1).std()),
    )


def hits_for(samples: Samples | CategoricalData) -> int:
    """How many reports are drawn for each check-in, unless it is set."""
    most = _MOST_HITS if samples.joint().sparse is None else _MOST_SPARSE_HITS
    return max(1, min(_HITS, most // len(samples)))


def geo_epsilon_at(mechanism: Mechanism, samples: Samples | CategoricalData) -> float | None:
    """Known by design, or computed from the rows at the data's points where that is not too much
    work."""
    if isinstance(samples, CategoricalData):
        return None  # words have no metres between them
    if mechanism.geo_epsilon is not None:
        return mechanism.geo_epsilon
    if samples.joint().sparse is not None:
        return None
    places = samples.joint().places
    assert places is not None
    parts, sent = [], None
    for start in range(0, len(places), TRUTHS_WHOLE):
        truths = places[start : start + TRUTHS_WHOLE]
        rows = mechanism.rows(truths)
        if rows is None:
            return None
        merged = rows.distinct()
        senders = merged.matrix.getnnz(axis=0)
        own = merged.places[senders > 0]
        # a report that some truths can send and others cannot
        if np.any((senders > 0) & (senders < len(truths))) or (
            sent is not None and not np.array_equal(own, sent)
        ):
            return float("inf")
        sent = own
        if len(places) ** 2 * max(len(sent), _FEWEST_SENT) <= _MOST_PAIRS:
            parts.append(merged.matrix[:, senders > 0].toarray())
    return geo_indistinguishability(np.vstack(parts), places) if parts else None


def check_secrets(samples: Samples | CategoricalData) -> None:
    """Refuse data of one user."""
    if (samples.joint().prior > 0).sum() < 2:
        raise ProblemError(
            f"{samples.name} holds one user ({samples.secrets[0]}); expected at least two: there is"
            " nobody to be confused with"
        )


def draw_reports(
    mechanism: Mechanism,
    samples: Samples | CategoricalData,
    *,
    hits: int,
    seed: int,
    loss: Loss = euclidean,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`hits` reports of each truth, their secrets and what they cost."""
    if isinstance(samples, CategoricalData):
        raise ProblemError(
            f"{samples.name} holds probabilities, not samples; only a mechanism with a known law"
            " can be judged on it"
        )
    if not hits >= 1:
        raise ProblemError(f"hits must be at least 1 report per truth; got {hits}")
    truth = np.repeat(samples.truth, hits, axis=0)
    reports = mechanism.sample(truth, seed=seed)
    return reports, np.repeat(samples.secret, hits), loss(truth, reports)


def judge_law(
    law: Law,
    *,
    region: Region | None = None,
    fitted_on: Law | None = None,
    geo_epsilon: float | None = None,
) -> Judgement:
    """Judge a law that is known: every figure is computed, none is sampled."""
    joint, off, cell = law.joint, law.missing, law.cell_m
    wide = 0.0
    if off:
        wide = off * (_LOG2_E + float(np.log2(max(len(joint.secrets), 2) / max(off, 1e-300))))
    errs = "" if cell is None else "exact on these cells"
    return Judgement(
        loss=Estimate.exact(law.loss),
        bayes_error=Estimate.exact(bayes_error(joint), within=off, cell_m=cell, errs=errs),
        information_bits=Estimate.exact(
            mutual_information(joint), within=wide, cell_m=cell, errs=errs
        ),
        exposed=Estimate.exact(exposed(joint), within=off, cell_m=cell),
        worst_report=worst_report(joint),
        per_user=_per_user(joint, law.loss_of),
        outside=law.outside(region),
        joint=joint,
        learnt_error=None if fitted_on is None else _learnt(joint, fitted_on.joint, off, cell),
        geo_epsilon=geo_epsilon,
    )


def _per_user(joint: Joint, loss_of: np.ndarray) -> tuple[PerUser, ...]:
    rows = zip(
        joint.secrets, loss_of, error_per_secret(joint), exposed_per_secret(joint), strict=True
    )
    return tuple(PerUser(name, *map(float, figures)) for name, *figures in rows)


def _learnt(joint: Joint, fitted_on: Joint, off: float, cell: float | None) -> Estimate:
    """Error on `joint` of the best guesses for `fitted_on`."""
    value = error_of_guess(*_aligned(joint, fitted_on))
    return Estimate.exact(
        value, within=off, cell_m=cell, errs="the adversary learnt on training data"
    )


def _aligned(joint: Joint, fitted_on: Joint) -> tuple[Joint, Joint]:
    """Both tables over the places of the first; a place never seen in fitting is guessed as the
    nearest one that was."""
    assert joint.places is not None and fitted_on.places is not None
    names = tuple(dict.fromkeys([*joint.secrets, *fitted_on.secrets]))
    row = {name: number for number, name in enumerate(names)}
    known = np.flatnonzero(fitted_on.place_probability > 0)
    nearest = known[cKDTree(fitted_on.places[known]).query(joint.places)[1]]
    tables = []
    if joint.sparse is not None or fitted_on.sparse is not None:
        columns = np.arange(len(nearest))
        chosen = sparse.csr_matrix(
            (np.ones(len(nearest)), (nearest, columns)), shape=(fitted_on.shape[1], len(nearest))
        )
        learnt = sparse.csr_matrix(fitted_on.matrix) @ chosen
        for part, matrix in ((joint, joint.matrix), (fitted_on, learnt / learnt.sum())):
            flat = sparse.coo_matrix(matrix)
            to = np.array([row[name] for name in part.secrets])
            shape = (len(names), len(joint.places))
            full = sparse.csr_matrix((flat.data, (to[flat.row], flat.col)), shape=shape)
            tables.append(Joint(full, places=joint.places, secrets=names))
        return tables[0], tables[1]
    learnt = fitted_on.table[:, nearest]
    learnt /= learnt.sum()
    if names == joint.secrets == fitted_on.secrets:  # without copies, which may be large
        return joint, Joint(learnt, places=joint.places, secrets=names)
    for part, table in ((joint, joint.table), (fitted_on, learnt)):
        full = np.zeros((len(names), len(joint.places)))
        full[[row[name] for name in part.secrets]] = table
        tables.append(Joint(full, places=joint.places, secrets=names))
    return tables[0], tables[1]


def judge_reports(
    secret: np.ndarray,
    reports: np.ndarray,
    grid: Grid,
    *,
    names: tuple[str, ...],
    hits: int | None = None,
    cost: np.ndarray | None = None,
    region: Region | None = None,
    learnt_on: tuple[np.ndarray, np.ndarray] | None = None,
    learnt_names: tuple[str, ...] | None = None,
) -> Judgement:
    """Judge reports that somebody drew: any mechanism in the world.  All figures are estimates.

    `cost` is the loss of each report where the truth is known; without it the loss is NaN.
    `learnt_on` is (reports, secrets) of training data, `learnt_names` the names there where they
    differ.

    >>> reports = np.repeat([[10.0, 10.0], [90.0, 10.0]], 100, axis=0)
    >>> users, grid = np.repeat([0, 1], 100), Grid(cell_m=50)
    >>> judged = judge_reports(users, reports, grid, names=("ann", "bob"))
    >>> judged.bayes_error.value  # each cell holds one user alone
    0.0
    """
    count = len(names)
    if len(np.unique(secret)) == 1:
        raise ProblemError(
            "the reports hold one user; expected at least two: there is nobody to be confused with"
        )
    counts = count_hits(secret, reports, grid, secrets=count)
    joint = counts.joint(names)
    nothing = Estimate(np.nan, np.nan, np.nan, "estimate", errs="the truth is not in the file")
    loss_of = np.full(count, np.nan)
    if cost is not None:
        loss_of = np.bincount(secret, weights=cost, minlength=count) / np.maximum(
            np.bincount(secret, minlength=count), 1
        )
    learnt = None
    if learnt_on is not None:
        known = learnt_names or names
        fitted = count_hits(learnt_on[1], learnt_on[0], grid, secrets=len(known)).joint(known)
        counted: dict[str, Any] = {"cell_m": grid.cell_m, "hits": hits}
        errs = "high with few training hits: a weak adversary"
        value = error_of_guess(*_aligned(joint, fitted))
        learnt = Estimate.share(value, len(secret), **counted, errs=errs)
    return Judgement(
        loss=nothing if cost is None else estimate_mean(cost, hits=hits),
        bayes_error=estimate_bayes_error(secret, reports, grid, secrets=count, hits=hits),
        information_bits=estimate_information(secret, reports, grid, secrets=count, hits=hits),
        exposed=estimate_exposed(secret, reports, grid, secrets=count, hits=hits),
        worst_report=worst_report(joint),
        per_user=_per_user(joint, loss_of),
        outside=0.0 if region is None else float((~region.contains(reports)).mean()),
        joint=joint,
        learnt_error=learnt,
    )
