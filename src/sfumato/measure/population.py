"""What holds for check-ins to come, with a confidence: the law that check-ins are drawn from,
judged by samples of it that nobody learned from.

No mechanism does better.  Take the scores s_z and prices lambda of a certificate that was made
without the samples.  Every mechanism whose expected loss is within the budget L leaks at least

    E[ h(X, W) ] - lambda L,    h(x, w) = min_z [ s_z(x) + lambda d(w, z) ],

also one that knows the user: the committed adversary's score plus price is averaged over pairs
(X, W), and no pair can do better than its own minimum.  h is a fixed function of one check-in, so
its mean is bounded from samples (`sfumato.measure.interval`).

Linked reports: the same with 1 - least overlap in place of the leakage.  The least overlap is at
most the weighted mean of the pairs' overlaps.  As sqrt(ab) <= (t a + b / t) / 2 for every t > 0,
1 - sum_z sqrt(q q') >= sum_z [(1 - t_z) q(z) + (1 - 1/t_z) q'(z)] / 2; with t from the committed
likelihoods the right side is E[ s_Z(X) ].  If all users have one law this is at most 0, so the
endless budget is at least E[ h(X, W) ] with lambda = 1.

What this mechanism leaks at most, and its loss, is in `sfumato.measure.to_come`.  Assumed: a
user's check-ins are independent draws from the user's own law, and the users' shares are given.
docs/concepts/check-ins-to-come.md explains the figures.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.measure.bound import CertificateError, Claim, least_costs, score_costs
from sfumato.measure.certificate import Certificate, Claimed, claim_of, reports_checked
from sfumato.measure.estimate import Estimate
from sfumato.measure.interval import Evidence, check_confidence, evidence, needed
from sfumato.measure.linked import overlap_at_least
from sfumato.measure.objective import Bayes, Endless, Objective, Overlap, blind_leakage
from sfumato.measure.to_come import (
    WITH_PRIOR,
    at_most,
    at_samples,
    matched,
    mean_loss,
    score_range,
    some_of,
    spread_within,
    users_of,
)
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import traits_of
from sfumato.show import Printed

USEFUL = 0.06  # a bracket of a Bayes error that is this narrow says something
_LINKED = ("overlap", "endless")  # claims
_MIXES = (0.01, 0.05, 0.2)  # of equal likelihoods; which one, training data decides
_PROJECTED_M = 1e-6  # more than rounding moves a point that is brought to the hull


@dataclass(frozen=True, repr=False)
class PopulationCertificate(Printed):
    """What holds for check-ins to come, all of it together with `confidence`.

    Leakages are in the objective's unit.  `least_grid` and `least_plane`: no mechanism within the
    budgets that reports on the grid, or anywhere, leaks less (None where it was not proved).
    `most`: this mechanism leaks no more (None where its law is not finite).  `loss`: its loss,
    where a check-in that costs more than `farthest` counts as that; `above` of the samples do.
    `price` is what a unit more of the average budget is worth at most; `blind` is the leakage of
    reporting nothing.  For endless reports without a budget `least_grid` and `least_plane` are
    losses: no mechanism gives all users one law for less.

    >>> proved = PopulationCertificate(
    ...     Bayes(), 0.95, 480, 4, 173.0, 0.36, 0.35, 0.40,
    ...     Estimate(172.0, 170.0, 174.0, "estimate"), on_grid=True, price=0.001)
    >>> proved
    <PopulationCertificate: Bayes error at least 0.600, 0.640 possible, 95 %, 480 check-ins>
    >>> low, high = proved.bracket  # of the best Bayes error at a loss of 174
    >>> round(low, 3), round(high, 3)
    (0.6, 0.641)
    """

    objective: Objective
    confidence: float
    checkins: int
    users: int
    max_loss: float | None
    least_grid: float
    least_plane: float | None
    most: float | None
    loss: Estimate
    on_grid: bool
    price: float | None = None
    farthest: float | None = None
    above: int = 0
    cells: int = 0
    all_cells: int | None = None
    mixed: float = 0.0
    shares: str = "as in the training data"
    max_distance: float | None = None
    user_budgets: bool = False
    cell_m: float | None = None
    loss_unit: str = "m"
    blind: float = 0.0

    def __repr__(self) -> str:
        reached, possible = ("-" if figure is None else f"{figure:.3f}" for figure in self.shown)
        what, side = self.objective.name, "at most"
        if isinstance(self.objective, Endless):
            what = "one law for all, 1 - overlap"
        elif isinstance(self.objective, Bayes | Overlap):
            what, side = "Bayes error" if self._is_error else what, "at least"
        return (
            f"<PopulationCertificate: {what} {side} {reached}, {possible} possible,"
            f" {100 * self.confidence:g} %, {self.checkins:,} check-ins>"
        )

    @property
    def least(self) -> float | None:
        """The bound that holds for this mechanism's kind of reports."""
        return self.least_grid if self.on_grid else self.least_plane

    @property
    def best_error(self) -> float | None:
        """For the Bayes objective: no mechanism within the budgets has a larger Bayes error."""
        return self._shown(self.least) if self._is_error else None

    @property
    def error(self) -> float | None:
        """For the Bayes objective: this mechanism's Bayes error is at least this."""
        return self._shown(self.most) if self._is_error else None

    @property
    def shown(self) -> tuple[float | None, float | None]:
        """What this mechanism reaches and what none goes beyond: Bayes errors, overlaps, or
        leakages."""
        return self._shown(self.most), self._shown(self.least)

    @property
    def _is_error(self) -> bool:
        """Whether the leakage is the chance that the best guess is right."""
        return isinstance(self.objective, Bayes)

    def _shown(self, leakage: float | None) -> float | None:
        return None if leakage is None else self.objective.shown(leakage)

    @property
    def at_loss(self) -> float | None:
        """The loss at which the bracket holds: the budget, or the upper end of the mechanism's own
        loss where that is more."""
        return None if self.max_loss is None else max(self.max_loss, self.loss.high)

    @property
    def bracket(self) -> tuple[float, float] | None:
        """Between which the best Bayes error (or the least leakage) at the loss `at_loss` lies:
        this mechanism is within that loss and reaches one end, none goes beyond the other."""
        if self.least is None or self.most is None or self.at_loss is None or self.price is None:
            return None
        assert self.max_loss is not None
        least = self.least - self.price * (self.at_loss - self.max_loss)
        return (1 - self.most, 1 - least) if self._is_error else (least, self.most)

    @property
    def width(self) -> float | None:
        """How wide the bracket is."""
        return None if self.bracket is None else self.bracket[1] - self.bracket[0]

    def needed(self, width: float = USEFUL) -> int | None:
        """About how many check-ins would make the bracket this narrow, were all of it chance."""
        if self.width is None or self.width <= width:
            return None
        return needed(self.checkins, self.width, width)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; leakages in the objective's unit, losses in the loss's."""
        bracket = self.bracket
        return {
            "kind": "population",
            "objective": self.objective.name,
            "unit": self.objective.unit,
            "confidence": self.confidence,
            "checkins": self.checkins,
            "users": self.users,
            "shares": self.shares,
            "max_loss": self.max_loss,
            "least_leakage_grid": self.least_grid,
            "least_leakage_plane": self.least_plane,
            "leakage_at_most": self.most,
            "bayes_error_at_least": self.error,
            "best_bayes_error_at_most": self.best_error,
            "loss": self.loss.as_dict(),
            "farthest": self.farthest,
            "above_farthest": self.above,
            "bracket": None if bracket is None else list(bracket),
            "bracket_at_loss": self.at_loss,
            "width": self.width,
            "reports_on_grid": self.on_grid,
            "cells_checked": self.cells,
            "cells_of_grid": self.all_cells,
            "prior_mixed_in": self.mixed,
            "sentence": str(self),
        }


# No mechanism does better ------------------------------------------------------------------------


def least_scores(
    certificate: Certificate,
    problem: Claimed,
    held_out: Samples,
    *,
    on_plane: bool,
    shares: np.ndarray | None = None,
    mixed: float = WITH_PRIOR,
) -> tuple[np.ndarray, float, float, float, int]:
    """h(x, w) of each check-in, its range, what the budgets pay back, and how many cells were
    looked at; nats for information.

    This is the certificate's own checker on a table where each held-out check-in is a truth of its
    own: what `bound_grid` sums is here listed.  Values above the range are cut, which only lowers
    their mean.  `shares` of the users are those of the problem's data unless given; `mixed`, how
    much of the prior is mixed into posteriors, or of equal likelihoods into likelihoods.
    """
    proof = certificate.on_plane if on_plane else certificate.on_grid
    if proof is None:
        raise CertificateError("the certificate has no proof for the plane")
    shares_of_users = problem.joint.prior if shares is None else shares
    weights = users_of(held_out, shares_of_users).weights
    joint = np.zeros((len(shares_of_users), len(held_out)))
    joint[held_out.secret, np.arange(len(held_out))] = weights
    claim = replace(
        claim_of(problem),
        joint=joint / joint.sum(),
        pair_weights=certificate.on_grid.pair_weights,
    )
    guesses = _mixed(proof.shares, shares_of_users, problem.objective, mixed)
    if on_plane:
        assert certificate.on_plane is not None
        cells = certificate.on_plane.cells
        truths, room = _in_hull(held_out.truth, problem.places), 0.0
        count = len(cells)

        def losses(chosen: np.ndarray) -> np.ndarray:
            return np.maximum(cells[chosen].least_distance(truths) - _PROJECTED_M, 0.0)
    else:
        reports = reports_checked(problem)
        guesses = guesses[cKDTree(certificate.on_grid.places).query(reports)[1]]
        count, room = len(reports), _half_diagonal(problem)

        def losses(chosen: np.ndarray) -> np.ndarray:
            return problem.loss(held_out.truth[:, None, :], reports[None, chosen, :])

    least, paid, _ = least_costs(claim, guesses, proof.multipliers, losses)
    if claim.objective in _LINKED:
        low, high = _range_of(claim, guesses)
    else:
        low, high = score_range(problem.objective, problem.joint.secrets, shares_of_users)
    low -= 1e-9  # room for rounding
    prices, _ = claim.prices(proof.multipliers)
    high += room * float(np.max(prices / weights, initial=0.0))
    scores = np.where(np.isposinf(least), low, least / weights) - claim.rounding * (
        1 + max(abs(low), abs(high))
    )
    return np.clip(scores, low, high), low, high, paid, count


def evidence_of(
    certificate: Certificate,
    problem: Claimed,
    held_out: Samples,
    *,
    on_plane: bool,
    delta: float,
    shares: np.ndarray | None = None,
) -> tuple[Evidence, int]:
    """E-values for "some mechanism within the budgets leaks at most m", from check-ins that the
    certificate was made without (nats for information); and how many cells were looked at."""
    shares = problem.joint.prior if shares is None else shares
    some, users = some_of(problem.samples, problem.joint.prior), users_of(held_out, shares)
    known, expected = np.zeros(0), -np.inf
    for tried in _MIXES if problem.objective.scores == "overlap" else (WITH_PRIOR,):
        found_at, low, high, *_ = least_scores(
            certificate, problem, some, on_plane=on_plane, mixed=tried
        )
        size = float(users.weights.max()) * (high - low)  # what chance may take, by training data
        chance = spread_within(found_at, some.secret) * float(np.linalg.norm(users.weights))
        tail = -np.log(delta)
        least = users_of(some, shares).weights @ found_at - chance * (2 * tail) ** 0.5 - size * tail
        if least > expected:
            known, expected, mixed = found_at, float(least), tried
    scores, low, high, paid, cells = least_scores(
        certificate, problem, held_out, on_plane=on_plane, shares=shares, mixed=mixed
    )
    spread = max(spread_within(known, some.secret), 0.01 * (high - low))  # it sets the bets
    e_values = evidence(scores, users, low=low, high=high, spread=spread, delta=delta)
    return e_values.shifted(-paid), cells


def _mixed(shares: np.ndarray, prior: np.ndarray, objective: Objective, mixed: float) -> np.ndarray:
    """Posteriors with some of the prior in them, likelihoods with some equal ones; other shares as
    they are."""
    shares = np.asarray(shares, dtype=float)
    if objective.scores not in ("information", "overlap") or shares.shape[1:] != prior.shape:
        return shares
    total = shares.sum(axis=1, keepdims=True)
    if not np.all(np.abs(total - 1) <= 1e-6):
        return shares  # the checker will say so
    other = prior if objective.scores == "information" else 1 / len(prior)
    return (1 - mixed) * shares / total + mixed * other


def _range_of(claim: Claim, guesses: np.ndarray) -> tuple[float, float]:
    """The least and the largest score of a proof of linked reports, over reports and users: known
    before any held-out check-in is seen."""
    users = np.flatnonzero(claim.prior > 0)
    alone = replace(claim, joint=np.diag(claim.prior / claim.prior.sum()))
    scores = score_costs(alone, guesses)[0][users] / alone.prior[users, None]
    room = claim.rounding * (1 + float(np.abs(scores).max()))
    return float(scores.min()) - room, float(scores.max()) + room


def _half_diagonal(problem: Claimed) -> float:
    """What the report of a truth's own cell costs at most, where the loss says so."""
    traits = traits_of(problem.loss)
    half = problem.grid.cell_m / 2**0.5
    return half**traits.power if traits.power is not None else half


