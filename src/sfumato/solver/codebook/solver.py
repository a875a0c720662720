"""Learned report places with a net for their chances, as a solver."""

from dataclasses import dataclass

from sfumato.arguments import guided_class
from sfumato.data.categories import CategoricalData
from sfumato.data.samples import MANY_USERS
from sfumato.errors import ProblemError, arg
from sfumato.mechanism.loss import traits_of
from sfumato.memory import Expected, give_back, one_heap
from sfumato.solver.codebook.cost import crowd_cost, few_cost
from sfumato.solver.codebook.settings import CodebookSettings
from sfumato.solver.outcome import Conditions, Outcome, Solving
from sfumato.solver.problem import Problem


@guided_class()
@dataclass(frozen=True)
class Codebook(CodebookSettings, Solving):
    """Learn finitely many report places and a net that gives the chance of each at any truth.

    The law of such a mechanism is known, so its leakage is computed and lowered directly, with no
    classifier in between: I(X;Z) first, then the problem's own objective, smoothed less and less;
    for linked reports the overlaps of users from the start.
    The leakage (lower is more private) is measured in the objective's unit, the loss in its own.

    >>> Codebook(max_posterior=0.8).made_for  # the other settings as they are
    'new'
    >>> from sfumato.data.synthetic import four_corners
    >>> Codebook(made_for="these").capacity(Problem(four_corners(0).train, max_loss=173)).places
    256
    """

    name = "codebook"
    resumable = True

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """Learn, bring the law within every limit on the training data."""
        self._check(problem)
        problem.check_feasible()
        one_heap()
        give_back()  # what reading took
        from sfumato.solver.codebook.run import run  # JAX: only where it learns

        outcome = run(self, problem, how)
        give_back()  # what compiling took, before the law is judged
        return outcome

    def expected(self, problem: Problem) -> Expected:
        """What learning takes; where users are many, refuses what does not fit into memory."""
        self._check(problem)
        if len(problem.samples.secrets) <= MANY_USERS:
            return few_cost(problem, self)
        return crowd_cost(problem, self.capacity(problem))

    def _check(self, problem: Problem) -> None:
        """Refuse at once what no learning can give."""
        if isinstance(problem.samples, CategoricalData):
            raise ProblemError(
                f"{problem.samples.name} holds categories; a codebook is learned on places: use the"
                " exact solver"
            )
        if problem.min_bayes_error is not None:
            raise ProblemError(
                f"{arg('min_bayes_error')} asks for the smallest loss; use the exact solver"
            )
        if problem.seeks_endless_budget:
            raise ProblemError(
                f"{arg('reports')} endless without a budget asks for the smallest loss; use the"
                f" exact solver, or set {arg('max_loss')}"
            )
        largest = float(problem.joint.prior.max())
        if self.max_posterior is not None and self.max_posterior < largest:
            raise ProblemError(
                f"{arg('max_posterior')} is below the largest share of a user, {largest:.3f}, which"
                " is known without any report"
            )
        if problem.max_distance is None:
            return
        if not traits_of(problem.loss).is_distance:
            raise ProblemError(
                "a codebook keeps a cap on the distance only where the loss is the distance; use"
                " the exact solver"
            )
        half = problem.grid.cell_m / 2**0.5
        if problem.max_distance < half:
            raise ProblemError(
                f"a cap of {problem.max_distance:g} m is less than half the diagonal of a cell"
                f" ({half:.3g} m), so that some places of the plane could not be answered; make the"
                " cells smaller or use the exact solver"
            )
