"""Learning a codebook on one problem, from the first step to the mechanism that is released."""

from dataclasses import replace
from functools import cached_property
from math import ceil

import jax
import numpy as np
from scipy.spatial import cKDTree

from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.objective import Gain, Information, Overlap
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.loss import traits_of
from sfumato.nets import Layer, compiled_quickly, glorot
from sfumato.solver.codebook.cost import step_seconds
from sfumato.solver.codebook.learn import (
    State,
    StaticConfig,
    TrainingData,
    first_state,
    learn,
    padded,
)
from sfumato.solver.codebook.settings import THESE, Capacity, CodebookSettings, rows_in_a_step
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.exact import best_for, generate_columns, program_of, task_of
from sfumato.solver.feasible import InfeasibleBudget
from sfumato.solver.learner import Clock, History, Round
from sfumato.solver.outcome import Distillation, Ended
from sfumato.solver.problem import Problem

MOST_TRUTHS = 2500  # beyond them the program of the optimal law grows too large
PARTS = 20  # of the learning: a line of history and a checkpoint after each
_TRUTHS_AT_ONCE = 64
_REDRAWN, _REDRAWN_OF_FEW = 1 / 5, 1 / 16  # share of a user's check-ins in a redraw
_REDRAWN_LINKED = 0.3  # of few, where several reports are seen together: fewer look too unlike
_FEWEST, _MOST = 4, 64
_STRAYS = 64
_TEACHER_GAP = 1e-3  # of the law that a net is taught
_COMPILING_S = 4.0  # of one core
_REMEMBERED = 0.5  # share of moved check-ins that are judged by the last steps' table
_FURTHEST = 3.0  # budgets that a moved check-in goes, where users have many
_UNCOMPILED = 0.2  # guess of the first part's time that was not compiling
_FAR = 2.0  # budgets: a truth with no place within it is reported as a square of that side
_LAST_LAYER = 0.3  # of Glorot's width: begin near the same chances for all
END = 1 - 1e-9
_net = compiled_quickly(glorot, static_argnames=("sizes",))