def _in_hull(points: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """The nearest point of the truths' convex hull.  Bringing truth and report to a convex set
    moves them no further apart, so h there is at most h."""
    try:
        hull = ConvexHull(truths)
        corners = truths[hull.vertices]
        outside = np.any(points @ hull.equations[:, :2].T + hull.equations[:, 2] > 0, axis=1)
    except (QhullError, ValueError):  # few truths, or all on a line
        order = np.lexsort(truths.T[::-1])
        corners, outside = truths[order[[0, -1]]], np.ones(len(points), dtype=bool)
    moved = points.copy()
    best = np.full(int(outside.sum()), np.inf)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        way = end - start
        length = float(way @ way)
        along = np.clip((points[outside] - start) @ way / length, 0, 1) if length else 0.0
        nearest = start + np.multiply.outer(along, way) if length else start[None, :]
        distance = np.sum((points[outside] - nearest) ** 2, axis=1)
        closer = distance < best
        rows = np.flatnonzero(outside)[closer]
        moved[rows] = np.broadcast_to(nearest, (len(best), 2))[closer]
        best = np.minimum(best, distance)
    return moved


# Both --------------------------------------------------------------------------------------------


def certify_population(
    certificate: Certificate,
    problem: Claimed,
    mechanism: Mechanism,
    held_out: Samples,
    *,
    confidence: float = 0.95,
) -> PopulationCertificate:
    """What held-out check-ins prove of a mechanism, and of all others within the budgets.

    `problem` is what the certificate was made for; `held_out` are check-ins that neither the
    certificate nor the mechanism was made from.  The chance of being wrong is shared evenly by the
    statements.
    """
    delta = check_confidence(confidence)
    held_out, train = matched(held_out, problem.samples), problem.samples
    certificate.bound(problem)  # refuses what was made for other data, or is forged
    plane = certificate.on_plane is not None and traits_of(problem.loss).is_distance
    shares, objective = problem.joint.prior, problem.objective
    judged, losses = at_samples(mechanism, held_out, shares, problem.loss, seed=1)
    each = delta / (3 + plane + (judged is not None))  # two of them are the ends of the loss
    blind = blind_leakage(objective, problem.joint)
    least: list[float | None] = [None, None]
    looked_at = 0
    for at in range(1 + plane):
        e_values, cells = evidence_of(certificate, problem, held_out, on_plane=at == 1, delta=each)
        least[at] = max(e_values.lower(each) / objective.nats, blind)
        looked_at = looked_at or cells
    if least[1] is not None:
        least[0] = max(least[0] or blind, least[1])
    some = some_of(train, shares)
    learned, known = at_samples(mechanism, some, shares, problem.loss, seed=2)
    loss, farthest, above = mean_loss(losses, users_of(held_out, shares), known, some, 2 * each)
    most, on_grid = None, True
    if judged is not None and learned is not None:
        if isinstance(objective, Overlap):
            table = judged.table()
            reported = Joint(table / table.sum(), secrets=held_out.secrets)
            most = 1 - overlap_at_least(reported, held_out.counts, delta=each, within=judged.within)
        else:
            expected = learned.spreads * held_out.counts / np.maximum(some.counts, 1)
            most = at_most(judged, objective, held_out.secrets, each, expected)
        on_grid = bool(np.all(np.abs(problem.grid.snap(judged.places) - judged.places) <= 1e-6))
    average = problem.max_loss is not None and problem.user_limits is None
    proofs = [proof for proof in (certificate.on_grid, certificate.on_plane) if proof is not None]
    price = max(float(proof.multipliers[0]) for proof in proofs) if average else None
    count = problem.grid.cells_per_side if problem.loss_is_distance else None
    return PopulationCertificate(
        objective=objective,
        confidence=confidence,
        checkins=len(held_out),
        users=int((held_out.counts > 0).sum()),
        max_loss=problem.max_loss,
        least_grid=float(least[0] if least[0] is not None else blind),
        least_plane=least[1],
        most=most,
        loss=loss,
        on_grid=on_grid,
        price=None if price is None else price / objective.nats,
        farthest=farthest,
        above=above,
        cells=looked_at,
        all_cells=None if count is None else count * count,
        max_distance=problem.max_distance,
        user_budgets=problem.user_limits is not None,
        cell_m=problem.grid.cell_m,
        loss_unit=traits_of(problem.loss).unit,
        blind=blind,
        mixed=WITH_PRIOR if objective.scores == "information" else 0.0,
    )
