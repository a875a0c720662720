"""A generator as it would be released, and how well it hides the validation data."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.data.samples import Samples
from sfumato.measure.exact import bayes_error
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.generator import GeneratorNet
from sfumato.mechanism.wrap import Snapped
from sfumato.solver.game.frame import Frame, lattice_of
from sfumato.solver.problem import Problem

_COARSE = 16  # seeds for the loss of a round; what is released is computed with all of them


@dataclass(frozen=True, eq=False)
class Candidate:
    """A net, the lattice that its reports are moved to, and the problem's grid that they are
    released on."""

    net: GeneratorNet
    cells: int
    problem: Problem
    learning: Samples

    @classmethod
    def of(
        cls,
        generator: Any,
        frame: Frame,
        *,
        cells: int,
        problem: Problem,
        learning: Samples,
        levels: int,
    ) -> "Candidate":
        x, y = (float(number) for number in frame.centre)
        layers = tuple(
            (np.asarray(layer.weights), np.asarray(layer.bias)) for layer in generator.layers
        )
        net = GeneratorNet(layers, centre_m=(x, y), unit_m=float(frame.unit), levels=levels)
        return cls(net, cells, problem, learning)

    @property
    def mechanism(self) -> Mechanism:
        """What is released: reports on the lattice, each the middle of a cell of the problem's
        grid."""
        if self.cells == 1:
            return Snapped(self.net, self.problem.grid)
        return Snapped(
            Snapped(self.net, lattice_of(self.learning.truth, self.problem.grid, cells=self.cells)),
            self.problem.grid,
        )

    def loss(self, *, levels: int | None = None) -> float:
        """Expected loss on all training data: exact for the released seeds, or with fewer of
        them."""
        net = self.net if levels is None else replace(self.net, levels=levels)
        law = replace(self, net=net).mechanism.law(self.problem.joint, loss=self.problem.loss)
        assert law is not None
        return law.loss

    def score(self, validation: Samples) -> tuple[float, float]:
        """Bayes error on validation data, and what calibration would leave of it."""
        law = self.mechanism.law(validation.joint(), loss=self.problem.loss)
        assert law is not None
        hidden = bayes_error(law.joint)
        return hidden, hidden * (1 - self._keep(self.loss(levels=_COARSE)))

    def calibrated(self) -> "Candidate":
        """The same net, keeping the truth as often as the budget demands: never, if it is within
        it."""
        return replace(self, net=replace(self.net, keep=self._keep(self.loss())))

    def _keep(self, loss: float) -> float:
        """The loss is linear in the chance to keep the truth (moved to the lattice like any
        report)."""
        budget = self.problem.average_budget
        if loss <= budget:
            return 0.0
        own = replace(self, net=replace(self.net, keep=1.0, levels=1)).loss()
        return 1.0 if own >= budget else min(1.0, (loss - budget) / (loss - own) + 1e-12)
