"""What is to be kept small: one leakage among several, as an object."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.data.joint import Joint
from sfumato.errors import ProblemError
from sfumato.measure.exact import (
    GAINS,
    bayes_vulnerability,
    g_vulnerability,
    gain_named,
    mutual_information,
)
from sfumato.measure.linked import least_overlap


class Objective(ABC):
    """A leakage of P(secret, report): lower is more private.

    `name` is the word for it on the command line and in files, `unit` what the number is counted
    in, `nats` what one unit is in solvers and proofs, which count information in nats, and `scores`
    says which scores prove a bound on it: bayes, information, gain, overlap or endless.
    """

    name: str
    unit: str
    nats: float = 1.0
    scores: str

    def gains(self, secrets: tuple[str, ...]) -> np.ndarray | None:
        """Its gain matrix, one row per action and one column per secret; None where it has none."""
        return None

    def shown(self, leakage: Any) -> Any:
        """The figure that people read: the Bayes error for Bayes, the leakage itself otherwise."""
        return leakage

    @abstractmethod
    def leakage(self, joint: Joint) -> float:
        """The leakage of a table P(secret, report)."""


@dataclass(frozen=True)
class Bayes(Objective):
    """Bayes vulnerability V = 1 - B(X|Z): the chance that the best guess is right.

    >>> Bayes().leakage(Joint.uniform(secrets=4, places=2))
    0.25
    """

    name = scores = "bayes"
    unit = "probability"

    def shown(self, leakage: Any) -> Any:
        """B = 1 - V."""
        return 1 - leakage

    def leakage(self, joint: Joint) -> float:
        """sum_z max_x J(x,z)."""
        return bayes_vulnerability(joint)


@dataclass(frozen=True)
class Information(Objective):
    """Mutual information I(X;Z), in bits.

    >>> Information().leakage(Joint(np.eye(2) / 2))
    1.0
    """

    name = scores = "information"
    unit = "bits"
    nats = float(np.log(2))

    def leakage(self, joint: Joint) -> float:
        """I(X;Z) in bits."""
        return mutual_information(joint)


@dataclass(frozen=True)
class Gain(Objective):
    """g-vulnerability with a named gain: two-guesses, guess-or-pass or target:NAME
    (`sfumato.measure.exact.gain_named`).

    >>> Gain("two-guesses").leakage(Joint.uniform(secrets=4, places=1))
    0.5
    """

    name: str
    unit = scores = "gain"

    def gains(self, secrets: tuple[str, ...]) -> np.ndarray:
        """The gain as a matrix: one row per action, one column per secret."""
        return gain_named(self.name, secrets)

    def leakage(self, joint: Joint) -> float:
        """sum_z max_a sum_x g(a,x) J(x,z)."""
        return g_vulnerability(joint, self.gains(joint.secrets))


@dataclass(frozen=True)
class Overlap(Objective):
    """How far apart the two users are whose reports differ most: 1 - least overlap, the squared
    Hellinger distance of their laws.  For linked reports: 0 where no number of them tells anything.

    >>> Overlap().leakage(Joint(np.eye(2) / 2))
    1.0
    """

    name = scores = "overlap"
    unit = "squared Hellinger distance"

    def shown(self, leakage: Any) -> Any:
        """The least overlap."""
        return 1 - leakage

    def leakage(self, joint: Joint) -> float:
        """max over pairs of 1 - sum_z sqrt(q_x(z) q_x'(z))."""
        return 1 - least_overlap(joint)


@dataclass(frozen=True)
class Endless(Overlap):
    """The same overlap, which must be 1: what is kept small is then the loss, and a bound on it is
    in the unit of the loss."""

    name = scores = "endless"

    def shown(self, leakage: Any) -> Any:
        """As it is: a loss."""
        return leakage


def blind_leakage(objective: Objective, joint: Joint) -> float:
    """The leakage of reports that say nothing: no mechanism leaks less.

    >>> blind_leakage(Bayes(), Joint.uniform(secrets=4, places=2))
    0.25
    """
    return objective.leakage(Joint(joint.prior[:, None], secrets=joint.secrets))


def objective_named(name: str, secrets: tuple[str, ...]) -> Objective:
    """bayes, information, overlap, endless, or the name of a gain."""
    known: tuple[Objective, ...] = (Bayes(), Information(), Overlap(), Endless())
    for objective in known:
        if name == objective.name:
            return objective
    if name not in GAINS and not name.startswith("target:"):
        raise ProblemError(
            f"unknown objective '{name}'; expected bayes, information, overlap, two-guesses,"
            " guess-or-pass or target:NAME"
        )
    gain_named(name, secrets)
    return Gain(name)
