"""The paper's game between a generator and a classifier."""

from sfumato.solver.game.payoff import CrossEntropy, MutualInformation
from sfumato.solver.game.settings import Game

__all__ = ["CrossEntropy", "Game", "MutualInformation"]
