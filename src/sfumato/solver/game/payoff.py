"""What the generator minimises: the payoff of the game, from the batch matrices T and Q.

T(i, x) is 1 where sample i belongs to user x, else 0; Q(i, y) = C(y | report i).  A payoff takes T
and log Q and is small when users are well hidden *from this classifier*.  It is not the leakage:
that is measured on the reports, by judges that never saw the game.
"""

from dataclasses import dataclass
from typing import Any

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

    def __call__(self, targets: Any, log_predictions: Any) -> Any:
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

    def __call__(self, targets: Any, log_predictions: Any) -> Any:
        import jax.numpy as jnp

        targets, log_predictions = jnp.asarray(targets), jnp.asarray(log_predictions)
        return jnp.where(targets > 0, targets * log_predictions, 0.0).sum() / targets.shape[0]


Payoff = MutualInformation | CrossEntropy
