"""The second secret, *where*: how far off the best guess of the true place is, and whether it was
at one of some sensitive places."""

from dataclasses import dataclass

import numpy as np

from sfumato.data.joint import Joint
from sfumato.errors import DataError
from sfumato.mechanism.base import Mechanism
from sfumato.randomness import generator

MOST_PLACES = 300  # places that are looked at; their table with every report is held
_SEED = 5  # which places are looked at where there are more


@dataclass(frozen=True)
class Where:
    """Guesses of the true place, after a report and blind.

    `error_m` and `blind_m` are metres between the best guess among the places and the truth, on
    average; higher is more private.  `sensitive` and `sensitive_blind` are how often the best guess
    of *at one of the sensitive places or not* is right, None where none were named; lower is more
    private.  Exact for the `places` that were looked at.
    """

    error_m: float
    blind_m: float
    places: int
    sensitive: float | None = None
    sensitive_blind: float | None = None


def where(
    mechanism: Mechanism,
    places: np.ndarray,
    weights: np.ndarray,
    *,
    near_sensitive: np.ndarray | None = None,
) -> Where | None:
    """What a report tells about the place; None where the mechanism's law is not known.

    `places` in metres, each once, with the share of check-ins there; `near_sensitive` marks those
    that count as sensitive.  The adversary knows the places, their shares and the mechanism, and
    guesses the place that is nearest on average.

    >>> from sfumato.mechanism.simple import Identity, constant
    >>> points, even = np.array([[0.0, 0.0], [100.0, 0.0]]), np.array([0.5, 0.5])
    >>> where(Identity(), points, even).error_m, where(constant((0.0, 0.0)), points, even).error_m
    (0.0, 50.0)
    """
    if not len(places):
        raise DataError("there is no place to guess; expected check-ins")
    if len(places) > MOST_PLACES:
        chosen = generator(_SEED).choice(len(places), MOST_PLACES, replace=False, p=weights)
        places, weights = places[chosen], np.full(MOST_PLACES, 1 / MOST_PLACES)
        near_sensitive = None if near_sensitive is None else near_sensitive[chosen]
    law = mechanism.law(Joint(np.diag(weights), places=places))
    if law is None:
        return None
    table = law.joint.table
    apart = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    right_and_blind: tuple[float | None, float | None] = (None, None)
    if near_sensitive is not None:
        share = float(weights[near_sensitive].sum())
        there = table[near_sensitive].sum(axis=0)
        right = float(np.maximum(there, table.sum(axis=0) - there).sum())
        right_and_blind = (right, max(share, 1 - share))
    return Where(
        error_m=float((apart @ table).min(axis=0).sum()),
        blind_m=float((apart @ weights).min()),
        places=len(places),
        sensitive=right_and_blind[0],
        sensitive_blind=right_and_blind[1],
    )
