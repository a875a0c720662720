"""Learning a codebook where users are many.

For the Bayes error of one report the net imitates a law that a first-order method finds on its
places (`solver.exact.first_order`).  The places do not move: they are truths, or all reports of the
grid where these are few.

Otherwise it learns from minibatches of check-ins against an adversary whose scores are worked out
anew every few steps.  The leakage is a sum over reports of the best score that an adversary can
have there, and its slope in the law is that score, the adversary held fixed.  So a step needs the
scores of the users in its minibatch alone; the table P(user, report), users x places, is summed up
over all truths only now and then, a few thousand of them at a time.  Nothing of the size of users
times truths is ever made, and of truths times places only a part.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse, special
from scipy.spatial import cKDTree

from sfumato.data.distinct import unique_points
from sfumato.data.joint import Joint
from sfumato.data.samples import MANY_USERS, Samples
from sfumato.errors import ProblemError, arg
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.judge import judge
from sfumato.measure.objective import Bayes, Information
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.loss import traits_of
from sfumato.memory import give_back
from sfumato.solver.codebook.learn import (
    _ADAM,
    _INFORMATION_UNTIL,
    _PLACES_UNTIL,
    _SHARP_BY,
    State,
    divergence,
    features,
    net_outputs,
    next_prices,
    penalty,
    rate_at,
    way,
)
from sfumato.solver.codebook.settings import (
    BATCH,
    NEW,
    THESE,
    CodebookSettings,
    imitable,
    most_imitated,
)
from sfumato.solver.codebook.training import END, PARTS, CodebookTraining, check_finite, until
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact.first_order import Game, least_leaking
from sfumato.solver.learner import Clock, History, Round, Tell, silent
from sfumato.solver.outcome import Distillation, Ended
from sfumato.solver.problem import Problem

MANY = MANY_USERS  # from which on they are learned from in minibatches
EVERY = 25  # steps between two sums over all truths
_HELD_OUT = 8  # one check-in of this many is held out
_AT_ONCE = 2048  # truths
_SHARPNESS = 6.0, 60.0  # of the guesses, as shares of the largest posterior, from first to last
_MOST_GAPS = 200_000
_HALVINGS = 24
_FEW_HALVINGS = 14  # of a range of 200 budgets: to a hundredth of one
_STEEPEST = 200.0  # slope times the budget beyond which only the nearest place is left
_LEAST = 1e-12
_RARE = 1e-2  # of an even share of the reports: rarer ones have the slope of this
_OTHERS = 1000  # users with whom every user is compared, drawn anew for each sum
MOST_LINKED = 5000  # users of linked reports, as all pairs are measured
_FOR_THE_TEACHER = 0.5  # of the time that is left
_TIMES_THE_RATE = 3.0  # of learning, for imitating: its gradients are exact


class CrowdData(NamedTuple):
    """Check-ins as arrays: the number of the truth and of the user of each, the truths (n, 2) in
    units, how far check-ins lie from each other, or truths where a law is imitated there, and the
    frame of the net."""

    place: Any
    user: Any
    truths: Any
    gaps: Any
    waves: Any
    cap: Any
    limit: Any


class CrowdConfig(NamedTuple):
    """What is fixed for the compiler."""

    loss: Callable | None  # None is the distance
    unit_m: float
    moved: int  # check-ins of a batch that are moved about as far as check-ins lie apart
    rate: float


@partial(jax.jit, static_argnames=("config", "steps"))
def learn_crowd(
    state: State,
    data: CrowdData,
    scores: Annotated[Any, "users places"],
    key: Any,
    first: Any,
    share: tuple[Any, Any],
    *,
    config: CrowdConfig,
    steps: int,
) -> State:
    """Take `steps` steps against fixed scores; `share` of the learning is done before and after
    them.  `first` numbers the first step."""

    def step(state: State, number: Any) -> tuple[State, None]:
        done = share[0] + (share[1] - share[0]) * jnp.float32(number - first) / steps
        rows, points = _drawn(data, jax.random.fold_in(key, number), config)
        mine, inputs = scores[data.user[rows]], features(points, data.waves)

        def cost(weights: Any) -> Any:
            outputs, distance = net_outputs(weights, inputs, points, data.cap)
            chances = jax.nn.softmax(outputs)
            metres = distance * config.unit_m
            if config.loss is not None:
                places = weights.places * config.unit_m
                metres = config.loss(points[:, None, :] * config.unit_m, places[None, :, :])
            leaked = (chances * mine).sum() / BATCH
            over = (chances * metres).sum() / BATCH / data.limit - 1
            return leaked + penalty(state.prices[0], over), over

        gradient, over = jax.grad(cost, has_aux=True)(state.weights)
        moved = _descended(state, gradient, rate_at(done, config.rate), done < _PLACES_UNTIL)
        return moved._replace(prices=next_prices(state.prices, over)), None

    return jax.lax.scan(step, state, first + jnp.arange(steps))[0]


@partial(jax.jit, static_argnames=("config", "steps"))
def imitate(
    state: State,
    data: CrowdData,
    teacher: Annotated[Any, "truths places"],
    mass: Annotated[Any, "truths"],
    key: Any,
    first: Any,
    share: tuple[Any, Any],
    *,
    config: CrowdConfig,
    steps: int,
) -> State:
    """Take `steps` steps towards a teacher's law, at all truths where these are few, else at drawn
    ones, some of which are moved; `share` of the distillation is done before and after them."""
    height = jnp.cumsum(mass)

    def step(state: State, number: Any) -> tuple[State, None]:
        done = share[0] + (share[1] - share[0]) * jnp.float32(number - first) / steps
        if len(teacher) <= 2 * BATCH:
            rows, weight, points = jnp.arange(len(teacher)), mass, data.truths
        else:
            row_key, far_key, way_key = jax.random.split(jax.random.fold_in(key, number), 3)
            drawn = jax.random.uniform(row_key, (BATCH,))
            rows = jnp.minimum(jnp.searchsorted(height, drawn), len(teacher) - 1)
            weight = jnp.full(BATCH, 1 / BATCH)
            points = data.truths[rows] + _moves(data, far_key, way_key, config)
        inputs = features(points, data.waves)

        def cost(weights: Any) -> Any:
            outputs, _ = net_outputs(weights, inputs, points, data.cap)
            return divergence(teacher[rows], jax.nn.log_softmax(outputs), weight)

        rate = rate_at(done, _TIMES_THE_RATE * config.rate)
        return _descended(state, jax.grad(cost)(state.weights), rate, False), None

    return jax.lax.scan(step, state, first + jnp.arange(steps))[0]


def _descended(state: State, gradient: Any, rate: Any, places_move: Any) -> State:
    """The state after a step of Adam."""
    change, moments = _ADAM.update(gradient, state.moments)
    change = change._replace(places=jnp.where(places_move, change.places, 0.0))
    weights = jax.tree.map(lambda weight, move: weight - rate * move, state.weights, change)
    return State(weights, moments, state.prices)


def _drawn(data: CrowdData, key: Any, config: CrowdConfig) -> tuple[Any, Any]:
    """Check-ins of a step, and their places in units, some of them moved."""
    row_key, far_key, way_key = jax.random.split(key, 3)
    rows = jax.random.randint(row_key, (BATCH,), 0, len(data.user))
    return rows, data.truths[data.place[rows]] + _moves(data, far_key, way_key, config)


def _moves(data: CrowdData, far_key: Any, way_key: Any, config: CrowdConfig) -> Any:
    """How far some check-ins of a step are moved, in units."""
    far = data.gaps[jax.random.randint(far_key, (BATCH,), 0, len(data.gaps))]
    far = jnp.where(jnp.arange(BATCH) < config.moved, far, 0.0)
    return way(far, jax.random.uniform(way_key, (BATCH,)))


@jax.jit
def _chances(weights: Any, waves: Any, truths: Any, cap: Any) -> Any:
    inputs = features(truths, waves)
    return jax.nn.softmax(net_outputs(weights, inputs, truths, cap)[0])


def scores_of(
    table: Annotated[np.ndarray, "users places"], sharpness: float, information: float
) -> Annotated[np.ndarray, "users places"]:
    """What an adversary who knows P(user, report) scores at each user and report: how surely it
    guesses that user there, and a share `information` of log P(user | report) / P(user), each in
    units of twice its mean."""
    column = np.maximum(table.sum(axis=0), _LEAST)
    posterior = table / column
    scores = posterior / np.maximum(posterior.max(axis=0), _LEAST)
    scores -= 1  # in place: a table of many users is large
    scores *= np.float32(sharpness)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=0)
    scores *= (1 - information) / (2 * max(float(np.sum(table * scores)), _LEAST))
    if information > 0:
        prior = np.maximum(table.sum(axis=1, keepdims=True), _LEAST)
        log_ratio = np.maximum(posterior, 1e-6 * prior, out=posterior)
        log_ratio /= prior
        np.log(log_ratio, out=log_ratio)
        log_ratio *= information / (2 * max(float(np.sum(table * log_ratio)), 1e-3))
        scores += log_ratio
    return np.asarray(scores, np.float32)


def linked_scores(
    table: Annotated[np.ndarray, "users places"], count: float, others: np.ndarray
) -> Annotated[np.ndarray, "users places"]:
    """The slope, at each user and report, of what `count` linked reports tell, in units of its
    mean: of the sum over users x of p_x / (1 + s_x), where s_x sums sqrt(p_k / p_x) rho_xk^n over
    other users k.

    That is the chance that the reports are attributed to the right user wherever the laws of any
    two users of one share are the same or have no report in common.  s is estimated from `others`,
    the numbers of some users.
    """
    prior = np.maximum(table.sum(axis=1), _LEAST)
    roots = np.sqrt(np.maximum(table / prior[:, None], _RARE / table.shape[1]))
    size = np.sqrt(prior)
    more = (len(prior) - 1) / max(1, len(others) - 1)

    def alike(users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """rho^(n-1) with the others, and 1 / (1 + s)^2."""
        overlap = np.minimum(roots[users] @ roots[others].T, 1.0)
        power = overlap ** np.float32(count - 1)
        power[users[:, None] == others] = 0.0
        total = more * ((power * overlap) @ size[others]) / size[users]
        return power, 1 / (1 + total) ** 2

    factor = alike(others)[1]
    scores = np.empty_like(roots)
    for start in range(0, len(prior), _AT_ONCE):
        users = np.arange(start, min(start + _AT_ONCE, len(prior)))
        power, own = alike(users)
        power *= size[others] * (own[:, None] + factor)
        scores[users] = -(power @ roots[others]) / (size[users, None] * roots[users])
    scores /= max(-float(np.sum(table * scores)), _LEAST)
    return np.asarray(scores, np.float32)


class CrowdTraining:
    """One codebook on one problem of many users: a `Training` of the learner's loop."""

    def __init__(self, settings: CodebookSettings, problem: Problem, seed: int) -> None:
        assert isinstance(problem.samples, Samples)
        check_crowd(settings, problem)
        self.settings, self.problem, self.seed = settings, problem, seed
        self.held_out: Samples | None = None
        fit = problem.samples
        if settings.made_for == NEW:
            out = held_out(fit, seed=seed)
            if not out.any():
                raise ProblemError(
                    f"no user of {fit.name} has four check-ins; a budget for check-ins to come"
                    f" needs some: solve for these check-ins alone with {arg('made_for')} {THESE}"
                )
            self.held_out, fit = fit.take(out, name=f"{fit.name} (held out)"), fit.take(~out)
        self.fit = replace(problem, samples=fit)
        capacity = settings.capacity(self.fit)
        self.base = CodebookTraining(settings, self.fit, seed, capacity=capacity)
        self.most_truths = most_imitated(capacity.places)
        self.distillation = Distillation.DONE
        taught = capacity.distillation if imitable(problem) else 0.0
        if taught and len(self.fit.places) > self.most_truths:
            self.distillation, taught = Distillation.TOO_MANY_PLACES, 0.0
        self.alone = 1 - taught  # the share without distillation
        self.part_steps = -(-self.base.part_steps // EVERY) * EVERY
        self._known: tuple[Any, np.ndarray] | None = None
        self._teacher_law: Any = None

    def identity(self) -> str:
        budget = (self.problem.max_loss, self.problem.max_distance, self.problem.objective)
        return (
            f"crowd {self.settings!r} {self.base.capacity!r} {self.seed} {budget!r}"
            f" {self.problem.loss.__name__} {self.problem.grid.as_dict()}"
            f" {self.problem.samples.hash}"
        )

    def first(self) -> State:
        """Where no places are to be moved: all reports of the grid, or cells with truths, drawn by
        the root of their share."""
        state = self.base.first()
        if self.alone:
            return state
        cells, count = self.fit.report_places, len(state.weights.places)
        if len(cells) > count:
            at = self.fit.grid.snap(self.fit.places)
            cells, cell = np.unique(at, axis=0, return_inverse=True)
            root = np.sqrt(np.bincount(cell.ravel(), self._mass))
            random, some = np.random.default_rng((self.seed, 6)), min(count, len(cells))
            cells = cells[random.choice(len(cells), some, replace=False, p=root / root.sum())]
        places = cells[np.resize(np.arange(len(cells)), count)] - self.base.centre
        places = jnp.asarray(places / self.base.unit_m, jnp.float32)
        return state._replace(weights=state.weights._replace(places=places))

    def next_round(self, state: State, history: History, clock: Clock) -> Round[State] | Ended:
        """One of twenty parts, or what the clock demands."""
        done, part = (history[-1]["done"] if history else 0.0), len(history)
        if done >= END:
            return Ended.FINISHED if part >= PARTS else Ended.TIME_LIMIT
        end = until(part, done, clock, PARTS)
        if done < self.alone - 1e-9:
            end = min(end, self.alone)
            state = self._learned(state, part, (done / self.alone, end / self.alone))
        else:
            state = self._distilled(state, part, (done, end), clock)
        if not part:
            give_back()  # what compiling took
        check_finite(state, end)
        law = Joint(self._table(state), secrets=self.problem.samples.secrets)
        mechanism = self.base.mechanism(state)
        line = {
            "round": part,
            "done": end,
            "loss": float(self._mass @ self._losses(mechanism)),
            "bayes_error": bayes_error(law),
            "information_bits": mutual_information(law),
        }
        return Round(state, [(line, mechanism)])

    def _learned(self, state: State, part: int, share: tuple[float, float]) -> State:
        """One part against the adversary."""
        done, end = share
        if done < 0.5 <= end + 1e-9:
            state = self.base.snapped(state)
        turns = self.part_steps // EVERY
        for turn in range(turns):
            start, stop = (done + (end - done) * (turn + k) / turns for k in (0, 1))
            state = learn_crowd(
                state,
                self.data,
                jnp.asarray(self._scores(state, start)),
                jax.random.key(self.seed),
                part * self.part_steps + turn * EVERY,
                (start, stop),
                config=self.config,
                steps=EVERY,
            )
        return state

    def _distilled(
        self, state: State, part: int, share: tuple[float, float], clock: Clock
    ) -> State:
        """One part towards the teacher's law, which is worked out once."""
        if self._teacher_law is None:
            self._teacher_law = jnp.asarray(self._law(state, clock))
        rest = 1 - self.alone
        return imitate(
            state,
            self.data,
            self._teacher_law,
            jnp.asarray(self._mass, jnp.float32),
            jax.random.key(self.seed),
            part * self.part_steps,
            ((share[0] - self.alone) / rest, (share[1] - self.alone) / rest),
            config=self.config,
            steps=self.part_steps,
        )

    def _law(self, state: State, clock: Clock) -> np.ndarray:
        """P(place | truth) of least leakage that the first-order method finds on the places, which
        no longer move; places that coincide share evenly."""
        places = self.base.on_the_grid(state).places
        distinct, number = np.unique(places, axis=0, return_inverse=True)
        truths, loss, budget = self.fit.places, self.problem.loss, self.problem.max_loss
        assert budget is not None
        game = Game(
            self.fit.joint,
            lambda part: loss(truths[part][:, None, :], distinct[None, :, :]),
            len(distinct),
            budget,
        )
        law = least_leaking(
            game,
            deadline=clock.deadline.share(_FOR_THE_TEACHER),
            tell=lambda done: clock.tell(
                f"finding good chances for the report places (the net learns them next): {done:.0%}"
            ),
        )
        rows = np.concatenate([rows for _, rows, _ in game.chances(law)])
        number = number.ravel()
        shared = np.bincount(number)[number].astype(np.float32)
        return np.asarray(rows[:, number] / shared)

    def _scores(self, state: State, done: float) -> np.ndarray:
        rise = min(1.0, done / _SHARP_BY)
        several = self.problem.several
        if several is not None:
            table = self._table(state)
            random = np.random.default_rng((self.seed, 5, round(done * 1e6)))
            some = random.permutation(len(table))[:_OTHERS]
            return linked_scores(table, several**rise, np.sort(some))
        low, high = _SHARPNESS
        early = max(0.0, 1 - done / _INFORMATION_UNTIL)
        wanted = isinstance(self.problem.objective, Information)
        blend = self.settings.blend
        information = 1.0 if wanted else early * (1 - blend) + blend
        return scores_of(self._table(state), low * (high / low) ** rise, information)

    def _table(self, state: State) -> np.ndarray:
        """P(user, place) of the state, summed over all truths, in float32."""
        if self._known is not None and self._known[0] is state.weights:
            return self._known[1]
        users, count = self._by_truth.shape
        table = np.zeros((users, len(state.weights.places)), np.float32)
        truths = np.asarray(self.data.truths)
        for start in range(0, count, _AT_ONCE):
            some = truths[start : start + _AT_ONCE]
            padded = np.concatenate([some, np.zeros((_AT_ONCE - len(some), 2), np.float32)])
            law = np.asarray(_chances(state.weights, self.data.waves, padded, self.data.cap))
            table += self._by_truth[:, start : start + _AT_ONCE] @ law[: len(some)]
        table /= table.sum()
        self._known = state.weights, table
        return table

    @cached_property
    def _by_truth(self) -> sparse.csc_matrix:
        secret, place, weight = self.fit.joint.pairs
        shape = self.fit.joint.shape
        return sparse.csc_matrix((weight.astype(np.float32), (secret, place)), shape=shape)

    @property
    def _mass(self) -> np.ndarray:
        return self.fit.joint.place_probability

    def _losses(self, mechanism: CodebookNet) -> np.ndarray:
        return expected_losses(mechanism, self.fit.places, self.problem)

    @cached_property
    def data(self) -> CrowdData:
        """The check-ins that are learned from, as arrays."""
        problem, samples = self.problem, self.fit.samples
        assert isinstance(samples, Samples) and problem.max_loss is not None
        place = unique_points(samples.truth)[1]
        capped = problem.max_distance is not None
        cap = problem.cap_as_distance / self.base.unit_m if capped else np.inf
        points, furthest = samples.truth / self.base.unit_m, np.inf
        if self.alone < 1:  # a law is imitated around places, of which many repeat
            points = self.base.truths
            if traits_of(problem.loss).is_distance:
                furthest = problem.max_loss / self.base.unit_m
        some = points[:: max(1, len(points) // _MOST_GAPS)]
        gaps = np.minimum(cKDTree(some).query(some, k=2)[0][:, -1], furthest)
        return CrowdData(
            place=jnp.asarray(place, jnp.int32),
            user=jnp.asarray(samples.secret, jnp.int32),
            truths=jnp.asarray(self.base.truths),
            gaps=jnp.asarray(gaps, jnp.float32),
            waves=jnp.asarray(self.base.waves),
            cap=jnp.float32(cap),
            limit=jnp.float32(problem.max_loss),
        )

    @cached_property
    def config(self) -> CrowdConfig:
        """What is fixed for the compiler."""
        loss = self.problem.loss
        return CrowdConfig(
            loss=None if traits_of(loss).is_distance else loss,
            unit_m=self.base.unit_m,
            moved=round(self.base.capacity.resampled_share * BATCH),
            rate=self.settings.rate,
        )

    def released(
        self, state: State, deadline: Deadline = NEVER, tell: Tell = silent
    ) -> CodebookNet:
        """The state on the grid, with the slope that spends the budget, on the check-ins that were
        learned from and, where some were held out, on those as well; or with the slope as learned
        where that keeps the budget and leaks less.  After the deadline some of it may be left."""
        learned = self.base.on_the_grid(state)
        spending = self._spending(learned, deadline, tell)
        assert self.problem.max_loss is not None
        if self._spent(learned) > self.problem.max_loss:
            return spending
        return min(learned, spending, key=self._leakage)

    def _leakage(self, mechanism: CodebookNet) -> float:
        law = mechanism.law(self.fit.joint, loss=self.problem.loss)
        assert law is not None
        return self.problem.leakage(law.joint)

    def _spending(self, learned: CodebookNet, deadline: Deadline, tell: Tell) -> CodebookNet:
        """The least steep slope that keeps the budget; where none does, the truth's own cell is
        reported as often as needed."""
        budget, scale = self.problem.max_loss, self.problem.scale_m
        unit = traits_of(self.problem.loss).unit
        assert budget is not None

        def kept(mechanism: CodebookNet) -> bool:
            spent = self._spent(mechanism)
            tell(f"setting the noise for the budget: loss {spent:.1f} {unit}".rstrip())
            return spent <= budget

        low = max(0.0, learned.slope - 2 / scale)
        high = learned.slope + _STEEPEST / scale
        steepest = replace(learned, slope=high)
        if not kept(steepest):
            return _least(lambda keep: replace(steepest, keep=keep), kept, 0.0, 1.0, deadline)
        if kept(replace(learned, slope=low)):
            return replace(learned, slope=low)
        return _least(lambda slope: replace(learned, slope=slope), kept, low, high, deadline)

    def _spent(self, mechanism: CodebookNet) -> float:
        """The loss on the check-ins learned from, or on those held out (with a confidence its upper
        limit) where that is more."""
        spent = float(self._mass @ self._losses(mechanism))
        if self.held_out is None:
            return spent
        places, column = self._held_places
        cost = expected_losses(mechanism, places, self.problem)[column]
        upper = float(cost.mean())
        if self.settings.confidence is not None:
            tail = float(special.stdtrit(max(1, len(cost) - 1), self.settings.confidence))
            upper += tail * float(cost.std(ddof=1)) / len(cost) ** 0.5
        return max(spent, upper)

    @cached_property
    def _held_places(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.held_out is not None
        places, column = np.unique(self.held_out.truth, axis=0, return_inverse=True)
        return places, column.ravel()

    def outlook(self, mechanism: CodebookNet) -> Outlook | None:
        """What to expect of check-ins to come, by those that were held out."""
        if self.held_out is None:
            return None
        problem, fit = self.problem, self.fit.samples
        judged = judge(
            mechanism, self.held_out, loss=problem.loss, region=problem.region, fitted_on=fit
        )
        return Outlook.held_out(judged, problem.objective)


def _least(
    candidate: Callable[[float], CodebookNet],
    kept: Callable[[CodebookNet], bool],
    low: float,
    high: float,
    deadline: Deadline,
) -> CodebookNet:
    """The candidate of the least number that is kept within the budget, by bisection; that of
    `high` is.  After the deadline by fewer steps."""
    for number in range(_HALVINGS):
        if number >= _FEW_HALVINGS and deadline.passed:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if kept(candidate(middle)) else (middle, high)
    return candidate(high)


def expected_losses(mechanism: CodebookNet, truths: np.ndarray, problem: Problem) -> np.ndarray:
    """The expected loss of each truth, some hundreds of them at a time."""
    each = _AT_ONCE // 4  # a part takes a hundred bytes per truth and place
    parts = [truths[start : start + each] for start in range(0, len(truths), each)]
    return np.concatenate([mechanism.rows(part).losses(part, problem.loss) for part in parts])


def held_out(samples: Samples, *, seed: int) -> np.ndarray:
    """Which check-ins are held out: an eighth of each user's, rounded (one of four to eleven, none
    of fewer), in an order drawn by seed."""
    order = np.lexsort((np.random.default_rng((seed, 4)).random(len(samples)), samples.secret))
    first = np.concatenate([[0], np.cumsum(samples.counts)[:-1]])
    rank = np.empty(len(samples), dtype=int)
    rank[order] = np.arange(len(samples)) - first[samples.secret[order]]
    wanted = (samples.counts + _HELD_OUT // 2) // _HELD_OUT
    return rank < wanted[samples.secret]


def check_crowd(settings: CodebookSettings, problem: Problem) -> None:
    """Refuse what is not learned where users are many."""
    users = len(problem.samples.secrets)
    if problem.max_loss is None or problem.user_max_loss is not None:
        raise ProblemError(
            f"with {users:,} users (more than {MANY}) a codebook keeps one average budget; set"
            f" {arg('max_loss')} and leave {arg('user_max_loss')} out"
        )
    if problem.several is None and not isinstance(problem.objective, Bayes | Information):
        raise ProblemError(
            f"with {users:,} users (more than {MANY}) a codebook minimises the Bayes vulnerability,"
            f" that of linked reports, or the information; got"
            f" {problem.objective.name}"
        )
    if problem.several is not None and users > MOST_LINKED:
        raise ProblemError(
            f"a codebook for linked reports is learned from up to {MOST_LINKED:,} users; got"
            f" {users:,}: keep fewer with {arg('top_users')}, or leave {arg('reports')} out"
        )
    if settings.limited:
        raise ProblemError(
            f"with {users:,} users (more than {MANY}) a codebook keeps no worst-case limits; leave"
            " them out"
        )
    if settings.distillation and not imitable(problem):
        raise ProblemError(
            f"with {users:,} users (more than {MANY}) distillation is for the Bayes objective"
            f" without a cap; leave {arg('distillation')} out"
        )
