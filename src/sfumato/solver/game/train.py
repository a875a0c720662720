"""One round of Algorithm 1, compiled once: fit the classifier, improve the generator, turn by turn.

Every function is pure: arrays and random numbers in, arrays out, fixed shapes, no Python per step.
The classifier learns from reports that are drawn once while the generator stands still.

The random numbers of a round are drawn before it.  They come from NumPy, by (seed, lattice, round),
so that a resumed game draws what the undisturbed one would have drawn; and a program without a
random generator inside compiles several times faster.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sfumato.nets import Net, mixing_dtypes
from sfumato.solver.game.frame import Frame, Points
from sfumato.solver.game.payoff import CrossEntropy
from sfumato.solver.game.settings import ClassifierConfig, GameSettings, LaplaceStart

# Keras's epsilon: the paper used TensorFlow and Keras
ADAM = mixing_dtypes(optax.scale_by_adam(eps=1e-7))

_HELD_COPIES = 16  # reports of each validation truth for the classifier's accuracy

# Settings that a round does not depend on, made equal so that they do not compile it again.
_NOT_IN_A_ROUND: dict[str, Any] = {
    "rounds": 1,
    "lattices": (0.0,),
    "validation": 0.5,
    "start": LaplaceStart(),
    "calibrate": True,
    "best": True,
}


class Players(NamedTuple):
    """All that changes from round to round: both nets, Adam's moments, the price of loss."""

    generator: Net
    generator_moments: Any
    price: Any
    classifier: Net
    classifier_moments: Any


class TrainingData(NamedTuple):
    """What stays: scaled truths with their users for learning and for validation, the frame, the
    budget."""

    truth: Any
    user: Any
    held_truth: Any
    held_user: Any
    frame: Frame
    max_loss: Any


class Draws(NamedTuple):
    """What each turn of a round needs; the first axis is the turn.  The last two are None unless
    reports are shown smeared."""

    pool: Any  # seeds of the classifier's reports (turns, copies, truths)
    pool_order: Any  # how its epochs read them (turns, epochs, copies * truths)
    order: Any  # how an epoch of the generator reads the truths (turns, epochs, truths)
    seeds: Any  # seeds of its steps (turns, epochs, steps, seeds, batch)
    pool_smear: Any  # where in its cell such a report is shown (turns, 2, copies, truths)
    smear: Any  # the same for the generator's steps (turns, epochs, steps, 2, seeds, batch)


def play_round(
    game: GameSettings,
    loss: Callable,
    random: np.random.Generator,
    players: Players,
    base: Net,
    data: TrainingData,
    fade: float,
) -> tuple[Players, dict[str, Any]]:
    """`game.turns` turns; returns notes of the last.  `base` is the classifier of a fresh start."""
    draws = draws_of_round(game, random, count=len(data.user))
    held_seeds = stratified(random, (_HELD_COPIES, len(data.held_user)), axis=0)
    static = replace(game, **_NOT_IN_A_ROUND, generator=replace(game.generator, levels=1))
    return _round(static, loss, players, base, data, draws, held_seeds, np.float32(fade))


@partial(jax.jit, static_argnums=(0, 1))
def _round(
    game: GameSettings,
    loss: Callable,
    players: Players,
    base: Net,
    data: TrainingData,
    draws: Draws,
    held_seeds: Any,
    fade: Any,
) -> tuple[Players, dict[str, Any]]:
    def turn(players: Players, now: Draws) -> tuple[Players, Any]:
        reports = draw_reports(game, players.generator, data.truth, now.pool, data.frame)
        if now.pool_smear is not None:
            reports = data.frame.show(reports, now.pool_smear.reshape(2, -1))
        classifier, classifier_moments, accuracy = fit_classifier(
            game.classifier,
            *((base, ADAM.init(base)) if game.classifier.restart else players[3:]),
            reports,
            jnp.tile(data.user, now.pool.shape[0]),
            now.pool_order,
            short_batches=game.short_batches,
        )
        unseen = draw_reports(game, players.generator, data.held_truth, held_seeds, data.frame)
        guesses = jnp.argmax(classifier(unseen), axis=1)
        generator, generator_moments, price, (payoff, spent) = improve_generator(
            game, players, data, now, against=classifier, loss=loss, fade=fade
        )
        notes = {
            "payoff": payoff,
            "loss": spent,
            "accuracy_train": accuracy,
            "accuracy_validation": (guesses == jnp.tile(data.held_user, _HELD_COPIES)).mean(),
        }
        return Players(generator, generator_moments, price, classifier, classifier_moments), notes

    players, notes = jax.lax.scan(turn, players, draws)
    return players, {name: value[-1] for name, value in notes.items()}


def fit_classifier(
    config: ClassifierConfig,
    classifier: Net,
    moments: Any,
    reports: Annotated[Any, "reports 2"],
    user: Annotated[Any, "reports"],
    order: Annotated[Any, "epochs reports"],
    *,
    short_batches: bool,
) -> tuple[Net, Any, Any]:
    """Raise the payoff (cross entropy's is -CE).  Returns the net, Adam's moments, and the accuracy
    over the last epoch."""

    def cost(net: Net, reports: Any, user: Any) -> tuple[Any, Any]:
        scores = net(reports)
        right = (jnp.argmax(scores, axis=1) == user).mean()
        if isinstance(config.payoff, CrossEntropy):
            return optax.softmax_cross_entropy_with_integer_labels(scores, user).mean(), right
        targets = jax.nn.one_hot(user, scores.shape[1])
        return -config.payoff(targets, jax.nn.log_softmax(scores)), right

    def step(carry: Any, items: tuple, _: Any) -> tuple[Any, Any]:
        net, moments = carry
        gradient, right = jax.grad(cost, has_aux=True)(net, *items)
        return adam_step(net, moments, gradient, config.rate), right

    (net, moments), accuracy = over_epochs(
        step,
        (classifier, moments),
        (reports, user),
        order,
        None,
        batch=config.batch,
        short=short_batches,
    )
    return net, moments, accuracy


