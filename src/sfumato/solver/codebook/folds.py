"""Cross-fitting: nets learned without a part of the check-ins, judged on that part.

The training data is cut into folds.  For each fold a net is learned on the others, with fewer
steps; its loss on the fold is what check-ins to come would cost.  From that follows the training
budget that makes the loss on check-ins to come the one that was asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TypeVar

import jax
import numpy as np
from scipy import special

from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError, arg
from sfumato.measure.estimate import Estimate, wilson
from sfumato.measure.judge import judge_law
from sfumato.measure.outlook import Outlook
from sfumato.measure.repeated import linked_bayes_error
from sfumato.measure.worst import exposed
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.loss import Loss
from sfumato.solver.baselines import Coin, Laplace, first_epsilon
from sfumato.solver.codebook.calibrate import Candidate, expected_losses, within_budgets
from sfumato.solver.codebook.learn import State, TrainingData, learn_folds, padded
from sfumato.solver.codebook.settings import THESE, Capacity, CodebookSettings
from sfumato.solver.codebook.training import CodebookTraining, until
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.learner import Clock, History, Round
from sfumato.solver.outcome import Conditions, Ended
from sfumato.solver.problem import Problem

FOLDS = 4
SHARE_OF_STEPS = 0.5  # a fold's net takes this share of the steps: four of them cost twice one
COIN = "the coin"
_PARTS = 10
_ROUNDS = 8  # of the search for the training budgets
_LEAST_SCALE = 0.05
_SHORTEST = 1 / 4  # later period that a confidence covers, in check-ins of the training data
_CELLS_PER_BUDGET = (6, 4, 3, 2)  # noise is compared on cells of such a part of the budget
_MOST_CELLS = 2e7  # times users
_MOST_TERMS = 2e9  # cells times truths, about twenty seconds
_TERMS_PER_S = 1e8
_REACH = 20  # budgets that noise reaches, on both sides together
_CLOSE = 1e-3
_LOSSES = 40  # that two rounds of the search compute for each net
_END = 1 - 1e-9


def fold_of_each(samples: Samples, folds: int, *, seed: int) -> np.ndarray:
    """The fold of each check-in: every user's are dealt out evenly, in an order drawn by seed."""
    counts = samples.counts
    if len(samples) < folds or (counts[counts > 0] < 2).any():
        few = [name for name, count in zip(samples.secrets, counts, strict=True) if count == 1]
        reason = f"{samples.name} has {len(samples)} of them"
        if few:
            reason = f"user {few[0]} has one check-in"
        raise ProblemError(
            f"{reason}; a budget for check-ins to come needs two check-ins of every user and"
            f" {folds} in all: leave such users out with {arg('top_users')}, or solve for these"
            f" check-ins alone with {arg('made_for')} {THESE}"
        )
    random = np.random.default_rng((seed, 4))
    fold = np.empty(len(samples), dtype=int)
    start = 0
    for secret in np.flatnonzero(counts):
        rows = random.permutation(np.flatnonzero(samples.secret == secret))
        fold[rows] = (start + np.arange(len(rows))) % folds
        start += len(rows)
    return fold


Tree = TypeVar("Tree", State, TrainingData)


@dataclass(frozen=True, eq=False)
class Fold:
    """A part of the check-ins, and the learning of a net on the rest."""

    held_out: Samples
    training: CodebookTraining

    def net(self, state: State) -> Candidate:
        """The net on the grid, before any budget."""
        mechanism = self.training.on_the_grid(state)
        return Candidate.of(mechanism, self.training.problem)


