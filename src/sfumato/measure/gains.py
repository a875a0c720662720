"""Named gains: what a guess is worth to an adversary.

A gain is a matrix with one row per action and one column per secret.  `bayes` is a single guess;
the others say what else people worry about.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from sfumato.errors import ProblemError


def bayes(secrets: int) -> np.ndarray:
    """One guess, worth 1 if right: the gain behind the Bayes error."""
    return np.eye(secrets)


def two_guesses(secrets: int) -> np.ndarray:
    """Two guesses, worth 1 if either is right."""
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


NAMED: dict[str, Callable[[int], np.ndarray]] = {
    "bayes": bayes,
    "two-guesses": two_guesses,
    "guess-or-pass": guess_or_pass,
}


def named(name: str, secrets: Sequence[str]) -> np.ndarray:
    """A gain by its name: bayes, two-guesses, guess-or-pass, or target:NAME."""
    if name.startswith("target:"):
        person = name.removeprefix("target:")
        if person not in secrets:
            raise ProblemError(
                f"there is no user '{person}' to target; expected one of {', '.join(secrets)}"
            )
        return one_target(len(secrets), list(secrets).index(person))
    if name not in NAMED:
        raise ProblemError(f"unknown gain '{name}'; expected {', '.join(NAMED)} or target:NAME")
    return NAMED[name](len(secrets))
