"""A game of seconds on three users."""

from typing import Any

import numpy as np

from sfumato.data.grid import Region
from sfumato.data.samples import Samples
from sfumato.mechanism.base import Mechanism
from sfumato.solver import Problem
from sfumato.solver.game import ClassifierConfig, Game, GeneratorConfig, LaplaceStart

TINY = Game(
    rounds=4,
    turns=2,
    lattices=(0.0,),
    classifier=ClassifierConfig(hidden=(12,), reports=300),
    generator=GeneratorConfig(hidden=(16,), batch=64, seeds=2, levels=16),
    start=LaplaceStart(steps=60),
)

REGION = Region(centre=(0.0, 0.0), side_m=600.0)


def samples(seed: int = 0) -> Samples:
    random = np.random.default_rng(seed)
    secret = np.repeat([0, 1, 2], 24)
    truth = np.array([[-100.0, 0.0], [100.0, 0.0], [0.0, 150.0]])[secret] + random.normal(
        0.0, 20.0, (72, 2)
    )
    return Samples(secret=secret, truth=truth, secrets=("ann", "bob", "cid"), region=REGION)


def tiny_problem(**changes: Any) -> Problem:
    return Problem(samples(), **{"max_loss": 90.0, "cell_m": 50.0, **changes})


def same(one: Mechanism, other: Mechanism) -> bool:
    left, right = one.arrays(), other.arrays()
    return left.keys() == right.keys() and all(
        np.array_equal(left[name], right[name]) for name in left
    )


def always(solver: Any) -> Any:
    """A stand-in for a solver's class that gives this solver, whatever is asked."""
    made = lambda **settings: solver  # noqa: E731
    made.resumable = solver.resumable
    made.__dataclass_fields__ = type(solver).__dataclass_fields__
    return made
