"""What a solver gives back."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from sfumato.measure.certificate import Certificate
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
