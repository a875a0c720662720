"""A codebook from the first step to the mechanism that is released: cross-fitted budgets, learning,
limits, the better baseline."""

from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np

from sfumato.measure.outlook import Outlook
from sfumato.mechanism.base import Mechanism
from sfumato.solver.codebook.calibrate import calibrated
from sfumato.solver.codebook.crowd import MANY, CrowdTraining
from sfumato.solver.codebook.folds import COIN, Baseline, CrossFitted, FoldsTraining, scaled
from sfumato.solver.codebook.learn import State
from sfumato.solver.codebook.settings import NEW, CodebookSettings
from sfumato.solver.codebook.training import END, MOST_TRUTHS, PARTS, CodebookTraining
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.learner import Clock, History, Round, telling, train
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
from sfumato.solver.problem import BAYES, Problem

_FOR_THE_FOLDS = 0.6  # of the time for learning
_FOR_THE_NOISE = 0.1  # of a time limit, at least
_STANDARD_ERRORS = 2.0
FOR_ONE = "for_one_report"  # in a line of history
_CONFIDENCE = 0.95  # of the intervals, where no other is asked for


class States(NamedTuple):
    """Of the nets of the folds, of the net that is released, and of the folds' nets for one report
    where the mechanism is for several."""

    folds: State
    net: State
    for_one: State | None = None


class CrossFittedTraining:
    """First the folds, then the net, within the budgets that the folds ask for.

    For n linked reports the folds are learned twice, for n and for one.  The net is then of the
    kind whose nets have the larger Bayes error of n reports on the folds that they did not see: few
    check-ins show one report well and lists of them badly, so that what is learned for n may hide
    fewer lists to come than what is learned for one.  With few check-ins in a fold that error is
    low, for both alike.
    """

    def __init__(self, settings: CodebookSettings, problem: Problem, seed: int) -> None:
        self.settings, self.problem, self.seed = settings, problem, seed
        self.capacity = settings.capacity(problem)
        self.folds = FoldsTraining(settings, problem, seed, capacity=self.capacity)
        self.for_one: FoldsTraining | None = None
        if problem.several is not None:
            single = _for_one(problem)
            self.for_one = FoldsTraining(settings, single, seed, capacity=self.capacity)
        self._clocks: dict[str, Clock] = {}
        self._fitted: CrossFitted | None = None
        self.chose_one = False  # whether the net is of the kind for one report

    def identity(self) -> str:
        beside = "" if self.for_one is None else f" {self.for_one.identity()}"
        return f"{self._start.identity()} {self.folds.identity()}{beside}"

    def first(self) -> States:
        beside = None if self.for_one is None else self.for_one.first()
        return States(self.folds.first(), self._start.first(), beside)

    @cached_property
    def _start(self) -> CodebookTraining:
        return self._training(self.problem)

    @cached_property
    def net(self) -> CodebookTraining:
        """The learning of the net that is released; once the folds are fitted."""
        assert self._fitted is not None
        problem = _for_one(self.problem) if self.chose_one else self.problem
        return self._training(scaled(problem, self._fitted.scale))

    def _training(self, problem: Problem) -> CodebookTraining:
        return CodebookTraining(self.settings, problem, self.seed, capacity=self.capacity)

    def fitted(self, states: States, deadline: Deadline = NEVER) -> CrossFitted:
        """What the folds say, computed once."""
        if self._fitted is None:
            how: Any = {"confidence": self.settings.confidence, "deadline": deadline}
            self._fitted = self.folds.fitted(states.folds, **how)
            if self.for_one is not None and states.for_one is not None:
                other = self.for_one.fitted(states.for_one, **how)
                other = replace(other, problem=self.problem)  # judged by what was asked for
                if other.linked_error() > self._fitted.linked_error():
                    self._fitted, self.chose_one = other, True
        return self._fitted

    def next_round(self, states: States, history: History, clock: Clock) -> Round[States] | Ended:
        own = self._clock("folds", clock.deadline.share(_FOR_THE_FOLDS / self._times))
        result = own.play(self.folds, states.folds, of_folds(history))
        if not isinstance(result, Ended):
            return Round(states._replace(folds=result.state), result.lines)
        if self.for_one is not None and states.for_one is not None:
            own = self._clock("for one", clock.deadline.share(_FOR_THE_FOLDS / self._times))
            beside = own.play(self.for_one, states.for_one, of_folds(history, for_one=True))
            if not isinstance(beside, Ended):
                lines = [({**line, FOR_ONE: True}, made) for line, made in beside.lines]
                return Round(states._replace(for_one=beside.state), lines)
        self.fitted(states, clock.deadline)
        played = self._clock("net", clock.deadline).play(self.net, states.net, of_net(history))
        if isinstance(played, Ended):
            return played
        return Round(states._replace(net=played.state), played.lines)

    @property
    def _times(self) -> int:
        """How often folds are learned."""
        return 1 if self.for_one is None else 2

    def _clock(self, name: str, deadline: Deadline) -> Clock:
        return self._clocks.setdefault(name, Clock(deadline))


def _for_one(problem: Problem) -> Problem:
    """The same for one report."""
    return replace(problem, reports=1, objective=BAYES)


def of_folds(history: History, *, for_one: bool = False) -> History:
    """The lines of the folds' learning, or of that for one report beside it."""
    return [line for line in history if "folds" in line and (FOR_ONE in line) == for_one]


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
    chose_one = False
    if settings.made_for == NEW:
        both = CrossFittedTraining(settings, problem, seed)
        new = train(both, **options)
        if not of_net(new.history):
            raise KeyboardInterrupt  # the checkpoint has what was done of the folds
        fitted, training, state = both.fitted(new.state), both.net, new.state.net
        chose_one = both.chose_one
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
        searched=fitted is None or fitted.searched,
        reports=problem.several if chose_one else None,
    )
    resumable = ended is not Ended.FINISHED and done < END
    ending = Ending(ended, facts, resumable=resumable)
    return Outcome(mechanism, ending, tuple(lines), outlook=outlook, proof=effort)


def _many(training: CrowdTraining, options: Any, effort: Effort) -> Outcome:
    """The same where users are many: one net, with some check-ins of each user held out."""
    trained = train(training, **options)
    tell = telling(options["progress"])
    mechanism = training.released(trained.state, options["deadline"], tell)
    tell("measuring what was learned")
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
        per_fold = fitted.leakage(baseline.made)
        if per_fold is None:  # too many cells: nothing to compare with
            continue
        leakage = leaks[baseline.name] = float(fitted.weights @ per_fold)
        if leakage < least and _clearly_more(net, per_fold):
            made, least, best = baseline.made, leakage, baseline
    released = learned if best is None else best.solve(fitted.problem, seed=seed)
    outlook = fitted.outlook(made, released, confidence=settings.confidence or _CONFIDENCE)
    return replace(outlook, leakage=least, baselines=leaks), best, released


def _clearly_more(net: np.ndarray, other: np.ndarray) -> bool:
    """Whether the net leaks more than the other, fold by fold, by two standard errors: the folds'
    nets have less data and half of the steps."""
    more = net - other
    return bool(more.mean() > _STANDARD_ERRORS * more.std(ddof=1) / len(more) ** 0.5)
