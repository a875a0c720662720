"""The random numbers of a round, drawn before it: the compiled loops are plain functions of them.

They come from NumPy, by (seed, lattice, round), so that a game gone on with draws what the
undisturbed one would have drawn; and a program without a random generator inside compiles several
times faster.
"""

from itertools import pairwise
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sfumato.nets import Net

if TYPE_CHECKING:
    from sfumato.solver.game.settings import Game

HELD_COPIES = 16  # reports of each validation truth for the classifier's accuracy


class Turns(NamedTuple):
    """What each turn of a round needs; the first axis is the turn."""

    pool: Any  # seeds of the pool (turns, copies, truths)
    pool_order: Any  # how an epoch of the classifier reads it (turns, epochs, copies * truths)
    order: Any  # how an epoch of the generator reads the truths (turns, epochs, truths)
    seeds: Any  # seeds of its steps (turns, epochs, steps, seeds, batch)
    pool_smear: (
        Any  # where in its cell a report of the pool is shown (turns, 2, copies, truths), or None
    )
    smear: (
        Any  # the same for the generator's steps (turns, epochs, steps, 2, seeds, batch), or None
    )


def of_round(game: "Game", random: np.random.Generator, *, count: int) -> Turns:
    """Stratified seeds and permutations for `count` truths."""
    copies = ceil(game.pool / count)
    batch = min(game.generator_batch, count)
    steps = ceil(count / batch)
    epochs = game.generator_epochs or ceil(game.generator_steps / steps)
    smeared = game.snap and game.smear
    return Turns(
        pool=stratified(random, (game.turns, copies, count), axis=1),
        pool_order=_orders(random, game.turns, game.classifier_epochs, copies * count),
        order=_orders(random, game.turns, epochs, count),
        seeds=stratified(random, (game.turns, epochs, steps, game.seeds, batch), axis=3),
        pool_smear=(
            random.random((game.turns, 2, copies, count), dtype=np.float32) if smeared else None
        ),
        smear=(
            random.random((game.turns, epochs, steps, 2, game.seeds, batch), dtype=np.float32)
            if smeared
            else None
        ),
    )


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


def first_net(random: np.random.Generator, sizes: tuple[int, ...]) -> Net:
    """Weights uniform as Glorot and Bengio (2010), biases zero."""
    net: Net = []
    for inputs, outputs in pairwise(sizes):
        reach = sqrt(6 / (inputs + outputs))
        net.append(
            (
                random.uniform(-reach, reach, (inputs, outputs)).astype(np.float32),
                np.zeros(outputs, np.float32),
            )
        )
    return net
