"""The compiled learning of a codebook: a fixed number of steps from one state to the next, no
Python per step."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from sfumato.nets import Net, compiled_quickly, mixing_dtypes

_CLIP = 1.0  # norm of a gradient
_PENALTY = 10.0  # of the augmented multipliers
_DUAL_RATE = 0.02
_FIRST, _LAST = 8.0, 250.0  # sharpness of the smoothed maximum, from first to last
_INFORMATION_UNTIL, _SHARP_BY = 0.15, 0.7  # shares of the learning
_PLACES_UNTIL = 0.5
_LIMIT_PENALTY = 3.0
_DISTILLATION = 1.0  # weight of the divergence from the teacher's law
_STRAY_PENALTY = 0.3
_STRAY_REACH = 2.0  # budgets from a check-in
_STRAY_LOSS = 2.0  # budgets: what a truth around the data may cost
_MEMORY = 0.9  # share of earlier steps in the table that a step of some rows is judged by
_LEAST = 1e-10  # below it a report counts as never sent: its posterior would have no finite slope
# a quarter turn in three parts, the first two exact when multiplied by a few thousand
_QUARTER = (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8)
_ADAM = mixing_dtypes(optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam()))


class Weights(NamedTuple):
    """What is learned; `places` in units of the frame, `slope` as a logarithm per unit."""

    net: Net
    places: Any
    slope: Any


class State(NamedTuple):
    """Weights, Adam's moments, the prices of the budgets."""

    weights: Weights
    moments: Any
    prices: Any


class TrainingData(NamedTuple):
    """The data as arrays.  `truths` (n, 2) in units; `table` P(secret, truth); `height` its sums
    along the truths of each secret, scaled to 1; `gaps`, how far check-ins lie from each other, in
    units; for each budget what it charges truths and users for a unit of loss, and its limit; `cap`
    (infinite where there is none); `gains` (actions, secrets), the identity for the Bayes error;
    `unit_m`, a unit in metres; `reach`, the budget as a distance in units; `teacher_law` P(place |
    truth), to be imitated, or None."""

    truths: Any
    table: Any
    height: Any
    gaps: Any
    charges: Any
    user_charges: Any
    limits: Any
    cap: Any
    gains: Any
    waves: Any
    unit_m: Any
    reach: Any
    teacher_law: Any = None


def padded(data: TrainingData, truths: int) -> TrainingData:
    """The data with truths of no weight at the end: arrays of one shape are compiled once.  In
    NumPy, as every shape that JAX pads is compiled."""
    more = truths - len(data.truths)
    columns = ((0, 0), (0, more))
    return data._replace(
        truths=np.concatenate([data.truths, np.repeat(data.truths[-1:], more, axis=0)]),
        table=np.pad(data.table, columns),
        height=np.pad(data.height, columns, constant_values=1.0),
        charges=np.pad(data.charges, columns),
    )


class StaticConfig(NamedTuple):
    """What is fixed for the compiler."""

    loss: Callable | None  # None is the distance
    unit_m: float | None  # None: each fold has its own, in its data
    information: bool
    resampled: float
    blend: float
    redraws: int
    per_user: int
    rows: int
    rate: float
    max_posterior: float | None
    max_exposed: float | None
    geo_epsilon: float | None
    linked: int | None = None  # reports seen together; 0 for endless ones; None for one
    strays: int = 0  # truths around the data whose expected loss is watched in a step
    remembered: float | None = None  # share of the moved check-ins judged by the memory; None: none


class Memory(NamedTuple):
    """P(secret, report) of the data and of moved check-ins, as running means over the last steps,
    and the number of steps.

    A step that looks at some rows sees few check-ins of each user, which share fewer reports than
    all of them do: a net that is judged by one step's table alone learns to hide such small
    samples."""

    known: Any
    moved: Any
    steps: Any


def first_state(net: Net, places: Any, slope: float, budgets: int) -> State:
    """A start: moments at 0, prices at a half.  In NumPy, as JAX compiles every shape."""
    weights = Weights(net, np.asarray(places, np.float32), np.log(np.float32(slope)))
    moments = jax.tree.map(
        lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(_ADAM.init, weights)
    )
    return State(weights, moments, np.full(budgets, 0.5, np.float32))


def features(
    truths: Annotated[Any, "truths 2"], waves: Annotated[Any, "2 waves"]
) -> Annotated[Any, "truths inputs"]:
    """What the net sees of truths: where they are, and the sines and cosines of its waves there."""
    return jnp.concatenate([truths, *sine_and_cosine(truths @ waves)], axis=1)