class FoldsTraining:
    """The nets of all folds at once: a `Training` of the learner's loop, whose state has the fold
    as the first axis of every array."""

    def __init__(
        self, settings: CodebookSettings, problem: Problem, seed: int, *, capacity: Capacity
    ) -> None:
        assert isinstance(problem.samples, Samples)
        self.problem, self.seed = problem, seed
        samples = problem.samples
        fold = fold_of_each(samples, FOLDS, seed=seed)
        self.part_steps = max(1, round(capacity.steps * SHARE_OF_STEPS / _PARTS))
        self.folds = [
            Fold(
                samples.take(fold == number),
                CodebookTraining(
                    settings,
                    replace(problem, samples=samples.take(fold != number)),
                    seed,
                    capacity=capacity,
                ),
            )
            for number in range(FOLDS)
        ]

    def identity(self) -> str:
        return " ".join(fold.training.identity() for fold in self.folds)

    def first(self) -> State:
        return _stacked([fold.training.first() for fold in self.folds])

    def next_round(self, state: State, history: History, clock: Clock) -> Round[State] | Ended:
        """One of ten parts, or what the clock demands."""
        done, part = (history[-1]["done"] if history else 0.0), len(history)
        if done >= _END:
            return Ended.FINISHED if part >= _PARTS else Ended.TIME_LIMIT
        own = sum(self.part_steps * fold.training.step_s for fold in self.folds)
        end = until(part, done, clock, _PARTS, own)
        if done < 0.5 <= end + 1e-9:
            state = self._snapped(state)
        state = learn_folds(
            state,
            self.data,
            jax.random.key(self.seed),
            part * self.part_steps,
            (done, end),
            config=self.folds[0].training.config._replace(rows=self._rows),
            steps=self.part_steps,
        )
        mechanism = self.folds[0].training.mechanism(_unstacked(state)[0])
        return Round(state, [({"round": part, "done": end, "folds": FOLDS}, mechanism)])

    def _snapped(self, state: State) -> State:
        pairs = zip(self.folds, _unstacked(state), strict=True)
        return _stacked([fold.training.snapped(fold_state) for fold, fold_state in pairs])

    @property
    def _rows(self) -> int:
        return min(self.data.truths.shape[1], max(f.training.config.rows for f in self.folds))

    @cached_property
    def data(self) -> TrainingData:
        """The folds' arrays, padded to one shape by truths of no weight."""
        parts = [fold.training.data for fold in self.folds]
        truths = max(len(part.truths) for part in parts)
        gaps = min(len(part.gaps) for part in parts)
        quantiles = (np.arange(gaps) + 0.5) / gaps
        return _stacked(
            [
                padded(part, truths)._replace(
                    gaps=np.quantile(part.gaps, quantiles).astype(np.float32)
                )
                for part in parts
            ]
        )

    def fitted(
        self, state: State, *, confidence: float | None, deadline: Deadline = NEVER
    ) -> "CrossFitted":
        """The budgets on training data that keep those asked for on check-ins to come; after the
        deadline as the first nets have it, not searched on."""
        states = _unstacked(self._snapped(state))
        learned = [
            fold.net(fold_state) for fold, fold_state in zip(self.folds, states, strict=True)
        ]
        scale, searched = np.ones(len(self._limits)), True
        hurried = _no_time_for(learned, deadline)
        for number in range(_ROUNDS):
            within = [
                within_budgets(replace(net, problem=scaled(net.problem, scale)), hurried=hurried)
                for net in learned
            ]
            if number and deadline.passed:
                searched = False
                break
            ratio = self._spent(within, confidence) / self._limits
            if np.all((ratio <= 1 + _CLOSE) & ((ratio >= 1 - _CLOSE) | (scale >= 1))):
                break
            scale = np.clip(scale / ratio, _LEAST_SCALE, 1.0)
        nets = OnFolds(tuple(net.mechanism for net in within))
        return CrossFitted(self.problem, tuple(self.folds), scale, nets, searched)

    @cached_property
    def _limits(self) -> np.ndarray:
        average = [] if self.problem.max_loss is None else [self.problem.max_loss]
        users = self.problem.user_limits
        return np.array([*average, *([] if users is None else users)], dtype=float)

    def _spent(self, nets: Sequence[Candidate], confidence: float | None) -> np.ndarray:
        """What each budget is charged on check-ins to come, by the check-ins of the folds."""
        loss, mechanisms = self.problem.loss, [net.mechanism for net in nets]
        held_out = [fold.held_out for fold in self.folds]
        both = (held_out, [fold.training.samples for fold in self.folds])
        cost, kept = (costs(mechanisms, parts, loss) for parts in both)
        user, user_kept = (np.concatenate([part.secret for part in parts]) for parts in both)
        spent = [] if self.problem.max_loss is None else [charged(cost, kept, confidence)]
        if self.problem.user_max_loss is not None:
            spent += [
                charged(cost[user == number], kept[user_kept == number], confidence)
                for number in range(len(self.problem.samples.secrets))
            ]
        return np.array(spent)


