"""The paper's game between a generator and a classifier."""

from sfumato.solver.game.payoff import CrossEntropy as CrossEntropy
from sfumato.solver.game.payoff import Multiplier as Multiplier
from sfumato.solver.game.payoff import MutualInformation as MutualInformation
from sfumato.solver.game.payoff import Softplus as Softplus
from sfumato.solver.game.settings import ClassifierConfig as ClassifierConfig
from sfumato.solver.game.settings import GeneratorConfig as GeneratorConfig
from sfumato.solver.game.settings import LaplaceStart as LaplaceStart
from sfumato.solver.game.solver import Game as Game
