"""Small fully connected nets as Equinox modules."""

from collections.abc import Callable
from itertools import pairwise
from math import sqrt
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


class Layer(eqx.Module):
    """Weights (inputs, outputs) and bias (outputs)."""

    weights: Any
    bias: Any


class Net(eqx.Module):
    """ReLU between layers, nothing after the last."""

    layers: tuple[Layer, ...]

    def __call__(self, inputs: Any) -> Any:
        for layer in self.layers[:-1]:
            inputs = jax.nn.relu(inputs @ layer.weights + layer.bias[None, :])
        return inputs @ self.layers[-1].weights + self.layers[-1].bias[None, :]


def glorot_net(sizes: tuple[int, ...], draw: Callable[[float, tuple[int, int]], Any]) -> Net:
    """A net with the given layer sizes, weights uniform as Glorot and Bengio (2010), biases zero.

    `draw(reach, shape)` gives numbers uniform between -reach and reach.
    """
    return Net(
        tuple(
            Layer(draw(sqrt(6 / (inputs + outputs)), (inputs, outputs)), jnp.zeros(outputs))
            for inputs, outputs in pairwise(sizes)
        )
    )


def glorot(key: Any, sizes: tuple[int, ...]) -> Net:
    """The same, drawn by a JAX key."""
    keys = iter(jax.random.split(key, len(sizes) - 1))
    return glorot_net(
        sizes,
        lambda reach, shape: jax.random.uniform(next(keys), shape, minval=-reach, maxval=reach),
    )