def sine_and_cosine(angle: Any) -> tuple[Any, Any]:
    """Both to the last digit of float32, for angles up to some thousands.

    Cephes' polynomials (Moshier 1989) on the rest of a quarter turn: XLA calls the C library for
    one number at a time, which took a fifth of a step.
    """
    quarters = jnp.round(angle * (2 / np.pi))
    rest = angle
    for part in _QUARTER:
        rest = rest - quarters * part
    square = rest * rest
    sine = ((-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1) * square
    sine = sine * rest + rest
    cosine = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    cosine = cosine * square * square - 0.5 * square + 1.0
    turn = quarters.astype(jnp.int32)
    odd = turn & 1 == 1
    sine, cosine = jnp.where(odd, cosine, sine), jnp.where(odd, sine, cosine)
    return (
        jnp.where(turn & 2 == 2, -sine, sine),
        jnp.where((turn + 1) & 2 == 2, -cosine, cosine),
    )


def net_outputs(
    weights: Weights,
    inputs: Annotated[Any, "truths inputs"],
    truths: Annotated[Any, "truths 2"],
    cap: Any,
) -> tuple[Annotated[Any, "truths places"], Annotated[Any, "truths places"]]:
    """log P(place | truth) but for a constant of each truth, and the distances, in units."""
    east, north = (truths[:, None, axis] - weights.places[None, :, axis] for axis in (0, 1))
    distance = jnp.sqrt(east**2 + north**2 + 1e-12)
    near = weights.net(inputs) - jnp.exp(weights.slope) * distance
    return near - 1e3 * jnp.maximum(distance / cap - 1, 0.0), distance


def leakage(
    table: Annotated[Any, "secrets reports"],
    gains: Annotated[Any, "actions secrets"],
    sharpness: Any,
    information: Any,
) -> Annotated[Any, ""]:
    """A share of I(X;Z) in nats, the rest the smoothed g-vulnerability, of P(secret, report)."""
    column = jnp.maximum(table.sum(axis=0), _LEAST)
    posterior = table / column[None, :]
    prior = table.sum(axis=1, keepdims=True) + _LEAST
    bits = (table * (jnp.log(posterior + _LEAST) - jnp.log(prior))).sum()
    worth = jax.scipy.special.logsumexp(sharpness * (gains @ posterior), axis=0) / sharpness
    return information * bits + (1 - information) * (column * worth).sum()


def linked_leakage(
    table: Annotated[Any, "secrets reports"], count: int, sharpness: Any
) -> Annotated[Any, ""]:
    """What linked reports tell, by the overlaps of users: of n reports -log(sum over pairs of
    sqrt(pp') rho^n) / n, of endless ones (`count` 0) the smoothed largest 1 - rho."""
    prior = table.sum(axis=1)
    # a user without check-ins in a draw weighs nothing
    roots = jnp.sqrt(table / jnp.maximum(prior, _LEAST)[:, None] + _LEAST)
    first, second = jnp.triu_indices(table.shape[0], 1)
    alike = (roots @ roots.T)[first, second]
    present = (prior[first] > 0) & (prior[second] > 0)
    some = present.any()  # else one user alone is in the draw, and nothing is told
    # a root of 0 or a sum of none would have no finite slope, even where it is not chosen
    if not count:
        apart = jnp.where(present | ~some, sharpness * (1 - alike), -jnp.inf)
        return jnp.where(some, jax.scipy.special.logsumexp(apart) / sharpness, 0.0)
    roots_of_priors = jnp.sqrt(jnp.where(present, prior[first] * prior[second], 1.0))
    weights = jnp.where(present | ~some, roots_of_priors, 0.0)
    terms = jnp.log(alike) * count
    leaked = -jax.scipy.special.logsumexp(terms, b=weights / weights.sum()) / count
    return jnp.where(some, leaked, 0.0)


def _leaked(
    table: Any, data: TrainingData, smoothing: tuple[Any, Any], config: StaticConfig
) -> Any:
    """The leakage that is lowered, of P(secret, report)."""
    if config.linked is None:
        return leakage(table, data.gains, *smoothing)
    return linked_leakage(table, config.linked, smoothing[0])


def learn(
    state: State,
    data: TrainingData,
    key: Any,
    first: Any,
    share: tuple[Any, Any],
    *,
    config: StaticConfig,
    steps: int,
) -> tuple[State, dict]:
    """Take `steps` steps; `share` of the learning (or of the distillation) is done before and after
    them.  `first` numbers the first step."""
    draws = _draw(data, key, first, config=config, steps=steps)
    return _learn(state, data, draws, share, config=config)


def learn_folds(
    states: State,
    data: TrainingData,
    key: Any,
    first: Any,
    share: tuple[Any, Any],
    *,
    config: StaticConfig,
    steps: int,
) -> State:
    """The same steps for several nets at once; every array has the fold as its first axis."""
    draws = _draw_folds(data, key, first, config=config, steps=steps)
    return _learn_folds(states, data, draws, share, config=config)


@partial(jax.jit, static_argnames=("config",))
def _learn(
    state: State, data: TrainingData, draws: dict, share: tuple[Any, Any], *, config: StaticConfig
) -> tuple[State, dict]:
    """One step for each draw."""
    distilling = data.teacher_law is not None
    inputs = features(data.truths, data.waves)
    steps = len(draws["number"])
    # one array of all weights: Adam is then compiled once, not for each layer
    flat, whole = ravel_pytree(state.weights)
    clip, adam = state.moments
    adam = adam._replace(mu=ravel_pytree(adam.mu)[0], nu=ravel_pytree(adam.nu)[0])
    layers, places, slope = (ravel_pytree(part)[0].size for part in state.weights)
    is_place = np.repeat([False, True, False], [layers, places, slope])
    memory = None
    if config.remembered is not None:
        empty = jnp.zeros((len(data.table), len(state.weights.places)))
        memory = Memory(empty, empty, jnp.float32(0.0))

    def step(state: tuple[Any, ...], draw: dict) -> tuple[tuple[Any, ...], dict]:
        weights, moments, prices, memory = state
        done = share[0] + (share[1] - share[0]) * draw["number"] / steps
        rise = 1.0 if distilling else jnp.clip(done / _SHARP_BY, 0.0, 1.0)
        sharpness = jnp.exp(jnp.log(_FIRST) + (jnp.log(_LAST) - jnp.log(_FIRST)) * rise)
        early = 0.0 if distilling else jnp.clip(1 - done / _INFORMATION_UNTIL, 0.0, 1.0)
        information = 1.0 if config.information else early * (1 - config.blend) + config.blend
        batch = _batch(data, inputs, draw)
        (_, notes), gradient = jax.value_and_grad(_cost, has_aux=True)(
            whole(weights), prices, data, batch, (sharpness, information), config, memory
        )
        memory = notes.pop("memory")
        change, moments = _ADAM.update(ravel_pytree(gradient)[0], moments)
        rate = rate_at(done, config.rate)
        moves = (done < _PLACES_UNTIL) & (not distilling)
        weights -= rate * jnp.where(is_place & ~moves, 0.0, change)
        prices = next_prices(prices, notes["over"])
        return (weights, moments, prices, memory), notes

    end, notes = jax.lax.scan(step, (flat, (clip, adam), state.prices, memory), draws)
    flat, (clip, adam), prices, _ = end
    moments = clip, adam._replace(mu=whole(adam.mu), nu=whole(adam.nu))
    last = jax.tree.map(lambda value: value[-1], notes)
    return State(whole(flat), moments, prices), last


@partial(jax.jit, static_argnames=("config",))
def _learn_folds(
    states: State, data: TrainingData, draws: dict, share: tuple[Any, Any], *, config: StaticConfig
) -> State:
    def learned(fold: tuple[State, TrainingData, dict]) -> State:
        return _learn(*fold, share, config=config)[0]

    return jax.lax.map(learned, (states, data, draws))


def _draws(
    data: TrainingData, key: Any, first: Any, *, config: StaticConfig, steps: int
) -> dict[str, Any]:
    """What chance decides in each step, all steps at once: a fair draw of rows where a step does
    not look at all of them, the data drawn anew, truths around it.  A program of its own: a random
    number takes little time to draw and much to optimise the code for."""
    mass = data.table.sum(axis=0)

    def in_step(number: Any) -> dict:
        key_of_step = jax.random.fold_in(key, first + number)
        rows_key, pick_key, far_key, way_key, other_key = jax.random.split(key_of_step, 5)
        draw = {"number": jnp.float32(number)}
        if config.rows < len(mass):
            draw["rows"] = jax.random.choice(rows_key, len(mass), (config.rows,), p=mass)
        if config.geo_epsilon is not None:
            draw["other"] = jax.random.permutation(other_key, min(config.rows, len(mass)))
        if config.resampled > 0:
            draw["moved"] = _moved(data, (pick_key, far_key, way_key), config)
        if config.strays:
            draw["strays"] = _around(data, jax.random.fold_in(key_of_step, 1), config.strays)
        return draw

    return jax.vmap(in_step)(jnp.arange(steps))


def _draws_folds(
    data: TrainingData, key: Any, first: Any, *, config: StaticConfig, steps: int
) -> dict[str, Any]:
    def of_fold(fold: TrainingData) -> dict[str, Any]:
        return _draws(fold, key, first, config=config, steps=steps)

    return jax.vmap(of_fold)(data)


_draw, _draw_folds = (
    compiled_quickly(draws, static_argnames=("config", "steps")) for draws in (_draws, _draws_folds)
)


def _moved(data: TrainingData, keys: tuple[Any, Any, Any], config: StaticConfig) -> Any:
    """Some check-ins of each user, moved."""
    users, count = data.table.shape
    pick_key, far_key, way_key = keys
    shape = (users, config.redraws * config.per_user)
    picked = jax.vmap(jnp.searchsorted)(data.height, jax.random.uniform(pick_key, shape))
    far = data.gaps[jax.random.randint(far_key, shape, 0, len(data.gaps))]
    shift = way(far, jax.random.uniform(way_key, shape))
    return (data.truths[jnp.minimum(picked, count - 1)] + shift).reshape(-1, 2)


def _around(data: TrainingData, key: Any, count: int) -> Annotated[Any, "strays 2"]:
    """Truths up to two budgets from check-ins, in any direction."""
    pick_key, far_key, way_key = jax.random.split(key, 3)
    mass = data.table.sum(axis=0)
    near = data.truths[jax.random.choice(pick_key, len(mass), (count,), p=mass)]
    far = _STRAY_REACH * data.reach * jax.random.uniform(far_key, (count,))
    return near + way(far, jax.random.uniform(way_key, (count,)))


def way(far: Any, turn: Any) -> Any:
    """Steps of the given lengths, in directions given as parts of a turn."""
    angle = 2 * jnp.pi * turn
    return jnp.stack([far * jnp.cos(angle), far * jnp.sin(angle)], axis=-1)


class Batch(NamedTuple):
    """What a step looks at.  `truths` of the data, then the moved check-ins, then the strays, all
    at once, with their `inputs`; the rest is of the first part alone."""

    truths: Any
    inputs: Any
    table: Any
    charges: Any
    teacher_law: Any
    other: Any


def _batch(data: TrainingData, inputs: Any, draw: dict) -> Batch:
    new = [draw[name] for name in ("moved", "strays") if name in draw]
    truths, table, charges, teacher = data.truths, data.table, data.charges, data.teacher_law
    if "rows" in draw:
        rows = draw["rows"]
        weight = 1 / (table.sum(axis=0)[rows] * len(rows))
        truths, inputs = truths[rows], inputs[rows]
        table, charges = table[:, rows] * weight, charges[:, rows] * weight
        teacher = None if teacher is None else teacher[rows]
    if new:
        drawn = jnp.concatenate(new)
        truths = jnp.concatenate([truths, drawn])
        inputs = jnp.concatenate([inputs, features(drawn, data.waves)])
    return Batch(truths, inputs, table, charges, teacher, draw.get("other"))


def _cost(
    weights: Weights,
    prices: Any,
    data: TrainingData,
    batch: Batch,
    smoothing: tuple[Any, Any],
    config: StaticConfig,
    memory: Memory | None,
) -> tuple[Any, dict]:
    unit_m = data.unit_m if config.unit_m is None else config.unit_m
    outputs, distance = net_outputs(weights, batch.inputs, batch.truths, data.cap)
    chances = jax.nn.softmax(outputs)
    loss = distance * unit_m
    if config.loss is not None:
        loss = config.loss(batch.truths[:, None, :] * unit_m, weights.places[None, :, :] * unit_m)
    spent_at = (chances * loss).sum(axis=1)
    known = batch.table.shape[1]
    joint = batch.table @ chances[:known]
    whole = joint
    if memory is not None:
        whole, mean = recalled(joint, memory.known, memory.steps)
        memory = memory._replace(known=mean)
    leaked = _leaked(whole, data, smoothing, config)
    spent = batch.charges @ spent_at[:known]
    strays = len(chances) - config.strays
    if config.resampled > 0:
        again = _redrawn(chances[known:strays], data, smoothing, config)
        if memory is not None:
            prior = data.table.sum(axis=1)
            by_user = chances[known:strays].reshape(len(prior), -1, chances.shape[1])
            moved = by_user.mean(axis=1) * prior[:, None]
            whole, mean = recalled(moved, memory.moved, memory.steps)
            memory = memory._replace(moved=mean)
            many = _leaked(whole, data, smoothing, config)
            again += config.remembered * (many - again)
        leaked = (1 - config.resampled) * leaked + config.resampled * again
        by_user = spent_at[known:strays].reshape(len(data.table), -1).mean(axis=1)
        spent_again = data.user_charges @ by_user
        spent = (1 - config.resampled) * spent + config.resampled * spent_again
    over = spent / data.limits - 1
    cost = leaked + penalty(prices, over).sum()
    cost += _LIMIT_PENALTY * _beyond_limits(joint, outputs, batch, unit_m, config)
    if config.strays:
        cost += _STRAY_PENALTY * astray(chances[strays:], distance[strays:], data)
    if batch.teacher_law is not None:
        logs = jax.nn.log_softmax(outputs[:known])
        cost += _DISTILLATION * divergence(batch.teacher_law, logs, batch.table.sum(axis=0))
    if memory is not None:
        memory = memory._replace(steps=memory.steps + 1)
    return cost, {"payoff": leaked, "over": over, "memory": memory}


def rate_at(done: Any, rate: float) -> Any:
    """The rate of Adam when a share of the learning is done."""
    return rate * (0.02 + 0.98 * 0.5 * (1 + jnp.cos(jnp.pi * done)))


def penalty(prices: Any, over: Any) -> Any:
    """What budgets add to the cost, by how many of themselves they are exceeded (an augmented
    Lagrangian)."""
    pressed = prices + _PENALTY * over > 0
    return jnp.where(pressed, prices * over + _PENALTY / 2 * over**2, -(prices**2) / (2 * _PENALTY))


def next_prices(prices: Any, over: Any) -> Any:
    """The prices after a step."""
    return jnp.maximum(prices + _DUAL_RATE * _PENALTY * over, 0.0)


def recalled(table: Any, mean: Any, steps: Any) -> tuple[Any, Any]:
    """The table of the last steps, with the slope of this step's, and the running mean."""
    now = jax.lax.stop_gradient(table)
    mean = _MEMORY * mean + (1 - _MEMORY) * now
    return table - now + mean / (1 - _MEMORY ** (steps + 1)), mean


def astray(chances: Any, distance: Any, data: TrainingData) -> Any:
    """By how many budgets truths around the data cost more than they may, on average."""
    cost = (chances * distance).sum(axis=1) / data.reach
    return jnp.maximum(cost - _STRAY_LOSS, 0.0).mean()


def divergence(teacher: Any, logs: Any, weight: Any) -> Any:
    """Kullback and Leibler's, of the law from the teacher's."""
    ratio = jnp.log(jnp.maximum(teacher, 1e-30)) - jnp.maximum(logs, -60.0)
    return weight @ (teacher * ratio).sum(axis=1)


def _redrawn(
    chances: Any, data: TrainingData, smoothing: tuple[Any, Any], config: StaticConfig
) -> Any:
    """Leakage on the data drawn anew, averaged over the redraws."""
    users, places = data.table.shape[0], chances.shape[1]
    prior = data.table.sum(axis=1)
    by_draw = chances.reshape(users, config.redraws, config.per_user, places).mean(axis=2)
    tables = jnp.moveaxis(by_draw * prior[:, None, None], 1, 0)
    return jax.vmap(lambda table: _leaked(table, data, smoothing, config))(tables).mean()


def _beyond_limits(
    joint: Any, outputs: Any, batch: Batch, unit_m: Any, config: StaticConfig
) -> Any:
    """How far the worst-case limits are exceeded, as a smooth penalty; 0 where none is set."""
    beyond = jnp.float32(0.0)
    column = jnp.maximum(joint.sum(axis=0), _LEAST)
    highest = (joint / column[None, :]).max(axis=0)
    if config.max_posterior is not None:
        beyond += (column * jnp.maximum(highest - 0.97 * config.max_posterior, 0.0)).sum()
    if config.max_exposed is not None:
        beyond += jnp.maximum(
            (column * jax.nn.sigmoid((highest - 0.88) * 50)).sum() - 0.9 * config.max_exposed, 0.0
        )
    if config.geo_epsilon is not None:
        known, other = len(batch.other), batch.other
        truths, logs = batch.truths[:known], jax.nn.log_softmax(outputs[:known])
        apart = jnp.sqrt(((truths - truths[other]) ** 2).sum(axis=1) + 1e-9) * unit_m
        ratio = jnp.abs(logs - logs[other]).max(axis=1) / apart
        beyond += (jnp.maximum(ratio / config.geo_epsilon - 0.95, 0.0) ** 2).mean()
    return beyond
