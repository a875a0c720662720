"""Where the game starts: a generator that has learnt to imitate planar Laplace noise."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sfumato.nets import Net
from sfumato.solver.game.frame import Points
from sfumato.solver.game.settings import LaplaceStart
from sfumato.solver.game.train import ADAM, adam_step, generate, stratified

_RATE = 3e-3
_BATCH = 512


def imitate_laplace(
    random: np.random.Generator,
    generator: Net,
    truth: Points,
    start: LaplaceStart,
    *,
    mean_loss: float,
) -> Net:
    """Regress the generator on truth + noise(seed), all in scaled units.

    Truths are the data's own, spread by a quarter of the noise so that the net is right around them
    too.
    """
    steps = start.steps
    begin = truth[random.integers(0, len(truth), (steps, _BATCH))]
    begin = begin + 0.25 * mean_loss * random.standard_normal(begin.shape, dtype=np.float32)
    seed = stratified(random, (steps, _BATCH), axis=1)
    target = begin + laplace_spiral(seed, mean_loss=mean_loss, turns=start.turns)
    rate = _RATE * 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps))
    return _regress(
        generator, *(np.asarray(part, np.float32) for part in (begin, seed, target, rate))
    )


@jax.jit
def _regress(generator: Net, begin: Any, seed: Any, target: Any, rate: Any) -> Net:
    def step(carry: Any, item: Any) -> tuple[Any, None]:
        begin, seed, target, rate = item
        gradient = jax.grad(
            lambda net: ((generate(net, begin, seed) - target) ** 2).sum(axis=1).mean()
        )(carry[0])
        return adam_step(carry[0], carry[1], gradient, rate), None

    first = jax.tree.map(jnp.asarray, generator)
    (generator, _), _ = jax.lax.scan(step, (first, ADAM.init(first)), (begin, seed, target, rate))
    return generator


def laplace_spiral(seed: np.ndarray, *, mean_loss: float, turns: float) -> np.ndarray:
    """Noise for seeds in [0, 1): the radius is planar Laplace's exact quantile, the angle makes
    `turns` turns.

    One seed cannot give two independent numbers to a small net; a spiral has the right law of the
    radius and a nearly uniform angle.  The radius solves 1 - (1 + r) exp(-r) = seed by Newton's
    method.
    """
    radius = np.ones_like(seed)
    for _ in range(30):
        off = 1 - (1 + radius) * np.exp(-radius) - seed
        radius = np.maximum(radius - off / (radius * np.exp(-radius)), radius / 4)
    angle = 2 * np.pi * turns * seed
    return (radius * mean_loss / 2)[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
