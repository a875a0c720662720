"""Confidence bounds for means of check-ins to come, valid for every number of samples.

A bound is read off an *e-value*: a number of at least 0, computed from the samples, whose mean is
at most 1 if a claim is true.  By Markov's inequality it exceeds 1/delta with chance delta at most.

Let Y_1, Y_2, ... be independent, between 0 and 1, user by user, with weights c_i = share of the
user / number of the user's samples, and let y_i be guesses that are made from the samples before
the i-th.  Then for every theta with 0 <= theta c_i < 1

    e(m) = exp( theta (sum_i c_i y_i - m) ) prod_i ( 1 + theta c_i (Y_i - y_i) )

is an e-value for the claim "the mean over the population, sum_x share(x) E[Y | x], is at most m":
given the samples before, the i-th factor has mean 1 + theta c_i (mu_x - y_i), at most
exp( theta c_i (mu_x - y_i) ), and these exponents sum to theta (mean - sum_i c_i y_i).  It is the
betting of Waudby-Smith and Ramdas (2024, Journal of the Royal Statistical Society B 86) with bets
that are the same for all users, so that only the mean over all users is tested: each user's own
mean is guessed, and only the spread within users counts.  A weighted mean of e-values over several
theta is an e-value too, so none has to be known beforehand.  `python -m
paper.runs.coverage --widths` compares the widths with those of Hoeffding and of Maurer and Pontil.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from scipy.spatial.distance import pdist

from sfumato.errors import ProblemError, arg
from sfumato.randomness import generator

_BETS = 0.9 * 2.0 ** -np.arange(10)  # of the largest bet that is allowed
_SPREAD = 0.25  # of values between 0 and 1, where nothing is expected
_ON_THE_GUESS = 0.8  # weight of the bet that suits a spread that is expected
_MUCH = 0.4  # a spread of values between 0 and 1 from which on Hoeffding's bound is the narrower
_ORDER_SEED = 17  # samples are put in a random order, so that a sorted file is as good as any
_MOST_PAIRS = 4e9  # numbers that are compared for the spread of one user's rows


def check_confidence(confidence: float) -> float:
    """The chance left for being wrong; refuses what is no confidence."""
    if not 0 < confidence < 1:
        raise ProblemError(f"{arg('confidence')} lies between 0 and 1, as 0.95; got {confidence}")
    return 1 - confidence


@dataclass(frozen=True, eq=False)
class Users:
    """Whose each sample is, and which share of all check-ins to come is each user's.

    `of` numbers the users; without `shares` all samples are one group, drawn alike.

    >>> Users.given([0, 0, 1], [0.5, 0.5]).weights.tolist()
    [0.25, 0.25, 0.5]
    """

    of: np.ndarray
    shares: np.ndarray

    @classmethod
    def given(cls, of: Sequence[int] | np.ndarray, shares: Sequence[float] | np.ndarray) -> "Users":
        """Users with known shares."""
        return cls(np.asarray(of, dtype=np.int64), np.asarray(shares, dtype=float))

    @classmethod
    def alike(cls, count: int) -> "Users":
        """Samples that are drawn with the users' shares: one group."""
        return cls(np.zeros(count, dtype=np.int64), np.ones(1))

    def __post_init__(self) -> None:
        of, shares = np.asarray(self.of), np.asarray(self.shares, dtype=float)
        if not (
            shares.ndim == 1
            and np.all(shares >= 0)
            and abs(shares.sum() - 1) <= 1e-9
            and of.ndim == 1
            and len(of)
            and of.min() >= 0
            and of.max() < len(shares)
        ):
            raise ProblemError(
                "the shares of the users are numbers of at least 0 with the sum 1, one for each"
                " user, and each sample has a user; got others"
            )
        missing = np.flatnonzero((shares > 0) & (self.counts == 0))
        if missing.size:
            raise ProblemError(
                f"{missing.size} of {len(shares)} users have no samples; expected some of each"
            )

    @property
    def counts(self) -> np.ndarray:
        """Samples of each user."""
        return np.bincount(self.of, minlength=len(self.shares))

    @property
    def weights(self) -> np.ndarray:
        """What each sample weighs in the mean over the population."""
        return self.shares[self.of] / self.counts[self.of]

    def __len__(self) -> int:
        return len(self.of)