def improve_generator(
    game: GameSettings,
    players: Players,
    data: TrainingData,
    draws: Draws,
    *,
    against: Net,
    loss: Callable,
    fade: Any,
) -> tuple[Net, Any, Any, Any]:
    """Train the generator through the frozen classifier on payoff and budget.

    Each truth of a batch is used with all its seeds.  Returns the net, Adam's moments, the price of
    loss, and (payoff, loss) over the last epoch.
    """
    users, frame = against.layers[-1].bias.shape[0], data.frame

    def cost(net: Net, price: Any, truth: Any, user: Any, chance: Any) -> tuple[Any, Any]:
        seed, smear = chance
        copies = seed.shape[0]
        report = draw_reports(game, net, truth, seed, frame)
        shown = report if smear is None else frame.show(report, smear.reshape(2, -1))
        targets = jax.nn.one_hot(jnp.tile(user, copies), users)
        leak = game.payoff(targets, jax.nn.log_softmax(against(shown)))
        truth = jnp.tile(truth, (copies, 1))
        spent = smooth_loss(loss, frame.metres(truth), frame.metres(report)).mean()
        descent = game.payoff.descent(leak)
        return game.budget.objective(descent, spent / data.max_loss, price, fade), (leak, spent)

    def step(carry: Any, items: tuple, chance: Any) -> tuple[Any, Any]:
        net, moments, price = carry
        gradient, notes = jax.grad(cost, has_aux=True)(net, price, *items, chance)
        net, moments = adam_step(net, moments, gradient, game.generator.rate * fade)
        return (net, moments, game.budget.next_price(price, notes[1] / data.max_loss)), notes

    net, fresh = players.generator, game.generator.restart_adam
    moments = ADAM.init(net) if fresh else players.generator_moments
    carry, notes = over_epochs(
        step,
        (net, moments, players.price),
        (data.truth, data.user),
        draws.order,
        (draws.seeds, draws.smear),
        batch=game.generator.batch,
        short=game.short_batches,
    )
    return *carry, notes


def adam_step(net: Net, moments: Any, gradient: Net, rate: Any) -> tuple[Net, Any]:
    """One step of Adam (Kingma and Ba, 2015)."""
    change, moments = ADAM.update(gradient, moments)
    return jax.tree.map(lambda weight, step: weight - rate * step, net, change), moments


def generate(generator: Net, truth: Points, seed: Annotated[Any, "n"]) -> Points:
    """Scaled reports for scaled truths (n, 2) and seeds (n,)."""
    return generator(jnp.concatenate([truth, seed[:, None]], axis=1))


def draw_reports(
    game: GameSettings,
    generator: Net,
    truth: Annotated[Any, "truths 2"],
    seeds: Annotated[Any, "copies truths"],
    frame: Frame,
) -> Annotated[Any, "copies*truths 2"]:
    """Scaled reports of every truth, one for each row of seeds (copies, truths); on the lattice
    unless reports are shown exact."""
    reports = generate(generator, jnp.tile(truth, (seeds.shape[0], 1)), seeds.reshape(-1))
    return reports if game.shown == "exact" else frame.snap(reports)


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
            lambda carry, part: step(carry, tuple(array[part[0]] for array in arrays), part[1]),
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


def smooth_loss(loss: Callable, truth: Points, report: Points) -> Annotated[Any, "n"]:
    """The loss, with gradient 0 where the report is the truth: a distance has a corner there, and
    its slope is NaN."""
    same = (truth == report).all(axis=-1)
    elsewhere = jnp.where(same[:, None], report + 1.0, report)
    return jnp.where(same, loss(truth, jax.lax.stop_gradient(report)), loss(truth, elsewhere))


def draws_of_round(game: GameSettings, random: np.random.Generator, *, count: int) -> Draws:
    """Stratified seeds and permutations for `count` truths."""
    turns, generator = game.turns, game.generator
    copies = ceil(game.classifier.reports / count)
    batch = min(generator.batch, count)
    steps = ceil(count / batch)
    epochs = generator.epochs_of(steps)
    pool = stratified(random, (turns, copies, count), axis=1)
    pool_order = _orders(random, turns, game.classifier.epochs, copies * count)
    order = _orders(random, turns, epochs, count)
    seeds = stratified(random, (turns, epochs, steps, generator.seeds, batch), axis=3)
    if game.shown != "smeared":
        return Draws(pool, pool_order, order, seeds, None, None)
    pool_smear = random.random((turns, 2, copies, count), dtype=np.float32)
    shape = (turns, epochs, steps, 2, generator.seeds, batch)
    return Draws(pool, pool_order, order, seeds, pool_smear, random.random(shape, dtype=np.float32))


def stratified(random: np.random.Generator, shape: tuple[int, ...], *, axis: int) -> np.ndarray:
    """Numbers on [0, 1): along `axis`, one in each of as many equal parts."""
    parts = shape[axis]
    floor = np.arange(parts, dtype=np.float32).reshape(
        [-1 if place == axis else 1 for place in range(len(shape))]
    )
    return (floor + random.random(shape, dtype=np.float32)) / np.float32(parts)


def _orders(random: np.random.Generator, turns: int, epochs: int, count: int) -> np.ndarray:
    return random.permuted(
        np.broadcast_to(np.arange(count, dtype=np.int32), (turns, epochs, count)), axis=2
    )
