"""Leakage of finite tables, exactly.

Each function takes a `Joint`: P(secret, truth), P(secret, report) or P(secret, guess); which one
you pass decides what the adversary is taken to see.  Information is in bits.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from sfumato.data.joint import MOST_DENSE, Joint, Pairs
from sfumato.errors import ProblemError, arg

_LN2 = float(np.log(2))
_MOST_NAMED = 12  # users in a sentence


def _entropy_of(probability: np.ndarray) -> float:
    return float(-xlogy(probability, probability).sum() / _LN2) + 0.0


def entropy(joint: Joint) -> float:
    """How uncertain the secret is before anything is seen.

    H(X) = -sum_x P(x) log2 P(x).  Unit: bits.  Exact.  Paper: equation (eq:H).

    >>> entropy(Joint.uniform(secrets=4, places=1))
    2.0
    """
    return _entropy_of(joint.prior)


def conditional_entropy(joint: Joint) -> float:
    """How uncertain the secret stays once the place is seen.

    H(X|Z) = H(X,Z) - H(Z).  Unit: bits.  Higher is more private.  Exact.  Paper: equation (eq:RH).

    >>> round(conditional_entropy(Joint.uniform(secrets=4, places=3)), 12)
    2.0
    """
    values = joint.table if joint.sparse is None else joint.sparse.data
    return max(0.0, _entropy_of(values) - _entropy_of(joint.place_probability))


def mutual_information(joint: Joint) -> float:
    """What the place tells about the secret.

    I(X;Z) = sum_{x,z} J(x,z) log2( J(x,z) / (P(x) P(z)) ).  Unit: bits.  Lower is more private.
    Exact.  Paper: equation (eq:MI).

    >>> mutual_information(Joint(np.eye(2) / 2))
    1.0
    """
    if joint.sparse is not None:
        secret, place, weight = joint.pairs
        ratio = weight / joint.place_probability[place] / joint.prior[secret]
        return max(0.0, float(np.sum(weight * np.log2(ratio))))
    ratio = np.divide(
        joint.posterior, joint.prior[:, None], out=np.ones_like(joint.table), where=joint.table > 0
    )
    np.log2(ratio, out=ratio)  # in place: a table of many users is large
    ratio *= joint.table
    return max(0.0, float(np.sum(ratio)))


def cross_entropy(joint: Joint, guess: np.ndarray) -> float:
    """How badly soft guesses Q(guess | place) fit the secret.

    CE(X,Y) = -sum_z sum_x P(x,z) log2 Q(x|z).  Unit: bits.  Infinite where Q rules out what
    happens. Smallest, and equal to H(X|Z), when Q is the posterior.  Paper: equation (eq:CE).
    `guess` has one row per place and one column per secret.
    """
    guess = np.asarray(guess, dtype=float)
    if guess.shape != joint.table.T.shape:
        raise ProblemError(
            f"guesses need one row per place and one column per secret, {joint.table.T.shape}; got"
            f" {guess.shape}"
        )
    happens = joint.table.T > 0
    if np.any(happens & (guess == 0)):
        return float("inf")
    logs = np.log2(guess, out=np.zeros_like(guess), where=happens)
    return float(-np.sum(joint.table.T * logs))


def bayes_vulnerability(joint: Joint) -> float:
    """Chance that the best single guess of the secret is right: sum_z max_x J(x,z).

    >>> bayes_vulnerability(Joint(np.eye(2) / 2))
    1.0
    """
    if joint.sparse is not None:
        return float(joint.sparse.max(axis=0).toarray().sum())
    return float(joint.table.max(axis=0).sum())


def bayes_error(joint: Joint) -> float:
    """Chance that the best single guess of the secret is wrong.

    B(X|Z) = 1 - sum_z max_x P(x, z).  Unit: probability.  Higher is more private.
    Exact for the table given.  Paper: Definition 2.

    >>> bayes_error(Joint.uniform(secrets=4, places=1))
    0.75
    """
    return max(0.0, 1 - bayes_vulnerability(joint))


def min_entropy_leakage(joint: Joint) -> float:
    """How many times better the best guess gets: log2( V(X|Z) / V(X) ).  Unit: bits.  Lower is more
    private.

    >>> min_entropy_leakage(Joint(np.eye(4) / 4))
    2.0
    """
    return float(np.log2(bayes_vulnerability(joint) / joint.prior.max()))


def santhi_vardy_bound(joint: Joint) -> float:
    """The largest Bayes error that the conditional entropy allows: 1 - 2^(-H(X|Z)).  Paper:
    introduction."""
    return float(1 - 2 ** -conditional_entropy(joint))


def g_vulnerability(joint: Joint, gain: np.ndarray) -> float:
    """What the best action is worth to the adversary on average.

    V_g = sum_z max_a sum_x g(a,x) J(x,z).  Lower is more private.  Exact.
    `gain` has one row per action and one column per secret; see `gain_named`.

    >>> g_vulnerability(Joint.uniform(secrets=4, places=1), np.eye(4))  # one guess
    0.25
    """
    gain = np.asarray(gain, dtype=float)
    if gain.ndim != 2 or gain.shape[1] != joint.table.shape[0]:
        raise ProblemError(
            f"a gain has one row per action and one column per secret ({joint.table.shape[0]}); got"
            f" {gain.shape}"
        )
    if not np.all(np.isfinite(gain)):
        raise ProblemError("a gain holds finite numbers; got NaN or infinity")
    return float((gain @ joint.table).max(axis=0).sum())


def error_of_guess(joint: Joint, fitted_on: Joint) -> float:
    """Chance of error on `joint` of the best guess for `fitted_on`, column by column; ties split
    evenly.

    The adversary that learns from one table and is judged on another.  At least
    `bayes_error(joint)`.
    """
    if joint.shape != fitted_on.shape:
        raise ProblemError(
            f"both tables must have the same columns; got {joint.shape} and {fitted_on.shape}"
        )
    if joint.sparse is not None or fitted_on.sparse is not None:
        guessed = _sparse(fitted_on)
        guessed.data = best_guess_shares_of(fitted_on.pairs, fitted_on.shape[1])
        blind = joint.place_probability[fitted_on.place_probability == 0].sum() / joint.shape[0]
        return float(1 - _sparse(joint).multiply(guessed).sum() - blind)
    return float(1 - np.sum(best_guess_shares(fitted_on.table) * joint.table))


def _sparse(joint: Joint) -> sparse.csr_matrix:
    secret, place, weight = joint.pairs
    return sparse.csr_matrix((weight, (secret, place)), shape=joint.shape)


def best_guess_shares_of(pairs: Pairs, places: int) -> np.ndarray:
    """`best_guess_shares` for the entries of a table that are above 0."""
    most = np.zeros(places)
    np.maximum.at(most, pairs.place, pairs.weight)
    best = pairs.weight >= most[pairs.place] * (1 - 1e-12)
    return best / np.maximum(np.bincount(pairs.place, best, minlength=places), 1)[pairs.place]


def best_guess_shares(table: np.ndarray) -> np.ndarray:
    """For each column, 1 at the largest entry; equal largest entries share it.  Same shape as the
    table."""
    best = table >= table.max(axis=0)[None, :] * (1 - 1e-12)
    return best / best.sum(axis=0)[None, :]


# Gains: what a guess is worth to an adversary, one row per action and one column per secret -------


def bayes(secrets: int) -> np.ndarray:
    """One guess, worth 1 if right: the gain behind the Bayes error."""
    return np.eye(secrets)


def two_guesses(secrets: int) -> np.ndarray:
    """Two guesses, worth 1 if either is right."""
    if comb(secrets, 2) * secrets > MOST_DENSE:
        raise ProblemError(
            f"two-guesses has {comb(secrets, 2):,} pairs of {secrets:,} users, too many for a"
            f" table; keep fewer with {arg('top_users')}, or take bayes"
        )
    rows = list(combinations(range(secrets), min(2, secrets)))
    gain = np.zeros((len(rows), secrets))
    for action, pair in enumerate(rows):
        gain[action, list(pair)] = 1
    return gain


def guess_or_pass(secrets: int) -> np.ndarray:
    """A right guess is worth 1, a wrong one costs 1, silence is worth 0."""
    return np.vstack([2 * np.eye(secrets) - 1, np.zeros(secrets)])


def one_target(secrets: int, target: int) -> np.ndarray:
    """Telling whether the secret is one given person: right yes or right no is worth 1."""
    if not 0 <= target < secrets:
        raise ProblemError(f"the target is one of the secrets 0 to {secrets - 1}; got {target}")
    yes = np.zeros(secrets)
    yes[target] = 1
    return np.vstack([yes, 1 - yes])


GAINS: dict[str, Callable[[int], np.ndarray]] = {
    "bayes": bayes,
    "two-guesses": two_guesses,
    "guess-or-pass": guess_or_pass,
}


def gain_named(name: str, secrets: Sequence[str]) -> np.ndarray:
    """A gain by its name: bayes, two-guesses, guess-or-pass, or target:NAME."""
    if name.startswith("target:"):
        person = name.removeprefix("target:")
        if person not in secrets:
            named = ", ".join([*secrets[:_MOST_NAMED], *["…"] * (len(secrets) > _MOST_NAMED)])
            raise ProblemError(f"there is no user '{person}' to target; expected one of {named}")
        return one_target(len(secrets), list(secrets).index(person))
    if name not in GAINS:
        raise ProblemError(f"unknown gain '{name}'; expected {', '.join(GAINS)} or target:NAME")
    return GAINS[name](len(secrets))