@dataclass(frozen=True, eq=False)
class OnFolds:
    """Mechanisms for the folds, each made without the check-ins of its fold; `grid` merges reports
    where there are too many."""

    mechanisms: tuple[Mechanism, ...]
    grid: Grid | None = None


@dataclass(frozen=True, eq=False)
class Baseline:
    """A simple solver; the factor that is applied to its budget on training data; its mechanisms
    for the folds."""

    name: str
    solver: Laplace | Coin
    scale: float
    made: OnFolds

    def solve(self, problem: Problem, *, seed: int) -> Mechanism:
        """Its mechanism for all the data."""
        within = scaled(problem, np.array([self.scale]))
        return self.solver.solve(within, Conditions(seed=seed)).mechanism


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """For each budget the factor that is applied on training data, and the nets of the folds at
    those budgets; `searched` is false where a time limit left the factor as it was first
    estimated."""

    problem: Problem
    folds: tuple[Fold, ...]
    scale: np.ndarray
    nets: OnFolds
    searched: bool = True

    def baselines(self, confidence: float | None, *, seconds: float = inf) -> "list[Baseline]":
        """Planar Laplace, if that takes no more than some `seconds`, and the coin at the same
        budget, on the same folds; none where a budget is set that they do not keep."""
        problem = self.problem
        if problem.max_loss is None or len(self.scale) > 1 or problem.max_distance is not None:
            return []
        noise = PlanarLaplace(first_epsilon(problem))
        spent = charged(*self._costs(self._coins(1.0)), confidence)
        scale = min(1.0, problem.max_loss / spent) if spent > 0 else 1.0  # 0: one place for all
        coin = Baseline(COIN, Coin(), scale, OnFolds(self._coins(scale)))
        grid = _coarse(problem)
        terms = sum(noise.terms(np.unique(part.truth, axis=0), grid) for part in self._held)
        if terms > _TERMS_PER_S * seconds:
            return [coin]
        made = OnFolds((noise,) * len(self.folds), grid)
        return [Baseline("planar Laplace", Laplace(), 1.0, made), coin]

    def _coins(self, scale: float) -> tuple[Mechanism, ...]:
        problems = [scaled(fold.training.problem, np.array([scale])) for fold in self.folds]
        return tuple(Coin().solve(problem, Conditions()).mechanism for problem in problems)

    def _costs(self, mechanisms: Sequence[Mechanism]) -> tuple[np.ndarray, np.ndarray]:
        """The expected loss of each check-in under the mechanism that did not see it, and under
        those that did; noise costs the same everywhere."""
        held_out, known = self._held, [fold.training.samples for fold in self.folds]
        if any(mechanism.rows(held_out[0].truth[:1]) is None for mechanism in mechanisms):
            flat = np.full(sum(len(part) for part in held_out), self.problem.max_loss, dtype=float)
            return flat, flat
        loss = self.problem.loss
        return costs(mechanisms, held_out, loss), costs(mechanisms, known, loss)

    def leakage(self, made: OnFolds) -> np.ndarray | None:
        """The objective on each fold; None where a law is too large to be computed."""
        leaks = []
        for mechanism, fold in zip(made.mechanisms, self.folds, strict=True):
            law = mechanism.law(fold.held_out.joint(), loss=self.problem.loss, grid=made.grid)
            if law is None:
                return None
            leaks.append(self.problem.leakage(law.joint))
        return np.array(leaks)

    def linked_error(self) -> float:
        """The Bayes error of the problem's linked reports, each fold by the net that did not see
        it and by an adversary who knows the fold's own check-ins; low with few of them."""
        count = self.problem.several
        assert count is not None
        errors = []
        for mechanism, fold in zip(self.nets.mechanisms, self.folds, strict=True):
            law = mechanism.law(fold.held_out.joint(), loss=self.problem.loss)
            assert law is not None
            errors.append(linked_bayes_error(law.joint, (count,))[0].value)
        return float(self.weights @ errors)

    @property
    def weights(self) -> np.ndarray:
        """The share of the check-ins in each fold."""
        counts = np.array([len(fold.held_out) for fold in self.folds])
        return counts / counts.sum()

    def outlook(self, made: OnFolds, released: Mechanism, *, confidence: float) -> Outlook:
        """Loss and leakage on the folds, each by the mechanism that did not see it.

        The Bayes error of a fold is that of its own check-ins, whose law the adversary knows: with
        few of them it is low, which is the safe side.  The upper end of its interval is the error
        of the guesses learned on the other folds.  What is exposed is that of the `released`
        mechanism on the folds, and what `made` expose more on a fold that they did not see than on
        one that they did: a few report places decide it, and those of others say little of it.
        """
        loss = self.problem.loss
        judged, leaks, shares = [], [], []
        cost, kept = self._costs(made.mechanisms)
        others = (*self._held[1:], self._held[0])
        for mechanism, fold, other in zip(made.mechanisms, self.folds, others, strict=True):
            law = mechanism.law(fold.held_out.joint(), loss=loss, grid=made.grid)
            known = mechanism.law(fold.training.problem.joint, loss=loss, grid=made.grid)
            assert law is not None and known is not None
            judged.append(judge_law(law, fitted_on=known))
            leaks.append(self.problem.leakage(law.joint))
            before = mechanism.law(other.joint(), loss=loss, grid=made.grid)
            after = released.law(fold.held_out.joint(), loss=loss, grid=made.grid) or law
            assert before is not None
            more = exposed(law.joint) - exposed(before.joint)
            shares.append(min(1.0, max(0.0, exposed(after.joint) + more)))
        weights = self.weights
        tail = float(special.stdtrit(len(judged) - 1, (1 + confidence) / 2))

        def mean(values: list[float]) -> tuple[float, float]:
            """And how far off it may be, by the spread over the folds."""
            spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
            return float(weights @ values), tail * spread

        error, off = mean([judgement.bayes_error.value for judgement in judged])
        guessed, guessed_off = mean(
            [judgement.learnt_error.value for judgement in judged if judgement.learnt_error]
        )
        metres, half = charged(cost, kept, None), _half_width(cost, confidence)
        return Outlook(
            loss=Estimate(metres, metres - half, metres + half, "estimate"),
            bayes_error=Estimate(
                error,
                max(0.0, error - off),
                max(error, min(self._blind, max(error, guessed) + max(off, guessed_off))),
                "estimate",
                errs="low with few check-ins",
            ),
            information_bits=_around(
                *mean([judgement.information_bits.value for judgement in judged])
            ),
            exposed=self._exposed(*mean(shares)),
            leakage=float(weights @ leaks),
            checkins=len(cost),
            folds=len(judged),
            confidence=confidence,
            blind_error=self._blind,
        )

    def _exposed(self, value: float, off: float) -> Estimate:
        """The wider of two intervals: by the spread over the folds, and Wilson's with each place of
        a user as one observation; few places are exposed, and a fold may have none of them."""
        where = [np.column_stack([part.secret, part.truth]) for part in self._held]
        low, high = wilson(value, len(np.unique(np.vstack(where), axis=0)))
        spread = _around(value, off)
        return replace(spread, low=min(low, spread.low), high=min(1.0, max(high, spread.high)))

    @property
    def _blind(self) -> float:
        """The error of a guess that has not seen a report: no Bayes error is above it."""
        return 1 - float(self.problem.joint.prior.max())

    @property
    def _held(self) -> list[Samples]:
        return [fold.held_out for fold in self.folds]


