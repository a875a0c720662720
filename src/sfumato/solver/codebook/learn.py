"""The compiled learning of a codebook: a fixed number of steps from one state to the next, no
Python per step."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from sfumato.nets import Net, forward

_CLIP = 1.0  # norm of a gradient
_PENALTY = 10.0  # of the augmented multipliers
_DUAL_RATE = 0.02
_FIRST, _LAST = 8.0, 250.0  # sharpness of the smoothed maximum, from first to last
_INFORMATION_UNTIL, _SHARP_BY = 0.15, 0.7  # shares of the learning
_PLACES_UNTIL = 0.5
_LIMIT_PENALTY = 3.0
_LESSON = 1.0  # weight of the divergence from the lesson
_LEAST = 1e-10  # below it a report counts as never sent: its posterior would have no finite slope
_ADAM = optax.chain(optax.clip_by_global_norm(_CLIP), optax.scale_by_adam())


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


class Scene(NamedTuple):
    """The data as arrays.  `truths` (n, 2) in units; `table` P(secret, truth); `height` its sums
    along the truths of each secret, scaled to 1; `gaps`, how far check-ins lie from each other, in
    units; for each budget what it charges truths and users for a unit of loss, and its limit; `cap`
    (infinite where there is none); `gains` (actions, secrets), the identity for the Bayes error;
    `lesson` P(place | truth), the law to be taught, or None."""

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
    lesson: Any = None


class Plan(NamedTuple):
    """What is fixed for the compiler."""

    loss: Callable | None  # None is the distance
    unit_m: float
    information: bool
    doubt: float
    blend: float
    redraws: int
    per_user: int
    rows: int
    rate: float
    max_posterior: float | None
    max_exposed: float | None
    geo_epsilon: float | None


def first_state(net: Net, places: Any, slope: float, budgets: int) -> State:
    """A start: moments at 0, prices at a half."""
    weights = Weights(net, jnp.asarray(places, jnp.float32), jnp.log(jnp.float32(slope)))
    return State(weights, _ADAM.init(weights), jnp.full(budgets, 0.5, jnp.float32))


def log_chances(weights: Weights, waves: Any, truths: Any, cap: Any) -> tuple[Any, Any]:
    """log P(place | truth) and the distances, in units."""
    angle = truths @ waves
    inputs = jnp.concatenate([truths, jnp.sin(angle), jnp.cos(angle)], axis=1)
    distance = jnp.sqrt(
        ((truths[:, None, :] - weights.places[None, :, :]) ** 2).sum(axis=-1) + 1e-12
    )
    scores = forward(weights.net, inputs) - jnp.exp(weights.slope) * distance
    return jax.nn.log_softmax(scores - 1e3 * jnp.maximum(distance / cap - 1, 0.0)), distance


def leakage(table: Any, gains: Any, sharpness: Any, information: Any) -> Any:
    """A share of I(X;Z) in nats, the rest the smoothed g-vulnerability, of P(secret, report)."""
    column = jnp.maximum(table.sum(axis=0), _LEAST)
    posterior = table / column
    prior = table.sum(axis=1, keepdims=True) + _LEAST
    bits = (table * (jnp.log(posterior + _LEAST) - jnp.log(prior))).sum()
    worth = jax.scipy.special.logsumexp(sharpness * (gains @ posterior), axis=0) / sharpness
    return information * bits + (1 - information) * (column * worth).sum()


@partial(jax.jit, static_argnames=("plan", "steps"))
def learn(
    state: State,
    scene: Scene,
    key: Any,
    first: Any,
    share: tuple[Any, Any],
    *,
    plan: Plan,
    steps: int,
) -> tuple[State, dict]:
    """So many steps; `share` of the learning (or of the lesson) is done before and after them.
    `first` numbers the first step."""
    taught = scene.lesson is not None

    def step(state: State, number: Any) -> tuple[State, dict]:
        done = share[0] + (share[1] - share[0]) * (number - first) / steps
        rise = 1.0 if taught else jnp.clip(done / _SHARP_BY, 0.0, 1.0)
        sharpness = jnp.exp(jnp.log(_FIRST) + (jnp.log(_LAST) - jnp.log(_FIRST)) * rise)
        early = 0.0 if taught else jnp.clip(1 - done / _INFORMATION_UNTIL, 0.0, 1.0)
        information = 1.0 if plan.information else early * (1 - plan.blend) + plan.blend
        draw = _drawn(scene, jax.random.fold_in(key, number), plan)
        (_, notes), gradient = jax.value_and_grad(_cost, has_aux=True)(
            state.weights, state.prices, scene, draw, (sharpness, information), plan
        )
        change, moments = _ADAM.update(gradient, state.moments)
        rate = plan.rate * (0.02 + 0.98 * 0.5 * (1 + jnp.cos(jnp.pi * done)))
        change = change._replace(
            places=jnp.where((done < _PLACES_UNTIL) & (not taught), change.places, 0.0)
        )
        weights = jax.tree.map(lambda weight, move: weight - rate * move, state.weights, change)
        prices = jnp.maximum(state.prices + _DUAL_RATE * _PENALTY * notes["over"], 0.0)
        return State(weights, moments, prices), notes

    state, notes = jax.lax.scan(step, state, first + jnp.arange(steps))
    return state, jax.tree.map(lambda value: value[-1], notes)


def _drawn(scene: Scene, key: Any, plan: Plan) -> dict:
    """Rows of the data (all, or a fair draw), and the data drawn anew: some check-ins of each user,
    moved."""
    rows_key, pick_key, far_key, way_key, other_key = jax.random.split(key, 5)
    users, count = scene.table.shape
    if plan.rows < count:
        mass = scene.table.sum(axis=0)
        rows = jax.random.choice(rows_key, count, (plan.rows,), p=mass)
        weight = 1 / (mass[rows] * plan.rows)
    else:
        rows, weight = jnp.arange(count), jnp.ones(count)
    shape = (users, plan.redraws * plan.per_user)
    picked = jax.vmap(jnp.searchsorted)(scene.height, jax.random.uniform(pick_key, shape))
    far = scene.gaps[jax.random.randint(far_key, shape, 0, len(scene.gaps))]
    way = 2 * jnp.pi * jax.random.uniform(way_key, shape)
    moved = scene.truths[jnp.minimum(picked, count - 1)] + jnp.stack(
        [far * jnp.cos(way), far * jnp.sin(way)], axis=-1
    )
    return {
        "rows": rows,
        "weight": weight,
        "moved": moved,
        "other": jax.random.permutation(other_key, len(rows)),
    }


def _cost(
    weights: Weights, prices: Any, scene: Scene, draw: dict, how: tuple[Any, Any], plan: Plan
) -> tuple[Any, dict]:
    sharpness, information = how
    truths, table, charges = (
        array[draw["rows"]] for array in (scene.truths, scene.table.T, scene.charges.T)
    )
    table, charges = table.T * draw["weight"], charges.T * draw["weight"]
    logs, distance = log_chances(weights, scene.waves, truths, scene.cap)
    chances = jnp.exp(logs)
    told = table @ chances
    leaked = leakage(told, scene.gains, sharpness, information)
    spent = charges @ (chances * _loss(plan, truths, weights.places, distance)).sum(axis=1)
    if plan.doubt > 0:
        again, spent_again = _redrawn(weights, scene, draw["moved"], how, plan)
        leaked = (1 - plan.doubt) * leaked + plan.doubt * again
        spent = (1 - plan.doubt) * spent + plan.doubt * spent_again
    over = spent / scene.limits - 1
    pressed = prices + _PENALTY * over > 0
    held = jnp.where(
        pressed, prices * over + _PENALTY / 2 * over**2, -(prices**2) / (2 * _PENALTY)
    ).sum()
    cost = leaked + held + _LIMIT_PENALTY * _beyond_limits(told, logs, truths, draw["other"], plan)
    if scene.lesson is not None:
        cost += _LESSON * _divergence(scene.lesson[draw["rows"]], logs, table.sum(axis=0))
    return cost, {"payoff": leaked, "over": over}


def _divergence(lesson: Any, logs: Any, weight: Any) -> Any:
    """Kullback and Leibler's, of the law from the lesson."""
    told = jnp.log(jnp.maximum(lesson, 1e-30)) - jnp.maximum(logs, -60.0)
    return weight @ (lesson * told).sum(axis=1)


