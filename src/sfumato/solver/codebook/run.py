"""A codebook from the first step to the mechanism that is released: cross-fitted budgets, learning,
limits, the better baseline."""

import time
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from sfumato.measure.outlook import Outlook
from sfumato.mechanism.base import Mechanism
from sfumato.solver.codebook.calibrate import calibrated
from sfumato.solver.codebook.crowd import MANY, CrowdTraining
from sfumato.solver.codebook.distillation import MOST_TRUTHS
from sfumato.solver.codebook.folds import COIN, Baseline, CrossFitted, FoldsTraining, scaled
from sfumato.solver.codebook.learn import State
from sfumato.solver.codebook.settings import NEW, CodebookSettings
from sfumato.solver.codebook.training import END, PARTS, CodebookTraining
from sfumato.solver.deadline import Deadline
from sfumato.solver.learner import Clock, History, Round, train
from sfumato.solver.outcome import (
    FOR_THE_PROOF,
    FULL,
    NONE,
    Conditions,
    Effort,
    Ended,
    Ending,
    Learned,
    Outcome,
)
from sfumato.solver.problem import Problem

_FOR_THE_FOLDS = 0.6  # of the time for learning
_FOR_THE_NOISE = 0.1  # of a time limit, at least
_STANDARD_ERRORS = 2.0
_CONFIDENCE = 0.95  # of the intervals, where no other is asked for


class States(NamedTuple):
    """Of the nets of the folds, and of the net that is released."""

    folds: State
    net: State


class CrossFittedTraining:
    """First the folds, then the net, within the budgets that the folds ask for."""

    def __init__(self, settings: CodebookSettings, problem: Problem, seed: int) -> None:
        self.settings, self.problem, self.seed = settings, problem, seed
        self.capacity = settings.capacity(problem)
        self.folds = FoldsTraining(settings, problem, seed, capacity=self.capacity)
        self._clocks: dict[str, Clock] = {}
        self._fitted: CrossFitted | None = None

    def identity(self) -> str:
        return f"{self._start.identity()} {self.folds.identity()}"

    def first(self) -> States:
        return States(self.folds.first(), self._start.first())

    @cached_property
    def _start(self) -> CodebookTraining:
        return self._training(self.problem)

    @cached_property
    def net(self) -> CodebookTraining:
        """The learning of the net that is released; once the folds are fitted."""
        assert self._fitted is not None
        return self._training(scaled(self.problem, self._fitted.scale))

    def _training(self, problem: Problem) -> CodebookTraining:
        return CodebookTraining(self.settings, problem, self.seed, capacity=self.capacity)

    def fitted(self, states: States) -> CrossFitted:
        """What the folds say, computed once."""
        if self._fitted is None:
            self._fitted = self.folds.fitted(states.folds, confidence=self.settings.confidence)
        return self._fitted

    def next_round(self, states: States, history: History, clock: Clock) -> Round[States] | Ended:
        own = self._clock("folds", clock.deadline.share(_FOR_THE_FOLDS))
        start = time.perf_counter()
        result = self.folds.next_round(states.folds, of_folds(history), own)
        if not isinstance(result, Ended):
            own.took.append(time.perf_counter() - start)
            return Round(states._replace(folds=result.state), result.lines)
        self.fitted(states)
        own = self._clock("net", clock.deadline)
        start = time.perf_counter()
        played = self.net.next_round(states.net, of_net(history), own)
        if isinstance(played, Ended):
            return played
        own.took.append(time.perf_counter() - start)
        return Round(states._replace(net=played.state), played.lines)

    def _clock(self, name: str, deadline: Deadline) -> Clock:
        return self._clocks.setdefault(name, Clock(deadline))


def of_folds(history: History) -> History:
    """The lines of the folds' learning."""
    return [line for line in history if "folds" in line]


def of_net(history: History) -> History:
    """The lines of the released net's learning."""
    return [line for line in history if "folds" not in line]