def _no_time_for(nets: Sequence[Candidate], deadline: Deadline) -> bool:
    """Whether a precise search for the budgets would pass the deadline, by the time that one loss
    takes."""
    before = deadline.left
    if not deadline.limited or not np.isfinite(nets[0].spent):
        return False
    return deadline.left < _LOSSES * len(nets) * (before - deadline.left)


def scaled(problem: Problem, scale: np.ndarray) -> Problem:
    """The problem with every budget times its factor."""
    factors = list(scale)
    average = None if problem.max_loss is None else problem.max_loss * factors.pop(0)
    users = problem.user_max_loss
    if users is not None:
        names = zip(problem.samples.secrets, factors, strict=True)
        users = {name: users[name] * factor for name, factor in names}
    return replace(problem, max_loss=average, user_max_loss=users)


def _coarse(problem: Problem) -> Grid:
    """Cells to compare noise on: a sixth of the budget, more where there would be too many.  Merged
    reports leak less, which favours the noise."""
    extent = float(np.ptp(problem.places, axis=0).max()) + _REACH * problem.scale_m
    for parts in _CELLS_PER_BUDGET:
        cell_m = max(problem.grid.cell_m, problem.scale_m / parts)
        cells = (extent / cell_m) ** 2
        few = cells * len(problem.samples.secrets) <= _MOST_CELLS
        if few and cells * len(problem.places) <= _MOST_TERMS:
            break
    return Grid(cell_m=cell_m)


