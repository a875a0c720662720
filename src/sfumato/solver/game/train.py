"""The compiled loops of the game: fit the classifier, improve the generator.

Every function is pure: arrays and random numbers in, arrays out, fixed shapes, no Python per step.
The classifier learns from a pool of reports that is drawn once while the generator stands still.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from sfumato.nets import Net, forward
from sfumato.solver.game.budget import Budget
from sfumato.solver.game.frame import Frame
from sfumato.solver.game.payoff import CrossEntropy, Payoff

ADAM = optax.scale_by_adam(eps=1e-7)  # Keras's epsilon: the paper used TensorFlow and Keras


def adam_step(net: Net, moments: Any, gradient: Net, rate: Any) -> tuple[Net, Any]:
    """One step of Adam (Kingma and Ba, 2015)."""
    change, moments = ADAM.update(gradient, moments)
    return jax.tree.map(lambda weight, step: weight - rate * step, net, change), moments


def generate(generator: Net, truth: Any, seed: Any) -> Any:
    """Scaled reports for scaled truths (n, 2) and seeds (n,)."""
    return forward(generator, jnp.concatenate([truth, seed[:, None]], axis=1))


def over_epochs(
    step: Callable, carry: Any, arrays: tuple, order: Any, extra: Any, *, batch: int, short: bool
) -> tuple[Any, Any]:
    """Run step(carry, batch, extra) over the batches of each epoch's order; with `short` over a
    last short one too, as Keras does.

    `order` is (epochs, rows), `extra` a tree of (epochs, steps, ...).  Returns the carry and the
    mean of the steps' notes over the last epoch.
    """
    count = arrays[0].shape[0]
    batch = min(batch, count)
    full = count // batch

    def epoch(carry: Any, item: Any) -> tuple[Any, Any]:
        order, extra = item
        rows = order[: full * batch].reshape(full, batch)
        many = jax.tree.map(lambda value: value[:full], extra)
        carry, notes = jax.lax.scan(
            lambda carry, one: step(carry, tuple(array[one[0]] for array in arrays), one[1]),
            carry,
            (rows, many),
        )
        if short and full * batch < count:
            last = order[full * batch :]
            rest = jax.tree.map(lambda value: value[full][..., : len(last)], extra)
            carry, _ = step(carry, tuple(array[last] for array in arrays), rest)
        return carry, jax.tree.map(lambda value: value.mean(axis=0), notes)

    carry, notes = jax.lax.scan(epoch, carry, (order, extra))
    return carry, jax.tree.map(lambda value: value[-1], notes)


def fit_classifier(
    classifier: Net,
    moments: Any,
    reports: Any,
    user: Any,
    order: Any,
    *,
    payoff: Payoff,
    rate: Any,
    batch: int,
    short: bool,
) -> tuple[Net, Any, Any]:
    """Raise the payoff (cross entropy's is -CE).  Returns the net, Adam's moments, and the accuracy
    over the last epoch."""

    def cost(net: Net, reports: Any, user: Any) -> tuple[Any, Any]:
        scores = forward(net, reports)
        right = (jnp.argmax(scores, axis=1) == user).mean()
        if isinstance(payoff, CrossEntropy):
            return optax.softmax_cross_entropy_with_integer_labels(scores, user).mean(), right
        return -payoff(jax.nn.one_hot(user, scores.shape[1]), jax.nn.log_softmax(scores)), right

    def step(carry: Any, items: tuple, _: Any) -> tuple[Any, Any]:
        net, moments = carry
        gradient, right = jax.grad(cost, has_aux=True)(net, *items)
        return adam_step(net, moments, gradient, rate), right

    (net, moments), accuracy = over_epochs(
        step, (classifier, moments), (reports, user), order, None, batch=batch, short=short
    )
    return net, moments, accuracy


def improve_generator(
    generator: Net,
    moments: Any,
    price: Any,
    *,
    against: Net,
    truth: Any,
    user: Any,
    order: Any,
    seeds: Any,
    smear: Any,
    snap: bool,
    frame: Frame,
    payoff: Payoff,
    budget: Budget,
    loss: Callable,
    max_loss: Any,
    rate: Any,
    thrift: Any,
    batch: int,
    short: bool,
) -> tuple[Net, Any, Any, Any]:
    """Train the generator through the frozen classifier on payoff and budget.

    Each truth of a batch is used with all its `seeds`; with `snap` its reports lie on the lattice.
    Returns the net, Adam's moments, the price of loss, and (payoff, loss) over the last epoch.
    """
    users = against[-1][1].shape[0]

    def cost(net: Net, price: Any, truth: Any, user: Any, chance: Any) -> tuple[Any, Any]:
        seed, smear = chance
        copies = seed.shape[0]
        truth = jnp.tile(truth, (copies, 1))
        report = generate(net, truth, seed.reshape(-1))
        report = frame.snap(report) if snap else report
        shown = report if smear is None else frame.show(report, smear.reshape(2, -1))
        targets = jax.nn.one_hot(jnp.tile(user, copies), users)
        leak = payoff(targets, jax.nn.log_softmax(forward(against, shown)))
        spent = smooth_loss(loss, frame.metres(truth), frame.metres(report)).mean()
        return budget.objective(payoff.descent(leak), spent / max_loss, price, thrift), (
            leak,
            spent,
        )

    def step(carry: Any, items: tuple, chance: Any) -> tuple[Any, Any]:
        net, moments, price = carry
        gradient, notes = jax.grad(cost, has_aux=True)(net, price, *items, chance)
        net, moments = adam_step(net, moments, gradient, rate)
        return (net, moments, budget.next_price(price, notes[1] / max_loss)), notes

    carry, notes = over_epochs(
        step,
        (generator, moments, price),
        (truth, user),
        order,
        (seeds, smear),
        batch=batch,
        short=short,
    )
    return *carry, notes


def smooth_loss(loss: Callable, truth: Any, report: Any) -> Any:
    """The loss, with gradient 0 where the report is the truth: a distance has a corner there, and
    its slope is NaN."""
    same = (truth == report).all(axis=-1)
    elsewhere = jnp.where(same[:, None], report + 1.0, report)
    return jnp.where(same, loss(truth, jax.lax.stop_gradient(report)), loss(truth, elsewhere))
