"""Check a proof that no mechanism within the budgets leaks less than a number. NumPy only.

For any scores s_z in the admissible set and any multipliers >= 0, every mechanism within the
budgets leaks at least

    sum_w min_z [ sum_x p(x,w) s_z(x) + sum_k lambda_k charge_k(w) d(w,z) ] - sum_k lambda_k
    limit_k.

The file of a certificate holds *shares*, not scores: per report a probability vector. It is turned
into scores here, so that what is checked is always admissible:

  bayes         guess x with chance share(x)               s(x) = share(x)
  gain          play row a of the gains with chance share  s(x) = sum_a share(a) g(a,x)
  information   believe the posterior share(x)             s(x) = log( share(x) / p(x) ), nats
  overlap       believe likelihoods share(x) of the users  s(x) = sum_x' m(x,x') (1 - sqrt(share(x')
                                                           / share(x))) / 2p(x)
  endless       any numbers                                s(x) = share(x) - mean of them over p

Overlap is 1 - the least overlap of two users (`sfumato.measure.linked`); the weights m of the pairs
are part of the proof, one for all reports.  It follows from
1 - sqrt(q q') = max over t of [ (1 - t) q + (1 - 1/t) q' ] / 2, summed over reports.  For endless
reports the laws of all users are equal, J(x,z) = p(x) q(z), so that such scores sum to 0: with the
budget 0 and the multiplier 1 what is left is a bound on the loss of every such mechanism.

The bound holds for reports at the places given (`bound_grid`) or for every report on the plane
(`bound_plane`). A bound on the vulnerability v says: Bayes error at most 1 - v.

Rounding goes downwards: what is returned is at most the true bound of the numbers as stored. Let
u = 2^-53, X the secrets, A the guesses, k = 8(X + A) + 64. Shares are normalised here (A u), scores
are sums of A products (gain) or logarithms of a ratio (log is good to 8u), and a cost sums X of
them: in all it is off by less than k u p(w) (1 + largest score); for overlaps and endless reports
the largest score is that of its terms, before they cancel. Prices sum at most X + 1
multipliers times sums of X probabilities; they are lowered by k u, which also covers the rounding
of a distance. Totals are summed exactly (fsum), less k u of the size of their terms. The exact
rational checker, `sfumato.measure.recheck`, holds this against arithmetic without rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isfinite, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sfumato.measure.cells import Cells, CertificateError, covers_hull, widest_root_m

__all__ = ["CertificateError", "Claim", "bound_grid", "bound_plane", "least_costs", "score_costs"]

_PAIRS_AT_ONCE = 2_000_000
_UNIT = 2.0**-53
_MOST_PRICE = 1e15
_OBJECTIVES = ("bayes", "gain", "information", "overlap", "endless")


@dataclass(frozen=True, eq=False)
class Claim:
    """What the bound is about: the data, the objective and the budgets.

    joint: P(secret, truth), secrets x truths, dense or (SciPy's CSR) sparse.  gains: g(guess,
    secret), for the objective "gain" only.  max_loss, user_max_loss (one per secret, given the
    secret), cap: the budgets, None where there is none.  pair_weights: m of all pairs of secrets
    (the first with the second, with the third, ...), for the objective "overlap" only.
    """

    joint: Any
    objective: str = "bayes"
    gains: np.ndarray | None = None
    max_loss: float | None = None
    user_max_loss: np.ndarray | None = None
    cap: float | None = None
    pair_weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = self.joint.data if sparse.issparse(self.joint) else np.asarray(self.joint)
        if not (
            len(np.shape(self.joint)) == 2
            and np.all(values >= 0)
            and abs(np.sum(values) - 1) <= 1e-9
        ):
            raise CertificateError("the joint table must hold probabilities that sum to 1")
        if self.objective not in _OBJECTIVES:
            raise CertificateError(
                f"objective must be one of {', '.join(_OBJECTIVES)}; got {self.objective!r}"
            )
        if (self.objective == "gain") != (self.gains is not None):
            raise CertificateError("gains go with the objective gain, and only with it")
        if self.gains is not None:
            gains = np.asarray(self.gains, dtype=float)
            if gains.ndim != 2 or gains.shape[1] != self.secrets or not np.all(np.isfinite(gains)):
                raise CertificateError(
                    f"gains must be finite, guesses x {self.secrets} secrets; got shape"
                    f" {gains.shape}"
                )
        users = (
            np.zeros(0)
            if self.user_max_loss is None
            else np.asarray(self.user_max_loss, dtype=float)
        )
        if self.user_max_loss is not None and np.shape(users) != (self.secrets,):
            raise CertificateError(
                f"budgets per secret need {self.secrets} numbers; got shape {np.shape(users)}"
            )
        budgets = np.array(
            [budget for budget in (self.max_loss, self.cap, *users) if budget is not None],
            dtype=float,
        )
        if not (np.all(budgets >= 0) and np.all(np.isfinite(budgets))):
            raise CertificateError("budgets must be finite and at least 0")

    @property
    def guesses(self) -> int:
        """How many things an adversary may guess: the columns of the shares."""
        return self.secrets if self.gains is None else len(self.gains)

    @property
    def secrets(self) -> int:
        """How many secrets there are."""
        return int(np.shape(self.joint)[0])

    @property
    def rounding(self) -> float:
        """k u, see above."""
        return (8 * (self.secrets + self.guesses) + 64) * _UNIT

    @cached_property
    def prior(self) -> np.ndarray:
        """P(secret), each rounded once."""
        if sparse.issparse(self.joint):
            ends = zip(self.joint.indptr, self.joint.indptr[1:], strict=False)
            return np.array([fsum(self.joint.data[start:end].tolist()) for start, end in ends])
        return np.array([fsum(row) for row in np.asarray(self.joint).tolist()])

    def budgets(self) -> tuple[np.ndarray, np.ndarray]:
        """What a unit of loss at each truth is charged to each budget (budgets x truths), and their
        limits. Order: total, then secrets."""
        charges: list[np.ndarray] = []
        limits: list[float] = []
        if self.max_loss is not None:
            charges.append(np.asarray(self.joint.sum(axis=0)).ravel())
            limits.append(float(self.max_loss))
        if self.user_max_loss is not None:
            if sparse.issparse(self.joint):
                raise CertificateError("budgets per secret are not proved for this many secrets")
            charges.extend(self.joint)
            limits.extend(self.prior * np.asarray(self.user_max_loss, dtype=float))
        table = np.array(charges).reshape(len(limits), self.joint.shape[1])
        return table, np.array(limits, dtype=float)

    def prices(self, multipliers: ArrayLike) -> tuple[np.ndarray, float]:
        """Price of one unit of loss per truth, rounded down, and what the budgets pay back."""
        charges, limits = self.budgets()
        multipliers = np.asarray(multipliers, dtype=float)
        if multipliers.shape != limits.shape:
            raise CertificateError(
                f"{len(limits)} budgets need as many multipliers; got shape {multipliers.shape}"
            )
        if not np.all((multipliers >= 0) & (multipliers <= _MOST_PRICE)):
            raise CertificateError(
                f"multipliers must be at least 0 and at most {_MOST_PRICE:g}; got another"
            )
        if self.objective == "endless" and not np.all(multipliers == 1):
            raise CertificateError("the loss itself is bounded: its multiplier is 1; got another")
        paid = float(multipliers @ limits)
        if not isfinite(paid):
            raise CertificateError("multipliers times budgets are not finite: nothing is proved")
        return (multipliers @ charges) * (1 - self.rounding), paid


def score_costs(claim: Claim, given: ArrayLike) -> tuple[np.ndarray, float]:
    """sum_x p(x,w) s_z(x), truths x reports, from the shares given (reports x guesses), after
    checking them; and the largest size of a score."""
    shares = np.asarray(given, dtype=float)
    if shares.ndim != 2 or shares.shape[1] != claim.guesses:
        raise CertificateError(
            f"shares must have {claim.guesses} columns; got shape {shares.shape}"
        )
    if claim.objective == "endless":
        return _centred_costs(claim, shares)
    if not (np.all(shares >= 0) and np.all(np.abs(shares.sum(axis=1) - 1) <= 1e-6)):
        raise CertificateError("each row of shares must be a probability vector")
    shares = shares / shares.sum(axis=1, keepdims=True)
    if claim.objective == "bayes":
        return claim.joint.T @ shares.T, 1.0
    if claim.objective == "gain":
        gains = np.asarray(claim.gains, dtype=float)
        return claim.joint.T @ (shares @ gains).T, float(np.abs(gains).max())
    if claim.objective == "overlap":
        return _overlap_costs(claim, shares)
    prior = claim.prior
    # a secret that never occurs weighs nothing
    ratio = np.where(prior > 0, shares / np.where(prior > 0, prior, 1.0), 1.0)
    never = ratio == 0
    scores = np.log(np.where(never, 1.0, ratio))
    costs = claim.joint.T @ scores.T
    if never.any():  # log 0 counts only where the secret has mass at the truth
        costs[(claim.joint.T > 0).astype(float) @ never.T.astype(float) > 0] = -np.inf
    return costs, float(np.abs(scores).max())


def _overlap_costs(claim: Claim, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """The costs of likelihoods, for the overlap."""
    secrets, prior = claim.secrets, claim.prior
    weights = np.asarray(() if claim.pair_weights is None else claim.pair_weights, dtype=float)
    first, second = np.triu_indices(secrets, 1)
    if weights.shape != first.shape or not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
        raise CertificateError(
            f"an overlap needs a weight of at least 0 for each of {len(first)} pairs of secrets"
        )
    if np.any(weights[(prior[first] == 0) | (prior[second] == 0)] > 0):
        raise CertificateError("a pair of secrets that never occur proves nothing")
    table = np.zeros((secrets, secrets))  # a little less than weights that sum to 1
    table[first, second] = weights / weights.sum() * (1 - (len(first) + 8) * _UNIT)
    table += table.T
    roots, weighed = np.sqrt(shares), table.any(axis=1)
    if np.any(shares[:, weighed] <= 0):
        raise CertificateError("a likelihood of 0 proves nothing; expected shares above 0")
    halves = 2 * np.where(prior > 0, prior, 1.0)
    alone = table.sum(axis=1) / halves
    among = (roots @ table) / np.where(weighed, roots * halves, 1.0)
    return claim.joint.T @ (alone - among).T, float((alone + among).max())


def _centred_costs(claim: Claim, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """The costs of any numbers, less their mean over the secrets."""
    if not np.all(np.abs(shares) <= _MOST_PRICE):
        raise CertificateError(f"scores must be numbers of at most {_MOST_PRICE:g}; got another")
    centred = shares - (shares @ claim.prior / claim.prior.sum())[:, None]
    return claim.joint.T @ centred.T, 2 * float(np.abs(shares).max())


def least_costs(
    claim: Claim,
    shares: ArrayLike,
    multipliers: ArrayLike,
    loss_of: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, float, float]:
    """Per truth min_z [ sum_x p(x,w) s_z(x) + price(w) d(w,z) ], infinite where the cap leaves no
    report; what the budgets pay back; and the largest size of a score."""
    prices, paid = claim.prices(multipliers)
    truths = claim.joint.shape[1]
    shares = np.asarray(shares, dtype=float)
    if shares.ndim != 2 or not len(shares):
        raise CertificateError(f"shares must be a table with a row per report; got {shares.shape}")
    least, largest = np.full(truths, np.inf), 0.0
    step = max(1, _PAIRS_AT_ONCE // truths)
    for start in range(0, len(shares), step):
        indices = np.arange(start, min(start + step, len(shares)))
        loss = np.asarray(loss_of(indices), dtype=float)
        if loss.shape != (truths, len(indices)) or not np.all(loss >= 0):
            raise CertificateError("losses must be numbers, at least 0, one per truth and report")
        costs, size = score_costs(claim, shares[indices])
        largest = max(largest, size)
        least = np.minimum(least, _cheapest(claim, costs, prices, loss))
    return least, paid, largest


def bound_grid(
    claim: Claim,
    shares: ArrayLike,
    multipliers: ArrayLike,
    loss_of: Callable[[np.ndarray], np.ndarray],
) -> float:
    """Least leakage of any mechanism within the budgets on the reports that `loss_of` knows.

    loss_of: report indices -> losses, truths x len(indices). Unit: probability, gain, or nats.
    """
    least, paid, largest = least_costs(claim, shares, multipliers, loss_of)
    if np.any(np.isposinf(least)):
        raise CertificateError("the cap leaves some truth without a report: no mechanism exists")
    if np.any(np.isneginf(least)):
        raise CertificateError(
            "a posterior of 0 where the secret occurs proves nothing; expected shares above 0"
        )
    total = fsum([*least.tolist(), -paid])
    size = fsum(claim.prior) * (1 + largest) + fsum(np.abs(least).tolist()) + paid
    bound = nextafter(total - claim.rounding * size, -np.inf)
    if not isfinite(bound):
        raise CertificateError("the bound is not a finite number: nothing is proved")
    return bound


def bound_plane(
    claim: Claim,
    shares: ArrayLike,
    multipliers: ArrayLike,
    truths_m: ArrayLike,
    cells: Cells,
) -> float:
    """The same for every mechanism that reports anywhere on the plane, loss = Euclidean distance in
    metres.

    The scores are constant on square cells that must cover the convex hull of the truths: a report
    outside it can be moved to its nearest point of the hull, which costs no more and leaks no more.
    The loss is taken to the nearest point of the cell, rounded down, hence at most the loss of any
    report in it.
    """
    truths_m = np.asarray(truths_m, dtype=float)
    if np.shape(shares)[:1] != (len(cells),):
        raise CertificateError(f"{len(cells)} cells need as many rows of shares")
    if not cells.side_m <= widest_root_m(truths_m):
        raise CertificateError(
            f"the root of the cells is {cells.side_m:g} m wide; expected at most"
            f" {widest_root_m(truths_m):g} m for truths of this extent"
        )
    if not covers_hull(truths_m, cells):
        raise CertificateError("the cells do not cover the convex hull of the truths")
    return bound_grid(
        claim, shares, multipliers, lambda chosen: cells[chosen].least_distance(truths_m)
    )


def _cheapest(claim: Claim, costs: np.ndarray, prices: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Per truth, the least cost over these reports, those beyond the cap left out."""
    free = prices == 0  # also of a loss that is infinite
    if free.any():
        loss_paid = np.where(free[:, None], 0.0, loss)
    else:
        loss_paid = loss
    costs = costs + prices[:, None] * loss_paid
    if claim.cap is not None:
        costs = np.where(loss <= claim.cap * (1 + 1e-12), costs, np.inf)
    return np.asarray(costs.min(axis=1))