def _around(value: float, off: float) -> Estimate:
    return Estimate(
        value, max(0.0, value - off), value + off, "estimate", errs="high with few check-ins"
    )


def costs(mechanisms: Sequence[Mechanism], parts: Sequence[Samples], loss: Loss) -> np.ndarray:
    """The expected loss of each check-in of each part under the part's own mechanism."""
    losses = []
    for mechanism, part in zip(mechanisms, parts, strict=True):
        if isinstance(mechanism, CodebookNet):
            losses.append(expected_losses(mechanism, part.truth, loss))
            continue
        rows = mechanism.rows(part.truth)
        assert rows is not None
        losses.append(rows.losses(part.truth, loss))
    return np.concatenate(losses)


def charged(cost: np.ndarray, kept: np.ndarray, confidence: float | None) -> float:
    """What check-ins to come are taken to cost.

    `cost` is that of the check-ins of the folds, each under a mechanism learned without it; `kept`
    that of the check-ins the mechanisms were learned from.  In expectation it is the mean of `cost`
    with Burman's (1989) correction: the mechanism that is released has all the data, so the excess
    over `kept` is smaller by one part in the number of folds.  With a confidence it is Student's
    limit for the mean of a later period, without the correction: of a quarter as many check-ins,
    the shortest one that is covered, since fewer scatter more.

    >>> charged(np.array([90.0, 130.0]), np.array([100.0, 100.0]), None)  # 110 - 10 / 4
    107.5
    """
    mean = float(cost.mean())
    if confidence is None:
        return mean - (mean - float(kept.mean())) / FOLDS
    if len(cost) < 2:
        return mean
    return mean + _student(cost, confidence) * (1 + 1 / _SHORTEST) ** 0.5


def _student(cost: np.ndarray, confidence: float) -> float:
    """How far above its mean the limit lies."""
    spread = float(cost.std(ddof=1)) / len(cost) ** 0.5
    return float(special.stdtrit(len(cost) - 1, confidence)) * spread


def _half_width(cost: np.ndarray, confidence: float) -> float:
    return _student(cost, (1 + confidence) / 2) if len(cost) > 1 else float("inf")


def _stacked(trees: Sequence[Tree]) -> Tree:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _unstacked(state: State) -> list[State]:
    leaves, tree = jax.tree.flatten(jax.device_get(state))
    parts = ([leaf[row] for leaf in leaves] for row in range(FOLDS))
    return [jax.tree.unflatten(tree, part) for part in parts]
