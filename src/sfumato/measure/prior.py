"""Other users than those of the data: the same figures when the users' shares are different."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.data.joint import Joint
from sfumato.data.samples import MANY_USERS
from sfumato.errors import ProblemError
from sfumato.measure.estimate import Estimate
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.judge import Judgement

_DOUBLED = 20  # users, where they are many


@dataclass(frozen=True)
class UnderPrior:
    """Loss and leakage when the secrets have other shares.  `blind` is the error of a guess that
    sees no report."""

    name: str
    loss: float
    bayes_error: Estimate
    information_bits: Estimate
    blind: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "prior": self.name,
            "loss": self.loss,
            "bayes_error": self.bayes_error.as_dict(),
            "information_bits": self.information_bits.as_dict(),
            "blind_error": self.blind,
        }


@dataclass(frozen=True)
class Priors:
    """A mechanism under other shares of the users: as in the data, equal, and each user twice as
    frequent.

    `capacity` is how many times as often as a blind one the best guess is right, at most, whatever
    the shares. `largest_loss` is the loss if all reports came from the user who pays most: no
    shares cost more.
    """

    given: UnderPrior
    equal: UnderPrior
    doubled: tuple[UnderPrior, ...]
    capacity: float
    largest_loss: float

    @property
    def easiest(self) -> UnderPrior:
        """The user whose doubling leaves the best guess the smallest error."""
        return min(self.doubled, key=lambda prior: prior.bayes_error.value)

    @property
    def dearest(self) -> UnderPrior:
        """The user whose doubling costs most."""
        return max(self.doubled, key=lambda prior: prior.loss)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "given": self.given.as_dict(),
            "equal": self.equal.as_dict(),
            "doubled": [prior.as_dict() for prior in self.doubled],
            "bayes_capacity": self.capacity,
            "largest_loss": self.largest_loss,
        }


def reweighted(joint: Joint, prior: np.ndarray) -> Joint:
    """P(secret, report) with other shares of the secrets: prior(x) P(z | x).

    A secret that the table never shows must keep a share of 0: nothing is known of its reports.

    >>> reweighted(Joint(np.array([[0.5, 0.0], [0.25, 0.25]])), np.array([0.2, 0.8])).table.tolist()
    [[0.2, 0.0], [0.4, 0.4]]
    """
    shares = np.asarray(prior, dtype=float)
    if shares.shape != joint.prior.shape or not (
        np.all(shares >= 0) and abs(shares.sum() - 1) <= 1e-9
    ):
        raise ProblemError(
            f"a prior has a share of at least 0 for each of {len(joint.prior)} secrets, 1 in all;"
            f" got {prior}"
        )
    if np.any((joint.prior == 0) & (shares > 0)):
        raise ProblemError(
            "a secret that is not in the data cannot be given a share; nothing is known of its"
            " reports"
        )
    return Joint(_given_secret(joint) * shares[:, None], places=joint.places, secrets=joint.secrets)


def _given_secret(joint: Joint) -> np.ndarray:
    """P(z | x); rows of zeros for secrets that never occur."""
    prior = joint.prior[:, None]
    return np.divide(joint.table, prior, out=np.zeros_like(joint.table), where=prior > 0)


def bayes_capacity(joint: Joint) -> float:
    """How many times as often as a blind one the best guess is right, at most over all priors:
    sum_z max_x P(z | x).

    Attained by equal shares (Braun, Chatzikokolakis and Palamidessi, 2009).  1 means that reports
    tell nothing. Lower is more private.  Exact for the table given.

    >>> bayes_capacity(Joint(np.eye(4) / 4))
    4.0
    """
    return float(_given_secret(joint).max(axis=0).sum())


def under_priors(judged: Judgement) -> Priors | None:
    """A judgement under other shares of the users; None for figures estimated from samples, which
    cannot be re-weighted honestly, and for tables too large to be held whole.  Of more than 200
    users the twenty are doubled whose doubling costs most.

    The law of each user's reports stays; only how often each user reports changes, and the
    adversary knows it.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.measure.judge import judge
    >>> from sfumato.mechanism.simple import constant
    >>> priors = under_priors(judge(constant((0.0, 0.0)), four_corners(seed=0).test))
    >>> round(priors.capacity, 6)  # one report for all: nothing can be learnt under any prior
    1.0
    """
    if judged.bayes_error.kind != "exact" or judged.joint.sparse is not None:
        return None
    joint, prior = judged.joint, judged.joint.prior
    present = prior > 0
    loss_of = np.array([user.loss for user in judged.per_user])
    doubled = []
    users = np.flatnonzero(present)
    if len(users) > MANY_USERS:  # those whose doubling costs most
        dearest = prior[users] * (loss_of[users] - prior @ loss_of) / (1 + prior[users])
        users = np.sort(users[np.argsort(-dearest)[:_DOUBLED]])
    for secret in users:
        more = prior.copy()
        more[secret] *= 2
        doubled.append(_under(judged, joint.secrets[secret], more / more.sum(), loss_of))
    return Priors(
        given=_under(judged, "as in the data", prior, loss_of),
        equal=_under(judged, "equal", present / present.sum(), loss_of),
        doubled=tuple(doubled),
        capacity=bayes_capacity(joint),
        largest_loss=float(loss_of[present].max()),
    )


def _under(judged: Judgement, name: str, shares: np.ndarray, loss_of: np.ndarray) -> UnderPrior:
    joint = reweighted(judged.joint, shares / shares.sum())

    def off_as(estimate: Estimate, value: float) -> Estimate:
        room = estimate.high - estimate.value
        return Estimate.exact(value, within=room, cell_m=estimate.cell_m, errs=estimate.errs)

    return UnderPrior(
        name=name,
        loss=float(shares[shares > 0] @ loss_of[shares > 0]),
        bayes_error=off_as(judged.bayes_error, bayes_error(joint)),
        information_bits=off_as(judged.information_bits, mutual_information(joint)),
        blind=1 - float(shares.max()),
    )