class CodebookTraining:
    """One codebook on one problem: a `Training` of the learner's loop."""

    def __init__(
        self, settings: CodebookSettings, problem: Problem, seed: int, *, capacity: Capacity
    ) -> None:
        assert isinstance(problem.samples, Samples)
        self.settings, self.problem, self.seed = settings, problem, seed
        self.capacity = capacity
        self.samples = problem.samples
        mass = problem.joint.place_probability
        self.centre = mass @ problem.places
        spread = np.sqrt(mass @ ((problem.places - self.centre) ** 2).mean(axis=1))
        self.unit_m = float(max(spread, problem.grid.cell_m))
        self.part_steps = ceil(capacity.steps / PARTS)
        small = len(problem.places) <= MOST_TRUTHS
        self.alone = 1 - capacity.distillation if small else 1.0  # the share without distillation
        self.distillation = Distillation.DONE
        if capacity.distillation and not small:
            self.distillation = Distillation.TOO_MANY_PLACES
        self._with_teacher: TrainingData | None = None

    def next_round(self, state: State, history: History, clock: Clock) -> Round[State] | Ended:
        """One of twenty parts, or what the clock demands; at the end of them distillation, if it is
        asked for and can be."""
        done, part = (history[-1]["done"] if history else 0.0), len(history)
        if done >= END:
            return Ended.FINISHED if part >= PARTS else Ended.TIME_LIMIT
        end = until(part, done, clock, PARTS, self.part_steps * self.step_s)
        if done < self.alone - 1e-9:
            end = min(end, self.alone)
            if done < self.alone / 2 <= end + 1e-9:
                state = self.snapped(state)
            data, share = self.data, (done / self.alone, end / self.alone)
        elif clock.took and clock.deadline.left < clock.took[0]:
            self.distillation = Distillation.NO_TIME
            return Ended.TIME_LIMIT
        else:
            state = self.snapped(state)
            teacher = self._teacher(state, clock.deadline)
            if teacher is None:
                self.distillation = Distillation.NO_LAW
                return Ended.FINISHED
            rest = 1 - self.alone
            data, share = teacher, ((done - self.alone) / rest, (end - self.alone) / rest)
        state, notes = learn(
            state,
            data,
            jax.random.key(self.seed),
            part * self.part_steps,
            share,
            config=self.config,
            steps=self.part_steps,
        )
        check_finite(state, end)
        mechanism = self.mechanism(state)
        law = mechanism.law(self.problem.joint, loss=self.problem.loss)
        assert law is not None
        line = {
            "round": part,
            "done": end,
            "payoff": float(notes["payoff"]),
            "loss": law.loss,
            "bayes_error": bayes_error(law.joint),
            "information_bits": mutual_information(law.joint),
        }
        return Round(state, [(line, mechanism)])

    @property
    def step_s(self) -> float:
        """Seconds that a step is expected to take."""
        return step_seconds(len(self.problem.places), self.settings, self.capacity)

    def mechanism(self, state: State) -> CodebookNet:
        """The state as it would be used, before the limits."""
        layers = state.weights.net.layers
        distance = traits_of(self.problem.loss).is_distance
        return CodebookNet(
            places=np.asarray(state.weights.places, float) * self.unit_m + self.centre,
            layers=tuple((np.asarray(layer.weights), np.asarray(layer.bias)) for layer in layers),
            waves=np.asarray(self.waves),
            grid=self.problem.grid,
            centre_m=(float(self.centre[0]), float(self.centre[1])),
            unit_m=self.unit_m,
            slope=float(np.exp(state.weights.slope)) / self.unit_m,
            max_distance=self.problem.max_distance if distance else None,
            far=self._far if distance else None,
        )

    @property
    def _far(self) -> Grid | None:
        """Squares for truths far from every place: on the problem's grid."""
        grid, settings = self.problem.grid, self.settings
        if settings.made_for == THESE or settings.limited or self.problem.max_distance is not None:
            return None
        cells = 2 * round((_FAR * self.problem.scale_m / grid.cell_m - 1) / 2) + 1
        return Grid(cell_m=max(cells, 1) * grid.cell_m, corner=grid.origin)

    def on_the_grid(self, state: State) -> CodebookNet:
        """The state as a mechanism that reports the middles of cells, to the last bit."""
        learned = self.mechanism(self.snapped(state))
        return replace(learned, places=self.problem.grid.snap(learned.places))

    def snapped(self, state: State) -> State:
        """Move the places to the middles of cells: what is released lies on the problem's grid."""
        places = np.asarray(state.weights.places, float) * self.unit_m + self.centre
        region = self.problem.region
        assert region is not None
        snapped = (self.problem.grid.snap(region.clamp(places)) - self.centre) / self.unit_m
        weights = state.weights._replace(places=snapped.astype(np.float32))
        return state._replace(weights=weights)

    def _teacher(self, state: State, deadline: Deadline) -> TrainingData | None:
        """The data with the optimal law on the places, which no longer move; computed once."""
        if self._with_teacher is None:
            places = self.problem.grid.snap(self.mechanism(state).places)
            law = optimal_law(self.problem, places, deadline=deadline)
            if law is not None:
                teacher = law.astype(np.float32)
                self._with_teacher = self.data._replace(teacher_law=teacher)
        return self._with_teacher

    @cached_property
    def truths(self) -> np.ndarray:
        """The distinct truths, in units."""
        return np.asarray((self.problem.places - self.centre) / self.unit_m, np.float32)

    @cached_property
    def waves(self) -> np.ndarray:
        """The waves of the truth that the net sees, two rows."""
        random = np.random.default_rng((self.seed, 2))
        count = self.capacity.wider * self.settings.waves
        pace = np.geomspace(0.3, 3.0, count) * self.capacity.wave_scale
        return np.asarray(random.normal(size=(2, count)) * pace, np.float32)

    @property
    def _budgets(self) -> int:
        """How many budgets there are."""
        each = 0 if self.problem.user_max_loss is None else len(self.samples.secrets)
        return (self.problem.max_loss is not None) + each

    @cached_property
    def data(self) -> TrainingData:
        """The problem as arrays."""
        problem, task = self.problem, task_of(self.problem)
        charges, limits = task.budgets()
        samples = (self.samples.truth - self.centre) / self.unit_m
        capped = problem.max_distance is not None
        arrays = TrainingData(
            truths=self.truths,
            table=task.joint,
            height=np.cumsum(task.joint, axis=1) / np.maximum(task.prior, 1e-300)[:, None],
            gaps=self._gaps(samples),
            charges=charges.T,
            user_charges=task.user_charges(),
            limits=np.maximum(limits, 1e-9),
            cap=problem.cap_as_distance / self.unit_m if capped else np.inf,
            gains=(
                problem.objective.gains(problem.joint.secrets)
                if isinstance(problem.objective, Gain)
                else np.eye(len(task.joint))
            ),
            waves=self.waves,
            unit_m=self.unit_m,
            reach=problem.scale_m / self.unit_m,
        )
        data = jax.tree.map(lambda array: np.asarray(array, np.float32), arrays)
        return padded(data, self._truths)

    def _gaps(self, samples: np.ndarray) -> np.ndarray:
        """How far each check-in lies from the next one: of anybody, or of the same user where a
        step looks at some of many check-ins."""
        if self.config.remembered is None:
            return np.asarray(_nearest(samples))
        secret = self.samples.secret
        own = [_nearest(samples[secret == user]) for user in np.unique(secret)]
        return np.minimum(np.concatenate(own), _FURTHEST * self.problem.scale_m / self.unit_m)

    @property
    def _truths(self) -> int:
        """How many truths the arrays have: for check-ins to come rounded up, with truths of no
        weight, so that the nets of several data sets are compiled once."""
        count = len(self.problem.places)
        known = self.settings.made_for == THESE
        return count if known else -(-count // _TRUTHS_AT_ONCE) * _TRUTHS_AT_ONCE

    @cached_property
    def config(self) -> StaticConfig:
        """What is fixed for the compiler."""
        settings, problem = self.settings, self.problem
        distance = traits_of(problem.loss).is_distance
        most = int(self.samples.counts.max())
        share = _REDRAWN
        if self.capacity.few:
            share = _REDRAWN_OF_FEW if problem.several is None else _REDRAWN_LINKED
        rows = rows_in_a_step(settings, self.capacity)
        redraws = settings.redraws
        per_user = int(np.clip(round(share * most), _FEWEST, _MOST))
        each = rows // len(self.samples.secrets)  # redrawn check-ins of a user in a step
        if redraws * per_user > each:  # many users or places
            redraws = min(redraws, 2)
            per_user = max(_FEWEST, min(per_user, each // redraws))
        else:
            redraws = max(redraws, min(_MOST // per_user, 12, each // per_user))
        some = rows < len(problem.places)
        return StaticConfig(
            loss=None if distance else problem.loss,
            unit_m=self.unit_m if settings.made_for == THESE else None,
            information=isinstance(problem.objective, Information),
            resampled=self.capacity.resampled_share,
            blend=settings.blend,
            redraws=redraws,
            per_user=per_user,
            rows=rows if some else self._truths,
            rate=settings.rate,
            max_posterior=settings.max_posterior,
            max_exposed=settings.max_exposed,
            geo_epsilon=settings.geo_epsilon,
            linked=_linked(problem),
            strays=0 if settings.made_for == THESE or not distance else _STRAYS,
            remembered=(
                _REMEMBERED
                if some and settings.made_for != THESE and not self.capacity.few
                else None
            ),
        )

    def first(self) -> State:
        """Half of the places at truths, half anywhere between three of them; a net that prefers
        nothing much."""
        random = np.random.default_rng((self.seed, 3))
        truths = np.asarray(self.truths, float)
        mass = self.problem.joint.place_probability
        count = self.capacity.places
        drawn = truths[random.choice(len(truths), size=(count - count // 2, 3), p=mass)]
        between = (drawn * random.dirichlet([1, 1, 1], size=len(drawn))[..., None]).sum(axis=1)
        at = truths[random.choice(len(truths), size=count // 2, replace=len(truths) < count // 2)]
        hidden = (self.capacity.wider * units for units in self.settings.hidden)
        sizes = (2 + 2 * self.waves.shape[1], *hidden, count)
        net = jax.device_get(_net(jax.random.key(self.seed), sizes=sizes))
        last = Layer(net.layers[-1].weights * np.float32(_LAST_LAYER), net.layers[-1].bias)
        net = replace(net, layers=(*net.layers[:-1], last))
        budget = self.problem.scale_m / self.unit_m
        return first_state(net, np.vstack([at, between]), 1 / budget, self._budgets)

    def identity(self) -> str:
        problem = self.problem
        budgets = (problem.max_loss, problem.user_max_loss, problem.max_distance, problem.objective)
        settings = (
            f"{self.settings!r} {self.capacity!r} {self.config._replace(loss=None)!r} {self.seed}"
        )
        return (
            f"{settings} {budgets!r} {problem.loss.__name__} {problem.grid.as_dict()}"
            f" {problem.samples.hash}"
        )


def check_finite(state: State, done: float) -> None:
    """Refuse a state that no mechanism can be made of."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(state))):
        raise ProblemError(
            f"learning gave numbers that are not finite at {done:.0%}; lower the rate or raise"
            " the budget"
        )


def _nearest(points: np.ndarray) -> np.ndarray:
    """How far each point lies from the next one; 0 for a point alone."""
    distances: np.ndarray = cKDTree(points).query(points, k=min(2, len(points)))[0]
    return distances.reshape(len(points), -1)[:, -1]


def _linked(problem: Problem) -> int | None:
    """How many linked reports the learning is for: 0 for endless ones, None for one."""
    endless = 0 if isinstance(problem.objective, Overlap) else None
    return problem.several or endless


def until(part: int, done: float, clock: Clock, parts: int, expected_s: float = 0.0) -> float:
    """The share of the learning that the next part ends at: its even share, or what the clock
    demands; all of it where there is hardly time for one part, of some expected seconds."""
    even = abs(done - part / parts) < 1e-9  # else a clock has hurried it, now or before
    end = (part + 1) / parts if even else done + 1 / parts
    if clock.deadline.limited and clock.took:
        seconds = clock.took[-1] if len(clock.took) > 1 else clock.took[0] * _UNCOMPILED
        end = max(end, done + (1 - done) * seconds / max(clock.deadline.left, 1e-9))
    elif clock.deadline.left < _COMPILING_S + 2 * expected_s:
        end = 1.0
    return min(1.0, end)


def optimal_law(
    problem: Problem, places: np.ndarray, *, deadline: Deadline = NEVER
) -> np.ndarray | None:
    """P(place | truth) of least leakage within the budgets, shape (truths, places); places that
    coincide share evenly.

    None where no law on these places keeps the budgets.
    """
    distinct, number = np.unique(places, axis=0, return_inverse=True)
    number = number.ravel()
    try:
        task = program_of(problem, distinct)
        optimum = generate_columns(task, gap=_TEACHER_GAP, deadline=deadline)
        if problem.several is not None:
            optimum = best_for(
                task, problem.several, optimum, gap=_TEACHER_GAP, alone=False, deadline=deadline
            )
    except InfeasibleBudget:
        return None
    law = np.zeros((len(problem.places), len(distinct)))
    law[:, optimum.reports] = optimum.mechanism
    return law[:, number] / np.bincount(number)[number]
