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

The bound holds for reports at the places given (`bound_grid`) or for every report on the plane
(`bound_plane`). A bound on the vulnerability v says: Bayes error at most 1 - v. Rounding: a margin
of 1e-12 times the size of the terms is taken off, so the number printed is never above the true one
by more than about 1e-12.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import SfumatoError

_PAIRS_AT_ONCE = 2_000_000
_MARGIN = 1e-12


class CertificateError(SfumatoError):
    """The certificate proves nothing, with the reason."""


@dataclass(frozen=True)
class Claim:
    """What the bound is about: the data, the objective and the budgets.

    joint: P(secret, truth), secrets x truths.  gains: g(guess, secret), for the objective "gain"
    only. max_loss, user_max_loss (one per secret, given the secret), cap: the budgets, None where
    there is none.
    """

    joint: np.ndarray
    objective: str = "bayes"
    gains: np.ndarray | None = None
    max_loss: float | None = None
    user_max_loss: np.ndarray | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        if not (
            np.ndim(self.joint) == 2
            and np.all(self.joint >= 0)
            and abs(np.sum(self.joint) - 1) <= 1e-9
        ):
            raise CertificateError("the joint table must hold probabilities that sum to 1")
        if self.objective not in ("bayes", "gain", "information"):
            raise CertificateError(
                f"objective must be bayes, gain or information; got {self.objective!r}"
            )
        if (self.objective == "gain") != (self.gains is not None):
            raise CertificateError("gains go with the objective gain, and only with it")
        if self.gains is not None:
            gains = np.asarray(self.gains, dtype=float)
            if (
                gains.ndim != 2
                or gains.shape[1] != len(self.joint)
                or not np.all(np.isfinite(gains))
            ):
                raise CertificateError(
                    f"gains must be finite, guesses x {len(self.joint)} secrets; got shape"
                    f" {gains.shape}"
                )
        users = (
            np.zeros(0)
            if self.user_max_loss is None
            else np.asarray(self.user_max_loss, dtype=float)
        )
        if self.user_max_loss is not None and np.shape(users) != (len(self.joint),):
            raise CertificateError(
                f"budgets per secret need {len(self.joint)} numbers; got shape {np.shape(users)}"
            )
        budgets = np.array(
            [one for one in (self.max_loss, self.cap, *users) if one is not None], dtype=float
        )
        if not (np.all(budgets >= 0) and np.all(np.isfinite(budgets))):
            raise CertificateError("budgets must be finite and at least 0")

    def prices(self, multipliers: ArrayLike) -> tuple[np.ndarray, float]:
        """Price of one unit of loss per truth, and what the budgets pay back. Order: total, then
        secrets."""
        charges: list[np.ndarray] = []
        limits: list[float] = []
        if self.max_loss is not None:
            charges.append(self.joint.sum(axis=0))
            limits.append(float(self.max_loss))
        if self.user_max_loss is not None:
            charges.extend(self.joint)
            limits.extend(self.joint.sum(axis=1) * np.asarray(self.user_max_loss, dtype=float))
        multipliers = np.asarray(multipliers, dtype=float)
        if multipliers.shape != (len(limits),):
            raise CertificateError(
                f"{len(limits)} budgets need as many multipliers; got shape {multipliers.shape}"
            )
        if not (np.all(multipliers >= 0) and np.all(np.isfinite(multipliers))):
            raise CertificateError("multipliers must be finite and at least 0")
        table = np.array(charges).reshape(len(limits), self.joint.shape[1])
        return multipliers @ table, float(multipliers @ np.array(limits, dtype=float))


def score_costs(claim: Claim, given: ArrayLike) -> np.ndarray:
    """sum_x p(x,w) s_z(x), truths x reports, from the shares given (reports x guesses), after
    checking them."""
    shares = np.asarray(given, dtype=float)
    guesses = len(claim.joint) if claim.gains is None else len(claim.gains)
    if shares.ndim != 2 or shares.shape[1] != guesses:
        raise CertificateError(f"shares must have {guesses} columns; got shape {shares.shape}")
    if not (np.all(shares >= 0) and np.all(np.abs(shares.sum(axis=1) - 1) <= 1e-6)):
        raise CertificateError("each row of shares must be a probability vector")
    shares = shares / shares.sum(axis=1, keepdims=True)
    if claim.objective == "bayes":
        return claim.joint.T @ shares.T
    if claim.objective == "gain":
        return claim.joint.T @ (shares @ np.asarray(claim.gains, dtype=float)).T
    prior = claim.joint.sum(axis=1)
    ratio = np.where(
        prior > 0, shares / np.where(prior > 0, prior, 1.0), 1.0
    )  # a secret that never occurs weighs nothing
    never = ratio == 0
    costs = claim.joint.T @ np.log(np.where(never, 1.0, ratio)).T
    if never.any():  # log 0 counts only where the secret has mass at the truth
        costs[(claim.joint.T > 0).astype(float) @ never.T > 0] = -np.inf
    return costs