def run(settings: CodebookSettings, problem: Problem, how: Conditions) -> Outcome:
    """All parts, or as many as the time allows; then the limits."""
    seed, limit = how.seed, how.deadline.left
    effort = how.proof or FULL
    options: Any = {
        "deadline": how.deadline if effort == NONE else how.deadline.share(1 - FOR_THE_PROOF),
        "progress": how.progress,
        "checkpoint": how.checkpoint,
    }
    if len(problem.samples.secrets) > MANY:
        return _many(CrowdTraining(settings, problem, seed), options, effort)
    fitted: CrossFitted | None = None
    if settings.made_for == NEW:
        both = CrossFittedTraining(settings, problem, seed)
        new = train(both, **options)
        if not of_net(new.history):
            raise KeyboardInterrupt  # the checkpoint has what was done of the folds
        fitted, training, state = both.fitted(new.state), both.net, new.state.net
        lines, ended = new.history, new.ended
    else:
        capacity = settings.capacity(problem)
        training = CodebookTraining(settings, problem, seed, capacity=capacity)
        these = train(training, **options)
        state, lines, ended = these.state, these.history, these.ended
    released = calibrated(training.on_the_grid(state), training.problem, settings)
    mechanism: Mechanism = released.mechanism
    outlook, better, compared = None, None, True
    if fitted is not None:
        seconds = max(how.deadline.left, _FOR_THE_NOISE * limit)
        outlook, better, mechanism = best_on_folds(
            fitted, settings, mechanism, seed=seed, seconds=seconds
        )
        compared = not how.deadline.limited or list(outlook.baselines or {}) != [COIN]
    history = of_net(lines)
    done = history[-1]["done"]
    facts = Learned(
        steps=len(history) * training.part_steps,
        all_steps=PARTS * training.part_steps,
        share=done,
        distillation=training.distillation,
        most_places=MOST_TRUTHS,
        keep=released.mechanism.keep,
        loss=released.loss,
        budget=problem.max_loss,
        limits=released.limits,
        instead=None if better is None else better.name,
        compared=compared,
    )
    resumable = ended is not Ended.FINISHED and done < END
    ending = Ending(ended, facts, resumable=resumable)
    return Outcome(mechanism, ending, tuple(lines), outlook=outlook, proof=effort)


def _many(training: CrowdTraining, options: Any, effort: Effort) -> Outcome:
    """The same where users are many: one net, with some check-ins of each user held out."""
    trained = train(training, **options)
    mechanism = training.released(trained.state)
    problem, done = training.problem, trained.history[-1]["done"]
    facts = Learned(
        steps=len(trained.history) * training.part_steps,
        all_steps=PARTS * training.part_steps,
        share=done,
        distillation=training.distillation,
        most_places=training.most_truths,
        keep=mechanism.keep,
        loss=None,
        budget=problem.max_loss,
        limits=None,
    )
    resumable = trained.ended is not Ended.FINISHED and done < END
    ending = Ending(trained.ended, facts, resumable=resumable)
    outlook = training.outlook(mechanism)
    return Outcome(mechanism, ending, tuple(trained.history), outlook=outlook, proof=effort)


def best_on_folds(
    fitted: CrossFitted,
    settings: CodebookSettings,
    learned: Mechanism,
    *,
    seed: int,
    seconds: float = inf,
) -> tuple[Outlook, Baseline | None, Mechanism]:
    """What to expect of check-ins to come; the baseline that hides better there by more than the
    noise of the folds, if any; and the mechanism to release, that baseline's or what was learned.
    Neither baseline keeps worst-case limits; noise is compared if that takes some `seconds`."""
    net = fitted.leakage(fitted.nets)
    assert net is not None
    made, least, best, leaks = fitted.nets, float(fitted.weights @ net), None, {}
    tried = [] if settings.limited else fitted.baselines(settings.confidence, seconds=seconds)
    for baseline in tried:
        found = fitted.leakage(baseline.made)
        if found is None:  # too many cells: nothing to compare with
            continue
        leakage = leaks[baseline.name] = float(fitted.weights @ found)
        if leakage < least and _clearly_more(net, found):
            made, least, best = baseline.made, leakage, baseline
    released = learned if best is None else best.solve(fitted.problem, seed=seed)
    outlook = fitted.outlook(made, released, confidence=settings.confidence or _CONFIDENCE)
    return replace(outlook, leakage=least, baselines=leaks), best, released


def _clearly_more(net: np.ndarray, other: np.ndarray) -> bool:
    """Whether the net leaks more than the other, fold by fold, by two standard errors: the folds'
    nets have less data and half of the steps."""
    more = net - other
    return bool(more.mean() > _STANDARD_ERRORS * more.std(ddof=1) / len(more) ** 0.5)
