"""From a learned law to one that keeps every limit on the training data, checked as it will be
sampled."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from sfumato.data.distinct import distinct
from sfumato.errors import ProblemError, arg
from sfumato.measure.exact import bayes_error
from sfumato.measure.worst import EXPOSED, exposed, geo_indistinguishability, worst_report
from sfumato.mechanism.codebook import CodebookNet, Scores
from sfumato.mechanism.law import Law, ReportRows
from sfumato.mechanism.loss import Loss
from sfumato.solver.codebook.settings import CodebookSettings
from sfumato.solver.outcome import LimitsCost
from sfumato.solver.problem import Problem

_HALVINGS = 40
_BEFORE_SECANTS = 7  # halvings: over a wide range the loss is far from straight
_SPENT = 1e-7  # of the budget, that may be left: chances have the precision of float32
_SPENT_HURRIED = 1e-4  # the same where there is no time for more
_WIDER = 4.0  # times, until the slope of a hurried search is steep enough
_STEEPEST = 200.0  # slope times the budget beyond which only the nearest place is left
_MOST_HELD = 8_000_000  # truths times places whose losses are held: 64 MB
_PART = 4096  # truths at a time
_MOST_PAIRS = 2000  # truths up to which every pair is compared for geo-indistinguishability
_SOFTER = 21  # how many ways from the net as learned to the bare distance are tried
_SIDE = 30  # of the lattice on which geo-indistinguishability over the region is measured


class Losses(NamedTuple):
    """What each truth loses at each report place, at what is reported where no place has a chance,
    and at its own cell."""

    at_places: np.ndarray
    alone: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, mechanism: CodebookNet, truth: np.ndarray, loss: Loss) -> "Losses":
        return cls(
            loss(truth[:, None, :], mechanism.places[None, :, :]),
            loss(truth, mechanism.middle(truth)),
            loss(truth, mechanism.grid.snap(truth)),
        )

    def expected(self, chances: np.ndarray, keep: float) -> np.ndarray:
        """The loss of each truth, as the law has it, without the law's table."""
        drawn = np.einsum("wz,wz->w", chances, self.at_places)
        drawn = np.where(chances.any(axis=1), drawn, self.alone)
        return np.asarray((1 - keep) * drawn + keep * self.kept)


