"""What a solver gives back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sfumato.measure.certificate import Certificate
from sfumato.measure.judge import Judgement
from sfumato.mechanism.base import Mechanism
from sfumato.solver.problem import Problem


class Solver(Protocol):
    """A frozen dataclass of settings that can solve a problem."""

    @property
    def name(self) -> str:
        """The word for it on the command line and in tables."""
        ...

    def solve(self, problem: Problem, *, seed: int, time_limit: float | None) -> "Outcome":
        """Find a mechanism; never look at anything but the problem."""
        ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """A solver's mechanism, a sentence on how it ended, and its history."""

    mechanism: Mechanism
    status: str
    history: tuple[dict[str, Any], ...] = field(default=())
    certificate: Certificate | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """A mechanism with the problem that it answers and what it was measured to do on the training
    data."""

    problem: Problem
    solver: Solver
    seed: int
    mechanism: Mechanism
    measured: Judgement
    status: str
    seconds: float
    history: tuple[dict[str, Any], ...] = field(default=())
    certificate: Certificate | None = None

    @property
    def name(self) -> str:
        """The solver's name."""
        return self.solver.name

    @property
    def loss(self) -> float:
        """Measured expected loss on the training data, in metres."""
        return self.measured.loss.value

    @property
    def leakage(self) -> float:
        """The problem's objective on the training data: 1 - B(X|Z), bits, or gain."""
        return self.problem.objective.leakage(self.measured.joint)

    def save(self, folder: str | Path) -> None:
        """Write a run folder: run.json, the mechanism, the history."""
        from sfumato.solver.run import save_solution

        save_solution(self, folder)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "solver": self.name,
            "seed": self.seed,
            "max_loss": self.problem.max_loss,
            "objective": self.problem.objective.name,
            "leakage": self.leakage,
            **self.measured.as_dict(),
            "status": self.status,
            "seconds": self.seconds,
        }