@dataclass(frozen=True, eq=False)
class Evidence:
    """An e-value for each claim "the mean is at most m": sum_j weight_j exp(height_j - slope_j m).

    >>> coin = np.tile([0.0, 1.0], 500)
    >>> round(evidence(coin, Users.alike(1000), low=0, high=1).lower(0.05), 2)
    0.45
    """

    weight: np.ndarray
    height: np.ndarray
    slope: np.ndarray

    def lower(self, delta: float) -> float:
        """The least mean that is not refuted: with chance 1 - delta the mean is at least this."""
        wanted = -log(delta)
        # at `below` one term alone reaches 1/delta, above `above` not even all together do
        below = float(np.max((self.height + np.log(self.weight) - wanted) / self.slope))
        above = float(np.max((self.height - wanted) / self.slope))
        while above - below > 1e-10 * (1 + abs(below)):
            middle = (below + above) / 2
            terms = self.height - self.slope * middle
            largest = float(terms.max())
            reached = largest + log(float(self.weight @ np.exp(terms - largest))) >= wanted
            below, above = (middle, above) if reached else (below, middle)
        return below - 1e-12 * (1 + abs(below))

    def after(self, before: "Evidence") -> "Evidence":
        """The product with evidence for the same claims from earlier samples: what is tested here,
        and with which bets, may depend on those samples."""
        return Evidence(self.weight, self.height + before.height, self.slope + before.slope)

    def shifted(self, by: float) -> "Evidence":
        """Evidence for the mean plus a number."""
        return Evidence(self.weight, self.height + self.slope * by, self.slope)


def evidence(
    values: Sequence[float] | np.ndarray,
    users: Users,
    *,
    low: float,
    high: float,
    spread: float | None = None,
    delta: float = 0.05,
) -> Evidence:
    """E-values for "the mean of the values over the population is at most m".

    Main arguments: `values`, one per sample, within `low` and `high`.  Other arguments: `spread`,
    the standard deviation within users that is expected (from other data, never from these
    values), and `delta`, the chance that will be asked for, set the bet that weighs most; any
    numbers keep it valid.
    """
    scaled = _scaled(values, low, high)
    if scaled.shape != users.of.shape:
        raise ProblemError(f"{len(users)} samples need as many values; got {scaled.shape}")
    scale = high - low
    weights = users.weights
    bets, weight = _bets(weights, None if spread is None else spread / scale, delta)
    guesses, order = _running_means(scaled, users)
    gain = weights[order] * (scaled[order] - guesses)
    middle = float(weights[order] @ guesses)
    height = np.array([np.sum(np.log1p(bet * gain)) for bet in bets]) + bets * middle
    return Evidence(weight, height + bets * low / scale, bets / scale)


def lower_mean(
    values: Sequence[float] | np.ndarray,
    users: Users,
    *,
    low: float,
    high: float,
    delta: float,
    spread: float | None = None,
) -> float:
    """With chance 1 - delta the mean over the population is at least this."""
    e_values = evidence(values, users, low=low, high=high, spread=spread, delta=delta)
    return max(low, e_values.lower(delta))


def upper_mean(
    values: Sequence[float] | np.ndarray,
    users: Users,
    *,
    low: float,
    high: float,
    delta: float,
    spread: float | None = None,
) -> float:
    """With chance 1 - delta the mean over the population is at most this."""
    mirrored = -np.asarray(values, dtype=float)
    return -lower_mean(mirrored, users, low=-high, high=-low, delta=delta, spread=spread)


def upper_best_response(
    plug_in: float,
    spreads: np.ndarray,
    users: Users,
    *,
    delta: float,
    expected: np.ndarray | None = None,
) -> float:
    """An upper bound for max over responses g of E[f_g(X, W)], where every f_g lies within 0 and 1.

    Main arguments: `plug_in`, the largest mean over the samples, max_g sum_i c_i f_g(x_i, w_i);
    `spreads`, for each user a number that sum_i (f_g(x, w_i) - mean)^2 over the user's samples does
    not exceed, whatever g.  Other arguments: `expected`, those numbers as they are expected from
    other data, sets the bets.

    The best response g* for the population is fixed, though nobody knows it.  Its mean over the
    samples is at most the plug-in, and it is one variable: with e-values as above for 1 - f_g*, and
    log(1 + t) >= t - (-log(1 - b) - b) (t / b)^2 for |t| <= b < 1 (Fan, Grama and Liu 2015), all
    that is needed of g* is its spread.  No attacker is chosen, and nothing is taken over many g.
    Hoeffding's e-value, which needs no spread, has its share of the weight.
    """
    counts, present = users.counts, users.shares > 0
    sure = np.minimum(spreads, counts / 4)[present]  # between 0 and 1 nothing spreads more
    per_sample = users.shares[present] / counts[present]
    guess, spreads_little = None, False
    if expected is not None:
        total = float(per_sample**2 @ np.minimum(expected, counts / 4)[present])
        guess = float(np.sqrt(total / np.sum(per_sample**2 * counts[present])))
        spreads_little = guess < _MUCH
    bets, weight = _bets(users.weights, guess, delta)
    squares = np.array(
        [_around_running_mean(*both) for both in zip(sure, counts[present], strict=True)]
    )
    height = np.array([-bet * plug_in - float(_psi(bet * per_sample) @ squares) for bet in bets])
    # Hoeffding's e-value, exp( bet c (mean - f_g) - (bet c)^2 / 8 ) per sample, has one best bet.
    squared = float(np.sum(users.weights**2))
    flat = np.sqrt(-8 * log(delta) / squared)
    on_flat = 1 - _ON_THE_GUESS if spreads_little else _ON_THE_GUESS
    bets, weight = np.append(bets, flat), np.append(weight * (1 - on_flat), on_flat)
    height = np.append(height, -flat * plug_in - flat**2 * squared / 8)
    # log e(v) = bet (v - plug_in) - sum psi squares, for the claim "the best mean is at least v"
    return min(1.0, -Evidence(weight, height, bets).lower(delta))


