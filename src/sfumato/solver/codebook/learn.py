"""The compiled learning of a codebook: a fixed number of steps from one state to the next, no
Python per step."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sfumato.nets import Net, mixing_dtypes

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
_LEAST = 1e-10  # below it a report counts as never sent: its posterior would have no finite slope
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


def first_state(net: Net, places: Any, slope: float, budgets: int) -> State:
    """A start: moments at 0, prices at a half."""
    weights = Weights(net, jnp.asarray(places, jnp.float32), jnp.log(jnp.float32(slope)))
    return State(weights, _ADAM.init(weights), jnp.full(budgets, 0.5, jnp.float32))


def log_chances(
    weights: Weights,
    waves: Annotated[Any, "2 waves"],
    truths: Annotated[Any, "truths 2"],
    cap: Any,
) -> tuple[Annotated[Any, "truths places"], Annotated[Any, "truths places"]]:
    """log P(place | truth) and the distances, in units."""
    angle = truths @ waves
    inputs = jnp.concatenate([truths, jnp.sin(angle), jnp.cos(angle)], axis=1)
    distance = jnp.sqrt(
        ((truths[:, None, :] - weights.places[None, :, :]) ** 2).sum(axis=-1) + 1e-12
    )
    scores = weights.net(inputs) - jnp.exp(weights.slope) * distance
    return jax.nn.log_softmax(scores - 1e3 * jnp.maximum(distance / cap - 1, 0.0)), distance


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
    if not count:
        apart = jnp.where(present, sharpness * (1 - alike), -jnp.inf)
        return jax.scipy.special.logsumexp(apart) / sharpness
    weights = jnp.where(present, jnp.sqrt(prior[first] * prior[second]), 0.0)
    terms = jnp.log(alike) * count
    return -jax.scipy.special.logsumexp(terms, b=weights / weights.sum()) / count


def _leaked(
    table: Any, data: TrainingData, smoothing: tuple[Any, Any], config: StaticConfig
) -> Any:
    """The leakage that is lowered, of P(secret, report)."""
    if config.linked is None:
        return leakage(table, data.gains, *smoothing)
    return linked_leakage(table, config.linked, smoothing[0])


@partial(jax.jit, static_argnames=("config", "steps"))
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
    distilling = data.teacher_law is not None

    def step(state: State, number: Any) -> tuple[State, dict]:
        done = share[0] + (share[1] - share[0]) * jnp.float32(number - first) / steps
        rise = 1.0 if distilling else jnp.clip(done / _SHARP_BY, 0.0, 1.0)
        sharpness = jnp.exp(jnp.log(_FIRST) + (jnp.log(_LAST) - jnp.log(_FIRST)) * rise)
        early = 0.0 if distilling else jnp.clip(1 - done / _INFORMATION_UNTIL, 0.0, 1.0)
        information = 1.0 if config.information else early * (1 - config.blend) + config.blend
        draw = _drawn(data, jax.random.fold_in(key, number), config)
        (_, notes), gradient = jax.value_and_grad(_cost, has_aux=True)(
            state.weights, state.prices, data, draw, (sharpness, information), config
        )
        change, moments = _ADAM.update(gradient, state.moments)
        rate = config.rate * (0.02 + 0.98 * 0.5 * (1 + jnp.cos(jnp.pi * done)))
        change = change._replace(
            places=jnp.where((done < _PLACES_UNTIL) & (not distilling), change.places, 0.0)
        )
        weights = jax.tree.map(lambda weight, move: weight - rate * move, state.weights, change)
        prices = jnp.maximum(state.prices + _DUAL_RATE * _PENALTY * notes["over"], 0.0)
        return State(weights, moments, prices), notes

    state, notes = jax.lax.scan(step, state, first + jnp.arange(steps))
    return state, jax.tree.map(lambda value: value[-1], notes)


@partial(jax.jit, static_argnames=("config", "steps"))
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

    def one(state: State, fold: TrainingData) -> State:
        return learn(state, fold, key, first, share, config=config, steps=steps)[0]

    return jax.vmap(one)(states, data)


def _drawn(data: TrainingData, key: Any, config: StaticConfig) -> dict:
    """Rows of the data (all, or a fair draw), and the data drawn anew: some check-ins of each user,
    moved."""
    rows_key, pick_key, far_key, way_key, other_key = jax.random.split(key, 5)
    users, count = data.table.shape
    if config.rows < count:
        mass = data.table.sum(axis=0)
        rows = jax.random.choice(rows_key, count, (config.rows,), p=mass)
        weight = 1 / (mass[rows] * config.rows)
    else:
        rows, weight = jnp.arange(count), jnp.ones(count)
    shape = (users, config.redraws * config.per_user)
    picked = jax.vmap(jnp.searchsorted)(data.height, jax.random.uniform(pick_key, shape))
    far = data.gaps[jax.random.randint(far_key, shape, 0, len(data.gaps))]
    moved = data.truths[jnp.minimum(picked, count - 1)] + _way(
        far, jax.random.uniform(way_key, shape)
    )
    return {
        "rows": rows,
        "weight": weight,
        "moved": moved,
        "other": jax.random.permutation(other_key, len(rows)),
        "strays": _around(data, jax.random.fold_in(key, 1), config.strays),
    }


def _around(data: TrainingData, key: Any, count: int) -> Annotated[Any, "strays 2"]:
    """Truths up to two budgets from check-ins, in any direction."""
    pick_key, far_key, way_key = jax.random.split(key, 3)
    mass = data.table.sum(axis=0)
    near = data.truths[jax.random.choice(pick_key, len(mass), (count,), p=mass)]
    far = _STRAY_REACH * data.reach * jax.random.uniform(far_key, (count,))
    return near + _way(far, jax.random.uniform(way_key, (count,)))


def _way(far: Any, turn: Any) -> Any:
    """Steps of the given lengths, in directions given as parts of a turn."""
    angle = 2 * jnp.pi * turn
    return jnp.stack([far * jnp.cos(angle), far * jnp.sin(angle)], axis=-1)


def _cost(
    weights: Weights,
    prices: Any,
    data: TrainingData,
    draw: dict,
    smoothing: tuple[Any, Any],
    config: StaticConfig,
) -> tuple[Any, dict]:
    unit_m = _unit(data, config)
    truths, table, charges = (
        array[draw["rows"]] for array in (data.truths, data.table.T, data.charges.T)
    )
    weight = draw["weight"][None, :]
    table, charges = table.T * weight, charges.T * weight
    logs, distance = log_chances(weights, data.waves, truths, data.cap)
    chances = jnp.exp(logs)
    joint = table @ chances
    leaked = _leaked(joint, data, smoothing, config)
    spent = charges @ (chances * _loss(config, unit_m, truths, weights.places, distance)).sum(
        axis=1
    )
    if config.resampled > 0:
        again, spent_again = _redrawn(weights, data, draw["moved"], smoothing, config)
        leaked = (1 - config.resampled) * leaked + config.resampled * again
        spent = (1 - config.resampled) * spent + config.resampled * spent_again
    over = spent / data.limits - 1
    pressed = prices + _PENALTY * over > 0
    held = jnp.where(
        pressed, prices * over + _PENALTY / 2 * over**2, -(prices**2) / (2 * _PENALTY)
    ).sum()
    cost = (
        leaked
        + held
        + _LIMIT_PENALTY * _beyond_limits(joint, logs, truths, draw["other"], unit_m, config)
    )
    if config.strays:
        cost += _STRAY_PENALTY * astray(weights, data, draw["strays"])
    if data.teacher_law is not None:
        cost += _DISTILLATION * divergence(data.teacher_law[draw["rows"]], logs, table.sum(axis=0))
    return cost, {"payoff": leaked, "over": over}


def astray(weights: Weights, data: TrainingData, strays: Any) -> Any:
    """By how many budgets truths around the data cost more than they may, on average."""
    logs, distance = log_chances(weights, data.waves, strays, data.cap)
    cost = (jnp.exp(logs) * distance).sum(axis=1) / data.reach
    return jnp.maximum(cost - _STRAY_LOSS, 0.0).mean()


def divergence(teacher: Any, logs: Any, weight: Any) -> Any:
    """Kullback and Leibler's, of the law from the teacher's."""
    ratio = jnp.log(jnp.maximum(teacher, 1e-30)) - jnp.maximum(logs, -60.0)
    return weight @ (teacher * ratio).sum(axis=1)


def _redrawn(
    weights: Weights,
    data: TrainingData,
    moved: Any,
    smoothing: tuple[Any, Any],
    config: StaticConfig,
) -> tuple[Any, Any]:
    """Leakage and spending on the data drawn anew, averaged over the redraws."""
    users = data.table.shape[0]
    places = len(weights.places)
    moved = moved.reshape(-1, 2)
    logs, distance = log_chances(weights, data.waves, moved, data.cap)
    chances = jnp.exp(logs)
    prior = data.table.sum(axis=1)
    by_draw = chances.reshape(users, config.redraws, config.per_user, places).mean(axis=2)
    tables = jnp.moveaxis(by_draw * prior[:, None, None], 1, 0)
    leaked = jax.vmap(lambda table: _leaked(table, data, smoothing, config))(tables).mean()
    cost = (
        (chances * _loss(config, _unit(data, config), moved, weights.places, distance))
        .sum(axis=1)
        .reshape(users, -1)
        .mean(axis=1)
    )
    return leaked, data.user_charges @ cost


def _unit(data: TrainingData, config: StaticConfig) -> Any:
    return data.unit_m if config.unit_m is None else config.unit_m


def _loss(config: StaticConfig, unit_m: Any, truths: Any, places: Any, distance: Any) -> Any:
    if config.loss is None:
        return distance * unit_m
    return config.loss(truths[:, None, :] * unit_m, places[None, :, :] * unit_m)


def _beyond_limits(
    joint: Any, logs: Any, truths: Any, other: Any, unit_m: Any, config: StaticConfig
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
        apart = jnp.sqrt(((truths - truths[other]) ** 2).sum(axis=1) + 1e-9) * unit_m
        ratio = jnp.abs(logs - logs[other]).max(axis=1) / apart
        beyond += (jnp.maximum(ratio / config.geo_epsilon - 0.95, 0.0) ** 2).mean()
    return beyond
