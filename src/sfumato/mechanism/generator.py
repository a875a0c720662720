"""A learned mechanism: a net from the truth and one random seed to the report."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportRows
from sfumato.mechanism.layers import (
    Layers,
    check_frame,
    checked_layers,
    forward,
    layer_arrays,
    layers_from,
)

LEVELS = 256
_PART = 512


@dataclass(frozen=True, eq=False)
class GeneratorNet(Mechanism):
    """Report = net(truth, seed): fully connected layers, ReLU between them, the seed as a third
    input.

    Main arguments: `layers`, pairs of weights (inputs, outputs) and bias, float32; truths and
    reports are scaled as (metres - `centre_m`) / `unit_m`.

    Other arguments: `levels`, how many values the seed takes.  The uniform number is rounded to the
    middle of one of `levels` equal parts of [0, 1), so the net draws among `levels` equally likely
    reports of each truth and its law is known, not estimated.  None leaves the seed as it is (the
    paper's net): no finite law. `keep` is the chance that the truth itself is reported; it brings a
    net that costs too much within a budget.
    Paper: section 5, "Network architecture".

    >>> net = GeneratorNet(((np.zeros((3, 2)), np.ones(2)),), unit_m=100.0)
    >>> net.sample([3.0, 4.0]).tolist()  # its bias alone, in units of 100 m
    [100.0, 100.0]
    """

    layers: Layers = field(repr=False)
    centre_m: tuple[float, float] = field(default=(0.0, 0.0), repr=False)
    unit_m: float = 1.0
    levels: int | None = LEVELS
    keep: float = 0.0
    kind = "generator net"
    lists_truths = False
    not_places = ("weights", "bias")

    def __post_init__(self) -> None:
        layers, outputs = checked_layers(self.layers, inputs=3)
        object.__setattr__(self, "layers", layers)
        if not (layers and outputs == 2):
            raise MechanismError(
                f"a generator net ends in two outputs; got {outputs if layers else 'no layers'}"
            )
        check_frame(self.centre_m, self.unit_m)
        if not (self.levels is None or self.levels >= 1):
            raise MechanismError(f"the seed takes at least 1 value; got {self.levels} levels")
        if not 0 <= self.keep <= 1:
            raise MechanismError(
                f"the chance to keep the truth lies between 0 and 1; got {self.keep}"
            )

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        seed = chance[:, 0]
        kept = seed < self.keep
        if self.keep:
            seed = np.where(kept, 0.0, (seed - self.keep) / max(1 - self.keep, 2.0**-53))
        if self.levels is not None:
            seed = (np.minimum(np.floor(seed * self.levels), self.levels - 1) + 0.5) / self.levels
        return np.where(kept[:, None], truth, self._forward(truth, seed))

    def _forward(self, truth: np.ndarray, seed: np.ndarray) -> np.ndarray:
        """In float64, so that a report hardly depends on how many are drawn at once; in parts that
        fit a cache."""
        reports = np.empty((len(truth), 2))
        layers = [(weights.astype(float), bias.astype(float)) for weights, bias in self.layers]
        for part in range(0, len(truth), _PART):
            rows = slice(part, part + _PART)
            values = np.column_stack(
                [(truth[rows] - np.array(self.centre_m)) / self.unit_m, seed[rows]]
            )
            reports[rows] = forward(layers, values) * self.unit_m + np.array(self.centre_m)
        return reports

    def rows(self, truth: np.ndarray) -> ReportRows | None:
        if self.levels is None:
            return None
        count, levels = len(truth), self.levels
        seed = np.tile((np.arange(levels) + 0.5) / levels, count)
        places = self._forward(np.repeat(truth, levels, axis=0), seed)
        drawn = sparse.csr_matrix(
            (
                np.full(count * levels, (1 - self.keep) / levels),
                np.arange(count * levels),
                np.arange(count + 1) * levels,
            ),
            shape=(count, count * levels),
        )
        if not self.keep:
            return ReportRows(drawn, places)
        kept = sparse.identity(count, format="csr") * self.keep
        return ReportRows(sparse.hstack([kept, drawn], format="csr"), np.vstack([truth, places]))

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "layers": np.array(len(self.layers)),
            "centre": np.array(self.centre_m, dtype=float),
            "unit": np.array(self.unit_m),
            "levels": np.array(self.levels or 0),
            "keep": np.array(self.keep),
            **layer_arrays(self.layers),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "GeneratorNet":
        x, y = arrays["centre"]
        return cls(
            layers=layers_from(arrays),
            centre_m=(float(x), float(y)),
            unit_m=float(arrays["unit"]),
            levels=int(arrays["levels"]) or None,
            keep=float(arrays["keep"]),
        )