def spread_of_rows(rows: np.ndarray) -> float:
    """What sum_i (M(G|w_i) - mean)^2 does not exceed, whatever the set G of reports.

    rows: P(report | truth) at the samples of one user.  M(G|w) - M(G|w') is at most the total
    variation between two rows; a sum of squares about the mean is that over pairs, divided by the
    number of samples.  For very many samples the total variation to the mean row is taken, which is
    up to twice as much.
    """
    count = len(rows)
    if count < 2:
        return 0.0
    rows = rows[:, np.any(rows > 0, axis=0)]
    if float(count) * rows.size <= _MOST_PAIRS:
        return float(np.sum(pdist(rows, "cityblock") ** 2)) / 4 / count
    return float(np.sum(np.abs(rows - rows.mean(axis=0)).sum(axis=1) ** 2)) / 4


def needed(count: int, width: float, wanted: float) -> int:
    """About how many samples make an interval as narrow as wanted, where `count` give `width`."""
    return int(np.ceil(count * (width / wanted) ** 2 / 10) * 10)


def _scaled(values: Sequence[float] | np.ndarray, low: float, high: float) -> np.ndarray:
    given = np.asarray(values, dtype=float)
    if not (high > low and np.all(np.isfinite([low, high]))):
        raise ProblemError(f"a bounded mean needs a range; got {low} to {high}")
    room = 1e-9 * (high - low)
    if not (given.ndim == 1 and np.all((given >= low - room) & (given <= high + room))):
        raise ProblemError(f"values must lie within {low:g} and {high:g}; got others")
    return np.clip((given - low) / (high - low), 0.0, 1.0)


def _bets(weights: np.ndarray, spread: float | None, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Several theta, as many each time, and their weights."""
    on_the_guess = 1 / (1 + len(_BETS)) if spread is None else _ON_THE_GUESS
    variance = max((spread or _SPREAD) ** 2, 1e-12) * float(np.sum(weights**2))
    largest = float(weights.max())
    guess = min(np.sqrt(-2 * log(delta) / variance), 0.9 / largest)
    others = np.full(len(_BETS), (1 - on_the_guess) / len(_BETS))
    return np.append(_BETS / largest, guess), np.append(others, on_the_guess)


def _running_means(scaled: np.ndarray, users: Users) -> tuple[np.ndarray, np.ndarray]:
    """A random order of the samples, and for each the mean of the user's samples before it (with
    one of a half at the beginning)."""
    order = generator(_ORDER_SEED).permutation(len(scaled))
    order = order[np.argsort(users.of[order], kind="stable")]
    guesses = np.empty(len(scaled))
    end = 0
    for count in users.counts:
        start, end = end, end + int(count)
        own = scaled[order[start:end]]
        before = np.concatenate([[0.5], 0.5 + np.cumsum(own)[:-1]]) if count else own
        guesses[start:end] = before / np.arange(1, count + 1)
    return guesses, order


def _around_running_mean(most: float, count: int) -> float:
    """What sum_i (f_i - mean of those before)^2 does not exceed, where sum_i (f_i - mean)^2 is at
    most `most`, and at most i/4 for the first i.

    With S_i the sum of squares about the mean of the first i, (f_i - mean before)^2 is
    i/(i-1) (S_i - S_(i-1)); summed by parts all S_i have weights of at least 0.  The first is
    guessed as a half.
    """
    if count < 2:
        return 0.25
    i = np.arange(2, count)
    return (
        0.25 + float(np.sum(np.minimum(i / 4, most) / (i * (i - 1)))) + most * count / (count - 1)
    )


def _psi(bet: np.ndarray) -> np.ndarray:
    return -np.log1p(-bet) - bet
