"""From a learned law to one that keeps every limit on the training data, checked as it will be
sampled."""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import ProblemError
from sfumato.measure.exact import bayes_error
from sfumato.measure.worst import EXPOSED, exposed, geo_indistinguishability, worst_report
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.law import Law
from sfumato.solver.problem import Problem

_HALVINGS = 40
_STEEPEST = 200.0  # slope times the budget beyond which only the nearest place is left
_MOST_PAIRS = 2000  # truths up to which every pair is compared for geo-indistinguishability
_SOFTER = 21  # how many ways from the net as learned to the bare distance are tried


@dataclass(frozen=True)
class Limits:
    """Worst-case limits; None where there is none."""

    max_posterior: float | None
    max_exposed: float | None
    geo_epsilon: float | None

    @classmethod
    def of(cls, settings: "object") -> "Limits":
        return cls(
            *(getattr(settings, name) for name in ("max_posterior", "max_exposed", "geo_epsilon"))
        )


@dataclass(frozen=True, eq=False)
class Released:
    """A mechanism within its limits, and a sentence on what they cost."""

    mechanism: CodebookNet
    text: str


def within_limits(learned: CodebookNet, problem: Problem, limits: Limits) -> Released:
    """Meet the budgets by the slope (and, if the places are too few, by keeping the truth's cell),
    then the limits."""
    plain = within_budgets(learned, problem)
    mechanism = plain
    for _ in learned.places:
        if limits.geo_epsilon is not None:
            mechanism = _smoothed(mechanism, problem, limits.geo_epsilon)
        worst = _worst_places(mechanism, problem, limits)
        if not len(worst):
            break
        mechanism = within_budgets(_without(mechanism, worst), problem)
    _check(mechanism, problem, limits)
    return Released(mechanism, _text(mechanism, plain, problem, limits))


def within_budgets(mechanism: CodebookNet, problem: Problem) -> CodebookNet:
    """The slope that spends the budgets on the training data, unless the slope as learned keeps
    them and leaks less."""
    if problem.max_loss is None and problem.user_max_loss is None:
        return mechanism
    spent = _spending(mechanism, problem)
    if _keeps(mechanism, problem) and _leakage(mechanism, problem) <= _leakage(spent, problem):
        return mechanism
    return spent


def _leakage(mechanism: CodebookNet, problem: Problem) -> float:
    return problem.objective.leakage(_law(mechanism, problem).joint)


def _spending(mechanism: CodebookNet, problem: Problem) -> CodebookNet:
    """The least steep slope that keeps all budgets; the loss falls as the slope rises."""
    scale = problem.scale_m
    low, high = mechanism.slope - 2 / scale, mechanism.slope + _STEEPEST / scale
    if not _keeps(replace(mechanism, slope=high), problem):
        return _keeping(replace(mechanism, slope=high), problem)
    low = max(low, 0.0) if high > 0 else low
    if _keeps(replace(mechanism, slope=low), problem):
        return replace(mechanism, slope=low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _keeps(replace(mechanism, slope=middle), problem) else (middle, high)
        )
    return replace(mechanism, slope=high)


