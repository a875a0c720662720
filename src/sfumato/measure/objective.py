"""What is to be kept small: one leakage among several, as an object."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_vulnerability, g_vulnerability, mutual_information
from sfumato.measure.gains import named


class Objective(Protocol):
    """A leakage of P(secret, report): lower is more private."""

    @property
    def name(self) -> str:
        """The word for it on the command line and in files."""
        ...

    @property
    def unit(self) -> str:
        """What the number is counted in."""
        ...

    def leakage(self, joint: Joint) -> float:
        """The leakage of a table P(secret, report)."""
        ...


@dataclass(frozen=True)
class Bayes:
    """Bayes vulnerability V = 1 - B(X|Z): the chance that the best guess is right.

    >>> Bayes().leakage(Joint.uniform(secrets=4, places=2))
    0.25
    """

    name = "bayes"
    unit = "probability"

    def leakage(self, joint: Joint) -> float:
        """sum_z max_x J(x,z)."""
        return bayes_vulnerability(joint)


@dataclass(frozen=True)
class Information:
    """Mutual information I(X;Z), in bits.

    >>> Information().leakage(Joint(np.eye(2) / 2))
    1.0
    """

    name = "information"
    unit = "bits"

    def leakage(self, joint: Joint) -> float:
        """I(X;Z) in bits."""
        return mutual_information(joint)


@dataclass(frozen=True)
class Gain:
    """g-vulnerability with a named gain: two-guesses, guess-or-pass or target:NAME
    (`sfumato.measure.gains`).

    >>> Gain("two-guesses").leakage(Joint.uniform(secrets=4, places=1))
    0.5
    """

    name: str
    unit = "gain"

    def matrix(self, secrets: tuple[str, ...]) -> np.ndarray:
        """The gain as a matrix: a row an action, a column a secret."""
        return named(self.name, secrets)

    def leakage(self, joint: Joint) -> float:
        """sum_z max_a sum_x g(a,x) J(x,z)."""
        return g_vulnerability(joint, self.matrix(joint.secrets))


def objective_named(name: str, secrets: tuple[str, ...]) -> Objective:
    """bayes, information, or the name of a gain."""
    if name == "bayes":
        return Bayes()
    if name == "information":
        return Information()
    try:
        named(name, secrets)
    except ProblemError as error:
        raise ProblemError(
            f"unknown objective '{name}'; expected bayes, information or a gain ({error})"
        ) from None
    return Gain(name)
