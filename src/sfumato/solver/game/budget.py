"""How the loss budget enters what the generator minimises.  Losses here are shares of the
budget."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Softplus:
    """The paper's: alpha * ln(1 + exp((loss - L) / unit)) + beta * payoff, weights set by hand.

    The paper does not print the unit inside softplus; `unit` is given as a share of the budget
    (`Game.paper` takes a metre).
    """

    alpha: float = 1.0
    beta: float = 2.0
    unit: float = 0.05

    def objective(self, payoff: Any, spent: Any, price: Any, thrift: Any) -> Any:
        import jax

        return self.alpha * jax.nn.softplus((spent - 1) / self.unit) + self.beta * payoff

    def next_price(self, price: Any, spent: Any) -> Any:
        return price


@dataclass(frozen=True)
class Multiplier:
    """An augmented Lagrangian: loss grows dearer while it is over the budget and cheaper below it.

    With excess = loss / L - 1 the objective is payoff + [(price + stiffness excess)_+^2 - price^2]
    / (2 stiffness), and after each step price <- (price + rate excess)_+.  `thrift` is a small
    price on all loss that fades with the
    rounds: of two mechanisms that hide equally well it takes the nearer one.
    """

    stiffness: float = 10.0
    rate: float = 0.02
    thrift: float = 0.02

    def objective(self, payoff: Any, spent: Any, price: Any, thrift: Any) -> Any:
        import jax

        pressed = jax.nn.relu(price + self.stiffness * (spent - 1))
        return (
            payoff + self.thrift * thrift * spent + (pressed**2 - price**2) / (2 * self.stiffness)
        )

    def next_price(self, price: Any, spent: Any) -> Any:
        import jax

        return jax.nn.relu(price + self.rate * (spent - 1))


Budget = Softplus | Multiplier