def _keeping(mechanism: CodebookNet, problem: Problem) -> CodebookNet:
    """Report the truth's own cell as often as the budgets demand: each loss is linear in that
    chance."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _keeps(replace(mechanism, keep=middle), problem) else (middle, high)
        )
    return replace(mechanism, keep=high)


def _keeps(mechanism: CodebookNet, problem: Problem) -> bool:
    law = _law(mechanism, problem)
    if problem.max_loss is not None and law.loss > problem.max_loss:
        return False
    return problem.user_limits is None or bool(np.all(law.loss_of <= problem.user_limits))


def _law(mechanism: CodebookNet, problem: Problem) -> Law:
    law = mechanism.law(problem.joint, loss=problem.loss)
    assert law is not None
    return law


def _worst_places(mechanism: CodebookNet, problem: Problem, limits: Limits) -> np.ndarray:
    """The places to give up next: those that break the cap on the posterior; of the exposed ones
    the most telling."""
    if limits.max_posterior is None and limits.max_exposed is None:
        return np.array([], dtype=int)
    law = _law(mechanism, problem)
    assert law.joint.places is not None
    highest = law.joint.posterior.max(axis=0)
    broken = np.zeros(len(highest), dtype=bool)
    if limits.max_posterior is not None:
        broken |= highest > limits.max_posterior
    if limits.max_exposed is not None and exposed(law.joint) > limits.max_exposed:
        broken |= highest >= max(EXPOSED, float(np.quantile(highest[highest > EXPOSED], 0.5)))
    if not broken.any():
        return np.array([], dtype=int)
    telling = {tuple(place) for place in law.joint.places[broken]}
    return np.array(
        [number for number, place in enumerate(mechanism.places) if tuple(place) in telling],
        dtype=int,
    )


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


def _smoothed(mechanism: CodebookNet, problem: Problem, epsilon: float) -> CodebookNet:
    """Let the net speak more softly, at the slope that the budgets then need, until the law is
    geo-indistinguishable enough."""
    weights, bias = mechanism.layers[-1]
    least = np.inf
    for by in np.linspace(1, 0, _SOFTER):
        layers = (*mechanism.layers[:-1], (weights * np.float32(by), bias * np.float32(by)))
        softer = within_budgets(replace(mechanism, layers=layers, keep=0.0), problem)
        found = epsilon_at_points(softer, problem)
        if found <= epsilon:
            return softer
        least = min(least, found)
    raise ProblemError(
        f"no law of this codebook within the budgets is {epsilon:g} per metre geo-indistinguishable"
        f" at the data's points; the smallest found is {least:.4g}: raise geo_epsilon or the budget"
    )


def epsilon_at_points(mechanism: CodebookNet, problem: Problem) -> float:
    """Geo-indistinguishability at the data's points, every pair of up to 2000 of them."""
    places = problem.places
    if len(places) > _MOST_PAIRS:
        raise ProblemError(
            f"geo-indistinguishability is checked on at most {_MOST_PAIRS} places; got"
            f" {len(places)}: select fewer check-ins"
        )
    return geo_indistinguishability(mechanism.rows(places).matrix, places)


def _check(mechanism: CodebookNet, problem: Problem, limits: Limits) -> None:
    """Look at the finished law; say what cannot be held, and by how much."""
    law = _law(mechanism, problem)
    faults = []
    if not _keeps(mechanism, problem):
        faults.append(f"the smallest loss found within the other limits is {law.loss:.4g} m")
    if limits.max_posterior is not None and worst_report(law.joint) > limits.max_posterior:
        faults.append(f"some report still gives a posterior of {worst_report(law.joint):.3f}")
    if limits.max_exposed is not None and exposed(law.joint) > limits.max_exposed:
        faults.append(f"{exposed(law.joint):.2%} of reports are still exposed")
    if limits.geo_epsilon is not None and epsilon_at_points(
        mechanism, problem
    ) > limits.geo_epsilon * (1 + 1e-9):
        faults.append(
            f"the law is {epsilon_at_points(mechanism, problem):.4g} per metre"
            " geo-indistinguishable"
        )
    if faults and limits != Limits(None, None, None):
        raise ProblemError(
            "these limits cannot all be kept by this codebook: "
            + "; ".join(faults)
            + "; loosen a limit or raise the budget"
        )


def _text(mechanism: CodebookNet, plain: CodebookNet, problem: Problem, limits: Limits) -> str:
    law = _law(mechanism, problem)
    parts = []
    if mechanism.keep > 0:
        parts.append(
            f"The truth's cell is reported {mechanism.keep:.2%} of the time to keep the budget."
        )
    if problem.max_loss is not None and law.loss < 0.98 * problem.max_loss:
        parts.append(f"It spends {law.loss:.1f} m of the {problem.max_loss:g} m.")
    if limits != Limits(None, None, None):
        before = _law(plain, problem)
        parts.append(
            f"The worst-case limits cost {bayes_error(before.joint) - bayes_error(law.joint):.4f}"
            f" of Bayes error ({bayes_error(before.joint):.4f} to {bayes_error(law.joint):.4f},"
            f" {before.loss:.1f} m to {law.loss:.1f} m) beside the same net without them."
        )
    if limits.geo_epsilon is not None:
        over = _epsilon_over_region(mechanism, problem)
        parts.append(
            f"Geo-indistinguishable to {epsilon_at_points(mechanism, problem):.4g} per metre at the"
            f" data's points (exact); at least {over:.4g} over the region (its worst pair among"
            f" {_SIDE * _SIDE} places of a lattice)."
        )
    return "  ".join(parts)


_SIDE = 30


def _epsilon_over_region(mechanism: CodebookNet, problem: Problem) -> float:
    assert problem.region is not None
    axis = (np.arange(_SIDE) + 0.5) / _SIDE - 0.5
    lattice = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(
        -1, 2
    ) * problem.region.side_m + np.array(problem.region.centre)
    return geo_indistinguishability(mechanism.rows(lattice).matrix, lattice)
