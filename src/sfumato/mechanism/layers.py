"""The layers of a net as a mechanism holds them: checked when they come, worked through, stored by
number."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from sfumato.errors import MechanismError

Layers = tuple[tuple[np.ndarray, np.ndarray], ...]


def checked_layers(layers: Layers, *, inputs: int) -> tuple[Layers, int]:
    """The layers in float32, and how many numbers come out of the last; refused where one does not
    follow from the other."""
    layers = tuple(
        (np.asarray(weights, np.float32), np.asarray(bias, np.float32)) for weights, bias in layers
    )
    for weights, bias in layers:
        if not (
            weights.ndim == 2 and weights.shape[0] == inputs and bias.shape == weights.shape[1:]
        ):
            raise MechanismError(
                f"a layer of {inputs} inputs has weights ({inputs}, n) and bias (n,); got"
                f" {weights.shape}, {bias.shape}"
            )
        if not (np.all(np.isfinite(weights)) and np.all(np.isfinite(bias))):
            raise MechanismError("the weights of a net must be finite numbers; got NaN or infinity")
        inputs = weights.shape[1]
    return layers, inputs


def check_frame(centre_m: tuple[float, float], unit_m: float) -> None:
    """Refuse a frame in which no metres can be scaled."""
    if not (
        unit_m > 0 and np.isfinite(unit_m) and len(centre_m) == 2 and np.all(np.isfinite(centre_m))
    ):
        raise MechanismError(
            f"a net's frame is a finite centre and a unit above 0 metres; got {centre_m} and"
            f" {unit_m}"
        )


def forward(
    layers: Sequence[tuple[np.ndarray, np.ndarray]], values: Annotated[np.ndarray, "rows inputs"]
) -> Annotated[np.ndarray, "rows outputs"]:
    """ReLU between layers, nothing after the last; as precise as what is given."""
    for number, (weights, bias) in enumerate(layers):
        values = values @ weights + bias
        if number < len(layers) - 1:
            np.maximum(values, 0.0, out=values)
    return values


def layer_arrays(layers: Layers) -> dict[str, np.ndarray]:
    """Weights and biases under the names that a mechanism file has for them; their count is stored
    as `layers`."""
    return {
        f"{name}.{number}": array
        for number, layer in enumerate(layers)
        for name, array in zip(("weights", "bias"), layer, strict=True)
    }


def layers_from(arrays: dict[str, np.ndarray]) -> Layers:
    """Read back what `layer_arrays` named."""
    return tuple(
        (arrays[f"weights.{number}"], arrays[f"bias.{number}"])
        for number in range(int(arrays["layers"]))
    )
