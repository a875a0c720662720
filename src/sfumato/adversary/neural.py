"""The paper's adversary: a small neural classifier trained on cross entropy."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sfumato.adversary.base import Adversary, Attacker
from sfumato.errors import ProblemError


@dataclass(frozen=True)
class Neural(Adversary):
    """Three hidden ReLU layers of 60, 100 and 51 units, softmax, Adam on cross entropy.

    Inputs are centred and scaled to the spread of the reports seen.  The whole training is one
    compiled loop.  Paper: section 5, "Network architecture".

    >>> secret, reports = np.repeat([0, 1], 50), np.repeat([[0.0, 0.0], [100.0, 0.0]], 50, axis=0)
    >>> attacker = Neural(hidden=(8,), rate=0.05).fit(secret, reports, secrets=2)
    >>> attacker.guess(reports[[0, 99]]).tolist()
    [0, 1]
    """

    hidden: tuple[int, ...] = (60, 100, 51)
    epochs: int = 100
    batch: int = 512
    rate: float = 0.001

    def __post_init__(self) -> None:
        if not (
            self.epochs >= 1
            and self.batch >= 1
            and self.rate > 0
            and all(size >= 1 for size in self.hidden)
        ):
            raise ProblemError(
                f"a neural adversary needs epochs, batch, rate and layers above 0; got {self}"
            )

    def fit(
        self, secret: np.ndarray, reports: np.ndarray, *, secrets: int, seed: int = 0
    ) -> "NeuralAttacker":
        import jax
        import jax.numpy as jnp

        from sfumato.nets import glorot

        centre = reports.mean(axis=0)
        scale = max(float(np.abs(reports - centre).max()), 1e-9)
        inputs = jnp.asarray((reports - centre) / scale, dtype=jnp.float32)
        start, shuffle = jax.random.split(jax.random.key(seed))
        net = glorot(start, (2, *self.hidden, secrets))
        batch = min(self.batch, len(reports))
        net = _train(
            net,
            shuffle,
            inputs,
            jnp.asarray(secret),
            epochs=self.epochs,
            batch=batch,
            rate=self.rate,
        )
        return NeuralAttacker(net=net, centre=centre, scale=scale)


@dataclass(frozen=True, eq=False)
class NeuralAttacker(Attacker):
    """A trained classifier."""

    net: Any = field(repr=False)
    centre: np.ndarray = field(repr=False)
    scale: float

    def posterior(self, reports: np.ndarray) -> np.ndarray:
        import jax
        import jax.numpy as jnp

        scores = self.net(jnp.asarray((reports - self.centre) / self.scale, dtype=jnp.float32))
        chances = np.asarray(jax.nn.softmax(scores), dtype=float)
        return chances / chances.sum(axis=1, keepdims=True)


def _train(
    net: Any,
    key: Any,
    inputs: Any,
    secret: Any,
    *,
    epochs: int,
    batch: int,
    rate: float = field(repr=False),
) -> Any:
    return _compiled()(net, key, inputs, secret, epochs=epochs, batch=batch, rate=rate)


def _compiled() -> Any:
    """The training loop, traced once per shape; JAX is imported only when a net is trained."""
    global _LOOP
    if _LOOP is None:
        import jax
        import optax

        @partial(jax.jit, static_argnames=("epochs", "batch"))
        def loop(
            net: Any, key: Any, inputs: Any, secret: Any, *, epochs: int, batch: int, rate: float
        ) -> Any:
            optimiser = optax.adam(rate)
            steps = len(inputs) // batch

            def step(state: Any, rows: Any) -> Any:
                net, moments = state

                def cost(net: Any) -> Any:
                    scores = net(inputs[rows])
                    return optax.softmax_cross_entropy_with_integer_labels(
                        scores, secret[rows]
                    ).mean()

                change, moments = optimiser.update(jax.grad(cost)(net), moments)
                return (optax.apply_updates(net, change), moments), None

            def epoch(state: Any, key: Any) -> Any:
                rows = jax.random.permutation(key, len(inputs))[: steps * batch].reshape(
                    steps, batch
                )
                return jax.lax.scan(step, state, rows)

            (net, _), _ = jax.lax.scan(
                epoch, (net, optimiser.init(net)), jax.random.split(key, epochs)
            )
            return net

        _LOOP = loop
    return _LOOP


_LOOP: Any = None
