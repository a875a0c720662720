"""Figures of a mechanism on check-ins to come, with intervals, from check-ins that it was made
without.

A leakage is the best that an adversary can do.  The best on the samples errs to the safe side, and
what chance adds to it is bounded by how far the mechanism's rows differ within a user; an adversary
who learnt on the training data bounds it from the other side.  The loss is a mean.

Assumed: a user's check-ins are independent draws from the user's own law, and the users' shares are
given.  Proofs: `sfumato.measure.interval.upper_best_response` and the module's e-values.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.data.categories import CategoricalData
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.errors import DataError, MechanismError
from sfumato.measure.estimate import Estimate
from sfumato.measure.exact import best_guess_shares
from sfumato.measure.interval import (
    Users,
    check_confidence,
    lower_mean,
    spread_of_rows,
    upper_best_response,
    upper_mean,
)
from sfumato.measure.objective import Bayes, Information, Objective, blind_leakage
from sfumato.measure.outlook import Outlook
from sfumato.measure.worst import exposed
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportRows
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.mechanism.rows import MOST_ENTRIES

WITH_PRIOR = 0.01  # of the prior is mixed into posteriors, so that no score is minus infinity
_FOR_BETS = 600  # training check-ins from which spreads are expected
_FARTHEST = 2.0  # times the largest expected loss at a training point: what is above counts as that
_LEAST_EACH = 2  # check-ins of each user


class NotFinite(MechanismError):
    """A mechanism cannot name its reports with their chances."""


# Samples and users -------------------------------------------------------------------------------


def checkins_of(data: Samples | CategoricalData) -> Samples:
    """The data where it is check-ins; refuses categories."""
    if isinstance(data, CategoricalData):
        raise DataError(
            f"{data.name} holds probabilities of categories, not samples; what holds for check-ins"
            " to come needs check-ins"
        )
    return data


def matched(held_out: Samples | CategoricalData, train: Samples | CategoricalData) -> Samples:
    """Held-out check-ins on the plane of the training data, with its users in its order.

    Check-ins of other users are left out; refused where a user has fewer than two.
    """
    held_out, train = checkins_of(held_out), checkins_of(train)
    number = {name: at for at, name in enumerate(train.secrets)}
    own = np.array([number.get(name, -1) for name in held_out.secrets], dtype=np.int64)
    secret = own[held_out.secret]
    known = secret >= 0
    counts = np.bincount(secret[known], minlength=len(train.secrets))
    few = [name for name, at in number.items() if counts[at] < _LEAST_EACH and train.counts[at]]
    if not known.any():
        raise DataError(
            f"{held_out.name} holds none of the {len(number)} users that {train.name} has; expected"
            " check-ins of the same users"
        )
    if few:
        raise DataError(
            f"{held_out.name} has {counts[number[few[0]]]} check-in(s) of user {few[0]}; expected"
            f" at least {_LEAST_EACH} of each of the {len(number)} users"
        )
    moved = held_out.on_plane(train.plane)
    return replace(moved, secret=secret[known], truth=moved.truth[known], secrets=train.secrets)


def users_of(held_out: Samples, shares: np.ndarray) -> Users:
    """Whose the samples are, with the shares of the users in the population."""
    return Users.given(held_out.secret, shares)


# A mechanism ----------------------------------------------------------------------------------


def rows_at(mechanism: Mechanism, truth: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray, float]:
    """P(report | truth), each report place once; and what a row is off by at most, in total
    variation.  Refuses a law that is not finite."""
    rows = mechanism.rows(truth)
    if rows is not None:
        once = rows.distinct()
        return once.matrix, once.places, 0.0
    demanded = mechanism.rows_on(truth)
    if demanded is None or demanded.count * len(demanded.places) > MOST_ENTRIES:
        raise NotFinite(
            "this mechanism's law is not finite, or too large to be worked out; snap it to a grid,"
            " or to larger cells"
        )
    table = np.zeros((demanded.count, len(demanded.places)))
    for number in range(demanded.count):
        columns, chances = demanded.row(number)
        table[number, columns] = chances
    used = np.flatnonzero(table.any(axis=0))
    return sparse.csr_matrix(table[:, used]), demanded.places[used], demanded.within


@dataclass(frozen=True, eq=False)
class RowsAt:
    """A mechanism's rows at samples, and what follows from them alone."""

    rows: sparse.csr_matrix
    places: np.ndarray
    within: float
    users: Users

    @classmethod
    def of(cls, mechanism: Mechanism, samples: Samples, shares: np.ndarray) -> "RowsAt":
        matrix, places, within = rows_at(mechanism, samples.truth)
        return cls(matrix, places, within, users_of(samples, shares))

    def table(self) -> np.ndarray:
        """P(secret, report) with each sample weighed."""
        count = len(self.users)
        weighed = sparse.csr_matrix(
            (self.users.weights, (self.users.of, np.arange(count))),
            shape=(len(self.users.shares), count),
        )
        return np.asarray((weighed @ self.rows).todense())

    @cached_property
    def spreads(self) -> np.ndarray:
        """For each user what no set of reports spreads more than."""
        spreads = np.zeros(len(self.users.shares))
        for user in np.unique(self.users.of):
            own = self.rows[np.flatnonzero(self.users.of == user)]
            used = np.unique(own.indices)
            if len(used) * own.shape[0] > MOST_ENTRIES:
                spreads[user] = own.shape[0] / 4
            else:
                spreads[user] = spread_of_rows(np.asarray(own[:, used].todense()))
        return spreads

    def losses(self, truth: np.ndarray, loss: Loss) -> np.ndarray:
        """The expected loss at each sample."""
        return ReportRows(self.rows, self.places).losses(truth, loss)

    def scores_of(self, scores: np.ndarray) -> np.ndarray:
        """What an adversary with these scores (secrets x reports) gets from each sample."""
        pairs = self.rows.tocoo()
        got = pairs.data * scores[self.users.of[pairs.row], pairs.col]
        return np.bincount(pairs.row, weights=got, minlength=len(self.users))


