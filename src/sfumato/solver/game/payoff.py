"""What the generator minimises: the payoff of the game, from the batch matrices T and Q, and how
the loss budget enters it.

T(i, x) is 1 where sample i belongs to user x, else 0; Q(i, y) = C(y | report i).  A payoff takes T
and log Q and is small when users are well hidden *from this classifier*.  It is not the leakage:
that is measured on the reports, by judges that never saw the game.
"""

from dataclasses import dataclass
from typing import Annotated, Any

PerUser = Annotated[Any, "samples users"]
Number = Annotated[Any, ""]

_FLOOR = 1e-6  # nats; below it the root is flat, where float32 cannot tell I from 0


def _times_log(values: Any) -> Any:
    """v log v with 0 log 0 = 0 and gradient 0 there: the term is absent, not clipped."""
    import jax.numpy as jnp

    present = values > 0
    return jnp.where(present, values * jnp.log(jnp.where(present, values, 1.0)), 0.0)


@dataclass(frozen=True)
class MutualInformation:
    """I(X;Y) in nats between the user and a guess drawn from the classifier.  Lower hides better.

    P(x, y) = mean_i T(i, x) Q(i, y);  I = sum P(x,y) ln P(x,y) - sum P(x) ln P(x) - sum P(y) ln
    P(y). Swapping labels leaves it as it is.  Paper: section 4, "Implementing mutual information".
    """

    root: bool = False
    name: str = "mutual information"

    def descent(self, value: Any) -> Any:
        """What the generator descends: I, or its root, whose slope does not vanish as I nears 0.

        Near independence I is quadratic in what still tells users apart, so any price on loss
        outweighs the last of it; the root has the same minima and keeps its slope.
        """
        import jax.numpy as jnp

        return jnp.sqrt(jnp.maximum(value, 0.0) + _FLOOR) if self.root else value

    def __call__(self, targets: PerUser, log_predictions: PerUser) -> Number:
        import jax.numpy as jnp

        targets, log_predictions = jnp.asarray(targets), jnp.asarray(log_predictions)
        joint = targets.T @ jnp.exp(log_predictions) / targets.shape[0]
        return (
            _times_log(joint).sum()
            - _times_log(joint.sum(0)).sum()
            - _times_log(joint.sum(1)).sum()
        )


@dataclass(frozen=True)
class CrossEntropy:
    """-CE(X,Y) = mean_i ln Q(i, x_i) in nats: fool the present classifier, by swapping labels if
    need be.

    The unsound payoff, kept for the demonstration: it has no lower end, and the next classifier
    undoes what it gained.  Paper: section 5, training the generator with respect to cross entropy.
    """

    name: str = "cross entropy"

    def descent(self, value: Any) -> Any:
        return value

    def __call__(self, targets: PerUser, log_predictions: PerUser) -> Number:
        import jax.numpy as jnp

        targets, log_predictions = jnp.asarray(targets), jnp.asarray(log_predictions)
        return jnp.where(targets > 0, targets * log_predictions, 0.0).sum() / targets.shape[0]


Payoff = MutualInformation | CrossEntropy


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
