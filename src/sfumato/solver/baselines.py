"""The baselines that every other mechanism is compared with."""

from dataclasses import dataclass

import numpy as np

from sfumato.arguments import guided_class
from sfumato.data.categories import CategoricalData
from sfumato.errors import ProblemError
from sfumato.measure.cost import START_S, judging_cost
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.loss import traits_of
from sfumato.mechanism.simple import Coin as CoinMechanism
from sfumato.mechanism.simple import Identity
from sfumato.mechanism.wrap import Snapped
from sfumato.memory import Expected
from sfumato.solver.outcome import Calibrated, Conditions, Ending, Outcome, Solving, TruthShare
from sfumato.solver.problem import Problem

_CLOSE = 1e-4  # how far below the budget a calibrated loss may end, relatively
_TRIES = 12
_SAMPLED = 200_000  # reports for calibration where the law is too large to compute


@guided_class(epsilon="sf.mechanism.PlanarLaplace(epsilon=E)")
@dataclass(frozen=True)
class Laplace(Solving):
    """Planar Laplace noise, snapped to the grid, with the loss calibrated to the budget on the
    training data.  The loss is in its own unit; more of it is more private.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> problem = sf.Problem(data, max_loss=45, cell_m=20)
    >>> print(sf.solve(problem, sf.Laplace()).status)
    Calibrated: 45.00 m of 45 m.
    """

    name = "laplace"
    resumable = False

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """Shrink the noise until the snapped reports keep the budget: snapping adds a little
        loss."""
        budget = problem.average_budget
        problem.check_feasible()
        distance = traits_of(problem.loss).is_distance
        epsilon = first_epsilon(problem)
        # the loss goes with epsilon to this power, upside down: 1 for the distance
        power, before = 1.0, (0.0, 0.0)
        for tried in range(_TRIES):
            mechanism = Snapped(PlanarLaplace(epsilon), problem.grid)
            loss = _loss_of(mechanism, problem, seed=how.seed)
            if budget * (1 - _CLOSE) <= loss <= budget:
                facts = Calibrated(loss, budget, problem.grid.cell_m)
                return Outcome(mechanism, Ending(facts=facts))
            here = (np.log(epsilon), np.log(max(loss, 1e-300)))
            if not distance and tried and here[0] != before[0]:
                power = float(np.clip(-(here[1] - before[1]) / (here[0] - before[0]), 0.3, 4.0))
            before = here
            epsilon *= (loss / (budget * (1 - _CLOSE / 2))) ** (1 / power)
        if loss <= budget:
            facts = Calibrated(loss, budget, problem.grid.cell_m, exact=False)
            return Outcome(mechanism, Ending(facts=facts))
        # On cells much wider than the budget the loss no longer follows epsilon: report the cell
        # itself.
        mechanism = Snapped(Identity(), problem.grid)
        return Outcome(mechanism, Ending(facts=Calibrated(None, budget, problem.grid.cell_m)))

    def expected(self, problem: Problem) -> Expected:
        """A law is worked out to find the noise and again to judge it; few reports are drawn to
        find it where many are drawn to judge it."""
        noise = Snapped(PlanarLaplace(first_epsilon(problem)), problem.grid)
        once = judging_cost(noise, problem.samples)
        again = 0.0 if noise.window(problem.joint) is None else once.seconds - START_S
        return Expected(once.seconds + again, once.bytes)


def first_epsilon(problem: Problem) -> float:
    """The epsilon per metre whose snapped noise costs about the budget."""
    distance = traits_of(problem.loss).is_distance
    start = problem.average_budget if distance else problem.scale_m
    return epsilon_on_cells(start, problem.grid.cell_m) * (1 + _CLOSE / 2)


def epsilon_on_cells(loss_m: float, cell_m: float) -> float:
    """The epsilon per metre whose noise, snapped to cells, has about the given mean loss in metres.

    Snapping spreads a report over a cell, which adds side^2/24 E[1/r] = side^2 epsilon/24 to the
    loss: the solution of 2/epsilon + side^2 epsilon/24 = loss.

    >>> round(2 / epsilon_on_cells(300.0, 25.0), 2)  # metres of noise, before the cells
    299.83
    """
    return float(4 / (loss_m + np.sqrt(max(0.0, loss_m**2 - cell_m**2 / 3))))


def _loss_of(mechanism: Snapped, problem: Problem, *, seed: int) -> float:
    law = mechanism.law(problem.joint, loss=problem.loss)
    if law is not None:
        return law.loss
    truth = np.resize(problem.places, (max(_SAMPLED, len(problem.places)), 2))
    return float(problem.loss(truth, mechanism.sample(truth, seed=seed)).mean())


@guided_class()
@dataclass(frozen=True)
class Coin(Solving):
    """Report the truth with chance p, one fixed best place otherwise, with p set to meet the
    budget.

    Not snapped: its law on its own reports is known, and the baseline is to be as strong as it can
    be.  The share p is a probability; less of it is more private.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> problem = sf.Problem(data, max_loss=45, cell_m=20)
    >>> print(sf.solve(problem, sf.Coin()).status)
    The truth is reported 10.0% of the time.
    """

    name = "coin"
    resumable = False

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """The loss is linear in p, so p has a closed form."""
        budget = problem.average_budget
        if isinstance(problem.samples, CategoricalData):
            raise ProblemError(
                f"{problem.samples.name} holds categories; the coin is for places: use the"
                " exact solver"
            )
        place = cheapest_place(problem)
        always = _mean_loss(problem, place)
        keep = max(0.0, 1 - budget / always) if always > 0 else 0.0
        return Outcome(CoinMechanism(keep=keep, place=place), Ending(facts=TruthShare(keep)))

    def expected(self, problem: Problem) -> Expected:
        """The search for the place is short; the coin has two reports per truth."""
        return judging_cost(CoinMechanism(keep=0.5, place=(0.0, 0.0)), problem.samples)


def cheapest_place(problem: Problem) -> tuple[float, float]:
    """The place that costs least when it is always reported: for distances, the geometric median of
    the truths."""
    from scipy.optimize import minimize  # 12 MB: only where it is used

    start = problem.joint.place_probability @ problem.places
    options = {"xatol": 1e-4, "fatol": 1e-9, "maxiter": 2000}
    minimum = minimize(
        lambda place: _mean_loss(problem, place), start, method="Nelder-Mead", options=options
    )
    return float(minimum.x[0]), float(minimum.x[1])


def _mean_loss(problem: Problem, place: np.ndarray | tuple[float, float]) -> float:
    return float(
        problem.joint.place_probability @ problem.loss(problem.places, np.asarray(place)[None, :])
    )
