"""The paper's selection from the Gowalla check-ins."""

from dataclasses import replace
from pathlib import Path

from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import PAPER_REGION, SEBASTOPOL

_PAPER_SQUARE_M = 4500.0
_PAPER_USERS, _PAPER_TRAIN, _PAPER_TEST = 6, 82, 20
OVERLAP_WEIGHT = 0.15  # our guess: it gives the paper's Bayes errors without noise


def gowalla_of_the_paper(
    path: str | Path, seed: int = 0, *, overlap_weight: float = OVERLAP_WEIGHT
) -> Split:
    """The paper's selection from a file of Gowalla check-ins: six users, 82 + 20 check-ins each.

    A square of 4500 m about 5, boulevard de Sébastopol, the six users with the most check-ins in
    it, thinned where they overlap (`overlap_weights`, our reading).  Carries the paper's region of
    6500 m.
    Paper: section 6, "The dataset".
    """
    return draw_of_the_paper(
        gowalla_users_of_the_paper(path), seed=seed, overlap_weight=overlap_weight
    )


def gowalla_users_of_the_paper(path: str | Path) -> Samples:
    """All check-ins in the paper's square of the six users who have the most there."""
    around = read_checkins(path, square=(*SEBASTOPOL, _PAPER_SQUARE_M))
    return replace(around.top_users(_PAPER_USERS), region=PAPER_REGION)


def draw_of_the_paper(
    users: Samples, seed: int = 0, *, overlap_weight: float = OVERLAP_WEIGHT
) -> Split:
    """82 training and 20 test check-ins of each user."""
    return users.split(_PAPER_TRAIN, _PAPER_TEST, seed=seed, overlap_weight=overlap_weight)
