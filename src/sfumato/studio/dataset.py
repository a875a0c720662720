"""Data for the page: read, selected, described, and packed for drawing."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples, Split
from sfumato.errors import ProblemError
from sfumato.randomness import generator
from sfumato.studio.prove import MOST_PLACES, farthest_budget
from sfumato.studio.work import cloud_rows, cloud_truths, packed

_FEWEST = 2


@dataclass(frozen=True, eq=False)
class Loaded:
    """Data as it was chosen, what the page shows of it, and its points."""

    recipe: Recipe
    source: str
    split: Split
    description: dict[str, Any]
    points: bytes


def load(recipe: Recipe, source: str) -> Loaded:
    """Read `source` (a path, or four-corners) by a recipe."""
    placed = replace(recipe, source=source)
    everybody = (
        replace(placed, users=None, top_users=None, per_user=None, overlap_weight=None).load().all
    )
    split = everybody_split(placed, everybody)
    kept = split.all
    if (split.train.counts > 0).sum() < _FEWEST:
        raise ProblemError(
            f"{kept.name} holds one user ({kept.secrets[0]}) here; expected at least two: there is"
            " nobody to be confused with"
        )
    return Loaded(recipe, source, split, _described(recipe, everybody, split), _packed(kept))


def everybody_split(placed: Recipe, everybody: Samples) -> Split:
    """The selection; where nobody and nothing is left out and no part is drawn, what was read
    already."""
    plain = placed.users is None and placed.top_users is None and placed.per_user is None
    return Split(train=everybody) if plain and placed.source != "four-corners" else placed.load()


def _described(recipe: Recipe, everybody: Samples, split: Split) -> dict[str, Any]:
    kept = split.all
    order = np.argsort(-everybody.counts, kind="stable")
    places = len(np.unique(split.train.truth, axis=0))
    low, high = kept.truth.min(axis=0), kept.truth.max(axis=0)
    most = farthest_budget(split.train)
    return {
        "name": everybody.name,
        "rows": len(kept),
        "train": len(split.train),
        "test": 0 if split.test is None else len(split.test),
        "users": [
            {"name": name, "count": int(count)}
            for name, count in zip(kept.secrets, kept.counts, strict=True)
        ],
        "everybody": [
            {"name": everybody.secrets[row], "count": int(everybody.counts[row])} for row in order
        ],
        "plane": (
            None
            if kept.plane is None
            else {"latitude": kept.plane.latitude, "longitude": kept.plane.longitude}
        ),
        "bounds": [*low.tolist(), *high.tolist()],
        "notes": list(everybody.notes),
        "places": places,
        "provable": places <= MOST_PLACES,
        "most_places": MOST_PLACES,
        "blind_error": 1 - float(split.train.counts.max() / len(split.train)),
        "most_budget": most,
        "recipe": recipe.as_dict(),
        "cloud": {
            "truth": packed(cloud_truths(split.train.truth)),
            "users": split.train.secret[cloud_rows(len(split.train))].tolist(),
        },
    }


def _packed(samples: Samples) -> bytes:
    """All points in a mixed order, so that no user covers the others: x and y in single precision,
    then the users' numbers."""
    order = generator(0).permutation(len(samples))
    truth = samples.truth[order].astype("<f4")
    return (
        truth[:, 0].tobytes()
        + truth[:, 1].tobytes()
        + samples.secret[order].astype("<u4").tobytes()
    )
