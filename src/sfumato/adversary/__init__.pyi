from sfumato.adversary.base import Adversary as Adversary
from sfumato.adversary.base import Attacker as Attacker
from sfumato.adversary.base import score as score
from sfumato.adversary.counting import Cells as Cells
from sfumato.adversary.counting import Neighbours as Neighbours
from sfumato.adversary.counting import bayes_error_bound as bayes_error_bound
from sfumato.adversary.neural import Neural as Neural