def at_samples(
    mechanism: Mechanism, samples: Samples, shares: np.ndarray, loss: Loss, *, seed: int
) -> tuple[RowsAt | None, np.ndarray]:
    """The rows at samples and the expected loss of each; where the law is not finite, None and the
    loss of one report each, which has the same mean."""
    try:
        judged = RowsAt.of(mechanism, samples, shares)
    except NotFinite:
        return None, loss(samples.truth, mechanism.sample(samples.truth, seed=seed))
    return judged, judged.losses(samples.truth, loss)


def some_of(train: Samples, shares: np.ndarray) -> Samples:
    """Some training check-ins, of every user: from them is taken what to expect."""
    rows = np.arange(len(train))[:: 1 + len(train) // _FOR_BETS]
    missing = np.setdiff1d(np.flatnonzero(shares > 0), train.secret[rows])
    first = [int(np.flatnonzero(train.secret == user)[0]) for user in missing]
    return train.take(np.concatenate([rows, first]).astype(np.int64))


def at_most(
    judged: RowsAt,
    objective: Objective,
    secrets: tuple[str, ...],
    delta: float,
    expected: np.ndarray | None,
) -> float:
    """The plug-in leakage and what chance may add, by the objective's range."""
    users, unit = judged.users, objective.nats
    table = judged.table()
    plug_in = objective.leakage(Joint(table / table.sum(), secrets=secrets)) * unit
    low, high = score_range(objective, secrets, users.shares)
    extra = float(-np.log1p(-WITH_PRIOR)) if objective.scores == "information" else 0.0
    scale = high - low
    scaled = upper_best_response(
        (plug_in - low) / scale + judged.within,
        judged.spreads + 3 * judged.within * users.counts,
        users,
        delta=delta,
        expected=expected,
    )
    most = (low + scale * scaled + extra) / unit
    return most + 1e-12 * (1 + abs(most))


def mean_loss(
    losses: np.ndarray, users: Users, known: np.ndarray, train: Samples, delta: float
) -> tuple[Estimate, float, int]:
    """The loss on check-ins to come, with an interval; what a larger loss counts as; and how many
    of the samples have one: from losses of held-out check-ins, and of training ones (`known`).

    A mean can only be bounded from above if the variable is: a check-in that costs more than twice
    what any training check-in costs in expectation counts as that much.
    """
    farthest = max(_FARTHEST * float(known.max()), 1e-9)
    above = int((losses > farthest).sum())
    cut = np.minimum(losses, farthest)
    spread = max(spread_within(known, train.secret), 0.01 * farthest)
    ends = [
        bound(cut, users, low=0.0, high=farthest, delta=delta / 2, spread=spread)
        for bound in (lower_mean, upper_mean)
    ]
    value = float(users.weights @ losses)
    errs = "unbiased" if not above else f"a loss above {farthest:.4g} counts as that"
    return Estimate(value, ends[0], ends[1], "estimate", errs=errs), farthest, above


def figures_to_come(
    mechanism: Mechanism,
    held_out: Samples,
    train: Samples,
    *,
    loss: Loss = euclidean,
    shares: np.ndarray | None = None,
    confidence: float = 0.95,
) -> Outlook:
    """Loss, Bayes error and information on check-ins to come, each with an interval.

    `held_out` are check-ins that the mechanism was made without, `train` those that it was made
    from: an adversary who learnt there bounds the Bayes error from above and the information from
    below.  `shares` of the users are those of `train` unless given.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.mechanism.simple import constant
    >>> data = four_corners(seed=0)
    >>> figures_to_come(constant((0.0, 0.0)), data.test, data.train).bayes_error.high
    0.75
    """
    delta = check_confidence(confidence)
    held_out = matched(held_out, train)
    shares = train.joint().prior if shares is None else shares
    judged = RowsAt.of(mechanism, held_out, shares)
    learned = RowsAt.of(mechanism, train, shares)
    known = _on_places(learned.table(), learned.places, judged.places)
    expected = learned.spreads * held_out.counts / np.maximum(train.counts, 1)
    table = judged.table()
    joint = Joint(table / table.sum(), secrets=held_out.secrets)
    ends = {}
    for objective, of in (
        (Bayes(), lambda table, _: best_guess_shares(table)),
        (Information(), _log_scores),
    ):
        low, high = score_range(objective, held_out.secrets, shares)
        got = judged.scores_of(of(known, shares))
        spread = spread_within(learned.scores_of(of(learned.table(), shares)), train.secret)
        least = lower_mean(
            np.clip(got, low, high),
            judged.users,
            low=low,
            high=high,
            delta=delta / 2,
            spread=max(spread, 0.01 * (high - low)),
        )
        ends[objective.name] = (
            max(
                least / objective.nats - judged.within * (high - low) / objective.nats,
                blind_leakage(objective, joint),
            ),
            at_most(judged, objective, held_out.secrets, delta / 2, expected),
        )
    known_losses = learned.losses(train.truth, loss)
    loss_found, _, _ = mean_loss(
        judged.losses(held_out.truth, loss), judged.users, known_losses, train, delta
    )
    low_v, high_v = ends["bayes"]
    value = 1 - Bayes().leakage(joint)
    bits = Information().leakage(joint)
    low_b, high_b = ends["information"]
    few = "with few check-ins"
    return Outlook(
        loss=loss_found,
        bayes_error=Estimate(
            value, max(0.0, 1 - high_v), max(1 - low_v, value), "estimate", errs=f"low {few}"
        ),
        information_bits=Estimate(
            bits, max(0.0, min(low_b, bits)), high_b, "estimate", errs=f"high {few}"
        ),
        exposed=Estimate(
            exposed(joint), 0.0, 1.0, "estimate", errs=f"high {few}; no interval is proved"
        ),
        leakage=1 - value,
        checkins=len(held_out),
        confidence=confidence,
        blind_error=1 - float(joint.prior.max()),
    )


def _log_scores(known: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """log c(x|z) / p(x) of the posterior in a table, with some of the prior in it, in nats."""
    column = known.sum(axis=0)
    posterior = np.divide(known, column, out=np.zeros_like(known), where=column > 0)
    posterior[:, column == 0] = shares[:, None]
    mixed = (1 - WITH_PRIOR) * posterior + WITH_PRIOR * shares[:, None]
    ratio = np.divide(mixed, shares[:, None], out=np.ones_like(mixed), where=shares[:, None] > 0)
    return np.log(ratio)


def _on_places(table: np.ndarray, places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """A table over other places: each has the column of the nearest one that can be reported."""
    used = np.flatnonzero(table.any(axis=0))
    return table[:, used[cKDTree(places[used]).query(wanted)[1]]]


def score_range(
    objective: Objective, secrets: tuple[str, ...], shares: np.ndarray
) -> tuple[float, float]:
    """The least and the largest score; nats for information."""
    if objective.scores == "information":
        return float(np.log(WITH_PRIOR)) - 1e-9, float(-np.log(shares[shares > 0].min())) + 1e-9
    gains = objective.gains(secrets)
    return (0.0, 1.0) if gains is None else (float(gains.min()), float(gains.max()))


def spread_within(values: np.ndarray, users: np.ndarray) -> float:
    """The standard deviation about the users' own means."""
    count = np.maximum(np.bincount(users), 1)
    means = np.bincount(users, weights=values) / count
    return float(np.sqrt(np.mean((values - means[users]) ** 2)))
