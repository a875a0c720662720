"""The paper's game between a generator and a classifier."""

from sfumato.solver.game.payoff import CrossEntropy, Multiplier, MutualInformation, Softplus
from sfumato.solver.game.settings import ClassifierConfig, GeneratorConfig, LaplaceStart
from sfumato.solver.game.solver import Game

__all__ = [
    "ClassifierConfig",
    "CrossEntropy",
    "Game",
    "GeneratorConfig",
    "LaplaceStart",
    "Multiplier",
    "MutualInformation",
    "Softplus",
]
