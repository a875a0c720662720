"""The random numbers of a round, drawn before it: the compiled loops are plain functions of them.

They come from NumPy, by (seed, lattice, round), so that a resumed game draws what the undisturbed
one would have drawn; and a program without a random generator inside compiles several times faster.
"""

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from sfumato.solver.game.settings import GameSettings

HELD_COPIES = 16  # reports of each validation truth for the classifier's accuracy


class Draws(NamedTuple):
    """What each turn of a round needs; the first axis is the turn.  The last two are None unless
    reports are shown smeared."""

    pool: Any  # seeds of the classifier's reports (turns, copies, truths)
    pool_order: Any  # how its epochs read them (turns, epochs, copies * truths)
    order: Any  # how an epoch of the generator reads the truths (turns, epochs, truths)
    seeds: Any  # seeds of its steps (turns, epochs, steps, seeds, batch)
    pool_smear: Any  # where in its cell such a report is shown (turns, 2, copies, truths)
    smear: Any  # the same for the generator's steps (turns, epochs, steps, 2, seeds, batch)


def draws_of_round(game: GameSettings, random: np.random.Generator, *, count: int) -> Draws:
    """Stratified seeds and permutations for `count` truths."""
    turns, generator = game.turns, game.generator
    copies = ceil(game.classifier.reports / count)
    batch = min(generator.batch, count)
    steps = ceil(count / batch)
    epochs = generator.epochs_of(steps)
    pool = stratified(random, (turns, copies, count), axis=1)
    pool_order = _orders(random, turns, game.classifier.epochs, copies * count)
    order = _orders(random, turns, epochs, count)
    seeds = stratified(random, (turns, epochs, steps, generator.seeds, batch), axis=3)
    if game.shown != "smeared":
        return Draws(pool, pool_order, order, seeds, None, None)
    pool_smear = random.random((turns, 2, copies, count), dtype=np.float32)
    shape = (turns, epochs, steps, 2, generator.seeds, batch)
    return Draws(pool, pool_order, order, seeds, pool_smear, random.random(shape, dtype=np.float32))


def stratified(random: np.random.Generator, shape: tuple[int, ...], *, axis: int) -> np.ndarray:
    """Numbers on [0, 1): along `axis`, one in each of as many equal parts."""
    parts = shape[axis]
    floor = np.arange(parts, dtype=np.float32).reshape(
        [-1 if place == axis else 1 for place in range(len(shape))]
    )
    return (floor + random.random(shape, dtype=np.float32)) / np.float32(parts)


def _orders(random: np.random.Generator, turns: int, epochs: int, count: int) -> np.ndarray:
    return random.permuted(
        np.broadcast_to(np.arange(count, dtype=np.int32), (turns, epochs, count)), axis=2
    )
