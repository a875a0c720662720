"""Learned report places with a net for their chances, as a solver."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.errors import ProblemError
from sfumato.mechanism.law import euclidean
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Outcome

CLOSEST = {"doubt": 0.0, "places": 256, "wave_scale": 8.0, "steps": 5000, "lesson": 0.4}


@dataclass(frozen=True)
class Codebook:
    """Learn finitely many report places and a net that gives the chance of each at any truth.

    The law of such a mechanism is known, so its leakage is computed and lowered directly, with no
    classifier in
    between: I(X;Z) first, then the problem's own objective, smoothed less and less.

    Main arguments: `places`, how many reports there are; `steps` of learning; `doubt`, the share of
    the objective that is judged on data drawn anew from the training data and moved about as far as
    check-ins lie from each other: 0 comes closest to the bound on the training data, more holds
    better for check-ins that were not in it (0.5 unless set, 0.7 where no user has 200 check-ins);
    `blend`, the share of I(X;Z) in what is lowered besides the objective.

    Other arguments: `max_posterior`, the largest posterior that any single report may give on the
    training data; `max_exposed`, the largest share of reports that may leave one user above 90 %;
    `geo_epsilon`, geo-indistinguishability per metre at the data's points; `hidden` layers and
    `waves` (sines and cosines of the truth, `wave_scale` their pace) of the net; `rate`, of Adam;
    `redraws` of the data a step, at least; `lesson`, the share of the steps, at the end, in which
    the net is taught the best law on its places, as the exact solver finds it for the training
    data; `certify`, prove a bound as well.
    """

    places: int = 128
    steps: int = 1500
    doubt: float | None = None
    blend: float = 0.0
    max_posterior: float | None = None
    max_exposed: float | None = None
    geo_epsilon: float | None = None
    hidden: tuple[int, ...] = (64, 64)
    waves: int = 64
    wave_scale: float = 4.0
    rate: float = 3e-3
    redraws: int = 4
    lesson: float = 0.0
    certify: bool = True
    name = "codebook"

    def __post_init__(self) -> None:
        if not (
            self.places >= 2
            and self.steps >= 1
            and self.waves >= 1
            and self.redraws >= 1
            and self.rate > 0
            and self.hidden
        ):
            raise ProblemError(
                "a codebook needs 2 places, 1 step, 1 wave, 1 redraw, a layer and a rate above 0,"
                f" at least; got {self}"
            )
        for name, low in (
            ("doubt", 0.0),
            ("blend", 0.0),
            ("max_posterior", None),
            ("max_exposed", 0.0),
            ("lesson", 0.0),
        ):
            value = getattr(self, name)
            if value is not None and not ((value > 0 or low == 0.0 <= value) and value <= 1):
                raise ProblemError(f"{name} is a share between 0 and 1; got {value}")
        if self.lesson == 1 or (
            self.lesson
            and (self.max_posterior, self.max_exposed, self.geo_epsilon) != (None, None, None)
        ):
            raise ProblemError(
                "a lesson (closest) is a share below 1 of the steps and knows no worst-case limits;"
                " leave one out"
            )
        if self.geo_epsilon is not None and not self.geo_epsilon > 0:
            raise ProblemError(f"geo_epsilon is above 0 per metre; got {self.geo_epsilon}")

    def _check_against(self, problem: Problem) -> None:
        """Refuse at once what no learning can give."""
        largest = float(problem.joint.prior.max())
        if self.max_posterior is not None and self.max_posterior < largest:
            raise ProblemError(
                f"max_posterior is below the largest share of a user, {largest:.3f}, which is known"
                " without any report"
            )
        if problem.max_distance is None:
            return
        if problem.loss is not euclidean:
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

    @classmethod
    def closest(cls, **changes: Any) -> "Codebook":
        """Settings that come closest to the bound on the training data: no doubt, a finer net, more
        places, a lesson.

        They fit the very check-ins that they were given; the default holds better for others.
        """
        return cls(**{**CLOSEST, **changes})

    def solve(
        self,
        problem: Problem,
        *,
        seed: int,
        time_limit: float | None,
        progress: Callable[[dict[str, Any]], None] | None = None,
        checkpoint: Path | None = None,
    ) -> Outcome:
        """Learn, bring the law within every limit on the training data, prove a bound.

        With `checkpoint` the state is written to that file now and then; if it exists learning goes
        on from there, to the very mechanism that it would have found undisturbed.
        """
        if isinstance(problem.samples, CategoricalData):
            raise ProblemError(
                f"{problem.samples.name} holds words; a codebook is learned on places: use the"
                " exact solver"
            )
        if problem.min_bayes_error is not None:
            raise ProblemError("min_bayes_error asks for the smallest loss; use the exact solver")
        self._check_against(problem)
        from sfumato.solver.codebook.school import School

        problem.check_feasible()
        return School(self, problem, seed).run(
            time_limit=time_limit, progress=progress, checkpoint=checkpoint
        )