def bound_grid(
    claim: Claim,
    shares: ArrayLike,
    multipliers: ArrayLike,
    loss_of: Callable[[np.ndarray], np.ndarray],
) -> float:
    """Least leakage of any mechanism within the budgets on the reports that `loss_of` knows.

    loss_of: report indices -> losses, truths x len(indices). Unit: probability, gain, or nats.
    """
    prices, paid = claim.prices(multipliers)
    truths = claim.joint.shape[1]
    shares = np.asarray(shares, dtype=float)
    least = np.full(truths, np.inf)
    step = max(1, _PAIRS_AT_ONCE // truths)
    for start in range(0, len(shares), step):
        indices = np.arange(start, min(start + step, len(shares)))
        loss = np.asarray(loss_of(indices), dtype=float)
        if loss.shape != (truths, len(indices)) or not np.all(loss >= 0):
            raise CertificateError("losses must be numbers, at least 0, one per truth and report")
        least = np.minimum(
            least, _cheapest(claim, score_costs(claim, shares[indices]), prices, loss)
        )
    return _total(least, paid)


def bound_plane(
    claim: Claim,
    shares: ArrayLike,
    multipliers: ArrayLike,
    truths_m: ArrayLike,
    centres_m: ArrayLike,
    half_sides_m: ArrayLike,
) -> float:
    """The same for every mechanism that reports anywhere on the plane, loss = Euclidean distance in
    metres.

    The scores are constant on square cells (centre, half side), of any sizes, that must cover the
    convex hull of the
    truths: a report outside it can be moved to its nearest point of the hull, which costs no more
    and leaks no more. The loss is taken to the nearest point of the cell, hence at most the loss of
    any report in it.
    """
    truths_m, centres_m = np.asarray(truths_m, dtype=float), np.asarray(centres_m, dtype=float)
    half_sides_m = np.broadcast_to(np.asarray(half_sides_m, dtype=float), len(centres_m))
    if not (
        len(centres_m)
        and np.all(half_sides_m > 0)
        and np.all(np.isfinite(centres_m))
        and np.all(np.isfinite(half_sides_m))
    ):
        raise CertificateError("cells need finite centres and half sides above 0")
    if not covers_hull(truths_m, centres_m, half_sides_m):
        raise CertificateError("the cells do not cover the convex hull of the truths")

    def loss_of(indices: np.ndarray) -> np.ndarray:
        away = np.abs(truths_m[:, None, :] - centres_m[indices]) - half_sides_m[indices][:, None]
        away = np.maximum(away, 0.0)
        return np.sqrt(away[..., 0] ** 2 + away[..., 1] ** 2)

    return bound_grid(claim, shares, multipliers, loss_of)


def _cheapest(claim: Claim, costs: np.ndarray, prices: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Per truth, the least cost over these reports, those beyond the cap left out."""
    costs = costs + prices[:, None] * loss
    if claim.cap is not None:
        costs = np.where(loss <= claim.cap * (1 + 1e-12), costs, np.inf)
    return costs.min(axis=1)


def _total(least: np.ndarray, paid: float) -> float:
    if np.any(np.isposinf(least)):
        raise CertificateError("the cap leaves some truth without a report: no mechanism exists")
    return float(least.sum() - paid - _MARGIN * (np.abs(least).sum() + abs(paid) + 1.0))


def covers_hull(truths_m: np.ndarray, centres_m: np.ndarray, half_sides_m: np.ndarray) -> bool:
    """Whether square cells of one quadtree cover the convex hull of the truths.

    Cells must be dyadic parts of one lattice: side = largest side / 2**k, aligned. Each lattice
    square of the largest side that meets the hull must be a cell, or be covered, quarter by
    quarter, where it meets the hull.
    """
    sides = 2 * half_sides_m
    side = float(sides.max())
    level = np.rint(np.log2(side / sides)).astype(int)
    corner = centres_m[np.argmax(sides)] - side / 2
    index = (centres_m - half_sides_m[:, None] - corner) / sides[:, None]
    if np.any(np.abs(side / 2.0**level - sides) > 1e-9 * side) or np.any(
        np.abs(index - np.rint(index)) > 1e-6
    ):
        return False
    index = np.rint(index).astype(int)
    cells = set(zip(level.tolist(), index[:, 0].tolist(), index[:, 1].tolist(), strict=True))
    normals, offsets = _hull_edges(truths_m)
    low = np.floor((truths_m.min(axis=0) - corner) / side - 1e-9).astype(int)
    high = np.floor((truths_m.max(axis=0) - corner) / side + 1e-9).astype(int)
    todo = [(0, i, j) for i in range(low[0], high[0] + 1) for j in range(low[1], high[1] + 1)]
    deepest = int(level.max())
    while todo:
        depth, i, j = todo.pop()
        if (depth, i, j) in cells:
            continue
        width = side / 2**depth
        centre = corner + (np.array([i, j]) + 0.5) * width
        reach = width / 2 * np.abs(normals).sum(axis=1)
        if np.any(normals @ centre - offsets > reach + 1e-9 * side):
            continue  # an edge of the hull has the whole square on its outer side
        if depth == deepest:
            return False
        todo.extend((depth + 1, 2 * i + a, 2 * j + b) for a in (0, 1) for b in (0, 1))
    return True


def _hull_edges(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outward unit normals and offsets of lines around the hull: normal . point <= offset for all
    points."""
    ordered: list[tuple[float, ...]] = sorted(set(map(tuple, points.tolist())))
    corners: list[tuple[float, ...]] = []
    for sequence in (ordered, ordered[::-1]):  # Andrew's monotone chain, lower then upper
        chain: list[tuple[float, ...]] = []
        for point in sequence:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        corners.extend(chain[:-1])
    hull = np.array(corners or ordered)
    along = np.roll(hull, -1, axis=0) - hull
    normals = np.column_stack([along[:, 1], -along[:, 0]])
    length = np.linalg.norm(normals, axis=1)
    normals = normals[length > 0] / length[length > 0][:, None]
    box = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    normals = np.vstack([normals, box])
    return normals, (points @ normals.T).max(
        axis=0
    )  # taken over all points: safe whatever the chain found


def _turn(first: tuple[float, ...], second: tuple[float, ...], third: tuple[float, ...]) -> float:
    """Above 0 where the path turns left."""
    return (second[0] - first[0]) * (third[1] - first[1]) - (second[1] - first[1]) * (
        third[0] - first[0]
    )
