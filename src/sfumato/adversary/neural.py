"""The paper's adversary: a small neural classifier trained on cross entropy."""

from dataclasses import dataclass, field
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

        from sfumato.nets import fit_classifier, glorot

        centre = reports.mean(axis=0)
        scale = max(float(np.abs(reports - centre).max()), 1e-9)
        inputs = jnp.asarray((reports - centre) / scale, dtype=jnp.float32)
        start, shuffle = jax.random.split(jax.random.key(seed))
        net = glorot(start, (2, *self.hidden, secrets))
        batch = min(self.batch, len(reports))
        net = fit_classifier(
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