def expected_losses(mechanism: CodebookNet, truth: np.ndarray, loss: Loss) -> np.ndarray:
    """The expected loss of each truth; of those that repeat once."""
    repeats = distinct(truth)
    truths, row = (truth, slice(None)) if repeats is None else repeats
    parts = (truths[start : start + _PART] for start in range(0, len(truths), _PART))
    each = [
        Losses.of(mechanism, part, loss).expected(mechanism.chances(part), mechanism.keep)
        for part in parts
    ]
    return np.concatenate([np.empty(0), *each])[row]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mechanism with its law on the training data, computed once; `scores` are the net's outputs
    and `losses` what reports cost, which candidates of other slopes share."""

    mechanism: CodebookNet
    problem: Problem
    scores: Scores
    losses: Losses | None

    @classmethod
    def of(cls, mechanism: CodebookNet, problem: Problem) -> "Candidate":
        fits = len(problem.places) * len(mechanism.places) <= _MOST_HELD
        losses = Losses.of(mechanism, problem.places, problem.loss) if fits else None
        return cls(mechanism, problem, mechanism.scores(problem.places), losses)

    def at(self, *, slope: float | None = None, keep: float | None = None) -> "Candidate":
        """The same net with another slope or another chance to keep the truth's cell."""
        now = self.mechanism
        changed = replace(
            now,
            slope=now.slope if slope is None else slope,
            keep=now.keep if keep is None else keep,
        )
        return replace(self, mechanism=changed)

    @cached_property
    def law(self) -> Law:
        return Law.of_rows(self.problem.joint, self._rows, loss=self.problem.loss)

    @property
    def _rows(self) -> ReportRows:
        return self.mechanism.rows(self.problem.places, self.scores)

    @cached_property
    def leakage(self) -> float:
        return self.problem.leakage(self.law.joint)

    @property
    def keeps_budgets(self) -> bool:
        problem, limits = self.problem, self.problem.user_limits
        if limits is not None and not np.all(self.law.loss_of <= limits):
            return False
        return problem.max_loss is None or self.spent <= problem.max_loss

    @cached_property
    def spent(self) -> float:
        """The average loss on the training data."""
        return float(self.problem.joint.place_probability @ self._loss_of_each)

    @property
    def _loss_of_each(self) -> np.ndarray:
        """The expected loss of each truth: forty candidates are tried for each budget."""
        mechanism, places = self.mechanism, self.problem.places
        if self.losses is None:
            return expected_losses(mechanism, places, self.problem.loss)
        each, done = [], 0
        for chances in mechanism.chances_by_part(self.scores):
            some = slice(done, done + len(chances))
            losses = Losses(*(part[some] for part in self.losses))
            each.append(losses.expected(chances, mechanism.keep))
            done += len(chances)
        return np.concatenate(each)

    @cached_property
    def geo_epsilon(self) -> float:
        """Geo-indistinguishability per metre at the data's points, every pair of them."""
        places = self.problem.places
        if len(places) > _MOST_PAIRS:
            raise ProblemError(
                f"geo-indistinguishability is checked on at most {_MOST_PAIRS} places; got"
                f" {len(places)}: select fewer check-ins"
            )
        return geo_indistinguishability(self.mechanism.rows(places, self.scores).matrix, places)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A mechanism within its limits, its loss where that is well below the budget, and what the
    worst-case limits cost."""

    mechanism: CodebookNet
    loss: float | None
    limits: LimitsCost | None


def calibrated(learned: CodebookNet, problem: Problem, limits: CodebookSettings) -> Calibrated:
    """Meet the budgets by the slope (and, if the places are too few, by keeping the truth's cell),
    then the worst-case limits."""
    plain = best = within_budgets(Candidate.of(learned, problem))
    for _ in learned.places:
        if limits.geo_epsilon is not None:
            best = _smoothed(best, limits.geo_epsilon)
        worst = _worst_places(best, limits)
        if not len(worst):
            break
        best = within_budgets(Candidate.of(_without(best.mechanism, worst), problem))
    if limits.limited:
        _check(best, limits)
    below = problem.max_loss is not None and best.law.loss < 0.98 * problem.max_loss
    return Calibrated(
        best.mechanism,
        best.law.loss if below else None,
        _cost(best, plain, limits) if limits.limited else None,
    )


def within_budgets(learned: Candidate, *, hurried: bool = False) -> Candidate:
    """The slope that spends the budgets on the training data, unless the slope as learned keeps
    them and leaks less.  `hurried`, about the slope as learned and less precisely, some six losses
    are computed in place of twenty."""
    if learned.problem.max_loss is None and learned.problem.user_max_loss is None:
        return learned
    if hurried and learned.problem.user_limits is None and (near := _nearby(learned)) is not None:
        return near
    spent = _spending(learned)
    return learned if learned.keeps_budgets and learned.leakage <= spent.leakage else spent


def _spending(learned: Candidate) -> Candidate:
    """The least steep slope that keeps all budgets; the loss falls as the slope rises.  Where none
    does, the truth's own cell is reported as often as needed: each loss is linear in that chance.
    """
    scale, slope = learned.problem.scale_m, learned.mechanism.slope
    low, high = slope - 2 / scale, slope + _STEEPEST / scale
    steepest = learned.at(slope=high)
    if not steepest.keeps_budgets:
        return _least(lambda keep: steepest.at(keep=keep), 0.0, 1.0)
    low = max(low, 0.0) if high > 0 else low
    flattest = learned.at(slope=low)
    if flattest.keeps_budgets:
        return flattest
    return _least(lambda slope: learned.at(slope=slope), low, high)


def _nearby(learned: Candidate) -> Candidate | None:
    """The same from the slope as learned on, wider and wider, and only nearly all of the budget;
    None where no slope keeps it."""
    scale, slope = learned.problem.scale_m, learned.mechanism.slope
    candidate = cache(lambda slope: learned.at(slope=slope))
    low, step = slope, 2 / scale
    if candidate(slope).keeps_budgets:
        low, high = (max(slope - step, 0.0) if slope > 0 else slope - step), slope
        if candidate(low).keeps_budgets:
            return candidate(low)
    else:
        while not candidate(slope + step).keeps_budgets:
            low, step = slope + step, step * _WIDER
            if step > _STEEPEST / scale:
                return None
        high = slope + step
    return _least(candidate, low, high, halvings=0, left=_SPENT_HURRIED)


def _least(
    candidate: Callable[[float], Candidate],
    low: float,
    high: float,
    *,
    halvings: int = _BEFORE_SECANTS,
    left: float = _SPENT,
) -> Candidate:
    """The candidate of the least number that keeps the budgets; that of `high` does, that of `low`
    does not.  By bisection; where the average is the only budget, after some `halvings`, by the
    secant between the two, with the excess of an end that stays halved (the Illinois method), until
    no more than a share of the budget is `left`."""
    best = candidate(high)
    limit = best.problem.max_loss
    if limit is None or best.problem.user_limits is not None:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if candidate(middle).keeps_budgets else (middle, high)
        return candidate(high)
    over, under, stayed = candidate(low).spent - limit, best.spent - limit, 0
    for number in range(_HALVINGS):
        if best.spent >= limit * (1 - left) or not low < high:
            break
        middle = (low * under - high * over) / (under - over)
        if number < halvings or not low < middle < high:
            middle = (low + high) / 2
        tried = candidate(middle)
        excess = tried.spent - limit
        if excess <= 0:
            best, high, under = tried, middle, excess
            over, stayed = (over / 2 if stayed > 0 else over), 1
        else:
            low, over = middle, excess
            under, stayed = (under / 2 if stayed < 0 else under), -1
    return best


def _worst_places(best: Candidate, limits: CodebookSettings) -> np.ndarray:
    """The places to give up next: those that break the limit on the posterior; of the exposed ones
    the most telling."""
    if limits.max_posterior is None and limits.max_exposed is None:
        return np.array([], dtype=int)
    joint = best.law.joint
    assert joint.places is not None
    highest = joint.posterior.max(axis=0)
    broken = np.zeros(len(highest), dtype=bool)
    if limits.max_posterior is not None:
        broken |= highest > limits.max_posterior
    if limits.max_exposed is not None and exposed(joint) > limits.max_exposed:
        broken |= highest >= max(EXPOSED, float(np.quantile(highest[highest > EXPOSED], 0.5)))
    telling = {tuple(place) for place in joint.places[broken]}
    return np.flatnonzero([tuple(place) in telling for place in best.mechanism.places])


def _without(mechanism: CodebookNet, worst: np.ndarray) -> CodebookNet:
    left = np.setdiff1d(np.arange(len(mechanism.places)), worst)
    if len(left) < 2:
        raise ProblemError(
            "no mechanism of this codebook keeps the worst-case limits; allow a larger posterior,"
            " share or budget"
        )
    weights, bias = mechanism.layers[-1]
    return replace(
        mechanism,
        places=mechanism.places[left],
        layers=(*mechanism.layers[:-1], (weights[:, left], bias[left])),
        keep=0.0,
    )


def _smoothed(loud: Candidate, epsilon: float) -> Candidate:
    """The net with smaller outputs, at the slope that the budgets then need, until the law is
    geo-indistinguishable enough."""
    mechanism = loud.mechanism
    weights, bias = mechanism.layers[-1]
    least = np.inf
    for factor in np.linspace(1, 0, _SOFTER).astype(np.float32):
        layers = (*mechanism.layers[:-1], (weights * factor, bias * factor))
        quiet = replace(mechanism, layers=layers, keep=0.0)
        softer = within_budgets(Candidate.of(quiet, loud.problem))
        if softer.geo_epsilon <= epsilon:
            return softer
        least = min(least, softer.geo_epsilon)
    raise ProblemError(
        f"no law of this codebook within the budgets is {epsilon:g} per metre geo-indistinguishable"
        f" at the data's points; the smallest found is {least:.4g}: raise {arg('geo_epsilon')} or"
        " the budget"
    )


def _check(best: Candidate, limits: CodebookSettings) -> None:
    """Look at the finished law; say what cannot be held, and by how much."""
    joint, faults = best.law.joint, []
    if not best.keeps_budgets:
        faults.append(f"the smallest loss found within the other limits is {best.law.loss:.4g} m")
    if limits.max_posterior is not None and worst_report(joint) > limits.max_posterior:
        faults.append(f"some report still gives a posterior of {worst_report(joint):.3f}")
    if limits.max_exposed is not None and exposed(joint) > limits.max_exposed:
        faults.append(f"{exposed(joint):.2%} of reports are still exposed")
    if limits.geo_epsilon is not None and best.geo_epsilon > limits.geo_epsilon * (1 + 1e-9):
        faults.append(f"the law is {best.geo_epsilon:.4g} per metre geo-indistinguishable")
    if faults:
        raise ProblemError(
            "these limits cannot all be kept by this codebook: "
            + "; ".join(faults)
            + "; loosen a limit or raise the budget"
        )


def _cost(best: Candidate, plain: Candidate, limits: CodebookSettings) -> LimitsCost:
    """Beside the same net without the limits."""
    before, after = plain.law, best.law
    cost = LimitsCost(bayes_error(before.joint), bayes_error(after.joint), before.loss, after.loss)
    if limits.geo_epsilon is None:
        return cost
    region = best.problem.region
    assert region is not None
    axis = (np.arange(_SIDE) + 0.5) / _SIDE - 0.5
    lattice = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) * region.side_m
    lattice = lattice + np.array(region.centre)
    return replace(
        cost,
        geo_epsilon=best.geo_epsilon,
        geo_epsilon_region=geo_indistinguishability(best.mechanism.rows(lattice).matrix, lattice),
        lattice_points=_SIDE * _SIDE,
    )