def _redrawn(
    weights: Weights, scene: Scene, moved: Any, how: tuple[Any, Any], plan: Plan
) -> tuple[Any, Any]:
    """Leakage and spending on the data drawn anew, averaged over the redraws."""
    users = scene.table.shape[0]
    places = len(weights.places)
    moved = moved.reshape(-1, 2)
    logs, distance = log_chances(weights, scene.waves, moved, scene.cap)
    chances = jnp.exp(logs)
    prior = scene.table.sum(axis=1)
    by_draw = chances.reshape(users, plan.redraws, plan.per_user, places).mean(axis=2)
    tables = jnp.moveaxis(by_draw * prior[:, None, None], 1, 0)
    leaked = jax.vmap(lambda table: leakage(table, scene.gains, how[0], how[1]))(tables).mean()
    cost = (
        (chances * _loss(plan, moved, weights.places, distance))
        .sum(axis=1)
        .reshape(users, -1)
        .mean(axis=1)
    )
    return leaked, scene.user_charges @ cost


def _loss(plan: Plan, truths: Any, places: Any, distance: Any) -> Any:
    if plan.loss is None:
        return distance * plan.unit_m
    return plan.loss(truths[:, None, :] * plan.unit_m, places[None, :, :] * plan.unit_m)


def _beyond_limits(told: Any, logs: Any, truths: Any, other: Any, plan: Plan) -> Any:
    """How far the worst-case limits are exceeded, as a smooth penalty; 0 where none is set."""
    beyond = jnp.float32(0.0)
    column = jnp.maximum(told.sum(axis=0), _LEAST)
    highest = (told / column).max(axis=0)
    if plan.max_posterior is not None:
        beyond += (column * jnp.maximum(highest - 0.97 * plan.max_posterior, 0.0)).sum()
    if plan.max_exposed is not None:
        beyond += jnp.maximum(
            (column * jax.nn.sigmoid((highest - 0.88) * 50)).sum() - 0.9 * plan.max_exposed, 0.0
        )
    if plan.geo_epsilon is not None:
        apart = jnp.sqrt(((truths - truths[other]) ** 2).sum(axis=1) + 1e-9) * plan.unit_m
        ratio = jnp.abs(logs - logs[other]).max(axis=1) / apart
        beyond += (jnp.maximum(ratio / plan.geo_epsilon - 0.95, 0.0) ** 2).mean()
    return beyond
