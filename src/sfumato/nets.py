"""Small fully connected nets as Equinox modules, and how they learn."""

import os
from collections.abc import Callable
from functools import cache, partial, wraps
from itertools import pairwise
from math import sqrt
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

# Read when JAX first computes.  Our products are small: threads that share them wait for each other
# (twice the processor time on two cores, and longer by the clock), and the order of sums, so the
# last digits, would follow from the number of cores.
os.environ.setdefault("PJRT_NPROC", "1")


class Layer(eqx.Module):
    """Weights (inputs, outputs) and bias (outputs)."""

    weights: Annotated[Any, "inputs outputs"]
    bias: Annotated[Any, "outputs"]


class Net(eqx.Module):
    """ReLU between layers, nothing after the last."""

    layers: tuple[Layer, ...]

    def __call__(self, inputs: Annotated[Any, "rows inputs"]) -> Annotated[Any, "rows outputs"]:
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


_QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}


def compiled_quickly(function: Callable, **options: Any) -> Callable:
    """`jax.jit` for what runs a few times: XLA does not optimise it, where this version of JAX has
    the options for that."""

    @cache
    def compiled() -> Callable:
        try:
            jax.jit(jnp.negative, compiler_options=_QUICKLY).lower(0.0).compile()
        except (RuntimeError, TypeError, ValueError):  # not known to this version
            return jax.jit(function, **options)
        return jax.jit(function, compiler_options=_QUICKLY, **options)

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return compiled()(*args, **keywords)

    return call


def mixing_dtypes(optimiser: optax.GradientTransformation) -> optax.GradientTransformation:
    """The same where dtypes are strict, as in tests: Optax's Adam raises a float to a whole
    number."""

    def update(gradient: Any, moments: Any, params: Any = None) -> tuple[Any, Any]:
        with jax.numpy_dtype_promotion("standard"):
            return optimiser.update(gradient, moments, params)

    return optax.GradientTransformation(optimiser.init, update)


@partial(jax.jit, static_argnames=("epochs", "batch"))
def fit_classifier(
    net: Net,
    key: Any,
    inputs: Annotated[Any, "rows inputs"],
    labels: Annotated[Any, "rows"],
    *,
    epochs: int,
    batch: int,
    rate: float,
) -> Net:
    """Lower the cross entropy by Adam, over whole batches of each epoch's own order."""
    optimiser = mixing_dtypes(optax.adam(rate))
    steps = len(inputs) // batch

    def cost(net: Net, rows: Any) -> Any:
        losses = optax.softmax_cross_entropy_with_integer_labels(net(inputs[rows]), labels[rows])
        return losses.mean()

    def step(state: Any, rows: Any) -> Any:
        net, moments = state
        change, moments = optimiser.update(jax.grad(cost)(net, rows), moments)
        return (optax.apply_updates(net, change), moments), None

    def epoch(state: Any, key: Any) -> Any:
        order = jax.random.permutation(key, len(inputs))[: steps * batch]
        return jax.lax.scan(step, state, order.reshape(steps, batch))

    first = net, optimiser.init(net)
    (net, _), _ = jax.lax.scan(epoch, first, jax.random.split(key, epochs))
    return net
