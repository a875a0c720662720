"""Small fully connected nets as plain JAX pytrees: a list of (weights, bias) pairs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

Net = list[tuple[Any, Any]]


def glorot(key: "jax.Array", sizes: tuple[int, ...]) -> Net:
    """A net with the given layer sizes, weights uniform as Glorot and Bengio (2010), biases
    zero."""
    import jax
    import jax.numpy as jnp

    net: Net = []
    for each, fan_in, fan_out in zip(
        jax.random.split(key, len(sizes) - 1), sizes[:-1], sizes[1:], strict=True
    ):
        limit = (6 / (fan_in + fan_out)) ** 0.5
        net.append(
            (
                jax.random.uniform(each, (fan_in, fan_out), minval=-limit, maxval=limit),
                jnp.zeros(fan_out),
            )
        )
    return net


def forward(net: Net, inputs: Any) -> Any:
    """ReLU between layers, nothing after the last."""
    import jax

    for weights, bias in net[:-1]:
        inputs = jax.nn.relu(inputs @ weights + bias)
    weights, bias = net[-1]
    return inputs @ weights + bias
